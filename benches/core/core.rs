//! Benchmarks of the library without a server: time per item, with data in a cache and in memory.
//!
//!     cargo bench --bench core
//!
//! Read the medians of `item/s`. Each call handles [`BATCH`] items, and no call repeats the items of the call before.

use std::cell::Cell;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use rollcall_core::bloom::{BitLayout, BloomFilter, Params as BloomParams, Windowing};
use rollcall_core::counting::{Counter, Params as CounterParams, View, union_card};
use rollcall_core::live::Windowed;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bits;
use rollcall_core::unstable::hash::{hash64, hash128};
use rollcall_core::window::{ClockSource, Time, Window};

fn main() {
    divan::main();
}

const BATCH: usize = 1000;

/// The first number of items that are in no filter.
const ABSENT: u64 = 1 << 40;

fn item(number: u64) -> String {
    // The multiplication spreads numbers, so that neighbours share no more than other items do.
    format!("user:{:012x}@example.com", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16)
}

fn items(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    numbers.map(item).collect()
}

fn bytes(items: &[String]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(|item| item.as_bytes())
}

/// A filter, and the number of items in it.
struct Filled {
    filter: BloomFilter,
    items: u64,
}

/// Capacity and error rate: one filter of 130 KB, which stays in a cache, and one of 190 MB, which does not.
const SIZES: [(u64, f64); 2] = [(100_000, 0.01), (100_000_000, 0.001)];

fn filled((capacity, error_rate): (u64, f64)) -> Filled {
    let params = BloomParams { capacity, error_rate, expansion: 2, seed: 0 };
    let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("a filter");
    let count = (capacity / 2).min(1_000_000);
    let mut added = Vec::new();
    for start in (0..count).step_by(BATCH) {
        added.clear();
        filter
            .live(Time::Reached)
            .add_all(bytes(&items(start..start + BATCH as u64)), &Unlimited, |new| added.push(new))
            .expect("room");
    }
    Filled { filter, items: count }
}

/// The items of the next call, whose numbers follow those of the previous call.
fn numbers(next: &Cell<u64>) -> Vec<String> {
    let start = next.replace(next.get() + BATCH as u64);
    items(start..start + BATCH as u64)
}

mod hash {
    use super::*;

    #[divan::bench]
    fn hash_128(bencher: Bencher) {
        let items = items(0..BATCH as u64);
        bencher
            .counter(ItemsCount::new(BATCH))
            .bench_local(|| bytes(black_box(&items)).fold(0, |all, item| all ^ hash128(item, 0).lo));
    }

    #[divan::bench]
    fn hash_64(bencher: Bencher) {
        let items = items(0..BATCH as u64);
        bencher
            .counter(ItemsCount::new(BATCH))
            .bench_local(|| bytes(black_box(&items)).fold(0, |all, item| all ^ hash64(item, 0)));
    }
}

mod bloom {
    use super::*;

    fn contain(bencher: Bencher, size: (u64, f64), present: bool) {
        let Filled { filter, items } = filled(size);
        let next = Cell::new(0u64);
        let call = || {
            let start = next.replace(next.get() + BATCH as u64);
            let start = if present { start % (items - BATCH as u64) } else { ABSENT + start };
            super::items(start..start + BATCH as u64)
        };
        bencher.counter(ItemsCount::new(BATCH)).with_inputs(call).bench_local_refs(|items| {
            let mut found = Vec::with_capacity(BATCH);
            filter.may_contain_all(bytes(items), |is_there| found.push(is_there));
            found
        });
    }

    #[divan::bench(args = SIZES)]
    fn contain_absent(bencher: Bencher, size: (u64, f64)) {
        contain(bencher, size, false);
    }

    #[divan::bench(args = SIZES)]
    fn contain_present(bencher: Bencher, size: (u64, f64)) {
        contain(bencher, size, true);
    }

    #[divan::bench(args = SIZES, sample_count = 40, sample_size = 1)]
    fn insert_new(bencher: Bencher, size: (u64, f64)) {
        let Filled { filter, items } = filled(size);
        let (filter, next) = (Cell::new(Some(filter)), Cell::new(items));
        bencher.counter(ItemsCount::new(BATCH)).with_inputs(|| numbers(&next)).bench_local_refs(|items| {
            let mut added = Vec::with_capacity(BATCH);
            let mut taken = filter.take().expect("the filter");
            taken.live(Time::Reached).add_all(bytes(items), &Unlimited, |new| added.push(new)).expect("room");
            filter.set(Some(taken));
            added
        });
    }

    /// Looks up one item at a time, so cache misses overlap less than in a batch.
    #[divan::bench(args = SIZES)]
    fn contain_one_by_one(bencher: Bencher, size: (u64, f64)) {
        let Filled { filter, .. } = filled(size);
        let next = Cell::new(ABSENT);
        bencher
            .counter(ItemsCount::new(BATCH))
            .with_inputs(|| numbers(&next))
            .bench_local_refs(|items| bytes(items).filter(|item| filter.may_contain(item)).count());
    }
}

