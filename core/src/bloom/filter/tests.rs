//! Tests of Bloom filters in either layout.

mod classic;
mod classic_sub_filters;
mod laws;
mod lines;
mod live;
mod sub_filters;

use super::super::bitmap::Line;
use super::super::lines::sizing;
use super::changes::MAX_SUB_FILTERS;
use super::*;
use crate::admission::{Admission, Terms};
use crate::error::Parameter;
use crate::live::tests::Copier;
use crate::live::{BLOCK, Value};
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::prelude::*;

crate::live::tests::short_forms!(BloomFilter);

impl BloomFilter {
    pub(crate) fn merge(&mut self, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        self.live(Time::Reached).merge(others, limit)
    }
}

fn filled(layout: BitLayout, params: Params, items: impl IntoIterator<Item = u32>) -> BloomFilter {
    let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
    for item in items {
        filter.add(item.to_le_bytes(), &Unlimited).unwrap();
    }
    filter
}

fn chain(layout: BitLayout, error_rate: f64, items: impl IntoIterator<Item = u32>) -> BloomFilter {
    filled(layout, Params { error_rate, capacity: 100, expansion: 2, seed: 0 }, items)
}

#[test]
fn either_layout_behaves_alike() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let mut filter = chain(layout, 0.01, 0..500);
        assert_eq!((filter.layout(), filter.sub_filters().len(), filter.capacity()), (layout, 3, 700));
        // The rate of a single filter of 100 items deviates from the mean by 17 %.
        assert!(filter.num_items() > 480 && filter.false_positive_rate() < 0.013 && filter.fill_ratio() > 0.2);
        assert_eq!(filter.sub_filters().map(|one| one.num_items).sum::<u64>(), filter.num_items());
        for (index, info) in filter.sub_filters().enumerate() {
            let bitmap = filter.chain()[index].as_bytes();
            assert_eq!(info.num_bytes, bitmap.len() as u64);
            let set_bits: u64 = bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum();
            assert_eq!(info.set_bits, set_bits);
            assert_eq!(info.geometry.is_some(), layout == BitLayout::Lines);
        }
        let copy = filter.try_clone().unwrap();
        assert!((0..4).map(|index| filter.relocate(index, &Copier)).eq([true, true, true, false]));
        assert!(copy == filter);
        let mut found = Vec::new();
        let items: Vec<[u8; 4]> = (0..500u32).map(u32::to_le_bytes).collect();
        filter.may_contain_all(items.iter().map(|item| &item[..]), |is_there| found.push(is_there));
        assert_eq!(found, [true; 500]);
        assert!(items.iter().all(|item| filter.may_contain(item)));
        let empty = filter.new_like(&Unlimited).unwrap();
        assert!(empty.is_empty() && filter != empty && empty == chain(layout, 0.01, 0..0));
    }
}

#[test]
fn an_item_sets_as_many_bits_as_are_reported() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        for error_rate in [0.3, 0.01, 1e-3, 1e-5, 1e-9] {
            let params = Params { error_rate, capacity: 1000, expansion: 0, seed: 0 };
            let one = |item: u32| {
                let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
                filter.add(item.to_le_bytes(), &Unlimited).unwrap();
                filter.sub_filters().next().unwrap()
            };
            // Some bits of an item may coincide, but not of every item.
            assert_eq!(
                (0..40).map(|item| one(item).set_bits).max(),
                Some(one(0).hashes.into()),
                "{layout} {error_rate}"
            );
        }
    }
}

#[test]
fn only_equal_layouts_merge() {
    let (mut lines, mut classic) = (chain(BitLayout::Lines, 0.01, 0..30), chain(BitLayout::Classic, 0.01, 0..30));
    for rejected in [lines.merge(&[&classic], &Unlimited), classic.merge(&[&lines], &Unlimited)] {
        assert!(matches!(rejected, Err(Error::Incompatible { parameter: Parameter::Layout, .. })), "{rejected:?}");
    }
}

fn union(first: &BloomFilter, others: &[&BloomFilter]) -> Result<BloomFilter, Error> {
    let mut union = first.try_clone().unwrap();
    let result = union.merge(others, &Unlimited);
    assert!(result.is_ok() || union == *first);
    result.map(|_| union)
}

