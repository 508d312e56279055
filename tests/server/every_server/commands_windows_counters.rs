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

/// With the manual clock, the present is the last second of the newest slice: second 129 for slice 12 of 10 seconds.
#[test]
fn spans_begin_with_the_slice_that_has_their_first_second() {
    let server = Server::start();
    let mut client = server.client();
    for options in ["EXACT 100", "EXACT 0 ERROR 0.001"] {
        client.cmd("DEL k");
        client.expect(&format!("LC.RESERVE k 1000 {options} WINDOW 40 MANUAL SLICES 4"), "+OK");
        for slice in 8..=12 {
            advance(&mut client, "k", slice);
            client.expect(&format!("LC.ADD k in{slice}"), "1");
        }
        for (seconds, count) in
            [(1, 1), (2, 1), (9, 1), (10, 2), (11, 2), (19, 2), (20, 3), (29, 3), (30, 4), (39, 4), (40, 5)]
        {
            client.expect(&format!("LC.COUNTSINCE k {seconds}"), &count.to_string());
            let union = client.list(&format!("LC.UNIONCARD 3 k missing k SINCE {seconds}"));
            assert_eq!(show(&union[0]), count.to_string());
            if !options.contains("EXACT 0") {
                let expected: Vec<_> = (13 - count..=12).map(|slice| format!("in{slice}")).collect();
                let mut expected = expected;
                expected.sort();
                assert_eq!(members(&mut client, &format!("LC.MEMBERS k SINCE {seconds}")), expected.join(" "));
            }
        }
    }
    client.expect("LC.COUNTSINCE missing 1", "0");
    client.expect("LC.UNIONCARD 2 missing missing2 SINCE 1099511627776", "[0, \"0\"]");
    client.expect("LC.MEMBERS missing SINCE 5", "[]");
    client.error("LC.MEMBERS k SINCE 5");
}

#[test]
fn slices_are_whole_seconds_rounded_up_and_as_few_as_cover_the_window() {
    let server = Server::start();
    let mut client = server.client();
    for (seconds, asked, slices, length) in [
        (10, 4, 4, 3),
        (86_400, 24, 24, 3600),
        (100, 100, 100, 1),
        (7, 2, 2, 4),
        (86_400, 254, 254, 341),
        (65, 64, 33, 2),
        (255, 254, 128, 2),
        (13, 12, 7, 2),
    ] {
        client.cmd("DEL k");
        client.expect(&format!("LC.RESERVE k 100 WINDOW {seconds} MANUAL SLICES {asked}"), "+OK");
        client.expect("LC.INFO k SLICES", &format!("[{slices}]"));
        advance(&mut client, "k", 1000);
        client.expect("LC.ADD k a", "1");
        let rows = history(&mut client, "k");
        let starts: Vec<_> = rows.iter().map(|row| row.0).collect();
        let expected: Vec<_> = (0..=slices).map(|back| (1000 - back) * length).collect();
        assert_eq!(starts, expected);
        assert!(rows.iter().all(|row| row.1 == 1));
        advance(&mut client, "k", 1000 + slices as u64);
        client.expect("LC.COUNT k", "1");
        client.expect(&format!("LC.COUNTSINCE k {seconds}"), if seconds == slices * length { "1" } else { "0" });
        advance(&mut client, "k", 1001 + slices as u64);
        client.expect("LC.COUNT k", "0");
    }
    // A new counter has its rows too, though the oldest begin before the epoch.
    client.expect("LC.RESERVE new 100 WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.ADD new a", "1");
    let rows = history(&mut client, "new");
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0], (0, 1));
    assert!(rows.iter().all(|row| row.1 == 1), "{rows:?}");
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
fn a_counter_whose_members_have_all_expired_is_exact_again() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("LC.RESERVE k 1000 EXACT 3 WINDOW 40 MANUAL SLICES 4", "+OK");
    let mode = |client: &mut Client| text(&client.list("LC.INFO k MODE")[0]);
    client.expect("LC.ADD k a b c", "3");
    assert_eq!(mode(&mut client), "exact");
    // The limit is of those live.
    advance(&mut client, "k", 5);
    client.expect("LC.ADD k d e f", "3");
    assert_eq!(mode(&mut client), "exact");
    assert_eq!(members(&mut client, "LC.MEMBERS k"), "d e f");
    advance(&mut client, "k", 7);
    client.expect("LC.ADD k g", "1");
    assert_eq!(mode(&mut client), "estimate");
    client.expect("LC.COUNT k", "4");
    assert_eq!(history(&mut client, "k").iter().map(|row| row.1).collect::<Vec<_>>(), [1, 1, 4, 4, 4]);
    client.error("LC.MEMBERS k");
    client.error("LC.EXISTS k a");
    // Those from before the limit was passed keep their slices.
    advance(&mut client, "k", 10);
    client.expect("LC.COUNT k", "1");
    advance(&mut client, "k", 12);
    client.expect("LC.COUNT k", "0");
    assert_eq!(mode(&mut client), "exact");
    client.expect("LC.MEMBERS k", "[]");
    client.expect("LC.ADD k x y", "2");
    assert_eq!(members(&mut client, "LC.MEMBERS k"), "x y");
    // A counter that was asked to keep none stays an estimate.
    client.expect("LC.RESERVE none 1000 EXACT 0 WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.ADD none a", "1");
    advance(&mut client, "none", 9);
    client.expect("LC.COUNT none", "0");
}

