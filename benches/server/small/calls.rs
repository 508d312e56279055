//! Measures calls with one item, each to another of a million small keys, so that cache misses dominate.

use super::keys::{Kind, PIPELINED, key, make, member};
use crate::batch::{LOOKS, looks};
use crate::items::scramble;
use crate::measure::{Bench, Goal, NEAR, NEVER_BEHIND, Row, Samples, server_time};
use crate::misses;
use crate::resp::Batch;
use crate::servers::Server;

/// A kind of call: its name, Rollcall's command, the kind of items that it gets, and the competitors.
struct Work {
    name: &'static str,
    command: &'static str,
    items: Items,
    others: &'static [Other],
}

#[derive(Clone, Copy, PartialEq)]
enum Items {
    New,
    Absent,
    Present,
    None,
}

/// A competitor: its name, its command, the database with its keys, and Rollcall's goal.
struct Other(&'static str, &'static str, u8, Goal);

/// Numbers of databases in the other server.
const SETS: u8 = 1;
const LOGS: u8 = 2;

const FILTERS: [Work; 4] = [
    Work {
        name: "BF.ADD, new",
        command: "BF.ADD",
        items: Items::New,
        others: &[Other("RedisBloom", "BF.ADD", 0, NEVER_BEHIND)],
    },
    Work {
        name: "BF.ADD, seen",
        command: "BF.ADD",
        items: Items::Present,
        others: &[Other("RedisBloom", "BF.ADD", 0, NEVER_BEHIND)],
    },
    Work {
        name: "BF.EXISTS, absent",
        command: "BF.EXISTS",
        items: Items::Absent,
        others: &[Other("RedisBloom", "BF.EXISTS", 0, NEVER_BEHIND)],
    },
    Work {
        name: "BF.EXISTS, present",
        command: "BF.EXISTS",
        items: Items::Present,
        others: &[Other("RedisBloom", "BF.EXISTS", 0, NEVER_BEHIND)],
    },
];

const COUNTERS: [Work; 3] = [
    Work {
        name: "LC.ADD, new",
        command: "LC.ADD",
        items: Items::New,
        others: &[Other("SADD", "SADD", SETS, Goal::Shown), Other("PFADD", "PFADD", LOGS, Goal::Shown)],
    },
    Work {
        name: "LC.ADD, seen",
        command: "LC.ADD",
        items: Items::Present,
        others: &[
            Other("SADD", "SADD", SETS, Goal::Shown),
            Other("SISMEMBER", "SISMEMBER", SETS, Goal::Shown),
            Other("PFADD", "PFADD", LOGS, Goal::Shown),
        ],
    },
    Work {
        name: "LC.COUNT",
        command: "LC.COUNT",
        items: Items::None,
        others: &[Other("SCARD", "SCARD", SETS, Goal::Shown), Other("PFCOUNT", "PFCOUNT", LOGS, Goal::Shown)],
    },
];

/// The capacity of the filter with this number, from 10 to 100. The filter is half full.
fn capacity(number: u64) -> u64 {
    10 + scramble(number) % 91
}

/// The number of members of the counter with this number, from 1 to 10.
fn members(number: u64) -> u64 {
    1 + scramble(number) % 10
}

/// Compares filters with RedisBloom's, then counters with sets and HyperLogLogs.
pub fn run(bench: &mut Bench, ours: &mut Server, peer: &mut Server) {
    let keys = bench.pick(20_000, 1_000_000);
    let half_full = |number| Kind::Filter { capacity: capacity(number), items: capacity(number) / 2 };
    make(&mut ours.client, keys, half_full);
    make(&mut peer.client, keys, half_full);
    bench.step(6, 10);
    // The bitmaps of the lower bound are as large as the bitmaps of all filters: 96 bytes of bits per filter of 55
    // items, on average.
    measure(bench, ours, peer, &FILTERS, keys, &format!("{keys} filters of 10 to 100"), |number| {
        scramble(!number) % (capacity(number) / 2)
    });
    bench.step(7, 10);
    for server in [&mut *ours, &mut *peer] {
        server.call("FLUSHALL SYNC");
    }
    make(&mut ours.client, keys, |number| Kind::Counter(members(number)));
    for (database, kind) in [(SETS, Kind::Set as fn(u64) -> Kind), (LOGS, Kind::Log as fn(u64) -> Kind)] {
        peer.call(&format!("SELECT {database}"));
        make(&mut peer.client, keys, |number| kind(members(number)));
    }
    bench.step(9, 10);
    measure(bench, ours, peer, &COUNTERS, keys, &format!("{keys} counters of 1 to 10"), |number| {
        scramble(!number) % members(number)
    });
}

