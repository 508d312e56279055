//! Tests VOLATILE: a windowed key that expires when its last item does. The test sets the server's clock.

use crate::effects::{appending, sent, sent_as};
use crate::events::{events, subscriber};
use crate::every_server::commands_windows::FAMILIES;
use rollcall_testkit::{Client, Clock, Pair, Server, show};

/// A slice of windows with slices of ten seconds. `START` is the Unix time at which it begins.
pub const SLICE: u64 = 170_000_000;
pub const START: u64 = SLICE * 10;

/// A window of 40 seconds in slices of ten. An item expires 40 seconds after the end of its slice.
pub const WINDOW: &str = "WINDOW 40 SLICES 4 VOLATILE";

/// The expiry of a key whose newest slice is `slice`, in Unix milliseconds. The server deletes the key in the next
/// millisecond, when the fifth slice after `slice` begins.
pub fn expiry_of(slice: u64) -> i64 {
    i64::try_from((slice + 5) * 10_000).expect("a time") - 1
}

/// Two commands that create the volatile key if it is missing, and add an item to it.
fn writing(family: &str, item: &str) -> [String; 2] {
    [format!("{family}.INSERT k {WINDOW} ITEMS {item}"), format!("{family}.ADMIT k LIMIT 9 {WINDOW} ITEMS {item}")]
}

#[track_caller]
fn expires_at(client: &mut Client) -> i64 {
    client.int("PEXPIRETIME k")
}

fn start(now: u64) -> (Clock, Server, Client) {
    let clock = Clock::at(now);
    let server = appending(clock.setup());
    let client = server.client();
    (clock, server, client)
}

#[test]
fn a_volatile_key_expires_with_its_last_item() {
    for (family, form) in FAMILIES.iter().flat_map(|family| [(family, 0), (family, 1)]) {
        let (clock, server, mut client) = start(START + 7);
        let exists = format!("{family}.EXISTS k a");
        client.run(&writing(family, "a")[form]);
        assert_eq!(expires_at(&mut client), expiry_of(SLICE));
        client.expect(&format!("{family}.INFO k VOLATILE"), "[1]");
        clock.set(START + 49);
        client.expect(&exists, "1");
        clock.set(START + 50);
        client.expect("EXISTS k", "0");
        client.expect(&exists, "0");
        // After the key has expired, the same command creates it again.
        client.run(&writing(family, "a")[form]);
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 5));
        // A write in a later slice renews the expiry.
        for slices in 1..12 {
            clock.set(START + 50 + slices * 10 + slices % 10);
            client.run(&writing(family, &format!("b{slices}"))[form]);
            assert_eq!(expires_at(&mut client), expiry_of(SLICE + 5 + slices));
        }
        client.expect(&exists, "0");
        client.expect(&format!("{family}.EXISTS k b8"), "1");
        drop(server);
    }
}

#[test]
fn the_expiry_is_set_once_a_slice_after_the_advance() {
    for family in FAMILIES {
        let (clock, server, mut client) = start(START);
        let [insert, admit] = writing(family, "a");
        let advance = |slice: u64| format!("{}.ADVANCE k {slice}", sent_as(family));
        let expire = |slice: u64| format!("PEXPIREAT k {}", expiry_of(slice));
        let effects = sent(&mut client, &server, &insert);
        assert_eq!((effects.len(), &effects[1]), (2, &expire(SLICE)), "{effects:?}");
        assert!(effects[0].contains(" VOLATILE SLICE "), "{effects:?}");
        // Other writes in the same slice do not set the expiry again.
        clock.pass(9);
        for line in writing(family, "b").iter().chain([&format!("{family}.ADD k c"), &insert, &admit]) {
            let effects = sent(&mut client, &server, line);
            assert!(effects.iter().all(|effect| !effect.contains("PEXPIREAT")), "{line}: {effects:?}");
        }
        // In a later slice, commands that change nothing do not set the expiry.
        clock.pass(1);
        for line in [format!("{family}.ADMIT k LIMIT 1 {WINDOW} ITEMS z"), format!("{family}.EXISTS k a")] {
            assert!(sent(&mut client, &server, &line).is_empty(), "{line}");
        }
        for (line, slices) in [
            (format!("{family}.ADD k d"), 1),
            (writing(family, "e")[0].clone(), 2),
            (writing(family, "f")[1].clone(), 3),
        ] {
            clock.set(START + slices * 10);
            let effects = sent(&mut client, &server, &line);
            assert_eq!(effects.len(), 3, "{effects:?}");
            assert_eq!((&effects[0], &effects[2]), (&advance(SLICE + slices), &expire(SLICE + slices)));
        }
        // A client advances the window.
        clock.set(START + 45);
        let line = format!("{family}.ADVANCE k {}", SLICE + 4);
        assert_eq!(sent(&mut client, &server, &line), [advance(SLICE + 4), expire(SLICE + 4)]);
        assert!(sent(&mut client, &server, &line).is_empty());
        // The clock jumps ahead, a window follows, and the clock returns.
        clock.set(START);
        let effects = sent(&mut client, &server, &format!("{family}.ADD k g"));
        assert_eq!((&effects[0], effects.last()), (&format!("{} REBASE", advance(SLICE)), Some(&expire(SLICE))));
    }
}

