//! Measures intersections of two to eight counters.

use rollcall_core::counting::{Counter, Estimated, View, inter_card};
use rollcall_core::window::Time;

use crate::claims::{Cell, Check, Findings, Table, members};
use crate::segments::{Kind, add};
use crate::trials::{Run, mean, rms};

/// Numbers of counters.
const SETS: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];

/// Number of members that only one counter has, for each counter, and number of common members.
const MEMBERS: [(u64, u64); 7] =
    [(300, 3), (1_000, 0), (1_000, 100), (10_000, 100), (1_000, 10_000), (0, 1_000), (0, 20_000)];

/// Counters that have `common` members in common and `own` members of their own each.
fn counters(kind: Kind, trial: u64, own: u64, common: u64) -> Vec<Counter> {
    let mut all = Vec::new();
    for set in 1..=SETS[SETS.len() - 1] as u64 {
        let mut counter = kind.filled(trial, 0..common);
        add(&mut counter, trial, set << 32..(set << 32) + own);
        all.push(counter);
    }
    all
}

/// Measures how often two standard errors of LC.INTERCARD cover the true intersection.
pub fn coverages(run: &mut Run) -> Findings {
    let mut findings = of_equal_sizes(run);
    findings.tables.extend(of_unequal_sizes(run));
    findings.tables.push(of_few_common(run));
    findings
}

/// The smallest ERROR of each size of a counter.
const ERRORS: [f64; 9] = [0.04, 0.0282, 0.02, 0.0141, 0.01, 0.00705, 0.005, 0.00353, 0.0025];
/// Pairs of sizes of two sets, of which the first is exact or estimates.
const PAIRS: [(u64, u64); 6] =
    [(250, 250), (250, 1_000), (300, 1_000), (1_000, 1_000), (1_000, 50_000), (50_000, 50_000)];
/// Numbers of members that the two sets have in common.
const FEW: [u64; 8] = [0, 1, 2, 4, 7, 20, 54, 100];

/// Measures two sets with few common members.
fn of_few_common(run: &mut Run) -> Table {
    let title = "Two sets; columns: members in common; what two errors cover";
    let mut table = Table::with_labels(title, &["ERROR", "members of A", "of B"], FEW.map(whole));
    for error_rate in ERRORS {
        let kind = Kind::new(error_rate);
        let all: Vec<Vec<Estimated>> = run.map(run.trials(400), |trial| {
            let mut reported = Vec::new();
            for (one, other) in PAIRS {
                // These members are in one set only, whatever number the sets share.
                let own = |set: u64, size: u64| kind.filled(trial, set << 32..(set << 32) + size - FEW[7]);
                let bases = [(1, one, own(1, one)), (2, other, own(2, other))];
                for common in FEW {
                    let counters = bases.each_ref().map(|(set, size, base)| {
                        let mut counter = base.try_clone().expect("memory");
                        add(&mut counter, trial, 0..common);
                        add(&mut counter, trial, (set << 32) + size - FEW[7]..(set << 32) + size - common);
                        counter
                    });
                    let views = counters.each_ref().map(|counter| counter.at(Time::Reached));
                    reported.push(inter_card(&views).expect("counters of one seed"));
                }
            }
            reported
        });
        for (row, (one, other)) in PAIRS.into_iter().enumerate() {
            let mut cells = vec![Cell::Text(error_rate.to_string()), whole(one).into(), whole(other).into()];
            for (column, common) in FEW.into_iter().enumerate() {
                let replies: Vec<Estimated> = all.iter().map(|reported| reported[row * FEW.len() + column]).collect();
                push_cells([&mut cells, &mut Vec::new()], &replies, common);
            }
            table.push(cells);
        }
    }
    table
}

/// Numbers of sets, of which the first set is smaller than the others.
const AROUND: [usize; 3] = [2, 4, 8];
/// Number of members that each large set has for itself.
const LARGE: u64 = 100_000;
/// Number of members of the small set, from 1:1 to 1:10,000, and whether its counter is exact.
const SMALL: [(u64, bool); 7] =
    [(100_000, false), (10_000, false), (1_000, false), (100, false), (100, true), (10, false), (10, true)];
/// The share of the small set's members that all large sets have too, in per cent.
const OVERLAPS: [u64; 6] = [0, 1, 10, 50, 90, 100];

