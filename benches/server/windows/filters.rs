//! Measures calls with 350 items on windowed filters, compared with a filter without a window, and with the lower
//! bound.

use super::{Window, of_sub_filters, today};
use crate::batch::{LOOKS, fill};
use crate::items::{ABSENT, PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEAR, Row, Samples, server_time};
use crate::resp::Batch;

/// A windowed filter that is measured, in several copies that are used in turn.
struct Case {
    name: &'static str,
    window: Window,
    copies: usize,
    /// Number of calls per round and copy, for each kind of work.
    calls: usize,
    /// Whether the filter fits in a cache. Such a filter is created again for each round.
    is_small: bool,
}

const CASES: [Case; 3] = [
    Case { name: "1,000", window: Window { capacity: 1000, ..FOUR }, copies: 20, calls: 1, is_small: true },
    Case { name: "50,000", window: FOUR, copies: 1, calls: 20, is_small: true },
    Case { name: "50M", window: Window { capacity: 50_000_000, ..FOUR }, copies: 1, calls: 40, is_small: false },
];
const FOUR: Window = Window { capacity: 50_000, rate: 0.001, slices: 4 };

/// The three kinds of work: Rollcall's command, its items, and the command that measures the lower bound.
const WORK: [(&str, &str, &str); 3] = [
    ("BF.MEXISTS", "absent", "BENCH.PROBE"),
    ("BF.MEXISTS", "present", "BENCH.PROBE"),
    ("BF.MADD", "new", "BENCH.FILLLAST"),
];

/// Measures all windows, then the solutions that users build from filters without a window.
pub fn run(bench: &mut Bench) {
    let (rounds, parts) = (bench.rounds(), CASES.len() + 1);
    for (at, case) in CASES.iter().enumerate() {
        measure(bench, case, at * rounds, parts * rounds);
    }
    today::run(bench, CASES.len() * rounds, parts * rounds);
}

impl Case {
    fn keys(&self, kind: &str) -> Vec<String> {
        (0..self.copies).map(|copy| format!("windows:{kind}:{copy}")).collect()
    }

    /// Batches of calls, sent one after another to each copy in turn.
    fn batches(&self, command: &str, keys: &[String], source: &mut Source, calls_a_key: usize) -> Vec<Batch> {
        let rounds = (0..calls_a_key).flat_map(|_| keys);
        rounds.flat_map(|key| calls(&[command, key], source, 1, PER_CALL, 1)).collect()
    }
}

fn measure(bench: &mut Bench, case: &Case, done: usize, all: usize) {
    let Case { name, window, calls: calls_a_key, is_small, .. } = case;
    let rounds = bench.rounds();
    let added = (calls_a_key * PER_CALL) as u64;
    let all_added = if *is_small { added } else { added * rounds as u64 };
    // A quick run cannot wait for this number of items.
    let older = if *is_small { window.share() } else { bench.pick(400_000, window.share()) };
    let plain_items = (older * window.slices).min(window.capacity - all_added);
    let (windowed, plain) = (case.keys("ring"), case.keys("plain"));
    // Ours, the plain one, the floor.
    let mut samples = [(); 3].map(|()| [(); 3].map(|()| Samples::default()));
    let mut present = 0;
    let mut new = 1 << 32;
    for round in 0..rounds {
        bench.step(done + round, all);
        let server = &mut bench.ours;
        if *is_small || round == 0 {
            for (ring, plain) in windowed.iter().zip(&plain) {
                server.call(&format!("DEL {ring} {plain}"));
                present = window.make(server, ring, older, older / 4);
                server.call(&format!("BF.RESERVE {plain} {} {}", window.rate, window.capacity));
                fill(server, plain, &mut Source::From(0), plain_items);
            }
        }
        // The lower bound has bitmaps as large as all copies together.
        let sizes = of_sub_filters(server, &windowed[0], "bytes").into_iter().map(|bytes| bytes * case.copies as u64);
        let sizes = sizes.map(|bytes| bytes.to_string()).collect::<Vec<_>>().join(" ");
        let lines = of_sub_filters(server, &windowed[0], "lines_per_item").pop().unwrap_or(1);
        let seed = round as u64 + 1;
        // Only items that both have are present ones.
        let both = present.min(plain_items);
        let sources = [Source::From(ABSENT + new), Source::below(both, seed), Source::From(new)];
        let warm = |command: &str, keys: &[String]| {
            case.batches(command, keys, &mut Source::below(both, !seed), 20 / case.copies)
        };
        let warm_floor = warm("BENCH.REPLY", &windowed);
        for (kind, (command, _, floor)) in WORK.into_iter().enumerate() {
            let batches = |command: &str, keys| case.batches(command, keys, &mut sources[kind].clone(), *calls_a_key);
            for (keys, samples) in [&windowed, &plain].into_iter().zip(&mut samples[kind]) {
                samples.push(server_time(server, command, &warm("BF.MEXISTS", keys), &batches(command, keys)));
            }
            // An absent item is known to be so after one line of each generation. All of a new one's lines in the
            // newest change.
            let lines = if floor == "BENCH.FILLLAST" { lines } else { 1 };
            server.call(&format!("BENCH.BITMAPS {lines} {sizes}"));
            samples[kind][2].push(server_time(server, floor, &warm_floor, &batches(floor, &windowed)));
        }
        new += added * case.copies as u64;
    }
    bench.ours.call("BENCH.BITMAPS 1");
    bench.ours.call(&format!("DEL {} {}", windowed.join(" "), plain.join(" ")));
    // Of absent, present and new items.
    let goals = [NEAR, Goal::Within(1.15), Goal::Within(1.2)];
    for (((command, items, _), samples), goal) in WORK.iter().zip(&samples).zip(goals) {
        let [ours, plain, floor] = [0, 1, 2].map(|contender| samples[contender].median());
        for (goal, other) in [(Goal::Shown, ("a plain filter", plain)), (goal, (LOOKS, floor))] {
            bench.rows.push(Row {
                work: format!("a window of {name} in 4 slices, p = {}: {command}, {PER_CALL} {items}", window.rate),
                goal,
                ours,
                other: Some(other),
                unit: "µs a call",
            });
        }
    }
}
