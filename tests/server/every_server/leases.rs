//! Tests leases: `LC.ADMIT` acquires and renews, `LC.REM` releases, and a lease that is not renewed expires.
//!
//! Acknowledged holders survive a crash and a failover, and so do acknowledged releases.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::effects::{appending, sent};
use rollcall_testkit::{Client, Clock, Pair, Setup, show, text, wait_until, with_items, words};

/// A Unix time at which a slice of five seconds begins, and the number of that slice.
const START: u64 = 5 * SLICE;
const SLICE: u64 = 340_000_000;

#[test]
fn a_call_renews_a_known_holder_and_nothing_else() {
    let clock = Clock::at(START);
    let (server, mut client) = appending(clock.setup()).with_client();
    let admit = |holders: &str| format!("LC.ADMIT seats LIMIT 2 WINDOW 30 SLICES 6 VOLATILE ITEMS {holders}");
    client.expect(&admit("a b c"), "[1, 1, -1]");
    clock.set(START + 29);
    client.expect(&admit("c"), "[-1]");
    let effects = sent(&mut client, &server, &admit("a"));
    let expiry = |slice: u64| format!("PEXPIREAT seats {}", (slice + 7) * 5000 - 1);
    assert_eq!(effects, [format!("LC.ADVANCE seats {}", SLICE + 5), "LC.ADD seats a".into(), expiry(SLICE + 5)]);
    client.expect("LC.COUNTSINCE seats 1", "1");
    // A renewal within the same slice changes nothing.
    assert!(sent(&mut client, &server, &admit("a")).is_empty());
    client.expect(&admit("a c"), "[0, -1]");
    // A holder that does not renew loses its seat after the window plus at most one slice.
    clock.set(START + 34);
    client.expect(&admit("c"), "[-1]");
    clock.set(START + 35);
    client.expect(&admit("c b a"), "[1, -1, 0]");
    client.expect("LC.REM seats a", "1");
    client.expect("LC.REM seats a", "0");
    client.expect(&admit("b"), "[1]");
    clock.set(START + 69);
    client.expect("LC.COUNT seats", "2");
    clock.set(START + 70);
    client.expect("EXISTS seats", "0");
}

/// The limit, and the options of a key that does not expire during a test.
const ADMIT: &str = "LC.ADMIT seats LIMIT 10 WINDOW 3000 SLICES 6 VOLATILE ITEMS";

/// The acknowledged state of holders.
#[derive(Default)]
struct Acknowledged {
    held: BTreeSet<String>,
    released: BTreeSet<String>,
}

/// Acquires and releases until the server is gone. A change counts as acknowledged once the command `confirm` after
/// it has a reply too.
fn acquire_and_release(mut client: Client, name: usize, confirm: &str, releases: &AtomicUsize) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let mut run = |line: &str| {
        let replies = client.try_pipeline(&[words(line), words(confirm)]);
        (replies.len() == 2).then(|| show(&replies[0]))
    };
    for number in 0.. {
        let holder = format!("holder-{name}-{number}");
        match run(&format!("{ADMIT} {holder}")).as_deref() {
            Some("[1]") => _ = acknowledged.held.insert(holder),
            Some(reply) => assert_eq!(reply, "[-1]"),
            None => break,
        }
        if acknowledged.held.len() == 3
            && let Some(holder) = acknowledged.held.pop_first()
        {
            match run(&format!("LC.REM seats {holder}")).as_deref() {
                Some(reply) => assert_eq!(reply, "1"),
                None => break,
            }
            acknowledged.released.insert(holder);
            releases.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}

/// Runs four clients until `kill` ends their server, and returns what was acknowledged to any of them.
fn until_killed(clients: [Client; 4], confirm: &str, kill: impl FnOnce()) -> Acknowledged {
    let releases = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let start = |(name, client)| scope.spawn(move || acquire_and_release(client, name, confirm, releases));
        let threads: Vec<_> = clients.into_iter().enumerate().map(start).collect();
        wait_until("releases", || (releases.load(Ordering::Relaxed) > 50).then_some(()));
        kill();
        let mut all = Acknowledged::default();
        for thread in threads {
            let Acknowledged { mut held, mut released } = thread.join().expect("a client");
            all.held.append(&mut held);
            all.released.append(&mut released);
        }
        all
    })
}

/// Checks that the server has every acknowledged holder, none that was released, at most the limit, and an expiry.
fn check(client: &mut Client, acknowledged: &Acknowledged) {
    let members: BTreeSet<String> = client.list("LC.MEMBERS seats").iter().map(text).collect();
    let Acknowledged { held, released } = acknowledged;
    assert!(!held.is_empty() && !released.is_empty());
    assert!(held.is_subset(&members), "of {held:?} only {members:?} are left");
    assert!(released.is_disjoint(&members), "released, and back: {members:?}");
    assert!(members.len() <= 10, "{members:?}");
    assert!((1..=3500).contains(&client.int("TTL seats")));
    client.call(&with_items(ADMIT, "new", 0..20));
    client.expect("LC.COUNT seats", "10");
}

#[test]
fn no_acknowledged_holder_is_lost_in_a_crash() {
    let mut server = appending(Setup::default());
    for _ in 0..3 {
        let clients = [(); 4].map(|()| server.client());
        let acknowledged = until_killed(clients, "PING", || server.kill());
        server.start_again();
        let mut client = server.client();
        check(&mut client, &acknowledged);
        client.expect("DEL seats", "1");
    }
}

#[test]
fn no_acknowledged_holder_is_lost_in_a_failover() {
    let Pair { mut primary, replica } = Pair::start();
    let clients = [(); 4].map(|()| primary.client());
    let acknowledged = until_killed(clients, "WAIT 1 0", || primary.kill());
    let mut client = replica.client();
    client.expect("REPLICAOF NO ONE", "+OK");
    check(&mut client, &acknowledged);
}
