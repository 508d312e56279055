//! Measures differences of counters.

use rollcall_core::counting::{Counter, Estimated, diff_card};
use rollcall_core::window::Time;

use crate::claims::{Cell, Check, Claim, Findings, LEAST_COVERED, Table, Unit, members};
use crate::segments::{Kind, add};
use crate::trials::{Run, mean, rms, share};
use rollcall_bench_output::plot::{self, Line};

const DEFAULT: f64 = 0.01;
const COARSE: f64 = 0.02;
const FINE: f64 = 0.0025;

/// The share by which the root mean square may exceed the reported error.
const STATED_WITHIN: f64 = 0.05;

/// Numbers of members that only the first counter has.
const MISSING: [u64; 9] = [1, 2, 3, 5, 20, 100, 1_000, 10_000, 100_000];

fn difference(one: &Counter, other: &Counter) -> Estimated {
    diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).expect("counters of one seed")
}

/// The differences between a counter and `other`, while more and more missing members are added to the counter, which
/// begins as `one`.
fn differences(mut one: Counter, other: &Counter, trial: u64, first: u64) -> Vec<Estimated> {
    let mut added = 0;
    let mut at = |&missing: &u64| {
        add(&mut one, trial, first + added..first + missing);
        added = missing;
        difference(&one, other)
    };
    MISSING.iter().map(&mut at).collect()
}

fn coverage(all: &[Vec<Estimated>]) -> Vec<Check> {
    let of =
        |(index, &missing): (usize, &u64)| Check::covered(all.iter().map(|differences| (differences[index], missing)));
    MISSING.iter().enumerate().map(of).collect()
}

/// Measures how often two standard errors of LC.DIFFCARD cover the true difference.
pub fn coverages(run: &mut Run) -> Findings {
    let mut findings = Findings::default();
    let mut lines = Vec::new();
    for error_rate in [DEFAULT, COARSE, FINE] {
        let kind = Kind::new(error_rate);
        let title = format!("ERROR {error_rate}; columns: members of A that B lacks");
        let mut table = Table::with_labels(title, &["members of B"], MISSING.map(members));
        for base in [1_000, 2_500, 10_000, 50_000, 200_000, 1_000_000] {
            let all = run.map(run.trials(if base > 100_000 { 300 } else { 1_000 }), |trial| {
                let other = kind.filled(trial, 0..base);
                differences(other.try_clone().expect("memory"), &other, trial, base)
            });
            let checks = coverage(&all);
            if error_rate == DEFAULT {
                let points = MISSING.iter().zip(&checks).map(|(&n, check)| (n as f64, 100.0 * check.measured.value));
                lines.push(Line::nth(lines.len(), format!("{} members of B", members(base)), points.collect()));
            }
            let cells = std::iter::once(Cell::Text(members(base)));
            table.push(cells.chain(checks.into_iter().map(Cell::Brief)).collect());
        }
        let all = run.map(run.trials(1_000), |trial| {
            let mut other = kind.filled(trial, 0..20_000);
            let one = other.try_clone().expect("memory");
            add(&mut other, trial, 1 << 32..(1 << 32) + 30_000);
            differences(one, &other, trial, 20_000)
        });
        let cells = std::iter::once(Cell::from("50,000, of which A has 20,000"));
        table.push(cells.chain(coverage(&all).into_iter().map(Cell::Brief)).collect());
        findings.tables.push(table);
    }
    let ends = [MISSING[0], MISSING[MISSING.len() - 1]].map(|n| (n as f64, 100.0 * LEAST_COVERED));
    lines.push(Line::floor("at least", ends.to_vec()).curve());
    findings.plots.push(plot::File {
        name: "coverage",
        title: "How often the true number lies within two standard errors of LC.DIFFCARD",
        x: plot::Axis::log("members of A that B lacks"),
        y: plot::Axis::linear("share of the replies, %"),
        lines,
        legend: plot::Corner::LowerRight,
    });
    findings.tables.push(exact_against_large(run));
    findings.tables.push(small_against_large(run));
    findings
}

/// Measures differences of a small exact counter and a large one. The error should be that of the large counter's
/// layout.
fn exact_against_large(run: &mut Run) -> Table {
    let mut table = Table::new(
        "A exact, of 200 members and ERROR 0.02, 100 of them in B of 40,000; errors in members",
        &["B", "error", "stated, on average", "error / stated", "within 2"],
    );
    for error_rate in [DEFAULT, 0.005, FINE] {
        let (small, large) = (Kind::new(COARSE), Kind::new(error_rate));
        let all = run.map(run.trials(2_000), |trial| {
            let (one, other) = (small.filled(trial, 0..200), large.filled(trial, 100..40_100));
            difference(&one, &other)
        });
        let errors: Vec<f64> = all.iter().map(|difference| difference.count() as f64 - 100.0).collect();
        let stated = mean(&all.iter().map(|difference| difference.standard_error).collect::<Vec<_>>());
        // The large counter's layout causes this error for 100 members beside 40,000. Some of these members set no
        // bit of their own.
        let of_large = all_in_large(run, large);
        table.push(vec![
            format!("ERROR {error_rate}").into(),
            Cell::full(Claim::AtMost((1.0 + STATED_WITHIN) * of_large), rms(&errors), Unit::Plain(2)),
            Cell::brief(Claim::Nothing, stated, Unit::Plain(2)),
            Cell::brief(Claim::AtMost(1.0 + STATED_WITHIN), rms(&errors).quotient(stated), Unit::Plain(3)),
            Cell::Brief(Check::covered(all.iter().map(|&difference| (difference, 100)))),
        ]);
    }
    table
}

/// Pairs of estimating counters without a common member: the members of both, and the most error of the difference in
/// members that the documents claim.
const DISJOINT: [(u64, u64, f64); 2] = [(500, 50_000, 45.0), (3_000, 30_000, 65.0)];

/// Measures differences of a small counter and a large one that have nothing in common. A difference is never above the
/// count of its first counter.
fn small_against_large(run: &mut Run) -> Table {
    let mut table = Table::new(
        "A and B of ERROR 0.01, none of A in B; errors in members",
        &["members of A", "of B", "error", "within 2", "above LC.COUNT A"],
    );
    let kind = Kind::new(DEFAULT);
    for (small, large, most) in DISJOINT {
        let all = run.map(run.trials(1_000), |trial| {
            let (one, other) = (kind.filled(trial, 0..small), kind.filled(trial, small..small + large));
            (difference(&one, &other), one.count())
        });
        let errors: Vec<f64> = all.iter().map(|(difference, _)| difference.count() as f64 - small as f64).collect();
        let above = share(all.iter().map(|(difference, count)| difference.count() > *count));
        table.push(vec![
            members(small).into(),
            members(large).into(),
            Cell::full(Claim::AtMost(most), rms(&errors), Unit::Plain(1)),
            Cell::Brief(Check::covered(all.iter().map(|&(difference, _)| (difference, small)))),
            Cell::brief(Claim::Never, above, Unit::Percent(1)),
        ]);
    }
    table
}

/// The mean reported error of the differences in [`exact_against_large`], if both counters had the layout of the
/// large one.
fn all_in_large(run: &mut Run, large: Kind) -> f64 {
    let stated = run.map(run.trials(400), |trial| {
        let (mut one, other) = (large.filled(trial, 0..200), large.filled(trial, 100..40_100));
        // The counter gets too many members to be exact, and the other counter has all of them.
        add(&mut one, trial, 200..1_000);
        difference(&one, &other).standard_error
    });
    mean(&stated).value
}
