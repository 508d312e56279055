//! Measures calls with 350 items: on a filter far larger than any cache, and on one that fits.

use crate::items::{ABSENT, PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEAR, NEVER_BEHIND, Row, Samples, server_time};
use crate::servers::Server;

/// The filter of 100 million items, which [`crate::persistence`] saves and loads.
pub const BIG: &str = "big";
const BIG_CAPACITY: u64 = 100_000_000;

/// Number of items that [`crate::persistence`] adds, for which the filter needs room: 10,000 per second for some
/// seconds, five times.
const WHILE_SAVING: u64 = 600_000;

const SMALL: &str = "small";
const SMALL_CAPACITY: u64 = 100_000;

/// Number of calls that are in flight at once.
const PIPELINED: usize = 4;

/// Adds `count` items of `source` without measuring the time.
pub fn fill(server: &mut Server, key: &str, source: &mut Source, count: u64) {
    let mut left = count as usize;
    while left > 0 {
        // In steps, so that not all requests are in memory at once.
        let step = left.min(PER_CALL * 400);
        let full = calls(&["BF.MADD", key], source, step / PER_CALL, PER_CALL, PIPELINED);
        server.client.run(&full);
        if !step.is_multiple_of(PER_CALL) {
            server.client.run(&calls(&["BF.MADD", key], source, 1, step % PER_CALL, 1));
        }
        left -= step;
    }
}

/// The three kinds of work: a command, and the kind of items that it gets.
const WORK: [(&str, &str); 3] = [("BF.MADD", "new"), ("BF.MEXISTS", "absent"), ("BF.MEXISTS", "present")];

/// The name of the lower bound for commands with items: a command that only hashes the items, reads their lines and
/// replies.
pub const LOOKS: &str = "hashes, looks, replies";

/// The command of benches/floor that measures the lower bound [`LOOKS`] for `command`. It reads one bit per line;
/// Rollcall's commands read several. With `seen`, items were added before, so nothing changes and nothing is
/// propagated.
pub fn looks(command: &str, seen: bool) -> &'static str {
    match (command.ends_with("ADD"), seen) {
        (true, false) => "BENCH.FILL",
        (true, true) => "BENCH.KNOWN",
        (false, _) => "BENCH.PROBE",
    }
}

/// Measures the large filter and the small one.
pub fn run(bench: &mut Bench) {
    let (all, calls_a_round) = (bench.rounds() * 2, bench.pick(40, 60));
    // The filter is filled to its capacity, less what the rounds add and what is added while it is saved. If it grew,
    // most of what is saved and loaded would be a second, empty sub-filter. A quick run cannot wait for that number of items:
    // in a filter that is not full, RedisBloom answers for absent items after fewer probes.
    let added = (bench.rounds() * calls_a_round * PER_CALL) as u64;
    let filled = bench.pick(2_000_000, BIG_CAPACITY - added - WHILE_SAVING);

    let first_calls = 300;
    let mut cold = Vec::new();
    for server in [&mut bench.ours, &mut bench.peer] {
        server.call(&format!("BF.RESERVE {BIG} 0.001 {BIG_CAPACITY}"));
        let first = calls(&["BF.MADD", BIG], &mut Source::From(0), first_calls, PER_CALL, PIPELINED);
        cold.push(server_time(server, "BF.MADD", &[], &first));
        let start = (first_calls * PER_CALL) as u64;
        fill(server, BIG, &mut Source::From(start), filled - start);
    }
    let mut next = filled;
    rounds(bench, "n = 100M, p = 0.001", (BIG, 2), calls_a_round, (0, all), |_, _, _| {
        next += (calls_a_round * PER_CALL) as u64;
        (next - (calls_a_round * PER_CALL) as u64, filled)
    });
    bench.rows.push(Row {
        work: format!("the first {} items into it, its pages untouched before", first_calls * PER_CALL),
        goal: Goal::Shown,
        ours: cold[0],
        other: Some(("RedisBloom", cold[1])),
        unit: "µs a call",
    });

    let calls_a_round = bench.pick(60, 100);
    let filled = SMALL_CAPACITY - (calls_a_round * PER_CALL) as u64;
    rounds(bench, "n = 100k, p = 0.01", (SMALL, 1), calls_a_round, (all / 2, all), |ours, peer, round| {
        // Made anew for every round, so that no round finds it full.
        let start = (round as u64 + 1) << 32;
        for server in [ours, peer] {
            server.call(&format!("DEL {SMALL}"));
            server.call(&format!("BF.RESERVE {SMALL} 0.01 {SMALL_CAPACITY}"));
            fill(server, SMALL, &mut Source::From(0), filled);
        }
        (start, filled)
    });
}

/// Measures all kinds of work on one filter in both servers, and the lower bound. Rollcall's filter has
/// `lines_per_item` lines per item. `prepare` is called before each round. It returns the number from which items are
/// new, and the number below which all items are present.
fn rounds(
    bench: &mut Bench,
    name: &str,
    (key, lines_per_item): (&str, u32),
    calls_a_round: usize,
    (done, all): (usize, usize),
    mut prepare: impl FnMut(&mut Server, &mut Server, usize) -> (u64, u64),
) {
    let mut samples = [(); 3].map(|()| [(); 4].map(|()| Samples::default()));
    for round in 0..bench.rounds() {
        bench.step(done + round, all);
        let (new, present) = prepare(&mut bench.ours, &mut bench.peer, round);
        let sources = [Source::From(new), Source::From(ABSENT + new), Source::below(present, new)];
        let warm = |command| calls(&[command, key], &mut Source::below(present, !new), 20, PER_CALL, PIPELINED);
        let (warm, warm_floor) = (warm("BF.MEXISTS"), warm("BENCH.REPLY"));
        for (kind, (command, _)) in WORK.iter().enumerate() {
            let batches =
                |command| calls(&[command, key], &mut sources[kind].clone(), calls_a_round, PER_CALL, PIPELINED);
            let (real, floor) = (batches(command), batches("BENCH.REPLY"));
            samples[kind][0].push(server_time(&mut bench.ours, command, &warm, &real));
            samples[kind][1].push(server_time(&mut bench.peer, command, &warm, &real));
            samples[kind][2].push(server_time(&mut bench.ours, "BENCH.REPLY", &warm_floor, &floor));
            // The first of several lines is enough to see that an item is absent.
            let lines = if WORK[kind].1 == "absent" { 1 } else { lines_per_item };
            let size = bench.ours.call(&format!("BF.INFO {key}")).field("Size");
            bench.ours.call(&format!("BENCH.BITMAPS {lines} {size}"));
            samples[kind][3].push(server_time(
                &mut bench.ours,
                looks(command, false),
                &warm_floor,
                &batches(looks(command, false)),
            ));
        }
    }
    bench.ours.call("BENCH.BITMAPS 1");
    for (kind, (command, items)) in WORK.iter().enumerate() {
        let [ours, peer, floor, looking] = [0, 1, 2, 3].map(|contender| samples[kind][contender].median());
        let work = format!("{command}, {PER_CALL} {items}, {name}");
        let row = |goal, other| Row { work: work.clone(), goal, ours, other: Some(other), unit: "µs a call" };
        bench.rows.push(row(NEVER_BEHIND, ("RedisBloom", peer)));
        bench.rows.push(row(Goal::Shown, ("only replies", floor)));
        bench.rows.push(row(NEAR, (LOOKS, looking)));
    }
}
