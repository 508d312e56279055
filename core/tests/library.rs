//! Tests what a Rust program expects of filters and counters, such as sharing them between threads and printing them.

use std::fmt::Debug;

use rollcall_core::bloom::sizing::Geometry;
use rollcall_core::bloom::{self, BitLayout, BloomFilter, Params, SubFilterInfo, Windowing};
use rollcall_core::counting::{self, Counter, Estimated, View};
use rollcall_core::error::{Error, Limit, Parameter};
use rollcall_core::live::Value;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::persist::{PartialCounter, PartialFilter};
use rollcall_core::window::{ClockSource, Time, Window};
use rollcall_fuzz::values::{
    counter, cut_after, filter, rdb_of, rdb_of_filter, rdb_of_loading, same_dump, windowed, windowed_counter,
};

const fn is_shared<T: Send + Sync + Debug>() {}

const _: () = {
    is_shared::<BloomFilter>();
    is_shared::<bloom::Params>();
    is_shared::<SubFilterInfo>();
    is_shared::<Geometry>();
    is_shared::<BitLayout>();
    is_shared::<Counter>();
    is_shared::<counting::Params>();
    is_shared::<Estimated>();
    is_shared::<View<'_>>();
    is_shared::<Error>();
    is_shared::<Parameter>();
    is_shared::<Limit>();
    is_shared::<MaxBytes>();
    is_shared::<Unlimited>();
    is_shared::<PartialFilter>();
    is_shared::<PartialCounter>();
};

/// Servers may save without a fork. So one thread saves values while another reads them, and creates and frees values
/// that share their parameters.
#[test]
fn values_are_saved_while_another_thread_reads_them_and_shares_their_parameters() {
    let filters = |round: u64| {
        let params = Params { error_rate: 0.01, capacity: 20, expansion: 2, seed: 0 };
        let window = Window::new(4, 4, 64, ClockSource::Manual).unwrap();
        // A new capacity adds an entry to the table of shared parameters.
        let own = Params { capacity: 100 + round, ..params };
        [
            filter(params, BitLayout::Lines, 50),
            filter(params, BitLayout::Classic, 50),
            windowed(params, Windowing { window, refresh: true }, &[10, 20]),
            filter(own, BitLayout::Lines, 5),
            filter(own, BitLayout::Classic, 5),
        ]
    };
    let counters = |round: u64| {
        let params = counting::Params { error_rate: 0.05, exact_limit: 40, exact_bytes: 1 << 10, seed: 0 };
        [
            counter(0.05, 100, 30),
            counter(0.05, 0, 30),
            windowed_counter(params, 4, ClockSource::Manual, &[10, 30]),
            windowed_counter(params, 4, ClockSource::Manual, &[10, 50]),
            counter(0.05 + 0.001 * (round % 100) as f64, 0, 3),
        ]
    };
    let (filters_saved, counters_saved) = (filters(0), counters(0));
    let params = Params { error_rate: 0.01, capacity: 10_000, expansion: 2, seed: 0 };
    let cut = cut_after(&filter(params, BitLayout::Lines, 5), 1000);
    let save = || {
        let filters = filters_saved.iter().map(rdb_of_filter);
        filters.chain(counters_saved.iter().map(rdb_of)).chain([rdb_of_loading(&cut)]).collect::<Vec<_>>()
    };
    let (expected, rounds) = (save(), if cfg!(miri) { 2 } else { 200 });
    std::thread::scope(|scope| {
        let saver = scope.spawn(|| (0..rounds).for_each(|_| assert!(save() == expected)));
        let mut round = 0;
        while round < rounds || !saver.is_finished() {
            let (others, other_counters) = (filters(round), counters(round));
            assert!(filters_saved.iter().zip(&others).take(3).all(|(filter, other)| filter == other));
            assert!(filters_saved.iter().all(|filter| filter.may_contain(b"item:1") && filter.num_bytes() > 0));
            for (counter, other) in counters_saved.iter().zip(&other_counters).take(4) {
                assert!(same_dump(counter, other) && counter.count() > 0);
            }
            round += 1;
        }
    });
    assert!(save() == expected);
}

/// `Debug` prints parameters only: a bitmap of many MiB or a list of members has no use in a log or a failed assertion.
#[test]
fn debug_prints_parameters_and_no_contents() {
    let params = Params { error_rate: 0.001, capacity: 1_000_000, expansion: 2, seed: 0 };
    let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
    filter.live(Time::Reached).add(b"ann", &Unlimited).unwrap();
    let text = format!("{filter:?}");
    assert!(text.contains("0.001") && text.contains("1000000") && text.len() < 1000, "{text}");
    let mut classic = BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap();
    classic.live(Time::Reached).add(b"ann", &Unlimited).unwrap();
    let text = format!("{classic:?}");
    assert!(text.contains("1000000") && text.len() < 1000, "{text}");
    for exact_limit in [0, 10] {
        let params = counting::Params { error_rate: 0.0123, exact_limit, exact_bytes: 16_384, seed: 0 };
        let mut counter = Counter::new(params).unwrap();
        counter.live(Time::Reached).add(b"ann", &Unlimited).unwrap();
        let text = format!("{counter:?}");
        assert!(text.contains("0.0123") && text.len() < 500, "{text}");
    }
}

/// The number of bitmaps of a filter, and the number of its other allocations.
fn allocations(filter: &BloomFilter) -> (usize, usize) {
    let (mut bitmaps, mut others) = (0, 0);
    filter.heap_layouts(&mut |layout| if layout.align() == 64 { bitmaps += 1 } else { others += 1 });
    (bitmaps, others)
}

/// Filters with equal parameters share one copy of these. Each filter has only its bits and a list of sub-filters.
/// Even the longest chain of sub-filters does not fill the table of shared parameters.
#[test]
fn filters_of_equal_parameters_have_only_their_bits() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let params = Params { error_rate: 0.01, capacity: 5, expansion: 2, seed: 0 };
        let filters: Vec<BloomFilter> = (0..2200)
            .map(|_| {
                let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
                (0..12u32).for_each(|item| drop(filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited)));
                assert_eq!(filter.sub_filters().len(), 2);
                filter
            })
            .collect();
        assert!(filters.iter().all(|filter| allocations(filter) == (2, 1)), "{layout}");
    }
    let mut longest =
        BloomFilter::new(BitLayout::Lines, Params { capacity: 1, expansion: 1, ..Params::default() }, &Unlimited)
            .unwrap();
    let mut items = (0u32..).map(u32::to_le_bytes);
    while longest.sub_filters().len() < 1024 {
        longest.live(Time::Reached).add(items.next().unwrap(), &Unlimited).unwrap();
    }
    let of_capacity = |capacity| Params { capacity, ..Params::default() };
    for capacity in 20..30 {
        let small = BloomFilter::new(BitLayout::Lines, of_capacity(capacity), &Unlimited).unwrap();
        assert_eq!(allocations(&small), (1, 0), "{capacity}");
    }
    drop(longest);
}
