//! Tests the false positive rates of Bloom filters.
//!
//! A test looks up `t` absent items and measures the share that is found. The share has two sources of noise. The
//! look-ups add binomial noise of `sqrt(r*(1-r)/t)` to the filter's own rate `r`. And `r` differs between filters,
//! because it depends on where the items fell. This relative deviation was measured as `0.037 * sqrt(1000/n)` at a rate
//! of 0.01, with 6 probes per item. Since `r ~ fill^k`, it grows in proportion to the number `k` of probes if the load
//! of the lines is similar: `0.037 * (k/6) * sqrt(1000/n)`. Bounds are four standard deviations of both noises
//! together, taken as independent. Seeds are fixed, so every run has the same result.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, sizing};
use rollcall_core::error::Error;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::bloom::sizing::estimate_items;
use rollcall_core::unstable::hash::hash128;
use rollcall_core::window::Time;

/// Four standard deviations of the share that one filter finds in `trials` look-ups, if `rate` is the mean rate of
/// filters with these parameters.
pub(super) fn tolerance(rate: f64, probes: f64, capacity: u64, trials: u64) -> f64 {
    let binomial = rate * (1.0 - rate) / trials as f64;
    let filter = rate * 0.037 * (probes / 6.0) * (1000.0 / capacity as f64).sqrt();
    4.0 * (binomial + filter * filter).sqrt()
}

/// The share of absent items that are found, in `trials` look-ups of numbers from 2^40 on.
pub(super) fn measured_rate(trials: u64, mut found: impl FnMut(&[u8]) -> bool) -> f64 {
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
        let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).unwrap();
        // The rate is promised for `capacity` distinct items. `num_items` is a little less, because items that set no
        // bit are not counted. So adding until `num_items` reaches `capacity` would add too many items.
        for item in 0..capacity {
            filter.insert(hash128(&item.to_le_bytes(), 0));
        }
        let shape = filter.info().geometry.unwrap();
        let predicted = sizing::false_positive_rate(&shape, capacity as f64);
        let measured = measured_rate(trials, |item| filter.may_contain(hash128(item, 0)));
        let probes = f64::from(shape.lines_per_item * shape.probes_per_line);
        let tolerance = tolerance(predicted, probes, capacity, trials);
        println!(
            "p={error_rate} n={capacity}: measured {measured:e}, predicted {predicted:e}, tolerance {tolerance:e}"
        );
        assert!((measured - predicted).abs() <= tolerance, "{error_rate}: {measured} against {predicted}");
        // The predicted rate has a margin to the requested one, so the same tolerance also fits the requested rate.
        assert!(measured <= error_rate + tolerance, "{error_rate}: {measured}");
    }
}

/// Small filters have few lines. The load of a line is binomial, not Poisson, and the two lines of an item may
/// coincide. The mean rate of 400 filters must still be at most the error rate.
#[test]
fn small_filters_keep_their_rate_on_average() {
    for (error_rate, capacity) in [(0.01, 10u64), (0.01, 100), (0.001, 20), (0.001, 100), (1e-4, 60)] {
        let (filters, trials) = (400u64, 20_000u64);
        let mut found = 0.0;
        for seed in 0..filters {
            let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).unwrap();
            for item in 0..capacity {
                filter.insert(hash128(&item.to_le_bytes(), seed));
            }
            found += measured_rate(trials, |item| filter.may_contain(hash128(item, seed)));
        }
        let measured = found / filters as f64;
        let binomial = (error_rate / (filters * trials) as f64).sqrt();
        // One filter deviates by about `0.037 * (k/6) * sqrt(1000/n)`, with `k` up to 12. The mean of 400 deviates by a
        // twentieth of that.
        let filter = error_rate * 0.037 * 2.0 * (1000.0 / capacity as f64).sqrt() / 20.0;
        println!("p={error_rate} n={capacity}: measured {measured:e}");
        assert!(measured <= error_rate + 4.0 * binomial.hypot(filter), "{error_rate} {capacity}: {measured}");
    }
}

