//! Tests `copy` while keys of the source come, go and are replaced by commands of the server, which leave no trace in
//! the counts of the module's commands.

use crate::stopped::{Narrow, end, signal, start};
use crate::{Ended, copy, url};
use rollcall_testkit::{Client, Server, Setup, cluster, wait_until};

/// The number of answered bytes after which a copy stands still: all small keys are copied, `f:large` of 2 MB is not.
const STOP: u64 = 600_000;

fn fill(client: &mut Client) {
    client.expect("BF.RESERVE f:large 0.001 1000000", "+OK");
    client.expect("LC.ADD a:counter a", "1");
    client.expect("BF.ADD b:filter a", "1");
    // Database 1 gets the counters that RESTORE and SWAPDB put into database 0.
    client.expect("SELECT 1", "+OK");
    client.expect("LC.ADD s:other a b", "2");
    client.expect("SELECT 0", "+OK");
}

/// Runs `change` with clients of both servers after the small keys are copied, and returns how the copy ended.
fn copied(
    servers: (&Server, &Server),
    options: &[&str],
    change: impl FnOnce(&mut Client, &mut Client),
) -> (Ended, Vec<String>) {
    let narrow = Narrow::to(servers.0, STOP);
    let args = ["--json", "copy", &narrow.url(), &url(servers.1), "--watch", "0"];
    let child = start(&[&args[..], options].concat());
    narrow.wait();
    change(&mut servers.0.client(), &mut servers.1.client());
    narrow.open();
    named(end(child))
}

/// The keys of a copy's report that were not copied as planned, each with its outcome.
fn named(ended: Ended) -> (Ended, Vec<String>) {
    let rows = ended.json()["moves"].as_array().expect("rows").clone();
    let named = rows.iter().filter(|row| !["moved", "equal"].iter().any(|plain| row["outcome"] == *plain));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let named = named.map(|row| format!("{} {}", text(&row["key"]), text(&row["outcome"]))).collect();
    (ended, named)
}

/// The payload of a key in another database, to RESTORE it.
fn dumped(client: &mut Client) -> Vec<u8> {
    client.expect("SELECT 1", "+OK");
    let redis::Value::BulkString(payload) = client.cmd("DUMP s:other") else { panic!("no payload") };
    client.expect("SELECT 0", "+OK");
    payload
}

fn restore(client: &mut Client, key: &str, more: &[&[u8]]) {
    let payload = dumped(client);
    let words: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
    assert_eq!(client.call(&[&words[..], more].concat()), redis::Value::Okay);
}

