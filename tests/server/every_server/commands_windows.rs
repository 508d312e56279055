//! Tests the common behaviour of windowed filters and counters: creation, INFO, and manual ADVANCE.

use redis::Value;

use crate::effects::{appending, sent, sent_as};
use rollcall_testkit::{Client, Server, Setup, rows, session, show};

/// The prefixes of both command families.
pub const FAMILIES: [&str; 2] = ["BF", "LC"];

/// The three commands that create a key of a family with these options.
pub fn creating(family: &str, key: &str, options: &str) -> [String; 3] {
    [
        reserve(family, key, options),
        format!("{family}.INSERT {key} {options} ITEMS a"),
        format!("{family}.ADMIT {key} LIMIT 5 {options} ITEMS a"),
    ]
}

/// The command that creates an empty key of a family with these options.
pub fn reserve(family: &str, key: &str, options: &str) -> String {
    let parameters = if family == "BF" { "0.001 100" } else { "" };
    format!("{family}.RESERVE {key} {parameters} {options}")
}

/// Adds an item, and returns whether it was new.
#[track_caller]
pub fn is_new(client: &mut Client, family: &str, key: &str, item: &str) -> bool {
    match client.cmd(&format!("{family}.ADD {key} {item}")) {
        Value::Int(new) => new == 1,
        other => panic!("{family}.ADD {key} {item} gave {}", show(&other)),
    }
}

/// The fields of INFO that report a window: WINDOW, SLICES, SLICE and CLOCK, in the notation of [`show`].
#[track_caller]
pub fn window(client: &mut Client, family: &str, key: &str) -> String {
    let fields = ["WINDOW", "SLICES", "SLICE", "CLOCK"].map(|name| {
        let reply = client.list(&format!("{family}.INFO {key} {name}"));
        assert_eq!(reply.len(), 1, "{name}");
        show(&reply[0]).trim_matches(['"', '+']).to_owned()
    });
    fields.join(" ")
}

#[test]
fn every_creating_command_makes_windows() {
    let (_server, mut client) = Server::start().with_client();
    for family in FAMILIES {
        for (options, expected) in [
            ("WINDOW 40 MANUAL SLICES 4", "40 4 0 manual"),
            // The window gets the least number of slices of whole seconds that cover it.
            ("slices 5 manual window 7", "7 4 0 manual"),
            ("WINDOW 65 SLICES 64 MANUAL", "65 33 0 manual"),
            ("WINDOW 1 MANUAL SLICES 1", "1 1 0 manual"),
            ("WINDOW 1099511627776 MANUAL SLICES 64", "1099511627776 64 0 manual"),
            ("EX 1000 WINDOW 86400 MANUAL SLICES 24 SEED 7", "86400 24 0 manual"),
        ] {
            for line in creating(family, "k", options) {
                client.cmd("DEL k");
                client.run(&line);
                assert_eq!(window(&mut client, family, "k"), expected, "{line}");
                assert_eq!(client.int("TTL k") > 0, options.contains("EX"), "{line}");
            }
        }
        client.cmd("DEL k");
        client.expect(&reserve(family, "k", "WINDOW 100 MANUAL"), "+OK");
        let default = if family == "BF" { "100 4 0 manual" } else { "100 12 0 manual" };
        assert_eq!(window(&mut client, family, "k"), default);
        // Options have no effect on an existing key.
        client.cmd(&format!("{family}.INSERT k WINDOW 50 SLICES 2 ITEMS a"));
        client.cmd(&format!("{family}.ADMIT k LIMIT 9 WINDOW 50 SLICES 2 ITEMS b"));
        assert_eq!(window(&mut client, family, "k"), default);
        // If the window has fewer seconds than the default number of slices, each slice is a second.
        client.expect(&reserve(family, "short", "WINDOW 3 MANUAL"), "+OK");
        assert_eq!(window(&mut client, family, "short"), "3 3 0 manual");
        client.expect(&reserve(family, "plain", ""), "+OK");
        assert_eq!(window(&mut client, family, "plain"), "nil nil nil nil");
        client.expect("DEL k short plain", "3");
    }
}

#[test]
fn info_says_whether_a_filter_refreshes() {
    session(&[
        ("BF.RESERVE w 0.01 100 WINDOW 40 MANUAL", "+OK", "+OK"),
        ("BF.INFO w REFRESH", "[0]", "{+Refresh: 0}"),
        ("BF.RESERVE r 0.01 100 WINDOW 40 MANUAL REFRESH", "+OK", "+OK"),
        ("BF.INFO r REFRESH", "[1]", "{+Refresh: 1}"),
        ("BF.INFO r SLICES", "[2]", "{+Slices: 2}"),
        ("BF.RESERVE p 0.01 100", "+OK", "+OK"),
        ("BF.INFO p REFRESH", "[nil]", "{+Refresh: nil}"),
        ("BF.INFO w LAYOUT", "[\"lines\"]", "{+Layout: \"lines\"}"),
        ("TYPE w", "+RCfilter-", "+RCfilter-"),
        ("LC.RESERVE c WINDOW 40 MANUAL", "+OK", "+OK"),
        ("LC.INFO c WINDOW", "[40]", "{\"Window\": 40}"),
        ("LC.INFO c CLOCK", "[\"manual\"]", "{\"Clock\": \"manual\"}"),
        ("TYPE c", "+RCcounter", "+RCcounter"),
    ]);
}