/// A chain that has grown to a thousand times its first capacity has a rate below the error rate, and reports its rate
/// correctly.
#[test]
fn grown_chains_keep_their_rate() {
    for (error_rate, trials) in [(0.01, 1_000_000), (0.001, 2_000_000)] {
        let params = Params { error_rate, capacity: 1000, expansion: 2, seed: 0 };
        let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
        let mut next = 0u64;
        while filter.num_items() < 1_023_000 {
            filter.live(Time::Reached).add(next.to_le_bytes(), &Unlimited).unwrap();
            next += 1;
        }
        assert_eq!((filter.sub_filters().len(), filter.capacity()), (10, 1_023_000));
        // New items that were false positives were not counted. Their share is at most the requested rate.
        assert!((next - 1_023_000) as f64 <= error_rate * next as f64);
        let measured = measured_rate(trials, |item| filter.may_contain(item));
        let predicted = filter.false_positive_rate();
        // The first sub-filter, of 1,000 items, contributes most of the rate, and so most of the noise.
        let tolerance = tolerance(predicted, 10.0, 1000, trials);
        println!("p={error_rate}: measured {measured:e}, predicted {predicted:e}, {next} items tried");
        assert!((measured - predicted).abs() <= tolerance, "{error_rate}: {measured} against {predicted}");
        assert!(measured < error_rate, "{error_rate}: {measured}");
    }
}

/// Tests the number of items that is estimated from the bits. Let `t = k*n/m` (probes by bits). The number of free bits
/// has the variance `m * (e^-t - (1+t)*e^-2t)`, and one item takes `k*e^-t` of them. So the variance of the estimate is
/// `n * (e^t - 1 - t) / (t*k)` (Whang, Vander-Zanden and Taylor, "A Linear-Time Probabilistic Counting Algorithm for
/// Database Applications", 1990, section 4). The uneven load of the lines adds nothing of first order, since the number
/// of all picks is fixed. The bound is four standard deviations.
#[test]
fn estimates_of_items_are_near() {
    for (error_rate, capacity) in [(0.1, 100_000u64), (0.01, 100_000), (0.001, 100_000), (1e-9, 100_000)] {
        let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).unwrap();
        for item in 0..capacity {
            filter.insert(hash128(&item.to_le_bytes(), 0));
            if item + 1 == capacity / 10 || item + 1 == capacity {
                let (items, estimate) =
                    ((item + 1) as f64, estimate_items(&filter.info().geometry.unwrap(), filter.info().set_bits));
                let shape = filter.info().geometry.unwrap();
                let probes = f64::from(shape.lines_per_item * shape.probes_per_line);
                let load = probes * items / shape.num_bits() as f64;
                let deviation = (items * (load.exp_m1() - load) / (load * probes)).sqrt();
                println!("p={error_rate}: {estimate} of {items}, standard deviation {deviation}");
                assert!((estimate - items).abs() <= 4.0 * deviation, "{error_rate}: {estimate} of {items}");
            }
        }
    }
}

/// The rate of one filter, computed from its fill. An absent item has its bits in a random line, at random positions.
/// With one or two lines per item, the lines are independent of each other.
fn rate_of(filter: &SubFilter) -> f64 {
    let shape = filter.info().geometry.unwrap();
    assert!(shape.lines_per_item <= 2);
    let fills = filter.as_bytes().chunks(64).map(|line| line.iter().map(|byte| byte.count_ones()).sum::<u32>());
    let rates = fills.map(|set| (f64::from(set) / 512.0).powi(shape.probes_per_line as i32));
    (rates.sum::<f64>() / shape.num_lines as f64).powi(shape.lines_per_item as i32)
}

/// The mean of the values, and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (values.len() - 1) as f64 / values.len() as f64).sqrt())
}

