//! Measures filters that do not grow: their rate at capacity, for single filters and on average, and after they are
//! filled until they reject items.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::error::Error;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::hash128;
use rollcall_core::window::Time;

use crate::claims::{Cell, Claim, Findings, Table, Unit, members};
use crate::fills::Fills;
use crate::random::Random;
use crate::trials::{Measured, Run, deviation, mean, quotient, share};
use rollcall_bench_output::plot::{self, Line};

const RATES: [f64; 14] = [0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 1e-4, 1e-5, 1e-6, 1e-9, 1e-12, 1e-15];
const CAPACITIES: [u64; 6] = [30, 100, 1_000, 10_000, 100_000, 1_000_000];
/// Error rates that the plot shows.
const DRAWN: [f64; 7] = [0.5, 0.1, 0.01, 0.001, 1e-6, 1e-9, 1e-15];

/// An item of a trial. No other trial has an equal item.
fn item(trial: u64, number: u64) -> [u8; 8] {
    (trial << 40 | number).to_le_bytes()
}

/// A sub-filter with as many distinct items as its capacity.
fn full(error_rate: f64, capacity: u64, trial: u64) -> SubFilter {
    let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).expect("memory");
    (0..capacity).for_each(|number| _ = filter.insert(hash128(&item(trial, number), 0)));
    filter
}

/// A filter of an error rate, a capacity and an expansion that has taken at most `most` items of a trial until it was
/// full, and their number.
fn filled(
    layout: BitLayout,
    (error_rate, capacity, expansion): (f64, u64, u32),
    trial: u64,
    most: u64,
) -> (BloomFilter, usize) {
    let params = Params { error_rate, capacity, expansion, seed: 0 };
    let mut filter = BloomFilter::new(layout, params, &Unlimited).expect("memory");
    let mut add = |number| filter.live(Time::Reached).add(item(trial, number), &Unlimited);
    let taken = (0..most).map_while(|number| match add(number) {
        Err(Error::Full { .. }) => None,
        added => Some(added.expect("memory")),
    });
    let taken = taken.count();
    (filter, taken)
}

