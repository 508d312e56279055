//! Tests windowed filters against an exact model.

mod limits;

use crate::admission::{Admission, Terms};
use crate::bloom::filter::OWN_BYTES;
use crate::bloom::filter::generations::{Generation, Generations};
use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::SubFilter;
use crate::bloom::{BloomFilter, sizing};
use crate::error::{Error, Limit, Parameter};
use crate::live::Value;
use crate::live::tests::Copier;
use crate::size_limit::{MaxBytes, Unlimited};
use crate::window::{ClockSource, Merging, Move, Time};
use proptest::prelude::*;
use std::alloc::Layout;

const LEN: u64 = 10;

fn filter(slices: u32, refresh: bool, capacity: u64, now: u64) -> BloomFilter {
    let params = Params { error_rate: 1e-6, capacity, expansion: 2, seed: 0 };
    let windowing = Windowing::new(LEN * u64::from(slices), slices, ClockSource::System, refresh).unwrap();
    BloomFilter::windowed(params, windowing, windowing.window.first_slice(now), &Unlimited).unwrap()
}

/// The number of additions. An item counts in each slice to which it was added.
fn additions(filter: &BloomFilter) -> u64 {
    filter.sub_filters().map(|one| one.num_items).sum()
}

fn bytes(items: &[u32]) -> Vec<[u8; 4]> {
    items.iter().map(|item| item.to_le_bytes()).collect()
}

fn add(filter: &mut BloomFilter, items: &[u32], now: u64) -> (Move, Vec<bool>) {
    let (items, mut new) = (bytes(items), Vec::new());
    let mut live = filter.live(Time::At(now));
    live.add_all(&items, &Unlimited, |is_new| new.push(is_new)).unwrap();
    (live.finish().before, new)
}

proptest! {
    #[test]
    fn admission_without_memory_moves_nothing(
        slices in 1u32..5, refresh: bool, later in 0u64..80, back: bool, limit in 0u64..4000,
        items in prop::collection::vec(0u32..60, 1..30),
        asked in prop::collection::vec(0u32..120, 1..30),
        dry_run: bool,
    ) {
        let mut ours = filter(slices, refresh, 10, 1_000);
        for (at, item) in (0u64..).zip(&items) {
            add(&mut ours, &[*item], 1_000 + at);
        }
        let (before, now) = (ours.try_clone().unwrap(), if back { 1_000 - later } else { 1_030 + later });
        let asked = bytes(&asked);
        let (items, terms) = (asked.iter().map(|item| &item[..]), Terms { dry_run, ..SOME });
        let reported = ours.admit_at(items, terms, Time::At(now), &MaxBytes(limit));
        prop_assert!(reported.is_ok() && !dry_run || ours == before);
        if let Ok((_, moved)) = reported {
            prop_assert!(moved.before != Move::Stay || ours.newest_slice() == before.newest_slice());
        }
    }
}

#[test]
fn memory_is_shown_and_bitmaps_relocate() {
    let mut filter = filter(3, false, 60, 1_000_000);
    for slice in 0..3u32 {
        add(&mut filter, &(slice * 50..slice * 50 + 50).collect::<Vec<_>>(), 1_000_000 + u64::from(slice) * LEN);
    }
    // Generations of 20 and 40 items.
    assert_eq!(filter.sub_filters().len(), 6);
    // The copy has the same derived parameters, so they are shared even if other tests have filled the pool.
    let copy = filter.try_clone().unwrap();
    let (mut bitmaps, mut bytes) = (0, OWN_BYTES);
    filter.heap_layouts(&mut |layout| {
        bitmaps += usize::from(layout.align() == 64);
        bytes += layout.size() as u64;
    });
    assert_eq!((bitmaps, bytes), (6, filter.size_bytes()));
    assert!((0..7).map(|index| filter.relocate(index, &Copier)).eq((0..7).map(|index| index < 6)));
    assert!(filter == copy && (0..150u32).all(|item| filter.may_contain(item.to_le_bytes())));
}

