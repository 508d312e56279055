//! Tests the scripts and recipes of the tutorials in the moments that matter: between a look and an act, and when time
//! passes. Tests the shell lines of docs/cluster.md on a cluster.

use std::fs;
use std::path::Path;
use std::process::Command;

use redis::cluster::{ClusterClient, ClusterConnection};
use rollcall_testkit::{Client, Clock, Server, cluster, show, words};

/// The Unix time at which a slice of three hours begins.
const START: u64 = 10_800 * 160_000;

/// The script that a tutorial's Python registers under this name.
fn script(page: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorials").join(page);
    let text = fs::read_to_string(path).expect("the tutorial");
    let start = format!("{name} = client.register_script(\"\"\"\n");
    let (_, rest) = text.split_once(&start).unwrap_or_else(|| panic!("no script {name} in {page}"));
    rest.split_once("\"\"\")").expect("the end of the script").0.to_owned()
}

#[track_caller]
fn eval(client: &mut Client, script: &str, rest: &str) -> String {
    let mut command = vec!["EVAL", script];
    command.extend(words(rest));
    show(&client.call(&command))
}

/// A device that logs in again is not the oldest any more, even if that happens just before another takes a place.
#[test]
fn the_device_that_was_unused_for_longest_is_thrown_out() {
    let clock = Clock::at(START);
    let server = clock.setup().start();
    let (mut client, script) = (server.client(), script("devices.md", "log_in"));
    let log_in = |client: &mut Client, device: &str| {
        eval(client, &script, &format!("1 recent 3 {device}"));
        clock.pass(10_800);
    };
    for device in ["phone", "laptop", "tablet", "phone"] {
        log_in(&mut client, device);
    }
    let expect = |client: &mut Client, devices: &str| client.expect("LC.MEMBERS recent", devices);
    log_in(&mut client, "watch");
    expect(&mut client, "[\"phone\", \"tablet\", \"watch\"]");
    // The tablet would be next.
    log_in(&mut client, "tablet");
    log_in(&mut client, "car");
    expect(&mut client, "[\"tablet\", \"watch\", \"car\"]");
    // With a lower limit, two make room.
    eval(&mut client, &script, "1 recent 2 phone");
    expect(&mut client, "[\"car\", \"phone\"]");
}

#[test]
fn several_caps_admit_to_all_keys_or_to_none() {
    let server = Server::start();
    let (mut client, script) = (server.client(), script("devices.md", "admit_to_all"));
    assert!(script.trim().lines().count() <= 12);
    for (rest, reply, counts) in [
        ("3 a b c 2 3 4 x y", "0", [2, 2, 2]),
        ("3 a b c 2 3 4 x y", "0", [2, 2, 2]),
        ("3 a b c 3 3 4 x z", "0", [3, 3, 3]),
        ("3 a b c 4 3 4 x w", "2", [3, 3, 3]),
        ("3 a b c 5 5 4 v w", "3", [3, 3, 3]),
        ("3 a b c 3 5 9 v", "1", [3, 3, 3]),
    ] {
        assert_eq!(eval(&mut client, &script, rest), reply, "{rest}");
        assert_eq!(["a", "b", "c"].map(|key| client.int(&format!("LC.COUNT {key}"))), counts, "{rest}");
    }
}

/// A member that comes late is merged into the slice of its time, and expires with it.
#[test]
fn a_late_member_expires_with_its_own_slice() {
    let clock = Clock::at(START + 3 * 10_800);
    let (_server, mut client) = clock.setup().start().with_client();
    let options = "WINDOW 43200 SLICES 4";
    client.expect(&format!("LC.INSERT seen {options} ITEMS now"), "1");
    client.expect(&format!("LC.RESERVE late {options} MANUAL"), "+OK");
    client.expect(&format!("LC.ADVANCE late {}", START / 10_800), "+OK");
    client.expect("LC.ADD late past", "1");
    client.expect("LC.ADVANCE late CLOCK", "+OK");
    client.expect("LC.MERGE seen late", "+OK");
    for (slices, count) in [(0, 2), (1, 2), (1, 1), (2, 1), (1, 0)] {
        clock.pass(slices * 10_800);
        assert_eq!(client.int("LC.COUNT seen"), count, "{}", clock.now() - START);
    }
}