/// Measures several kinds of work. `present` returns an item that the key with a given number has.
fn measure(
    bench: &mut Bench,
    ours: &mut Server,
    peer: &mut Server,
    work: &[Work],
    keys: u64,
    name: &str,
    present: impl Fn(u64) -> u64,
) {
    let (rounds, calls) = (bench.rounds(), bench.pick(4_000, 20_000));
    ours.call(&format!("BENCH.BITMAPS 1 {}", keys * 96));
    let countable = misses::Counter::start(ours.process()).and_then(misses::Counter::stop).is_some();
    // Ours, the floor, and the others. For each also the cache misses.
    let mut times: Vec<Vec<Samples>> =
        work.iter().map(|work| vec![Samples::default(); 2 + work.others.len()]).collect();
    let mut missed = times.clone();
    for round in 0..rounds {
        for (index, work) in work.iter().enumerate() {
            // Each contender gets keys of its own: what one has read is in the caches that the next one uses.
            let chosen = |contender: usize| -> Vec<(u64, u64)> {
                let start = scramble(((round * 16 + index) * 8 + contender) as u64);
                (0..calls)
                    .map(|call| {
                        let number = scramble(start.wrapping_add(call as u64 + 1)) % keys;
                        let item = match work.items {
                            Items::Present => present(number),
                            Items::New => 50_000 + ((round * calls) as u64 + call as u64) % 50_000,
                            Items::Absent | Items::None => 20_000,
                        };
                        (number, item)
                    })
                    .collect()
            };
            let floor = match work.items {
                Items::None => "BENCH.COUNT",
                items => looks(work.command, items == Items::Present),
            };
            let (times, missed) = (&mut times[index], &mut missed[index]);
            let own = [work.command, floor].into_iter().map(|command| (command, None));
            let others = work.others.iter().map(|Other(_, command, database, _)| (*command, Some(*database)));
            for (at, (command, database)) in own.chain(others).enumerate() {
                let server = match database {
                    None => &mut *ours,
                    Some(database) => {
                        peer.call(&format!("SELECT {database}"));
                        &mut *peer
                    }
                };
                let batches = requests(command, &chosen(at), work.items != Items::None);
                let counter = countable.then(|| misses::Counter::start(server.process())).flatten();
                times[at].push(server_time(server, command, &[], &batches));
                if let Some(misses) = counter.and_then(misses::Counter::stop) {
                    missed[at].push(misses / calls as f64);
                }
            }
        }
    }
    let mut lines = Vec::new();
    for ((work, times), missed) in work.iter().zip(&times).zip(&missed) {
        let floor = if work.items == Items::None { "opens, replies" } else { LOOKS };
        let others = work.others.iter().map(|Other(name, _, _, goal)| (*name, *goal));
        let compared: Vec<(&'static str, Goal)> = [(floor, NEAR)].into_iter().chain(others).collect();
        for (at, (other, goal)) in compared.iter().enumerate() {
            bench.rows.push(Row {
                work: format!("one item of one of {name}: {}", work.name),
                goal: *goal,
                ours: times[0].median(),
                other: Some((other, times[at + 1].median())),
                unit: "µs a call",
            });
        }
        let names = ["ours"].into_iter().chain(compared.iter().map(|(name, _)| *name));
        let figures = names.zip(missed).map(|(name, samples)| format!("{name} {:.1}", samples.median()));
        lines.push(vec![work.name.to_owned(), figures.collect::<Vec<_>>().join(", ")]);
    }
    if missed.iter().flatten().all(|samples| samples.median().is_finite()) {
        bench.extra(&format!("Cache misses a call, of the whole server process, {name}"), &["work", "misses"], &lines);
    }
}

/// Batches with one request for each key and item.
fn requests(command: &str, chosen: &[(u64, u64)], with_items: bool) -> Vec<Batch> {
    let batch = |chosen: &[(u64, u64)]| {
        let mut batch = Batch::default();
        for &(number, index) in chosen {
            let item = with_items.then(|| member(number, index));
            batch.push_items(&[command, &key(number)], item.iter());
        }
        batch
    };
    chosen.chunks(PIPELINED as usize).map(batch).collect()
}
