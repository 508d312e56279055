//! Tests logical filters and counters that are partitioned: the rate and the error of each part, and of the whole.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::partition::{Partitioned, unite};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::hash::hash128;
use rollcall_core::window::Time;

use crate::bloom::tolerance;
use crate::counting::assert_as_stated;

const PARTS: u32 = 16;
const ITEMS: u64 = 400_000;
const ERROR_RATE: f64 = 0.01;
const ABSENT: u64 = 1_600_000;

/// Number of probes per item at this error rate.
const PROBES: f64 = 7.0;

/// For each part: the share of absent items that it finds, the number of these items, and the rate that it reports.
fn measured(layout: BitLayout, part_of: impl Fn(&[u8]) -> u32) -> Vec<(f64, u64, f64)> {
    let capacity = Partitioned::new("seen", PARTS).unwrap().capacity_of_part(ITEMS).unwrap();
    let params = Params { error_rate: ERROR_RATE, capacity, expansion: 2, seed: 0 };
    let new = || BloomFilter::new(layout, params, &Unlimited).unwrap();
    let mut filters: Vec<BloomFilter> = (0..PARTS).map(|_| new()).collect();
    for item in (0..ITEMS).map(u64::to_le_bytes) {
        filters[part_of(&item) as usize].live(Time::Reached).add(&item, &Unlimited).unwrap();
    }
    let mut answers = vec![(0u64, 0u64); PARTS as usize];
    for item in (1 << 40..(1 << 40) + ABSENT).map(u64::to_le_bytes) {
        let part = part_of(&item) as usize;
        answers[part].0 += u64::from(filters[part].may_contain(&item));
        answers[part].1 += 1;
    }
    let row = |((found, asked), filter): ((u64, u64), BloomFilter)| {
        assert_eq!(filter.sub_filters().len(), 1, "the capacity of a part has room for its items");
        (found as f64 / asked as f64, asked, filter.false_positive_rate())
    };
    answers.into_iter().zip(filters).map(row).collect()
}

/// If the hash that selects a part were not independent of the filter's hash, the items of a part would concentrate in
/// some of its lines.
#[test]
fn parts_of_a_filter_keep_its_rate() {
    let parts = Partitioned::new("seen", PARTS).unwrap();
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let rows = measured(layout, |item| parts.part_of(item));
        for (part, &(rate, asked, stated)) in rows.iter().enumerate() {
            let bound = tolerance(stated, PROBES, ITEMS / u64::from(PARTS), asked);
            assert!((rate - stated).abs() <= bound, "{layout:?}, part {part}: {rate} against {stated}");
        }
        let whole = |value: fn(&(f64, u64, f64)) -> f64| {
            rows.iter().map(|row| value(row) * row.1 as f64).sum::<f64>() / ABSENT as f64
        };
        let (rate, stated) = (whole(|row| row.0), whole(|row| row.2));
        let bound = tolerance(stated, PROBES, ITEMS, ABSENT);
        println!("{layout:?}: measured {rate:e}, stated {stated:e}, tolerance {bound:e}");
        assert!((rate - stated).abs() <= bound, "{layout:?}: {rate} against {stated}");
        assert!(stated < ERROR_RATE, "{layout:?}: {stated}");
    }
}

/// Checks that `parts_of_a_filter_keep_its_rate` would notice dependent hashes: here the filter's own hash selects the
/// part.
#[test]
fn routing_by_the_hash_of_the_filter_would_show() {
    let rows = measured(BitLayout::Lines, |item| (hash128(item, 0).lo >> 60) as u32);
    for (part, (rate, _, _)) in rows.into_iter().enumerate() {
        assert!(rate > 10.0 * ERROR_RATE, "part {part}: {rate}");
    }
}

/// The sum over `k` parts has a relative error smaller by `sqrt(k)`, and [`unite`] reports this error. Errors are
/// compared in units of it. Each trial has other members and another seed.
#[test]
fn counts_of_parts_add_up_with_their_errors() {
    let (members, trials) = (4_000u64, 400u64);
    let params = |seed| counting::Params { error_rate: 0.02, exact_limit: 0, exact_bytes: 16_384, seed };
    let mut alone = 0.0;
    for k in [1u32, 4, 16] {
        let parts = Partitioned::new("seen", k).unwrap();
        let (mut errors, mut stated) = (Vec::new(), 0.0);
        for trial in 0..trials {
            let mut counters: Vec<Counter> = (0..k).map(|_| Counter::new(params(trial)).unwrap()).collect();
            let all = members * u64::from(k);
            for item in (trial << 32..(trial << 32) + all).map(u64::to_le_bytes) {
                counters[parts.part_of(&item) as usize].live(Time::Reached).add(&item, &Unlimited).unwrap();
            }
            let of_part = |counter: &Counter| (counter.count(), counter.estimate() * counter.standard_error());
            let (count, error) = unite(counters.iter().map(of_part));
            errors.push((count as f64 - all as f64) / error);
            stated += error / all as f64 / trials as f64;
        }
        assert_as_stated(&errors, 1.0, &format!("{k} parts, in united standard errors"));
        if k == 1 {
            alone = stated;
        }
        // The number of members in a part varies by sqrt(k/n), and the error changes a little with it.
        let falls = alone / stated / f64::from(k).sqrt();
        println!("{k} parts: relative standard error {stated}, {falls} of sqrt({k}) times below that of one");
        assert!((falls - 1.0).abs() < 0.02, "{k}: {falls}");
    }
}