#[test]
fn fill_and_rate_are_of_live_generations_only() {
    let params = Params { error_rate: 0.05, capacity: 100, expansion: 2, seed: 0 };
    let windowing = Windowing::new(4 * LEN, 4, ClockSource::System, false).unwrap();
    let mut filter = BloomFilter::windowed(params, windowing, 1_000, &Unlimited).unwrap();
    assert_eq!((filter.fill_ratio(), filter.false_positive_rate()), (0.0, 0.0));
    let mut reported = Vec::new();
    for slice in 0..8u64 {
        let now = 1_000 + LEN * slice;
        let live = filter.at(Time::At(now));
        reported.push((live.fill_ratio(), live.false_positive_rate()));
        assert!(
            filter.at(Time::At(now + 5 * LEN)).fill_ratio() == 0.0
                && filter.at(Time::At(now + 5 * LEN)).false_positive_rate() == 0.0
        );
        add(&mut filter, &(0..60).map(|item| item + 1000 * slice as u32).collect::<Vec<_>>(), now);
        let (mut set, mut bits, mut none) = (0, 0, 1.0);
        for one in filter.sub_filters() {
            (set, bits) = (set + one.set_bits, bits + 8 * one.num_bytes);
            let geometry = one.geometry.unwrap();
            let rate =
                sizing::false_positive_rate(&geometry, crate::unstable::bloom::estimate_items(&geometry, one.set_bits));
            none *= 1.0 - rate;
        }
        assert!((filter.fill_ratio() - set as f64 / bits as f64).abs() < 1e-12);
        assert!((filter.false_positive_rate() - (1.0 - none)).abs() < 1e-12, "{slice}");
        assert_eq!(filter.at(Time::At(now)).fill_ratio(), filter.fill_ratio());
    }
    assert!(reported[4].1 > reported[1].1 && reported[1].1 > 0.0);
}

fn layouts_of(filter: &BloomFilter) -> Vec<Layout> {
    let mut layouts = Vec::new();
    filter.heap_layouts(&mut |layout| layouts.push(layout));
    layouts
}

/// A cleared filter takes no memory before its first item.
#[test]
fn a_cleared_filter_is_as_new_at_its_slice() {
    let windowing = Windowing::new(4 * LEN, 4, ClockSource::System, false).unwrap();
    let params = Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 };
    let mut filter = BloomFilter::windowed(params, windowing, 1_000, &Unlimited).unwrap();
    assert!(filter.is_empty());
    assert_eq!((filter.capacity(), filter.room(), filter.num_items()), (100, 0, 0));
    assert_eq!(layouts_of(&filter), [Layout::new::<Generations>()]);
    for slice in 0..3u32 {
        add(&mut filter, &(slice * 70..slice * 70 + 70).collect::<Vec<_>>(), 1_000 + LEN * u64::from(slice));
        assert!(!filter.is_empty() && filter.capacity() == 100);
    }
    let empty = filter.new_like(&Unlimited).unwrap();
    assert!(filter != empty && filter.num_items() > 100 && filter.sub_filters().len() > 3);
    // Expired items stay in the filter until its window moves forward.
    assert!(!filter.is_empty() && layouts_of(&filter).iter().all(|layout| layout.size() > 0));
    assert_eq!(filter.newest_slice(), empty.newest_slice());
    filter = empty;
    assert!(filter.is_empty() && !filter.may_contain(200u32.to_le_bytes()));
    assert_eq!((filter.num_items(), filter.room(), filter.sub_filters().len()), (0, 0, 0));
    assert_eq!(layouts_of(&filter), [Layout::new::<Generations>()]);
    assert_eq!(add(&mut filter, &[1], 1_020), (Move::Stay, vec![true]));
    drop(filter.advance(1_000));
    assert!(filter.is_empty());
}

