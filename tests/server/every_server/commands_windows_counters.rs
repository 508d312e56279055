//! Tests windowed counters: a member counts from the time of its last add.

use redis::Value;

use rollcall_testkit::client::{Client, show};
use rollcall_testkit::server::{Server, session};

#[track_caller]
fn advance(client: &mut Client, key: &str, slice: u64) {
    client.expect(&format!("LC.ADVANCE {key} {slice}"), "+OK");
}

/// The rows of LC.HISTORY, newest first.
#[track_caller]
fn history(client: &mut Client, key: &str) -> Vec<(i64, i64)> {
    let row = |row: &Value| match row {
        Value::Array(fields) => match fields[..] {
            [Value::Int(start), Value::Int(count), _] => (start, count),
            _ => panic!("a row of LC.HISTORY is {}", show(row)),
        },
        other => panic!("a row of LC.HISTORY is {}", show(other)),
    };
    client.list(&format!("LC.HISTORY {key}")).iter().map(row).collect()
}

#[test]
fn replies_have_their_types() {
    session(
        &Server::start(),
        &[
            ("LC.INSERT k WINDOW 40 MANUAL SLICES 1 ITEMS a", "1", "1"),
            ("LC.ADVANCE k 3", "+OK", "+OK"),
            ("LC.ADD k b", "1", "1"),
            ("LC.HISTORY k", "[[120, 1, \"0\"], [80, 1, \"0\"]]", "[[120, 1, ,0], [80, 1, ,0]]"),
            ("LC.COUNTSINCE k 40", "1", "1"),
            ("LC.MEMBERS k", "[\"b\"]", "[\"b\"]"),
            ("LC.MEMBERS k SINCE 40", "[\"b\"]", "[\"b\"]"),
            ("LC.EXISTS k a", "0", "#f"),
            ("LC.MEXISTS k a b", "[0, 1]", "[#f, #t]"),
            ("LC.UNIONCARD 1 k", "[1, \"0\"]", "[1, ,0]"),
        ],
    );
}

#[test]
fn clear_keeps_the_window() {
    let server = Server::start();
    let mut client = server.client();
    for exact in ["EXACT 100", "EXACT 0"] {
        client.cmd("DEL k");
        client.expect(&format!("LC.RESERVE k {exact} WINDOW 40 MANUAL SLICES 4 EX 1000"), "+OK");
        advance(&mut client, "k", 6);
        client.expect("LC.ADD k a b", "2");
        client.expect("LC.CLEAR k", "+OK");
        client.expect("LC.COUNT k", "0");
        client.expect("LC.INFO k SLICE", "[6]");
        client.expect("LC.INFO k WINDOW", "[40]");
        assert!(client.int("TTL k") > 0);
        client.expect("LC.ADD k b", "1");
        assert_eq!(history(&mut client, "k")[0], (60, 1));
    }
}