/// A regression test: a copy exited with 0 although keys were missing or superfluous at its end.
#[test]
fn keys_that_come_go_or_are_replaced_are_named() {
    type Change = fn(&mut Client, &mut Client);
    let cases: [(&str, Change, &[&str]); 14] = [
        ("RENAME", |here, _| here.expect("RENAME a:counter a:new", "+OK"), &["a:counter superfluous", "a:new missing"]),
        (
            "RENAME over",
            |here, _| here.expect("RENAME b:filter a:counter", "+OK"),
            &["a:counter superfluous", "b:filter superfluous"],
        ),
        ("COPY", |here, _| here.expect("COPY a:counter a:new", "1"), &["a:new missing"]),
        ("MOVE", |here, _| here.expect("MOVE a:counter 1", "1"), &["a:counter superfluous"]),
        ("SET", |here, _| here.expect("SET a:counter text", "+OK"), &["a:counter superfluous"]),
        ("DEL", |here, _| here.expect("DEL b:filter", "1"), &["b:filter superfluous"]),
        ("RESTORE", |here, _| restore(here, "a:new", &[]), &["a:new missing"]),
        ("RESTORE REPLACE", |here, _| restore(here, "a:counter", &[b"REPLACE"]), &["a:counter behind"]),
        (
            "SWAPDB",
            |here, _| here.expect("SWAPDB 0 1", "+OK"),
            &["a:counter superfluous", "b:filter superfluous", "s:other missing"],
        ),
        ("FLUSHALL", |here, _| here.expect("FLUSHALL", "+OK"), &["a:counter superfluous", "b:filter superfluous"]),
        ("RENAME of the key in work", |here, _| here.expect("RENAME f:large f:new", "+OK"), &["f:new missing"]),
        ("DEL at the target", |_, there| there.expect("DEL a:counter", "1"), &["a:counter missing"]),
        ("SET at the target", |_, there| there.expect("SET a:counter text", "+OK"), &["a:counter missing"]),
        // The target has a copy of its own, and a key of its own.
        (
            "COPY at both",
            |here, there| [here, there].into_iter().for_each(|client| client.expect("COPY a:counter a:new", "1")),
            &[],
        ),
    ];
    for (name, change, expected) in cases {
        let (server, other) = (Server::start(), Server::start());
        fill(&mut server.client());
        other.client().expect("LC.ADD own a", "1");
        let (ended, mut named) = copied((&server, &other), &[], change);
        named.retain(|row| row != "f:large gone");
        assert_eq!(named, expected, "{name}: {}", ended.out);
        assert_eq!(ended.code, i32::from(!expected.is_empty()), "{name}: {}", ended.err);
        let is_superfluous = expected.iter().any(|row| row.ends_with("superfluous"));
        assert_eq!(ended.err.contains("superfluous keys stay at the target"), is_superfluous, "{}", ended.err);
        let replaces = expected.iter().any(|row| row.ends_with("missing") || row.ends_with("behind"));
        assert_eq!(
            ended.err.contains("run the same again") && ended.err.contains("--replace"),
            replaces,
            "{}",
            ended.err
        );
        // The next copy brings what was missing.
        if name == "RENAME" || name == "RESTORE REPLACE" {
            copy(&server, &other, &["--replace"]).shows(0, "1 moved, 2 equal already");
        }
    }
}

#[test]
fn keys_outside_the_pattern_and_expired_ones_are_no_difference() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    fill(&mut client);
    // A key leaves the pattern, another one comes in.
    let of_pattern = ["--pattern", "[af]:*"];
    let (ended, named) = copied((&server, &other), &of_pattern, |here, _| {
        here.expect("COPY a:counter c:counter", "1");
        here.expect("RENAME a:counter d:counter", "+OK");
        here.expect("RENAME b:filter a:filter", "+OK");
    });
    assert_eq!((ended.code, &named[..]), (1, &["a:counter superfluous".into(), "a:filter missing".into()][..]));
    // A key expires at the source, and the target keeps it without a time to live.
    other.client().expect("FLUSHALL", "+OK");
    client.expect("PEXPIRE c:counter 1500", "1");
    let (ended, named) = copied((&server, &other), &["--no-ttl"], |here, _| {
        wait_until("it to expire", || (here.int("EXISTS c:counter") == 0).then_some(()));
    });
    assert!(ended.code == 0 && named.iter().all(|row| row == "c:counter gone"), "{named:?} {}", ended.err);
    // A deleted key is a difference, although it had a time to live, and the copy found it equal at the target.
    client.expect("PEXPIRE d:counter 3600000", "1");
    let (ended, named) = copied((&server, &other), &[], |here, _| here.expect("DEL d:counter", "1"));
    assert_eq!((ended.code, &named[..]), (1, &["d:counter superfluous".to_owned()][..]), "{}", ended.out);
}

