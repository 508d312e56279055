//! Tests LC.UNIONCARD, LC.INTERCARD, LC.DIFFCARD, LC.UNION, LC.INTER and LC.DIFF: keys, time spans, and which counters
//! can be combined.

use std::collections::BTreeSet;

use rollcall_testkit::client::{Client, error_text, number, show, text};
use rollcall_testkit::server::{Server, session};

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
    session(
        &Server::start(),
        &[
            ("LC.ADD a 1 2 3", "3", "3"),
            ("LC.ADD b 3", "1", "1"),
            ("LC.UNIONCARD 2 a b", "[3, \"0\"]", "[3, ,0]"),
            ("LC.INTERCARD 2 a b", "[1, \"0\"]", "[1, ,0]"),
            ("LC.DIFFCARD 2 a b", "[2, \"0\"]", "[2, ,0]"),
            ("LC.INTER 2 a b", "[\"3\"]", "[\"3\"]"),
            ("LC.DIFF 2 a b", "[\"1\", \"2\"]", "[\"1\", \"2\"]"),
            ("LC.UNION 1 b", "[\"3\"]", "[\"3\"]"),
            ("LC.UNION 2 missing other", "[]", "[]"),
            ("LC.INTER 2 a missing", "[]", "[]"),
            ("LC.DIFF 2 missing a", "[]", "[]"),
            ("LC.UNIONCARD 1 missing", "[0, \"0\"]", "[0, ,0]"),
        ],
    );
}

#[test]
fn what_is_not_of_the_grammar_is_named() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("LC.RESERVE w WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.ADD plain a", "1");
    client.expect("SET text x", "+OK");
    for command in SETS {
        for (rest, expected) in [
            ("0 w", "bad numkeys: expected from 1 to 1, the arguments behind it, got '0'"),
            ("2 w", "bad numkeys: expected from 1 to 1, the arguments behind it, got '2'"),
            ("-1 w", "got '-1'"),
            ("1.5 w", "bad numkeys: expected from 1 to 1, the arguments behind it, got '1.5'"),
            ("x w", "numkeys is missing: expected the number of keys before the keys, got 'x'"),
            ("99999999999999999999 w", "got '99999999999999999999'"),
            ("1 w plain", "unknown option 'plain': expected SINCE behind 1 keys"),
            ("1 w SINCE", "bad SINCE: expected one value for all keys or one for each, 1, got 0"),
            ("3 w w w SINCE 5 5", "bad SINCE: expected one value for all keys or one for each, 3, got 2"),
            ("1 w SINCE 5 5", "got 2"),
            ("1 w SINCE x", "whole number"),
            ("1 w SINCE 0", "bad seconds for 'w': expected from 1 to 40, its window, got 0"),
            ("1 w SINCE 41", "got 41"),
            ("2 w plain SINCE 5", "the counter 'plain' has no window of time: expected - for all of it"),
        ] {
            let line = format!("{command} {rest}");
            let reply = client.cmd(&line);
            let error = error_text(&reply).unwrap_or_else(|| panic!("{line}: {}", show(&reply)));
            assert!(error.starts_with("ERR ") && error.contains(expected), "{line}: {error}");
        }
        client.expect(&format!("{command} 2 w text"), "-WRONGTYPE *");
        // For a missing key, a time span of any length is accepted.
        assert!(error_text(&client.cmd(&format!("{command} 2 w missing SINCE 40 9999999"))).is_none());
    }
}

#[test]
fn spans_and_counters_without_a_window_mix() {
    let server = Server::start();
    let mut client = server.client();
    // Windows with slices of 10 and of 5 seconds. The present second of both is 129.
    client.expect("LC.RESERVE active WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.RESERVE paid WINDOW 40 MANUAL SLICES 8", "+OK");
    for (slice, names) in [(9, "ann ben"), (11, "cem"), (12, "ben dan")] {
        client.expect(&format!("LC.ADVANCE active {slice}"), "+OK");
        client.cmd(&format!("LC.ADD active {names}"));
    }
    for (slice, names) in [(18, "ann"), (25, "dan eve")] {
        client.expect(&format!("LC.ADVANCE paid {slice}"), "+OK");
        client.cmd(&format!("LC.ADD paid {names}"));
    }
    client.expect("LC.ADD staff ann cem", "2");
    let set = |names: &str| names.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    for (rest, expected) in [
        ("UNION 1 active", "ann ben cem dan"),
        ("UNION 1 active SINCE 9", "ben dan"),
        ("UNION 1 active SINCE -", "ann ben cem dan"),
        ("UNION 2 active paid SINCE 9 4", "ben dan eve"),
        ("UNION 2 active staff SINCE 9 -", "ann ben cem dan"),
        // Members of the last 40 seconds that were not added in the last 9.
        ("DIFF 2 active active SINCE 40 9", "ann cem"),
        ("DIFF 3 active paid staff", "ben"),
        ("DIFF 3 active paid staff SINCE - 4 -", "ben"),
        ("INTER 2 active paid", "ann dan"),
        ("INTER 2 active paid SINCE 9", "dan"),
        ("INTER 2 active staff SINCE 19 -", "cem"),
        ("INTER 2 active active SINCE 9 40", "ben dan"),
        ("INTER 2 paid missing SINCE 4", ""),
    ] {
        assert_eq!(members(&mut client, &format!("LC.{rest}")), set(expected), "{rest}");
        let (command, keys) = rest.split_once(' ').expect("a command and keys");
        let expected = set(expected).len() as i64;
        assert_eq!(card(&mut client, &format!("LC.{command}CARD {keys}")), (expected, 0.0), "{rest}");
    }
}

/// Checks that the estimate for a time span is within four standard errors of the number of members added in that span.
#[test]
fn estimates_of_spans_are_within_their_errors() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("LC.RESERVE w WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.RESERVE plain", "+OK");
    let add = |client: &mut Client, key: &str, range: std::ops::Range<u32>| {
        for start in range.clone().step_by(1000) {
            let items: Vec<String> = (start..range.end.min(start + 1000)).map(|number| format!("m{number}")).collect();
            client.cmd(&format!("LC.ADD {key} {}", items.join(" ")));
        }
    };
    for (slice, range) in [(0, 0..6000), (2, 4000..9000)] {
        client.expect(&format!("LC.ADVANCE w {slice}"), "+OK");
        add(&mut client, "w", range);
    }
    add(&mut client, "plain", 8000..12_000);
    for (line, truth) in [
        ("LC.UNIONCARD 1 w", 9000),
        ("LC.UNIONCARD 1 w SINCE 9", 5000),
        ("LC.UNIONCARD 2 w plain SINCE 9 -", 8000),
        ("LC.DIFFCARD 2 w w SINCE - 9", 4000),
        ("LC.DIFFCARD 2 w plain SINCE 9 -", 4000),
        ("LC.INTERCARD 2 w plain", 1000),
        ("LC.INTERCARD 3 w plain w SINCE 9 - -", 1000),
    ] {
        let (count, error) = card(&mut client, line);
        assert!(error > 0.0 && ((count - truth) as f64).abs() < 4.0 * error, "{line}: {count} with {error}");
    }
    for line in ["LC.UNION 1 w", "LC.INTER 2 plain w", "LC.DIFF 1 w SINCE 5"] {
        client.expect(line, "-ERR counter holds an estimate: members are listed only up to its EXACT limit *");
    }
    // A counter that estimates can list the members of a time span if there are none.
    client.expect("LC.ADVANCE w 4", "+OK");
    client.expect("LC.UNION 1 w SINCE 5", "[]");
}
