//! Measures windowed counters: adding, compared with a counter without a window, and counts of any time span, compared
//! with one HyperLogLog per hour.

use crate::items::{PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEVER_BEHIND, Row, Samples, server_time};
use crate::resp::Batch;
use crate::servers::Server;

const KEY: &str = "windows:lc";
const PLAIN: &str = "windows:plain";

/// Number of calls that add members before the measured work.
const CALLS: usize = 16;
const MEMBERS: u64 = (CALLS * PER_CALL) as u64;

/// The representations of a counter: the options for each, and the value that LC.INFO reports.
const HELD: [(&str, &str); 2] = [("EXACT 65536 BYTES 1048576", "exact"), ("EXACT 0", "dense")];

/// Measures adding, then counting.
pub fn run(bench: &mut Bench) {
    run_add(bench);
    run_count(bench);
}

fn run_add(bench: &mut Bench) {
    let rounds = bench.rounds();
    for (at, (options, representation)) in HELD.into_iter().enumerate() {
        // New ones, those seen in the present slice, those last seen in the one before. Each of ours, a plain one.
        let mut samples = [(); 3].map(|()| [(); 2].map(|()| Samples::default()));
        for round in 0..rounds {
            bench.step(at * rounds + round, 3 * rounds);
            let server = &mut bench.ours;
            server.call(&format!("DEL {KEY} {PLAIN}"));
            server.call(&format!("LC.RESERVE {KEY} 50000 ERROR 0.01 {options} WINDOW 12 MANUAL"));
            server.call(&format!("LC.RESERVE {PLAIN} 50000 ERROR 0.01 {options}"));
            let all = |key| calls(&["LC.ADD", key], &mut Source::From(0), CALLS, PER_CALL, 4);
            for key in [KEY, PLAIN] {
                server.client.run(&all(key));
                let info = server.call(&format!("LC.INFO {key} REPRESENTATION")).text();
                assert_eq!(info.trim(), representation, "{options}");
            }
            let seen = |key, seed| calls(&["LC.ADD", key], &mut Source::below(MEMBERS, seed), CALLS, PER_CALL, 4);
            let new = |key| calls(&["LC.ADD", key], &mut Source::From((round as u64 + 1) << 32), CALLS, PER_CALL, 4);
            // What only reads warms a counter of which no member may be touched.
            let read = match representation {
                "exact" => calls(&["LC.MEXISTS", KEY], &mut Source::below(MEMBERS, !0), CALLS, PER_CALL, 4),
                _ => vec![request("LC.COUNTSINCE", &[KEY, "1"]); CALLS],
            };
            for (key, at) in [(KEY, 0), (PLAIN, 1)] {
                let warm = seen(key, !0);
                samples[0][at].push(server_time(server, "LC.ADD", &warm, &new(key)));
                samples[1][at].push(server_time(server, "LC.ADD", &warm, &seen(key, round as u64)));
            }
            server.call(&format!("LC.ADVANCE {KEY} 1"));
            samples[2][0].push(server_time(server, "LC.ADD", &read, &all(KEY)));
            samples[2][1].push(server_time(server, "LC.ADD", &seen(PLAIN, !0), &all(PLAIN)));
        }
        for (items, samples) in ["new", "seen", "seen a slice before"].iter().zip(&samples) {
            bench.rows.push(Row {
                work: format!("a counter of a window in 12 slices, {representation}: LC.ADD, {PER_CALL} {items}"),
                goal: Goal::Within(1.3),
                ours: samples[0].median(),
                other: Some(("a plain counter", samples[1].median())),
                unit: "µs a call",
            });
        }
    }
    bench.ours.call(&format!("DEL {KEY} {PLAIN}"));
}

fn request(command: &str, words: &[&str]) -> Batch {
    let mut batch = Batch::default();
    batch.push_items(&[command], words.iter());
    batch
}

/// Number of members in each hour. Each hour a thousand of them leave and another thousand come, so that the day has
/// [`OF_THE_DAY`] members.
pub const AN_HOUR: u64 = 27_000;
const OF_THE_DAY: u64 = AN_HOUR + 23 * 1000;

/// The names of the HyperLogLogs of the latest hours.
pub fn logs(hours: usize) -> Vec<String> {
    (24 - hours..24).map(|hour| format!("windows:hll:{hour}")).collect()
}

