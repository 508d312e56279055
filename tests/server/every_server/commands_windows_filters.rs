//! Tests windowed filters: which items are found, when they expire, and which are counted.

use redis::Value;

use rollcall_testkit::client::{Client, add_many, show, sum, with_items};
use rollcall_testkit::server::Server;

#[track_caller]
fn advance(client: &mut Client, key: &str, slice: u64) {
    client.expect(&format!("BF.ADVANCE {key} {slice}"), "+OK");
}

#[track_caller]
fn exists(client: &mut Client, key: &str, item: &str) -> bool {
    client.int(&format!("BF.EXISTS {key} {item}")) == 1
}

#[test]
fn every_command_that_adds_refreshes() {
    let server = Server::start();
    let mut client = server.client();
    for line in ["BF.ADD k a", "BF.MADD k a", "BF.INSERT k ITEMS a", "BF.ADMIT k LIMIT 0 ITEMS a"] {
        client.cmd("DEL k");
        client.expect("BF.INSERT k WINDOW 40 MANUAL SLICES 4 REFRESH ITEMS a", "[1]");
        advance(&mut client, "k", 3);
        client.cmd(line);
        advance(&mut client, "k", 7);
        assert!(exists(&mut client, "k", "a"), "{line}");
        advance(&mut client, "k", 8);
        assert!(!exists(&mut client, "k", "a"), "{line}");
    }
    // What asks or rejects does not.
    for line in ["BF.EXISTS k a", "BF.ADMIT k LIMIT 1 ALL ITEMS a b", "BF.ADMIT k LIMIT 9 DRYRUN ITEMS a"] {
        client.cmd("DEL k");
        client.expect("BF.INSERT k WINDOW 40 MANUAL SLICES 4 REFRESH ITEMS a", "[1]");
        advance(&mut client, "k", 3);
        client.cmd(line);
        advance(&mut client, "k", 5);
        assert!(!exists(&mut client, "k", "a"), "{line}");
    }
}

#[test]
fn everything_expires_in_a_gap_longer_than_the_window() {
    let server = Server::start();
    let mut client = server.client();
    let size = |client: &mut Client| client.list("BF.INFO k SIZE").first().map(show).unwrap_or_default();
    for options in ["", "REFRESH"] {
        for gap in [5, 6, 1000, 1 << 40] {
            client.cmd("DEL k");
            client.expect(&format!("BF.RESERVE k 0.001 10000 WINDOW 40 MANUAL SLICES 4 {options}"), "+OK");
            let empty = size(&mut client);
            for slice in 0..=4 {
                advance(&mut client, "k", slice);
                add_many(&mut client, "BF.MADD k", "x", 500 * slice..500 * slice + 500);
            }
            let full = size(&mut client);
            advance(&mut client, "k", 4 + gap);
            client.expect("BF.CARD k", "0");
            assert_eq!(sum(&add_many(&mut client, "BF.MEXISTS k", "x", 0..2500)), 0, "{options} {gap}");
            // The memory of what is dead goes with it.
            assert_eq!(size(&mut client), empty, "was {full}");
            assert_ne!(full, empty);
            client.expect("BF.ADD k x1", "1");
        }
    }
}

#[test]
fn a_burst_beyond_the_capacity_grows_and_goes_again() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("BF.RESERVE k 0.01 100 WINDOW 40 MANUAL SLICES 4", "+OK");
    advance(&mut client, "k", 2);
    let new = sum(&add_many(&mut client, "BF.MADD k", "x", 0..5000));
    assert!(new > 4900, "{new}");
    assert_eq!(client.int("BF.CARD k"), new);
    assert_eq!(sum(&add_many(&mut client, "BF.MEXISTS k", "x", 0..5000)), 5000);
    let large = client.int("MEMORY USAGE k");
    advance(&mut client, "k", 7);
    client.expect("BF.CARD k", "0");
    assert!(client.int("MEMORY USAGE k") * 4 < large);
}

