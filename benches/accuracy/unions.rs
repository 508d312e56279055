//! Several counters: unions and differences.

use rollcall_core::counting::{Counter, Estimated, count_union};
use rollcall_core::size_limit::Unlimited;

use crate::claims::{Cell, Check, Claim, Findings, Table, Unit, members};
use crate::segments::{Kind, add};
use crate::trials::{Run, mean, rms, share};
use rollcall_bench_output::plot::{self, Line};

const DEFAULT: (f64, u64) = (0.01, 50_000);
const COARSE: (f64, u64) = (0.02, 1_000);
const FINE: (f64, u64) = (0.001, 1_000_000);

/// How near the root mean square is to the stated error.
const STATED_WITHIN: f64 = 0.05;

/// A counter of a union: its kind, and which members it has.
type Part = ((f64, u64), std::ops::Range<u64>);

/// Unions, and what is merged, against the standard error of the union. The first part is never exact.
pub fn unions(run: &mut Run) -> Findings {
    let cases: [(&str, u64, Vec<Part>); 7] = [
        (
            "ten of the defaults, each shares half its members with the next",
            55_000,
            (0..10).map(|index| (DEFAULT, index * 5_000..index * 5_000 + 10_000)).collect(),
        ),
        (
            "two of the defaults, 20 times past their capacity",
            1_000_000,
            vec![(DEFAULT, 0..600_000), (DEFAULT, 400_000..1_000_000)],
        ),
        (
            "0.01 for 50,000 and 0.01 for 1,000,000",
            50_000,
            vec![(DEFAULT, 0..30_000), ((0.01, 1_000_000), 20_000..50_000)],
        ),
        (
            "0.02 for 100,000 and 0.02 for 1,000,000",
            80_000,
            vec![((0.02, 100_000), 0..50_000), ((0.02, 1_000_000), 40_000..80_000)],
        ),
        ("0.001 for 1,000,000 and 0.02 for 1,000", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..400)]),
        ("0.001 for 1,000,000 and an exact one of 0.02 for 1,000", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..200)]),
        ("0.001 for 1,000,000 and an empty one of 0.02 for 1,000", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..0)]),
    ];
    let mut table = Table::new("", &["counters", "members", "error", "bias / stated", "LC.MERGE gives another count"]);
    for (name, number, parts) in cases {
        // Only what has bits decides how they are laid out, so the error is that of the union of those.
        let with_bits: Vec<Kind> = parts
            .iter()
            .filter(|(kind, range)| (range.end - range.start) > u64::from(Kind::new(kind.0, kind.1).params.exact_limit))
            .map(|&((error_rate, capacity), _)| Kind::new(error_rate, capacity))
            .collect();
        let stated = merged_error(&with_bits, number);
        let trials = run.trials(if number > 100_000 { 400 } else { 1_500 });
        let counts = run.map(trials, |trial| {
            let fill = |(kind, range): &Part| Kind::new(kind.0, kind.1).filled(trial, range.clone());
            let counters: Vec<Counter> = parts.iter().map(fill).collect();
            let all: Vec<&Counter> = counters.iter().collect();
            let count = count_union(&all).expect("counters of one seed");
            let mut merged = counters[0].try_clone().expect("memory");
            merged.merge(&all[1..], &Unlimited).expect("counters of one seed");
            (count, merged.count())
        });
        let errors: Vec<f64> = counts.iter().map(|&(count, _)| count as f64 / number as f64 - 1.0).collect();
        let is_other = share(counts.iter().map(|(count, merged)| count != merged));
        table.push(vec![
            name.into(),
            members(number).into(),
            Cell::Full(Check::new(Claim::Near(stated, STATED_WITHIN * stated), rms(&errors), Unit::Percent(3))),
            Cell::Brief(Check::new(Claim::Near(0.0, 0.1), mean(&errors).over(stated), Unit::Plain(3))),
            Cell::Brief(Check::new(Claim::Never, is_other, Unit::Percent(1))),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// The standard error that counters of these kinds state once merged, relative to so many members.
fn merged_error(kinds: &[Kind], number: u64) -> f64 {
    let exact_limit = u64::from(kinds[0].params.exact_limit);
    let counters: Vec<Counter> = kinds.iter().map(|kind| kind.filled(0, 0..exact_limit + 1)).collect();
    let mut merged = counters[0].try_clone().expect("memory");
    merged.merge(&counters[1..].iter().collect::<Vec<_>>(), &Unlimited).expect("counters of one seed");
    add(&mut merged, 0, 0..number);
    merged.standard_error()
}

/// What two standard errors of a difference cover at least.
const LEAST_COVERED: f64 = 0.88;

/// Members that only the first has.
const MISSING: [u64; 7] = [1, 5, 20, 100, 1_000, 10_000, 100_000];

fn is_covered(difference: &Estimated, missing: u64) -> bool {
    (difference.estimate - missing as f64).abs() <= 2.0 * difference.standard_error
}

/// The differences of a counter that begins as `one` and gets missing members, a few, more and more.
fn differences(mut one: Counter, other: &Counter, trial: u64, first: u64) -> Vec<Estimated> {
    let mut added = 0;
    let mut at = |&missing: &u64| {
        add(&mut one, trial, first + added..first + missing);
        added = missing;
        one.difference(&[other]).expect("counters of one seed")
    };
    MISSING.iter().map(&mut at).collect()
}

fn coverage(all: &[Vec<Estimated>]) -> Vec<Check> {
    let covered = |(index, &missing): (usize, &u64)| {
        let measured = share(all.iter().map(|differences| is_covered(&differences[index], missing)));
        Check::new(Claim::AtLeast(LEAST_COVERED), measured, Unit::Percent(1))
    };
    MISSING.iter().enumerate().map(covered).collect()
}

/// Whether two standard errors of LC.DIFFCOUNT cover what they should.
pub fn coverages(run: &mut Run) -> Findings {
    let mut heads = vec!["members of B"];
    let labels = MISSING.map(members);
    heads.extend(labels.iter().map(String::as_str));
    let mut findings = Findings::default();
    let mut lines = Vec::new();
    for (error_rate, capacity) in [DEFAULT, COARSE, FINE] {
        let kind = Kind::new(error_rate, capacity);
        let title = format!("ERROR {error_rate}, CAPACITY {}; columns: members of A that B lacks", members(capacity));
        let mut table = Table::new(title, &heads);
        for base in [1_000, 10_000, 50_000, 200_000, 1_000_000] {
            let all = run.map(run.trials(if base > 100_000 { 300 } else { 1_000 }), |trial| {
                let other = kind.filled(trial, 0..base);
                differences(other.try_clone().expect("memory"), &other, trial, base)
            });
            let checks = coverage(&all);
            if (error_rate, capacity) == DEFAULT {
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
        title: "What two standard errors of LC.DIFFCOUNT cover",
        x: plot::Axis::log("members of A that B lacks"),
        y: plot::Axis::linear("share of the replies, %"),
        lines,
        marks: Vec::new(),
        legend: plot::Corner::LowerRight,
    });
    findings.tables.push(exact_against_large(run));
    findings
}

/// A small exact counter against a large one: as fine as the large one.
fn exact_against_large(run: &mut Run) -> Table {
    let mut table = Table::new(
        "A exact, of 200 members and ERROR 0.02, 100 of them in B of 40,000; errors in members",
        &["B", "error", "stated, on average", "error / stated", "within 2"],
    );
    for (error_rate, capacity) in [DEFAULT, (0.01, 1_000_000), (0.005, 1_000_000), FINE] {
        let (small, large) = (Kind::new(COARSE.0, COARSE.1), Kind::new(error_rate, capacity));
        let all = run.map(run.trials(2_000), |trial| {
            let (one, other) = (small.filled(trial, 0..200), large.filled(trial, 100..40_100));
            one.difference(&[&other]).expect("counters of one seed")
        });
        let errors: Vec<f64> = all.iter().map(|difference| difference.estimate - 100.0).collect();
        let stated = mean(&all.iter().map(|difference| difference.standard_error).collect::<Vec<_>>());
        // What the layout of B allows: its own count of 100 members beside 40,000.
        let of_large = all_in_large(run, large);
        table.push(vec![
            format!("ERROR {error_rate}, CAPACITY {}", members(capacity)).into(),
            Cell::Full(Check::new(Claim::Near(of_large, STATED_WITHIN * of_large), rms(&errors), Unit::Plain(2))),
            Cell::Brief(Check::new(Claim::Nothing, stated, Unit::Plain(2))),
            Cell::Brief(Check::new(Claim::Near(1.0, STATED_WITHIN), rms(&errors).quotient(stated), Unit::Plain(3))),
            Cell::Brief(Check::new(
                Claim::AtLeast(LEAST_COVERED),
                share(all.iter().map(|difference| is_covered(difference, 100))),
                Unit::Percent(1),
            )),
        ]);
    }
    table
}

/// The error of the same difference, stated by two counters of the large one's layout.
fn all_in_large(run: &mut Run, large: Kind) -> f64 {
    let stated = run.map(run.trials(400), |trial| {
        let (mut one, other) = (large.filled(trial, 0..200), large.filled(trial, 100..40_100));
        // Beyond exact, and nothing that the other has not.
        add(&mut one, trial, 200..1_000);
        one.difference(&[&other]).expect("counters of one seed").standard_error
    });
    mean(&stated).value
}
