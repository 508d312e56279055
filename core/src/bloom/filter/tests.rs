//! Laws of filters, whatever their layout.

use super::super::chain::MAX_SUB_FILTERS;
use super::*;
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::prelude::*;

struct Copier;

impl Mover for Copier {
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        buffer.into_vec().into_boxed_slice()
    }
}

fn filled(layout: BitLayout, items: std::ops::Range<u32>) -> BloomFilter {
    let params = Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 };
    let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
    for item in items {
        filter.add(&item.to_le_bytes(), &Unlimited).unwrap();
    }
    filter
}

#[test]
fn either_layout_behaves_alike() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let mut filter = filled(layout, 0..500);
        assert_eq!((filter.layout(), filter.sub_filters().len(), filter.capacity()), (layout, 3, 700));
        assert!(filter.num_items() > 480 && filter.false_positive_rate() < 0.01 && filter.fill_ratio() > 0.2);
        assert_eq!(filter.sub_filters().map(|one| one.num_items).sum::<u64>(), filter.num_items());
        for (index, info) in filter.sub_filters().enumerate() {
            let bitmap = either!(&filter.chain, filter => filter.sub_filters()[index].as_bytes());
            assert_eq!((info.num_bytes, info.num_bits), (bitmap.len() as u64, bitmap.len() as u64 * 8));
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
        let twin = filter.empty_twin(&Unlimited).unwrap();
        filter.clear();
        assert!(filter.is_empty() && filter == twin && filter.params() == copy.params());
    }
}

#[test]
fn only_equal_layouts_merge() {
    let (mut lines, mut classic) = (filled(BitLayout::Lines, 0..30), filled(BitLayout::Classic, 0..30));
    for (ours, theirs) in
        [(&mut lines, &filled(BitLayout::Lines, 30..60)), (&mut classic, &filled(BitLayout::Classic, 30..60))]
    {
        assert_eq!(ours.merge(&[theirs, theirs]), Ok(true));
        assert!((0..60u32).all(|item| ours.may_contain(&item.to_le_bytes())));
    }
    assert!(matches!(lines.merge(&[&classic]), Err(Error::Incompatible { parameter: Parameter::Layout, .. })));
    assert!(matches!(classic.merge(&[&lines]), Err(Error::Incompatible { parameter: Parameter::Layout, .. })));
}

fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

proptest! {
    /// With known items, items that come twice, chains that do not scale and growth that is refused in the middle.
    #[test]
    fn lists_on_long_chains_are_one_by_one(
        lists in prop::collection::vec(prop::collection::vec(0u16..500, 0..90), 1..8), capacity in 1u64..=3,
        error_rate in prop_oneof![Just(0.9), Just(0.3), Just(0.01)], expansion in prop_oneof![9 => Just(1u32), 1 => Just(0)],
        max_bytes in prop_oneof![Just(u64::MAX), 300u64..60_000],
    ) {
        let (params, limit) = (Params { error_rate, capacity, expansion, seed: 0 }, MaxBytes(max_bytes));
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            let [mut single, mut listed] = [(); 2].map(|()| BloomFilter::new(layout, params, &Unlimited).unwrap());
            for items in &lists {
                let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
                let stopped = bytes(items).try_for_each(|item| {
                    one_by_one.push(single.add(item, &limit)?);
                    Ok(())
                });
                prop_assert_eq!(listed.add_all(bytes(items), &limit, |is_new| at_once.push(is_new)), stopped);
                prop_assert_eq!(&at_once, &one_by_one);
                prop_assert!(listed == single);
                let (mut found, all) = (Vec::new(), (0..600).collect::<Vec<u16>>());
                listed.may_contain_all(bytes(&all), |is_there| found.push(is_there));
                prop_assert!(bytes(&all).map(|item| single.may_contain(item)).eq(found));
            }
        }
    }
}

/// Up to the last sub-filter there may be, whichever way it is reached.
#[test]
fn the_longest_chains_are_one_by_one() {
    let items: Vec<u16> = (0..3000).map(|i| i * 7 % 2900).collect();
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        for capacity in 1..=2 {
            let params = Params { error_rate: 0.2, capacity, expansion: 1, seed: 0 };
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
}
