//! Measures the time to create, store and remove many small keys.

use std::time::{Duration, Instant};

use super::keys::{Kind, key, requests};
use crate::measure::{Bench, Goal, NEAR, NEVER_BEHIND, Row, Samples, server_time};
use crate::servers::Server;

const FILTER: Kind = Kind::Filter { capacity: 100, items: 10 };
const COUNTER: Kind = Kind::Counter(10);
const SET: Kind = Kind::Set(10);

/// The longest time that one step may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// The kinds of work, each with its unit.
const WORK: [(&str, &str); 11] = [
    ("creating one, 10 items in it", "µs a call"),
    ("SAVE", "s"),
    ("loading them (DEBUG RELOAD NOSAVE)", "s"),
    ("BGREWRITEAOF into commands", "s"),
    ("BGREWRITEAOF into an RDB preamble", "s"),
    ("full sync to a replica", "s"),
    ("FLUSHALL", "s"),
    ("DEL of one", "µs a call"),
    ("UNLINK of one", "µs a call"),
    ("expiry of one, found by EXISTS", "µs a call"),
    ("expiry of all, found by the server", "s"),
];

/// Compares filters with RedisBloom's, and counters with sets. Each round has servers of its own: where its memory lies
/// makes one process up to a fifth slower than another. The times to remove filters differ most, so they are measured in
/// twice as many rounds. Creating, saving and loading come with that.
pub fn run(bench: &mut Bench, ours: &Server, peer: &Server) {
    let (rounds, keys) = (bench.pick(1, 6), bench.pick(10_000, 100_000));
    let mut replicas = [ours.another(), peer.another()];
    let mut samples = [(); 4].map(|()| WORK.map(|_| Samples::default()));
    for round in 0..rounds {
        let mut servers = [ours.another(), peer.another()];
        for (pair, kinds) in [[FILTER, FILTER], [COUNTER, SET]].into_iter().enumerate() {
            for (at, (server, replica)) in servers.iter_mut().zip(&mut replicas).enumerate() {
                let samples = &mut samples[2 * pair + at];
                create(server, kinds[at], keys, samples);
                store(server, replica, keys, samples);
                remove(server, keys, samples);
            }
            bench.step(2 + 3 * (2 * round + pair) / (3 * rounds), 10);
        }
    }
    for round in 0..rounds {
        for (at, server) in [ours.another(), peer.another()].iter_mut().enumerate() {
            create(server, FILTER, keys, &mut samples[at]);
            remove(server, keys, &mut samples[at]);
        }
        bench.step(2 + 3 * (2 * rounds + round + 1) / (3 * rounds), 10);
    }
    let pairs = [("filters of 100", NEVER_BEHIND, "RedisBloom"), ("counters of 10", NEAR, "set")];
    for (pair, (name, goal, other)) in pairs.into_iter().enumerate() {
        for (index, (work, unit)) in WORK.into_iter().enumerate() {
            let [ours, theirs] = [0, 1].map(|at| samples[2 * pair + at][index].median());
            bench.rows.push(Row {
                work: format!("{keys} {name}: {work}"),
                goal: match (pair, index) {
                    // The server looks for expired keys in steps, and this waits until the last one: too coarse for a
                    // goal.
                    _ if work.starts_with("expiry of all") => Goal::Shown,
                    // A set is no module's value: the server stores and frees it without asking a module.
                    (1, 1..) => Goal::Shown,
                    _ => goal,
                },
                ours,
                other: Some((other, theirs)),
                unit,
            });
        }
    }
}

/// The samples of every kind of [`WORK`].
type Life = [Samples; WORK.len()];

/// Creates the keys in an empty server, and saves them.
fn create(server: &mut Server, kind: Kind, keys: u64, samples: &mut Life) {
    let [created, saved, ..] = samples;
    created.push(server_time(server, &kind.command(), &[], &requests(keys, |number| kind.request(number))));
    saved.push(seconds(|| drop(server.call("SAVE"))));
}

/// Writes the keys to append-only files and to a replica.
fn store(server: &mut Server, replica: &mut Server, keys: u64, samples: &mut Life) {
    let [_, _, _, rewritten, rewritten_rdb, synced, ..] = samples;
    server.call("CONFIG SET hz 500");
    for (samples, preamble) in [(rewritten, "no"), (rewritten_rdb, "yes")] {
        server.call(&format!("CONFIG SET aof-use-rdb-preamble {preamble}"));
        samples.push(seconds(|| rewrite(server)));
    }
    server.call("CONFIG SET repl-diskless-sync-delay 0");
    synced.push(seconds(|| sync(server, replica)));
    assert_eq!(replica.call("DBSIZE").number(), keys as f64, "the replica has other keys");
    replica.call("REPLICAOF NO ONE");
    replica.call("FLUSHALL SYNC");
    server.call("CONFIG SET hz 10");
}

/// Removes the keys in every way, and loads what [`create`] saved in between. The server is empty afterwards.
fn remove(server: &mut Server, keys: u64, samples: &mut Life) {
    let [_, _, loaded, _, _, _, flushed, deleted, unlinked, expired, gone] = samples;
    let all = |words: fn(String) -> Vec<String>| requests(keys, |number| words(key(number)));
    flushed.push(seconds(|| drop(server.call("FLUSHALL SYNC"))));
    let mut reload = |server: &mut Server| {
        loaded.push(seconds(|| drop(server.call("DEBUG RELOAD NOSAVE"))));
        assert_eq!(server.call("DBSIZE").number(), keys as f64, "not all keys were loaded");
    };
    reload(server);
    deleted.push(server_time(server, "DEL", &[], &all(|key| vec!["DEL".to_owned(), key])));
    reload(server);
    unlinked.push(server_time(server, "UNLINK", &[], &all(|key| vec!["UNLINK".to_owned(), key])));
    let until = |milliseconds: u64| move |key| vec!["PEXPIRE".to_owned(), key, milliseconds.to_string()];
    for (samples, by_server) in [(expired, false), (gone, true)] {
        reload(server);
        server.call("DEBUG SET-ACTIVE-EXPIRE 0");
        server.client.run(&requests(keys, |number| until(1)(key(number))));
        std::thread::sleep(Duration::from_millis(5));
        if by_server {
            samples.push(seconds(|| {
                server.call("DEBUG SET-ACTIVE-EXPIRE 1");
                wait_for("all keys to expire", || server.call("DBSIZE").number() == 0.0);
            }));
        } else {
            samples.push(server_time(server, "EXISTS", &[], &all(|key| vec!["EXISTS".to_owned(), key])));
            server.call("DEBUG SET-ACTIVE-EXPIRE 1");
        }
        assert_eq!(server.call("DBSIZE").number(), 0.0, "keys are left");
    }
}

fn rewrite(server: &mut Server) {
    server.call("BGREWRITEAOF");
    wait_for("the append-only file", || {
        let info = server.call("INFO persistence").text();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    assert!(server.call("INFO persistence").text().contains("aof_last_bgrewrite_status:ok"), "the rewrite failed");
}

fn sync(server: &Server, replica: &mut Server) {
    replica.call(&format!("REPLICAOF {}", server.address()));
    wait_for("the replica", || replica.call("INFO replication").text().contains("master_link_status:up"));
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