/// Each new expiry time causes an event, after the event of the write.
#[test]
fn each_expiry_is_reported() {
    for (family, form) in FAMILIES.iter().flat_map(|family| [(family, 0), (family, 1)]) {
        let clock = Clock::at(START);
        let server = clock.setup().line("notify-keyspace-events KEA").start();
        let (mut client, mut subscriber) = (server.client(), subscriber(&server));
        let name = family.to_lowercase();
        let [reserved, advanced, added] = ["reserve", "advance", "add"].map(|verb| format!("{name}.{verb} k"));
        for (seconds, item, expected) in [
            (0, "a", &[&*reserved, &added, "expire k"][..]),
            (0, "b", &[&added]),
            (10, "c", &[&advanced, &added, "expire k"]),
            (0, "d", &[&added]),
        ] {
            clock.pass(seconds);
            assert_eq!(events(&mut client, &mut subscriber, &writing(family, item)[form]), expected);
        }
    }
}

#[test]
fn the_expiry_is_set_even_if_an_item_fails() {
    let (many, large) = ((0..2000).map(|number| format!("y{number}")).collect::<Vec<_>>(), "x".repeat((1 << 20) - 100));
    for (family, options, failing) in [
        ("BF", "CAPACITY 1000 EXPANSION 20000", many.iter().map(String::as_str).collect()),
        ("LC", "EXACT 65536 BYTES 1048576", vec!["y0", &large, "z"]),
    ] {
        let clock = Clock::at(START);
        let (server, mut client) = appending(clock.setup().args("max-key-bytes 1048576")).with_client();
        let insert = |items: &[&str]| format!("{family}.INSERT k {options} {WINDOW} ITEMS {}", items.join(" "));
        client.run(&insert(&["a"]));
        clock.pass(10);
        let effects = sent(&mut client, &server, &insert(&failing));
        assert_eq!(effects.len(), 3, "{family}");
        assert_eq!(effects[0], format!("{}.ADVANCE k {}", sent_as(family), SLICE + 1));
        let last = failing.last().expect("an item");
        assert!(effects[1].contains(" y0") && !effects[1].contains(&format!(" {last}")), "only what went in");
        assert_eq!(effects[2], format!("PEXPIREAT k {}", expiry_of(SLICE + 1)));
        assert!(show(&client.cmd(&insert(&failing))).contains("max-key-bytes"));
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 1));
        if family == "LC" {
            // The window advances before the first item is rejected, so the expiry is renewed.
            clock.pass(10);
            let effects = sent(&mut client, &server, &format!("LC.ADD k {large}"));
            let moved = [format!("LC.ADVANCE k {}", SLICE + 2), format!("PEXPIREAT k {}", expiry_of(SLICE + 2))];
            assert!(effects == moved, "{} effects", effects.len());
        }
    }
}