#[test]
fn windows_end_at_a_number_of_sub_filters() {
    let params = Params { error_rate: 0.01, capacity: 1, expansion: 1, seed: 0 };
    let make = || {
        BloomFilter::windowed(params, Windowing::new(1, 1, ClockSource::Manual, false).unwrap(), 0, &Unlimited).unwrap()
    };
    let expected = "at most 1024, as a larger capacity or expansion needs";
    let rejected = Error::out_of_range(Parameter::SubFilters, expected, 1025);
    let (mut one, mut items) = (make(), 0u32..);
    let mut add = |filter: &mut BloomFilter, len: usize| {
        while filter.sub_filters().len() < len {
            filter.add(items.next().unwrap().to_le_bytes(), &Unlimited).unwrap();
        }
    };
    add(&mut one, 600);
    let older = one.try_clone().unwrap();
    drop(one.advance(1));
    add(&mut one, 1024);
    assert_eq!(one.add(b"another", &Unlimited), Err(rejected.clone()));
    assert_eq!(one.sub_filters().len(), 1024);
    let (another, terms) = ([&b"another"[..]], Terms { limit: u64::MAX, all: false, dry_run: false });
    assert_eq!(one.admit(another.into_iter(), terms, &Unlimited), Err(rejected.clone()));
    let (many, mut empty) = (bytes(&(0..1100).collect::<Vec<_>>()), make());
    assert_eq!(empty.admit(many.iter().map(|item| &item[..]), terms, &Unlimited), Err(rejected));
    assert!(empty == make());
    // Together, these slices have too many sub-filters.
    let mut newer = make();
    drop(newer.advance(1));
    add(&mut newer, 424);
    assert_eq!(newer.try_clone().unwrap().merge(&[&older], &Unlimited), Ok(true));
    add(&mut newer, 425);
    let before = newer.try_clone().unwrap();
    let rejected = Error::out_of_range(Parameter::SubFilters, "at most 1024", 1025);
    assert_eq!(newer.merge(&[&older], &Unlimited), Err(rejected));
    assert!(newer == before);
}

#[test]
fn filters_without_a_window_do_not_move() {
    let params = Params { error_rate: 0.01, capacity: 100, expansion: 0, seed: 0 };
    for layout in [crate::bloom::BitLayout::Lines, crate::bloom::BitLayout::Classic] {
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        (0..90).for_each(|item: u32| drop(filter.add(item.to_le_bytes(), &Unlimited)));
        let before = filter.try_clone().unwrap();
        assert_eq!(filter.advance(1_000).num_bytes(), 0);
        filter.rebase(0);
        filter.set_clock_source(ClockSource::Manual);
        assert_eq!(filter.advance_due(Time::At(u64::MAX)), Move::Stay);
        assert_eq!(filter.merging(&[&before], Time::At(0)), Ok(Merging::default()));
        assert_eq!(filter.present_slice(Time::At(u64::MAX)), before.newest_slice());
        assert!(filter == before && filter.at(Time::At(u64::MAX)).num_items() == before.num_items());
    }
}

const SOME: Terms = Terms { limit: u64::MAX, all: false, dry_run: false };

fn admit(filter: &mut BloomFilter, items: &[u32], terms: Terms, now: u64, limit: u64) -> Result<Vec<Admission>, Error> {
    let reported = filter.admit_at(bytes(items).iter().map(|item| &item[..]), terms, Time::At(now), &MaxBytes(limit));
    reported.map(|(reported, _)| reported)
}

#[test]
fn a_merge_that_only_advances_changes_the_filter() {
    let mut ours = filter(2, false, 10, 1_000);
    add(&mut ours, &[1], 1_000);
    let (older, newer) = (filter(2, false, 10, 990), filter(2, false, 10, 1_010));
    assert_eq!((ours.merge(&[&older], &Unlimited), ours.newest_slice()), (Ok(false), Some(100)));
    assert_eq!((ours.merge(&[&newer], &Unlimited), ours.newest_slice()), (Ok(true), Some(101)));
    assert_eq!((ours.merge(&[&newer], &Unlimited), ours.num_items()), (Ok(false), 1));
}

