//! Tests invalid input about windows: the error names what is wrong, and nothing is changed.

use crate::every_server::commands_windows::{FAMILIES, creating, reserve};
use rollcall_testkit::{Client, Server, rows};

/// Runs a command that must fail, and compares all keys before and after.
#[track_caller]
fn rejected(client: &mut Client, line: &str) -> String {
    let before = client.text("DEBUG DIGEST");
    let error = client.error(line);
    assert_eq!(client.text("DEBUG DIGEST"), before, "{line}: {error}");
    assert!(error.len() > "ERR ".len() + 8, "{line}: {error}");
    error
}

/// Panics unless the error contains one of these words, in any case.
#[track_caller]
fn assert_names(line: &str, error: &str, words: &str) {
    let lower = error.to_lowercase();
    assert!(words.split('|').any(|word| lower.contains(&word.to_lowercase())), "{line}: {error} names none of {words}");
}

#[test]
fn invalid_options_are_rejected_by_name() {
    let (_server, mut client) = Server::start().with_client();
    for family in FAMILIES {
        let too_many = if family == "BF" { "WINDOW 1000 SLICES 65" } else { "WINDOW 1000 SLICES 255" };
        let options = rows(
            "WINDOW 0 => window; WINDOW -5 => window; WINDOW 1.5 => window; WINDOW 1e3 => window; WINDOW 07 => window
             WINDOW '' => window; WINDOW forever => window; WINDOW 1099511627777 => window
             WINDOW 18446744073709551616 => window; WINDOW 9223372036854775807 SLICES 1 => window
             # The window has fewer seconds than slices.
             WINDOW 9 SLICES 10 => slices: expected from 1 to 9, got 10
             WINDOW 3 SLICES 4 => slices: expected from 1 to 3, got 4; WINDOW 10 SLICES 0 => slices
             WINDOW 10 SLICES -1 => slices; WINDOW 10 SLICES 2.0 => slices; WINDOW 10 SLICES many => slices
             WINDOW 10 SLICES 4294967298 => slices; SLICES 4 => window; MANUAL => window; MANUAL SLICES 4 => window
             WINDOW 40 WINDOW 40 => window is given twice; WINDOW 40 SLICES 4 SLICES 4 => slices is given twice
             WINDOW 40 MANUAL MANUAL => manual is given twice
             # Only replicated commands may set the first slice of a window.
             WINDOW 40 SLICE 7 => slice; WINDOW 40 MANUAL SLICES 4 SLICE 0 => slice; SLICE 7 => slice
             WINDOW 40 EXAT 1 => expire; WINDOW 40 EX 0 => expire",
        );
        for (options, names) in options.into_iter().chain([(too_many, "slices")]) {
            for line in creating(family, "k", options) {
                let error = rejected(&mut client, &line);
                assert_names(&line, &error, names);
                client.expect("EXISTS k", "0");
            }
        }
    }
}

#[test]
fn options_of_filters_are_rejected_for_counters() {
    let (_server, mut client) = Server::start().with_client();
    for (options, names) in rows(
        "REFRESH => window; WINDOW 40 REFRESH REFRESH => refresh is given twice
         WINDOW 40 NONSCALING => nonscaling|window; WINDOW 40 EXPANSION 0 => expansion|window
         WINDOW 40 LAYOUT classic => layout|classic",
    ) {
        for line in creating("BF", "k", options) {
            let error = rejected(&mut client, &line);
            assert_names(&line, &error, names);
            client.expect("EXISTS k", "0");
        }
    }
    for (family, options) in [("LC", "WINDOW 40 REFRESH"), ("LC", "LAST"), ("BF", "LAST"), ("BF", "WINDOW 40 LAST")] {
        for line in creating(family, "k", options) {
            assert_names(&line, &rejected(&mut client, &line), "unknown option");
        }
    }
}

#[test]
fn windowed_filters_have_lines_whatever_the_default() {
    let (_server, mut client) = Server::with_args("bf-layout classic").with_client();
    for line in [&reserve("BF", "k", "WINDOW 40 MANUAL"), "BF.INSERT k WINDOW 40 MANUAL ITEMS a"] {
        client.cmd("DEL k");
        client.cmd(line);
        client.expect("BF.INFO k LAYOUT", "[\"lines\"]");
    }
    client.expect("BF.ADMIT a LIMIT 5 WINDOW 40 MANUAL ITEMS a", "[1]");
    client.expect("BF.INFO a LAYOUT", "[\"lines\"]");
    client.expect("BF.INSERT b LAYOUT lines WINDOW 40 MANUAL ITEMS a", "[1]");
}

