//! Tests of what chains of both layouts keep to.

use crate::bloom::filter::BloomFilter;
use crate::bloom::lines::sizing;
use crate::bloom::params::{BitLayout, Params};
use crate::error::{Error, Parameter};
use crate::size_limit::{MaxBytes, Unlimited};
use crate::window::Time;
use proptest::collection::vec;
use proptest::prelude::*;

const LAYOUTS: [BitLayout; 2] = [BitLayout::Lines, BitLayout::Classic];

fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
    Params { error_rate, capacity, expansion, seed: 0 }
}

fn new(layout: BitLayout, params: Params) -> BloomFilter {
    BloomFilter::new(layout, params, &Unlimited).unwrap()
}

/// Every third item is so long that the layout `classic` hashes it together with the next one.
fn item(number: u16) -> Vec<u8> {
    number.to_le_bytes().repeat(if number.is_multiple_of(3) { 40 } else { 1 })
}

fn items(numbers: impl IntoIterator<Item = u16>) -> Vec<Vec<u8>> {
    numbers.into_iter().map(item).collect()
}

fn filled(layout: BitLayout, params: Params, numbers: impl IntoIterator<Item = u16>) -> BloomFilter {
    let mut filter = new(layout, params);
    filter.add_all(&items(numbers), &Unlimited, |_| ()).unwrap();
    filter
}

#[test]
fn parameters_are_checked() {
    let good = params(0.01, 100, 2);
    for (bad, name) in [
        (Params { error_rate: f64::NAN, ..good }, Parameter::ErrorRate),
        (Params { error_rate: 0.0, ..good }, Parameter::ErrorRate),
        (Params { error_rate: 1.0, ..good }, Parameter::ErrorRate),
        (Params { capacity: 0, ..good }, Parameter::Capacity),
        (Params { capacity: Params::MAX_CAPACITY + 1, ..good }, Parameter::Capacity),
        (Params { expansion: Params::MAX_EXPANSION + 1, ..good }, Parameter::Expansion),
    ] {
        for layout in LAYOUTS {
            let rejected = BloomFilter::new(layout, bad, &Unlimited).err();
            assert!(matches!(rejected, Some(Error::OutOfRange { parameter, .. }) if parameter == name), "{bad:?}");
        }
    }
}

#[test]
fn a_full_filter_that_does_not_scale_rejects_only_new_items() {
    for layout in LAYOUTS {
        let (mut filter, items, mut added) = (new(layout, params(0.001, 50, 0)), items(0..100), Vec::new());
        assert_eq!(filter.add_all(&items, &Unlimited, |new| added.push(new)), Err(Error::Full { capacity: 50 }));
        assert_eq!((added.len(), added.iter().filter(|&&new| new).count()), (50, 50));
        assert_eq!(filter.num_items(), 50);
        added.clear();
        assert_eq!(filter.add_all(&items[..50], &Unlimited, |new| added.push(new)), Ok(()));
        assert_eq!(added, [false; 50]);
        assert_eq!(filter.add(&items[0], &Unlimited), Ok(false));
        assert_eq!(filter.add(b"another", &Unlimited), Err(Error::Full { capacity: 50 }));
        // The filter has room for one item, which is added twice.
        let mut smallest = new(layout, params(0.9, 1, 0));
        added.clear();
        assert_eq!(smallest.add_all(["7", "7"], &Unlimited, |new| added.push(new)), Ok(()));
        assert_eq!((&added[..], smallest.num_items()), (&[true, false][..], 1));
    }
}

#[test]
fn growth_that_is_rejected_changes_nothing() {
    for layout in LAYOUTS {
        let mut filter = new(layout, params(0.01, 100, 2));
        let limit = MaxBytes(filter.size_bytes() + 10);
        assert!(matches!(filter.add_all(&items(0..300), &limit, |_| ()), Err(Error::TooLarge { .. })));
        assert_eq!((filter.num_items(), filter.sub_filters().len()), (100, 1));
        let before = filter.try_clone().unwrap();
        assert!(matches!(filter.add(b"another", &limit), Err(Error::TooLarge { .. })));
        let hash = [filter.hasher()(b"another")];
        assert!(matches!(filter.live(Time::Reached).add_hashes(&hash, &limit), Err(Error::TooLarge { .. })));
        assert!(filter == before);
        assert_eq!(filter.add(b"another", &Unlimited), Ok(true));
        assert_eq!((filter.sub_filters().len(), filter.capacity()), (2, 300));
        let rejected = BloomFilter::new(layout, params(0.01, 1 << 40, 2), &MaxBytes(1 << 32));
        assert!(matches!(rejected, Err(Error::TooLarge { .. })));
    }
}

#[test]
fn merge_names_what_differs() {
    let base = params(0.01, 100, 2);
    for layout in LAYOUTS {
        let (mut ours, good) = (filled(layout, base, [1, 2, 3]), filled(layout, base, [4, 5]));
        let before = ours.try_clone().unwrap();
        for (theirs, name) in [
            (Params { capacity: 101, ..base }, Parameter::Capacity),
            (Params { error_rate: 0.02, ..base }, Parameter::ErrorRate),
            (Params { expansion: 0, ..base }, Parameter::Expansion),
            (Params { expansion: 3, ..base }, Parameter::Expansion),
            (Params { seed: 1, ..base }, Parameter::Seed),
        ] {
            // Classic filters have no seed.
            if layout == BitLayout::Lines || name != Parameter::Seed {
                let rejected = ours.merge(&[&good, &new(layout, theirs)], &Unlimited);
                assert!(
                    matches!(rejected, Err(Error::Incompatible { parameter, .. }) if parameter == name),
                    "{layout} {name:?}: {rejected:?}"
                );
                assert!(ours == before);
            }
        }
    }
}

