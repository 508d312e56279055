//! Tests `copy` between servers that nobody writes to.

use crate::{copy, peer, peer_server, stopped, tool, tool_with, url};
use rollcall_testkit::{Client, Server, Setup, add_many, wait_until};

/// Adds filters that both modules can load, to a server with this module or with RedisBloom.
fn classic(client: &mut Client, layout: &str) {
    client.expect(&format!("BF.RESERVE grown 0.01 1000{layout}"), "+OK");
    add_many(client, "BF.MADD grown", "item:", 0..9000);
    client.expect(&format!("BF.RESERVE fixed 0.001 20000 NONSCALING{layout}"), "+OK");
    add_many(client, "BF.MADD fixed", "item:", 0..15_000);
    client.expect(&format!("BF.RESERVE empty 0.02 50 EXPANSION 4{layout}"), "+OK");
    client.expect("PEXPIREAT fixed 99999999999999", "1");
    let odd: [&[u8]; 3] = [b"BF.MADD", b"odd{}\xff\n}", b"x"];
    client.call(&odd);
}

const CLASSIC: [&str; 3] = ["grown", "fixed", "empty"];

/// Adds values that only this module can load.
fn ours(client: &mut Client) {
    client.expect("BF.RESERVE lines 0.001 1000000", "+OK");
    add_many(client, "BF.MADD lines", "item:", 0..30_000);
    client.expect("BF.RESERVE window 0.01 50000 WINDOW 3600", "+OK");
    add_many(client, "BF.MADD window", "item:", 0..30_000);
    client.expect("BF.RESERVE manual 0.01 50000 WINDOW 3600 MANUAL", "+OK");
    add_many(client, "BF.MADD manual", "item:", 0..30_000);
    client.expect("LC.ADD exact a b c", "3");
    add_many(client, "LC.ADD dense", "member:", 0..30_000);
    client.expect("LC.RESERVE sparse ERROR 0.0025", "+OK");
    add_many(client, "LC.ADD sparse", "member:", 0..1000);
    client.expect("LC.RESERVE seen WINDOW 86400", "+OK");
    add_many(client, "LC.ADD seen", "member:", 0..3000);
    client.expect("PEXPIREAT dense 99999999999999", "1");
}

const OURS: [(&str, &str); 7] = [
    ("BF", "lines"),
    ("BF", "window"),
    ("BF", "manual"),
    ("LC", "exact"),
    ("LC", "dense"),
    ("LC", "sparse"),
    ("LC", "seen"),
];

#[test]
fn copy_moves_every_kind_of_value() {
    let (one, other) = (Server::start(), Server::start());
    let mut client = one.client();
    classic(&mut client, " LAYOUT classic");
    ours(&mut client);
    client.expect("SET text 1", "+OK");
    let dry = tool(&["--json", "copy", &url(&one), &url(&other), "--dry-run"]).expect(0).json();
    assert_eq!(dry["moves"].as_array().expect("rows").len(), 11);
    assert_eq!(other.client().int("DBSIZE"), 0);
    let copied = tool(&["--json", "copy", &url(&one), &url(&other), "--watch", "0"]).expect(0).json();
    for row in copied["moves"].as_array().expect("rows") {
        assert_eq!(row["outcome"], "moved", "{row}");
    }
    let mut there = other.client();
    assert_eq!(there.int("DBSIZE"), 11);
    for key in CLASSIC.iter().chain(OURS.iter().map(|(_, key)| key)) {
        assert_eq!(there.digest(key), client.digest(key), "{key}");
        assert_eq!(there.int(&format!("PEXPIRETIME {key}")), client.int(&format!("PEXPIRETIME {key}")), "{key}");
        assert_eq!(there.text(&format!("TYPE {key}")), client.text(&format!("TYPE {key}")), "{key}");
    }
    // Equal keys are skipped. Different ones are rejected before any key is moved, and replaced with `--replace`.
    there.expect("LC.ADD exact d", "1");
    there.expect("DEL lines", "1");
    let again = tool(&["--json", "copy", &url(&one), &url(&other), "--watch", "0"])
        .fails(3, "1 keys cannot be moved, so none was");
    assert!(again.out.contains("another value there: --replace replaces it"), "{}", again.out);
    there.expect("EXISTS lines", "0");
    copy(&one, &other, &["--replace"]).shows(0, "2 moved, 9 equal already");
    assert_eq!(there.digest("exact"), client.digest("exact"));
    assert_eq!(there.digest("lines"), client.digest("lines"));
    // A regression test: an equal key with another time to live was left as it was.
    client.expect("PEXPIREAT exact 99999999999998", "1");
    client.expect("PERSIST fixed", "1");
    copy(&one, &other, &[]).shows(0, "11 equal already");
    copy(&one, &other, &["--replace", "--no-ttl"]).shows(0, "11 equal already");
    copy(&one, &other, &["--replace"]).shows(0, "2 moved, 9 equal already");
    assert_eq!((there.int("PEXPIRETIME exact"), there.int("PEXPIRETIME fixed")), (99_999_999_999_998, -1));
    tool(&["copy", &url(&one), &url(&one)]).fails(3, "the same server");
}

