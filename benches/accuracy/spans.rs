//! Measures time spans of windowed counters: counts, and commands on two counters with a time span for each.

use rollcall_core::counting::{Counter, Estimated, View, diff_card, inter_card, union_card};
use rollcall_core::live::Value;
use rollcall_core::window::{ClockSource, Time, Window};

use crate::claims::{Cell, Findings, members};
use crate::intersections::{push_cells, tables};
use crate::segments::{Kind, add};
use crate::trials::Run;

const HOUR: u64 = 3_600;
/// Length of the windows in hours.
const HOURS: u64 = 12;
/// Number of hours in a trial. The members of the first hours expire.
const PASSED: u64 = 16;

/// Number of members per hour, and number of trials.
const EACH: [(u64, u64); 3] = [(700, 600), (7_000, 400), (70_000, 400)];

/// Cases: the time span of A in hours, that of B (`None` if B has no window), and the number of hours by which B's
/// members are ahead of A's.
const CASES: [(u64, Option<u64>, u64); 6] =
    [(1, Some(1), 1), (12, Some(3), 0), (12, Some(12), 2), (3, Some(12), 1), (6, None, 4), (1, Some(12), 12)];

/// The members added from the hour `first` to the hour `last`, both included. Each hour has `each` members, half of
/// which are members of the hour before.
fn seen(first: u64, last: u64, each: u64) -> std::ops::Range<u64> {
    first * (each / 2)..last * (each / 2) + each
}

/// A counter of all hours, with slices of `slice` seconds or without a window.
fn filled(kind: Kind, trial: u64, slice: Option<u64>, each: u64, ahead: u64) -> Counter {
    let mut counter = kind.counter();
    if let Some(slice) = slice {
        let slices = u32::try_from(HOURS * HOUR / slice).expect("few slices");
        let window = Window::new(HOURS * HOUR, slices, Counter::MAX_SLICES, ClockSource::Manual).expect("a window");
        counter = counter.with_window(window, 0).expect("an empty counter");
    }
    for hour in 0..PASSED {
        if let Some(slice) = slice {
            // The last slice of the hour.
            counter.advance((hour + 1) * HOUR / slice - 1);
        }
        add(&mut counter, trial, seen(hour + ahead, hour + ahead, each));
    }
    counter
}

/// The members of the last hours. With the manual clock, the present is the last second of an hour.
fn view(counter: &Counter, hours: Option<u64>) -> View<'_> {
    match hours {
        Some(hours) => counter.since(hours * HOUR - HOUR / 4, Time::Reached).expect("within the window"),
        None => counter.at(Time::Reached),
    }
}

/// The estimates of four commands, each with the true number: COUNTSINCE of A, and UNIONCARD, INTERCARD and DIFFCARD of
/// both.
fn ask(a: &Counter, b: &Counter, each: u64, case: (u64, Option<u64>, u64)) -> [(Estimated, u64); 4] {
    let (hours, others, ahead) = case;
    let views = [view(a, Some(hours)), view(b, others)];
    let of_a = seen(PASSED - hours, PASSED - 1, each);
    let of_b = seen(PASSED - others.unwrap_or(PASSED) + ahead, PASSED - 1 + ahead, each);
    let both = of_a.end.min(of_b.end).saturating_sub(of_a.start.max(of_b.start));
    let [a_alone, b_alone] = [of_a, of_b].map(|members| members.end - members.start - both);
    let seeds = "counters of one seed";
    [
        (views[0].estimated(), a_alone + both),
        (union_card(&views).expect(seeds), a_alone + both + b_alone),
        (inter_card(&views).expect(seeds), both),
        (diff_card(&views).expect(seeds), a_alone),
    ]
}

/// Measures whether replies about time spans have the errors that they report.
pub fn coverages(run: &mut Run) -> Findings {
    let heads =
        ["members an hour", "hours of A", "of B", "LC.COUNTSINCE", "LC.UNIONCARD", "LC.INTERCARD", "LC.DIFFCARD"];
    let mut findings = Findings::default();
    for error_rate in [0.01, 0.02] {
        let mut kind = Kind::new(error_rate);
        kind.params.exact_limit = 0;
        let of = format!("ERROR {error_rate}, 12 hours, B in slices half as long");
        let [mut covered, mut errors] = tables(&of, &heads, || []);
        // A quick run leaves out the largest number of members, which would take most of its time.
        for (each, trials) in EACH.into_iter().take(if run.is_quick { 2 } else { EACH.len() }) {
            let all = run.map(run.trials(trials), |trial| {
                let a = filled(kind, trial, Some(HOUR), each, 0);
                CASES.map(|case| {
                    let b = filled(kind, trial, case.1.map(|_| HOUR / 2), each, case.2);
                    ask(&a, &b, each, case)
                })
            });
            for (index, (hours, others, _)) in CASES.into_iter().enumerate() {
                let row = || {
                    let others = others.map_or("no window".to_owned(), |hours| hours.to_string());
                    vec![Cell::Text(members(each)), Cell::Text(hours.to_string()), Cell::Text(others)]
                };
                let (mut of_covered, mut of_errors) = (row(), row());
                for question in 0..4 {
                    let replies: Vec<Estimated> = all.iter().map(|replies| replies[index][question].0).collect();
                    push_cells([&mut of_covered, &mut of_errors], &replies, all[0][index][question].1);
                }
                covered.push(of_covered);
                errors.push(of_errors);
            }
        }
        findings.tables.extend([covered, errors]);
    }
    findings
}