#[test]
fn windows_that_differ_are_not_merged() {
    let (_server, mut client) = Server::start().with_client();
    for family in FAMILIES {
        let shapes = [
            ("window", "WINDOW 40 MANUAL SLICES 4"),
            ("plain", ""),
            ("longer", "WINDOW 80 MANUAL SLICES 4"),
            ("finer", "WINDOW 40 MANUAL SLICES 8"),
        ];
        for (key, options) in shapes {
            client.expect(&reserve(family, key, options), "+OK");
            client.cmd(&format!("{family}.ADD {key} a"));
        }
        for other in ["plain", "longer", "finer"] {
            rejected(&mut client, &format!("{family}.MERGE window {other}"));
            rejected(&mut client, &format!("{family}.MERGE {other} window"));
            rejected(&mut client, &format!("{family}.MERGE new window {other}"));
            rejected(&mut client, &format!("{family}.MERGE new {other} missing window"));
        }
        client.expect("EXISTS new", "0");
        if family == "LC" {
            // Commands that only read combine windows of different lengths.
            for other in ["plain", "longer", "finer"] {
                client.expect(&format!("LC.COUNT window {other}"), "1");
                client.expect(&format!("LC.INTERCARD 2 {other} window"), "[1, \"0\"]");
            }
        }
        client.expect("DEL window plain longer finer", "4");
    }
    client.expect(&reserve("BF", "one", "WINDOW 40 MANUAL SLICES 4"), "+OK");
    client.expect(&reserve("BF", "two", "WINDOW 40 MANUAL SLICES 4 REFRESH"), "+OK");
    for (to, from) in [("one", "two"), ("two", "one")] {
        rejected(&mut client, &format!("BF.MERGE {to} {from}"));
    }
}

#[test]
fn invalid_spans_are_rejected() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.RESERVE c WINDOW 40 MANUAL SLICES 4", "+OK");
    client.expect("LC.RESERVE long WINDOW 80 MANUAL SLICES 8", "+OK");
    client.expect("LC.RESERVE plain", "+OK");
    client.expect("LC.ADD c a b", "2");
    client.expect("SET text x", "+OK");
    for seconds in ["0", "41", "-1", "1.5", "x", "''", "18446744073709551616", "99999999999999999999", "1099511627777"]
    {
        for line in [format!("LC.COUNTSINCE c {seconds}"), format!("LC.MEMBERS c SINCE {seconds}")] {
            let error = rejected(&mut client, &line);
            let is_number = seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0);
            assert!(error.contains(if is_number { "40" } else { "whole number" }), "{line}: {error}");
        }
    }
    // The longest time span depends on each key's window. The error names the key.
    for line in
        ["LC.UNIONCARD 2 c long SINCE 41", "LC.UNIONCARD 2 long c SINCE 41", "LC.UNIONCARD 3 long missing c SINCE 80"]
    {
        let error = rejected(&mut client, line);
        assert!(error.contains("40") && error.contains("'c'"), "{line}: {error}");
    }
    client.expect("LC.COUNTSINCE long 80", "0");
    client.expect("LC.UNIONCARD 2 long c SINCE 40", "[2, \"0\"]");
    client.expect("LC.UNIONCARD 2 long c SINCE 80 40", "[2, \"0\"]");
    for (line, expected) in rows(
        "LC.COUNTSINCE plain 5 => ERR the counter 'plain' has no window of time: LC.COUNT
         LC.UNIONCARD 2 plain plain SINCE 5 => ERR 
         LC.UNIONCARD 2 c text SINCE 5 => WRONGTYPE; LC.MEMBERS plain SINCE 5 => ERR ; LC.MEMBERS c SINCE => ERR 
         LC.MEMBERS c BEFORE 5 => ERR ; LC.MEMBERS c SINCE 5 SINCE 5 => ERR ; LC.MEMBERS c SINCE 5 6 => ERR 
         LC.MEMBERS text SINCE 5 => WRONGTYPE; LC.HISTORY plain => ERR the counter 'plain' has no window
         LC.HISTORY missing => ERR not found",
    ) {
        let error = rejected(&mut client, line);
        assert!(error.starts_with(expected), "{line}: {error}");
    }
}
