//! Tests counters while their large allocations fail.

use rollcall_core::admission::Terms;
use rollcall_core::counting::{self, Counter, View, diff_card, inter_card, union_card};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time, Window};

use crate::common::{add_all_failures, assert_out_of_memory, fails_cleanly, items};
use crate::failing::{with_failure, with_failure_from};
use rollcall_fuzz::values::same_dump;

fn counter(error_rate: f64, exact_limit: u32, members: u32) -> Counter {
    let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 0 };
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// Large counters, exact or not.
fn counters() -> [Counter; 3] {
    [counter(0.01, 65_536, 4_000), counter(0.0025, 10, 20_000), counter(0.0025, 10, 80_000)]
}

pub fn same_counter(a: &Counter, b: &Counter) -> bool {
    a.params() == b.params() && a.estimate() == b.estimate() && same_dump(a, b)
}

fn views_of<'a>(counters: &[&'a Counter]) -> Vec<View<'a>> {
    counters.iter().map(|counter| counter.at(Time::Reached)).collect()
}

#[test]
fn errors_of_a_union_name_the_needed_bytes() {
    let [one, other] = [4000, 3000].map(|members| counter(0.01, 65_536, members));
    for counters in [[&one, &other], [&other, &one]] {
        // A list with 8 bytes for each of 256 members is to become twice as long.
        let views = views_of(&counters);
        let (outcome, _) = with_failure_from(4096, 1, || union_card(&views));
        assert_eq!(outcome, Err(Error::OutOfMemory { needed_bytes: 2048 }));
    }
}

/// Members and their index share one buffer that grows. Failures of small allocations are included.
#[test]
fn errors_of_members_name_the_needed_bytes() {
    let mut counter = counter(0.01, 65_536, 0);
    let mut grown = 0;
    for member in 0..4000u32 {
        let (item, before) = (member.to_le_bytes(), counter.size_bytes());
        let (outcome, failed) = with_failure_from(1, 1, || counter.live(Time::Reached).add(item, &Unlimited));
        if !failed {
            assert_eq!(outcome, Ok(true));
            continue;
        }
        let Err(Error::OutOfMemory { needed_bytes }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((counter.count(), counter.live(Time::Reached).add(item, &Unlimited)), (u64::from(member), Ok(true)));
        assert_eq!(needed_bytes, counter.size_bytes() - before);
        grown += 1;
    }
    assert!(grown > 10, "{grown}");
}

#[test]
fn counters_take_items_up_to_a_failure() {
    let failures = add_all_failures(
        || counter(0.0025, 65_536, 0),
        &items(60_000),
        |counter, items, reported| {
            counter.live(Time::Reached).add_all(items.iter().map(Vec::as_slice), &Unlimited, |new| reported.push(new))
        },
        same_counter,
    );
    assert!(failures > 1);
}

/// Compares and merges a counter with so many others that the lists of pointers are large.
#[test]
fn counters_are_compared_and_merged_or_stay_as_they_are() {
    let few = counter(0.01, 65_536, 3);
    let others = vec![&few; 3000];
    for ours in counters().iter().chain([&few]) {
        let all = [&[ours], others.as_slice()].concat();
        let views = views_of(&all);
        fails_cleanly("union", || (), |()| union_card(&views), |(), ()| true);
        fails_cleanly("difference", || (), |()| diff_card(&views), |(), ()| true);
        fails_cleanly("intersection", || (), |()| inter_card(&views), |(), ()| true);
        let merge = |ours: &mut Counter| ours.live(Time::Reached).merge(&others, &Unlimited);
        fails_cleanly("merge", || ours.clone(), merge, same_counter);
    }
}

/// Large windowed counters, exact or not.
fn windowed_counters() -> [Counter; 3] {
    [(0.01, 65_536, 4_000), (0.0025, 10, 100_000), (0.005, 10, 120_000)].map(|(error_rate, exact_limit, members)| {
        let mut counter = counter_of_a_day(error_rate, exact_limit);
        for member in 0..members {
            counter.advance(u64::from(3 * member / members));
            counter.live(Time::Reached).add(u32::to_le_bytes(member), &Unlimited).unwrap();
        }
        counter
    })
}

fn counter_of_a_day(error_rate: f64, exact_limit: u32) -> Counter {
    let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 0 };
    let window = Window::new(86_400, 24, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    Counter::new(params).unwrap().with_window(window, 0).unwrap()
}

/// Promotes counters, with every large allocation on the way failing once.
#[test]
fn counters_grow_or_stay_as_they_are() {
    for (exact_limit, has_window) in [(65_536, false), (0, false), (65_536, true), (0, true)] {
        let empty = || if has_window { counter_of_a_day(0.0025, exact_limit) } else { counter(0.0025, exact_limit, 0) };
        let (mut counter, mut failures) = (empty(), 0);
        let members = if has_window { 120_000u32 } else { 60_000 };
        for member in 0..members {
            let before = (counter.is_exact(), counter.estimate());
            for n in 1.. {
                let (outcome, failed) =
                    with_failure(n, || counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited));
                if !failed {
                    assert!(outcome.is_ok(), "{outcome:?}");
                    break;
                }
                failures += 1;
                // An add may succeed although an allocation failed: a full segment of the bitmap is then kept instead
                // of removed.
                if outcome.is_err() {
                    assert_out_of_memory("add", &outcome);
                    assert_eq!((counter.is_exact(), counter.estimate()), before);
                }
            }
        }
        assert!(failures > 0, "{exact_limit}");
        let mut expected = empty();
        (0..members).for_each(|member| drop(expected.live(Time::Reached).add(member.to_le_bytes(), &Unlimited)));
        assert!(same_counter(&counter, &expected));
    }
}

#[test]
fn counters_admit_or_stay_as_they_are() {
    let [windowed, ..] = windowed_counters();
    for (counter, limit) in [(counter(0.01, 65_536, 2_000), 2_400), (windowed, 4_020)] {
        let (items, terms) = (items(500), Terms { limit, all: false, dry_run: false });
        let admit = |counter: &mut Counter| {
            counter.live(Time::Reached).admit(items.iter().map(Vec::as_slice), terms, &Unlimited)
        };
        fails_cleanly("admit", || counter.try_clone().unwrap(), admit, same_counter);
    }
}