#[test]
fn an_order_that_does_not_fit_is_rejected_with_the_rate() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let ours = chain(layout, 0.05, 0..700);
        let shuffled = chain(layout, 0.05, (0..100).rev().chain((100..300).rev()).chain((300..700).rev()));
        assert!(ours != shuffled && union(&ours, &[&shuffled]).is_ok());
        let reversed = chain(layout, 0.05, (0..700).rev());
        let Err(Error::RateExceeded { would_be, asked }) = union(&ours, &[&reversed]) else { panic!("{layout}") };
        assert_eq!(asked, 0.05);
        // The expected rate is measured on the bits of both chains.
        let absent = (0..200_000u32).map(|item| (item + 10_000).to_le_bytes());
        let bits_of = |filter: &BloomFilter, index: usize| filter.chain()[index].as_bytes().to_vec();
        let mut forced = ours.try_clone().unwrap();
        for index in 0..ours.sub_filters().len() {
            let [a, b] = [&ours, &reversed].map(|filter| bits_of(filter, index));
            let bits: Vec<u8> = a.iter().zip(&b).map(|(a, b)| a | b).collect();
            let lines = &mut forced.chain_mut()[index].lines;
            bytemuck::cast_slice_mut::<Line, u8>(lines)[..bits.len()].copy_from_slice(&bits);
        }
        let errors = absent.filter(|item| forced.may_contain(item)).count() as f64 / 200_000.0;
        // The rate of a single filter of 100 items deviates from the mean by about an eighth.
        assert!((would_be / errors - 1.0).abs() < 0.3, "{layout}: {would_be} {errors}");
    }
}

/// The newest sub-filter counts with its rate when full.
#[test]
fn the_rate_of_a_rejected_union_adds_up() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let [ours, theirs] = [0u32, 100_000].map(|from| {
            let mut filter = chain(layout, 0.05, 0..0);
            let mut items = from..;
            while filter.sub_filters().nth(1).is_none_or(|newest| newest.num_items < 30) {
                filter.add(items.next().unwrap().to_le_bytes(), &Unlimited).unwrap();
            }
            filter
        });
        let Err(Error::RateExceeded { would_be, asked: 0.05 }) = union(&ours, &[&theirs]) else { panic!("{layout}") };
        let mut none = 1.0;
        for (index, info) in ours.sub_filters().enumerate() {
            let [a, b] = [&ours, &theirs].map(|filter| filter.chain()[index].as_bytes());
            let set_bits: u64 = a.iter().zip(b).map(|(a, b)| u64::from((a | b).count_ones())).sum();
            let rate = match &info.geometry {
                // The newest sub-filter fills up before the union grows.
                Some(_) if index == 1 => 0.1 * 0.05 / 2.0,
                Some(geometry) => sizing::false_positive_rate(geometry, sizing::estimate_items(geometry, set_bits)),
                None => (set_bits as f64 / (8 * info.num_bytes) as f64).powi(info.hashes as i32),
            };
            assert!(index == 1 || rate > 1.2 * info.error_rate, "{layout}: {rate}");
            assert!(layout == BitLayout::Lines || index == 0 || (1e-8..1e-3).contains(&rate), "{rate}");
            none *= 1.0 - rate;
        }
        if layout == BitLayout::Lines {
            // Sub-filter i has the fraction 1/(i*(i+1)) of a tenth of the rate. The fractions from the third on sum to
            // half of this tenth.
            none *= 1.0 - 0.1 * 0.05 / 2.0;
        }
        assert!((would_be - (1.0 - none)).abs() < 1e-12, "{layout}: {would_be}");
    }
}

/// At a high error rate, the last item that fits may set more bits than a full filter needs.
#[test]
fn full_filters_merge_into_empty_ones() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        for (error_rate, capacity) in [(0.5, 300), (0.3, 1000), (0.1, 100), (0.1, 3000), (0.05, 3000), (0.01, 1000)] {
            for trial in 0..10u32 {
                let params = Params { error_rate, capacity, expansion: 0, seed: 0 };
                let empty = BloomFilter::new(layout, params, &Unlimited).unwrap();
                let mut full = empty.try_clone().unwrap();
                let mut items = (0u32..).map(|item| (trial << 24 | item).to_le_bytes());
                while full.add(items.next().unwrap(), &Unlimited).is_ok() {}
                assert!(union(&empty, &[&full]).unwrap() == full, "{layout} {error_rate} {capacity}");
            }
        }
    }
}

