//! Tests the false positive rates of Bloom filters.
//!
//! A test looks up `t` absent items and measures the share that is found. The share has two sources of noise. The
//! look-ups add binomial noise of `sqrt(r*(1-r)/t)` to the filter's own rate `r`. And `r` differs between filters,
//! because it depends on where the items fell. This relative deviation was measured as `0.037 * sqrt(1000/n)` at a rate
//! of 0.01, with 6 probes per item. Since `r ~ fill^k`, it grows in proportion to the number `k` of probes if the load
//! of the lines is similar: `0.037 * (k/6) * sqrt(1000/n)`. Bounds are four standard deviations of both noises
//! together, taken as independent. Seeds are fixed, so every run has the same result.

use rollcall_core::bloom::sizing;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::bloom::sizing::estimate_items;
use rollcall_core::unstable::hash::hash128;

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
    for (error_rate, capacity, trials) in
        [(0.1, 200_000, 1_000_000), (0.01, 1_000, 1_000_000), (0.001, 200_000, 4_000_000), (1e-4, 200_000, 8_000_000)]
    {
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
