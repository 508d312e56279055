//! Tests LC.MERGEDUMP and BF.MERGEDUMP: what they merge, what they reject, and what replicas get.

use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;
use rollcall_core::counting::Counter;
use rollcall_core::persist;
use rollcall_core::persist::file::{Entry, Kind, Writer};

use crate::effects::appending;
use crate::events::{events_so_far, subscriber};
use crate::kinds::{KINDS, make};
use rollcall_fuzz::payload::{decode, encode, forge, from_hex, split};
use rollcall_testkit::{Client, Pair, Server, Setup, Version, add_many, error_text, show};

/// Runs `MERGEDUMP` for counters or filters.
fn merge_dump(client: &mut Client, family: &str, destination: &str, payloads: &[&[u8]]) -> Value {
    let command = format!("{family}.MERGEDUMP");
    client.call(&[&[command.as_bytes(), destination.as_bytes()], payloads].concat())
}

/// The kinds of complete values of this module: family, name, and the commands that make one.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    KINDS
        .iter()
        .filter(|(name, _)| *name != "list" && !name.starts_with("partially"))
        .map(|&(name, lines)| (if lines[0].contains("LC") { "LC" } else { "BF" }, name, lines))
}

#[test]
fn mergedump_equals_a_merge_of_keys() {
    let (_server, mut client) = Server::start().with_client();
    for (family, name, lines) in kinds() {
        client.cmd("FLUSHALL");
        for key in ["source", "by-name", "by-value"] {
            make(&mut client, key, lines);
        }
        let add = if family == "BF" { "BF.MADD" } else { "LC.ADD" };
        add_many(&mut client, &format!("{add} source"), "more:", 0..3);
        let payload = client.dump("source");
        for (by_name, by_value) in [("by-name", "by-value"), ("new-by-name", "new-by-value")] {
            let merged = client.cmd(&format!("{family}.MERGE {by_name} source"));
            assert_eq!(merge_dump(&mut client, family, by_value, &[&payload, &payload]), merged, "{name}");
            assert_eq!(client.digest(by_value), client.digest(by_name), "{name} into {by_value}");
        }
        assert_eq!(client.digest("new-by-value"), client.digest("source"), "{name}");
    }
}

/// The folder of golden files. Those of payloads begin with `dumps-`; there is one for each server.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/golden")
}

/// Writes what `DUMP` replies on this server, if it is asked for: a line for each key has the digest and the payload.
/// Servers compress the bits of the sparse filter.
#[test]
fn payloads_are_written_when_asked_for() {
    if std::env::var_os("ROLLCALL_WRITE_GOLDEN").is_none_or(|value| value != "1") {
        return;
    }
    let (server, mut client) = Server::start().with_client();
    let mut lines = String::new();
    let sparse = [("BF", "sparse filter", &["BF.INSERT ? CAPACITY 1000 LAYOUT classic ITEMS a b c"][..])];
    for (family, name, commands) in kinds().chain(sparse) {
        make(&mut client, "key", commands);
        let hex: String = client.dump("key").iter().map(|byte| format!("{byte:02x}")).collect();
        lines += &format!("{family} {} {hex} {name}\n", client.digest("key"));
        client.cmd("DEL key");
    }
    let Version { is_valkey, major, minor } = server.version();
    let name = if is_valkey { "valkey" } else { "redis" };
    fs::write(golden().join(format!("dumps-{name}-{major}.{minor}.txt")), lines).expect("a file");
}

#[test]
fn payloads_of_every_server_are_merged() {
    let (_server, mut client) = Server::start().with_client();
    let mut files = 0;
    for file in fs::read_dir(golden()).expect("the golden files") {
        let path = file.expect("a file").path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("dumps-")) {
            continue;
        }
        let lines = fs::read_to_string(&path).expect("a golden file");
        for line in lines.lines() {
            let mut words = line.splitn(4, ' ');
            let [family, digest, hex, name] = std::array::from_fn(|_| words.next().expect("four words"));
            let reply = merge_dump(&mut client, family, "key", &[&from_hex(hex)]);
            assert_eq!(show(&reply), "+OK", "{name} of {}", path.display());
            assert_eq!(client.digest("key"), digest, "{name} of {}", path.display());
            client.cmd("DEL key");
        }
        files += 1;
    }
    assert_eq!(files, 4);
}

