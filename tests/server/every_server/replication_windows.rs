//! Tests windows on primaries and replicas with different clocks: the values are equal, whatever the clocks say.

use crate::every_server::commands_volatile::{SLICE, START};
use crate::every_server::commands_windows::{FAMILIES, is_new, reserve, window};
use crate::every_server::commands_windows_clock::{WINDOW, YEAR, exists};
use crate::neighbour::neighbour;
use rollcall_fuzz::random::Random;
use rollcall_testkit::{Clock, Pair, Setup, lines, pack, words};

/// A primary and a replica with a clock each. The replica's AOF shows which commands it received.
fn pair(primary: &Clock, replica: &Clock) -> Pair {
    let pair = Pair::of(primary.setup(), replica.setup().line("appendonly yes").line("appendfsync always"));
    // The AOF is rewritten after the first synchronisation. From then on it shows all received commands.
    pair.replica.wait_for_aof();
    pair
}

/// A module deletes the key at the event of the window's move. The deletion was once replicated before the items that
/// made the window move, so the replica had a key with these items.
#[test]
fn a_module_may_delete_the_key_at_any_event() {
    for (create, add, event) in [
        ("BF.RESERVE k 0.01 100 WINDOW 40", "BF.ADD k", "bf.advance"),
        ("LC.RESERVE k WINDOW 40", "LC.ADD k", "lc.advance"),
    ] {
        let here = Clock::at(START + 3);
        let pair = Pair::of(here.setup().hosted_by(neighbour(), ""), Setup::default());
        let mut client = pair.primary.client();
        client.expect(create, "+OK");
        client.expect(&format!("{add} x"), "1");
        client.expect(&format!("HOST.DELETE {event}"), "1");
        here.pass(10);
        client.expect(&format!("{add} y"), "1");
        client.expect("EXISTS k", "0");
        pair.assert_equal(event);
    }
}

/// A replica reads by its own clock. It takes over in the middle of a slice, with a clock that is slightly or far off,
/// and the old primary becomes its replica.
#[test]
fn a_replica_reads_by_its_own_clock_and_goes_on_by_it() {
    for family in FAMILIES {
        for ahead in [-(YEAR as i64), -25, -10, -3, 0, 3, 10, 25] {
            let (here, there) = (Clock::at(START + 5), Clock::at((START + 5).saturating_add_signed(ahead)));
            let pair = pair(&here, &there);
            let mut client = pair.primary.client();
            client.expect(&reserve(family, "k", WINDOW), "+OK");
            for item in ["a", "b"] {
                assert!(is_new(&mut client, family, "k", item));
                here.pass(10);
                there.pass(10);
            }
            pair.assert_equal("items");
            let mut other = pair.replica.client();
            // The present slice is the later one of the stored slice and that of the replica's clock.
            let slice = (there.now() / 10).max(SLICE + 1);
            assert_eq!(window(&mut other, family, "k"), format!("40 4 {slice} system"));
            assert!(exists(&mut client, family, "a"));
            assert_eq!(exists(&mut other, family, "a"), ahead < 25, "{family} {ahead}");
            // Reading has changed nothing.
            pair.assert_equal("reading");
            other.expect("REPLICAOF NO ONE", "+OK");
            assert!(exists(&mut other, family, "b"));
            assert!(is_new(&mut other, family, "k", "c"));
            // A write that the old primary accepted alone is lost, together with its advance.
            assert!(is_new(&mut client, family, "k", "lost"));
            let swapped = Pair { primary: pair.replica, replica: pair.primary };
            swapped.replica.replicate(&swapped.primary);
            swapped.assert_equal("promotion");
            // By the new primary's clock, no item expires early, and all expire in the end.
            there.pass(10);
            assert!(is_new(&mut other, family, "k", "d"));
            swapped.assert_equal("a write on the new primary");
            let found = ["b", "c", "d"].map(|item| exists(&mut other, family, item));
            assert_eq!(found, [ahead < 25, true, true], "{family} {ahead}");
            there.pass(30);
            assert!(exists(&mut other, family, "c") && exists(&mut other, family, "d"), "{family} {ahead}");
            there.pass(30);
            assert!(!["a", "b", "c", "d"].map(|item| exists(&mut other, family, item)).iter().any(|is| *is));
            assert!(is_new(&mut other, family, "k", "e"));
            swapped.assert_equal("a gap");
        }
    }
}

