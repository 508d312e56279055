//! Measures unions of several counters.

use rollcall_core::counting::{Counter, View, union_card};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

use crate::claims::{Cell, Claim, Findings, Table, Unit, members};
use crate::segments::{Kind, add};
use crate::trials::{Run, error_of_rms, mean, rms, share};

const DEFAULT: f64 = 0.01;
const COARSE: f64 = 0.02;
const FINE: f64 = 0.0025;

/// The share by which the root mean square may differ from the reported error.
const STATED_WITHIN: f64 = 0.05;

/// A counter of a union: its error rate, and the range of its members.
type Part = (f64, std::ops::Range<u64>);

/// Compares the errors of unions, and of merged counters, with the reported standard error. The first counter of a
/// union is never exact.
pub fn unions(run: &mut Run) -> Findings {
    let cases: [(&str, u64, Vec<Part>); 6] = [
        (
            "ten of the defaults, each shares half its members with the next",
            55_000,
            (0..10).map(|index| (DEFAULT, index * 5_000..index * 5_000 + 10_000)).collect(),
        ),
        (
            "two of the defaults, with a third of the members in common",
            1_000_000,
            vec![(DEFAULT, 0..600_000), (DEFAULT, 400_000..1_000_000)],
        ),
        ("0.01 and 0.02", 50_000, vec![(DEFAULT, 0..30_000), (COARSE, 20_000..50_000)]),
        ("0.0025 and 0.02", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..400)]),
        ("0.0025 and an exact one of 0.02", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..200)]),
        ("0.0025 and an empty one of 0.02", 40_000, vec![(FINE, 0..40_000), (COARSE, 0..0)]),
    ];
    let mut table = Table::new("", &["counters", "members", "error", "bias / stated", "LC.MERGE gives another count"]);
    for (name, number, parts) in cases {
        // Only counters that are no longer exact have bitmaps, so the error is that of their union.
        let with_bits: Vec<Kind> = parts
            .iter()
            .filter(|(kind, range)| (range.end - range.start) > u64::from(Kind::new(*kind).params.exact_limit))
            .map(|&(error_rate, _)| Kind::new(error_rate))
            .collect();
        let stated = merged_error(&with_bits, number);
        let trials = run.trials(if number > 100_000 { 400 } else { 1_500 });
        let counts = run.map(trials, |trial| {
            let fill = |(kind, range): &Part| Kind::new(*kind).filled(trial, range.clone());
            let counters: Vec<Counter> = parts.iter().map(fill).collect();
            let all: Vec<View> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
            let count = union_card(&all).expect("counters of one seed").count();
            let mut merged = counters[0].try_clone().expect("memory");
            let others: Vec<&Counter> = counters[1..].iter().collect();
            merged.live(Time::Reached).merge(&others, &Unlimited).expect("counters of one seed");
            (count, merged.count())
        });
        let errors: Vec<f64> = counts.iter().map(|&(count, _)| count as f64 / number as f64 - 1.0).collect();
        let is_other = share(counts.iter().map(|(count, merged)| count != merged));
        let of_rms = error_of_rms(errors.len(), stated, (number as f64 * stated).powi(2));
        let of_mean = 1.0 / (errors.len() as f64).sqrt();
        table.push(vec![
            name.into(),
            members(number).into(),
            Cell::full(Claim::Near(stated, STATED_WITHIN * stated), rms(&errors).or(of_rms), Unit::Percent(3)),
            Cell::brief(Claim::Near(0.0, 0.1), mean(&errors).over(stated).or(of_mean), Unit::Plain(3)),
            Cell::brief(Claim::Never, is_other, Unit::Percent(1)),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// The relative standard error that merged counters of these kinds report for `number` members.
fn merged_error(kinds: &[Kind], number: u64) -> f64 {
    let exact_limit = u64::from(kinds[0].params.exact_limit);
    let counters: Vec<Counter> = kinds.iter().map(|kind| kind.filled(0, 0..exact_limit + 1)).collect();
    let mut merged = counters[0].try_clone().expect("memory");
    merged
        .live(Time::Reached)
        .merge(&counters[1..].iter().collect::<Vec<_>>(), &Unlimited)
        .expect("counters of one seed");
    add(&mut merged, 0, 0..number);
    merged.standard_error()
}
