//! Tests of chains in RedisBloom's layout. `core/tests/redisbloom/golden.rs` compares their bits with RedisBloom's.

use crate::bloom::classic::sizing::{Rules, Shape};
use crate::bloom::filter::BloomFilter;
use crate::bloom::params::{BitLayout, Params};
use crate::bloom::sub_filter::SubFilter;
use crate::error::{Error, Parameter};
use crate::hash::classic_hash;
use crate::size_limit::Unlimited;

fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
    Params { error_rate, capacity, expansion, seed: 0 }
}

fn filter(params: Params) -> BloomFilter {
    BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap()
}

fn filled(params: Params, items: &[u16]) -> BloomFilter {
    let mut filter = filter(params);
    filter.add_all(bytes(items), &Unlimited, |_| ()).unwrap();
    filter
}

fn list(filter: &BloomFilter) -> Vec<SubFilter> {
    filter.chain().iter().map(|one| one.try_clone().unwrap()).collect()
}

fn rules(filter: &BloomFilter) -> Rules {
    filter.chain()[0].classic().unwrap().rules
}

fn shape(filter: &BloomFilter) -> &Shape {
    &filter.chain()[0].classic().unwrap().shape
}

fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

#[test]
fn parameters_that_cannot_be_stored_are_rejected_or_left_out() {
    let good = params(0.01, 100, 2);
    // Half of this rate rounds to 0.
    let rejected = BloomFilter::new(BitLayout::Classic, params(f64::from_bits(1), 100, 2), &Unlimited);
    assert!(matches!(rejected, Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
    // A filter that scales stores its expansion, not the given growth.
    assert_eq!(rules(&BloomFilter::classic(good, 3, &Unlimited).unwrap()).growth, 2);
    assert_eq!(rules(&BloomFilter::classic(params(0.01, 100, 0), 3, &Unlimited).unwrap()).growth, 3);
    assert_eq!(filter(Params { seed: 7, ..good }).params().seed, 0);
}

#[test]
fn parameters_are_restored_from_classic_sub_filters() {
    for params in [params(0.01, 100, 2), params(0.9, 1, 1), params(0.3, 7, 0), params(1e-300, 3, 32768)] {
        let filter = filter(params);
        let again = BloomFilter::from_sub_filters(list(&filter)).unwrap();
        assert_eq!(*again.params(), params);
    }
}

#[test]
fn growth_ends_in_an_error_where_numbers_end() {
    let mut tiny = filter(params(f64::from_bits(2), 1, 2));
    assert_eq!(tiny.add(b"a", &Unlimited), Ok(true));
    assert!(matches!(tiny.add(b"b", &Unlimited), Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
    assert_eq!(tiny.add(b"a", &Unlimited), Ok(false));
}

#[test]
fn stored_sub_filters_are_checked() {
    let grown = || filled(params(0.01, 20, 2), &(0..100).collect::<Vec<_>>());
    let field = |result| match result {
        Err(Error::Corrupt { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(BloomFilter::from_sub_filters(list(&grown())), Ok(grown()));
    assert_eq!(field(BloomFilter::from_sub_filters(Vec::new()).map(|_| ())), "number of sub-filters");
    let checked = |options, growth, len| field(Rules { options, growth }.validate(len));
    let options = Rules::NOROUND | Rules::FORCE64;
    assert_eq!(Rules { options, growth: 2 }.validate(1200), Ok(()));
    assert_eq!([checked(options, 2, 0), checked(options, 2, 1201)], ["number of sub-filters"; 2]);
    assert_eq!(checked(options | Rules::NO_SCALING, 2, 3), "number of sub-filters");
    assert_eq!(checked(options, 0, 3), "growth");
    assert_eq!([checked(options | 16, 2, 3), checked(Rules::NOROUND, 2, 3)], ["options"; 2]);
    let mut many = list(&grown());
    let most = many[0].spec.num_bits;
    assert_eq!(many[0].set_num_items(most), Ok(()));
    assert!(matches!(many[0].set_num_items(most + 1), Err(Error::Corrupt { field: "num_items", .. })));
    assert_eq!(many[0].num_items, most);
}

/// A header may claim one item per bit, although no bit is set. Such a sub-filter counts no further items, so sums over
/// a chain fit in 64 bits.
#[test]
fn counts_stay_within_the_bits_whatever_is_added_and_merged() {
    let claiming = |name: &str| {
        let mut filter = filter(params(0.999_999_9, 20, 2));
        let most = filter.chain()[0].spec.num_bits;
        filter.chain_mut()[0].set_num_items(most).unwrap();
        for item in 0..60u32 {
            filter.add(format!("{name}{item}").as_bytes(), &Unlimited).unwrap();
        }
        filter
    };
    let (mut ours, theirs) = (claiming("a"), claiming("b"));
    ours.merge(&[&theirs], &Unlimited).unwrap();
    for filter in [&ours, &theirs] {
        for sub_filter in filter.chain() {
            assert_eq!(sub_filter.spec.check_items(sub_filter.num_items), Ok(()));
        }
    }
    let rules = Rules { options: Rules::NOROUND | Rules::FORCE64, growth: 2 };
    let shape = Shape::new(0.01, 7, rules.options).unwrap();
    let mut full = SubFilter::from_shape(rules, shape, &Unlimited).unwrap();
    full.set_num_items(full.spec.num_bits).unwrap();
    assert!(full.insert(classic_hash(b"new")));
    assert_eq!(full.insert_chunk(&[classic_hash(b"newer")], 1), 1);
    assert_eq!(full.num_items, full.spec.num_bits);
}

/// Halving an odd subnormal rate rounds it, so twice the half is another rate. New and loaded filters report this other
/// rate.
#[test]
fn a_rate_is_kept_as_it_follows_from_the_first_sub_filter() {
    for bits in [2u64, 3, 5, 7, 0x39_0000_0001] {
        for expansion in [0, 2] {
            let asked = f64::from_bits(bits);
            let made = BloomFilter::new(BitLayout::Classic, params(asked, 10, expansion), &Unlimited).unwrap();
            let first = SubFilter::from_shape(rules(&made), *shape(&made), &Unlimited).unwrap();
            let loaded = BloomFilter::from_sub_filters(vec![first]);
            assert_eq!(loaded.as_ref(), Ok(&made), "{asked:e}");
            assert!((made.params().error_rate - asked).abs() <= f64::from_bits(1));
        }
    }
}

#[test]
fn the_rate_measured_is_the_rate_estimated() {
    let items: Vec<u16> = (0..10_000).collect();
    for expansion in [0, 2] {
        let filter = filled(params(0.02, if expansion == 0 { 10_000 } else { 1000 }, expansion), &items);
        let absent = 200_000u32;
        let errors = (0..absent).filter(|probe| filter.may_contain(probe.to_be_bytes())).count() as f64;
        let (measured, estimated) = (errors / f64::from(absent), filter.false_positive_rate());
        let deviation = (estimated / f64::from(absent)).sqrt();
        assert!((measured - estimated).abs() < 6.0 * deviation, "{expansion}: {measured} {estimated}");
        assert!(filter.fill_ratio() > 0.2 && filter.fill_ratio() < 0.55);
    }
}
