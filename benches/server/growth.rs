//! Measures the time per item as a filter grows, in size and in sub-filters.

use crate::batch::{LOOKS, fill, looks};
use crate::items::{ABSENT, PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEVER_BEHIND, Row, Samples, server_time};
use crate::servers::Server;
use rollcall_bench_output::plot::{self, Line};

const KEY: &str = "growth";

/// Median times per call of BF.MEXISTS for absent and for present items. Each pair has Rollcall's time and
/// RedisBloom's.
struct Times {
    absent: [f64; 2],
    present: [f64; 2],
}

/// Looks up absent items, and present items with numbers below `present`.
fn lookups(bench: &mut Bench, key: &str, present: u64) -> Times {
    let count = bench.pick(20, 40);
    let mut samples = [(); 4].map(|()| Samples::default());
    for round in 0..bench.pick(3, 7) {
        let seed = round as u64;
        let batches = |source: &mut Source| calls(&["BF.MEXISTS", key], source, count, PER_CALL, 4);
        let warm = batches(&mut Source::below(present, !seed));
        let absent = batches(&mut Source::From(ABSENT + (seed << 32)));
        let found = batches(&mut Source::below(present, seed));
        for (at, server) in [&mut bench.ours, &mut bench.peer].into_iter().enumerate() {
            samples[at].push(server_time(server, "BF.MEXISTS", &warm, &absent));
            samples[at + 2].push(server_time(server, "BF.MEXISTS", &warm[..4], &found));
        }
    }
    let [absent, peer_absent, present, peer_present] = samples.map(|samples| samples.median());
    Times { absent: [absent, peer_absent], present: [present, peer_present] }
}

fn both(bench: &mut Bench, mut work: impl FnMut(&mut Server)) {
    work(&mut bench.ours);
    work(&mut bench.peer);
}

/// Measures times for filters of different sizes: from 1e3 to 1e9 bits, and up to 1 GB.
pub fn run_size(bench: &mut Bench) -> Vec<plot::File> {
    const RATE: f64 = 0.001;
    const BITS_AN_ITEM: f64 = 14.6;
    let sizes: &[f64] = if bench.quick {
        &[1e3, 1e5, 1e6, 1e7, 1e8, 1e9]
    } else {
        &[1e3, 1e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9, 3e9, 8e9]
    };
    let mut lines = Vec::new();
    let mut points: [Vec<(f64, f64)>; 6] = Default::default();
    for (at, &bits) in sizes.iter().enumerate() {
        bench.step(at, sizes.len());
        let capacity = (bits / BITS_AN_ITEM) as u64;
        // The filter is half full, unless that takes minutes: 2 million items touch every page of 1 GB many times.
        let filled = (capacity / 2).min(bench.pick(300_000, 2_000_000));
        let bytes = {
            let mut bytes = 0.0;
            both(bench, |server| {
                server.call(&format!("BF.RESERVE {KEY} {RATE} {capacity}"));
                fill(server, KEY, &mut Source::From(0), filled);
            });
            bytes += bench.ours.call(&format!("BF.INFO {KEY}")).field("Size");
            bytes
        };
        let times = lookups(bench, KEY, filled);
        let mut added = [(); 2].map(|()| Samples::default());
        // A filter too small for the items of several calls would grow meanwhile.
        let count = ((capacity - filled) as usize / PER_CALL / 8).min(40);
        if count > 0 {
            for round in 0..bench.pick(3, 6) {
                let mut new = Source::From(((round as u64) + 1) << 32);
                let batches = calls(&["BF.MADD", KEY], &mut new, count, PER_CALL, 4);
                let warm = calls(&["BF.MEXISTS", KEY], &mut Source::below(filled, 7), 20, PER_CALL, 4);
                for (server, added) in [&mut bench.ours, &mut bench.peer].into_iter().zip(&mut added) {
                    added.push(server_time(server, "BF.MADD", &warm, &batches));
                }
            }
        }
        both(bench, |server| drop(server.call(&format!("DEL {KEY}"))));
        let added = added.map(|added| added.median());
        let figures = [added[0], added[1], times.absent[0], times.absent[1], times.present[0], times.present[1]];
        for (points, figure) in points.iter_mut().zip(figures) {
            if figure.is_finite() {
                points.push((bytes, figure));
            }
        }
        let shown = figures.map(|figure| if figure.is_finite() { format!("{figure:.1}") } else { "-".to_owned() });
        lines.push([vec![format!("{bits:.0e}")], shown.to_vec()].concat());
    }
    let heads = [
        "bits",
        "MADD, ours",
        "RedisBloom",
        "MEXISTS absent, ours",
        "RedisBloom",
        "MEXISTS present, ours",
        "RedisBloom",
    ];
    bench.extra("Server time of a call with 350 items against the size of the filter, p = 0.001, µs", &heads, &lines);
    let [added, peer_added, _, _, present, peer_present] = points;
    vec![plot::File {
        name: "time",
        title: "Server time of a call with 350 items, p = 0.001",
        x: plot::Axis::log_bytes("size of the filter"),
        y: plot::Axis::log("microseconds a call"),
        lines: vec![
            Line::ours("BF.MADD new, ours", added),
            Line::ours("BF.MEXISTS present, ours", present).dashed(),
            Line::theirs("BF.MADD new, RedisBloom", peer_added),
            Line::theirs("BF.MEXISTS present, RedisBloom", peer_present).dashed(),
        ],
        marks: crate::report::caches(),
        legend: plot::Corner::UpperLeft,
    }]
}