#[test]
fn filters_of_redisbloom_come_and_go_back() {
    let (theirs, server, back) = (peer_server(), Server::start(), peer_server());
    let mut source = theirs.client();
    classic(&mut source, "");
    let folder = tempfile::tempdir().expect("a folder");
    let sample = folder.path().join("sample");
    let items: String = (8000..16_000).map(|n| format!("item:{n}\n")).collect();
    std::fs::write(&sample, items).expect("the sample is written");
    let sample = sample.to_str().expect("a path");
    copy(&theirs, &server, &["--sample", sample]).expect(0);
    let mut here = server.client();
    assert_eq!(here.int("DBSIZE"), 4);
    ours(&mut here);
    // Keys that RedisBloom cannot load are reported before any key is moved.
    let rejected = copy(&server, &back, &[]).fails(3, "7 keys cannot be moved, so none was");
    assert!(rejected.out.contains("knows only filters of LAYOUT classic"), "{}", rejected.out);
    assert!(rejected.out.contains("no counters (LC.*)"), "{}", rejected.out);
    let mut there = back.client();
    assert_eq!(there.int("DBSIZE"), 0);
    copy(&server, &back, &["--skip-rejected", "--sample", sample]).expect(1);
    assert_eq!(there.int("DBSIZE"), 4);
    for key in CLASSIC {
        assert!(there.chunks("BF", key) == source.chunks("BF", key), "{key}");
        assert_eq!(there.int(&format!("PEXPIRETIME {key}")), source.int(&format!("PEXPIRETIME {key}")), "{key}");
    }
    let one = tool(&["--json", "copy", &url(&server), &url(&back), "--watch", "0", "--pattern", "gr*"]).expect(0);
    assert_eq!(one.json()["moves"][0]["outcome"], "equal");
}

/// On this server RedisBloom owns BF.*, so this module's filters use RF.*.
#[test]
fn values_come_and_go_beside_redisbloom() {
    let (all, beside) = (Server::start(), Setup::default().module_before(&peer()).args("commands beside").start());
    let mut client = all.client();
    classic(&mut client, " LAYOUT classic");
    ours(&mut client);
    let digests = |client: &mut Client| -> Vec<String> { OURS.iter().map(|(_, key)| client.digest(key)).collect() };
    let before = digests(&mut client);
    let folder = tempfile::tempdir().expect("a folder");
    let sample = folder.path().join("sample").to_str().expect("a path").to_owned();
    std::fs::write(&sample, "item:1\nitem:2\nabsent\n").expect("a sample");
    copy(&all, &beside, &["--sample", &sample]).expect(0);
    let mut there = beside.client();
    assert_eq!(digests(&mut there), before);
    for key in CLASSIC {
        assert_eq!(there.int(&format!("BF.CARD {key}")), client.int(&format!("BF.CARD {key}")), "{key}");
    }
    there.expect("RF.EXISTS lines item:1", "1");
    there.expect("TYPE grown", "+MBbloom--");
    // Moves the values back, also by way of a file.
    client.expect("FLUSHALL", "+OK");
    let file = folder.path().join("lines").to_str().expect("a path").to_owned();
    tool(&["dump", "lines", &file, "--url", &url(&beside)]).expect(0);
    tool(&["load", &file, "again", "--url", &url(&beside)]).expect(0);
    tool_with(&["import", "-", "again", "--url", &url(&beside)], b"more\n", &[]).expect(0);
    there.expect("RF.EXISTS again more", "1");
    there.expect("DEL again", "1");
    copy(&beside, &all, &[]).expect(0);
    assert_eq!(digests(&mut all.client()), before);
    all.client().expect("BF.MEXISTS grown item:1 item:8999", "[1, 1]");
}

/// RF.* and BF.* change the same filters, so `copy` must notice writes by either name.
#[test]
fn writers_by_either_name_are_noticed() {
    let (server, other) = (Server::start(), Server::start());
    server.client().expect("RF.RESERVE f 0.01 100000", "+OK");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut client = server.client();
        let stop = &stop;
        scope.spawn(move || {
            for at in 0.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                client.cmd(&format!("RF.ADD f {at}"));
                client.cmd("RF.EXISTS f 1");
            }
        });
        let rejected = tool(&["copy", &url(&server), &url(&other), "--watch", "5"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let rejected = rejected.expect(3);
        assert!(rejected.err.contains("the source is written to: RF.ADD "), "{}", rejected.err);
    });
    // Readers are none.
    std::thread::scope(|scope| {
        let mut client = server.client();
        let reader = scope.spawn(move || (0..2000).for_each(|at| drop(client.cmd(&format!("RF.EXISTS f {at}")))));
        tool(&["copy", &url(&server), &url(&other), "--watch", "0.1"]).expect(0);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn keys_that_are_partially_loaded_and_servers_without_a_module_are_rejected() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    client.expect("BF.RESERVE whole 0.01 10000", "+OK");
    let dump = client.chunks("BF", "whole");
    client.call(&[&b"BF.LOADCHUNK"[..], b"half", dump[0].0.as_bytes(), &dump[0].1]);
    copy(&server, &other, &[]).shows(3, "still loading: 0 of");
    let plain = rollcall_testkit::Setup::default().without_module().start();
    tool(&["copy", &url(&server), &url(&plain), "--pattern", "whole"]).shows(3, "no module for filters");
}

#[test]
fn an_interrupt_ends_a_copy_between_two_steps() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    client.expect("LC.ADD k a", "1");
    let copying = stopped::start(&["copy", &url(&server), &url(&other), "--watch", "3600"]);
    // The tool listens for signals before it first scans the source.
    wait_until("its looks", || {
        let looks = client.text("INFO commandstats");
        let line = looks.lines().find(|line| line.starts_with("cmdstat_scan:"))?;
        line.contains("calls=").then_some(())
    });
    stopped::signal(&copying, "-INT");
    stopped::end(copying).fails(130, "run the same again");
    assert_eq!(other.client().int("DBSIZE"), 0);
    // The tool itself has written nothing to the source.
    copy(&server, &other, &[]).expect(0);
}
