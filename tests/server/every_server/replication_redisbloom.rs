//! Tests that RedisBloom's data is loaded and can be moved back: by file, by payload, by chunks, and from a live
//! primary. Needs the RedisBloom module (`ROLLCALL_PEER`).

use std::path::PathBuf;

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, text};

/// The path of RedisBloom's module, if `ROLLCALL_PEER` names one.
pub fn peer() -> Option<PathBuf> {
    let path = std::env::var_os("ROLLCALL_PEER").map(PathBuf::from);
    if path.is_none() {
        println!("skipped: ROLLCALL_PEER does not name a RedisBloom module");
    }
    path
}

pub fn peer_server(path: &std::path::Path) -> Server {
    Setup::default().without_module().module_before(path).start()
}

/// Filters with different parameters: the key, and the arguments of BF.RESERVE.
pub const SHAPES: [(&str, &str); 8] = [
    ("one", "0.01 1"),
    ("small", "0.1 5 EXPANSION 1"),
    ("chain", "0.001 10 EXPANSION 4"),
    ("default", "0.01 100"),
    ("large", "0.00001 3000"),
    ("loose", "0.3 50"),
    ("fixed", "0.01 400 NONSCALING"),
    ("big", "0.001 20000000"),
];

pub fn items(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|item| format!("{prefix}:{item}")).collect()
}

pub fn with<'a>(words: &[&'a str], items: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(items.iter().map(String::as_str)).collect()
}

pub fn populate(client: &mut Client) {
    for (key, shape) in SHAPES {
        client.expect(&format!("BF.RESERVE {key} {shape}"), "+OK");
        client.call(&with(&["BF.MADD", key], &items("item", 300)));
    }
}

/// Replies about a filter that must be equal on two servers: totals, every sub-filter, and 3,000 look-ups.
pub fn said(client: &mut Client, key: &str) -> Vec<Value> {
    let (known, unknown) = (items("item", 1000), items("absent", 2000));
    vec![
        client.cmd(&format!("BF.DEBUG {key}")),
        client.cmd(&format!("BF.CARD {key}")),
        client.cmd(&format!("BF.INFO {key}")),
        client.call(&with(&["BF.MEXISTS", key], &known)),
        client.call(&with(&["BF.MEXISTS", key], &unknown)),
    ]
}

#[track_caller]
pub fn assert_alike(one: &mut Client, other: &mut Client) {
    for (key, _) in SHAPES {
        assert!(said(one, key) == said(other, key), "{key}: {:?}", one.cmd(&format!("BF.DEBUG {key}")));
    }
}

pub fn chunks(client: &mut Client, key: &str) -> Vec<(String, Vec<u8>)> {
    client.chunks("BF", key)
}

/// The header and the payload of a dump. RedisBloom cuts a payload after 16 MiB, this module after 1 MiB.
pub fn bytes(chunks: &[(String, Vec<u8>)]) -> (&[u8], Vec<u8>) {
    (&chunks[0].1, chunks[1..].iter().flat_map(|(_, piece)| piece).copied().collect())
}

pub fn load(client: &mut Client, key: &str, chunks: &[(String, Vec<u8>)]) {
    client.load_all("BF", key, chunks);
}

#[test]
fn an_rdb_file_of_redisbloom_is_loaded_and_kept() {
    let Some(peer) = peer() else { return };
    let theirs = peer_server(&peer);
    populate(&mut theirs.client());
    theirs.save();
    let file = std::fs::read(theirs.dir().join("dump.rdb")).expect("the RDB file");
    // RedisBloom's load-time arguments, as in its line of redis.conf.
    let setup = Setup::default().args("ERROR_RATE 0.02 INITIAL_SIZE 200 CF_MAX_EXPANSIONS 8");
    let mut ours = setup.file("dump.rdb", &file).line("appendonly no").start();
    assert_alike(&mut ours.client(), &mut theirs.client());
    assert!(ours.log().contains("CF_MAX_EXPANSIONS"), "{}", ours.log());
    ours.client().cmd("BF.ADD made a");
    assert_eq!(ours.client().list("BF.INFO made CAPACITY"), [Value::Int(200)]);
    ours.save();
    ours.restart();
    assert_alike(&mut ours.client(), &mut theirs.client());
}

#[test]
fn payloads_are_merged_into_keys() {
    let Some(peer) = peer() else { return };
    let (_theirs, mut other) = peer_server(&peer).with_client();
    populate(&mut other);
    let (_ours, mut one) = Server::start().with_client();
    for (key, _) in SHAPES {
        let payload = other.dump(key);
        // The second merge is into a key that exists.
        for _ in 0..2 {
            assert_eq!(one.call(&[b"BF.MERGEDUMP", key.as_bytes(), &payload]), Value::Okay, "{key}");
        }
    }
    assert_alike(&mut one, &mut other);
}

#[test]
fn a_filter_with_32_bit_hashes_is_rejected_on_every_way_in() {
    const WHY: &str = "options: expected 64-bit hashes, got a filter of RedisBloom 1.x with 32-bit hashes";
    const OPTIONS: std::ops::Range<usize> = 12..16;
    let Some(peer) = peer() else { return };
    let (theirs, mut other) = peer_server(&peer).with_client();
    other.expect("BF.RESERVE made 0.01 100", "+OK");
    let mut dump = chunks(&mut other, "made");
    // RedisBloom still reads filters of version 1.x, which lack the option for 64-bit hashes.
    dump[0].1[OPTIONS].copy_from_slice(&1u32.to_le_bytes());
    load(&mut other, "old", &dump);
    other.expect("BF.ADD old a", "1");
    assert!(text(&other.list("BF.DEBUG old")[1]).contains("hashwidth:32"));

    let (mut ours, mut one) = Server::with_args("bf-layout classic").with_client();
    let words: [&[u8]; 4] = [b"BF.LOADCHUNK", b"old", b"1", &dump[0].1];
    assert_eq!(rollcall_testkit::show(&one.call(&words)), "-ERR received bad data");
    let Value::BulkString(payload) = other.call(&["DUMP", "old"]) else { panic!("DUMP old") };
    let words: [&[u8]; 4] = [b"RESTORE", b"old", b"0", &payload];
    assert_eq!(rollcall_testkit::show(&one.call(&words)), "-ERR Bad data format");
    let words: [&[u8]; 3] = [b"BF.MERGEDUMP", b"old", &payload];
    let error = rollcall_testkit::show(&one.call(&words));
    assert!(error.starts_with(&format!("-ERR payload 1: {WHY}")), "{error}");
    one.expect("DBSIZE", "0");
    // The server cannot continue with half of a data set, so it ends.
    one.expect(&format!("REPLICAOF 127.0.0.1 {}", theirs.port()), "+OK");
    let log = ours.wait_ended();
    assert_eq!(log.matches(WHY).count(), 3, "{log}");
    assert!(!log.contains("crashed"), "{log}");
}
