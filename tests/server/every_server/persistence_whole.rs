//! Tests that every value that a command can create is saved, dumped and loaded again. Loading takes only the memory
//! pages that the value uses.

use redis::Value;

use crate::every_server::replication_redisbloom::{chunks, load, peer, peer_server};
use rollcall_testkit::{Client, Server, Setup, error_text, show};

/// Commands that create keys with parameters at and beyond the ends of their ranges.
fn creations() -> Vec<String> {
    let rates = ["1.5e-323", "3e-310", "1e-323", "5e-324", "1e-300", "0.001", "0.25", "0.999999", "0.9999999999999999"];
    let rest = ["1", "3 EXPANSION 1", "3 EXPANSION 32768", "1000 NONSCALING"];
    let filters = rates.iter().flat_map(|rate| rest.map(|rest| format!("{rate} {rest}")));
    let filters =
        filters.flat_map(|shape| ["lines", "classic"].map(|layout| format!("BF.RESERVE ? {shape} LAYOUT {layout}")));
    let counters = ["ERROR 0.25 EXACT 0", "ERROR 0.25", "ERROR 0.0025 EXACT 65536", "SEED 18446744073709551615"];
    filters.chain(counters.map(|shape| format!("LC.RESERVE ? {shape}"))).collect()
}

fn digests(client: &mut Client, keys: usize) -> Vec<String> {
    (0..keys).map(|key| client.digest(&format!("k{key}"))).collect()
}

/// A regression test: rounding while halving a very low error rate created a key that kept the server from starting
/// again.
#[test]
fn every_accepted_creation_is_loaded_again() {
    let (mut server, mut client) = Setup::default().line("appendonly no").start().with_client();
    let mut keys = 0;
    for creation in creations() {
        let key = format!("k{keys}");
        if error_text(&client.cmd(&creation.replace('?', &key))).is_some() {
            continue;
        }
        keys += 1;
        let add = if creation.starts_with("BF") { "BF.MADD" } else { "LC.ADD" };
        client.cmd(&format!("{add} {key} a b c d e"));
    }
    assert!(keys > 60, "{keys} keys");
    let before = digests(&mut client, keys);
    for key in 0..keys {
        let payload = client.dump(&format!("k{key}"));
        let key = format!("k{key}");
        let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), b"0", &payload, b"REPLACE"];
        assert_eq!(client.call(&words), Value::Okay, "{key}");
    }
    assert_eq!(digests(&mut client, keys), before, "RESTORE");
    client.expect("DEBUG RELOAD", "+OK");
    assert_eq!(digests(&mut client, keys), before, "DEBUG RELOAD");
    let replica = Server::start();
    replica.replicate(&server);
    assert_eq!(digests(&mut replica.client(), keys), before, "a replica");
    server.save();
    server.restart();
    assert_eq!(digests(&mut server.client(), keys), before, "a restart");
    // An AOF that holds commands and no RDB file.
    let mut client = server.client();
    client.expect("CONFIG SET aof-use-rdb-preamble no", "+OK");
    client.expect("CONFIG SET appendonly yes", "+OK");
    server.wait_for_aof();
    client.expect("DEBUG LOADAOF", "+OK");
    assert_eq!(digests(&mut client, keys), before, "an AOF");
}

/// With `EXPANSION 4294967296` RedisBloom creates a filter with a growth factor of 0. When the filter is full, it gets
/// a sub-filter without bits.
#[test]
fn a_file_of_redisbloom_with_growth_0_is_loaded() {
    let Some(peer) = peer() else { return };
    let (theirs, mut other) = peer_server(&peer).with_client();
    for key in ["new", "full"] {
        other.expect(&format!("BF.RESERVE {key} 0.01 2 EXPANSION 4294967296"), "+OK");
    }
    other.expect("BF.ADD new a", "1");
    other.cmd("BF.MADD full a b c d");
    assert!(show(&other.cmd("BF.DEBUG full")).contains("bytes:0 bits:1"));
    theirs.save();
    let file = std::fs::read(theirs.dir().join("dump.rdb")).expect("the RDB file");
    let (_ours, mut client) = Setup::default().file("dump.rdb", &file).line("appendonly no").start().with_client();
    for key in ["new", "full"] {
        let (dump, copy) = (chunks(&mut other, key), format!("copy:{key}"));
        load(&mut client, &copy, &dump);
        assert_eq!(client.digest(&copy), client.digest(key), "{key}");
        client.expect(&format!("BF.INFO {key} EXPANSION"), "[2]");
        client.expect(&format!("BF.MEXISTS {key} a z"), "[1, 0]");
    }
    client.expect("BF.CARD full", "2");
    client.expect("BF.MADD full c d e", "[1, 1, 1]");
}

/// The server's resident memory in bytes, minus freed blocks that the allocator keeps. jemalloc 5.3.1 keeps the
/// string from which a classic filter was loaded.
fn resident_bytes(client: &mut Client) -> u64 {
    client.expect("MEMORY PURGE", "+OK");
    let pid = client.info("process_id");
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("the server's memory");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * 4096
}

/// Copies, unions and loaded values of nearly empty filters take nearly no memory.
#[test]
fn pages_of_zeros_are_not_touched() {
    const MOST_BYTES: u64 = 8 << 20;
    let (_server, mut client) = Setup::default().line("appendonly no").line("activedefrag no").start().with_client();
    for layout in ["lines", "classic"] {
        client.expect(&format!("BF.RESERVE one 0.001 20000000 NONSCALING LAYOUT {layout}"), "+OK");
        client.expect(&format!("BF.RESERVE two 0.001 20000000 NONSCALING LAYOUT {layout}"), "+OK");
        client.expect("BF.ADD one a", "1");
        client.expect("BF.ADD two b", "1");
        let before = resident_bytes(&mut client);
        client.expect("COPY one copy", "1");
        client.expect("BF.MERGE two one", "+OK");
        client.expect("BF.MERGE made one two", "+OK");
        let grown = resident_bytes(&mut client).saturating_sub(before);
        assert!(grown < MOST_BYTES, "{grown} bytes in memory after COPY and BF.MERGE of {layout}");
        let digests = ["one", "two", "copy", "made"].map(|key| client.digest(key));
        client.expect("DEBUG RELOAD", "+OK");
        assert_eq!(["one", "two", "copy", "made"].map(|key| client.digest(key)), digests);
        let grown = resident_bytes(&mut client).saturating_sub(before);
        assert!(grown < MOST_BYTES, "{grown} bytes in memory after loading {layout}");
        client.expect("BF.MEXISTS made a b c", "[1, 1, 0]");
        client.expect("FLUSHALL", "+OK");
    }
}