/// Measures times for different numbers of sub-filters.
pub fn run_chain(bench: &mut Bench) -> Vec<plot::File> {
    const EACH: u64 = 10_000;
    let lengths: &[u64] = if bench.quick { &[1, 5, 20] } else { &[1, 2, 3, 5, 8, 12, 16, 20] };
    let mut lines = Vec::new();
    let mut points: [Vec<(f64, f64)>; 4] = Default::default();
    for (at, &length) in lengths.iter().enumerate() {
        bench.step(at, lengths.len());
        let items = EACH * (length - 1) + EACH / 2;
        both(bench, |server| {
            server.call(&format!("BF.RESERVE {KEY} 0.01 {EACH} EXPANSION 1"));
            fill(server, KEY, &mut Source::From(0), items);
            let filters = server.call(&format!("BF.INFO {KEY}")).field("Number of filters");
            assert!((filters - length as f64).abs() <= 1.0, "{filters} sub-filters instead of {length}");
        });
        let times = lookups(bench, KEY, items);
        both(bench, |server| drop(server.call(&format!("DEL {KEY}"))));
        let figures = [times.absent[0], times.absent[1], times.present[0], times.present[1]];
        let nanoseconds = figures.map(|figure| 1e3 * figure / PER_CALL as f64);
        points.iter_mut().zip(nanoseconds).for_each(|(points, time)| points.push((length as f64, time)));
        lines.push([vec![length.to_string()], nanoseconds.map(|time| format!("{time:.0}")).to_vec()].concat());
    }
    let heads = ["sub-filters", "absent, ours", "RedisBloom", "present, ours", "RedisBloom"];
    bench.extra("BF.MEXISTS against the number of sub-filters (10,000 items each), ns an item", &heads, &lines);
    let [absent, peer_absent, present, peer_present] = points;
    vec![plot::File {
        name: "sub_filters",
        title: "BF.MEXISTS on a filter that has grown",
        x: plot::Axis::linear("sub-filters"),
        y: plot::Axis::linear("nanoseconds an item"),
        lines: vec![
            Line::ours("absent, ours", absent),
            Line::ours("present, ours", present).dashed(),
            Line::theirs("absent, RedisBloom", peer_absent),
            Line::theirs("present, RedisBloom", peer_present).dashed(),
        ],
        marks: Vec::new(),
        legend: plot::Corner::UpperLeft,
    }]
}

