//! Tests LC.UNIONCARD, LC.INTERCARD, LC.DIFFCARD, LC.UNION, LC.INTER and LC.DIFF: keys, time spans, and which counters
//! can be combined.

use std::collections::BTreeSet;

use rollcall_testkit::{Client, Server, error_text, number, rows, session, show, text};

/// The commands on several counters as sets.
pub const SETS: [&str; 6] = ["LC.UNIONCARD", "LC.INTERCARD", "LC.DIFFCARD", "LC.UNION", "LC.INTER", "LC.DIFF"];

/// The count and the standard error in the reply to `line`.
#[track_caller]
pub fn card(client: &mut Client, line: &str) -> (i64, f64) {
    let reply = client.list(line);
    assert_eq!(reply.len(), 2, "{line}");
    (number(&reply[0]) as i64, number(&reply[1]))
}

#[track_caller]
pub fn members(client: &mut Client, line: &str) -> BTreeSet<String> {
    let list: Vec<String> = client.list(line).iter().map(text).collect();
    let set: BTreeSet<String> = list.iter().cloned().collect();
    assert_eq!(set.len(), list.len(), "{line} repeats members");
    set
}

#[test]
fn replies_have_their_types() {
    session(&[
        ("LC.ADD a 1 2 3", "3", "3"),
        ("LC.ADD b 3", "1", "1"),
        ("LC.UNIONCARD 2 a b", "[3, \"0\"]", "[3, ,0]"),
        ("LC.INTERCARD 2 a b", "[1, \"0\"]", "[1, ,0]"),
        ("LC.DIFFCARD 2 a b", "[2, \"0\"]", "[2, ,0]"),
        ("LC.UNIONCARD 3 a b missing", "[3, \"0\"]", "[3, ,0]"),
        ("LC.INTERCARD 2 a a", "[3, \"0\"]", "[3, ,0]"),
        ("LC.INTERCARD 2 a missing", "[0, \"0\"]", "[0, ,0]"),
        ("LC.DIFFCARD 3 a b missing", "[2, \"0\"]", "[2, ,0]"),
        ("LC.DIFFCARD 2 missing a", "[0, \"0\"]", "[0, ,0]"),
        ("LC.DIFFCARD 2 a a", "[0, \"0\"]", "[0, ,0]"),
        ("LC.INTER 2 a b", "[\"3\"]", "[\"3\"]"),
        ("LC.DIFF 2 a b", "[\"1\", \"2\"]", "[\"1\", \"2\"]"),
        ("LC.DIFF 3 a b missing", "[\"1\", \"2\"]", "[\"1\", \"2\"]"),
        ("LC.DIFF 2 a a", "[]", "[]"),
        ("LC.UNION 1 b", "[\"3\"]", "[\"3\"]"),
        ("LC.UNION 2 missing other", "[]", "[]"),
        ("LC.INTER 2 a missing", "[]", "[]"),
        ("LC.DIFF 2 missing a", "[]", "[]"),
        ("LC.UNIONCARD 1 missing", "[0, \"0\"]", "[0, ,0]"),
        ("EXISTS missing other", "0", "0"),
    ]);
}

#[test]
fn bad_syntax_of_set_operations_is_named() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.RESERVE w WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.ADD plain a", "1");
    client.expect("SET text x", "+OK");
    for command in SETS {
        for (rest, expected) in rows(
            "0 w => bad numkeys: expected from 1 to 1, the arguments behind it, got '0'
             2 w => bad numkeys: expected from 1 to 1, the arguments behind it, got '2'; -1 w => got '-1'
             1.5 w => bad numkeys: expected from 1 to 1, the arguments behind it, got '1.5'
             x w => numkeys is missing: expected the number of keys before the keys, got 'x'
             99999999999999999999 w => got '99999999999999999999'
             1 w plain => unknown option 'plain': expected SINCE behind 1 keys
             1 w SINCE => bad SINCE: expected one value for all keys or one for each, 1, got 0
             3 w w w SINCE 5 5 => bad SINCE: expected one value for all keys or one for each, 3, got 2
             1 w SINCE 5 5 => got 2; 1 w SINCE x => whole number
             1 w SINCE 0 => bad seconds: expected a whole number from 1 to those of the key's window, got '0'
             1 w SINCE 41 => got 41
             2 w plain SINCE 5 => the counter 'plain' has no window of time: expected - for all of it",
        ) {
            let line = format!("{command} {rest}");
            let reply = client.cmd(&line);
            let error = error_text(&reply).unwrap_or_else(|| panic!("{line}: {}", show(&reply)));
            assert!(error.starts_with("ERR ") && error.contains(expected), "{line}: {error}");
        }
        client.expect(&format!("{command} 2 w text"), "-WRONGTYPE *");
        // For a missing key, a time span of any length is accepted.
        client.run(&format!("{command} 2 w missing SINCE 40 9999999"));
    }
}