#[test]
fn admission_counts_what_the_window_holds() {
    let server = Server::start();
    let mut client = server.client();
    for (options, refresh) in [("", false), (" REFRESH", true)] {
        let create = format!("BF.ADMIT k LIMIT 3 WINDOW 40 MANUAL SLICES 4{options} ITEMS a b");
        client.expect(&create, "[1, 1]");
        advance(&mut client, "k", 2);
        client.expect("BF.ADMIT k LIMIT 3 ALL ITEMS a c d", "[0, -1, -1]");
        client.expect("BF.ADMIT k LIMIT 3 DRYRUN ITEMS b c d", "[0, 1, -1]");
        client.expect("BF.ADMIT k LIMIT 3 ITEMS a c d c", "[0, 1, -1, 0]");
        client.expect("BF.CARD k", "3");
        // In slice 5 what came in slice 0 has expired, and there is room again; a was renewed in slice 2 with REFRESH.
        advance(&mut client, "k", 5);
        client.expect("BF.CARD k", if refresh { "2" } else { "1" });
        client.expect("BF.ADMIT k LIMIT 3 ITEMS a b d e", if refresh { "[0, 1, -1, -1]" } else { "[1, 1, -1, -1]" });
        client.expect("BF.CARD k", "3");
        client.expect("DEL k", "1");
    }
}

#[test]
fn clear_empties_all_generations() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("BF.RESERVE k 0.001 100 WINDOW 40 MANUAL SLICES 4 REFRESH EX 1000", "+OK");
    for slice in 3..6 {
        advance(&mut client, "k", slice);
        add_many(&mut client, "BF.MADD k", "x", 10 * slice..10 * slice + 20);
    }
    client.expect("BF.CLEAR k", "+OK");
    client.expect("BF.CARD k", "0");
    assert_eq!(sum(&add_many(&mut client, "BF.MEXISTS k", "x", 0..100)), 0);
    for (name, value) in [("WINDOW", "40"), ("SLICES", "4"), ("SLICE", "5"), ("REFRESH", "1"), ("CAPACITY", "100")] {
        client.expect(&format!("BF.INFO k {name}"), &format!("[{value}]"));
    }
    assert!(client.int("TTL k") > 0);
    client.expect("BF.ADD k x30", "1");
    advance(&mut client, "k", 9);
    assert!(exists(&mut client, "k", "x30"));
}

#[test]
fn merging_joins_slice_by_slice() {
    let server = Server::start();
    let mut client = server.client();
    for options in ["", "REFRESH"] {
        for key in ["to", "from"] {
            client.cmd(&format!("DEL {key}"));
            client.expect(&format!("BF.RESERVE {key} 0.0001 1000 WINDOW 40 MANUAL SLICES 4 {options}"), "+OK");
        }
        for (key, slice, item) in [("to", 2, "to2"), ("to", 5, "to5"), ("from", 1, "from1"), ("from", 4, "from4")] {
            advance(&mut client, key, slice);
            client.expect(&format!("BF.ADD {key} {item}"), "1");
        }
        // In the destination since slice 2, in the source since slice 6: the later one holds.
        advance(&mut client, "from", 6);
        client.expect("BF.MADD from to2 from6", "[1, 1]");
        client.expect("BF.MERGE to from missing", "+OK");
        client.expect("BF.INFO to SLICE", "[6]");
        client.expect("BF.INFO from SLICE", "[6]");
        for (slice, found) in [
            (6, "[1, 1, 0, 1, 1]"),
            (7, "[1, 1, 0, 1, 1]"),
            (8, "[1, 1, 0, 1, 1]"),
            (9, "[1, 1, 0, 0, 1]"),
            (10, "[1, 0, 0, 0, 1]"),
            (11, "[0, 0, 0, 0, 0]"),
        ] {
            advance(&mut client, "to", slice);
            client.expect("BF.MEXISTS to to2 to5 from1 from4 from6", found);
        }
        // The source is behind now, and all that it has is too old.
        client.expect("BF.MERGE to from", "+OK");
        client.expect("BF.MEXISTS to to2 to5 from1 from4 from6", "[0, 0, 0, 0, 0]");
        client.expect("BF.INFO to SLICE", "[11]");
        // A new key is like the first source, at its slice.
        client.expect("BF.MERGE new missing from", "+OK");
        client.expect("BF.MEXISTS new to2 from1 from4 from6", "[1, 0, 1, 1]");
        client.expect("BF.INFO new SLICE", "[6]");
        client.expect("BF.INFO new CLOCK", "[\"manual\"]");
        client.expect("DEL new", "1");
    }
}