/// If the number of counted items alone decided when these filters are full, their rates would be 1.38, 1.22, 1.06,
/// 1.03 and 0.99 times the error rate.
#[test]
fn filters_filled_until_they_reject_keep_their_rate() {
    for (error_rate, counted) in
        [(0.5, 0.72..0.74), (0.3, 0.88..0.90), (0.1, 0.97..0.98), (0.05, 0.99..1.0), (0.01, 1.0..1.001)]
    {
        for (capacity, filters) in [(1_000u64, 100u64), (60_000, 6)] {
            let (mut rates, mut cards) = (Vec::new(), Vec::new());
            for seed in 0..filters {
                let params = Params { error_rate, capacity, expansion: 0, seed };
                let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
                let rejected =
                    (0u64..).find_map(|item| filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).err());
                assert_eq!(rejected, Some(Error::Full { capacity }));
                rates.push(rate_of(&filter.chain()[0]) / error_rate);
                cards.push(filter.num_items() as f64 / capacity as f64);
            }
            let ((rate, se), (card, _)) = (mean(&rates), mean(&cards));
            println!("p={error_rate} n={capacity}: {rate:.4} p, standard error {se:.4} p, counted {card:.4} n");
            assert!(4.0 * se < 0.02, "{error_rate} {capacity}: a standard error of {se} shows nothing");
            assert!(rate <= 1.0 + 4.0 * se, "{error_rate} {capacity}: {rate}");
            // Rounding up to whole lines gives small filters more space.
            assert!(
                counted.contains(&card) || capacity == 1_000 && card <= 1.0 && card > counted.start,
                "{error_rate}: {card}"
            );
        }
    }
}

/// The reported rate is within 1 % of the measured rate, from a quarter of the capacity to twice the capacity. With
/// fewer items, the rate of one filter depends on chance. At a million items it deviates by at most 0.2 %.
#[test]
fn the_rate_reported_is_the_rate_measured_over_a_filters_life() {
    for error_rate in [0.5, 0.3, 0.1, 0.01, 0.001] {
        let capacity = 1_000_000u64;
        let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).unwrap();
        for item in 0..2 * capacity {
            filter.insert(hash128(&item.to_le_bytes(), 0));
            if (item + 1) % (capacity / 4) == 0 {
                let (reported, measured) = (filter.false_positive_rate(), rate_of(&filter));
                println!("p={error_rate} {} items: reported {reported:e}, measured {measured:e}", item + 1);
                assert!((reported / measured - 1.0).abs() < 0.01, "{error_rate}: {reported} and {measured}");
            }
        }
    }
}

/// Tests chains that have grown to a hundred times their first capacity, with high error rates, where many new items
/// are false positives.
///
/// An item is added to a sub-filter only if no earlier sub-filter reports it, and its positions in the sub-filters are
/// related. So false positives of several sub-filters coincide less often than if they were independent. The reported
/// rate assumes independence: at an error rate of 0.5 it is 1.4 % too low, at 0.3 and below 0.5 %. The sum of the
/// sub-filters' rates bounds the chain's rate without assuming independence.
#[test]
fn chains_of_high_rates_keep_their_rate_as_they_grow() {
    for error_rate in [0.5, 0.3, 0.1, 0.05] {
        for expansion in [2, 4] {
            let params = Params { error_rate, capacity: 10_000, expansion, seed: 0 };
            let (mut filter, mut next, trials) =
                (BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap(), 0u64, 1_000_000);
            let mut measured_of = 0;
            while filter.num_items() < 1_000_000 {
                filter.live(Time::Reached).add(next.to_le_bytes(), &Unlimited).unwrap();
                next += 1;
                // The chain is measured just before each growth.
                if filter.room() == 0 && filter.sub_filters().len() > measured_of {
                    measured_of = filter.sub_filters().len();
                    let measured = measured_rate(trials, |item| filter.may_contain(item));
                    let (reported, noise) = (filter.false_positive_rate(), 4.0 * (error_rate / trials as f64).sqrt());
                    println!("p={error_rate} of {next} items: measured {measured}, reported {reported}, noise {noise}");
                    assert!(measured <= error_rate, "{error_rate}: {measured}");
                    let low = if error_rate > 0.4 { 0.015 } else { 0.005 };
                    assert!(
                        (measured - reported).abs() <= low * reported + noise,
                        "{error_rate}: {measured} {reported}"
                    );
                }
            }
            assert!(measured_of >= 3);
        }
    }
}
