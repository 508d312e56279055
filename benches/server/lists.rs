//! Rows 1 to 3, 5, 6 and 9 of docs/benchmarks.md: calls with lists of 350 items.

use rollcall_bench_output::plot::{Axis, Corner, File, Line};

use crate::contenders::{Contender, Pair, medians};
use crate::items::{Items, LIST, calls, wide_calls};
use crate::report::{Goal, Report};

/// Numbers of three sequences of items: the items in the filter, the items to add, and absent items.
const PRESENT: u64 = 1;
const NEW: u64 = 1000;
const ABSENT: u64 = 2000;
const WARM: u64 = 3000;

const BIG: u64 = 100_000_000;

/// Number of lists in a round.
const LISTS: usize = 60;

/// Measures rows 1, 2 and 9 on a filter far larger than any cache.
pub fn large(report: &mut Report) {
    let rounds = report.pick(3, 15);
    // The filter is filled to its capacity, minus the items that the rounds add. RedisBloom needs fewer probes for
    // absent items while a filter is not full. A quick run fills less.
    let filled = report.pick(500_000, BIG as usize - 3 * rounds * LISTS * LIST);
    let mut pair = Pair::start();
    pair.round(|contender| {
        contender.client.expect(&format!("BF.RESERVE big 0.001 {BIG}"), "+OK");
        contender.fill("BF.MADD", "big", &mut Items::new(PRESENT), filled);
        []
    });
    let times: Vec<_> =
        (0..rounds as u64).map(|round| pair.round(|contender| lists(contender, "big", round))).collect();
    let sockets: Vec<_> =
        (0..rounds as u64).map(|round| pair.round(|contender| over_socket(contender, round))).collect();
    pair.round(|contender| {
        assert_eq!(contender.info("big", "Number of filters"), 1.0, "the filter grew");
        []
    });
    let [added, absent] = medians(&times);
    report.row("1", "BF.MADD, 350 new, into a filter of 100 million at p = 0.001", Goal::Times(4.5), added, "µs");
    report.row("2", "BF.MEXISTS, 350 absent, of a filter of 100 million at p = 0.001", Goal::Times(5.0), absent, "µs");
    let [socket, packed] = medians(&sockets);
    report.row("9", "row 1 over a socket, one client, pipelines of 20 lists", Goal::Times(2.7), socket, "µs");
    report.row("9", "the same, but BF.INSERT WIDTH 32, beside BF.MADD", Goal::Times(4.3), packed, "µs");
}

/// The times of BF.MADD of new items and of BF.MEXISTS of absent items.
fn lists(contender: &mut Contender, key: &str, round: u64) -> [f64; 2] {
    let lists = |command, seed| calls(&format!("{command} {key}"), &mut Items::new(seed + round), LISTS, LIST);
    let warm = &lists("BF.MEXISTS", WARM)[..20];
    [("BF.MADD", NEW), ("BF.MEXISTS", ABSENT)].map(|(command, seed)| contender.time(warm, &lists(command, seed)))
}

/// The times of new items over a socket: by BF.MADD, and in one argument. RedisBloom has only BF.MADD.
fn over_socket(contender: &mut Contender, round: u64) -> [f64; 2] {
    let mut items = [500, 750].map(|seed| Items::new(NEW + seed + round));
    let lists = calls("BF.MADD big", &mut items[0], LISTS, LIST);
    let head = if contender.is_ours { "BF.INSERT big" } else { "BF.MADD big" };
    let packed = wide_calls(head, contender.is_ours, &mut items[1], LISTS, LIST);
    [lists, packed].map(|calls| contender.over_socket(&calls))
}

/// Row 3: a filter that fits into the cache. It is created for every round, so that it is never full.
pub fn small(report: &mut Report) {
    const CAPACITY: usize = 100_000;
    let mut pair = Pair::start();
    let mut round = |round| {
        pair.round(|contender| {
            contender.client.cmd("DEL small");
            contender.client.expect(&format!("BF.RESERVE small 0.01 {CAPACITY}"), "+OK");
            contender.fill("BF.MADD", "small", &mut Items::new(PRESENT), CAPACITY - LISTS * LIST);
            lists(contender, "small", round)
        })
    };
    let [added, absent] = medians(&(0..report.pick(3, 15)).map(&mut round).collect::<Vec<_>>());
    report.row("3", "BF.MADD, 350 new, into a filter of 100,000 at p = 0.01", Goal::Times(1.9), added, "µs");
    report.row("3", "BF.MEXISTS, 350 absent, of a filter of 100,000 at p = 0.01", Goal::Times(1.9), absent, "µs");
}

