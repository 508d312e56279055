//! Allocations that fail: each operation that may need much memory is run with its first large allocation failing, then
//! its second, and so on. It has to say so and leave all as it was; the process must not end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

use rollcall_core::admission::Terms;
use rollcall_core::bloom::{self, BitLayout, BloomFilter, Sliding};
use rollcall_core::counting::{self, Counter, Representation, count_union, estimate_intersection};
use rollcall_core::error::Error;

use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::Shaped;
use rollcall_core::unstable::hash::checksum;
use rollcall_core::unstable::persist::{
    Loading, LoadingBloomFilter, LoadingCounter, Stored, push_chunk, rdb, redisbloom, scandump,
};
use rollcall_core::window::{Pace, Window};

mod support;

use support::fields::Fields;
use support::values::{
    completed, cut_after, dump_of, filter, rdb_of, rdb_of_filter, rdb_of_loading, same_dump, windowed,
};

/// Allocations of fewer bytes never fail: a server's allocator has as much, or the machine has nothing.
const LARGE_BYTES: usize = 16 << 10;

thread_local! {
    /// The large allocation of this thread that fails, counted from 1; 0 for none. It counts down.
    static FAILS_IN: Cell<u64> = const { Cell::new(0) };
}

struct Failing;

impl Failing {
    /// Whether an allocation of so many bytes fails.
    fn fails(bytes: usize) -> bool {
        let left = FAILS_IN.get();
        if bytes < LARGE_BYTES || left == 0 {
            return false;
        }
        FAILS_IN.set(left - 1);
        left == 1
    }
}

// SAFETY: all memory is the system's, and null is what the system returns where it has none. `FAILS_IN` is initialised
// at compile time and needs no destructor, so to look at it allocates nothing.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if Self::fails(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised, and all memory is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs `operate` with its `n`th large allocation failing; tells whether one did.
fn with_failure<R>(n: u64, operate: impl FnOnce() -> R) -> (R, bool) {
    FAILS_IN.set(n);
    let outcome = operate();
    let failed = FAILS_IN.replace(0) == 0;
    (outcome, failed)
}

/// Runs `operate` on what `make` makes until no large allocation of it is left to fail; each failure is told and `same`
/// says that it changed nothing. Returns how many there were.
fn failures<T, R>(
    what: &str,
    make: impl Fn() -> T,
    operate: impl Fn(&mut T) -> Result<R, Error>,
    same: impl Fn(&T, &T) -> bool,
) -> u64 {
    for n in 1.. {
        let mut value = make();
        let (outcome, failed) = with_failure(n, || operate(&mut value).map(|_| ()));
        if !failed {
            assert_eq!(outcome, Ok(()), "{what}");
            return n - 1;
        }
        assert_out_of_memory(what, &outcome);
        assert!(same(&value, &make()), "{what}, allocation {n}: changed");
    }
    unreachable!()
}

fn assert_out_of_memory<R: Debug>(what: &str, outcome: &Result<R, Error>) {
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. })), "{what}: {outcome:?}");
}

/// [`failures`], of which there is one at least.
fn fails_cleanly<T, R>(
    what: &str,
    make: impl Fn() -> T,
    operate: impl Fn(&mut T) -> Result<R, Error>,
    same: impl Fn(&T, &T) -> bool,
) {
    assert!(failures(what, make, operate, same) > 0, "{what}: no large allocation");
}

/// As [`fails_cleanly`], of what only reads.
fn reading_fails_cleanly<R>(what: &str, read: impl Fn() -> Result<R, Error>) {
    fails_cleanly(what, || (), |()| read(), |(), ()| true);
}

fn params(capacity: u64, expansion: u32) -> bloom::Params {
    bloom::Params { error_rate: 0.01, capacity, expansion, seed: 0 }
}

/// Filters whose bitmaps are large, and whose lists of sub-filters are.
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

