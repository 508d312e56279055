//! Tests two servers on different processors. Their replies and stored data must be equal byte for byte, and each
//! must load the other's data.
//!
//! `ROLLCALL_OTHER_SERVER` and `ROLLCALL_OTHER_MODULE` name the server and the module for the other processor.
//! Without them these tests do nothing.

use std::collections::BTreeMap;
use std::fs;

use redis::Value;

use crate::every_server::persistence_golden;
use rollcall_testkit::{
    Client, Pair, Server, Setup, add_many, assert_same, error_text, lines, optional_file, populate_without_ttl, rows,
    snapshot, text,
};

/// The setups of a server for each processor; `None` if there is only one.
fn setups() -> Option<[Setup; 2]> {
    let (server, module) = (optional_file("ROLLCALL_OTHER_SERVER")?, optional_file("ROLLCALL_OTHER_MODULE")?);
    Some([Setup::default(), Setup::default().binary(&server).module(&module)].map(|setup| setup.line("databases 100")))
}

/// Creates values of every kind, of up to 100 KiB. None depends on the time of day.
fn populate(client: &mut Client) {
    populate_without_ttl(client);
    persistence_golden::populate(client);
    for (create, add) in rows(
        "BF.RESERVE lines 0.001 200000 => BF.MADD lines
         BF.RESERVE classic 0.001 200000 LAYOUT classic => BF.MADD classic
         BF.RESERVE rare 1e-15 20000 => BF.MADD rare; BF.RESERVE grown 0.01 100 => BF.MADD grown
         LC.RESERVE fine ERROR 0.0025 => LC.ADD fine; LC.RESERVE plain => LC.ADD plain",
    ) {
        client.expect(create, "+OK");
        add_many(client, add, "item:", 0..20_000);
    }
    for (create, advance, add) in [
        ("BF.INSERT filter CAPACITY 3000 WINDOW 60 MANUAL SLICES 6 ITEMS a", "BF.ADVANCE filter", "BF.MADD filter"),
        ("LC.INSERT counter WINDOW 60 MANUAL SLICES 6 ITEMS a", "LC.ADVANCE counter", "LC.ADD counter"),
    ] {
        client.cmd(create);
        for slice in 1..=9 {
            client.cmd(&format!("{advance} {slice}"));
            add_many(client, add, "item:", slice * 500..slice * 500 + 1500);
        }
    }
}

/// Replies with computed numbers, and replies with many yes and no.
fn replies(client: &mut Client) -> Vec<(String, Value)> {
    let probes: Vec<String> = (19_000..23_000).map(|item| format!("item:{item}")).collect();
    let of_filters = ["lines", "classic", "rare", "grown", "filter", "bf:wide", "bf:tight", "bf:chain"];
    let of_counters = lines(
        "COUNT fine plain counter lc:big lc:many lc:tiny; UNIONCARD 3 fine lc:many lc:big; INTERCARD 2 fine lc:many
         INTERCARD 3 plain lc:fine lc:over; DIFFCARD 2 lc:many lc:big; UNIONCARD 2 counter k13 SINCE 20 40
         HISTORY counter; MEMBERS lc:exact; INFO fine; INFO plain; INFO counter",
    );
    let mut replies = Vec::new();
    for key in of_filters {
        let command = [&["BF.MEXISTS", key][..], &probes.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        replies.push((format!("BF.MEXISTS {key}"), client.call(&command)));
        replies.push((format!("BF.INFO {key}"), client.cmd(&format!("BF.INFO {key}"))));
    }
    for command in of_counters {
        let reply = client.cmd(&format!("LC.{command}"));
        assert!(error_text(&reply).is_none(), "LC.{command}: {reply:?}");
        replies.push((command.to_owned(), reply));
    }
    replies
}

fn payloads(client: &mut Client) -> BTreeMap<String, Value> {
    let keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.into_iter().map(|key| (key.clone(), client.call(&["DUMP", &key]))).collect()
}

/// The RDB file of a server, from its first database to its checksum. The part before the first database has the
/// server's version, the time and the memory in use.
fn rdb_file(server: &Server) -> Vec<u8> {
    let mut client = server.client();
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.sort();
    // The order of keys within a database is random, so each key gets its own database.
    for (number, key) in keys.iter().enumerate().skip(1) {
        client.expect(&format!("MOVE {key} {number}"), "1");
    }
    server.save();
    let bytes = fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
    // The header of database 0, with one key and no time to live. Nothing before it looks like this.
    let first = b"\xfe\x00\xfb\x01\x00";
    let start = bytes.windows(first.len()).position(|part| part == first).expect("the first database");
    bytes[start..bytes.len() - 8].to_vec()
}

#[test]
fn the_same_work_is_stored_as_the_same_bytes() {
    let Some(setups) = setups() else { return };
    let [one, other] = setups.map(Setup::start);
    let [mut first, mut second] = [one.client(), other.client()];
    populate(&mut first);
    populate(&mut second);
    assert_same(&snapshot(&mut second), &snapshot(&mut first));
    for ((command, reply), (_, expected)) in replies(&mut second).iter().zip(&replies(&mut first)) {
        assert!(reply == expected, "{command}");
    }
    let (ours, theirs) = (payloads(&mut first), payloads(&mut second));
    let differ: Vec<_> = ours.iter().filter(|(key, payload)| theirs[*key] != **payload).map(|(key, _)| key).collect();
    assert!(differ.is_empty(), "DUMP differs: {differ:?}");
    let (ours, theirs) = (rdb_file(&one), rdb_file(&other));
    let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    assert!(ours == theirs, "RDB files of {} and {} bytes differ at {at:?}", ours.len(), theirs.len());
    println!("equal: {} bytes of RDB file", ours.len());
}

#[test]
fn a_replica_on_the_other_processor_has_the_same_values() {
    let Some(setups) = setups() else { return };
    for (primary, replica) in [(0, 1), (1, 0)] {
        let mut pair = Pair::of(setups[primary].clone(), setups[replica].clone());
        let mut client = pair.primary.client();
        populate(&mut client);
        client.expect("BF.INSERT timed WINDOW 3600 ITEMS a b c", "[1, 1, 1]");
        client.expect("LC.INSERT timed:counter WINDOW 3600 ITEMS a b c", "3");
        pair.assert_equal("commands");
        pair.assert_no_errors();
        let synchronised = setups[replica].clone().start();
        synchronised.replicate(&pair.primary);
        assert_same(&snapshot(&mut synchronised.client()), &snapshot(&mut client));
    }
}
