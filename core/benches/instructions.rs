//! Fixed work for scripts/check_instructions.py, which runs it under valgrind and counts instructions.
//!
//!     instructions list        print the names of the work and how many items each handles
//!     instructions NAME        do it once: what happens inside `measured` is counted
//!
//! Time differs between machines and between runs. The number of instructions does not, as long as the compiler is the
//! same. Unions are left out, since they choose their loops by the processor. Filters do so too, but valgrind knows no
//! AVX-512: the screen of a chain is counted with AVX2, the rest as compiled for baseline x86-64. Results go to memory
//! reserved before, so the allocator is counted only where a chain grows.

use std::hint::black_box;

use rollcall_core::bloom::{BitLayout, BloomFilter, Params as BloomParams};
use rollcall_core::counting::{Counter, Params as CounterParams};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::LineFilter;
use rollcall_core::unstable::hash::{hash64, hash128};

const ITEMS: usize = 3500;

/// Everything that runs while this function is on the stack is counted. The script knows its name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Work after the call keeps it from becoming a tail call, which would end the counting.
    black_box(());
}

fn items(from: u64) -> Vec<String> {
    let number = |i: usize| (from + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    (0..ITEMS).map(|i| format!("user:{:012x}@example.com", number(i))).collect()
}

fn bytes(items: &[String]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(|item| item.as_bytes())
}

/// A filter that holds `items(0)`, in sub-filters of `capacity` items.
fn filter(error_rate: f64, capacity: u64) -> LineFilter {
    let params = BloomParams { capacity, error_rate, expansion: 1, seed: 0 };
    let mut filter = LineFilter::new(params, &Unlimited).expect("a filter");
    filter.add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    filter
}

/// A dense counter that holds `items(0)`.
fn counter() -> Counter {
    let params = CounterParams { capacity: 50_000, error_rate: 0.01, exact_limit: 0, exact_bytes: 16_384, seed: 0 };
    let mut counter = Counter::new(params).expect("a counter");
    counter.add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    counter
}

const ABSENT: u64 = 1 << 40;

fn contain(filter: &LineFilter, from: u64) {
    let (items, mut found) = (items(from), Vec::with_capacity(ITEMS));
    measured(&mut || filter.may_contain_all(bytes(&items), |is_there| found.push(is_there)));
    black_box(found);
}

fn contain_one_by_one(filter: &LineFilter, from: u64) {
    let (items, mut found) = (items(from), 0);
    measured(&mut || found = bytes(&items).filter(|item| filter.may_contain(item)).count());
    black_box(found);
}

fn insert(mut filter: LineFilter, from: u64) {
    let (items, mut added) = (items(from), Vec::with_capacity(ITEMS));
    measured(&mut || filter.add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room"));
    black_box(added);
}

fn insert_one_by_one(mut filter: LineFilter, from: u64) {
    let (items, mut added) = (items(from), 0);
    measured(&mut || {
        added = bytes(&items).filter(|item| filter.add(item, &Unlimited).expect("room")).count();
    });
    black_box(added);
}

/// A chain of about 300 sub-filters that holds `items(0)`.
fn chain(layout: BitLayout) -> BloomFilter {
    let params = BloomParams { capacity: ITEMS as u64 / 300, error_rate: 0.01, expansion: 1, seed: 0 };
    let mut chain = BloomFilter::new(layout, params, &Unlimited).expect("a filter");
    chain.add_all(bytes(&items(0)), &Unlimited, |_| ()).expect("room");
    chain
}

fn contain_in_chain(layout: BitLayout, from: u64) {
    let (chain, items, mut found) = (chain(layout), items(from), Vec::with_capacity(ITEMS));
    measured(&mut || chain.may_contain_all(bytes(&items), |is_there| found.push(is_there)));
    black_box(found);
}

/// Grows the chain to twice its length.
fn insert_in_chain(layout: BitLayout, from: u64) {
    let (mut chain, items, mut added) = (chain(layout), items(from), Vec::with_capacity(ITEMS));
    measured(&mut || chain.add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room"));
    black_box(added);
}

type Work = (&'static str, usize, fn());

const WORK: [Work; 20] = [
    ("hash_128", ITEMS, || {
        let items = items(0);
        measured(&mut || {
            black_box(bytes(&items).fold(0, |all, item| all ^ hash128(item, 0).lo));
        });
    }),
    ("hash_64", ITEMS, || {
        let items = items(0);
        measured(&mut || {
            black_box(bytes(&items).fold(0, |all, item| all ^ hash64(item, 0)));
        });
    }),
    ("bloom_contain_absent_1_line", ITEMS, || contain(&filter(0.01, 10_000), ABSENT)),
    ("bloom_contain_absent_2_lines", ITEMS, || contain(&filter(0.001, 10_000), ABSENT)),
    ("bloom_contain_present_1_line", ITEMS, || contain(&filter(0.01, 10_000), 0)),
    ("bloom_contain_present_2_lines", ITEMS, || contain(&filter(0.001, 10_000), 0)),
    ("bloom_contain_absent_5_sub_filters", ITEMS, || contain(&filter(0.01, 800), ABSENT)),
    ("bloom_contain_absent_chain_of_300", ITEMS, || contain_in_chain(BitLayout::Lines, ABSENT)),
    ("bloom_contain_present_chain_of_300", ITEMS, || contain_in_chain(BitLayout::Lines, 0)),
    ("bloom_insert_chain_of_300", ITEMS, || insert_in_chain(BitLayout::Lines, ABSENT)),
    ("classic_contain_absent_chain_of_300", ITEMS, || contain_in_chain(BitLayout::Classic, ABSENT)),
    ("classic_contain_present_chain_of_300", ITEMS, || contain_in_chain(BitLayout::Classic, 0)),
    ("classic_insert_chain_of_300", ITEMS, || insert_in_chain(BitLayout::Classic, ABSENT)),
    ("bloom_contain_one_by_one", ITEMS, || contain_one_by_one(&filter(0.01, 10_000), 0)),
    ("bloom_insert_1_line", ITEMS, || insert(filter(0.01, 10_000), ABSENT)),
    ("bloom_insert_2_lines", ITEMS, || insert(filter(0.001, 10_000), ABSENT)),
    ("bloom_insert_one_by_one", ITEMS, || insert_one_by_one(filter(0.01, 10_000), ABSENT)),
    ("counting_add", ITEMS, || {
        let (mut counter, items, mut added) = (counter(), items(ABSENT), Vec::with_capacity(ITEMS));
        measured(&mut || counter.add_all(bytes(&items), &Unlimited, |new| added.push(new)).expect("room"));
        black_box(added);
    }),
    ("counting_add_one_by_one", ITEMS, || {
        let (mut counter, items, mut added) = (counter(), items(ABSENT), 0);
        measured(&mut || {
            added = bytes(&items).filter(|item| counter.add(item, &Unlimited).expect("room")).count();
        });
        black_box(added);
    }),
    ("counting_estimate", 1, || {
        let (counter, mut estimate) = (counter(), 0.0);
        measured(&mut || estimate = counter.estimate());
        black_box(estimate);
    }),
];

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    match WORK.iter().find(|(name, ..)| *name == asked) {
        Some((_, _, work)) => work(),
        // `cargo bench` comes here too, and only prints the list.
        None => WORK.iter().for_each(|(name, items, _)| println!("{name} {items}")),
    }
}
