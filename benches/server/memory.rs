//! Measures the bytes of a filter at its capacity, and its false positive rate.

use crate::batch::fill;
use crate::items::{ABSENT, PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEAR, NEVER_BEHIND, Row};
use rollcall_bench_output::plot::{self, Line};

const KEY: &str = "memory";
const CAPACITY: u64 = 100_000;
const RATES: [f64; 9] = [0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5];

/// Measures memory and false positive rates. Every second error rate is a row of the table; all are points of the plot.
pub fn run(bench: &mut Bench) -> Vec<plot::File> {
    // Ours and RedisBloom's: bits an item by INFO.
    let mut bits = [Vec::new(), Vec::new()];
    let mut lines = Vec::new();
    let absent = bench.pick(200, 600) * PER_CALL;
    for (at, rate) in RATES.into_iter().enumerate() {
        bench.step(at, RATES.len());
        let mut found = Vec::new();
        for (server, bits) in [&mut bench.ours, &mut bench.peer].into_iter().zip(&mut bits) {
            server.call(&format!("BF.RESERVE {KEY} {rate} {CAPACITY}"));
            fill(server, KEY, &mut Source::From(0), CAPACITY);
            let info = server.call(&format!("BF.INFO {KEY}"));
            assert_eq!(info.field("Number of filters"), 1.0, "it grew before it was full");
            let batches = calls(&["BF.MEXISTS", KEY], &mut Source::From(ABSENT), absent / PER_CALL, PER_CALL, 1);
            let errors: i64 = batches.iter().map(|batch| server.client.integers(batch).iter().sum::<i64>()).sum();
            bits.push((rate, 8.0 * info.field("Size") / CAPACITY as f64));
            found.push((info.field("Size"), errors as f64 / absent as f64));
            server.call(&format!("DEL {KEY}"));
        }
        let [(size, errors), (peer_size, peer_errors)] = found[..] else { unreachable!() };
        if at % 2 == 0 {
            bench.rows.push(Row {
                work: format!("bytes of a filter of 100k at p = {rate}: Size of BF.INFO"),
                goal: NEVER_BEHIND,
                ours: size,
                other: Some(("RedisBloom", peer_size)),
                unit: "bytes",
            });
            nonscaling(bench, rate);
        }
        lines.push(vec![
            format!("{rate}"),
            format!("{:.2}", 8.0 * size / CAPACITY as f64),
            format!("{:.2}", 8.0 * peer_size / CAPACITY as f64),
            format!("{:.2}", optimum(rate)),
            format!("{:.2}", errors / rate),
            format!("{:.2}", peer_errors / rate),
        ]);
    }
    resident(bench);
    let title = format!("Bits an item, and errors found among {absent} absent items as a share of p, at capacity");
    let heads = ["p", "ours", "RedisBloom", "Bloom's optimum", "errors / p, ours", "errors / p, RedisBloom"];
    bench.extra(&title, &heads, &lines);
    let bytes = |points: &[(f64, f64)]| points.iter().map(|&(rate, bits)| (rate, bits / 8.0)).collect();
    vec![plot::File {
        name: "bytes",
        title: "Memory an item takes",
        x: plot::Axis::log("false-positive rate asked for"),
        y: plot::Axis::linear("bytes an item, at capacity"),
        lines: vec![
            Line::ours("ours", bytes(&bits[0])),
            Line::theirs("RedisBloom", bytes(&bits[1])),
            Line::floor("Bloom's optimum", RATES.map(|rate| (rate, optimum(rate) / 8.0)).to_vec()),
        ],
        marks: Vec::new(),
        legend: plot::Corner::UpperRight,
    }]
}

/// Measures filters that cannot grow. Their single sub-filter may use the whole error rate.
fn nonscaling(bench: &mut Bench, rate: f64) {
    let [ours, peer] = [&mut bench.ours, &mut bench.peer].map(|server| {
        server.call(&format!("BF.RESERVE {KEY} {rate} {CAPACITY} NONSCALING"));
        let size = server.call(&format!("BF.INFO {KEY}")).field("Size");
        server.call(&format!("DEL {KEY}"));
        size
    });
    bench.rows.push(Row {
        work: format!("bytes of a filter of 100k at p = {rate}, NONSCALING: Size of BF.INFO"),
        goal: NEAR,
        ours,
        other: Some(("RedisBloom", peer)),
        unit: "bytes",
    });
}

/// Measures the resident memory of filters, and compares it with MEMORY USAGE. Rollcall counts the sizes that the
/// allocator rounds up to. RedisBloom counts the sizes that it asked for.
fn resident(bench: &mut Bench) {
    const FILTERS: u64 = 100;
    let mut found = Vec::new();
    for server in [&mut bench.ours, &mut bench.peer] {
        server.call("MEMORY PURGE");
        let before = server.resident_bytes();
        for filter in 0..FILTERS {
            server.call(&format!("BF.RESERVE {KEY}:{filter} 0.01 {CAPACITY}"));
            // Enough to touch every page.
            fill(server, &format!("{KEY}:{filter}"), &mut Source::From(0), 5000);
        }
        let resident = (server.resident_bytes() - before) / FILTERS as f64;
        found.push((resident, server.call(&format!("MEMORY USAGE {KEY}:0")).number()));
        (0..FILTERS).for_each(|filter| drop(server.call(&format!("DEL {KEY}:{filter}"))));
    }
    let [(ours, our_usage), (peer, peer_usage)] = found[..] else { unreachable!() };
    for (what, goal, ours, peer) in
        [("resident memory", NEVER_BEHIND, ours, peer), ("MEMORY USAGE", Goal::Shown, our_usage, peer_usage)]
    {
        bench.rows.push(Row {
            work: format!("bytes of a filter of 100k at p = 0.01: {what}"),
            goal,
            ours,
            other: Some(("RedisBloom", peer)),
            unit: "bytes",
        });
    }
}

/// Bits per item of the best classic filter with this rate: log2(1/p) / ln 2.
fn optimum(rate: f64) -> f64 {
    -rate.log2() / std::f64::consts::LN_2
}