#[test]
fn a_rejected_mergedump_names_the_cause_and_changes_nothing() {
    let (_server, mut client) = Server::start().with_client();
    for line in
        ["LC.ADD counter a b", "BF.ADD filter a", "RPUSH list a", "SET text a", "LC.INSERT seeded SEED 9 ITEMS x"]
    {
        client.cmd(line);
    }
    make(&mut client, "loading", KINDS.iter().find(|(name, _)| *name == "partially loaded counter").expect("a kind").1);
    let whole = client.dump("counter");
    let mut damaged = whole.clone();
    damaged[12] ^= 1;
    // A changed bit and a missing end, each with a correct checksum.
    let (value, version) = split(&whole);
    let (changed, endless) = (forge(&damaged[..value.len()], version), forge(&value[..value.len() - 1], version));
    let counter: Counter = ["c"].into_iter().collect();
    let file = persist::to_bytes(&counter).expect("a file");
    let cut = &file[..file.len() - 1];
    let mut several = Writer::new(Vec::new()).expect("a file");
    for _ in 0..2 {
        several.store(&Entry::new(Kind::Counter), &counter).expect("a value");
    }
    let several = several.finish().expect("a file");
    let (type_name, encoding, fields) = decode(&whole).expect("a payload");
    let newer = encode(&type_name, encoding + 1, &fields);
    let [filter, list, string, loading, seeded] =
        ["filter", "list", "text", "loading", "seeded"].map(|key| client.dump(key));
    let before: Vec<String> = ["counter", "filter"].map(|key| client.digest(key)).into();
    for (payload, expected) in [
        (&damaged[..], "ERR payload 2: CRC-64: expected 0x"),
        (&changed, "ERR payload 2: header checksum: expected "),
        (&endless, "ERR payload 2: end: expected 1 bytes, got 0 left"),
        (&whole[1..], "ERR payload 2: expected what DUMP replies, or a file with one value"),
        (b"", "ERR payload 2: expected what DUMP replies, or a file with one value"),
        (&filter, "ERR payload 2: expected a counter, got a filter"),
        (&list, "ERR payload 2: expected a counter, got a value of another type"),
        (&string, "ERR payload 2: expected a counter, got a value of another type"),
        (&loading, "ERR payload 2: value: expected a complete one, got one that is still loading: 0 of "),
        (cut, "ERR payload 2: ends at byte "),
        (&several, "ERR payload 2: expected one value, got more"),
        (&newer, "ERR payload 2: encoding version: expected 1, got 2"),
        (&seeded, "ERR payload 2: counters differ in seed: 0 and 9"),
    ] {
        let reply = merge_dump(&mut client, "LC", "counter", &[&whole, payload]);
        let error = error_text(&reply).unwrap_or_else(|| panic!("{expected}: {}", show(&reply)));
        assert!(error.starts_with(expected), "{error}");
        let reply = merge_dump(&mut client, "LC", "missing", &[&whole, payload]);
        assert!(error_text(&reply).is_some_and(|error| error.starts_with(expected)), "{}", show(&reply));
    }
    for (family, key, expected) in [
        ("LC", "text", "WRONGTYPE "),
        ("LC", "filter", "WRONGTYPE "),
        ("LC", "loading", "ERR counter is still loading: 0 of "),
        ("BF", "filter", "ERR payload 1: expected a filter, got a counter"),
    ] {
        let reply = merge_dump(&mut client, family, key, &[&whole]);
        assert!(error_text(&reply).is_some_and(|error| error.starts_with(expected)), "{}", show(&reply));
    }
    client.cmd("BF.RESERVE large 0.01 1000000");
    let large = client.dump("large");
    let reply = merge_dump(&mut client, "BF", "filter", &[&filter, &large]);
    let expected = "ERR payload 2: filters differ in capacity: 100 and 1000000";
    assert_eq!(error_text(&reply).as_deref(), Some(expected), "{}", show(&reply));
    client.cmd("CONFIG SET rollcall.max-key-bytes 1mb");
    let reply = merge_dump(&mut client, "BF", "missing", &[&filter, &large]);
    let expected = "ERR payload 2: the filter needs ";
    assert!(error_text(&reply).is_some_and(|error| error.starts_with(expected)), "{}", show(&reply));
    client.expect("LC.MERGEDUMP counter", "-ERR wrong number of arguments*");
    client.expect("EXISTS missing", "0");
    assert_eq!(["counter", "filter"].map(|key| client.digest(key)).to_vec(), before);
    assert_eq!(show(&merge_dump(&mut client, "LC", "counter", &[&whole, &file])), "+OK");
    client.expect("LC.COUNT counter", "3");
}

