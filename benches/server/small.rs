//! Row 7 of docs/benchmarks.md, and bytes of keys: many small filters.

use std::fs;
use std::time::{Duration, Instant};

use rollcall_fuzz::random::Random;
use rollcall_testkit::wait_until;

use crate::contenders::{Contender, Pair, medians};
use crate::items::{Call, Items, call, calls};
use crate::report::{Goal, Report};

/// Creates `count` filters of this capacity at p = 0.01, with `items` items each. Returns the server's mean time of a
/// call.
fn create(contender: &mut Contender, capacity: usize, items: usize, count: usize) -> f64 {
    let mut source = Items::new(1);
    let mut microseconds = 0.0;
    // Calls are built in batches, to limit this program's memory.
    for start in (0..count).step_by(10_000) {
        let end = count.min(start + 10_000);
        let one = |key| {
            calls(&format!("BF.INSERT {} CAPACITY {capacity} ERROR 0.01 ITEMS", name(key)), &mut source, 1, items)
        };
        let filters: Vec<Call> = (start..end).flat_map(one).collect();
        microseconds += contender.time(&[], &filters) * (end - start) as f64;
    }
    microseconds / count as f64
}

/// A key with a name of 9 bytes.
fn name(key: usize) -> String {
    format!("k{key:08}")
}

fn seconds(contender: &mut Contender, command: &str) -> f64 {
    let start = Instant::now();
    contender.client.expect(command, "+OK");
    start.elapsed().as_secs_f64()
}

/// Row 7. Memory placement makes some processes up to a fifth slower, so each round has a new pair of servers.
pub fn life(report: &mut Report) {
    let (rounds, keys) = (report.pick(1, 5), report.pick(10_000, 100_000));
    let round = |_| {
        Pair::start().round(|contender| {
            let created = create(contender, 100, 10, keys);
            let saved = seconds(contender, "SAVE");
            let flushed = seconds(contender, "FLUSHALL SYNC");
            let loaded = seconds(contender, "DEBUG RELOAD NOSAVE");
            assert_eq!(contender.client.int("DBSIZE"), keys as i64, "not all keys were loaded");
            let all: Vec<Call> = (0..keys).map(|key| call(&format!("UNLINK {}", name(key)))).collect();
            [created, 1e3 * saved, 1e3 * loaded, contender.time(&[], &all), 1e3 * flushed]
        })
    };
    let [created, saved, loaded, unlinked, flushed] = medians(&(0..rounds).map(round).collect::<Vec<_>>());
    let [added, absent] = one_of_many(report);
    for (work, least, figures, unit) in [
        ("creating a filter of 100, with 10 items", 1.0, created, "µs"),
        ("BF.ADD, one new item, of one of a million filters of 100", 1.0, added, "µs"),
        ("BF.EXISTS, one absent item, of one of a million filters of 100", 1.0, absent, "µs"),
        ("SAVE of 100,000 filters of 100", 1.0, saved, "ms"),
        ("loading 100,000 filters of 100", 1.0, loaded, "ms"),
        ("UNLINK of one of 100,000 filters of 100", 0.9, unlinked, "µs"),
        ("FLUSHALL of 100,000 filters of 100", 0.9, flushed, "ms"),
    ] {
        report.row("7", work, Goal::Times(least), figures, unit);
    }
}

/// Measures calls with one item, each to a random one of a million filters, so that cache misses dominate. Several
/// pairs of servers are measured, because memory placement changes times by up to a fifth.
fn one_of_many(report: &Report) -> [[f64; 2]; 2] {
    let (pairs, rounds, count) = (report.pick(1, 3), report.pick(2, 5), report.pick(5_000, 20_000));
    let keys = report.pick(50_000, 1_000_000);
    let (mut random, mut figures) = (Random::new(1), Vec::new());
    for _ in 0..pairs {
        let mut pair = Pair::start();
        pair.round(|contender| [create(contender, 100, 10, keys)]);
        for round in 0..rounds {
            figures.push(pair.round(|contender| {
                // The commands use different keys. Otherwise the first command would bring the keys of the second
                // into the caches.
                [("BF.ADD", 100u64), ("BF.EXISTS", 200)].map(|(command, seed)| {
                    let mut items = Items::new(seed + round);
                    let mut one = |_| calls(&format!("{command} {}", name(random.below(keys))), &mut items, 1, 1);
                    let all: Vec<Call> = (0..count).flat_map(&mut one).collect();
                    contender.time(&[], &all)
                })
            }));
        }
    }
    medians(&figures)
}

/// The bytes that a full filter adds to `used_memory` and to an RDB file.
pub fn bytes(report: &mut Report) {
    let mut pair = Pair::start();
    for (capacity, count) in [(10, 16_000), (100, 16_000), (1_000, 2_000), (100_000, 30)] {
        let count = count / report.pick(4, 1);
        let figures = pair.round(|contender| {
            // The server rehashes its table of keys for one millisecond of each tick, so more ticks finish it sooner.
            contender.client.expect("CONFIG SET hz 500", "+OK");
            let before = settled(contender);
            create(contender, capacity, capacity, count);
            let after = settled(contender);
            contender.client.expect("FLUSHALL SYNC", "+OK");
            [0, 1].map(|at| (after[at] - before[at]) / count as f64)
        });
        let [memory, file] = medians(&[figures]);
        report.row(
            "bytes",
            &format!("used_memory of a full filter of {capacity} at p = 0.01"),
            Goal::Times(1.0),
            memory,
            "bytes",
        );
        report.row(
            "bytes",
            &format!("RDB file of a full filter of {capacity} at p = 0.01"),
            Goal::Times(1.0),
            file,
            "bytes",
        );
    }
}

/// Waits until `used_memory` changes by less than a kibibyte. Returns it, and the bytes of the RDB file.
pub fn settled(contender: &mut Contender) -> [f64; 2] {
    contender.client.expect("SAVE", "+OK");
    let file = fs::metadata(contender.server.dir().join("dump.rdb")).expect("SAVE writes a file").len();
    // A new connection frees the buffers of earlier requests and replies.
    contender.client = contender.server.client();
    let mut last = 0;
    let memory = wait_until("used_memory to stand still", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = contender.client.info_number("used_memory");
        ((std::mem::replace(&mut last, now) - now).abs() <= 1024).then_some(now)
    });
    [memory as f64, file as f64]
}
