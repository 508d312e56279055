//! Tests filters while their large allocations fail.

use rollcall_core::admission::Terms;
use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time};

use crate::common::{add_all_failures, fails_cleanly, failures, items};
use rollcall_fuzz::values::{filter, windowed};

fn params(capacity: u64, expansion: u32) -> bloom::Params {
    bloom::Params { error_rate: 0.01, capacity, expansion, seed: 0 }
}

/// Filters with large bitmaps, and filters with large lists of sub-filters.
fn filters() -> Vec<BloomFilter> {
    let mut filters = Vec::new();
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        filters.push(filter(params(20_000, 2), layout, 25_000));
        filters.push(filter(params(2, 1), layout, 1700));
        assert!(filters[filters.len() - 2].sub_filters().len() == 2);
        assert!(filters[filters.len() - 1].sub_filters().len() > 420);
    }
    filters
}

/// Value filters: one that grew in its last slice, and one whose newest generation is full.
fn windows() -> Vec<BloomFilter> {
    let [renewing, other] =
        [true, false].map(|refresh| Windowing::new(86_400, 2, ClockSource::Manual, refresh).unwrap());
    let windows =
        vec![windowed(params(20_000, 2), renewing, &[15_000, 25_000]), windowed(params(40_000, 2), other, &[20_000])];
    assert_eq!([windows[0].sub_filters().len(), windows[1].sub_filters().len()], [3, 1]);
    windows
}

#[test]
fn filters_take_items_up_to_a_failure() {
    for filter in filters().into_iter().chain(windows()) {
        let few = if filter.windowing().is_some() { 50_000 } else { 150_000 };
        let items = items(if filter.sub_filters().len() <= 3 { few } else { 50 });
        let failures = add_all_failures(
            || filter.clone(),
            &items,
            |filter, items, reported| {
                filter
                    .live(Time::Reached)
                    .add_all(items.iter().map(Vec::as_slice), &Unlimited, |new| reported.push(new))
            },
            |a, b| a == b,
        );
        assert!(failures > 0);
    }
}

#[test]
fn filters_admit_or_stay_as_they_are() {
    let items = items(40_000);
    for filter in filters().into_iter().filter(|filter| filter.sub_filters().len() == 2) {
        for (all, dry_run) in [(false, false), (true, true)] {
            let terms = Terms { limit: u64::MAX, all, dry_run };
            let admit = |filter: &mut BloomFilter| {
                filter.live(Time::Reached).admit(items.iter().map(Vec::as_slice), terms, &Unlimited)
            };
            fails_cleanly("admit", || filter.clone(), admit, |a, b| a == b);
        }
    }
    // Items of the newest slice are known. Items of older slices are added to the newest slice again.
    let of_window: Vec<Vec<u8>> = (10_000..16_000).map(|item| format!("item:{item}").into_bytes()).collect();
    let asked: Vec<&[u8]> = of_window.iter().chain(&items[..15_000]).map(Vec::as_slice).collect();
    let window = || {
        let mut window = windows().remove(0);
        window.advance(1_002);
        window
    };
    for (all, dry_run) in [(false, false), (true, true)] {
        let terms = Terms { limit: u64::MAX, all, dry_run };
        let admit =
            |filter: &mut BloomFilter| filter.live(Time::Reached).admit(asked.iter().copied(), terms, &Unlimited);
        let failures = failures("admit", window, admit, |a, b| a == b);
        assert!(failures > 2);
    }
    let of_clock = || {
        let mut filter = window();
        filter.set_clock_source(ClockSource::System);
        filter
    };
    // If the clock requires an advance, the filter advances and admits the items, or does neither.
    for dry_run in [false, true] {
        let terms = Terms { limit: u64::MAX, all: false, dry_run };
        let admit = |filter: &mut BloomFilter| {
            filter.live(Time::At(1_003 * 43_200)).admit(items[..500].iter().map(Vec::as_slice), terms, &Unlimited)
        };
        fails_cleanly("move", of_clock, admit, |a, b| a == b);
    }
}

/// A merge allocates the sub-filters that the destination lacks, and lists of pointers and of numbers, which are large
/// for this number of filters.
#[test]
fn filters_merge_or_stay_as_they_are() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let (ours, other) = (filter(params(100, 2), layout, 10), filter(params(100, 2), layout, 50));
        let (others, grown) = (vec![&other; 3000], filter(params(20_000, 2), layout, 25_000));
        let merge = |ours: &mut BloomFilter| ours.live(Time::Reached).merge(&[&grown], &Unlimited);
        fails_cleanly("merge", || filter(params(20_000, 2), layout, 0), merge, |a, b| a == b);
        fails_cleanly(
            "merge",
            || ours.clone(),
            |ours| ours.live(Time::Reached).merge(&others, &Unlimited),
            |a, b| a == b,
        );
    }
}
