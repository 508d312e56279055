//! Tests of chains in the cache-line layout.

use crate::bloom::filter::changes::MAX_SUB_FILTERS;
use crate::bloom::filter::{BloomFilter, OWN_BYTES};
use crate::bloom::lines::sizing;
use crate::bloom::params::{BitLayout, Params};
use crate::bloom::sub_filter::SubFilter;
use crate::error::{Error, Limit, Parameter};
use crate::hash::checksum;
use crate::live::Value;
use crate::size_limit::{MaxBytes, Unlimited};

fn params(error_rate: f64, capacity: u64, expansion: u32, seed: u64) -> Params {
    Params { error_rate, capacity, expansion, seed }
}

fn filter(params: Params) -> BloomFilter {
    BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap()
}

fn filled(params: Params, items: &[u16]) -> BloomFilter {
    let mut filter = filter(params);
    add_list(&mut filter, items, &NO_LIMIT, &mut Vec::new()).unwrap();
    filter
}

const NO_LIMIT: MaxBytes = MaxBytes(u64::MAX);

/// The list loops are compiled again for each type of iterator, limit or closure, so the tests use one type of each.
fn add_list(filter: &mut BloomFilter, items: &[u16], limit: &MaxBytes, added: &mut Vec<bool>) -> Result<(), Error> {
    filter.add_all(bytes(items), limit, |new| added.push(new))
}

fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

/// Per sub-filter: its capacity, its items, its set bits and the XXH3-64 of its bitmap.
type Sizes = (u64, u64, u64, u64);

/// Each case has parameters, the number of items (the decimal numbers from 0 on), and the resulting sub-filters,
/// computed independently of this code.
#[rustfmt::skip]
const CHAINS: [(Params, u64, &[Sizes]); 4] = [
    (Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 5 }, 1000, &[
        (100, 100, 497, 0xdc0b_0960_f4d9_8bf6), (200, 200, 1543, 0x08a1_361b_9e1a_269e),
        (400, 400, 3534, 0x299f_bab5_6d85_86e2), (800, 296, 3630, 0xdad9_8531_4a76_6e82)]),
    (Params { error_rate: 0.001, capacity: 500, expansion: 4, seed: 0 }, 5000, &[
        (500, 500, 3691, 0x9b31_ce0b_80c8_9f6f), (2000, 2000, 20555, 0x57a1_6854_7aff_e607),
        (8000, 2498, 33966, 0x9c9f_8135_f2b9_62c2)]),
    (Params { error_rate: 0.02, capacity: 1000, expansion: 0, seed: 0 }, 1000, &[
        (1000, 998, 4332, 0x9c5c_5259_13ff_a968)]),
    (Params { error_rate: 0.1, capacity: 10, expansion: 1, seed: 0 }, 60, &[
        (10, 10, 29, 0xcc0e_1049_6b41_d8e9), (10, 10, 66, 0x1536_bf33_24dc_9642),
        (10, 10, 96, 0x3834_c776_5325_026f), (10, 10, 91, 0xff5c_1ac6_7fdf_2744),
        (10, 10, 88, 0x09cd_950b_d375_553b), (10, 10, 104, 0xfb3b_19fa_34b1_ab93)]),
];

#[test]
fn bits_are_pinned() {
    for (params, tried, expected) in CHAINS {
        let mut filter = filter(params);
        for item in 0..tried {
            filter.add(item.to_string().as_bytes(), &Unlimited).unwrap();
        }
        let got: Vec<Sizes> = filter
            .chain()
            .iter()
            .map(|one| (one.spec.capacity, one.num_items, one.set_bits, checksum(one.as_bytes(), 0)))
            .collect();
        assert_eq!(got, expected, "{params:?}");
    }
}