/// Filters that forget: one that grew in its last slice, and one of the last items that is about to turn.
fn windows() -> Vec<BloomFilter> {
    let of_time = Sliding::time(86_400, 2, Pace::Manual, true).unwrap();
    let of_last = Sliding::last(2, false).unwrap();
    let windows =
        vec![windowed(params(20_000, 2), of_time, &[15_000, 25_000]), windowed(params(40_000, 0), of_last, &[20_000])];
    assert_eq!([windows[0].sub_filters().len(), windows[1].sub_filters().len()], [3, 1]);
    windows
}

fn clone_of(filter: &BloomFilter) -> BloomFilter {
    filter.try_clone().unwrap()
}

fn items(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|item| format!("more:{item}").into_bytes()).collect()
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
            reading_fails_cleanly("twin", || filter.empty_twin(&Unlimited));
        }
    }
}

#[test]
fn filters_grow_or_stay_as_they_are() {
    for full in filters().iter_mut().chain(&mut windows()) {
        let mut number = 0u64;
        while full.room() > 0 {
            full.add(&number.to_le_bytes(), &Unlimited).unwrap();
            number += 1;
        }
        let new =
            (0u64..).map(|number| format!("new:{number}")).find(|item| !full.may_contain(item.as_bytes())).unwrap();
        fails_cleanly("add", || clone_of(full), |filter| filter.add(new.as_bytes(), &Unlimited), |a, b| a == b);
    }
}

/// Adds the items with the first large allocation failing, then with the second and so on, and returns how many there
/// are. What was added before a failure must be in, and told.
fn add_all_failures<T>(
    empty: impl Fn() -> T,
    items: &[Vec<u8>],
    add_all: impl Fn(&mut T, &[Vec<u8>], &mut Vec<bool>) -> Result<(), Error>,
    same: impl Fn(&T, &T) -> bool,
) -> u64 {
    for n in 1.. {
        let (mut ours, mut told) = (empty(), Vec::with_capacity(items.len()));
        let (outcome, failed) = with_failure(n, || add_all(&mut ours, items, &mut told));
        if !failed {
            assert_eq!(outcome, Ok(()));
            return n - 1;
        }
        assert_out_of_memory("add_all", &outcome);
        assert!(told.len() < items.len());
        let mut expected = empty();
        add_all(&mut expected, &items[..told.len()], &mut Vec::new()).unwrap();
        assert!(same(&ours, &expected), "allocation {n}");
    }
    unreachable!()
}

#[test]
fn filters_take_items_up_to_a_failure() {
    for filter in filters().into_iter().chain(windows()) {
        let few = if filter.sliding().is_some() { 50_000 } else { 150_000 };
        let items = items(if filter.sub_filters().len() <= 3 { few } else { 50 });
        let failures = add_all_failures(
            || clone_of(&filter),
            &items,
            |filter, items, told| filter.add_all(items.iter().map(Vec::as_slice), &Unlimited, |new| told.push(new)),
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
            let admit = |filter: &mut BloomFilter| filter.admit(items.iter().map(Vec::as_slice), terms, &Unlimited);
            fails_cleanly("admit", || clone_of(&filter), admit, |a, b| a == b);
        }
    }
    // Those that the newest slice has already are known, and the others of the window come to it.
    let of_window: Vec<Vec<u8>> = (10_000..16_000).map(|item| format!("item:{item}").into_bytes()).collect();
    let asked: Vec<&[u8]> = of_window.iter().chain(&items[..15_000]).map(Vec::as_slice).collect();
    let window = || {
        let mut window = windows().remove(0);
        window.advance(1_002);
        window
    };
    for (all, dry_run) in [(false, false), (true, true)] {
        let terms = Terms { limit: u64::MAX, all, dry_run };
        let admit = |filter: &mut BloomFilter| filter.admit(asked.iter().copied(), terms, &Unlimited);
        let moved = |filter: &mut BloomFilter| filter.advance_before_admitting(asked.iter().copied(), terms, 0);
        let failures = failures("admit", window, admit, |a, b| a == b);
        assert!(failures > 2);
        assert_eq!(self::failures("move", window, moved, |a, b| a == b), 0, "one by hand does not ask");
    }
    let of_clock = || {
        let mut filter = window();
        filter.set_pace(Pace::Clock);
        filter
    };
    let terms = Terms { limit: u64::MAX, all: false, dry_run: false };
    let moved = |filter: &mut BloomFilter| {
        filter.advance_before_admitting(items[..15_000].iter().map(Vec::as_slice), terms, 1_003 * 43_200)
    };
    fails_cleanly("move", of_clock, moved, |a, b| a == b);
}