/// Creates a counter with a window of a day in `slices` slices, and one HyperLogLog per hour with the same members.
pub fn make_day(server: &mut Server, key: &str, slices: u64) {
    server.call(&format!("LC.RESERVE {key} {OF_THE_DAY} ERROR 0.01 WINDOW 86400 MANUAL SLICES {slices}"));
    for (hour, log) in (0..).zip(logs(24)) {
        server.call(&format!("LC.ADVANCE {key} {}", hour * slices / 24));
        for head in [["LC.ADD", key], ["PFADD", &log]] {
            let items = &mut Source::From(hour * 1000);
            server.client.run(&calls(&head, items, AN_HOUR as usize / 500, 500, 4));
        }
    }
    let found = server.call(&format!("LC.COUNT {key}")).number() / OF_THE_DAY as f64;
    assert!((0.95..1.05).contains(&found), "{found} of the members are counted");
}

/// Numbers of slices that lead to both widths of tags.
const WIDTHS: [(u64, &str); 2] = [(12, "4 bits"), (24, "8 bits")];

fn run_count(bench: &mut Bench) {
    let rounds = bench.rounds();
    let keys = WIDTHS.map(|(slices, _)| format!("{KEY}:{slices}"));
    for (key, (slices, _)) in keys.iter().zip(WIDTHS) {
        make_day(&mut bench.ours, key, slices);
    }
    let count = bench.pick(100, 200);
    let repeat = |batch: Batch| vec![batch; count];
    let nothing = repeat(request("BENCH.READ", &[&keys[0]]));
    let of_logs = |hours: usize| {
        let mut batch = Batch::default();
        batch.push_items(&["PFCOUNT"], logs(hours).iter());
        batch
    };
    let (half, whole) = (repeat(of_logs(12)), repeat(of_logs(24)));
    // One question after another, for each of which the HyperLogLogs of all spans are asked.
    let every: Vec<_> = (0..count / 24).flat_map(|_| (1..=24).map(of_logs)).collect();
    let mut logs_samples = [(); 3].map(|()| Samples::default());
    let mut samples = [(); 2].map(|()| [(); 3].map(|()| Samples::default()));
    for round in 0..rounds {
        bench.step(2 * rounds + round, 3 * rounds);
        let server = &mut bench.ours;
        // The time of a command that does nothing is the server's.
        let idle = server_time(server, "BENCH.READ", &nothing[..20], &nothing);
        for (key, samples) in keys.iter().zip(&mut samples) {
            let work = [
                ("LC.COUNTSINCE", vec![key, "43200"], idle),
                ("LC.COUNT", vec![key], 0.0),
                ("LC.HISTORY", vec![key], 0.0),
            ];
            for ((command, words, less), samples) in work.into_iter().zip(samples) {
                let batches = repeat(request(command, &words));
                samples.push(server_time(server, command, &batches[..20], &batches) - less);
            }
        }
        let of_logs = [(&half, 1.0, idle), (&whole, 1.0, 0.0), (&every, 24.0, 0.0)];
        for ((batches, times, less), samples) in of_logs.iter().zip(&mut logs_samples) {
            samples.push(times * server_time(server, "PFCOUNT", &batches[..4], batches) - less);
        }
    }
    let [half, whole, every] = logs_samples.map(|samples| samples.median());
    for ((slices, cells), samples) in WIDTHS.iter().zip(&samples) {
        let work = [
            ("LC.COUNTSINCE of 12 hours, beyond opening and replying", Goal::AtMost(20.0), "PFCOUNT of 12", half),
            ("LC.COUNT", NEVER_BEHIND, "PFCOUNT of 24", whole),
            ("LC.HISTORY", NEVER_BEHIND, "PFCOUNT of 1, 2, .. 24", every),
        ];
        for ((name, goal, other, theirs), samples) in work.into_iter().zip(samples) {
            bench.rows.push(Row {
                work: format!("50,000 members of a day, {slices} slices in cells of {cells}: {name}"),
                goal,
                ours: samples.median(),
                other: Some((other, theirs)),
                unit: "µs a call",
            });
        }
    }
    bench.ours.call(&format!("DEL {} {}", keys.join(" "), logs(24).join(" ")));
}