/// A filter with a high error rate mistakes many new items for known ones, so its number of set bits decides when it is
/// full.
#[test]
fn a_filter_of_a_high_rate_is_full_by_its_bits() {
    for (error_rate, capacity) in [(0.5, 1000), (0.3, 1000), (0.1, 20_000), (0.05, 20_000)] {
        let mut one = filter(params(error_rate, capacity, 0, 0));
        let full = sizing::full_bits(error_rate, &one.chain()[0].spec.as_lines).unwrap();
        let rejected = (0u64..).find_map(|item| {
            let (room, set_bits) = (one.room(), one.chain()[0].set_bits);
            assert_eq!(room > 0, set_bits < full);
            // Each of these items fits, even if it sets only new bits.
            let bits_per_item = one.chain()[0].spec.as_lines.probes_per_line.into();
            let least = full.saturating_sub(set_bits).div_ceil(bits_per_item);
            assert_eq!(room, least.min(capacity - one.num_items()));
            one.add(item.to_le_bytes(), &Unlimited).err()
        });
        assert_eq!(rejected, Some(Error::Full { capacity }));
        let counted = one.num_items() as f64 / capacity as f64;
        assert!(counted < 1.0 && counted > 1.0 - 0.6 * error_rate, "{error_rate}: {counted}");
        assert!((one.false_positive_rate() / error_rate - 1.0).abs() < 0.01, "{error_rate}");
        let (mut listed, mut added) = (filter(params(error_rate, capacity, 0, 0)), 0u64);
        let items: Vec<[u8; 8]> = (0..2 * capacity).map(u64::to_le_bytes).collect();
        let outcome = listed.add_all(items.iter().map(|item| &item[..]), &Unlimited, |_| added += 1);
        assert_eq!(outcome, Err(Error::Full { capacity }));
        assert!(listed == one && added < 2 * capacity);
        let mut chain = filter(params(error_rate / 0.9, capacity, 2, 0));
        chain.add_all(items.iter().map(|item| &item[..]), &Unlimited, |_| ()).unwrap();
        assert!(chain.sub_filters().len() > 1);
        assert!(chain.chain()[0].num_items == one.num_items(), "{error_rate}");
    }
}

#[test]
fn a_filter_may_be_as_large_as_its_limit() {
    for params in [params(0.01, 20, 2, 0), params(0.001, 100_000, 0, 7)] {
        let size = filter(params).size_bytes();
        assert!(BloomFilter::new(BitLayout::Lines, params, &MaxBytes(size)).is_ok());
        let rejected = Error::TooLarge { needed_bytes: size, limit_bytes: size - 1, limit: Limit::Value };
        assert_eq!(BloomFilter::new(BitLayout::Lines, params, &MaxBytes(size - 1)).err(), Some(rejected));
    }
}

/// When a second sub-filter is appended, the first moves to a list, which takes memory too.
#[test]
fn growth_asks_for_the_list_and_the_bitmap() {
    let mut filter = filter(params(0.01, 20, 2, 0));
    for len in 1..4 {
        let mut items = 0u64..;
        while filter.room() > 0 {
            filter.add(items.next().unwrap().to_le_bytes(), &Unlimited).unwrap();
        }
        let lists = size_of::<SubFilter>() * if len == 1 { 2 } else { 1 };
        let bitmap = sizing::sub_filter_geometry(filter.params(), len).unwrap().num_bytes();
        let needed = filter.size_bytes() + lists as u64 + bitmap;
        let rejected = Error::TooLarge { needed_bytes: needed, limit_bytes: needed - 1, limit: Limit::Value };
        let another = [u8::MAX, len as u8];
        assert_eq!(filter.add(another, &MaxBytes(needed - 1)), Err(rejected));
        assert_eq!(filter.sub_filters().len() as u64, len);
        assert_eq!(filter.add(another, &MaxBytes(needed)), Ok(true));
        assert_eq!((filter.sub_filters().len() as u64, filter.size_bytes()), (len + 1, needed));
    }
}