/// A proxy that knows the keys only of the server's own commands finds the right node by the keys of a script.
#[test]
fn a_script_names_the_keys_of_a_set_operation() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.ADD a x y z", "3");
    client.expect("LC.ADD b y", "1");
    let script = "return redis.call('LC.DIFFCARD', #KEYS, unpack(KEYS))";
    assert_eq!(eval(&mut client, script, "2 a b"), show(&client.cmd("LC.DIFFCARD 2 a b")));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cluster.md");
    assert!(fs::read_to_string(page).expect("the page").contains(script));
}

/// Sends a command to the node of its key.
#[track_caller]
fn ask<T: redis::FromRedisValue>(connection: &mut ClusterConnection, line: &str) -> redis::RedisResult<T> {
    let mut words = words(line).into_iter();
    redis::cmd(words.next().expect("a command")).arg(words.collect::<Vec<_>>()).query(connection)
}

/// The shell lines of docs/cluster.md make of counters on several nodes the counter that has all their members.
#[test]
fn counters_of_several_nodes_are_united_by_their_dumps() {
    let nodes = cluster(3);
    let url = format!("redis://127.0.0.1:{}/", nodes[0].port());
    let mut connection = ClusterClient::new(vec![url]).expect("an address").get_connection().expect("a connection");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cluster.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```sh\nfor key in visitors:eu visitors:us; do\n").expect("the lines");
    let (lines, _) = rest.split_once("```").expect("the end of the lines");
    let with_port = format!("redis-cli -p {}", nodes[1].port());
    let lines = format!("set -eu\nfor key in visitors:eu visitors:us; do\n{lines}").replace("redis-cli", &with_port);
    // Exact counters, then estimates. "{visitors}" has the slot of "visitors".
    for (round, len) in [100, 20_000].into_iter().enumerate() {
        for (key, first) in [("visitors:eu", 0), ("visitors:us", len / 2)] {
            for from in (first..first + len).step_by(1000) {
                let items: Vec<u64> = (from..(from + 1000).min(first + len)).collect();
                for key in [key, "{visitors}:direct"] {
                    let added: i64 = redis::cmd("LC.ADD").arg(key).arg(&items).query(&mut connection).expect("LC.ADD");
                    assert!(added >= 0);
                }
            }
        }
        let across = ask::<i64>(&mut connection, "LC.COUNT visitors:eu visitors:us").unwrap_err();
        assert!(across.to_string().contains("slot"), "{across}");
        // A second time changes nothing.
        for _ in 0..2 {
            let output = Command::new("bash").args(["-c", &lines]).output().expect("bash");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!((printed.as_str(), output.stderr.as_slice()), ("OK\nOK\n", &b""[..]), "round {round}");
            let mut dump = |key: &str| ask::<Vec<u8>>(&mut connection, &format!("DUMP {key}")).expect("a dump");
            assert_eq!(dump("visitors"), dump("{visitors}:direct"), "round {round}");
        }
    }
    // In the slot of one hash tag, the counters of both nodes can be compared.
    for key in ["eu", "us"] {
        let dump: Vec<u8> = ask(&mut connection, &format!("DUMP visitors:{key}")).expect("a dump");
        let merge = redis::cmd("LC.MERGEDUMP").arg(format!("{{reached}}:{key}")).arg(dump).to_owned();
        merge.exec(&mut connection).expect("LC.MERGEDUMP");
    }
    let script = "return redis.call('LC.DIFFCARD', #KEYS, unpack(KEYS))";
    let command = redis::cmd("EVAL").arg(script).arg(2).arg("{reached}:eu").arg("{reached}:us").to_owned();
    let (only, error): (f64, f64) = command.query(&mut connection).expect("LC.DIFFCARD");
    assert!((only - 10_000.0).abs() < 5.0 * error, "{only} with an error of {error}");
}
