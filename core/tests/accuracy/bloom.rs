//! False-positive rates of Bloom filters.
//!
//! What a run may show: the share of `t` absent items found is the rate `r` of this one filter, with
//! the binomial noise of the trials, `sqrt(r*(1-r)/t)`. And `r` itself differs from the mean of all
//! filters of its kind because of where its items fell. That relative deviation was measured as
//! 0.037 * sqrt(1000/n) for 0.01; it grows with the number of probes an item `k`, since
//! `r ~ fill^k`, and so in proportion to `k` for lines of like load: `0.037 * (k/6) * sqrt(1000/n)`
//! (6 probes at 0.01). Bounds are four such standard deviations, both noises added as independent;
//! seeds are fixed, so a run that passes passes always.

use rollcall_core::bloom::{Params, sizing};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::{LineFilter, LineSubFilter, SubFilter};
use rollcall_core::unstable::hash::hash128;

/// Four standard deviations of the share found in `trials` by one filter whose kind has the rate `rate`.
fn tolerance(rate: f64, probes: f64, capacity: u64, trials: u64) -> f64 {
    let binomial = rate * (1.0 - rate) / trials as f64;
    let filter = rate * 0.037 * (probes / 6.0) * (1000.0 / capacity as f64).sqrt();
    4.0 * (binomial + filter * filter).sqrt()
}

/// Share of `trials` items from 2^40 on that are found.
fn measured_rate(trials: u64, mut found: impl FnMut(&[u8]) -> bool) -> f64 {
    let first = 1u64 << 40;
    (first..first + trials).filter(|item| found(&item.to_le_bytes())).count() as f64 / trials as f64
}

#[test]
fn full_filters_err_as_predicted() {
    for (error_rate, capacity, trials) in [
        (0.1, 200_000, 1_000_000),
        (0.01, 1_000, 1_000_000),
        (0.01, 200_000, 2_000_000),
        (0.001, 200_000, 4_000_000),
        (1e-4, 200_000, 8_000_000),
        (1e-5, 100_000, 20_000_000),
    ] {
        let mut filter = LineSubFilter::new(error_rate, capacity, 0, &Unlimited).unwrap();
        // So many distinct items, as the rate is promised for; `num_items` is a little less, because
        // those that set no bit are not counted. Filled up to that count it would hold some more.
        for item in 0..capacity {
            filter.insert(hash128(&item.to_le_bytes(), 0));
        }
        let shape = filter.geometry();
        let predicted = sizing::false_positive_rate(shape, capacity as f64);
        let measured = measured_rate(trials, |item| filter.may_contain(hash128(item, 0)));
        let probes = f64::from(shape.lines_per_item * shape.probes_per_line);
        let tolerance = tolerance(predicted, probes, capacity, trials);
        println!(
            "p={error_rate} n={capacity}: measured {measured:e}, predicted {predicted:e}, tolerance {tolerance:e}"
        );
        assert!((measured - predicted).abs() <= tolerance, "{error_rate}: {measured} against {predicted}");
        // The margin puts the prediction under the rate asked for; so this is the bound above but for rounding up lines.
        assert!(measured <= error_rate + tolerance, "{error_rate}: {measured}");
    }
}

/// Small filters have few lines: their items are binomial, not Poisson, and two lines of an item can
/// be one. The mean over many filters must keep the rate all the same. Its noise: 400 filters.
#[test]
fn small_filters_keep_their_rate_on_average() {
    for (error_rate, capacity) in [(0.01, 10u64), (0.01, 100), (0.001, 20), (0.001, 100), (1e-4, 60)] {
        let (filters, trials) = (400u64, 20_000u64);
        let mut found = 0.0;
        for seed in 0..filters {
            let mut filter = LineSubFilter::new(error_rate, capacity, 0, &Unlimited).unwrap();
            for item in 0..capacity {
                filter.insert(hash128(&item.to_le_bytes(), seed));
            }
            found += measured_rate(trials, |item| filter.may_contain(hash128(item, seed)));
        }
        let measured = found / filters as f64;
        let binomial = (error_rate / (filters * trials) as f64).sqrt();
        // One filter of so few items deviates by about 0.037 * sqrt(1000/n) times k/6, the mean of 400 by a twentieth of that.
        let filter = error_rate * 0.037 * 2.0 * (1000.0 / capacity as f64).sqrt() / 20.0;
        println!("p={error_rate} n={capacity}: measured {measured:e}");
        assert!(measured <= error_rate + 4.0 * binomial.hypot(filter), "{error_rate} {capacity}: {measured}");
    }
}

/// Grown to a thousand times what it was made for, a chain still errs less than asked, and as it says itself.
#[test]
fn grown_chains_keep_their_rate() {
    for (error_rate, trials) in [(0.01, 1_000_000), (0.001, 2_000_000)] {
        let params = Params { error_rate, capacity: 1000, expansion: 2, seed: 0 };
        let mut filter = LineFilter::new(params, &Unlimited).unwrap();
        let mut next = 0u64;
        while filter.num_items() < 1_023_000 {
            filter.add(&next.to_le_bytes(), &Unlimited).unwrap();
            next += 1;
        }
        assert_eq!((filter.sub_filters().len(), filter.capacity()), (10, 1_023_000));
        // Items taken for old ones on the way were not counted: at most the rate asked for, each.
        assert!((next - 1_023_000) as f64 <= error_rate * next as f64);
        let measured = measured_rate(trials, |item| filter.may_contain(item));
        let predicted = filter.false_positive_rate();
        // The first sub-filter, of 1,000 items, has most of the rate and so of the noise.
        let tolerance = tolerance(predicted, 10.0, 1000, trials);
        println!("p={error_rate}: measured {measured:e}, predicted {predicted:e}, {next} items tried");
        assert!((measured - predicted).abs() <= tolerance, "{error_rate}: {measured} against {predicted}");
        assert!(measured < error_rate, "{error_rate}: {measured}");
    }
}

/// The number of items told from the bits. With `t = k*n/m` (probes by bits) the variance of the bits
/// free is `m * (e^-t - (1+t)*e^-2t)`, and one item takes `k*e^-t` of them, so the estimate has the
/// variance `n * (e^t - 1 - t) / (t*k)` (Whang, Vander-Zanden and Taylor, "A Linear-Time Probabilistic
/// Counting Algorithm for Database Applications", 1990, section 4). How unevenly the lines are loaded adds nothing of
/// first order, since the number of all picks is fixed. The bound is four standard deviations.
#[test]
fn estimates_of_items_are_near() {
    for (error_rate, capacity) in [(0.1, 100_000u64), (0.01, 100_000), (0.001, 100_000), (1e-9, 100_000)] {
        let mut filter = LineSubFilter::new(error_rate, capacity, 0, &Unlimited).unwrap();
        for item in 0..capacity {
            filter.insert(hash128(&item.to_le_bytes(), 0));
            if item + 1 == capacity / 10 || item + 1 == capacity {
                let (items, estimate) =
                    ((item + 1) as f64, sizing::estimate_items(filter.geometry(), filter.set_bits()));
                let shape = filter.geometry();
                let probes = f64::from(shape.lines_per_item * shape.probes_per_line);
                let load = probes * items / shape.num_bits() as f64;
                let deviation = (items * (load.exp_m1() - load) / (load * probes)).sqrt();
                println!("p={error_rate}: {estimate} of {items}, standard deviation {deviation}");
                assert!((estimate - items).abs() <= 4.0 * deviation, "{error_rate}: {estimate} of {items}");
            }
        }
    }
}
