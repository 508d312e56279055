//! Compares the bytes of a full window with theory, and with solutions that users build from filters without a window.

use std::f64::consts::LOG2_E;

use super::Window;
use super::counters::{AN_HOUR, logs, make_day};
use crate::measure::{Bench, Goal, NEAR, Row};
use rollcall_bench_output::plot::{self, Line};

const KEY: &str = "windows:bytes";
const CAPACITY: u64 = 100_000;
const RATES: [f64; 2] = [0.01, 0.001];

/// Numbers of slices. Every second one is a row of the table; all are points of the plot.
const SLICES: [u64; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Measures filters, then a counter.
pub fn run(bench: &mut Bench) -> Vec<plot::File> {
    let mut lines = Vec::new();
    let mut points: [Vec<(f64, f64)>; 4] = Default::default();
    for (at, slices) in SLICES.into_iter().enumerate() {
        bench.step(at, SLICES.len() + 1);
        let mut line = vec![slices.to_string()];
        for (which, rate) in RATES.into_iter().enumerate() {
            let window = Window { capacity: CAPACITY, rate, slices };
            window.make(&mut bench.ours, KEY, window.share(), window.share());
            let info = bench.ours.call(&format!("BF.INFO {KEY}"));
            assert_eq!(info.field("Number of filters"), (slices + 1) as f64, "a slice grew before it was full");
            bench.ours.call(&format!("DEL {KEY}"));
            let (bits, least) = (8.0 * info.field("Size") / CAPACITY as f64, theory(&window));
            points[which].push((slices as f64, bits));
            points[which + 2].push((slices as f64, least));
            line.extend([bits, least, bits / least].map(|figure| format!("{figure:.2}")));
            if at % 2 == 0 {
                bench.rows.push(Row {
                    work: format!("a full window of 100k in {slices} slices, p = {rate}: bits an item of the window"),
                    goal: NEAR,
                    ours: bits,
                    other: Some(("theory", least)),
                    unit: "bits",
                });
            }
        }
        lines.push(line);
    }
    let heads = ["slices", "p = 0.01", "theory", "ratio", "p = 0.001", "theory", "ratio"];
    bench.extra("Bits an item of a window of 100,000, each slice full", &heads, &lines);
    counter(bench);
    let [ours, ours_rare, least, least_rare] = points;
    vec![plot::File {
        name: "windows",
        title: "Memory an item of a window takes",
        x: plot::Axis::linear("slices of the window"),
        y: plot::Axis::linear("bits an item, each slice full"),
        lines: vec![
            Line::ours("p = 0.001", ours_rare),
            Line::floor("theory", least_rare),
            Line::ours("p = 0.01", ours).dashed(),
            Line::floor("theory", least).dashed(),
        ],
        marks: Vec::new(),
        legend: plot::Corner::LowerRight,
    }]
}

/// Bits per item if every generation were an ideal Bloom filter. The live generations are one more than the slices. A
/// look-up asks every generation, so each gets a share of the error rate.
fn theory(window: &Window) -> f64 {
    let (slices, alive) = (window.slices as f64, window.slices as f64 + 1.0);
    LOG2_E * (alive / window.rate).log2() * alive / slices
}

/// Compares a counter with a window of a day in 24 slices with one HyperLogLog per hour.
fn counter(bench: &mut Bench) {
    let server = &mut bench.ours;
    make_day(server, KEY, 24);
    let size = server.call(&format!("LC.INFO {KEY}")).field("Size");
    let used = server.call(&format!("MEMORY USAGE {KEY}")).number();
    let mut of_logs =
        |command: &str| -> f64 { logs(24).iter().map(|log| server.call(&format!("{command} {log}")).number()).sum() };
    let (length, used_by_logs) = (of_logs("STRLEN"), of_logs("MEMORY USAGE"));
    for (what, goal, ours, logs) in [
        ("Size of LC.INFO, STRLEN", Goal::AtMost(40_000.0), size, length),
        ("MEMORY USAGE, as the allocator rounds it", Goal::Shown, used, used_by_logs),
    ] {
        bench.rows.push(Row {
            work: format!("bytes of 24 hours, {AN_HOUR} members in each and 50,000 in all, at 1 %: {what}"),
            goal,
            ours,
            other: Some(("24 HyperLogLogs", logs)),
            unit: "bytes",
        });
    }
    bench.ours.call(&format!("DEL {KEY} {}", logs(24).join(" ")));
}
