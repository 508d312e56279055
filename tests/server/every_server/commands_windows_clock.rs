//! Tests windows with the system clock. The test sets the server's clock.

use crate::effects::{appending, sent, sent_as};
use crate::every_server::commands_volatile::{SLICE, START};
use crate::every_server::commands_windows::{FAMILIES, is_new, reserve, window};
use rollcall_testkit::{Client, Clock, Server, error_text, show};

/// The window of most tests: 40 seconds in slices of ten.
pub const WINDOW: &str = "WINDOW 40 SLICES 4";

/// A year in seconds.
pub const YEAR: u64 = 365 * 86_400;

/// Whether an item is found in the key `k` of this family.
#[track_caller]
pub fn exists(client: &mut Client, family: &str, item: &str) -> bool {
    client.int(&format!("{family}.EXISTS k {item}")) == 1
}

#[track_caller]
fn count(client: &mut Client, family: &str) -> i64 {
    client.int(if family == "BF" { "BF.CARD k" } else { "LC.COUNT k" })
}

/// Starts a server and creates the windowed key `k`.
fn start(clock: &Clock, family: &str, options: &str) -> (Server, Client) {
    let (server, mut client) = appending(clock.setup()).with_client();
    client.expect(&reserve(family, "k", options), "+OK");
    (server, client)
}

#[test]
fn reads_skip_expired_items_and_write_nothing() {
    for family in FAMILIES {
        let clock = Clock::at(START + 7);
        let (server, mut client) = start(&clock, family, WINDOW);
        assert!(is_new(&mut client, family, "k", "a"));
        client.expect(&format!("{family}.INFO k SLICE"), &format!("[{SLICE}]"));
        let before = client.digest("k");
        let changes = client.info("rdb_changes_since_last_save");
        for (now, is_found) in [
            (START + 9, true),
            (START + 10, true),
            // More than 40 seconds have passed, but items expire slice by slice.
            (START + 47, true),
            (START + 49, true),
            (START + 50, false),
            (START + YEAR, false),
            (START + 49, true),
            (START + 50, false),
            // If the clock is set back, items are found again.
            (START, true),
            (START - YEAR, true),
            (0, true),
        ] {
            clock.set(now);
            assert_eq!(exists(&mut client, family, "a"), is_found, "{family} at {now}");
            assert_eq!(count(&mut client, family), i64::from(is_found), "{family} at {now}");
            let slice = (now / 10).max(SLICE);
            assert_eq!(window(&mut client, family, "k"), format!("40 4 {slice} system"));
            let lines = ["BF.INFO k", "BF.DEBUG k", "LC.INFO k", "LC.HISTORY k", "LC.COUNTSINCE k 7", "LC.MEMBERS k"];
            for line in lines.iter().filter(|line| line.starts_with(family)) {
                assert!(sent(&mut client, &server, line).is_empty(), "{line}");
            }
            assert_eq!(client.digest("k"), before);
        }
        assert_eq!(client.info("rdb_changes_since_last_save"), changes);
    }
}

