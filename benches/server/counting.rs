//! Measures counters: adding, counting unions, memory, and errors.

use std::ops::Range;

use crate::items::{PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEAR, Row, Samples, server_time};
use crate::resp::Batch;
use rollcall_bench_output::plot::{self, Line};

const COUNTER: &str = "counting:lc";
const LOG: &str = "counting:hll";
const SET: &str = "counting:set";

/// Compares LC.ADD with PFADD.
pub fn run_add(bench: &mut Bench) {
    let (rounds, count) = (bench.rounds(), 40);
    let mut samples = [(); 4].map(|()| Samples::default());
    for round in 0..rounds {
        bench.step(round, rounds);
        bench.ours.call(&format!("DEL {COUNTER} {LOG}"));
        for (at, head) in [["LC.ADD", COUNTER], ["PFADD", LOG]].into_iter().enumerate() {
            // Enough items that the counter is dense and the HyperLogLog has left its sparse form.
            bench.ours.client.run(&calls(&head, &mut Source::From(0), 20, 500, 4));
            let seen = calls(&head, &mut Source::below(10_000, round as u64), count, PER_CALL, 4);
            let new = calls(&head, &mut Source::From((round as u64 + 1) << 32), count, PER_CALL, 4);
            samples[at].push(server_time(&mut bench.ours, head[0], &seen[..4], &new));
            samples[at + 2].push(server_time(&mut bench.ours, head[0], &seen[..4], &seen));
        }
    }
    for (at, items) in [(0, "new"), (2, "seen")] {
        bench.rows.push(Row {
            work: format!("LC.ADD, {PER_CALL} {items}, capacity 50,000"),
            goal: Goal::Within(0.85),
            ours: samples[at].median(),
            other: Some(("PFADD", samples[at + 1].median())),
            unit: "µs a call",
        });
    }
    bench.ours.call(&format!("DEL {COUNTER} {LOG}"));
}

/// Compares LC.COUNT of several counters with counting the set bits of equally many strings.
pub fn run_union(bench: &mut Bench) {
    const ALL: usize = 100;
    let counters: Vec<String> = (0..ALL).map(|i| format!("union:lc:{i}")).collect();
    let strings: Vec<String> = (0..ALL).map(|i| format!("union:string:{i}")).collect();
    for (i, (counter, string)) in counters.iter().zip(&strings).enumerate() {
        bench.ours.call(&format!("LC.RESERVE {counter} 1000000 ERROR 0.001 EXACT 0"));
        let mut source = Source::From((i as u64) << 32);
        bench.ours.client.run(&calls(&["LC.ADD", counter], &mut source, 100, 1000, 4));
        let info = bench.ours.call(&format!("LC.INFO {counter}"));
        assert!(info.text().contains("dense") && info.field("Bits") >= f64::from(1 << 20), "not dense: {info}");
        bench.ours.call(&format!("SETRANGE {string} {} x", info.field("Bits") as u64 / 8 - 1));
    }
    let rounds = bench.rounds();
    for (at, (keys, count)) in [(2, 400), (ALL, 20)].into_iter().enumerate() {
        let repeat = |command: &str, names: &[String]| {
            let mut batch = Batch::default();
            batch.push_items(&[command], names[..keys].iter());
            vec![batch; count]
        };
        let (union, strings) = (repeat("LC.COUNT", &counters), repeat("BENCH.UNION", &strings));
        let mut samples = [(); 2].map(|()| Samples::default());
        for round in 0..rounds {
            bench.step(at * rounds + round, 2 * rounds);
            samples[0].push(server_time(&mut bench.ours, "LC.COUNT", &union[..count / 4], &union));
            samples[1].push(server_time(&mut bench.ours, "BENCH.UNION", &strings[..count / 4], &strings));
        }
        bench.rows.push(Row {
            work: format!("LC.COUNT of {keys} dense counters of 1 Mbit"),
            goal: NEAR,
            ours: samples[0].median(),
            other: Some(("counts the bits", samples[1].median())),
            unit: "µs a call",
        });
    }
    bench.ours.call(&format!("DEL {} {}", counters.join(" "), strings.join(" ")));
}