/// Measures full filters with every error rate and many sizes.
pub fn at_capacity(run: &mut Run) -> Findings {
    // A quick run leaves out the largest capacity, for which adding takes most of the time.
    let capacities = &CAPACITIES[..CAPACITIES.len() - usize::from(run.is_quick)];
    let title = "Rate over p, at most 1; columns: capacity";
    let mut table = Table::with_labels(title, &["rate asked for, p"], capacities.iter().copied().map(members));
    let mut lines = Vec::new();
    for error_rate in RATES {
        let mut row = vec![Cell::Text(format!("{error_rate:?}"))];
        let mut points = Vec::new();
        for &capacity in capacities {
            // The numbers of filters and of look-ups in each are chosen so that all sizes take the same time.
            let filters = run.trials((10_000_000 / capacity).clamp(10, 20_000));
            let places = (run.questions(4_000_000) / filters).clamp(400, 100_000);
            let name = format!("capacity {error_rate} {capacity}");
            let rates = run.map(filters, |trial| {
                let filter = full(error_rate, capacity, trial);
                Fills::from(&filter).rate(places, &mut Random::of(&name, trial)) / error_rate
            });
            let measured = mean(&rates);
            points.push((capacity as f64, measured.value));
            row.push(Cell::brief(Claim::AtMost(1.0), measured, Unit::Plain(3)));
        }
        table.push(row);
        if DRAWN.contains(&error_rate) {
            lines.push(Line::nth(lines.len(), format!("p = {error_rate:?}"), points));
        }
    }
    let ends = [capacities[0], capacities[capacities.len() - 1]];
    lines.push(Line::floor("at most", ends.map(|capacity| (capacity as f64, 1.0)).to_vec()).curve());
    let plot = plot::File {
        name: "rate",
        title: "Rate of full filters over the rate asked for",
        x: plot::Axis::log("capacity, items"),
        y: plot::Axis::linear("rate / p"),
        lines,
        legend: plot::Corner::LowerRight,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}

/// Measures the rates of full filters by looking up items that were never added.
pub fn by_asking(run: &mut Run) -> Findings {
    let mut table = Table::new("", &["p", "items", "asked / computed", "asked", "computed"]);
    for (error_rate, capacity, asked) in [
        (0.5, 10_000, 200_000),
        (0.1, 10_000, 400_000),
        (0.01, 10_000, 1_000_000),
        (0.001, 1_000, 2_000_000),
        (1e-4, 10_000, 4_000_000),
        (1e-5, 1_000, 20_000_000),
        // The filter has few lines, so an item often has the same line twice.
        (1e-5, 30, 20_000_000),
    ] {
        let (filters, asked) = (run.trials(20), run.questions(asked));
        let rates = run.map(filters, |trial| {
            let filter = full(error_rate, capacity, trial);
            let rate = Fills::from(&filter).rate(200_000, &mut Random::of("asking", trial));
            let absent = (0..asked).map(|number| hash128(&item(trial, 1 << 39 | number), 0));
            (absent.filter(|&hash| filter.may_contain(hash)).count() as u64, rate)
        });
        let found: u64 = rates.iter().map(|&(found, _)| found).sum();
        let all = (filters * asked) as f64;
        let found = Measured { value: found as f64 / all, error: (found as f64).sqrt() / all };
        let worked_out = Measured::exact(mean(&rates.iter().map(|&(_, rate)| rate).collect::<Vec<_>>()).value);
        let decimals = 3 + (-error_rate.log10()) as usize;
        let shown = |measured| Cell::brief(Claim::Nothing, measured, Unit::Percent(decimals));
        table.push(vec![
            format!("{error_rate:?}").into(),
            members(capacity).into(),
            Cell::full(Claim::Near(1.0, 0.0), found.quotient(worked_out), Unit::Plain(4)),
            shown(found),
            shown(worked_out),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Measures how far the rate of one filter is from the mean of all filters.
pub fn deviations(run: &mut Run) -> Findings {
    let mut table = Table::new("", &["items", "standard deviation, of the mean rate"]);
    for (capacity, filters, documented) in
        [(1_000, 4_000, 0.054), (10_000, 4_000, 0.017), (100_000, 1_500, 0.0055), (1_000_000, 300, 0.0017)]
    {
        let rates = run.map(run.trials(filters), |trial| {
            Fills::from(&full(0.01, capacity, trial)).rate(0, &mut Random::of("deviation", trial))
        });
        let measured = deviation(&rates).over(mean(&rates).value);
        let claim = Claim::Near(documented, 0.05 * documented);
        table.push(vec![members(capacity).into(), Cell::full(claim, measured, Unit::Percent(3))]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Measures filters that do not scale, filled until they reject an item.
pub fn rejecting(run: &mut Run) -> Findings {
    let mut table = Table::new(
        "",
        &[
            "p",
            "capacity",
            "rate when it rejects, over p",
            "BF.INFO FPR / rate",
            "items it took / capacity",
            "BF.CARD / items it took",
        ],
    );
    for error_rate in [0.5, 0.3, 0.1, 0.01, 0.001, 1e-6] {
        for capacity in [100, 1_000, 100_000] {
            let filters = run.trials((6_000_000 / capacity).clamp(60, 4_000));
            let name = format!("rejecting {error_rate} {capacity}");
            let lives = run.map(filters, |trial| {
                let (filter, taken) = filled(BitLayout::Lines, (error_rate, capacity, 0), trial, u64::MAX);
                let rate = Fills::from(&filter).rate(20_000, &mut Random::of(&name, trial));
                [rate, filter.false_positive_rate(), taken as f64, filter.num_items() as f64]
            });
            let of = |index: usize| mean(&lives.iter().map(|life| life[index]).collect::<Vec<_>>());
            let stated = quotient(&lives.iter().map(|life| (life[1], life[0])).collect::<Vec<_>>());
            let counted = mean(&lives.iter().map(|life| life[3] / life[2]).collect::<Vec<_>>());
            table.push(vec![
                format!("{error_rate:?}").into(),
                members(capacity).into(),
                Cell::full(Claim::AtMost(1.0), of(0).over(error_rate), Unit::Plain(3)),
                Cell::brief(stated_claim(capacity), stated, Unit::Plain(3)),
                Cell::brief(Claim::Nothing, of(2).over(capacity as f64), Unit::Plain(3)),
                Cell::brief(Claim::Near(1.0, error_rate), counted, Unit::Plain(4)),
            ]);
        }
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// The claim that BF.INFO FPR is near the true rate. There is none for few items, because chance alone makes the rates
/// of such filters differ.
pub fn stated_claim(items: u64) -> Claim {
    if items >= 1_000 { Claim::Near(1.0, 0.01) } else { Claim::Nothing }
}

/// The documented error of BF.CARD for a full filter that does not scale: error rates, each with a relative error.
const CARDS: [(f64, f64); 5] = [(0.5, -0.28), (0.3, -0.12), (0.1, -0.03), (0.02, -0.004), (0.01, -0.0019)];

/// Compares BF.CARD with the number of distinct items that were added.
pub fn cards(run: &mut Run) -> Findings {
    let mut table =
        Table::new("", &["p", "NONSCALING, full: BF.CARD - items", "scaling, at its capacity: BF.CARD - items"]);
    for (error_rate, documented) in CARDS {
        let capacity = 10_000;
        let [fixed, scaling] = [(0, u64::MAX), (2, capacity)].map(|(expansion, most)| {
            let biases = run.map(run.trials(400), |trial| {
                let (filter, taken) = filled(BitLayout::Lines, (error_rate, capacity, expansion), trial, most);
                filter.num_items() as f64 / taken as f64 - 1.0
            });
            mean(&biases)
        });
        let claim = Claim::Near(documented, 0.05 * documented.abs());
        table.push(vec![
            format!("{error_rate:?}").into(),
            Cell::full(claim, fixed, Unit::Percent(3)),
            Cell::brief(Claim::Near(0.0, error_rate), scaling, Unit::Percent(3)),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Measures filters in RedisBloom's layout by looking up items that were never added.
pub fn classic(run: &mut Run) -> Findings {
    let mut table = Table::new("", &["p", "capacity", "rate / p", "rate / BF.INFO FPR"]);
    for (error_rate, asked) in [(0.1, 100_000), (0.01, 400_000), (0.001, 2_000_000), (1e-4, 4_000_000)] {
        let asked = run.questions(asked);
        for capacity in [100, 1_000, 100_000] {
            let filters = run.trials(if capacity > 1_000 { 20 } else { 60 });
            let rates = run.map(filters, |trial| {
                let (filter, _) = filled(BitLayout::Classic, (error_rate, capacity, 0), trial, u64::MAX);
                let absent = (0..asked).map(|number| item(trial, 1 << 39 | number));
                let found = share(absent.map(|item| filter.may_contain(item)));
                (found.value, filter.false_positive_rate())
            });
            let found = mean(&rates.iter().map(|&(found, _)| found).collect::<Vec<_>>());
            let stated = mean(&rates.iter().map(|&(_, stated)| stated).collect::<Vec<_>>());
            table.push(vec![
                format!("{error_rate:?}").into(),
                members(capacity).into(),
                Cell::brief(Claim::Nothing, found.over(error_rate), Unit::Plain(3)),
                Cell::brief(Claim::Nothing, found.quotient(stated), Unit::Plain(3)),
            ]);
        }
    }
    Findings { tables: vec![table], ..Findings::default() }
}
