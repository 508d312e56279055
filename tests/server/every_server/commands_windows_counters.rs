//! Tests windowed counters: a member counts from the time of its last add.

use redis::Value;

use rollcall_testkit::client::{Client, show, text};
use rollcall_testkit::server::{Server, session};

#[track_caller]
fn advance(client: &mut Client, key: &str, slice: u64) {
    client.expect(&format!("LC.ADVANCE {key} {slice}"), "+OK");
}

#[track_caller]
fn members(client: &mut Client, line: &str) -> String {
    let mut members: Vec<_> = client.list(line).iter().map(text).collect();
    members.sort();
    members.join(" ")
}

/// The rows of LC.HISTORY, newest first.
#[track_caller]
pub fn history(client: &mut Client, key: &str) -> Vec<(i64, i64)> {
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
fn only_what_is_live_is_a_member() {
    let server = Server::start();
    let mut client = server.client();
    for key in ["k", "l"] {
        client.expect(&format!("LC.RESERVE {key} WINDOW 40 MANUAL SLICES 4"), "+OK");
    }
    client.expect("LC.ADD k a b c", "3");
    client.expect("LC.ADD l b c d", "3");
    advance(&mut client, "k", 3);
    client.expect("LC.ADD k c e", "1");
    for (line, reply) in [
        ("LC.COUNT k l", "5"),
        ("LC.DIFF 2 k l", "a e"),
        ("LC.DIFF 2 l k", "d"),
        ("LC.MEXISTS k a b c d e", "[1, 1, 1, 0, 1]"),
    ] {
        if line.starts_with("LC.DIFF ") {
            assert_eq!(members(&mut client, line), reply, "{line}");
        } else {
            client.expect(line, reply);
        }
    }
    client.expect("LC.DIFFCARD 2 k l", "[2, \"0\"]");
    client.expect("LC.INTERCARD 2 k l", "[2, \"0\"]");
    client.expect("LC.UNIONCARD 2 k l", "[5, \"0\"]");
    // Each counter has its own present slice: in `k`, members last added in slice 0 have expired; in `l` they have
    // not.
    advance(&mut client, "k", 5);
    client.expect("LC.MEXISTS k a b c d e", "[0, 0, 1, 0, 1]");
    client.expect("LC.EXISTS k a", "0");
    client.expect("LC.COUNT k", "2");
    client.expect("LC.COUNT k l", "4");
    client.expect("LC.COUNT l k missing", "4");
    assert_eq!(members(&mut client, "LC.DIFF 2 k l"), "e");
    assert_eq!(members(&mut client, "LC.DIFF 2 l k"), "b d");
    client.expect("LC.DIFFCARD 2 l k", "[2, \"0\"]");
    client.expect("LC.INTERCARD 2 k l", "[1, \"0\"]");
    // The present is the last second of the newest slice: slice 0 for `l`, and slice 5 for `k`.
    client.expect("LC.COUNTSINCE k 10", "0");
    client.expect("LC.UNIONCARD 2 k l SINCE 10", "[3, \"0\"]");
    client.expect("LC.UNIONCARD 2 k l SINCE 20", "[4, \"0\"]");
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