#[test]
fn windows_are_advanced_manually() {
    for family in FAMILIES {
        let (_server, mut client) = Server::start().with_client();
        client.expect(&reserve(family, "k", "WINDOW 40 MANUAL SLICES 4"), "+OK");
        assert!(is_new(&mut client, family, "k", "a"));
        let mut was = client.digest("k");
        for (slice, moves) in [("0", false), ("1", true), ("1", false), ("4", true), ("1000000000000", true)] {
            client.expect(&format!("{family}.ADVANCE k {slice}"), "+OK");
            let is = client.digest("k");
            assert_eq!(is != was, moves, "{family} {slice}");
            was = is;
            assert_eq!(window(&mut client, family, "k"), format!("40 4 {slice} manual"));
        }
        client.expect("SET text x", "+OK");
        client.expect(&reserve(family, "plain", ""), "+OK");
        for (line, expected) in rows(
            "ADVANCE k 999999999999 => -ERR *; ADVANCE k 0 => -ERR *; ADVANCE k -1 => -ERR *; ADVANCE k 1.5 => -ERR *
             ADVANCE k soon => -ERR *; ADVANCE k '' => -ERR *; ADVANCE k 18446744073709551616 => -ERR *
             ADVANCE k 1000000000001 REBASE => -ERR *; ADVANCE k 5 REBASE => -ERR *
             ADVANCE k 1000000000001 LATER => -ERR *; ADVANCE k 1000000000001 REBASE REBASE => -ERR *
             ADVANCE k CLOCK CLOCK => -ERR *; ADVANCE k => -ERR wrong number of arguments*
             ADVANCE => -ERR wrong number of arguments*; ADVANCE missing 1 => -ERR not found*
             ADVANCE missing CLOCK => -ERR not found*; ADVANCE plain 1 => -ERR *; ADVANCE plain CLOCK => -ERR *
             ADVANCE text 1 => -WRONGTYPE*",
        ) {
            client.expect(&format!("{family}.{line}"), expected);
            assert_eq!(client.digest("k"), was, "{line}");
        }
        client.expect("EXISTS missing", "0");
    }
}

#[test]
fn replies_of_windowed_counters_have_their_types() {
    session(&[
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
    ]);
}

#[test]
fn effects_say_all_that_a_replica_needs() {
    let (server, mut client) = appending(Setup::default()).with_client();
    for family in FAMILIES {
        let refresh = if family == "BF" { " REFRESH" } else { "" };
        for line in creating(family, "k", &format!("WINDOW 40 MANUAL SLICES 4{refresh}")) {
            client.cmd("DEL k");
            let created = sent(&mut client, &server, &line);
            assert_eq!(created.len(), 1, "{line}: {created:?}");
            for part in [" k ", " WINDOW 40 ", " MANUAL", " SLICES 4", " SLICE 0", refresh] {
                assert!(format!("{} ", created[0]).contains(part), "{line}: {part} in {created:?}");
            }
            assert!(
                created[0].starts_with(&format!("{}.", sent_as(family))) && !created[0].contains("ADMIT"),
                "{created:?}"
            );
        }
        assert_eq!(
            sent(&mut client, &server, &format!("{family}.ADVANCE k 3")),
            [format!("{}.ADVANCE k 3", sent_as(family))]
        );
        for nothing in ["ADVANCE k 3", "ADVANCE k 2", "ADVANCE missing 2", "INFO k", "ADMIT k LIMIT 1 ITEMS z"] {
            let line = format!("{family}.{nothing}");
            assert!(sent(&mut client, &server, &line).is_empty(), "{line}");
        }
        client.cmd("DEL k");
    }
    // Without REFRESH, adding a known item changes nothing.
    client.expect("BF.INSERT k WINDOW 40 MANUAL ITEMS a", "[1]");
    client.expect("BF.ADVANCE k 3", "+OK");
    assert!(sent(&mut client, &server, "BF.MADD k a a").is_empty());
    assert!(sent(&mut client, &server, "BF.ADMIT k LIMIT 9 ITEMS a").is_empty());
    // The window advances to the slice of the system clock, and replicas get this slice too.
    assert_eq!(sent(&mut client, &server, "BF.ADVANCE k CLOCK").len(), 2);
    assert!(sent(&mut client, &server, "BF.ADVANCE k CLOCK").is_empty());
    // The actual number of slices is replicated, not the requested one.
    for family in FAMILIES {
        let odd =
            sent(&mut client, &server, &format!("{family}.INSERT odd{family} WINDOW 65 SLICES 64 MANUAL ITEMS a"));
        assert!(odd.len() == 1 && odd[0].contains(" WINDOW 65 MANUAL SLICES 33 "), "{odd:?}");
    }
}
