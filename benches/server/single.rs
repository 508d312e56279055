//! Measures calls with one item, 100 calls pipelined. So the fixed cost of a command dominates.

use crate::batch::{LOOKS, fill, looks};
use crate::items::{ABSENT, Source, calls};
use crate::measure::{Bench, Goal, NEAR, NEVER_BEHIND, Row, Samples, server_time, throughput};
use crate::resp::Batch;
use crate::servers::Server;

const PIPELINED: usize = 100;
const FILTER: &str = "single:bf";
const COUNTER: &str = "single:lc";
const LOG: &str = "single:hll";
const CAPACITY: u64 = 100_000;
const FILLED: u64 = 50_000;

/// A command of Rollcall, and the commands that it is compared with.
struct Work {
    name: &'static str,
    command: &'static str,
    key: &'static str,
    items: Items,
    /// The command that measures the lower bound of the goal.
    floor: &'static str,
    change: Option<&'static str>,
    peer: bool,
}

#[derive(Clone, Copy)]
enum Items {
    New,
    Absent,
    Present,
    None,
}

const WORK: [Work; 8] = [
    bloom("BF.ADD, new", "BF.ADD", Items::New),
    bloom("BF.ADD, seen", "BF.ADD", Items::Present),
    bloom("BF.EXISTS, absent", "BF.EXISTS", Items::Absent),
    bloom("BF.EXISTS, present", "BF.EXISTS", Items::Present),
    counting("LC.ADD, new", "LC.ADD", Items::New),
    counting("LC.ADD, seen", "LC.ADD", Items::Present),
    counting("LC.COUNT", "LC.COUNT", Items::None),
    Work { name: "PFADD, new", command: "PFADD", key: LOG, items: Items::New, floor: "", change: None, peer: false },
];

const fn bloom(name: &'static str, command: &'static str, items: Items) -> Work {
    let mut work = counting(name, command, items);
    work.key = FILTER;
    work.peer = true;
    work
}

const fn counting(name: &'static str, command: &'static str, items: Items) -> Work {
    // LC.COUNT only reads. Adding an item that is there opens the key for writing, but propagates nothing.
    let floor = match (command.as_bytes()[3], items) {
        (b'A', _) => "BENCH.WRITE",
        (_, Items::None) => "BENCH.COUNT",
        _ => "BENCH.READ",
    };
    let change = if matches!(items, Items::New) { Some("BENCH.CHANGE") } else { None };
    Work { name, command, key: COUNTER, items, floor, change, peer: false }
}

impl Work {
    /// Whether this is a command of Rollcall that looks up items.
    fn has_items(&self) -> bool {
        !self.floor.is_empty() && !matches!(self.items, Items::None)
    }

    fn batches(&self, command: &str, round: usize, count: usize) -> Vec<Batch> {
        let mut source = match self.items {
            Items::New => Source::From((round as u64 + 1) << 32),
            Items::Absent => Source::From(ABSENT + ((round as u64) << 24)),
            Items::Present => Source::below(FILLED, round as u64),
            Items::None => return calls(&[command, self.key], &mut Source::From(0), count, 0, PIPELINED),
        };
        calls(&[command, self.key], &mut source, count, 1, PIPELINED)
    }
}

/// Number of pairs of servers in a full run. Where its memory lies makes one process up to a tenth slower than another, so
/// a single pair would not do.
const PAIRS: usize = 5;

