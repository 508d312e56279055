//! Tests LC.REM, which removes members of an exact counter, and what replicas, the AOF and subscribers get of it.

use crate::effects::{appending, sent};
use crate::events::{events, subscriber};
use crate::every_server::commands_volatile::{SLICE, START, WINDOW, expiry_of};
use rollcall_testkit::{Clock, Server, Setup, session};

const ESTIMATES: &str =
    "-ERR counter holds an estimate: members are kept only up to its EXACT limit of 2 members and 16384 bytes";

#[test]
fn removing_members_keeps_the_key() {
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    session(&[
        ("LC.REM missing a b", "0", "0"),
        ("EXISTS missing", "0", "0"),
        ("LC.INSERT k EXACT 7 EX 1000 ITEMS a b c '' d", "5", "5"),
        ("LC.REM k z", "0", "0"),
        ("LC.REM k c z c ''", "2", "2"),
        ("LC.MEMBERS k", "[\"a\", \"b\", \"d\"]", "[\"a\", \"b\", \"d\"]"),
        ("LC.MEXISTS k a c", "[1, 0]", "[#t, #f]"),
        ("LC.REM k d b a", "3", "3"),
        ("LC.COUNT k", "0", "0"),
        ("LC.MEMBERS k", "[]", "[]"),
        ("LC.INFO k EXACT", "[7]", "{\"Exact limit\": 7}"),
        ("EXPIRE k 1000 LT", "0", "0"),
        ("LC.REM k a", "0", "0"),
        ("LC.ADD k e", "1", "1"),
        ("LC.INSERT estimate EXACT 2 ITEMS a b c", "3", "3"),
        ("LC.REM estimate a", ESTIMATES, ESTIMATES),
        ("LC.REM estimate z", ESTIMATES, ESTIMATES),
        ("LC.COUNT estimate", "3", "3"),
        ("BF.ADD f a", "1", "#t"),
        ("LC.REM f a", wrong_type, wrong_type),
    ]);
}

/// `LC.REM` frees places that `LC.ADMIT` gave away.
#[test]
fn a_removed_member_makes_room() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.ADMIT k LIMIT 2 ITEMS a b c", "[1, 1, -1]");
    client.expect("LC.REM k a", "1");
    client.expect("LC.ADMIT k LIMIT 2 ITEMS c a", "[1, -1]");
    client.expect("LC.MEMBERS k", "[\"b\", \"c\"]");
    // Removing a member also frees a place within the EXACT limit.
    client.expect("LC.INSERT e EXACT 2 ITEMS a b", "2");
    client.expect("LC.REM e b", "1");
    client.expect("LC.ADD e c", "1");
    client.expect("LC.INFO e MODE", "[\"exact\"]");
    // A merge adds removed members again if the other counter has them.
    client.expect("LC.ADD other a x", "2");
    client.expect("LC.MERGE e other", "+OK");
    client.expect("LC.COUNT e", "3");
}

/// Only removed members are replicated, and nothing if none was removed.
#[test]
fn only_removed_members_are_replicated() {
    let mut server = appending(Setup::default().line("notify-keyspace-events KEA"));
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    client.expect("LC.ADD k a b c d e f g", "7");
    client.expect("LC.INSERT estimate EXACT 2 ITEMS a b c", "3");
    client.expect("LC.RESERVE empty", "+OK");
    for line in ["LC.REM k x y", "LC.REM missing a", "LC.REM estimate a", "LC.REM empty a"] {
        assert!(sent(&mut client, &server, line).is_empty(), "{line}");
    }
    crate::events::events_so_far(&mut client, &mut subscriber);
    for line in ["LC.REM k x y", "LC.REM missing a", "LC.REM estimate a", "LC.REM empty a"] {
        assert!(!events(&mut client, &mut subscriber, line).contains(&"lc.rem k".to_owned()), "{line}");
    }
    assert_eq!(sent(&mut client, &server, "LC.REM k x b a b y"), ["LC.REM k b a"]);
    assert_eq!(events(&mut client, &mut subscriber, "LC.REM k c x"), ["lc.rem k", "lc.rem k"]);
    let script = "EVAL return(redis.call('LC.REM',KEYS[1],'x','d','d')) 1 k";
    assert_eq!(sent(&mut client, &server, script), ["LC.REM k d"]);
    client.expect_each("MULTI => +OK; LC.REM k e => +QUEUED; LC.REM k e f => +QUEUED; LC.REM estimate a => +QUEUED");
    assert_eq!(sent(&mut client, &server, "EXEC"), ["LC.REM k e", "LC.REM k f"]);
    client.expect("LC.MEMBERS k", "[\"g\"]");
    let digests = ["k", "estimate"].map(|key| client.digest(key));
    server.restart();
    let mut client = server.client();
    assert_eq!(["k", "estimate"].map(|key| client.digest(key)), digests);
}

#[test]
fn a_member_goes_from_whatever_slice_it_was_seen_in() {
    let clock = Clock::at(START);
    let (server, mut client) = appending(clock.setup()).with_client();
    for (item, seconds) in [("a", 10), ("b", 10), ("c", 10), ("d", 0)] {
        client.cmd(&format!("LC.INSERT k {WINDOW} ITEMS {item}"));
        clock.pass(seconds);
    }
    let expire = |slice: u64| format!("PEXPIREAT k {}", expiry_of(slice));
    assert_eq!(client.int("PEXPIRETIME k"), expiry_of(SLICE + 3));
    // Within the newest slice, a removal changes neither the window nor the expiry.
    assert_eq!(sent(&mut client, &server, "LC.REM k b x"), ["LC.REM k b"]);
    // In a later slice, a removal advances the window and renews the expiry, unless nothing is removed. By then `a`
    // has expired.
    clock.set(START + 50);
    assert!(sent(&mut client, &server, "LC.REM k a x").is_empty());
    assert_eq!(client.int("PEXPIRETIME k"), expiry_of(SLICE + 3));
    let moved = format!("LC.ADVANCE k {}", SLICE + 5);
    assert_eq!(sent(&mut client, &server, "LC.REM k a d"), [&*moved, "LC.REM k d", &expire(SLICE + 5)]);
    client.expect("LC.MEMBERS k", "[\"c\"]");
    // Removing the last member leaves an empty counter, whose expiry is unchanged.
    assert_eq!(sent(&mut client, &server, "LC.REM k c"), ["LC.REM k c"]);
    client.expect("LC.COUNT k", "0");
    client.expect("LC.INFO k WINDOW", "[40]");
    assert_eq!(client.int("PEXPIRETIME k"), expiry_of(SLICE + 5));
    clock.set(START + 100);
    client.expect("EXISTS k", "0");
}