fn any_layout() -> impl Strategy<Value = BitLayout> {
    prop::sample::select(&LAYOUTS[..])
}

/// Parameters of all kinds, and those of long chains.
fn any_params() -> impl Strategy<Value = Params> {
    let exponent = prop_oneof![Just(0.05), Just(0.5), Just(2.0), 0.05f64..14.0];
    let growth = prop_oneof![(1u64..=3, Just(1)), (1u64..200, 0u32..5)];
    (exponent, growth, any::<u64>()).prop_map(|(exponent, (capacity, expansion), seed)| {
        let error_rate = libm::pow(10.0, -exponent);
        Params { error_rate, capacity, expansion, seed }
    })
}

proptest! {
    #[test]
    fn no_false_negatives_and_add_is_idempotent(
        layout in any_layout(),
        params in any_params(),
        numbers in vec(any::<u16>(), 0..400),
    ) {
        let (mut filter, items) = (new(layout, params), items(numbers));
        for (i, item) in items.iter().enumerate() {
            let seen = filter.may_contain(item);
            match filter.add(item, &Unlimited) {
                Ok(mark) => prop_assert_eq!(mark, !seen),
                Err(error) => {
                    prop_assert_eq!(error, Error::Full { capacity: params.capacity });
                    let only = &filter.chain()[0];
                    let full_bits = only.info().geometry.and_then(|of| sizing::full_bits(params.error_rate, &of));
                    let has_full_bits = full_bits.is_some_and(|full| only.set_bits >= full);
                    prop_assert!(!seen && (filter.num_items() == params.capacity || has_full_bits));
                    continue;
                }
            }
            let num_items = filter.num_items();
            prop_assert_eq!(filter.add(item, &Unlimited), Ok(false));
            prop_assert_eq!(filter.num_items(), num_items);
            let asks_all = i % 32 == 0 || i + 1 == items.len();
            let mut added = items[..=i].iter();
            prop_assert!(params.expansion == 0 || !asks_all || added.all(|item| filter.may_contain(item)));
        }
        let full = filter.chain().split_last().unwrap().1;
        let counts = layout == BitLayout::Classic;
        prop_assert!(!counts || full.iter().all(|one| one.num_items == one.spec.capacity));
    }

    /// The lists have known items and duplicates. Some chains do not scale, and some growth is rejected midway.
    #[test]
    fn lists_are_added_as_one_by_one(
        lists in vec(vec(0u16..600, 0..150), 1..5), params in any_params(),
        max_bytes in prop_oneof![Just(u64::MAX), 300u64..60_000],
    ) {
        let limit = MaxBytes(max_bytes);
        for layout in LAYOUTS {
            let [mut single, mut listed] = [(); 2].map(|()| new(layout, params));
            for items in lists.iter().map(|numbers| items(numbers.iter().copied())) {
                let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
                let stopped = items.iter().try_for_each(|item| {
                    one_by_one.push(single.add(item, &limit)?);
                    Ok(())
                });
                prop_assert_eq!(listed.add_all(&items, &limit, |is_new| at_once.push(is_new)), stopped);
                prop_assert_eq!(&at_once, &one_by_one);
                prop_assert!(listed == single);
            }
            let (mut found, all) = (Vec::new(), items(0..700));
            listed.may_contain_all(all.iter().map(|item| &item[..]), |is_there| found.push(is_there));
            prop_assert!(all.iter().map(|item| single.may_contain(item)).eq(found));
        }
    }

    #[test]
    fn merge_commutes_associates_and_equals_the_union(
        layout in any_layout(), seed: u64, expansion in 0u32..3,
        a in vec(any::<u16>(), 0..150), b in vec(any::<u16>(), 0..150), c in vec(any::<u16>(), 0..150),
    ) {
        let params = Params { seed, ..params(0.001, 600, expansion) };
        let [a_, b_, c_] = [&a, &b, &c].map(|items| filled(layout, params, items.iter().copied()));
        let merged = |first: &BloomFilter, others: &[&BloomFilter]| {
            let mut merged = first.try_clone().unwrap();
            let changed = merged.merge(others, &Unlimited).unwrap();
            assert_eq!(changed, merged.chain()[0].set_bits != first.chain()[0].set_bits);
            merged
        };
        let bitmap = |filter: &BloomFilter| filter.chain()[0].as_bytes().to_vec();
        prop_assert!(merged(&a_, &[&b_]) == merged(&b_, &[&a_]) || a_.num_items() != b_.num_items());
        prop_assert_eq!(bitmap(&merged(&a_, &[&b_])), bitmap(&merged(&b_, &[&a_])));
        prop_assert_eq!(bitmap(&merged(&merged(&a_, &[&b_]), &[&c_])), bitmap(&merged(&a_, &[&merged(&b_, &[&c_])])));
        let at_once = merged(&a_, &[&b_, &c_]);
        let union = filled(layout, params, [a, b, c].concat());
        prop_assert_eq!(bitmap(&at_once), bitmap(&union));
        prop_assert_eq!(at_once.chain()[0].set_bits, union.chain()[0].set_bits);
        // At this load the estimate is within a few items of the count.
        prop_assert!(at_once.num_items().abs_diff(union.num_items()) <= 20);
        prop_assert!(merged(&at_once, &[&b_]) == at_once);
    }
}