/// Slices have whole seconds, and their number is the least that covers the window. So the window exceeds the requested
/// length by less than two slices.
#[test]
fn a_window_is_longer_by_less_than_two_slices() {
    let server = Server::start();
    let mut client = server.client();
    for (seconds, asked) in [(65, 64), (63, 62), (64, 64), (13, 12), (100, 40), (7, 5)] {
        client.cmd("DEL k");
        client.expect(&format!("BF.RESERVE k 0.0001 100 WINDOW {seconds} MANUAL SLICES {asked}"), "+OK");
        let length = i64::div_euclid(seconds + asked - 1, asked);
        client.expect("BF.ADD k a", "1");
        client.expect("BF.ADMIT k LIMIT 1 ITEMS b", "[-1]");
        let expired = (1..).find(|&slice| {
            advance(&mut client, "k", slice);
            !exists(&mut client, "k", "a")
        });
        // From the first second of its slice; from the last it is remembered for a slice less.
        let longest = expired.unwrap() as i64 * length;
        assert!(longest - length >= seconds, "{seconds} in {asked}: {longest}");
        assert!(longest < seconds + 2 * length, "{seconds} in {asked}: {longest}");
        assert!(seconds % length != 0 || longest == seconds + length, "{seconds} in {asked}: {longest}");
        client.expect("BF.ADMIT k LIMIT 1 ITEMS b", "[1]");
    }
}

/// Chunks from before and after an advance do not fit together, so the dump fails.
#[test]
fn dumps_that_an_advance_interrupts_fail() {
    let server = Server::start();
    let mut client = server.client();
    for (family, make) in [
        ("BF", "BF.RESERVE k 0.01 4000000 WINDOW 40 MANUAL SLICES 4"),
        ("LC", "LC.RESERVE k 1000000 EXACT 0 WINDOW 40 MANUAL SLICES 24"),
    ] {
        client.cmd("DEL k");
        client.cmd("DEL copy");
        client.expect(make, "+OK");
        let add = if family == "BF" { "BF.MADD k" } else { "LC.ADD k" };
        for slice in 0..3 {
            client.expect(&format!("{family}.ADVANCE k {slice}"), "+OK");
            add_many(&mut client, add, "x", 50_000 * slice..50_000 * (slice + 1));
        }
        let next = |client: &mut Client, iterator: i64| match client.cmd(&format!("{family}.SCANDUMP k {iterator}")) {
            Value::Array(reply) => match &reply[..] {
                [Value::Int(next), Value::BulkString(chunk)] => Ok((*next, chunk.clone())),
                other => panic!("{other:?}"),
            },
            other => Err(show(&other)),
        };
        let (first, _) = next(&mut client, 0).expect("a chunk");
        let (second, _) = next(&mut client, first).expect("a chunk");
        assert!(second > first);
        client.expect(&format!("{family}.ADVANCE k 3"), "+OK");
        for iterator in [first, second] {
            let answer = next(&mut client, iterator);
            assert!(
                answer.as_ref().is_err_and(|error| error.starts_with("-STALE ")),
                "{family} {iterator}: {answer:?}"
            );
        }
        // From the start it goes through, and the copy is the same.
        let mut iterator = 0;
        loop {
            let (next, chunk) = next(&mut client, iterator).expect("a chunk");
            if next == 0 {
                break;
            }
            let words = [format!("{family}.LOADCHUNK"), "copy".into(), next.to_string()].map(String::into_bytes);
            assert_eq!(client.call(&words.into_iter().chain([chunk]).collect::<Vec<_>>()), Value::Okay);
            iterator = next;
        }
        assert_eq!(client.digest("copy"), client.digest("k"));
        // The iterators before the advance are of no use now either, however they are mixed.
        client.expect(&format!("{family}.ADVANCE k 4"), "+OK");
        assert!(next(&mut client, iterator).is_err(), "{family}");
    }
}

#[test]
fn debug_reports_every_sub_filter() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("BF.RESERVE k 0.01 1000 WINDOW 40 MANUAL SLICES 4", "+OK");
    for slice in 0..3_u64 {
        advance(&mut client, "k", slice);
        client.call(&with_items("BF.MADD k", "x", 10 * slice..10 * slice + 10));
    }
    let lines = client.list("BF.DEBUG k");
    assert!(lines.len() >= 4, "{}", show(&Value::Array(lines.clone())));
    client.expect("BF.INFO k FILTERS", "[3]");
    let fpr = client.list("BF.INFO k FPR");
    assert_eq!(fpr.len(), 1);
}