/// Compares a filter without a window and a windowed filter with the same capacity and error rate, in lists of 350
/// items.
mod windowed {
    use super::*;

    const LIST: usize = 350;

    /// The kind of filter (without a window, or with four slices) and its capacity.
    const KINDS: [(&str, u64); 4] = [("plain", 1000), ("window", 1000), ("plain", 50_000), ("window", 50_000)];

    /// A filter with nine tenths of its capacity. A windowed filter has a fifth of the items in each live slice.
    fn filled((kind, capacity): (&str, u64)) -> BloomFilter {
        let params = BloomParams { capacity, error_rate: 0.001, expansion: 2, seed: 0 };
        let count = capacity * 9 / 10;
        if kind == "plain" {
            let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("a filter");
            filter.live(Time::Reached).add_all(bytes(&super::items(0..count)), &Unlimited, |_| ()).expect("room");
            return filter;
        }
        let day = Windowing::new(86_400, 4, ClockSource::Manual, false).expect("a window");
        let mut filter = BloomFilter::windowed(params, day, 0, &Unlimited).expect("a filter");
        for slice in 0..5 {
            filter.advance(slice);
            let of_slice = super::items(count * slice / 5..count * (slice + 1) / 5);
            filter.live(Time::Reached).add_all(bytes(&of_slice), &Unlimited, |_| ()).expect("room");
        }
        filter
    }

    fn contain(bencher: Bencher, kind: (&str, u64), from: u64) {
        let filter = filled(kind);
        let next = Cell::new(0);
        let call = || {
            let start = next.replace((next.get() + LIST as u64) % (kind.1 / 2));
            super::items(from + start..from + start + LIST as u64)
        };
        bencher.counter(ItemsCount::new(LIST)).with_inputs(call).bench_local_refs(|items| {
            let mut found = Vec::with_capacity(LIST);
            filter.at(Time::At(0)).may_contain_all(bytes(items), |is_there| found.push(is_there));
            found
        });
    }

    #[divan::bench(args = KINDS)]
    fn contain_absent(bencher: Bencher, kind: (&str, u64)) {
        contain(bencher, kind, ABSENT);
    }

    #[divan::bench(args = KINDS)]
    fn contain_present(bencher: Bencher, kind: (&str, u64)) {
        contain(bencher, kind, 0);
    }

    fn add(bencher: Bencher, kind: (&str, u64), from: u64) {
        let filter = filled(kind);
        let call = || (filter.try_clone().expect("a copy"), super::items(from..from + LIST as u64));
        bencher.counter(ItemsCount::new(LIST)).with_inputs(call).bench_local_refs(|(filter, items)| {
            let mut added = Vec::with_capacity(LIST);
            filter.live(Time::At(0)).add_all(bytes(items), &Unlimited, |new| added.push(new)).expect("room");
            added
        });
    }

    #[divan::bench(args = KINDS)]
    fn add_known(bencher: Bencher, kind: (&str, u64)) {
        add(bencher, kind, 0);
    }

    #[divan::bench(args = KINDS)]
    fn add_new(bencher: Bencher, kind: (&str, u64)) {
        add(bencher, kind, ABSENT);
    }
}

mod counting {
    use super::*;

    /// Capacity and error rate: a bitmap of 4.5 KB, and one of 130 KB.
    const COUNTERS: [(u64, f64); 2] = [(50_000, 0.01), (1_000_000, 0.001)];

    fn counter((capacity, error_rate): (u64, f64), numbers: std::ops::Range<u64>) -> Counter {
        let params = CounterParams { capacity, error_rate, exact_limit: 0, exact_bytes: 16_384, seed: 0 };
        let mut counter = Counter::new(params).expect("a counter");
        counter.live(Time::Reached).add_all(bytes(&items(numbers)), &Unlimited, |_| ()).expect("room");
        counter
    }

    #[divan::bench(args = COUNTERS)]
    fn add(bencher: Bencher, size: (u64, f64)) {
        let mut counter = counter(size, 0..100_000);
        let next = Cell::new(ABSENT);
        bencher.counter(ItemsCount::new(BATCH)).with_inputs(|| numbers(&next)).bench_local_refs(|items| {
            let mut added = Vec::with_capacity(BATCH);
            counter.live(Time::Reached).add_all(bytes(items), &Unlimited, |new| added.push(new)).expect("room");
            added
        });
    }

    /// Computes the estimate after a change, so that no cached estimate is used.
    #[divan::bench(args = COUNTERS)]
    fn estimate(bencher: Bencher, size: (u64, f64)) {
        let counter = counter(size, 0..40_000);
        // Copies of a counter that was never asked for its estimate.
        let copy = || counter.try_clone().expect("a copy");
        bencher.with_inputs(copy).bench_local_refs(|counter| counter.estimate());
    }

