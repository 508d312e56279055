//! Intersections of two to eight counters.

use rollcall_core::counting::{Counter, Estimated, View, inter_card};
use rollcall_core::window::Time;

use crate::claims::{Cell, Check, Claim, Findings, Table, Unit, members};
use crate::segments::{Kind, add};
use crate::trials::{Run, error_of_share, mean, rms, share};

/// What two standard errors cover at least.
const LEAST_COVERED: f64 = 0.88;

/// Numbers of counters.
const SETS: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];

/// Members that each counter has for itself, and those that all have.
const MEMBERS: [(u64, u64); 7] =
    [(300, 3), (1_000, 0), (1_000, 100), (10_000, 100), (1_000, 10_000), (0, 1_000), (0, 20_000)];

/// Counters that share these members and have `n` of their own each.
fn counters(kind: Kind, trial: u64, own: u64, common: u64) -> Vec<Counter> {
    let mut all = Vec::new();
    for set in 1..=SETS[SETS.len() - 1] as u64 {
        let mut counter = kind.filled(trial, 0..common);
        add(&mut counter, trial, set << 32..(set << 32) + own);
        all.push(counter);
    }
    all
}

/// Whether two standard errors of LC.INTERCARD cover what they should.
pub fn coverages(run: &mut Run) -> Findings {
    let mut findings = Findings::default();
    for (error_rate, capacity) in [(0.01, 50_000), (0.01, 1_000_000), (0.02, 1_000)] {
        let mut kind = Kind::new(error_rate, capacity);
        kind.params.exact_limit = 0;
        let labels = SETS.map(|sets| format!("{sets} counters"));
        let mut heads = vec!["members of each alone", "of all"];
        heads.extend(labels.iter().map(String::as_str));
        let covered = format!("ERROR {error_rate}, CAPACITY {}; what two errors cover", members(capacity));
        let errors = format!("ERROR {error_rate}, CAPACITY {}; errors in members: found / stated", members(capacity));
        let (mut covered, mut errors) = (Table::new(covered, &heads), Table::new(errors, &heads));
        for (own, common) in MEMBERS {
            let all: Vec<Vec<Estimated>> = run.map(run.trials(400), |trial| {
                let counters = counters(kind, trial, own, common);
                let views: Vec<View> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
                SETS.map(|sets| inter_card(&views[..sets]).expect("counters of one seed")).to_vec()
            });
            let row = || vec![Cell::Text(whole(own)), Cell::Text(whole(common))];
            let (mut of_covered, mut of_errors) = (row(), row());
            for index in 0..SETS.len() {
                let told = || all.iter().map(|told| told[index]);
                let off = |told: Estimated| told.count().abs_diff(common) as f64;
                let measured = share(told().map(|told| off(told) <= 2.0 * told.standard_error))
                    .or(error_of_share(all.len(), LEAST_COVERED));
                of_covered.push(Cell::Brief(Check::new(Claim::AtLeast(LEAST_COVERED), measured, Unit::Percent(1))));
                let found = rms(&told().map(off).collect::<Vec<_>>()).value;
                let stated = mean(&told().map(|told| told.standard_error).collect::<Vec<_>>()).value;
                of_errors.push(Cell::Text(format!("{found:.1} / {stated:.1}")));
            }
            covered.push(of_covered);
            errors.push(of_errors);
        }
        findings.tables.extend([covered, errors]);
    }
    findings
}

/// A number of members, which may be none.
fn whole(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { members(number) }
}