/// On a writable replica, clients may have moved a window further than the replicated commands do.
#[test]
fn a_writable_replica_may_be_ahead() {
    for family in FAMILIES {
        let (here, there) = (Clock::at(START), Clock::at(START));
        let mut pair = pair(&here, &there);
        let mut client = pair.primary.client();
        client.expect(&reserve(family, "k", &format!("{WINDOW} MANUAL")), "+OK");
        client.expect(&reserve(family, "gone", &format!("{WINDOW} MANUAL")), "+OK");
        assert!(is_new(&mut client, family, "k", "a"));
        pair.assert_equal("an item");
        let mut other = pair.replica.client();
        other.expect("CONFIG SET replica-read-only no", "+OK");
        other.expect(&format!("{family}.ADVANCE k 9"), "+OK");
        other.expect("DEL gone", "1");
        for slice in [3, 9, 9] {
            client.expect(&format!("{family}.ADVANCE k {slice}"), "+OK");
            client.expect(&format!("{family}.ADVANCE gone {slice}"), "+OK");
            pair.replica.wait_synced(&pair.primary);
            assert_eq!(window(&mut other, family, "k"), "40 4 9 manual");
        }
        client.expect(&format!("{family}.ADVANCE gone CLOCK"), "+OK");
        assert!(is_new(&mut client, family, "k", "b"));
        pair.replica.wait_synced(&pair.primary);
        assert!(exists(&mut other, family, "b"));
        other.expect("EXISTS gone", "0");
        pair.assert_no_errors();
    }
}

/// Replicated commands never ask a clock. A command that comes too late, or whose key is missing, does nothing.
#[test]
fn replicated_commands_ask_no_clock() {
    let lines = lines(
        "BF.ADVANCE missing 170000000; BF.ADVANCE missing 170000000 REBASE; LC.ADVANCE missing 170000000
         LC.ADVANCE missing CLOCK; BF.RESERVE k 0.001 100 WINDOW 40 SLICES 4 SLICE 170000000; BF.ADD k a
         BF.ADVANCE k 170000002; BF.ADVANCE k 170000001; BF.ADD k b
         BF.INSERT l WINDOW 40 SLICES 4 REFRESH SLICE 170000003 ITEMS a b; BF.ADVANCE l 190000000; BF.ADD l c
         BF.ADVANCE l 170000003 REBASE; LC.INSERT c EXACT 250 WINDOW 40 SLICES 4 SLICE 170000000 ITEMS a
         LC.ADVANCE c 170000001; LC.ADD c a b; LC.ADVANCE c 170000004; LC.ADD c c
         LC.RESERVE d WINDOW 40 MANUAL SLICES 4 SLICE 17; LC.ADD d a; SET text x",
    );
    let aof: Vec<u8> = lines.into_iter().flat_map(|line| pack(&words(line))).collect();
    for now in [5, START - YEAR, START, START + 20, START + YEAR] {
        let clock = Clock::at(now);
        let (mut server, mut client) =
            clock.setup().line("appendonly yes").file("appendonly.aof", &aof).start().with_client();
        client.expect("EXISTS missing", "0");
        client.expect("DBSIZE", "5");
        // The loaded values are queried at the time of their last slices.
        for round in ["loaded", "loaded again"] {
            clock.set(START + 25);
            client.expect("BF.MEXISTS k a b z", "[1, 1, 0]");
            client.expect("BF.INFO k SLICE", "[170000002]");
            clock.set(START + 40);
            assert_eq!(window(&mut client, "BF", "l"), "40 4 170000004 system", "{round} at {now}");
            client.expect("BF.MEXISTS l a b c", "[0, 0, 1]");
            client.expect("LC.MEXISTS c a b c", "[1, 1, 1]");
            clock.set(START + 60);
            client.expect("LC.MEXISTS c a b c", "[0, 0, 1]");
            client.expect("BF.MEXISTS k a b z", "[0, 1, 0]");
            assert_eq!(window(&mut client, "LC", "d"), "40 4 17 manual");
            clock.set(now);
            server.restart();
            client = server.client();
        }
    }
}