/// A merge allocates lists of pointers and of numbers, which so many filters make large, and the sub-filters that it has not.
#[test]
fn filters_merge_or_stay_as_they_are() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let (ours, other) = (filter(params(100, 2), layout, 10), filter(params(100, 2), layout, 50));
        let (others, grown) = (vec![&other; 3000], filter(params(20_000, 2), layout, 25_000));
        let merge = |ours: &mut BloomFilter| ours.merge(&[&grown], &Unlimited);
        fails_cleanly("merge", || filter(params(20_000, 2), layout, 0), merge, |a, b| a == b);
        fails_cleanly("merge", || clone_of(&ours), |ours| ours.merge(&others, &Unlimited), |a, b| a == b);
    }
}

/// Generations that are missing on either side, that die by it, and that have grown.
#[test]
fn windows_merge_or_stay_as_they_are() {
    let [ours, mut ahead] = [windows().remove(0), windows().remove(0)];
    ahead.advance(1_002);
    (0..45_000u32).for_each(|item| drop(ahead.add(&item.to_le_bytes(), &Unlimited)));
    fails_cleanly("merge", || clone_of(&ours), |ours| ours.merge(&[&ahead], &Unlimited), |a, b| a == b);
    let same = || ours.empty_twin(&Unlimited).unwrap();
    fails_cleanly("merge", same, |empty| empty.merge(&[&ours, &ahead], &Unlimited), |a, b| a == b);
}

/// What is forgotten is handed over in a list; where there is no memory for it, it is dropped at once.
#[test]
fn windows_advance_without_memory() {
    let params = bloom::Params { error_rate: 1e-6, capacity: 4, expansion: 1, seed: 0 };
    let window = Sliding::time(4, 4, Pace::Manual, false).unwrap();
    let filter = windowed(params, window, &[700]);
    let advance = |filter: &mut BloomFilter| drop(filter.advance(1_005));
    let (mut ours, mut expected) = (clone_of(&filter), clone_of(&filter));
    advance(&mut expected);
    let ((), failed) = with_failure(1, || advance(&mut ours));
    assert!(failed && ours == expected && ours.is_empty());
}

/// Loads a dump a step at a time, each with its own failures.
fn assert_dumps_load_or_fail<T: Stored>(value: &T) {
    let dump = dump_of(value);
    reading_fails_cleanly("load", || {
        persist::load::<T, _>(dump.iter().map(|(next, chunk)| (*next, chunk)), &Unlimited)
    });
    // A push may allocate or not. Where it fails it took nothing, and succeeds when it is tried again.
    let mut loading = T::Loading::begin(&dump[0].1, &Unlimited).unwrap();
    for (next, chunk) in &dump[1..] {
        for n in 1.. {
            let received = loading.received_bytes();
            let (outcome, failed) = with_failure(n, || push_chunk(&mut loading, *next, chunk));
            if !failed {
                assert_eq!(outcome, Ok(()));
                break;
            }
            assert_out_of_memory("push", &outcome);
            assert_eq!((loading.received_bytes(), loading.received().len()), (received, received));
        }
    }
    let (finished, _) = with_failure(1, || loading.finish());
    let finished = finished.or_else(|error| {
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        loading.finish()
    });
    assert!(same_dump(&finished.unwrap(), value));
}