/// Runs `before` when only `f:large` is still to be copied. The next request with `word` to the source or the target is
/// then held back while `change` runs. Returns how the copy ended.
fn held(
    servers: (&Server, &Server),
    (at_source, word): (bool, &'static str),
    options: &[&str],
    before: impl FnOnce(&mut Client),
    change: impl FnOnce(&mut Client, &mut Client),
) -> (Ended, Vec<String>) {
    let (narrow, to) = (Narrow::to(servers.0, STOP), Narrow::to(servers.1, u64::MAX / 2));
    let child = start(&[&["--json", "copy", &narrow.url(), &to.url(), "--watch", "0"], options].concat());
    narrow.wait();
    let holder = if at_source { &narrow } else { &to };
    holder.hold(word);
    before(&mut servers.0.client());
    narrow.open();
    holder.wait_held();
    change(&mut servers.0.client(), &mut servers.1.client());
    holder.release();
    named(end(child))
}

/// A regression test: a key that expired between two questions of the comparison was named.
#[test]
fn keys_that_expire_during_the_comparison_are_no_difference() {
    // A key expires at the source after its type is known, and at both servers after its type at the source is known.
    for (at_source, word) in [(true, "LC.SCANDUMP"), (false, "TYPE")] {
        let (server, other) = (Server::start(), Server::start());
        let mut client = server.client();
        fill(&mut client);
        client.expect("PEXPIRE a:counter 4000", "1");
        let rename = |here: &mut Client| here.expect("RENAME b:filter c:filter", "+OK");
        let gone = |here: &mut Client, there: &mut Client| {
            for client in [here, there] {
                wait_until("it to expire", || (client.int("EXISTS a:counter") == 0).then_some(()));
            }
        };
        let (ended, named) = held((&server, &other), (at_source, word), &[], rename, gone);
        assert_eq!(named, ["b:filter superfluous", "c:filter missing"], "{word}: {}", ended.out);
    }
    // A key that is deleted then is a difference.
    let (server, other) = (Server::start(), Server::start());
    fill(&mut server.client());
    let copy = |here: &mut Client| here.expect("COPY a:counter a:new", "1");
    let delete = |here: &mut Client, _: &mut Client| here.expect("DEL a:counter", "1");
    let (ended, named) = held((&server, &other), (true, "LC.SCANDUMP"), &[], copy, delete);
    assert_eq!(named, ["a:counter superfluous", "a:new missing"], "{}", ended.out);
}

/// A regression test: the comparison asked for the time once for each key that had expired.
#[test]
fn the_time_is_not_asked_for_each_key() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    fill(&mut client);
    for at in 0..300 {
        client.expect(&format!("LC.ADD e:{at} a"), "1");
        client.expect(&format!("PEXPIRE e:{at} 4000"), "1");
    }
    let (ended, named) = copied((&server, &other), &["--no-ttl"], |here, _| {
        wait_until("the last to expire", || (here.int("EXISTS e:299") == 0).then_some(()));
    });
    assert!(ended.code == 0 && named.iter().all(|row| row.ends_with("gone")), "{named:?} {}", ended.err);
    let stats = client.text("INFO commandstats");
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_info:calls=")).expect("its calls");
    let calls: u64 = calls.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number");
    assert!(calls < 150, "{calls} calls of INFO");
}

/// A regression test: the comparison looked for replacements only when it began.
#[test]
fn a_value_that_is_replaced_during_the_comparison_is_named() {
    let (server, other) = (Server::start(), Server::start());
    fill(&mut server.client());
    let replace = |here: &mut Client, _: &mut Client| restore(here, "a:counter", &[b"REPLACE"]);
    let (ended, named) = held((&server, &other), (false, "TYPE"), &[], |_| {}, replace);
    assert_eq!((ended.code, &named[..]), (1, &["a:counter behind".to_owned()][..]), "{}", ended.out);
}

/// A regression test: a key that was deleted before its turn left the target's old value, and the copy exited with 0.
#[test]
fn an_old_value_of_a_key_that_is_gone_is_named() {
    let (server, other) = (Server::start(), Server::start());
    fill(&mut server.client());
    other.client().expect("BF.ADD f:large old", "1");
    let (ended, named) = copied((&server, &other), &["--replace"], |here, _| here.expect("DEL f:large", "1"));
    assert_eq!((ended.code, &named[..]), (1, &["f:large superfluous".to_owned()][..]), "{}", ended.out);
}

/// While clients write, keys may come and go: they are named, and change the exit code only if they lack items.
#[test]
fn differences_while_clients_write_are_named() {
    let (server, other) = (Server::start(), Server::start());
    fill(&mut server.client());
    let (ended, named) = copied((&server, &other), &["--while-written"], |here, _| {
        here.expect("RENAME a:counter a:new", "+OK");
        here.expect("LC.ADD z:counter a", "1");
    });
    assert_eq!(named, ["a:counter superfluous", "a:new missing", "z:counter missing"], "{}", ended.out);
    assert_eq!(ended.code, 0, "{}", ended.err);
    other.client().expect("FLUSHALL", "+OK");
    let (ended, named) =
        copied((&server, &other), &["--while-written", "--replace"], |here, _| here.expect("LC.ADD a:new b", "1"));
    assert_eq!((ended.code, &named[..]), (1, &["a:new behind".to_owned()][..]), "{}", ended.out);
    assert!(ended.out.contains("may lack items"), "{}", ended.out);
}