#[test]
fn a_manual_expiry_holds_until_the_next_advance() {
    for family in FAMILIES {
        let (clock, _server, mut client) = start(START);
        client.run(&writing(family, "a")[0]);
        client.expect("PERSIST k", "1");
        client.run(&format!("{family}.ADD k b"));
        assert_eq!(expires_at(&mut client), -1);
        client.expect("EXPIRE k 7", "1");
        client.run(&format!("{family}.ADD k c"));
        assert_eq!(expires_at(&mut client), ((START + 7) * 1000) as i64);
        client.expect("PERSIST k", "1");
        clock.pass(10);
        client.run(&format!("{family}.ADD k d"));
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 1));
        // CLEAR keeps the flag and the expiry.
        client.expect(&format!("{family}.CLEAR k"), "+OK");
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 1));
        client.expect(&format!("{family}.INFO k VOLATILE"), "[1]");
        // COPY and RENAME keep the flag and the expiry.
        client.expect("COPY k copy", "1");
        client.expect("RENAME copy k", "+OK");
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 1));
        client.expect(&format!("{family}.INFO k VOLATILE"), "[1]");
        // A restored value has the time to live that RESTORE sets.
        let payload = client.dump("k");
        client.call(&[&b"RESTORE"[..], b"k", b"0", &payload, b"REPLACE"]);
        assert_eq!(expires_at(&mut client), -1);
        clock.pass(10);
        client.run(&format!("{family}.ADD k e"));
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 2));
    }
}

/// Two values that differ only in the flag have different digests. A key that moves to another server keeps the flag
/// and the expiry.
#[test]
fn the_volatile_flag_is_part_of_the_value() {
    for family in FAMILIES {
        let (clock, server, mut client) = start(START);
        client.run(&writing(family, "a")[0]);
        client.run(&format!("{family}.INSERT lasting {} ITEMS a", WINDOW.replace(" VOLATILE", "")));
        client.run(&writing(family, "a")[0].replace(" k ", " same "));
        let digests = ["k", "lasting", "same"].map(|key| client.digest(key));
        assert!(digests[0] == digests[2] && digests[0] != digests[1], "{family}: {digests:?}");
        let to = clock.setup().start();
        client.expect(&format!("MIGRATE 127.0.0.1 {} k 0 5000", to.port()), "+OK");
        let mut client = to.client();
        assert_eq!((client.digest("k"), expires_at(&mut client)), (digests[0].clone(), expiry_of(SLICE)));
        client.expect(&format!("{family}.INFO k VOLATILE"), "[1]");
        clock.pass(10);
        client.run(&format!("{family}.ADD k b"));
        assert_eq!(expires_at(&mut client), expiry_of(SLICE + 1));
        drop(server);
    }
}

#[test]
fn a_merge_keeps_the_volatile_flag_of_the_destination() {
    for family in FAMILIES {
        let (clock, server, mut client) = start(START);
        let lasting = WINDOW.replace(" VOLATILE", "");
        client.run(&writing(family, "a")[0]);
        client.run(&format!("{family}.INSERT lasting {lasting} ITEMS b"));
        client.expect(&format!("{family}.INFO lasting VOLATILE"), "[0]");
        client.expect(&format!("{family}.MERGE lasting k"), "+OK");
        client.expect("PEXPIRETIME lasting", "-1");
        client.expect(&format!("{family}.MERGE k lasting"), "+OK");
        assert_eq!(expires_at(&mut client), expiry_of(SLICE));
        // A key that a merge creates is volatile if its first source is.
        for (line, is_volatile) in [("new k lasting", 1), ("other lasting k", 0)] {
            let (key, _) = line.split_once(' ').expect("keys");
            let effects = sent(&mut client, &server, &format!("{family}.MERGE {line}"));
            assert_eq!(effects.len(), 1 + is_volatile, "{effects:?}");
            client.expect(&format!("{family}.INFO {key} VOLATILE"), &format!("[{is_volatile}]"));
            client.expect(
                &format!("PEXPIRETIME {key}"),
                &if is_volatile == 1 { expiry_of(SLICE) } else { -1 }.to_string(),
            );
        }
        // A merge that advances the window renews the expiry.
        clock.pass(20);
        client.run(&format!("{family}.ADD lasting c"));
        let effects = sent(&mut client, &server, &format!("{family}.MERGE k lasting"));
        assert_eq!(effects.last(), Some(&format!("PEXPIREAT k {}", expiry_of(SLICE + 2))), "{effects:?}");
    }
}