#[test]
fn only_what_is_live_is_a_member() {
    let server = Server::start();
    let mut client = server.client();
    for key in ["k", "l"] {
        client.expect(&format!("LC.RESERVE {key} 100 WINDOW 40 MANUAL SLICES 4"), "+OK");
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
    // Each goes by its own present slice: k drops what it has not seen since slice 0, l does not.
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
    // In l the last second of slice 0 is the present one, in k that of slice 5: since slice 4.
    client.expect("LC.COUNTSINCE k 10", "0");
    client.expect("LC.UNIONCARD 2 k l SINCE 10", "[3, \"0\"]");
    client.expect("LC.UNIONCARD 2 k l SINCE 20", "[4, \"0\"]");
}

#[test]
fn in_a_merge_the_younger_slice_wins() {
    let server = Server::start();
    let mut client = server.client();
    for exact in ["EXACT 100", "EXACT 0 ERROR 0.001"] {
        for key in ["to", "from"] {
            client.cmd(&format!("DEL {key}"));
            client.expect(&format!("LC.RESERVE {key} 1000 {exact} WINDOW 40 MANUAL SLICES 4"), "+OK");
        }
        for (key, slice, items) in
            [("to", 2, "a b"), ("to", 5, "c"), ("from", 1, "dead"), ("from", 4, "b d"), ("from", 6, "a")]
        {
            advance(&mut client, key, slice);
            client.cmd(&format!("LC.ADD {key} {items}"));
        }
        client.expect("LC.MERGE to from missing", "+OK");
        client.expect("LC.INFO to SLICE", "[6]");
        // a in 6, c in 5, b and d in 4.
        assert_eq!(history(&mut client, "to"), [(60, 1), (50, 2), (40, 4), (30, 4), (20, 4)], "{exact}");
        // The source is as it was, and once more changes nothing.
        assert_eq!(history(&mut client, "from"), [(60, 1), (50, 1), (40, 3), (30, 3), (20, 3)], "{exact}");
        let before = client.digest("to");
        client.expect("LC.MERGE to from to", "+OK");
        assert_eq!(client.digest("to"), before);
        advance(&mut client, "to", 8);
        client.expect("LC.MERGE to from", "+OK");
        assert_eq!(history(&mut client, "to"), [(80, 0), (70, 0), (60, 1), (50, 2), (40, 4)], "{exact}");
        client.expect("LC.MERGE new missing to from", "+OK");
        client.expect("LC.INFO new SLICE", "[8]");
        assert_eq!(history(&mut client, "new"), history(&mut client, "to"), "{exact}");
        client.expect("DEL new", "1");
    }
}

#[test]
fn admission_counts_what_the_window_holds() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("LC.ADMIT k LIMIT 3 WINDOW 40 MANUAL SLICES 4 ITEMS a b", "[1, 1]");
    advance(&mut client, "k", 2);
    client.expect("LC.ADMIT k LIMIT 3 ALL ITEMS a c d", "[0, -1, -1]");
    client.expect("LC.ADMIT k LIMIT 3 DRYRUN ITEMS b c d", "[0, 1, -1]");
    client.expect("LC.ADMIT k LIMIT 3 ITEMS a c d c", "[0, 1, -1, 0]");
    // a was marked in slice 2, b only asked for.
    advance(&mut client, "k", 5);
    assert_eq!(members(&mut client, "LC.MEMBERS k"), "a c");
    client.expect("LC.ADMIT k LIMIT 3 ITEMS b d", "[1, -1]");
    // The exact limit is of those live too.
    client.expect("LC.RESERVE e 100 EXACT 9 BYTES 2 WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.ADMIT e LIMIT 9 ITEMS a b", "[1, 1]");
    client.expect("LC.ADMIT e LIMIT 9 ITEMS c", "-ERR counter would hold an estimate: *");
    advance(&mut client, "e", 5);
    client.expect("LC.ADMIT e LIMIT 9 ITEMS c d", "[1, 1]");
}

#[test]
fn clear_keeps_the_window() {
    let server = Server::start();
    let mut client = server.client();
    for exact in ["EXACT 100", "EXACT 0"] {
        client.cmd("DEL k");
        client.expect(&format!("LC.RESERVE k 1000 {exact} WINDOW 40 MANUAL SLICES 4 EX 1000"), "+OK");
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