#[test]
fn growth_ends_in_an_error_where_numbers_end() {
    // The third sub-filter is for 2^30 items, more than the limit allows. The sixth would overflow.
    let mut large = filter(params(0.5, 1, Params::MAX_EXPANSION, 0));
    let items: Vec<u16> = (0..=u16::MAX).collect();
    let rejected = add_list(&mut large, &items, &MaxBytes(1 << 20), &mut Vec::new());
    assert!(matches!(rejected, Err(Error::TooLarge { .. })), "{rejected:?}");
    assert_eq!(large.sub_filters().len(), 2);
    let sixth = sizing::sub_filter_geometry(large.params(), 5);
    assert!(matches!(sixth, Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })), "{sixth:?}");
    // A tenth of the smallest rate rounds to 0.
    let mut tiny = filter(params(f64::from_bits(1), 1, 2, 0));
    assert_eq!(tiny.add(b"a", &Unlimited), Ok(true));
    assert!(matches!(tiny.add(b"b", &Unlimited), Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
    assert_eq!(tiny.add(b"a", &Unlimited), Ok(false));
}

#[test]
fn chains_end_at_a_number_of_sub_filters() {
    let mut chain = filter(params(0.01, 1, 1, 0));
    let items: Vec<u16> = (0..3000).collect();
    let mut added = Vec::new();
    let rejected = add_list(&mut chain, &items, &NO_LIMIT, &mut added);
    let expected = "at most 1024, as a larger capacity or expansion needs";
    assert_eq!(rejected, Err(Error::out_of_range(Parameter::SubFilters, expected, 1025)));
    assert_eq!(chain.sub_filters().len(), MAX_SUB_FILTERS);
    assert_eq!(chain.add(b"another", &Unlimited), rejected.map(|()| true));
    assert!(bytes(&items).zip(&added).all(|(item, _)| chain.may_contain(item)));
    // Known items are still accepted.
    assert!(matches!(chain.add(0u16.to_ne_bytes(), &Unlimited), Ok(false)));
}

#[test]
fn sizes_and_rates_add_up() {
    let grown = filled(params(0.01, 20, 2, 0), &(0..100).collect::<Vec<_>>());
    let mut blocks = Vec::new();
    grown.heap_layouts(&mut |layout| blocks.push(layout));
    let list = blocks.remove(0).size();
    assert_eq!(list, size_of_val(grown.chain()));
    // If other tests have filled the pool, the filter does not share its parameters, and they count too.
    blocks.retain(|layout| layout.align() == 64);
    assert_eq!(blocks.len(), grown.sub_filters().len());
    let bitmaps: usize = blocks.iter().map(|layout| layout.size()).sum();
    assert_eq!(OWN_BYTES as usize + list + bitmaps, grown.size_bytes() as usize);
    let one = filter(params(0.01, 1000, 2, 0));
    assert_eq!(one.size_bytes(), OWN_BYTES + 64 * one.chain()[0].spec.as_lines.num_lines);
    assert!(grown.false_positive_rate() > 0.0 && grown.false_positive_rate() < 0.01);
    assert!(grown.fill_ratio() > 0.0 && grown.fill_ratio() < 0.5);
    assert_eq!(filter(*grown.params()).false_positive_rate(), 0.0);
}

#[test]
fn merge_does_not_pass_the_rate() {
    let base = params(0.01, 1000, 0, 0);
    let parts: Vec<_> =
        [0..500u16, 500..1000, 1000..1500].map(|range| filled(base, &range.collect::<Vec<_>>())).into_iter().collect();
    let mut ours = parts[0].try_clone().unwrap();
    // Two halves fill the filter exactly. The error of the estimate must not make it reject them.
    assert_eq!(ours.merge(&[&parts[1]], &Unlimited), Ok(true));
    assert!((950..=1000).contains(&ours.num_items()), "{}", ours.num_items());
    let before = ours.try_clone().unwrap();
    let rejected = ours.merge(&[&parts[2]], &Unlimited);
    assert!(matches!(rejected, Err(Error::RateExceeded { would_be, asked: 0.01 }) if would_be > 0.02));
    assert!(ours == before);
    // Known items are no reason to reject.
    assert_eq!(ours.merge(&[&parts[0], &parts[1], &before], &Unlimited), Ok(false));
    assert_eq!(ours.merge(&[], &Unlimited), Ok(false));
    assert!(ours == before);
}
