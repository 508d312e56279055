//! Rows 4 and 8: one item a call, and counters beside HyperLogLogs.

use crate::contenders::{Pair, medians};
use crate::items::{Items, LIST, calls};
use crate::report::{Goal, Report};

/// Row 4: one item a call. Where its memory lies makes one process some per cent slower than another, so several pairs
/// of servers are measured.
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

/// Row 8: LC.ADD of Rollcall beside PFADD of the server, with members that are new and that were there.
pub fn counters(report: &mut Report) {
    const LISTS: usize = 40;
    let mut pair = Pair::start();
    for (members, name) in [(50_000, "50,000"), (1_000_000, "a million")] {
        let mut round = |round: u64| {
            pair.round(|contender| {
                let command = if contender.is_ours { "LC.ADD" } else { "PFADD" };
                contender.client.cmd("DEL count");
                if contender.is_ours {
                    contender.client.expect(&format!("LC.RESERVE count {members}"), "+OK");
                }
                contender.fill(command, "count", &mut Items::new(1), members - LISTS * LIST);
                let lists = |seed| calls(&format!("{command} count"), &mut Items::new(seed), LISTS, LIST);
                // The first members are there already.
                let seen = lists(1);
                [contender.time(&seen[..4], &lists(100 + round)), contender.time(&seen[..4], &seen)]
            })
        };
        let [new, seen] = medians(&(0..report.pick(1, 5)).map(&mut round).collect::<Vec<_>>());
        for (items, figures) in [("new", new), ("seen", seen)] {
            report.row("8", &format!("LC.ADD, 350 {items}, into {name}, beside PFADD"), Goal::Shown, figures, "µs");
        }
    }
}