/// Random commands at random times. The clocks of both sides advance, stand still, jump ahead by minutes or years, and
/// come back.
#[test]
fn random_sessions_on_clocks_that_jump_leave_the_replica_equal() {
    let (here, there) = (Clock::at(START), Clock::at(START + 17));
    let mut pair =
        Pair::of(here.setup().line("appendonly yes").args("bf-initial-size 20 lc-exact-limit 12"), there.setup());
    let mut client = pair.primary.client();
    let mut random = Random::new(4242);
    for round in 0..4000 {
        for clock in [&here, &there] {
            match random.below(40) {
                0..6 => clock.pass(random.below(15)),
                6 => clock.pass(random.below(100)),
                7 => clock.pass(YEAR),
                8 | 9 => clock.set(START + random.below(400)),
                _ => {}
            }
        }
        let family = ["BF", "LC"][random.below(2) as usize];
        let key = |n: u64| format!("{}{n}", family.to_lowercase());
        let (target, other) = (key(random.below(6)), key(random.below(6)));
        let items: Vec<_> = (0..=random.below(30)).map(|_| format!("i{}", random.below(400))).collect();
        let items = items.join(" ");
        let options = match random.below(14) {
            0..3 => "WINDOW 40 SLICES 4",
            3 => "WINDOW 400 SLICES 40",
            4 => "WINDOW 40 SLICES 4 MANUAL",
            5 if family == "BF" => "WINDOW 40 SLICES 4 REFRESH",
            6 if family == "BF" => "WINDOW 40 SLICES 4 MANUAL REFRESH",
            8 => "WINDOW 7",
            9 if family == "BF" => "CAPACITY 10 NONSCALING",
            9 => "ERROR 0.2 EXACT 5",
            10 if family == "BF" => "CAPACITY 10 EXPANSION 3 ERROR 0.1",
            10 => "EXACT 0",
            11 => "SEED 5",
            _ => "",
        };
        let line = match random.below(26) {
            0 => format!("DEL {target}"),
            1 | 2 => format!("{family}.MERGE {target} {other}"),
            3 => format!("{family}.MERGE {target} {other} {}", key(random.below(6))),
            4 => format!("{family}.CLEAR {target}"),
            5 => format!("RENAME {target} {other}"),
            6 => format!("COPY {target} {other} REPLACE"),
            7 => format!("{family}.ADVANCE {target} {}", random.below(60)),
            8 => format!("{family}.ADVANCE {target} {}", here.now() / 10),
            9 if random.below(4) == 0 => format!("{family}.ADVANCE {target} CLOCK"),
            10..16 => format!("{family}.INSERT {target} {options} ITEMS {items}"),
            24 if family == "BF" => format!("BF.RESERVE {target} 0.05 15 NONSCALING"),
            24 => format!("LC.RESERVE {target} EXACT 3"),
            25 if family == "BF" => format!("BF.INSERT {target} NOCREATE ITEMS {items}"),
            25 => format!("LC.REM {target} {items}"),
            16..19 => {
                // The clocks pass years, and the digest of all keys has those that have expired.
                let flags = ["", "ALL", "DRYRUN", "ALL EX 10000000000"][random.below(4) as usize];
                format!("{family}.ADMIT {target} LIMIT {} {flags} {options} ITEMS {items}", random.below(60))
            }
            _ if family == "BF" => format!("BF.MADD {target} {items}"),
            _ => format!("LC.ADD {target} {items}"),
        };
        client.cmd(&line);
        if round % 20 == 0 {
            pair.assert_equal(&format!("round {round}: {line}"));
        }
        if round % 1000 == 999 {
            let before = client.text("DEBUG DIGEST");
            if round % 2000 == 999 {
                pair.primary.rewrite_aof();
            }
            pair.primary.restart();
            client = pair.primary.client();
            assert_eq!(client.text("DEBUG DIGEST"), before, "restarted in round {round}");
            pair.replica.replicate(&pair.primary);
        }
    }
    pair.assert_equal("all");
    pair.assert_no_errors();
}