fn assert_scandump_fails_or_gives<T: Stored>(value: &T) {
    let dump = dump_of(value);
    let (mut iterator, _) = scandump(value, 0).unwrap();
    while iterator != 0 {
        let (expected, _) = scandump(value, iterator).unwrap();
        for n in 1.. {
            let (outcome, failed) = with_failure(n, || scandump(value, iterator).map(|(next, _)| next));
            if !failed {
                assert_eq!(outcome, Ok(expected));
                break;
            }
            assert_out_of_memory("scandump", &outcome);
        }
        iterator = expected;
    }
    assert!(dump.len() > 1);
}

fn assert_rdb_loads_or_fails<L: Loading + Debug>(fields: &[support::fields::Field]) {
    reading_fails_cleanly("RDB", || rdb::load::<L>(&mut Fields(fields), &Unlimited, &mut |_| ()));
}

#[test]
fn filters_are_loaded_or_not_at_all() {
    for filter in filters().into_iter().chain(windows()) {
        assert_dumps_load_or_fail(&filter);
        assert_scandump_fails_or_gives(&filter);
        let half = cut_after(&filter, filter.payload().len() / 2);
        assert_rdb_loads_or_fails::<LoadingBloomFilter>(&rdb_of_loading(&half));
        reading_fails_cleanly("half", || half.try_clone());
        assert!(completed(half, &filter) == filter);
        let fields = rdb_of_filter(&filter);
        match filter.layout() {
            BitLayout::Lines => assert_rdb_loads_or_fails::<LoadingBloomFilter>(&fields),
            BitLayout::Classic => reading_fails_cleanly("RDB of RedisBloom", || {
                redisbloom::load_rdb(&mut Fields(&fields), redisbloom::RDB_ENCODING_NEWEST, &Unlimited, &mut |_| ())
            }),
        }
    }
}

