//! Tests that data of valkey-bloom is rejected. docs/migrating.md has the errors.

use rollcall_fuzz::payload::{forge, module_value, rdb_file};
use rollcall_testkit::{Server, Setup, pack, show, words};

/// A value of another module's type that consists of one unsigned number.
fn value(type_name: &str) -> Vec<u8> {
    [&module_value(type_name, 1)[..], &[2, 1, 0]].concat()
}

#[test]
fn an_append_only_file_with_bf_load_stops_the_start() {
    let lines = ["SELECT 0", "SET plain 1", "BF.LOAD lost data", "SET after 1"];
    let file: Vec<u8> = lines.into_iter().flat_map(|line| pack(&words(line))).collect();
    // The server finds an AOF of the form before 7.0 by its file name.
    let setup = Setup::default().line("appendonly yes").file("appendonly.aof", &file);
    let log = match setup.try_start() {
        Ok(server) => panic!("the server started with {}", show(&server.client().cmd("KEYS *"))),
        Err(log) => log,
    };
    // The text around these words differs on Valkey.
    assert!(log.to_lowercase().contains("unknown command 'bf.load'"), "{log}");
    assert!(!log.contains("crashed") && log.contains("exit status: 1"), "{log}");
}

#[test]
fn an_rdb_file_with_its_filters_is_rejected_by_the_server() {
    let log = match Setup::default().line("appendonly no").file("dump.rdb", &rdb_file(&value("bloomfltr"))).try_start()
    {
        Ok(_) => panic!("the server started"),
        Err(log) => log,
    };
    assert!(log.contains("no matching module type 'bloomfltr'"), "{log}");
    assert!(!log.contains("crashed"), "{log}");
}

#[test]
fn a_payload_of_its_filters_is_rejected_by_the_server() {
    let (mut server, mut client) = Server::start().with_client();
    client.expect("BF.ADD ours a", "1");
    let payload = forge(&value("bloomfltr"), &[10, 0]);
    let words: [&[u8]; 4] = [b"RESTORE", b"k", b"0", &payload];
    assert_eq!(show(&client.call(&words)), "-ERR Bad data format");
    client.expect("DBSIZE", "1");
    server.assert_up();
}