/// Measures the server's time per call.
pub fn run(bench: &mut Bench) {
    // Ours, RedisBloom's, and the floors: the plain one, the one with a change, the one that looks at the item's line.
    let mut samples = WORK.map(|_| [(); 5].map(|()| Samples::default()));
    let count = bench.pick(10_000, 20_000);
    let rounds = bench.rounds();
    let mut pair = None;
    for round in 0..rounds {
        bench.step(round, rounds);
        if round % rounds.div_ceil(PAIRS) == 0 {
            pair = None;
        }
        let (ours, peer) = pair.get_or_insert_with(|| (bench.ours.another(), bench.peer.another()));
        for (work, samples) in WORK.iter().zip(&mut samples) {
            prepare(ours, peer);
            let real = work.batches(work.command, round, count);
            // A filter is warmed by reading, which does not change it. A counter is a few lines of memory, which any
            // call warms.
            let warm_by = if work.key == FILTER { "BF.EXISTS" } else { "BENCH.READ" };
            let warm = |command| calls(&[command, work.key], &mut Source::below(FILLED, !0), 3000, 1, PIPELINED);
            let (warm, warm_floor) = (warm(warm_by), warm("BENCH.READ"));
            samples[0].push(server_time(ours, work.command, &warm, &real));
            if work.peer {
                samples[1].push(server_time(peer, work.command, &warm, &real));
            }
            if work.has_items() {
                let size = if work.key == FILTER { "131128" } else { "4608" };
                ours.call(&format!("BENCH.BITMAPS 1 {size}"));
            }
            let looking = work.has_items().then(|| looks(work.command, matches!(work.items, Items::Present)));
            for (at, floor) in [(2, Some(work.floor)), (3, work.change), (4, looking)] {
                if let Some(floor) = floor.filter(|floor| !floor.is_empty()) {
                    let batches = work.batches(floor, round, count);
                    samples[at].push(server_time(ours, floor, &warm_floor, &batches));
                }
            }
        }
    }
    for (work, samples) in WORK.iter().zip(&samples) {
        let [ours, peer, floor, change, looking] = [0, 1, 2, 3, 4].map(|contender| samples[contender].median());
        let row = |goal, other| Row { work: format!("{}, one item", work.name), goal, ours, other, unit: "µs a call" };
        if work.peer {
            bench.rows.push(row(NEVER_BEHIND, Some(("RedisBloom", peer))));
        }
        if work.floor.is_empty() {
            bench.rows.push(row(Goal::Shown, None));
        } else {
            // A command with items has to do more than this floor does.
            let goal = if work.has_items() { Goal::Shown } else { NEAR };
            bench.rows.push(row(goal, Some(("opens, replies", floor))));
        }
        if work.has_items() {
            bench.rows.push(row(NEAR, Some((LOOKS, looking))));
        }
        if work.change.is_some() {
            bench.rows.push(row(Goal::Shown, Some(("opens, propagates, replies", change))));
        }
    }
}

/// Creates the keys again: filters are half full, counters are dense.
fn prepare(ours: &mut Server, peer: &mut Server) {
    for server in [&mut *ours, peer] {
        server.call(&format!("DEL {FILTER} {COUNTER} {LOG}"));
        server.call(&format!("BF.RESERVE {FILTER} 0.01 {CAPACITY}"));
        fill(server, FILTER, &mut Source::From(0), FILLED);
    }
    for key in [["LC.ADD", COUNTER], ["PFADD", LOG]] {
        ours.client.run(&calls(&key, &mut Source::From(0), FILLED as usize / 500, 500, 4));
    }
}

/// Measures end to end: one thread of this program keeps the server busy and reads its replies.
pub fn run_throughput(bench: &mut Bench) {
    let kinds = [
        ("BF.MADD", "BENCH.REPLY", crate::items::PER_CALL, 4, bench.pick(500, 1000)),
        ("BF.ADD", "BENCH.CHANGE", 1, PIPELINED, bench.pick(50_000, 100_000)),
    ];
    let rounds = bench.rounds();
    for (at, (command, floor, items, pipelined, count)) in kinds.into_iter().enumerate() {
        let mut samples = [(); 4].map(|()| Samples::default());
        let batches = |command| calls(&[command, FILTER], &mut Source::From(1 << 32), count, items, pipelined);
        let (real, nothing, looking) = (batches(command), batches(floor), batches(looks(command, false)));
        for round in 0..rounds {
            bench.step(at * rounds + round, kinds.len() * rounds);
            for (server, samples) in [&mut bench.ours, &mut bench.peer].into_iter().zip(&mut samples) {
                server.call(&format!("DEL {FILTER}"));
                server.call(&format!("BF.RESERVE {FILTER} 0.01 1000000"));
                // The filter is half full, so that its memory is resident.
                fill(server, FILTER, &mut Source::From(0), 500_000);
                samples.push(1e6 / throughput(server, &real));
            }
            samples[2].push(1e6 / throughput(&mut bench.ours, &nothing));
            bench.ours.call("BENCH.BITMAPS 1 1310720");
            samples[3].push(1e6 / throughput(&mut bench.ours, &looking));
        }
        let [ours, peer, floor, looking] = samples.map(|samples| samples.median());
        let work = format!("end to end: {command}, {items} new, n = 1M, p = 0.01, one client thread");
        let row = |goal, other| Row { work: work.clone(), goal, ours, other: Some(other), unit: "µs a call" };
        bench.rows.push(row(NEVER_BEHIND, ("RedisBloom", peer)));
        bench.rows.push(row(NEAR, (LOOKS, looking)));
        bench.rows.push(row(Goal::Shown, ("does nothing", floor)));
    }
}