#[test]
fn unions_keep_their_rate_as_they_grow() {
    for error_rate in [0.1, 0.01] {
        let params = Params { error_rate, capacity: 2000, expansion: 2, seed: 0 };
        let filled = |items: std::ops::Range<u32>| filled(BitLayout::Lines, params, items);
        let (mut most, mut rejected) = (None, 0);
        for len in (800..1500).step_by(50) {
            match union(&filled(0..len), &[&filled(1_000_000..1_000_000 + len)]) {
                Ok(both) => most = Some(both),
                Err(Error::RateExceeded { .. }) => rejected += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let mut both = most.unwrap();
        assert!(rejected > 0 && both.num_items() > 1900, "{error_rate}: {}", both.num_items());
        (2_000_000..2_100_000u32).for_each(|item| {
            both.add(item.to_le_bytes(), &Unlimited).unwrap();
        });
        // The rate of a single filter of 2,000 items deviates from the mean by some percent.
        assert!(both.false_positive_rate() < 1.02 * error_rate, "{}", both.false_positive_rate());
    }
}

/// A union's number of items is an estimate, and may exceed the count of a filter with all these items.
#[test]
fn a_merge_never_lowers_the_number_of_items() {
    for trial in 0..40u32 {
        let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
        let filled =
            |range: std::ops::Range<u32>| filled(BitLayout::Lines, params, range.map(|item| trial << 20 | item));
        let (x, y, all_but_one) = (filled(0..450), filled(450..900), filled(0..899));
        let both = union(&x, &[&y]).unwrap();
        let again = union(&all_but_one, &[&both]).unwrap();
        assert!(again.num_items() >= both.num_items().max(all_but_one.num_items()));
    }
}

#[test]
fn a_union_that_has_to_grow_asks_for_its_memory_first() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let (mut short, long) = (chain(layout, 0.01, 0..90), chain(layout, 0.01, 0..800));
        let before = short.try_clone().unwrap();
        let held = |filter: &BloomFilter| {
            let mut bytes = 0;
            filter.heap_layouts(&mut |layout| bytes += if layout.align() == 64 { layout.size() as u64 } else { 0 });
            bytes
        };
        for most in [0, held(&short) + 300, held(&long) - 64] {
            let rejected = short.merge(&[&long], &MaxBytes(most));
            assert!(
                matches!(rejected, Err(Error::TooLarge { limit_bytes, .. }) if limit_bytes == most),
                "{rejected:?}"
            );
            assert!(short == before);
        }
        assert_eq!(short.merge(&[&long], &MaxBytes(held(&long) + 2000)), Ok(true));
        assert_eq!(short.merge(&[&long], &MaxBytes(0)), Ok(false));
    }
}

fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

