//! Tests filters while their large allocations fail.

use rollcall_core::admission::Terms;
use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{Partial, PartialFilter, redisbloom};
use rollcall_core::window::{ClockSource, Time};

use crate::common::{
    add_all_failures, assert_dumps_load_or_fail, assert_rdb_loads_or_fails, assert_scandump_fails_or_gives, clone_of,
    fails_cleanly, failures, items, reading_fails_cleanly,
};
use crate::failing::with_failure;
use rollcall_fuzz::fields::Fields;
use rollcall_fuzz::values::{completed, cut_after, filter, rdb_of_filter, rdb_of_loading, windowed};

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
fn filters_are_made_and_copied_or_not_at_all() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        reading_fails_cleanly("new", || BloomFilter::new(layout, params(20_000, 2), &Unlimited));
    }
    for filter in windows() {
        reading_fails_cleanly("clone", || filter.try_clone());
    }
    for filter in filters() {
        reading_fails_cleanly("clone", || filter.try_clone());
        if filter.sub_filters().len() == 2 {
            reading_fails_cleanly("one like it", || filter.new_like(&Unlimited));
        }
    }
}

#[test]
fn filters_grow_or_stay_as_they_are() {
    for full in filters().iter_mut().chain(&mut windows()) {
        let mut number = 0u64;
        while full.room() > 0 {
            full.live(Time::Reached).add(number.to_le_bytes(), &Unlimited).unwrap();
            number += 1;
        }
        let new =
            (0u64..).map(|number| format!("new:{number}")).find(|item| !full.may_contain(item.as_bytes())).unwrap();
        fails_cleanly(
            "add",
            || clone_of(full),
            |filter| filter.live(Time::Reached).add(new.as_bytes(), &Unlimited),
            |a, b| a == b,
        );
    }
}

#[test]
fn filters_take_items_up_to_a_failure() {
    for filter in filters().into_iter().chain(windows()) {
        let few = if filter.windowing().is_some() { 50_000 } else { 150_000 };
        let items = items(if filter.sub_filters().len() <= 3 { few } else { 50 });
        let failures = add_all_failures(
            || clone_of(&filter),
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
fn filters_admit_what_they_are_to_or_nothing() {
    let items = items(40_000);
    for filter in filters().into_iter().filter(|filter| filter.sub_filters().len() == 2) {
        for (all, dry_run) in [(false, false), (true, true)] {
            let terms = Terms { limit: u64::MAX, all, dry_run };
            let admit = |filter: &mut BloomFilter| {
                filter.live(Time::Reached).admit(items.iter().map(Vec::as_slice), terms, &Unlimited)
            };
            fails_cleanly("admit", || clone_of(&filter), admit, |a, b| a == b);
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
            || clone_of(&ours),
            |ours| ours.live(Time::Reached).merge(&others, &Unlimited),
            |a, b| a == b,
        );
    }
}

/// Merges generations that are missing in one of the filters, that expire by the merge, and that have grown.
#[test]
fn windows_merge_or_stay_as_they_are() {
    let [ours, mut ahead] = [windows().remove(0), windows().remove(0)];
    ahead.advance(1_002);
    (0..45_000u32).for_each(|item| drop(ahead.live(Time::Reached).add(item.to_le_bytes(), &Unlimited)));
    fails_cleanly(
        "merge",
        || clone_of(&ours),
        |ours| ours.live(Time::Reached).merge(&[&ahead], &Unlimited),
        |a, b| a == b,
    );
    let same = || ours.new_like(&Unlimited).unwrap();
    fails_cleanly("merge", same, |empty| empty.live(Time::Reached).merge(&[&ours, &ahead], &Unlimited), |a, b| a == b);
}

/// An advance returns expired data in a list. If there is no memory for the list, the data is freed at once.
#[test]
fn windows_advance_without_memory() {
    let params = bloom::Params { error_rate: 1e-6, capacity: 4, expansion: 1, seed: 0 };
    let window = Windowing::new(4, 4, ClockSource::Manual, false).unwrap();
    let filter = windowed(params, window, &[700]);
    let advance = |filter: &mut BloomFilter| drop(filter.advance(1_005));
    let (mut ours, mut expected) = (clone_of(&filter), clone_of(&filter));
    advance(&mut expected);
    let ((), failed) = with_failure(1, || advance(&mut ours));
    assert!(failed && ours == expected && ours.is_empty());
}

#[test]
fn filters_are_loaded_or_not_at_all() {
    for filter in filters().into_iter().chain(windows()) {
        assert_dumps_load_or_fail(&filter);
        assert_scandump_fails_or_gives(&filter);
        let half = cut_after(&filter, filter.payload().len() / 2);
        assert_rdb_loads_or_fails::<PartialFilter>(&rdb_of_loading(&half));
        reading_fails_cleanly("half", || half.try_clone());
        assert!(completed(half, &filter) == filter);
        let fields = rdb_of_filter(&filter);
        match filter.layout() {
            BitLayout::Lines => assert_rdb_loads_or_fails::<PartialFilter>(&fields),
            BitLayout::Classic => reading_fails_cleanly("RDB of RedisBloom", || {
                redisbloom::load_rdb(&mut Fields(&fields), redisbloom::RDB_ENCODING_NEWEST, &Unlimited)
            }),
        }
    }
}