#[test]
fn loading_keeps_the_expiry_and_drops_expired_keys() {
    for family in FAMILIES {
        let (clock, server, mut client) = start(START);
        client.run(&writing(family, "a")[0]);
        let chunks = client.chunks(family, "k");
        let digest = client.digest("k");
        for (seconds, remains) in [(0, true), (30, true), (20, false)] {
            clock.pass(seconds);
            client.cmd("DEL k");
            chunks.iter().for_each(|chunk| assert_eq!(client.load(family, "k", chunk), redis::Value::Okay));
            client.expect("EXISTS k", &i64::from(remains).to_string());
            if remains {
                assert_eq!((expires_at(&mut client), client.digest("k")), (expiry_of(SLICE), digest.clone()));
            }
        }
        drop(server);
    }
}

#[test]
fn the_expiry_survives_restarts_and_failover() {
    let lines = FAMILIES.map(|family| writing(family, "a")[0].replace(" k ", &format!(" {family} ")));
    let clock = Clock::at(START);
    let mut pair = Pair::of(clock.setup().line("appendonly yes"), clock.setup());
    let mut client = pair.primary.client();
    lines.iter().for_each(|line| client.run(line));
    clock.pass(10);
    FAMILIES.iter().for_each(|family| client.run(&format!("{family}.ADD {family} b")));
    pair.assert_equal("moves");
    let check = |client: &mut Client, slice: u64| {
        for family in FAMILIES {
            client.expect(&format!("PEXPIRETIME {family}"), &expiry_of(slice).to_string());
            client.expect(&format!("{family}.INFO {family} VOLATILE"), "[1]");
        }
    };
    check(&mut pair.replica.client(), SLICE + 1);
    pair.assert_no_errors();
    // The values survive a restart from appended commands, from a rewritten AOF, and from an RDB file.
    for preamble in ["no", "yes"] {
        pair.primary.restart();
        check(&mut pair.primary.client(), SLICE + 1);
        pair.primary.client().expect(&format!("CONFIG SET aof-use-rdb-preamble {preamble}"), "+OK");
        pair.primary.rewrite_aof();
    }
    pair.primary.restart();
    check(&mut pair.primary.client(), SLICE + 1);
    let mut replica = pair.replica.client();
    replica.expect("REPLICAOF NO ONE", "+OK");
    clock.pass(10);
    FAMILIES.iter().for_each(|family| replica.run(&format!("{family}.ADD {family} c")));
    check(&mut replica, SLICE + 2);
}

#[test]
fn volatile_needs_the_system_clock_and_insert_or_admit() {
    let (_server, mut client) = Server::start().with_client();
    for family in FAMILIES {
        let parameters = if family == "BF" { "0.01 100" } else { "" };
        for (line, expected) in [
            (
                format!("RESERVE k {parameters} WINDOW 10 VOLATILE"),
                "option VOLATILE goes with INSERT and ADMIT: once the key has expired, ADD would make one without \
                 a window",
            ),
            ("INSERT k VOLATILE ITEMS a".to_owned(), "option VOLATILE needs option WINDOW"),
            ("ADMIT k LIMIT 1 VOLATILE ITEMS a".to_owned(), "option VOLATILE needs option WINDOW"),
            (
                "INSERT k WINDOW 10 MANUAL VOLATILE ITEMS a".to_owned(),
                "option MANUAL does not go with VOLATILE: nobody knows when it will be empty",
            ),
            (
                "INSERT k VOLATILE WINDOW 10 EX 10 ITEMS a".to_owned(),
                "option VOLATILE does not go with EX, PX, EXAT and PXAT: the key expires once it is empty",
            ),
            ("INSERT k WINDOW 10 VOLATILE VOLATILE ITEMS a".to_owned(), "option VOLATILE is given twice"),
        ] {
            assert_eq!(client.error(&format!("{family}.{line}")), format!("ERR {expected}"));
        }
    }
    client.expect("EXISTS k", "0");
    for (line, expected) in [("BF.ADD plain a", "BF"), ("LC.ADD counter a", "LC")] {
        client.run(line);
        let key = line.split(' ').nth(1).expect("a key");
        client.expect(&format!("{expected}.INFO {key} VOLATILE"), "[nil]");
    }
}