/// Draws the plot: row 1 for filters from 60 KB to 600 MB. The filters are not full, which does not change the time
/// of an add.
pub fn sizes(report: &mut Report) {
    let capacities = [30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000, 300_000_000];
    let mut points = [Vec::new(), Vec::new()];
    for capacity in &capacities[..report.pick(2, capacities.len())] {
        let mut pair = Pair::start();
        let mut bytes = 0.0;
        pair.round(|contender| {
            contender.client.expect(&format!("BF.RESERVE sized 0.001 {capacity}"), "+OK");
            // This number of items touches every page of memory.
            contender.fill("BF.MADD", "sized", &mut Items::new(PRESENT), 2_000_000.min(capacity / 2));
            if contender.is_ours {
                bytes = contender.info("sized", "Size");
            }
            []
        });
        let mut round = |round| {
            pair.round(|contender| {
                let lists = |seed| calls("BF.MADD sized", &mut Items::new(seed + round), 8, LIST);
                [contender.time(&calls("BF.MEXISTS sized", &mut Items::new(WARM), 8, LIST), &lists(NEW))]
            })
        };
        let [times] = medians(&(0..report.pick(1, 5)).map(&mut round).collect::<Vec<_>>());
        points.iter_mut().zip(times).for_each(|(points, time)| points.push((bytes, time)));
    }
    let [ours, theirs] = points;
    report.plot = Some(File {
        name: "time",
        title: "Server time of BF.MADD with 350 new items, p = 0.001",
        x: Axis::log_bytes("size of the filter"),
        y: Axis::log("microseconds a call"),
        lines: vec![Line::ours("Rollcall", ours), Line::theirs("RedisBloom", theirs)],
        legend: Corner::UpperLeft,
    });
}

/// Row 5: a filter that has grown from a capacity of 100.
pub fn grown(report: &mut Report) {
    let filled = report.pick(200_000, 2_000_000);
    let mut pair = Pair::start();
    pair.round(|contender| {
        contender.client.expect("BF.RESERVE grown 0.01 100", "+OK");
        contender.fill("BF.MADD", "grown", &mut Items::new(PRESENT), filled);
        []
    });
    let mut round = |round| {
        pair.round(|contender| {
            let lists = |seed| calls("BF.MEXISTS grown", &mut Items::new(seed + round), LISTS, LIST);
            [contender.time(&lists(WARM)[..20], &lists(ABSENT))]
        })
    };
    let [absent] = medians(&(0..report.pick(3, 15)).map(&mut round).collect::<Vec<_>>());
    report.row("5", "BF.MEXISTS, 350 absent, of a filter grown from 100 to 2 million", Goal::Times(3.8), absent, "µs");
}

/// Row 6: seven full days, as a window of Rollcall and as one key a day of RedisBloom. RedisBloom's keys together
/// have the error rate of the window.
pub fn week(report: &mut Report) {
    const DAY: usize = 7143;
    const DAYS: [&str; 7] = ["day:1", "day:2", "day:3", "day:4", "day:5", "day:6", "day:7"];
    let mut pair = Pair::start();
    pair.round(|contender| {
        let mut items = Items::new(PRESENT);
        if contender.is_ours {
            contender.client.expect("BF.RESERVE week 0.001 50000 WINDOW 7 MANUAL SLICES 7", "+OK");
        }
        for (number, day) in DAYS.into_iter().enumerate() {
            if contender.is_ours {
                contender.client.expect(&format!("BF.ADVANCE week {number}"), "+OK");
                contender.fill("BF.MADD", "week", &mut items, DAY);
            } else {
                contender.client.expect(&format!("BF.RESERVE {day} {} {DAY}", 0.001 / 7.0), "+OK");
                contender.fill("BF.MADD", day, &mut items, DAY);
            }
        }
        []
    });
    let mut round = |round| {
        pair.round(|contender| {
            let keys = if contender.is_ours { &["week"][..] } else { &DAYS };
            let time = |key| {
                let lists = |seed| calls(&format!("BF.MEXISTS {key}"), &mut Items::new(seed + round), LISTS, LIST);
                contender.time(&lists(WARM)[..20], &lists(ABSENT))
            };
            [keys.iter().map(time).sum()]
        })
    };
    let [absent] = medians(&(0..report.pick(3, 15)).map(&mut round).collect::<Vec<_>>());
    report.row("6", "350 absent of the last 7 days, beside seven keys", Goal::Times(7.0), absent, "µs");
}