/// Compares a filter that grew from the default capacity of 100 to 2 million items with one that was reserved for them.
pub fn run_default(bench: &mut Bench) {
    const ITEMS: u64 = 2_000_000;
    const KEYS: [&str; 2] = ["growth:default", "growth:reserved"];
    both(bench, |server| drop(server.call(&format!("BF.RESERVE {} 0.01 {ITEMS}", KEYS[1]))));
    let filled = ITEMS - 200_000;
    both(bench, |server| KEYS.iter().for_each(|key| fill(server, key, &mut Source::From(0), filled)));
    let count = bench.pick(20, 40);
    let sub_filters = bench.ours.call(&format!("BF.DEBUG {}", KEYS[0])).text();
    let field = |name| sub_filters.split(name).skip(2).filter_map(|rest| rest.split(' ').next()).collect::<Vec<_>>();
    let (sizes, filled_with) = (field("bytes:"), field("size:"));
    let newest = sizes.last().copied().unwrap_or("64");
    // The floor looks at the fewest lines that can answer. To find an item absent takes a line of each sub-filter. To
    // find it present takes all its lines in one sub-filter: on average, that is number `found_after` from the newest.
    // To add an item touches all its lines in the newest.
    let found_after =
        filled_with.iter().rev().zip(1..).map(|(items, looks)| items.parse().unwrap_or(0.0) * f64::from(looks));
    let found_after = (found_after.sum::<f64>() / filled as f64).round() as usize;
    let all = format!("{} {newest} {newest}", sizes.join(" "));
    let newest_ones = format!("{} {newest} {newest}", sizes[sizes.len() - found_after..].join(" "));
    let looked_at = [sizes.join(" "), newest_ones, all];
    // Absent, present and new items. Each has five samples: ours grown and reserved, the peer's grown and reserved, and
    // the floor.
    let mut samples = [(); 3].map(|()| [(); 5].map(|()| Samples::default()));
    let rounds = bench.pick(4, 12);
    for round in 0..rounds {
        bench.step(round, rounds);
        let seed = round as u64 + 1;
        for (at, key) in KEYS.into_iter().enumerate() {
            let batches = |command, source: &mut Source| calls(&[command, key], source, count, PER_CALL, 4);
            let warm = batches("BF.MEXISTS", &mut Source::below(filled, !seed));
            let work = [
                ("BF.MEXISTS", batches("BF.MEXISTS", &mut Source::From(ABSENT + (seed << 32)))),
                ("BF.MEXISTS", batches("BF.MEXISTS", &mut Source::below(filled, seed))),
                ("BF.MADD", batches("BF.MADD", &mut Source::From(seed << 32))),
            ];
            if at == 0 {
                for (kind, ((command, _), samples)) in work.iter().zip(&mut samples).enumerate() {
                    bench.ours.call(&format!("BENCH.BITMAPS 1 {}", looked_at[kind]));
                    let looks = looks(command, false);
                    let floor = batches(looks, &mut Source::From((seed << 36) + ((kind as u64 + 1) << 32)));
                    samples[4].push(server_time(&mut bench.ours, looks, &floor[..2], &floor));
                }
            }
            for (server, index) in [(&mut bench.ours, at), (&mut bench.peer, at + 2)] {
                for ((command, batches), samples) in work.iter().zip(&mut samples) {
                    samples[index].push(server_time(server, command, &warm, batches));
                }
            }
        }
    }
    for (work, samples) in
        ["BF.MEXISTS, 350 absent", "BF.MEXISTS, 350 present", "BF.MADD, 350 new"].iter().zip(&samples)
    {
        let [grown, reserved, peer_grown, _, looking] = [0, 1, 2, 3, 4].map(|index| samples[index].median());
        let row = |goal, other| Row {
            work: format!("{work}, grown from capacity 100 to 2M"),
            goal,
            ours: grown,
            other: Some(other),
            unit: "µs a call",
        };
        bench.rows.push(row(Goal::Shown, ("ours, reserved", reserved)));
        bench.rows.push(row(Goal::Within(1.3), (LOOKS, looking)));
        bench.rows.push(row(NEVER_BEHIND, ("RedisBloom, grown", peer_grown)));
    }
    both(bench, |server| KEYS.iter().for_each(|key| drop(server.call(&format!("DEL {key}")))));
}