#[test]
fn only_commands_with_an_effect_advance_a_window() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = start(&clock, family, WINDOW);
        client.cmd(&format!("{family}.ADD k a"));
        client.expect("SET other x", "+OK");
        clock.pass(20);
        let before = client.digest("k");
        // None of these commands changes anything.
        let known = if family == "BF" { "BF.ADD k a" } else { "LC.EXISTS k a" };
        let nothing = [
            "ADMIT k LIMIT 1 ITEMS b",
            "ADMIT k LIMIT 9 DRYRUN ITEMS a b",
            "ADMIT k LIMIT 1 ALL ITEMS a b",
            "MERGE k missing",
        ];
        for line in nothing.map(|line| format!("{family}.{line}")).iter().map(String::as_str).chain([known]) {
            assert!(sent(&mut client, &server, line).is_empty(), "{line}");
            assert_eq!(client.digest("k"), before, "{line}");
        }
        let advance = format!("{}.ADVANCE k {}", sent_as(family), SLICE + 2);
        let effects = sent(&mut client, &server, &format!("{family}.ADD k b"));
        assert_eq!(effects.len(), 2, "{effects:?}");
        assert_eq!(effects[0], advance);
        assert!(effects[1].ends_with(" k b"), "{effects:?}");
        // Once a slice.
        clock.pass(9);
        assert_eq!(sent(&mut client, &server, &format!("{family}.ADD k c")).len(), 1);
        // Every changing command advances the window first.
        for (at, line) in ["INSERT k ITEMS d", "ADMIT k LIMIT 9 ITEMS e"].iter().enumerate() {
            clock.set(START + 30 + 10 * at as u64);
            let effects = sent(&mut client, &server, &format!("{family}.{line}"));
            assert_eq!(effects.len(), 2, "{line}: {effects:?}");
            let advance = format!("{}.ADVANCE k {}", sent_as(family), SLICE + 3 + at as u64);
            assert_eq!(effects[0], advance, "{line}");
        }
        // CLEAR leaves no data that could expire, so it does not advance the window.
        clock.pass(10);
        assert_eq!(sent(&mut client, &server, &format!("{family}.CLEAR k")), [format!("{}.CLEAR k", sent_as(family))]);
        clock.pass(1000);
        for line in ["MULTI", "ADD k x", "ADD k y", "EXEC"] {
            let line = if line.starts_with("ADD") { format!("{family}.{line}") } else { line.to_owned() };
            client.cmd(&line);
        }
        assert_eq!(count(&mut client, family), 2);
        clock.pass(1000);
        let script = format!("return redis.call('{family}.ADD', KEYS[1], 'z')");
        assert_eq!(show(&client.call(&["EVAL", &script, "1", "k"])), "1");
        assert_eq!(count(&mut client, family), 1);
        assert_eq!(window(&mut client, family, "k"), format!("40 4 {} system", clock.now() / 10));
    }
}

#[test]
fn clients_advance_no_further_than_the_clock() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = start(&clock, family, WINDOW);
        assert!(is_new(&mut client, family, "k", "a"));
        let before = client.digest("k");
        // The present slice and the present clock source need no change.
        for line in [format!("ADVANCE k {SLICE}"), "ADVANCE k CLOCK".to_owned()] {
            assert!(sent(&mut client, &server, &format!("{family}.{line}")).is_empty());
            client.expect(&format!("{family}.{line}"), "+OK");
        }
        for wrong in [SLICE + 1, SLICE - 1, 0, u64::MAX] {
            client.error(&format!("{family}.ADVANCE k {wrong}"));
        }
        client.error(&format!("{family}.ADVANCE k {SLICE} REBASE"));
        assert_eq!(client.digest("k"), before);
        clock.pass(30);
        // A slice later than the stored one, but earlier than the present one.
        client.error(&format!("{family}.ADVANCE k {}", SLICE + 1));
        client.error(&format!("{family}.ADVANCE k {}", SLICE + 4));
        assert_eq!(client.digest("k"), before);
        client.expect(&format!("{family}.ADVANCE k {}", SLICE + 3), "+OK");
        let after = client.digest("k");
        assert_ne!(after, before);
        // After the clock was set back, the newest slice reached so far counts as the present one.
        clock.set(START);
        client.error(&format!("{family}.ADVANCE k {SLICE}"));
        client.expect(&format!("{family}.ADVANCE k {}", SLICE + 3), "+OK");
        assert_eq!(client.digest("k"), after);
    }
}