proptest! {
    #[test]
    fn unions_keep_all_items_and_the_rate(
        common in 0u32..300,
        ours in 0u32..120,
        theirs in 0u32..500,
        layout in prop_oneof![Just(BitLayout::Lines), Just(BitLayout::Classic)],
        error_rate in prop_oneof![Just(0.5), Just(0.05), Just(0.001)],
    ) {
        let a = chain(layout, error_rate, (0..common).chain(1000..1000 + ours));
        let b = chain(layout, error_rate, (0..common).chain(2000..2000 + theirs));
        match (union(&a, &[&b]), union(&b, &[&a])) {
            (Ok(both), Ok(same)) => {
                prop_assert!(both == same);
                let items = (0..common).chain(1000..1000 + ours).chain(2000..2000 + theirs);
                prop_assert!(items.into_iter().all(|item| both.may_contain(item.to_le_bytes())));
                for one in both.sub_filters() {
                    prop_assert!(one.num_items <= 8 * one.num_bytes);
                }
                prop_assert!(both.num_items() >= a.num_items().max(b.num_items()));
                prop_assert!(both.num_items() <= a.num_items() + b.num_items());
                // By chance more bits than expected may be set.
                prop_assert!(both.false_positive_rate() <= 1.3 * error_rate);
                prop_assert!(union(&both, &[&a, &b]).unwrap() == both);
            }
            (Err(Error::RateExceeded { would_be, asked }), Err(error)) => {
                prop_assert!(would_be > asked && asked == error_rate);
                prop_assert_eq!(error, Error::RateExceeded { would_be, asked });
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

#[test]
fn lists_fill_the_longest_chains_as_one_by_one() {
    // One item in a hundred is known already.
    let items: Vec<u16> = (0..1500).map(|i| i * 7 % 1485).collect();
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let params = Params { error_rate: 0.2, capacity: 1, expansion: 1, seed: 0 };
        let [mut single, mut listed] = [(); 2].map(|()| BloomFilter::new(layout, params, &Unlimited).unwrap());
        let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
        let stopped = bytes(&items).try_for_each(|item| {
            one_by_one.push(single.add(item, &Unlimited)?);
            Ok(())
        });
        assert_eq!(listed.add_all(bytes(&items), &Unlimited, |is_new| at_once.push(is_new)), stopped);
        assert_eq!(at_once, one_by_one);
        assert!(listed == single && listed.sub_filters().len() > 700, "{}", listed.sub_filters().len());
        assert_eq!(stopped.is_err(), listed.sub_filters().len() == MAX_SUB_FILTERS && at_once.len() < items.len());
    }
}

/// A server relies on `has_room_for` to skip its check of free memory.
#[test]
fn room_is_what_is_left_before_a_filter_grows() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let params = Params { error_rate: 0.01, capacity: 20, expansion: 2, seed: 0 };
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        for item in 0..200u32 {
            for more in [1, 2, 7, 100] {
                let has_room = filter.has_room_for(more);
                let mut grown = filter.try_clone().unwrap();
                grown
                    .add_all(
                        &(0..more).map(|n| [item, n as u32 + 1000]).map(|of| format!("{of:?}")).collect::<Vec<_>>(),
                        &Unlimited,
                        |_| {},
                    )
                    .unwrap();
                if has_room {
                    assert_eq!(grown.sub_filters().len(), filter.sub_filters().len(), "{more} after {item}");
                } else {
                    assert!(filter.room() < more.max(2), "{more} after {item}");
                }
            }
            filter.add(item.to_le_bytes(), &Unlimited).unwrap();
        }
        assert!(filter.sub_filters().len() > 2);
    }
}

#[test]
fn items_of_any_type_come_in_blocks_of_any_length() {
    for len in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
        let mut filter: BloomFilter = (0..len as u32).map(u32::to_le_bytes).collect();
        let params = Params { error_rate: 0.01, capacity: len.max(1) as u64, expansion: 2, seed: 0 };
        let mut expected = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
        (0..len as u32).for_each(|item| drop(expected.add(item.to_le_bytes(), &Unlimited)));
        assert!(filter == expected);
        let copy = filter.clone();
        filter.live(Time::Reached).extend(["ann", "ben"]);
        filter.live(Time::Reached).extend([vec![b'z'; 9]]);
        assert!(filter.may_contain("ann") && filter.may_contain("zzzzzzzzz") && !copy.may_contain("ann"));
        assert!(copy == expected);
    }
}

/// Test items: some occur twice in a row, others again later.
fn items(count: u64) -> Vec<[u8; 8]> {
    (0..count).map(|i| if i % 3 == 2 { i / 7 } else { i - i % 2 }).map(u64::to_le_bytes).collect()
}

/// The filter after these items were added, `block` hashes at a time, and the number of new items.
fn built(layout: BitLayout, params: Params, items: &[[u8; 8]], block: usize) -> (BloomFilter, u64, Result<(), Error>) {
    let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
    let hash = filter.hasher();
    let hashes: Vec<Hash128> = items.iter().map(|item| hash(item)).collect();
    let (mut new, mut result) = (0, Ok(()));
    for hashes in hashes.chunks(block) {
        match filter.live(Time::Reached).add_hashes(hashes, &Unlimited) {
            Ok(more) => new += more,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    (filter, new, result)
}

#[test]
fn a_filter_built_of_hashes_is_the_one_built_of_items() {
    let items = items(30_000);
    for (layout, error_rate, capacity, expansion, seed) in [
        (BitLayout::Lines, 0.01, 50_000, 2, 0),
        (BitLayout::Lines, 0.3, 15_000, 2, 7),
        (BitLayout::Lines, 1e-9, 10_000, 1, 3),
        (BitLayout::Lines, 0.01, 10, 3, 0),
        (BitLayout::Lines, 0.01, 5, 0, 0),
        (BitLayout::Classic, 0.01, 3000, 2, 0),
        (BitLayout::Classic, 0.01, 300, 30, 0),
    ] {
        let params = Params { error_rate, capacity, expansion, seed };
        let mut expected = BloomFilter::new(layout, params, &Unlimited).unwrap();
        let mut expected_new = 0;
        let added = |is_new| expected_new += u64::from(is_new);
        let rejected = expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, added);
        for block in [777, 1 << 20] {
            let (filter, new, result) = built(layout, params, &items, block);
            assert!(filter == expected && result == rejected, "{params:?}");
            // On error, the number of new items in the failed block is unknown.
            assert!(result.is_err() || new == expected_new);
        }
    }
}