/// Compares the bytes of a counter, a set and a HyperLogLog with equal members.
pub fn run_bytes(bench: &mut Bench) {
    bench.ours.call(&format!("LC.RESERVE {COUNTER} 50000 ERROR 0.01"));
    let mut lines = Vec::new();
    let mut before = 0;
    for count in [10, 100, 250, 1000, 10_000, 50_000] {
        let mut line = vec![count.to_string()];
        for (command, key) in [("LC.ADD", COUNTER), ("SADD", SET), ("PFADD", LOG)] {
            add(bench, command, key, before..count);
            line.push(bench.ours.call(&format!("MEMORY USAGE {key} SAMPLES 0")).number().to_string());
        }
        lines.push(line);
        before = count;
    }
    let title = "MEMORY USAGE of LC (capacity 50,000, 1 %), a set and HyperLogLog, items of 29 bytes";
    bench.extra(title, &["distinct items", "LC", "set", "HyperLogLog"], &lines);
    let size = bench.ours.call(&format!("LC.INFO {COUNTER}")).field("Size");
    let length = bench.ours.call(&format!("STRLEN {LOG}")).number();
    let [used, log_used] = [COUNTER, LOG].map(|key| bench.ours.call(&format!("MEMORY USAGE {key}")).number());
    for (what, goal, ours, log) in [
        ("Size of LC.INFO, STRLEN", Goal::AtMost(5000.0), size, length),
        ("MEMORY USAGE, as the allocator rounds it", Goal::Shown, used, log_used),
    ] {
        bench.rows.push(Row {
            work: format!("bytes of a counter with 50,000 members at 1 %: {what}"),
            goal,
            ours,
            other: Some(("HyperLogLog", log)),
            unit: "bytes",
        });
    }
    bench.ours.call(&format!("DEL {COUNTER} {SET} {LOG}"));
}

/// Adds the items with these numbers to a key of the server with Rollcall, without measuring the time.
fn add(bench: &mut Bench, command: &str, key: &str, numbers: Range<u64>) {
    let mut source = Source::From(numbers.start);
    let mut left = (numbers.end - numbers.start) as usize;
    while left > 0 {
        let items = left.min(500);
        bench.ours.client.run(&calls(&[command, key], &mut source, left / items, items, 4));
        left %= items;
    }
}

/// The root mean square error of several counters with equally many members, in per cent, for growing numbers of
/// members.
pub fn run_error(bench: &mut Bench) -> Vec<plot::File> {
    let counters = bench.pick(30, 300);
    let counts: &[u64] = &[10, 30, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000];
    let counts = if bench.quick { &counts[..12] } else { counts };
    let mut squares = vec![[0.0; 2]; counts.len()];
    for counter in 0..counters {
        bench.step(counter, counters);
        bench.ours.call(&format!("DEL {COUNTER} {LOG}"));
        let start = (counter as u64 + 1) << 32;
        let mut before = 0;
        for (&count, squares) in counts.iter().zip(&mut squares) {
            for (at, (add_command, count_command, key)) in
                [("LC.ADD", "LC.COUNT", COUNTER), ("PFADD", "PFCOUNT", LOG)].into_iter().enumerate()
            {
                add(bench, add_command, key, start + before..start + count);
                let found = bench.ours.call(&format!("{count_command} {key}")).number();
                squares[at] += (found / count as f64 - 1.0).powi(2);
            }
            before = count;
        }
    }
    bench.ours.call(&format!("DEL {COUNTER} {LOG}"));
    let errors = |at: usize| -> Vec<(f64, f64)> {
        let percent = |squares: &[f64; 2]| 100.0 * (squares[at] / counters as f64).sqrt();
        counts.iter().zip(&squares).map(|(&count, squares)| (count as f64, percent(squares))).collect()
    };
    let (ours, theirs) = (errors(0), errors(1));
    let lines: Vec<Vec<String>> = ours
        .iter()
        .zip(&theirs)
        .map(|(ours, theirs)| vec![format!("{}", ours.0), format!("{:.2} %", ours.1), format!("{:.2} %", theirs.1)])
        .collect();
    let title = format!("Error of LC (capacity 50,000, 1 %) and HyperLogLog, root mean square of {counters} counters");
    bench.extra(&title, &["distinct items", "LC", "HyperLogLog"], &lines);
    vec![plot::File {
        name: "error",
        title: "How far off a counter is",
        x: plot::Axis::log("distinct items"),
        y: plot::Axis::linear("error, root mean square, %"),
        lines: vec![Line::ours("LC, capacity 50,000, 1 %", ours), Line::theirs("HyperLogLog", theirs)],
        marks: vec![(250.0, "exact up to here".to_owned()), (50_000.0, "capacity".to_owned())],
        legend: plot::Corner::UpperLeft,
    }]
}
