//! Tests of sub-filters in RedisBloom's layout.

use crate::bloom::classic::bits::PREFETCH_FROM_WORDS;
use crate::bloom::classic::sizing::{Rules, Shape};
use crate::bloom::sub_filter::SubFilter;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, classic_hash};
use crate::marks::{CHUNK, Marks};
use crate::size_limit::Unlimited;

fn shape(filter: &SubFilter) -> &Shape {
    &filter.classic().unwrap().shape
}

fn filter(error_rate: f64, capacity: u64) -> SubFilter {
    let rules = Rules { options: Rules::NOROUND | Rules::FORCE64, growth: 2 };
    let shape = Shape::new(error_rate, capacity, rules.options).unwrap();
    SubFilter::from_shape(rules, shape, &Unlimited).unwrap()
}

#[test]
fn large_filters_answer_in_chunks_as_one_by_one() {
    let mut large = filter(0.01, 7_500_000);
    assert!(large.lines.len() * 8 >= PREFETCH_FROM_WORDS);
    let hashes: Vec<Hash128> = (0..10 * CHUNK as u32).map(|item| classic_hash(&item.to_le_bytes())).collect();
    for (chunk, all) in hashes.chunks(CHUNK).step_by(2).zip(std::iter::repeat(Marks::MAX)) {
        assert_eq!(large.insert_chunk(chunk, all), all);
    }
    for (index, chunk) in hashes.chunks(CHUNK).enumerate() {
        let expected = if index % 2 == 0 { Marks::MAX } else { 0 };
        assert_eq!(large.look_up_chunk(chunk, Marks::MAX), expected);
        for (i, hash) in chunk.iter().enumerate() {
            assert_eq!(large.may_contain(*hash), expected >> i & 1 == 1);
        }
    }
    let mut single = filter(0.01, 7_500_000);
    for chunk in hashes.chunks(CHUNK).step_by(2) {
        chunk.iter().for_each(|hash| assert_eq!(single.insert_chunk(&[*hash], 1), 1));
    }
    assert!(single == large);
}

#[test]
fn items_of_few_and_many_hashes_are_found_in_rounds() {
    for (error_rate, expected) in [(0.51, 1), (0.26, 2), (0.13, 3), (0.065, 4), (0.04, 5), (1e-3, 10), (1e-9, 30)] {
        let mut large = filter(error_rate, 64_000_000 / expected);
        assert_eq!(u64::from(large.spec.hashes()), expected);
        assert!(large.lines.len() * 8 >= PREFETCH_FROM_WORDS, "{error_rate}");
        let hashes: Vec<Hash128> = (0..2 * CHUNK as u32).map(|item| classic_hash(&item.to_le_bytes())).collect();
        let (known, absent) = hashes.split_at(CHUNK);
        assert_eq!(large.insert_chunk(known, Marks::MAX), Marks::MAX);
        for pending in [Marks::MAX, 1 << 63 | 1, 0b100, 0] {
            assert_eq!(large.look_up_chunk(known, pending), pending);
            assert_eq!(large.look_up_chunk(absent, pending), 0);
            assert_eq!(large.insert_chunk(known, pending), 0);
        }
    }
}

#[test]
fn estimates_invert_the_expected_fill() {
    let filter = filter(0.01, 1000);
    let bits = shape(&filter).num_bits() as f64;
    for num_items in [0.0, 1.0, 500.0, 1000.0, 1300.0] {
        let set = bits * -libm::expm1(-f64::from(shape(&filter).hashes) * num_items / bits);
        assert!((filter.spec.estimate_items(libm::round(set) as u64) - num_items).abs() < 0.5);
    }
    assert!(filter.spec.estimate_items(shape(&filter).num_bits()).is_finite());
    let full = bits * -libm::expm1(-f64::from(shape(&filter).hashes) * 1000.0 / bits);
    assert!(filter.spec.rate_with(full as u64) < 0.0101 && filter.spec.rate_with(full as u64) > 0.009);
    assert_eq!([filter.spec.rate_with(0), filter.spec.rate_with(shape(&filter).num_bits())], [0.0, 1.0]);
}

#[test]
fn only_equal_shapes_merge() {
    let (ours, theirs) = (filter(0.01, 100), filter(0.01, 99));
    assert_eq!(ours.spec.check_mergeable(&filter(0.01, 100).spec), Ok(()));
    let (reported, of_theirs) = (format!("{:?}", shape(&ours)), format!("{:?}", shape(&theirs)));
    assert!(reported.contains("capacity: 100") && of_theirs.contains("capacity: 99"));
    let rejected = Error::Incompatible { parameter: Parameter::Shape, ours: reported, theirs: of_theirs };
    assert_eq!(ours.spec.check_mergeable(&theirs.spec), Err(rejected));
}
