//! Tests of look-ups in many sub-filters against look-ups in each.

use super::*;
use crate::hash::hash128;
use crate::size_limit::Unlimited;

fn hashes_of(from: u32, len: u32) -> Vec<Hash128> {
    (from..from + len).map(|item| hash128(&item.to_le_bytes(), 0)).collect()
}

/// Full sub-filters of many shapes and sizes, with some false positives.
fn full_sub_filters(len: u32) -> Vec<SubFilter> {
    let sub_filter = |index: u32| {
        let error_rate = [0.3, 0.01, 0.001, 1e-5, 0.05][index as usize % 5];
        let mut filter = SubFilter::new(error_rate, 40 * u64::from(index + 1), &Unlimited).unwrap();
        for hash in hashes_of(index * 10_000, 40 * (index + 1)) {
            filter.insert(hash);
        }
        filter
    };
    (0..len).map(sub_filter).collect()
}

#[test]
fn sub_filters_of_one_size_answer_as_one_by_one() {
    for error_rate in [0.3, 0.05, 1e-3, 1e-6] {
        for len in [1, 2, 3, 5, 8, 9, 12, 13, 17, 21] {
            let mut sub_filters = Vec::new();
            for index in 0..len {
                let mut one = SubFilter::new(error_rate, 400, &Unlimited).unwrap();
                for hash in hashes_of(index * 10_000, 400) {
                    one.insert(hash);
                }
                sub_filters.push(one);
            }
            let (mut errors, mut absent) = (0, 0);
            for from in (0..len * 10_000).step_by(1250) {
                for size in [CHUNK as u32, 7] {
                    let hashes = hashes_of(from, size);
                    let found = look_up_chunk(&sub_filters, &hashes);
                    let any = |hash: &Hash128| sub_filters.iter().any(|one| one.may_contain(*hash));
                    assert!((0..hashes.len()).map(|i| found >> i & 1 == 1).eq(hashes.iter().map(any)));
                    absent += if from % 10_000 == 0 { 0 } else { size };
                    errors += if from % 10_000 == 0 { 0 } else { found.count_ones() };
                }
            }
            assert!(errors < absent && (error_rate < 0.01 || errors > 0), "{error_rate} {len}");
        }
    }
}

/// Sub-filters of one size and of several, so large that they are prefetched.
#[test]
fn prefetched_sub_filters_answer_as_one_by_one() {
    for growth in [0, 10_000] {
        let mut sub_filters = Vec::new();
        for index in 0..12 {
            let mut one = SubFilter::new(0.05, 100_000 + growth * u64::from(index), &Unlimited).unwrap();
            hashes_of(index * 10_000, 6000).into_iter().for_each(|hash| _ = one.insert(hash));
            sub_filters.push(one);
        }
        for len in [2, 7, 8, 9, 12] {
            let sub_filters = &sub_filters[..len];
            let list: Vec<Hash128> = hashes_of(3000, 130_000).into_iter().step_by(5).collect();
            let mut found = Vec::new();
            look_up_chunks(sub_filters, list.iter().copied(), |_, is_found| found.push(is_found));
            assert!(found.into_iter().eq(list.iter().map(|hash| look_up(sub_filters, *hash))));
            for from in (0..130_000).step_by(3001) {
                let hashes = hashes_of(from, CHUNK as u32);
                let any = |hash: &Hash128| sub_filters.iter().any(|one| one.may_contain(*hash));
                let found = look_up_chunk(sub_filters, &hashes);
                assert!((0..CHUNK).map(|i| found >> i & 1 == 1).eq(hashes.iter().map(any)), "{len} {from}");
            }
        }
        assert!(sub_filters.iter().all(|one| one.lines.len() >= FAR_FROM_LINES));
    }
}

#[test]
fn screened_chains_answer_as_their_sub_filters() {
    for len in 1..=21 {
        let sub_filters = full_sub_filters(len);
        let mut errors = 0;
        for from in (0..len * 10_000).step_by(2500) {
            for size in [CHUNK as u32, 7, 1] {
                let hashes = hashes_of(from, size);
                let found = look_up_chunk(&sub_filters, &hashes);
                for (i, &hash) in hashes.iter().enumerate() {
                    let expected = sub_filters.iter().any(|one| one.may_contain(hash));
                    assert_eq!(look_up(&sub_filters, hash), expected);
                    assert_eq!(found >> i & 1 == 1, expected);
                    errors += u32::from(expected && from % 10_000 != 0);
                }
            }
        }
        assert!(errors > 0, "the sub-filters are too empty to test the screen");
    }
}