/// A regression test: the counts of a primary that joined were taken for writes.
#[test]
fn a_primary_that_joins_ends_a_copy_with_that_reason() {
    let (nodes, other) = (cluster(2), Server::start());
    let new = Setup::default().line("cluster-enabled yes").start();
    let mut clients: Vec<Client> = nodes.iter().chain([&new]).map(Server::client).collect();
    clients[0].expect(&format!("CLUSTER MEET 127.0.0.1 {}", new.port()), "+OK");
    for client in &mut clients {
        wait_until("all nodes to be known", || (client.text("CLUSTER NODES").lines().count() == 3).then_some(()));
    }
    clients[1].expect("BF.RESERVE large 0.001 1000000", "+OK");
    let narrow = Narrow::to(&other, STOP);
    let child = start(&["copy", &url(&nodes[0]), &narrow.url(), "--source-cluster", "--watch", "0"]);
    narrow.wait();
    // The slot of {b}, which has no keys.
    let id = clients[2].text("CLUSTER MYID");
    clients.iter_mut().rev().for_each(|client| client.expect(&format!("CLUSTER SETSLOT 3300 NODE {id}"), "+OK"));
    wait_until("the slot to be served", || (clients[2].cmd("LC.ADD {b}:1 a") == redis::Value::Int(1)).then_some(()));
    narrow.open();
    let ended = end(child);
    assert_eq!(ended.code, 3, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("the source got or lost a primary since the copy began"), "{}", ended.err);
}

#[test]
fn all_primaries_of_a_source_are_scanned_at_the_end() {
    let (nodes, other) = (cluster(2), Server::start());
    let mut clients: Vec<Client> = nodes.iter().map(Server::client).collect();
    // The slots are 15495 for {a}, 3300 for {b} and 9543 for the large key.
    clients[1].expect("LC.ADD {a}:1 a", "1");
    clients[0].expect("LC.ADD {b}:1 a", "1");
    clients[1].expect("BF.RESERVE large 0.001 1000000", "+OK");
    // A client of a cluster connects to the nodes themselves, so the answers of the target are held back.
    let narrow = Narrow::to(&other, STOP);
    let args = ["--json", "copy", &url(&nodes[0]), &narrow.url(), "--source-cluster", "--watch", "0"];
    let child = start(&args);
    narrow.wait();
    clients[1].expect("RENAME {a}:1 {a}:2", "+OK");
    clients[0].expect("COPY {b}:1 {b}:2", "1");
    narrow.open();
    let ended = end(child);
    let rows = ended.json()["moves"].as_array().expect("rows").clone();
    let outcomes = ["{a}:1", "{b}:1", "large", "{a}:2", "{b}:2"].map(|key| {
        let row = rows.iter().find(|row| row["key"] == key).expect("a row");
        row["outcome"].as_str().expect("an outcome").to_owned()
    });
    assert_eq!(outcomes, ["superfluous", "moved", "moved", "missing", "missing"], "{}", ended.out);
    assert_eq!(ended.code, 1, "{}", ended.err);
}

/// A signal ends the comparison too. The keys that are moved stay, and the next copy finds them equal.
#[test]
fn an_interrupt_ends_the_comparison() {
    let (server, other) = (Server::start(), Server::start());
    fill(&mut server.client());
    let narrow = Narrow::to(&server, STOP);
    let child = start(&["copy", &narrow.url(), &url(&other), "--watch", "0"]);
    narrow.wait();
    narrow.hold("commandstats");
    narrow.open();
    narrow.wait_held();
    signal(&child, "-INT");
    narrow.release();
    let ended = end(child);
    assert_eq!(ended.code, 130, "{}{}", ended.out, ended.err);
    assert!(ended.err.starts_with("rollcall: interrupted\n  what was moved stays"), "{}", ended.err);
    assert!(ended.out.contains("3 moved"), "{}", ended.out);
    copy(&server, &other, &[]).shows(0, "3 equal already");
}