#[test]
fn a_manual_window_is_handed_to_the_clock() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = start(&clock, family, &format!("{WINDOW} MANUAL"));
        assert!(is_new(&mut client, family, "k", "early"));
        clock.pass(YEAR);
        assert!(exists(&mut client, family, "early"), "it never asks a clock");
        let slice = clock.now() / 10;
        client.expect(&format!("{family}.ADVANCE k {}", slice - 2), "+OK");
        assert!(is_new(&mut client, family, "k", "late"));
        client.expect(&format!("{family}.ADVANCE k CLOCK"), "+OK");
        assert_eq!(window(&mut client, family, "k"), format!("40 4 {slice} system"));
        assert_eq!((exists(&mut client, family, "early"), exists(&mut client, family, "late")), (false, true));
        assert!(sent(&mut client, &server, &format!("{family}.ADVANCE k CLOCK")).is_empty());
        clock.pass(29);
        assert!(exists(&mut client, family, "late"));
        clock.pass(1);
        assert!(!exists(&mut client, family, "late"));
        // After a reload the window still uses the system clock.
        client.expect("DEBUG RELOAD", "+OK");
        assert_eq!(window(&mut client, family, "k"), format!("40 4 {} system", slice + 3));
    }
}

#[test]
fn a_clock_that_jumps_a_year_ahead_and_comes_back_freezes_nothing() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = start(&clock, family, WINDOW);
        clock.set(START + YEAR);
        assert!(is_new(&mut client, family, "k", "b"));
        clock.set(START + YEAR + 10);
        assert!(is_new(&mut client, family, "k", "c"));
        clock.set(START + 20);
        // Reads and dry runs leave the window ahead of the clock, and find all items. Even a rejected item brings it
        // back. Otherwise a key at its limit would stay ahead.
        assert!(exists(&mut client, family, "b") && exists(&mut client, family, "c"));
        assert!(sent(&mut client, &server, &format!("{family}.ADMIT k LIMIT 2 DRYRUN ITEMS d")).is_empty());
        let effects = sent(&mut client, &server, &format!("{family}.ADMIT k LIMIT 2 ITEMS d"));
        assert_eq!(effects, [format!("{}.ADVANCE k {} REBASE", sent_as(family), SLICE + 2)]);
        assert_eq!(sent(&mut client, &server, &format!("{family}.ADD k d")).len(), 1);
        assert_eq!(window(&mut client, family, "k"), format!("40 4 {} system", SLICE + 2));
        // `b` is one slice older than `c` and `d`. From now on, all of them expire by the right clock.
        for (now, found) in [
            (START + 20, [true, true, true]),
            (START + 59, [true, true, true]),
            (START + 60, [false, true, true]),
            (START + 69, [false, true, true]),
            (START + 70, [false, false, false]),
        ] {
            clock.set(now);
            let is = ["b", "c", "d"].map(|item| exists(&mut client, family, item));
            assert_eq!(is, found, "{family} {}", now - START);
        }
        assert!(is_new(&mut client, family, "k", "e"));
        assert_eq!(count(&mut client, family), 1);
        // A known item brings the window back too, though it needs no change else.
        clock.set(START + YEAR);
        assert!(is_new(&mut client, family, "k", "f"));
        clock.set(START + 80);
        let effects = sent(&mut client, &server, &format!("{family}.ADD k f"));
        assert_eq!(effects[0], format!("{}.ADVANCE k {} REBASE", sent_as(family), SLICE + 8), "{effects:?}");
    }
}