fn counter(capacity: u64, error_rate: f64, exact_limit: u32, members: u32) -> Counter {
    let params = counting::Params { capacity, error_rate, exact_limit, exact_bytes: 16_384, seed: 0 };
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.add(&member.to_le_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// A counter of each representation, none of them small.
fn counters() -> Vec<(Counter, Representation)> {
    use Representation::{Dense, Exact, Sparse};
    let all = vec![
        (counter(10_000_000, 0.01, 65_536, 4_000), Exact),
        (counter(10_000_000, 0.001, 10, 20_000), Sparse),
        (counter(1_000_000, 0.001, 10, 80_000), Dense),
    ];
    for (counter, representation) in &all {
        assert_eq!(counter.representation(), *representation);
    }
    all
}

fn same_counter(a: &Counter, b: &Counter) -> bool {
    a.params() == b.params() && a.estimate() == b.estimate() && same_dump(a, b)
}

/// From members to positions to words, with every large allocation on the way failing once.
#[test]
fn counters_grow_or_stay_as_they_are() {
    // From exact to sparse, from exact to dense, from sparse to dense.
    for (capacity, exact_limit) in [(50_000_000, 65_536), (1_000_000, 65_536), (1_000_000, 0)] {
        let mut counter = counter(capacity, 0.001, exact_limit, 0);
        let mut failures = 0;
        for member in 0..60_000u32 {
            let before = (counter.representation(), counter.set_bits(), counter.estimate());
            for n in 1.. {
                let (outcome, failed) = with_failure(n, || counter.add(&member.to_le_bytes(), &Unlimited));
                if !failed {
                    assert!(outcome.is_ok(), "{outcome:?}");
                    break;
                }
                failures += 1;
                assert_out_of_memory("add", &outcome);
                assert_eq!((counter.representation(), counter.set_bits(), counter.estimate()), before);
            }
        }
        assert!(failures > 0, "{capacity}, {exact_limit}");
        assert!(same_counter(&counter, &self::counter(capacity, 0.001, exact_limit, 60_000)));
        assert_eq!(counter.representation() == Representation::Dense, capacity == 1_000_000);
    }
}

#[test]
fn counters_take_items_up_to_a_failure() {
    let failures = add_all_failures(
        || counter(1_000_000, 0.001, 65_536, 0),
        &items(60_000),
        |counter, items, told| counter.add_all(items.iter().map(Vec::as_slice), &Unlimited, |new| told.push(new)),
        same_counter,
    );
    assert!(failures > 1);
}

#[test]
fn counters_admit_what_they_are_to_or_nothing() {
    let (counter, items) = (counter(10_000_000, 0.01, 65_536, 2_000), items(500));
    let terms = Terms { limit: 2_400, all: false, dry_run: false };
    let admit = |counter: &mut Counter| counter.admit(items.iter().map(Vec::as_slice), terms, &Unlimited);
    fails_cleanly("admit", || counter.try_clone().unwrap(), admit, same_counter);
}

#[test]
fn counters_are_copied_and_loaded_or_not_at_all() {
    for (counter, representation) in counters() {
        let payload_bytes = counter.payload().len();
        let part = cut_after(&counter, payload_bytes * 9 / 10 + 1);
        let is_sparse = representation == Representation::Sparse;
        // A sparse counter of so few slots is many small allocations.
        if !is_sparse {
            reading_fails_cleanly("clone", || counter.try_clone());
            assert_dumps_load_or_fail(&counter);
            assert_rdb_loads_or_fails::<LoadingCounter>(&rdb_of(&counter));
            reading_fails_cleanly("part", || part.try_clone());
            assert_rdb_loads_or_fails::<LoadingCounter>(&rdb_of_loading(&part));
        }
        assert_scandump_fails_or_gives(&counter);
        assert!(same_dump(&completed(part, &counter), &counter));
    }
}

/// More positions than a sparse counter has: what they need is allocated when the last of them is there.
#[test]
fn positions_become_words_or_stay() {
    let counter = counter(1_000_000, 0.001, 0, 2000);
    let (mut header, most_bytes) = (counter.header(), counter.layout().num_bytes() / 2);
    let positions: Vec<u8> = (0..most_bytes as u32 / 4).flat_map(|number| (number * 60).to_le_bytes()).collect();
    // Before the checksum stands the length of the payload, two groups of 7 bits; here it becomes three.
    assert!((1 << 7..1 << 14).contains(&counter.payload().len()) && (1 << 14..1 << 21).contains(&most_bytes));
    header.truncate(header.len() - 6);
    header.extend_from_slice(&[most_bytes as u8 | 0x80, (most_bytes >> 7) as u8 | 0x80, (most_bytes >> 14) as u8]);
    header.extend_from_slice(&(checksum(&header, 0) as u32).to_le_bytes());
    let mut loading = LoadingCounter::begin(&header, &Unlimited).unwrap();
    loading.push(&positions).unwrap();
    let (outcome, failed) = with_failure(1, || loading.finish());
    assert!(failed);
    assert_out_of_memory("finish", &outcome);
    assert_eq!((loading.received_bytes(), loading.received().len()), (most_bytes, most_bytes));
    let counter = loading.finish().unwrap();
    assert_eq!((counter.representation(), counter.set_bits()), (Representation::Dense, most_bytes / 4));
}

/// Of one other, and of so many that lists of pointers to them are large.
#[test]
fn counters_are_compared_and_merged_or_stay_as_they_are() {
    let counters: Vec<Counter> = counters().into_iter().map(|(counter, _)| counter).collect();
    let few = counter(10_000_000, 0.01, 65_536, 3);
    let many = vec![&few; 3000];
    let mut found = [0; 4];
    for ours in counters.iter().chain([&few]) {
        for others in counters.iter().map(|one| vec![one]).chain([many.clone()]) {
            let all = [&[ours], others.as_slice()].concat();
            let copy = || ours.try_clone().unwrap();
            found[0] += failures("union", || (), |()| count_union(&all), |(), ()| true);
            found[1] += failures("difference", || (), |()| ours.difference(&others), |(), ()| true);
            found[3] += failures("intersection", || (), |()| estimate_intersection(&all), |(), ()| true);
            found[2] += failures("merge", copy, |ours| ours.merge(&others, &Unlimited), same_counter);
        }
    }
    assert!(found.iter().all(|&failures| failures > 4), "{found:?}");
}

/// A windowed counter of each representation, none of them small.
fn windowed_counters() -> Vec<(Counter, Representation)> {
    use Representation::{Dense, Exact, Sparse};
    let of = |capacity, error_rate, exact_limit, members: u32| {
        let mut counter = counter_of_a_day(capacity, error_rate, exact_limit);
        for member in 0..members {
            counter.advance(u64::from(3 * member / members));
            counter.add(&member.to_le_bytes(), &Unlimited).unwrap();
        }
        counter
    };
    let all = vec![
        (of(10_000_000, 0.01, 65_536, 4_000), Exact),
        (of(10_000_000, 0.001, 10, 100_000), Sparse),
        (of(1_000_000, 0.001, 10, 200_000), Dense),
    ];
    for (counter, representation) in &all {
        assert_eq!(counter.representation(), *representation);
    }
    all
}

fn counter_of_a_day(capacity: u64, error_rate: f64, exact_limit: u32) -> Counter {
    let params = counting::Params { capacity, error_rate, exact_limit, exact_bytes: 16_384, seed: 0 };
    let window = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Manual).unwrap();
    Counter::new(params).unwrap().with_window(window, 0).unwrap()
}

#[test]
fn windowed_counters_grow_or_stay_as_they_are() {
    // From exact to dense, from sparse to dense.
    for exact_limit in [65_536, 0] {
        let mut counter = counter_of_a_day(1_000_000, 0.001, exact_limit);
        let mut failures = 0;
        for member in 0..120_000u32 {
            let before = (counter.representation(), counter.set_bits());
            for n in 1.. {
                let (outcome, failed) = with_failure(n, || counter.add(&member.to_le_bytes(), &Unlimited));
                if !failed {
                    assert!(outcome.is_ok(), "{outcome:?}");
                    break;
                }
                failures += 1;
                assert_out_of_memory("add", &outcome);
                assert_eq!((counter.representation(), counter.set_bits()), before);
            }
        }
        assert!(failures > 0 && counter.representation() == Representation::Dense);
    }
}

#[test]
fn windowed_counters_are_copied_loaded_and_merged_or_not_at_all() {
    let counters = windowed_counters();
    for (counter, representation) in &counters {
        reading_fails_cleanly("clone", || counter.try_clone());
        assert_dumps_load_or_fail(counter);
        assert_rdb_loads_or_fails::<LoadingCounter>(&rdb_of(counter));
        let part = cut_after(counter, counter.payload().len() * 9 / 10 + 1);
        reading_fails_cleanly("part", || part.try_clone());
        assert_rdb_loads_or_fails::<LoadingCounter>(&rdb_of_loading(&part));
        assert!(same_dump(&completed(part, counter), counter));
        let copy = || counter.try_clone().unwrap();
        for (other, _) in &counters {
            failures("merge", copy, |ours| ours.merge(&[other], &Unlimited), same_counter);
            failures("union", || (), |()| count_union(&[counter, other]), |(), ()| true);
        }
        if *representation == Representation::Exact {
            let (items, terms) = (items(500), Terms { limit: 4_020, all: false, dry_run: false });
            let admit = |counter: &mut Counter| counter.admit(items.iter().map(Vec::as_slice), terms, &Unlimited);
            fails_cleanly("admit", copy, admit, same_counter);
        }
        // What has no memory for a fresh start is empty all the same.
        for n in 0..3 {
            let mut dead = copy();
            with_failure(n, || dead.advance(1_000));
            assert_eq!(dead.count(), 0);
        }
    }
}