    #[divan::bench(args = [2, 100])]
    fn union_of_1_mbit(bencher: Bencher, number: u64) {
        let counters: Vec<_> = (0..number).map(|i| counter(COUNTERS[1], i << 32..(i << 32) + 100_000)).collect();
        let bytes: u64 = counters.iter().map(|counter| counter.num_bits() / 8).sum();
        let views: Vec<View> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
        bencher.counter(BytesCount::new(bytes)).bench_local(|| union_card(black_box(&views)));
    }

    /// Only reads the bitmaps that a union combines, which is a lower bound for the time of a union.
    #[divan::bench(args = [2, 100])]
    fn count_bits_of_1_mbit(bencher: Bencher, number: usize) {
        let bitmaps = vec![vec![0x5555_5555_5555_5555u64; 1 << 14]; number];
        let counted = || bitmaps.iter().map(|bitmap| bits::count_ones(black_box(bitmap))).sum::<u64>();
        bencher.counter(BytesCount::new(number << 17)).bench_local(counted);
    }
}

/// Windowed counters; [`counting`] has counters without a window.
mod counting_windowed {
    use super::*;

    /// Capacity, error rate and slices: 18 KB with 4-bit tags, 37 KB with 8-bit tags, and the largest possible counter
    /// of 8 MiB.
    const COUNTERS: [(u64, f64, u32); 3] = [(50_000, 0.01, 12), (50_000, 0.01, 24), (10_000_000_000, 0.001, 24)];

    /// A counter that was filled with members in every slice of its window.
    fn counter((capacity, error_rate, slices): (u64, f64, u32), exact_limit: u32) -> Counter {
        let params = CounterParams { capacity, error_rate, exact_limit, exact_bytes: 16_384, seed: 0 };
        let window = Window::new(86_400, slices, Counter::MAX_SLICES, ClockSource::Manual).expect("a window");
        let mut counter = Counter::new(params).expect("a counter").with_window(window, 0).expect("a counter");
        let members = capacity.min(5_000_000) / u64::from(slices);
        for slice in 0..u64::from(slices) {
            counter.advance(slice);
            let from = slice * members;
            for start in (from..from + members).step_by(BATCH) {
                counter
                    .live(Time::Reached)
                    .add_all(bytes(&items(start..start + BATCH as u64)), &Unlimited, |_| ())
                    .expect("room");
            }
        }
        counter
    }

    #[divan::bench(args = COUNTERS)]
    fn add(bencher: Bencher, size: (u64, f64, u32)) {
        let mut counter = counter(size, 0);
        let next = Cell::new(ABSENT);
        bencher.counter(ItemsCount::new(BATCH)).with_inputs(|| numbers(&next)).bench_local_refs(|items| {
            let mut added = Vec::with_capacity(BATCH);
            counter.live(Time::Reached).add_all(bytes(items), &Unlimited, |new| added.push(new)).expect("room");
            added
        });
    }

    /// Counts half of the window.
    #[divan::bench(args = COUNTERS)]
    fn count_since(bencher: Bencher, size: (u64, f64, u32)) {
        let counter = counter(size, 0);
        bencher.bench_local(|| counter.since(black_box(43_200), Time::At(0)).expect("within the window").count());
    }

    #[divan::bench(args = COUNTERS)]
    fn history(bencher: Bencher, size: (u64, f64, u32)) {
        let counter = counter(size, 0);
        bencher.bench_local(|| counter.history(black_box(Time::At(0))));
    }

    /// Advances a counter with the largest number of members that can be listed.
    #[divan::bench]
    fn advance_of_members(bencher: Bencher) {
        let params = CounterParams {
            capacity: 50_000,
            error_rate: 0.01,
            exact_limit: CounterParams::MAX_EXACT_LIMIT,
            exact_bytes: CounterParams::MAX_EXACT_BYTES,
            seed: 0,
        };
        let window = Window::new(86_400, 24, Counter::MAX_SLICES, ClockSource::Manual).expect("a window");
        let mut counter = Counter::new(params).expect("a counter").with_window(window, 0).expect("a counter");
        for member in 0..CounterParams::MAX_EXACT_LIMIT {
            counter.advance(u64::from(member % 2));
            counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited).expect("room");
        }
        let copy = || counter.try_clone().expect("a copy");
        bencher.with_inputs(copy).bench_local_refs(|counter| counter.advance(25));
    }

    #[divan::bench(args = COUNTERS)]
    fn advance(bencher: Bencher, size: (u64, f64, u32)) {
        let counter = counter(size, 0);
        let copy = || counter.try_clone().expect("a copy");
        // One of the slices dies.
        bencher.with_inputs(copy).bench_local_refs(|counter| counter.advance(u64::from(size.2) + 1));
    }
}