/// Measures a small set and several large ones. Every member that two large sets share is in all large sets.
fn of_unequal_sizes(run: &mut Run) -> [Table; 2] {
    let kind = Kind::new(0.01);
    let all: Vec<Vec<Estimated>> = run.map(run.trials(300), |trial| {
        let own = |set: u64, number: u64| set << 32..(set << 32) + number;
        let large: Vec<Counter> = (1..AROUND[2] as u64).map(|set| kind.filled(trial, own(set, LARGE))).collect();
        let mut reported = Vec::new();
        for (size, is_exact) in SMALL {
            for overlap in OVERLAPS {
                let common = size * overlap / 100;
                let mut kind = kind;
                kind.params.exact_limit *= u32::from(is_exact);
                let mut small = kind.filled(trial, 0..common);
                add(&mut small, trial, own(9, size - common));
                let mut counters = vec![small];
                for one in &large {
                    let mut one = one.try_clone().expect("memory");
                    add(&mut one, trial, 0..common);
                    counters.push(one);
                }
                let views: Vec<View> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
                reported.extend(AROUND.map(|sets| inter_card(&views[..sets]).expect("counters of one seed")));
            }
        }
        reported
    });
    let labels = || OVERLAPS.iter().flat_map(|overlap| AROUND.map(|sets| format!("{overlap} % in {}", sets - 1)));
    let of = format!("A small set and 1, 3 or 7 of {}, ERROR 0.01", members(LARGE));
    let [mut covered, mut errors] = tables(&of, &["members of the small one"], labels);
    let each = AROUND.len() * OVERLAPS.len();
    for (row, (size, is_exact)) in SMALL.into_iter().enumerate() {
        let name = format!("{}{}", members(size), if is_exact { ", exact" } else { "" });
        let (mut of_covered, mut of_errors) = (vec![Cell::Text(name.clone())], vec![Cell::Text(name)]);
        for column in 0..each {
            let common = size * OVERLAPS[column / AROUND.len()] / 100;
            let replies: Vec<Estimated> = all.iter().map(|reported| reported[row * each + column]).collect();
            push_cells([&mut of_covered, &mut of_errors], &replies, common);
        }
        covered.push(of_covered);
        errors.push(of_errors);
    }
    [covered, errors]
}

/// The tables that [`push_cells`] fills.
pub fn tables<L: IntoIterator<Item = String>>(of: &str, heads: &[&str], labels: impl Fn() -> L) -> [Table; 2] {
    ["what two errors cover", "errors in members: found / stated"]
        .map(|what| Table::with_labels(format!("{of}; {what}"), heads, labels()))
}

/// Appends a cell to a row of each table: the share of replies within two of their standard errors, and the measured
/// and the reported errors in members.
pub fn push_cells([of_covered, of_errors]: [&mut Vec<Cell>; 2], replies: &[Estimated], truth: u64) {
    let off = |reported: &Estimated| reported.count().abs_diff(truth) as f64;
    let found = rms(&replies.iter().map(off).collect::<Vec<_>>()).value;
    let stated = mean(&replies.iter().map(|reported| reported.standard_error).collect::<Vec<_>>()).value;
    of_covered.push(Cell::Brief(Check::covered(replies.iter().map(|&reported| (reported, truth)))));
    of_errors.push(Cell::Text(format!("{found:.1} / {stated:.1}")));
}

/// Measures counters of equal sizes.
fn of_equal_sizes(run: &mut Run) -> Findings {
    let mut findings = Findings::default();
    for error_rate in [0.01, 0.005, 0.02] {
        let mut kind = Kind::new(error_rate);
        kind.params.exact_limit = 0;
        let labels = || SETS.map(|sets| format!("{sets} counters"));
        let heads = ["members of each alone", "of all"];
        let [mut covered, mut errors] = tables(&format!("ERROR {error_rate}"), &heads, labels);
        for (own, common) in MEMBERS {
            let all: Vec<Vec<Estimated>> = run.map(run.trials(400), |trial| {
                let counters = counters(kind, trial, own, common);
                let views: Vec<View> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
                SETS.map(|sets| inter_card(&views[..sets]).expect("counters of one seed")).to_vec()
            });
            let row = || vec![Cell::Text(whole(own)), Cell::Text(whole(common))];
            let (mut of_covered, mut of_errors) = (row(), row());
            for index in 0..SETS.len() {
                let replies: Vec<Estimated> = all.iter().map(|reported| reported[index]).collect();
                push_cells([&mut of_covered, &mut of_errors], &replies, common);
            }
            covered.push(of_covered);
            errors.push(of_errors);
        }
        findings.tables.extend([covered, errors]);
    }
    findings
}

/// A number of members as text, which may be 0.
fn whole(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { members(number) }
}
