//! Follows the manual steps of docs/migrating.md for moving data to RedisBloom.

use redis::Value;

use crate::{chunks, found, peer, peer_server};
use rollcall_testkit::client::{Client, add_many};
use rollcall_testkit::server::{Server, Setup};

/// A server with three filters in RedisBloom's layout, one of which expires; and the items in each filter.
fn filled() -> (Server, Vec<String>) {
    let server = Setup::default().args("bf-layout classic").start();
    let mut client = server.client();
    let items: Vec<String> = (0..6000).map(|n| format!("item:{n}")).collect();
    for (key, options) in [("a", "0.01 500"), ("b", "0.001 10000 NONSCALING"), ("c", "0.05 100 EXPANSION 4")] {
        client.expect(&format!("BF.RESERVE {key} {options}"), "+OK");
        add_many(&mut client, &format!("BF.MADD {key}"), "item:", 0..6000);
    }
    client.expect("PEXPIREAT b 99999999999999", "1");
    (server, items)
}

/// Step 1 of each procedure: the server rejects writes.
fn stop_writes(client: &mut Client) {
    client.expect("CONFIG SET min-replicas-to-write 100", "+OK");
    assert!(client.error("BF.ADD a x").starts_with("NOREPLICAS"));
    assert!(client.error("SET x y").starts_with("NOREPLICAS"));
}

/// Step 2: lists the keys to move, and checks that no key exists that cannot be moved.
fn keys(client: &mut Client) -> Vec<String> {
    for foreign in ["RCfilter-", "RCcounter"] {
        let reply = client.cmd(&format!("SCAN 0 COUNT 1000 TYPE {foreign}"));
        assert_eq!(rollcall_testkit::client::show(&reply), "[\"0\", []]");
    }
    let reply = client.cmd("SCAN 0 COUNT 1000 TYPE MBbloom--");
    let Value::Array(parts) = &reply else { panic!("SCAN gave {reply:?}") };
    let Value::Array(keys) = &parts[1] else { panic!("SCAN gave {reply:?}") };
    keys.iter().map(rollcall_testkit::client::text).collect()
}

#[track_caller]
fn assert_moved(here: &mut Client, there: &mut Client, items: &[String]) {
    for key in ["a", "b", "c"] {
        assert_eq!(there.cmd(&format!("BF.DEBUG {key}")), here.cmd(&format!("BF.DEBUG {key}")), "{key}");
        assert_eq!(there.int(&format!("BF.CARD {key}")), here.int(&format!("BF.CARD {key}")), "{key}");
        assert_eq!(there.int(&format!("PEXPIRETIME {key}")), here.int(&format!("PEXPIRETIME {key}")), "{key}");
        assert!(chunks(there, "BF", key) == chunks(here, "BF", key), "{key}");
        assert_eq!(found(there, key, items), items.len(), "{key}");
        there.expect(&format!("BF.ADD {key} item:1"), "0");
    }
}

#[test]
fn by_chunks() {
    let ((server, items), theirs) = (filled(), peer_server());
    let (mut here, mut there) = (server.client(), theirs.client());
    stop_writes(&mut here);
    for key in keys(&mut here) {
        for (iterator, chunk) in chunks(&mut here, "BF", &key) {
            let words: [&[u8]; 4] = [b"BF.LOADCHUNK", key.as_bytes(), iterator.as_bytes(), &chunk];
            assert_eq!(there.call(&words), Value::Okay, "{key} {iterator}");
        }
        match here.int(&format!("PEXPIRETIME {key}")) {
            -1 => {}
            at => there.expect(&format!("PEXPIREAT {key} {at}"), "1"),
        }
    }
    assert_moved(&mut here, &mut there, &items);
}

#[test]
fn by_dump_and_restore() {
    let ((server, items), theirs) = (filled(), peer_server());
    let (mut here, mut there) = (server.client(), theirs.client());
    stop_writes(&mut here);
    for key in keys(&mut here) {
        let Value::BulkString(payload) = here.call(&["DUMP", &key]) else { panic!("DUMP {key}") };
        let at = here.int(&format!("PEXPIRETIME {key}")).max(0).to_string();
        let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), at.as_bytes(), &payload, b"ABSTTL"];
        assert_eq!(there.call(&words), Value::Okay, "{key}");
    }
    assert_moved(&mut here, &mut there, &items);
}

#[test]
fn by_file() {
    let (server, items) = filled();
    let mut here = server.client();
    stop_writes(&mut here);
    assert_eq!(keys(&mut here).len(), 3);
    server.save();
    let file = std::fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
    let theirs = Setup::default().without_module().module_before(&peer()).file("dump.rdb", &file).start();
    assert_moved(&mut here, &mut theirs.client(), &items);
}
