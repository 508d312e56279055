//! Measures filters that grow, at several moments of their growth.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::Hash128;
use rollcall_core::window::Time;

use crate::claims::{Cell, Claim, Findings, Table, Unit, members};
use crate::fills::Fills;
use crate::filters::stated_claim;
use crate::random::Random;
use crate::trials::{Run, mean, quotient};
use rollcall_bench_output::plot::{self, Line};

/// Moments of measurement: the number of items divided by the requested capacity.
const GROWTH: [f64; 10] = [0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0];
/// Error rate, capacity and expansion of each filter.
const CHAINS: [(f64, u64, u32); 11] = [
    (0.5, 1_000, 2),
    (0.3, 1_000, 2),
    (0.1, 1_000, 2),
    (0.01, 1_000, 2),
    (0.001, 1_000, 2),
    (1e-4, 1_000, 2),
    (1e-6, 1_000, 2),
    (0.01, 100, 2),
    (0.5, 1_000, 1),
    (0.01, 1_000, 1),
    (0.01, 1_000, 4),
];

/// The rate of a filter at one moment, and the rate that BF.INFO FPR reports.
#[derive(Clone, Copy)]
struct Moment {
    rate: f64,
    stated: f64,
    sub_filters: usize,
    counted: f64,
}

/// From this error rate on, the rate is measured by look-ups. An item is added only to a sub-filter if no earlier one
/// reports it, so false positives of sub-filters coincide less often than if they were independent. At lower error
/// rates coincidences are too rare to matter.
const ASKED_FROM: f64 = 0.05;

/// The present false positive rate of the filter.
fn rate(filter: &BloomFilter, random: &mut Random) -> f64 {
    if filter.params().error_rate < ASKED_FROM {
        return Fills::from(filter).rate(4_000, random);
    }
    const PLACES: u64 = 20_000;
    let found = |_: &u64| {
        let hash = Hash128 { lo: random.bits(), hi: random.bits() };
        filter.chain().iter().any(|one| one.may_contain(hash))
    };
    (0..PLACES).filter(found).count() as f64 / PLACES as f64
}

fn life(params: Params, name: &str, trial: u64) -> Vec<Moment> {
    let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("memory");
    let mut random = Random::of(name, trial);
    let mut added = 0;
    let moment = |growth: &f64| {
        let end = (growth * params.capacity as f64) as u64;
        let items: Vec<[u8; 8]> = (added..end).map(|number| (trial << 40 | number).to_le_bytes()).collect();
        filter.live(Time::Reached).add_all(&items, &Unlimited, |_| ()).expect("no limit");
        added = end;
        Moment {
            rate: rate(&filter, &mut random),
            stated: filter.false_positive_rate(),
            sub_filters: filter.sub_filters().len(),
            counted: filter.num_items() as f64 / end as f64 - 1.0,
        }
    };
    GROWTH.iter().map(moment).collect()
}

/// Measures filters that grow to a hundred times their capacity.
pub fn growth(run: &mut Run) -> Findings {
    let table = |title: &str| {
        Table::with_labels(title, &["p", "capacity", "EXPANSION"], GROWTH.map(|growth| format!("{growth}x")))
    };
    let mut rates = table("Rate over p, at most 1; columns: items over the capacity");
    let mut stated = table(
        "BF.INFO FPR over the rate, 1 to within 0.01, half full 0.025, from p = 0.3 on 0.015; columns: \
         items over the capacity",
    );
    let mut last = Table::new("At 100x", &["p", "capacity", "EXPANSION", "sub-filters", "BF.CARD - items"]);
    let mut lines = Vec::new();
    for (error_rate, capacity, expansion) in CHAINS {
        let params = Params { error_rate, capacity, expansion, seed: 0 };
        let name = format!("chain {error_rate} {capacity} {expansion}");
        // With expansion 1 a filter has a hundred sub-filters, and each look-up asks all of them. So there are fewer
        // trials.
        let trials = if expansion == 1 { 60 } else { 300 };
        let lives = run.map(run.trials(trials), |trial| life(params, &name, trial));
        let of = |index: usize, figure: fn(&Moment) -> f64| {
            mean(&lives.iter().map(|moments| figure(&moments[index])).collect::<Vec<_>>())
        };
        let row = || vec![format!("{error_rate:?}").into(), members(capacity).into(), expansion.to_string().into()];
        let (mut rate_row, mut stated_row, mut last_row): (Vec<Cell>, Vec<Cell>, Vec<Cell>) = (row(), row(), row());
        let mut points = Vec::new();
        for (index, growth) in GROWTH.iter().enumerate() {
            let rate = of(index, |moment| moment.rate).over(error_rate);
            points.push((*growth, rate.value));
            rate_row.push(Cell::brief(Claim::AtMost(1.0), rate, Unit::Plain(3)));
            let pairs: Vec<_> = lives.iter().map(|moments| (moments[index].stated, moments[index].rate)).collect();
            // At error rates from [`ASKED_FROM`] on, false positives of sub-filters coincide, so the reported rate is
            // too low. Below capacity, lines differ in load by chance.
            let claim = match stated_claim(capacity) {
                Claim::Near(..) if error_rate >= 0.3 => Claim::Near(1.0, 0.015),
                Claim::Near(..) if *growth < 1.0 => Claim::Near(1.0, 0.025),
                claim => claim,
            };
            stated_row.push(Cell::brief(claim, quotient(&pairs), Unit::Plain(3)));
        }
        let end = GROWTH.len() - 1;
        last_row.push(lives[0][end].sub_filters.to_string().into());
        let counted = of(end, |moment| moment.counted);
        last_row.push(Cell::full(Claim::Near(0.0, error_rate), counted, Unit::Percent(3)));
        rates.push(rate_row);
        stated.push(stated_row);
        last.push(last_row);
        if (capacity, expansion) == (1_000, 2) {
            lines.push(Line::nth(lines.len(), format!("p = {error_rate:?}"), points));
        }
    }
    let ends = [GROWTH[0], GROWTH[GROWTH.len() - 1]];
    lines.push(Line::floor("at most", ends.map(|growth| (growth, 1.0)).to_vec()).curve());
    let plot = plot::File {
        name: "chain",
        title: "Rate of growing filters over the rate asked for",
        x: plot::Axis::log("items added, over the capacity"),
        y: plot::Axis::linear("rate / p"),
        lines,
        legend: plot::Corner::LowerRight,
    };
    Findings { tables: vec![rates, stated, last], plots: vec![plot] }
}
