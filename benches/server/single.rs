//! Rows 4, 8 and 9b of docs/benchmarks.md, and the bytes of counters: calls with one item, and counters compared with
//! HyperLogLogs.

use redis::Value;

use crate::contenders::{Contender, Pair, medians};
use crate::items::{Items, LIST, calls, wide_calls};
use crate::report::{Goal, Report};

/// Row 4: one item in each call. Memory placement makes some processes a few per cent slower, so several pairs of
/// servers are measured.
pub fn items(report: &mut Report) {
    const CAPACITY: usize = 1_000_000;
    let (pairs, rounds, count) = (report.pick(1, 5), report.pick(2, 3), report.pick(5_000, 20_000));
    let mut figures = Vec::new();
    for _ in 0..pairs {
        let mut pair = Pair::start();
        pair.round(|contender| {
            contender.client.expect(&format!("BF.RESERVE one 0.01 {CAPACITY}"), "+OK");
            contender.fill("BF.MADD", "one", &mut Items::new(1), CAPACITY - rounds * count);
            []
        });
        figures.extend((0..rounds as u64).map(|round| {
            pair.round(|contender| {
                let calls = |command, seed| calls(&format!("{command} one"), &mut Items::new(seed + round), count, 1);
                let warm = calls("BF.EXISTS", 300);
                [("BF.ADD", 100), ("BF.EXISTS", 200)].map(|(name, seed)| contender.time(&warm, &calls(name, seed)))
            })
        }));
    }
    let [added, absent] = medians(&figures);
    report.row("4", "BF.ADD, one new item, into a filter of a million", Goal::Times(1.25), added, "µs");
    report.row("4", "BF.EXISTS, one absent item, of a filter of a million", Goal::Times(1.25), absent, "µs");
}

/// The command that adds members to a counter of Rollcall or to a HyperLogLog.
fn adding(contender: &Contender) -> &'static str {
    if contender.is_ours { "LC.ADD" } else { "PFADD" }
}

/// Row 8: compares LC.ADD of Rollcall with PFADD of Redis, for new members and for members already present.
pub fn counters(report: &mut Report) {
    const LISTS: usize = 40;
    let mut pair = Pair::start();
    for (members, name, least) in [(50_000, "50,000", 1.33), (1_000_000, "a million", 1.5)] {
        let mut round = |round: u64| {
            pair.round(|contender| {
                let command = adding(contender);
                contender.client.cmd("DEL count");
                contender.fill(command, "count", &mut Items::new(1), members - LISTS * LIST);
                let lists = |seed| calls(&format!("{command} count"), &mut Items::new(seed), LISTS, LIST);
                // The first members are already present.
                let seen = lists(1);
                [contender.time(&seen[..4], &lists(100 + round)), contender.time(&seen[..4], &seen)]
            })
        };
        let [new, seen] = medians(&(0..report.pick(1, 5)).map(&mut round).collect::<Vec<_>>());
        for (items, figures) in [("new", new), ("seen", seen)] {
            report.row(
                "8",
                &format!("LC.ADD, 350 {items}, into {name}, beside PFADD"),
                Goal::Times(least),
                figures,
                "µs",
            );
        }
    }
}

/// Row 9b: lists in one argument beside PFADD, over a socket.
pub fn packed_counters(report: &mut Report) {
    const LISTS: usize = 60;
    let mut pair = Pair::start();
    pair.round(|contender| {
        contender.fill(adding(contender), "count", &mut Items::new(1), 1_000_000);
        []
    });
    let mut round = |round: u64| {
        pair.round(|contender| {
            let mut items = Items::new(100 + round);
            let head = if contender.is_ours { "LC.INSERT count" } else { "PFADD count" };
            [contender.over_socket(&wide_calls(head, contender.is_ours, &mut items, LISTS, LIST))]
        })
    };
    let [packed] = medians(&(0..report.pick(3, 15)).map(&mut round).collect::<Vec<_>>());
    let work = "LC.INSERT WIDTH 32, 350 new, into a million, beside PFADD, over a socket, pipelines of 20 lists";
    report.row("9b", work, Goal::Times(3.0), packed, "µs");
}

/// Compares the bytes of a default counter with those of a HyperLogLog of the same members.
pub fn bytes_of_counters(report: &mut Report) {
    let mut pair = Pair::start();
    let mut before = 0;
    for (members, least) in [(1_000, 1.0), (10_000, 1.0), (50_000, 1.0), (1_000_000, 1.67)] {
        let figures = pair.round(|contender| {
            contender.fill(adding(contender), "count", &mut Items::new(members as u64), members - before);
            let usage = contender.client.int("MEMORY USAGE count") as f64;
            let Value::BulkString(dump) = contender.client.cmd("DUMP count") else { panic!("no payload") };
            [usage, dump.len() as f64]
        });
        before = members;
        let [memory, dump] = medians(&[figures]);
        report.row(
            "bytes",
            &format!("MEMORY USAGE of {members} members, beside PFADD"),
            Goal::Times(least),
            memory,
            "bytes",
        );
        report.row("bytes", &format!("DUMP of {members} members, beside PFADD"), Goal::Shown, dump, "bytes");
    }
}