#[test]
fn mergedump_creates_keys_like_a_merge() {
    let (_server, mut client) = Server::with_args("auto-create no").with_client();
    for line in ["LC.INSERT forgets WINDOW 40 VOLATILE ITEMS a", "LC.INSERT plain ERROR 0.02 EX 100 ITEMS a"] {
        client.cmd(line);
    }
    let [forgets, plain] = ["forgets", "plain"].map(|key| client.dump(key));
    assert_eq!(show(&merge_dump(&mut client, "LC", "to-forget", &[&forgets])), "+OK");
    assert!((1..=100).contains(&client.int("TTL to-forget")));
    assert_eq!(show(&merge_dump(&mut client, "LC", "to-keep", &[&plain])), "+OK");
    client.expect("TTL to-keep", "-1");
    client.expect("LC.INFO to-keep ERROR", "[\"0.02\"]");
}

#[test]
fn mergedump_reaches_replicas_files_and_events_like_a_merge() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    client.cmd("CONFIG SET notify-keyspace-events KEAd");
    add_many(&mut client, "LC.ADD counter", "member:", 0..700);
    add_many(&mut client, "BF.MADD filter", "member:", 0..700);
    client.cmd("BF.INSERT classic LAYOUT classic ITEMS a");
    let mut events = subscriber(&pair.primary);
    for (family, key) in [("LC", "counter"), ("BF", "filter"), ("BF", "classic")] {
        let payload = client.dump(key);
        events_so_far(&mut client, &mut events);
        for (round, expected) in [(0, 1), (1, 0)] {
            let marks = pair.marks();
            merge_dump(&mut client, family, &format!("{key}:copy"), &[&payload]);
            assert_eq!(pair.marks() == marks, expected == 0, "{key}, round {round}");
            let merged =
                events_so_far(&mut client, &mut events).iter().filter(|event| event.contains(".merge")).count();
            assert_eq!(merged, expected, "{key}, round {round}");
        }
    }
    pair.assert_equal("MERGEDUMP");
    pair.assert_no_errors();

    let mut server = appending(Setup::default());
    let payload = client.dump("counter");
    merge_dump(&mut server.client(), "LC", "counter", &[&payload]);
    let digest = server.client().digest("counter");
    assert_eq!(digest, client.digest("counter"));
    server.kill();
    server.start_again();
    assert_eq!(server.client().digest("counter"), digest);
}

/// RESTORE replaces any key by anything, so it is among the dangerous commands. MERGEDUMP adds to a value of its type.
#[test]
fn mergedump_is_no_dangerous_command() {
    let (server, mut client) = Server::start().with_client();
    client.cmd("LC.ADD counter a");
    let payload = client.dump("counter");
    let mut client = server.client_as("writer", "~mine:* +@all -@dangerous");
    assert_eq!(show(&merge_dump(&mut client, "LC", "mine:counter", &[&payload])), "+OK");
    let reply = merge_dump(&mut client, "LC", "counter", &[&payload]);
    assert!(error_text(&reply).is_some_and(|error| error.starts_with("NOPERM")), "{}", show(&reply));
    let reply = client.restore("mine:other", &payload);
    assert!(error_text(&reply).is_some_and(|error| error.starts_with("NOPERM")), "{}", show(&reply));
}
