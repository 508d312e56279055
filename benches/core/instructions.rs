//! Fixed work for scripts/check_instructions.py, which runs it under valgrind and counts instructions.
//!
//!     instructions list        print the name of each work and the number of items that it handles
//!     instructions NAME        do the work once; instructions inside `measured` are counted
//!
//! Time differs between machines and between runs. The number of instructions does not, as long as the compiler is the
//! same. Some loops are chosen by the processor, but valgrind does not know AVX-512: unions of counters and the search
//! of several sub-filters are counted with AVX2, the rest as compiled for baseline x86-64.
//! Results are written to memory reserved before, so the allocator is counted only if values are created or grow.

use std::hint::black_box;

use rollcall_core::bloom::{BitLayout, BloomFilter, Params as BloomParams, Windowing};
use rollcall_core::counting::{Counter, Estimated, Params as CounterParams, View, diff_card, union_card};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time, Window};

const ITEMS: usize = 3500;

/// Calls `work`. Instructions are counted while this function is on the stack; the script looks it up by name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Code after the call prevents a tail call, which would leave `measured` too early.
    black_box(());
}

fn items(from: u64) -> Vec<String> {
    let number = |i: usize| (from + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    (0..ITEMS).map(|i| format!("user:{:012x}@example.com", number(i))).collect()
}

fn bytes(items: &[String]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(|item| item.as_bytes())
}

/// A filter with the items `items(0)`, in sub-filters of `capacity` items.
fn filter(error_rate: f64, capacity: u64) -> BloomFilter {
    let params = BloomParams { capacity, error_rate, expansion: 1, seed: 0 };
    let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("a filter");
    filter.live(Time::Reached).add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    filter
}

/// A counter with the members `items(0)`.
fn counter() -> Counter {
    counter_of(0)
}

/// A counter with the members `items(from)`.
fn counter_of(from: u64) -> Counter {
    let params = CounterParams { error_rate: 0.01, exact_limit: 0, exact_bytes: 16_384, seed: 0 };
    let mut counter = Counter::new(params).expect("a counter");
    counter.live(Time::Reached).add_all(bytes(&items(from)), &Unlimited, |_| ()).expect("room");
    counter
}

/// Passes views of `number` counters to `ask`. Each counter shares half of its members with the next.
fn ask_of(number: u64, ask: impl Fn(&[View<'_>]) -> Result<Estimated, Error>) {
    let counters: Vec<_> = (0..number).map(|at| counter_of(at * ITEMS as u64 / 2)).collect();
    let views: Vec<_> = counters.iter().map(|counter| counter.at(Time::Reached)).collect();
    let mut found = None;
    measured(&mut || found = Some(ask(&views)));
    black_box(found);
}

const ABSENT: u64 = 1 << 40;

fn contain(filter: &BloomFilter, from: u64) {
    let (items, mut found) = (items(from), Vec::with_capacity(ITEMS));
    measured(&mut || filter.may_contain_all(bytes(&items), |is_there| found.push(is_there)));
    black_box(found);
}

fn contain_one_by_one(filter: &BloomFilter, from: u64) {
    let (items, mut found) = (items(from), 0);
    measured(&mut || found = bytes(&items).filter(|item| filter.may_contain(item)).count());
    black_box(found);
}

fn insert(mut filter: BloomFilter, from: u64) {
    let (items, mut added) = (items(from), Vec::with_capacity(ITEMS));
    measured(&mut || {
        filter.live(Time::Reached).add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room")
    });
    black_box(added);
}

fn insert_one_by_one(mut filter: BloomFilter, from: u64) {
    let (items, mut added) = (items(from), 0);
    measured(&mut || {
        added = bytes(&items).filter(|item| filter.live(Time::Reached).add(item, &Unlimited).expect("room")).count();
    });
    black_box(added);
}

/// Looks up absent items in five sub-filters of RedisBloom's layout.
fn contain_in_classic() {
    let params = BloomParams { capacity: 800, error_rate: 0.01, expansion: 1, seed: 0 };
    let mut filter = BloomFilter::new(BitLayout::Classic, params, &Unlimited).expect("a filter");
    filter.live(Time::Reached).add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    let (items, mut found) = (items(ABSENT), Vec::with_capacity(ITEMS));
    measured(&mut || filter.may_contain_all(bytes(&items), |is_there| found.push(is_there)));
    black_box(found);
}

/// A filter with a window of four slices and the items `items(0)`, a fifth in each live slice.
fn windowed() -> BloomFilter {
    let params = BloomParams { capacity: 10_000, error_rate: 0.001, expansion: 1, seed: 0 };
    let day = Windowing::new(86_400, 4, ClockSource::Manual, false).expect("a window");
    let mut filter = BloomFilter::windowed(params, day, 0, &Unlimited).expect("a filter");
    for (slice, of_slice) in (0..).zip(items(0).chunks(ITEMS / 5)) {
        filter.advance(slice);
        filter.live(Time::Reached).add_all(bytes(of_slice), &Unlimited, |_| ()).expect("room");
    }
    filter
}

fn contain_in_window(from: u64) {
    let (filter, items, mut found) = (windowed(), items(from), Vec::with_capacity(ITEMS));
    measured(&mut || filter.at(Time::At(0)).may_contain_all(bytes(&items), |is_there| found.push(is_there)));
    black_box(found);
}

fn insert_in_window(from: u64) {
    let (mut filter, items, mut added) = (windowed(), items(from), Vec::with_capacity(ITEMS));
    measured(&mut || {
        filter.live(Time::At(0)).add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room");
    });
    black_box(added);
}

/// A counter that is exact up to 250 members.
fn empty_counter() -> Counter {
    let params = CounterParams { error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 0 };
    Counter::new(params).expect("a counter")
}

/// Small counters with `len` members each, which together are `items(0)`.
fn small_counters(len: usize) -> Vec<Counter> {
    let items = items(0);
    let counter = |members: &[String]| {
        let mut counter = empty_counter();
        counter.live(Time::Reached).add_all(bytes(members), &Unlimited, |_| ()).expect("room");
        counter
    };
    items.chunks(len).map(counter).collect()
}

/// Adds items to small counters one by one, `len` items to each counter.
fn add_to_small(len: usize, mut counters: Vec<Counter>, from: u64) {
    let (items, mut added) = (items(from), 0);
    measured(&mut || {
        for (counter, members) in counters.iter_mut().zip(items.chunks(len)) {
            added +=
                bytes(members).filter(|item| counter.live(Time::Reached).add(item, &Unlimited).expect("room")).count();
        }
    });
    black_box((counters, added));
}

/// Small filters with a capacity of 10 items, each with 5 items.
fn small_filters() -> Vec<BloomFilter> {
    half_full_filters(5)
}

/// Small filters with a capacity of twice `len` items, each with `len` items.
fn half_full_filters(len: usize) -> Vec<BloomFilter> {
    let params = BloomParams { capacity: 2 * len as u64, error_rate: 0.01, expansion: 2, seed: 0 };
    let filter = |items: &[String]| {
        let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("a filter");
        filter.live(Time::Reached).add_all(bytes(items), &Unlimited, |_| ()).expect("room");
        filter
    };
    items(0).chunks(len).map(filter).collect()
}

/// Dumps each value.
fn save<T: Value>(values: &[T]) {
    let mut bytes = 0;
    measured(&mut || bytes = values.iter().flat_map(persist::dump).map(|(_, chunk)| chunk.len()).sum());
    black_box(bytes);
}

/// Loads a dump of each value.
fn load<T: Value>(values: &[T]) {
    let dumps: Vec<Vec<_>> = values.iter().map(|value| persist::dump(value).collect()).collect();
    let mut loaded: Vec<T> = Vec::with_capacity(values.len());
    measured(&mut || {
        let each = dumps.iter().map(|dump| persist::load(dump.iter().map(|(next, chunk)| (*next, chunk)), &Unlimited));
        loaded.extend(each.map(|value| value.expect("a value")));
    });
    black_box(loaded);
}

/// A counter with a window of a day in twelve slices.
fn counter_of_a_day(params: CounterParams) -> Counter {
    let window = Window::new(86_400, 12, Counter::MAX_SLICES, ClockSource::Manual).expect("a window");
    Counter::new(params).expect("a counter").with_window(window, 0).expect("a counter")
}

/// Like [`counter`], with a window and a tag for each slot.
fn windowed_counter() -> Counter {
    let mut counter = counter_of_a_day(*counter().params());
    counter.live(Time::Reached).add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    counter.advance(2);
    counter
}

type Work = (&'static str, usize, fn());

const WORK: [Work; 23] = [
    ("bloom_contain_absent_2_lines", ITEMS, || contain(&filter(0.001, 10_000), ABSENT)),
    ("bloom_contain_present_2_lines", ITEMS, || contain(&filter(0.001, 10_000), 0)),
    ("bloom_contain_absent_5_sub_filters", ITEMS, || contain(&filter(0.01, 800), ABSENT)),
    ("bloom_contain_one_by_one", ITEMS, || contain_one_by_one(&filter(0.01, 10_000), 0)),
    ("classic_contain_absent_5_sub_filters", ITEMS, contain_in_classic),
    ("bloom_insert_2_lines", ITEMS, || insert(filter(0.001, 10_000), ABSENT)),
    ("bloom_insert_one_by_one", ITEMS, || insert_one_by_one(filter(0.01, 10_000), ABSENT)),
    ("windowed_contain_absent", ITEMS, || contain_in_window(ABSENT)),
    ("windowed_insert", ITEMS, || insert_in_window(ABSENT)),
    ("bloom_small_insert", ITEMS, || {
        let (mut filters, items, mut added) = (small_filters(), items(ABSENT), 0);
        measured(&mut || {
            for (filter, items) in filters.iter_mut().zip(items.chunks(5)) {
                added +=
                    bytes(items).filter(|item| filter.live(Time::Reached).add(item, &Unlimited).expect("room")).count();
            }
        });
        black_box((filters, added));
    }),
    ("bloom_small_new", ITEMS, || {
        let params = BloomParams { capacity: 10, error_rate: 0.01, expansion: 2, seed: 0 };
        let mut filters = Vec::with_capacity(ITEMS);
        let new = || BloomFilter::new(BitLayout::Lines, params, &Unlimited).expect("a filter");
        measured(&mut || filters.extend((0..ITEMS).map(|_| new())));
        black_box(filters);
    }),
    ("stored_filter_of_100_saved", ITEMS / 50, || save(&half_full_filters(50))),
    ("stored_filter_of_100_loaded", ITEMS / 50, || load(&half_full_filters(50))),
    ("stored_counter_of_10_saved", ITEMS / 10, || save(&small_counters(10))),
    ("stored_counter_of_10_loaded", ITEMS / 10, || load(&small_counters(10))),
    ("counting_exact_10_new", ITEMS, || {
        add_to_small(10, (0..ITEMS / 10).map(|_| empty_counter()).collect(), 0);
    }),
    ("counting_exact_250_seen", ITEMS, || add_to_small(250, small_counters(250), 0)),
    ("counting_add", ITEMS, || {
        let (mut counter, items, mut added) = (counter(), items(ABSENT), Vec::with_capacity(ITEMS));
        measured(&mut || {
            counter.live(Time::Reached).add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room")
        });
        black_box(added);
    }),
    ("counting_windowed_add", ITEMS, || {
        let (mut counter, items, mut added) = (windowed_counter(), items(ABSENT), Vec::with_capacity(ITEMS));
        measured(&mut || {
            counter.live(Time::Reached).add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room")
        });
        black_box(added);
    }),
    ("counting_estimate", 1, || {
        let (counter, mut estimate) = (counter(), 0.0);
        measured(&mut || estimate = counter.estimate());
        black_box(estimate);
    }),
    ("counting_union_of_24", 1, || ask_of(24, union_card)),
    ("counting_difference_of_2", 1, || ask_of(2, diff_card)),
    ("counting_history_of_12", 1, || {
        let (counter, mut history) = (windowed_counter(), Vec::new());
        measured(&mut || history = counter.history(Time::Reached).expect("memory"));
        black_box(history);
    }),
];

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    match WORK.iter().find(|(name, ..)| *name == asked) {
        Some((_, _, work)) => work(),
        // `cargo bench` runs this program too, without arguments: it prints the list.
        None => WORK.iter().for_each(|(name, items, _)| println!("{name} {items}")),
    }
}