/// If one filter has all bits of the union, its number of items that were added again is kept. Otherwise the bits tell
/// how many items a slice adds to the later ones. If a slice has grown, the fraction of items that were added again is
/// that of all filters together.
#[test]
fn unions_report_how_many_items_came_again() {
    let of = |items: std::ops::Range<u32>, again: std::ops::Range<u32>| {
        let mut filter = filter(2, true, 2000, 1_000);
        add(&mut filter, &items.collect::<Vec<_>>(), 1_000);
        drop(filter.advance(101));
        add(&mut filter, &again.collect::<Vec<_>>(), 1_010);
        filter
    };
    let ours = of(0..100, 0..40);
    assert_eq!((ours.num_items(), additions(&ours)), (100, 140));
    let mut part = of(50..60, 0..0);
    assert_eq!(part.merge(&[&ours], &Unlimited), Ok(true));
    assert_eq!((part.num_items(), additions(&part)), (100, 140));
    assert!(part == ours);
    let others = [of(1000..1300, 1000..1020), of(2000..2100, 50..100)];
    let mut all = ours.try_clone().unwrap();
    assert_eq!(all.merge(&[&others[0], &others[1]], &Unlimited), Ok(true));
    // Of 500 items, 60 were added again in the same filter, and 50 in another.
    assert!(additions(&all).abs_diff(610) < 4 && all.num_items().abs_diff(500) < 4, "{all:?}");
    // A slice of more than 2,000 items has two sub-filters.
    let mut grown = of(0..2200, 0..1000);
    assert_eq!(grown.merge(&[&of(0..2400, 2000..2100)], &Unlimited), Ok(true));
    let items: Vec<u64> = grown.sub_filters().map(|one| one.num_items).collect();
    let [2000, 400, of_newer] = items[..] else { panic!("{items:?}") };
    assert_eq!(grown.num_items(), 2400 - 2400 * 1100 / (2200 + 2400) + of_newer);
}

/// A merge of one item hardly changes the number of a full window, however many slices it has.
#[test]
fn a_merge_of_one_item_keeps_the_number_of_a_full_window() {
    for (refresh, slices) in [(false, 2), (false, 16), (false, 60), (true, 16)] {
        let mut full = filter(slices, refresh, 12_000, 0);
        for slice in 0..slices {
            drop(full.advance(slice.into()));
            let len = 12_000 / slices;
            add(&mut full, &(slice * len..(slice + 1) * len).collect::<Vec<_>>(), slice.into());
        }
        let (before, mut one) = (full.num_items(), filter(slices, refresh, 12_000, 0));
        drop(one.advance((slices - 1).into()));
        add(&mut one, &[u32::MAX], (slices - 1).into());
        assert_eq!(full.merge(&[&one], &Unlimited), Ok(true));
        let after = full.num_items();
        assert!((before..=before + 1).contains(&after), "{before} {after} with refresh {refresh} in {slices} slices");
    }
}

/// An item counts once, no matter in which slices the merged filters have it. The estimate of `n` items from set bits
/// has a standard deviation of 0.25 % at 10,000 items.
#[test]
fn items_in_different_slices_count_once() {
    for (refresh, slices) in [(true, 2), (true, 6), (false, 2), (false, 6)] {
        let of = |first: u32| {
            let mut filter = filter(slices, refresh, 60_000, 0);
            for slice in 0..=slices {
                drop(filter.advance(slice.into()));
                let start = (first + slice) % 3 * 3_000;
                add(&mut filter, &(start..start + 4_000).collect::<Vec<_>>(), slice.into());
            }
            filter
        };
        let (mut union, others) = (of(0), [of(1), of(2)]);
        assert_eq!(union.merge(&[&others[0], &others[1]], &Unlimited), Ok(true));
        let off = union.num_items() as f64 / 10_000.0 - 1.0;
        assert!(off.abs() < 0.01, "{off} with refresh {refresh} in {slices} slices");
        let [before, after] = [0, 1].map(|later| union.by_age(later).unwrap().iter().sum::<u64>());
        assert!(before == union.num_items() && before.abs_diff(after) < 100, "{before} {after}");
    }
}