/// A merge into a new key moves its window to the clock's slice. The merge is rejected if a source is far ahead of the
/// clock, in any order of the sources.
#[test]
fn a_merge_into_a_new_key_runs_on_the_clock() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = appending(clock.setup()).with_client();
        for key in ["one", "two", "late"] {
            clock.set(if key == "late" { START + YEAR } else { START });
            client.expect(&reserve(family, key, WINDOW), "+OK");
            assert!(is_new(&mut client, family, key, key));
        }
        clock.set(START + 10);
        let before = client.text("DEBUG DIGEST");
        for sources in ["one late", "late one", "one two late"] {
            let line = format!("{family}.MERGE k {sources}");
            assert_eq!(sent(&mut client, &server, &line), [""; 0], "{line}");
            client.error(&line);
        }
        let [one, late] = ["one", "late"].map(|key| client.dump(key));
        let reply = client.call(&[format!("{family}.MERGEDUMP").as_bytes(), b"k", &one, &late]);
        assert!(error_text(&reply).is_some_and(|error| error.starts_with("ERR payload 2: ")), "{}", show(&reply));
        assert_eq!(client.text("DEBUG DIGEST"), before);
        client.expect(&format!("{family}.MERGE k one two"), "+OK");
        assert_eq!(["one", "two"].map(|item| exists(&mut client, family, item)), [true, true]);
        let (prefix, slice) = (sent_as(family), SLICE + 1);
        let effects = sent(&mut client, &server, &format!("{family}.MERGE alone late"));
        assert_eq!(effects, [format!("{prefix}.MERGE alone late"), format!("{prefix}.ADVANCE alone {slice} REBASE")]);
        assert_eq!(window(&mut client, family, "alone"), format!("40 4 {slice} system"));
        let digest = client.text("DEBUG DIGEST");
        client.expect("DEBUG LOADAOF", "+OK");
        assert_eq!(client.text("DEBUG DIGEST"), digest);
    }
}

/// A window that changes to the system clock advances to the clock's slice at once, and frees what has expired by then.
#[test]
fn running_on_the_clock_frees_what_has_expired() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let (server, mut client) = appending(clock.setup()).with_client();
        client.expect(&reserve(family, "empty", WINDOW), "+OK");
        let empty = client.list(&format!("{family}.INFO empty SIZE"));
        // Windows with the manual clock: at slice 0, far in the past, and a little ahead of the system clock.
        for (slice, move_of) in [(0, ""), (SLICE - 100, ""), (SLICE + 7, " REBASE")] {
            client.cmd("DEL k");
            client.expect(&reserve(family, "k", &format!("{WINDOW} MANUAL")), "+OK");
            client.expect(&format!("{family}.ADVANCE k {slice}"), "+OK");
            let many = if family == "BF" { "BF.MADD k" } else { "LC.ADD k" };
            rollcall_testkit::add_many(&mut client, many, "x", 0..2000);
            let effects = sent(&mut client, &server, &format!("{family}.ADVANCE k CLOCK"));
            let (prefix, clock_slice) = (sent_as(family), SLICE);
            let expected = [format!("{prefix}.ADVANCE k CLOCK"), format!("{prefix}.ADVANCE k {clock_slice}{move_of}")];
            assert_eq!(effects, expected, "{family} {slice}");
            assert_eq!(window(&mut client, family, "k"), format!("40 4 {SLICE} system"));
            let is_forgotten = move_of.is_empty();
            assert_eq!(count(&mut client, family) == 0, is_forgotten);
            if family == "LC" {
                let mode = if is_forgotten { "[\"exact\"]" } else { "[\"estimate\"]" };
                client.expect("LC.INFO k MODE", mode);
            } else {
                assert_eq!(show(&client.list("BF.INFO k FILTERS")[0]) == "0", is_forgotten);
            }
            assert_eq!(client.list(&format!("{family}.INFO k SIZE")) == empty, is_forgotten);
            let digest = client.digest("k");
            client.expect("DEBUG LOADAOF", "+OK");
            assert_eq!(client.digest("k"), digest);
        }
        // If the window uses the system clock already, the command advances it as the next change would.
        client.cmd("DEL k");
        client.expect(&reserve(family, "k", WINDOW), "+OK");
        client.cmd(&format!("{family}.ADD k a"));
        clock.pass(50);
        let effects = sent(&mut client, &server, &format!("{family}.ADVANCE k CLOCK"));
        assert_eq!(effects, [format!("{}.ADVANCE k {}", sent_as(family), SLICE + 5)]);
        assert_eq!(client.list(&format!("{family}.INFO k SIZE")), empty);
        assert!(sent(&mut client, &server, &format!("{family}.ADVANCE k CLOCK")).is_empty());
    }
}
