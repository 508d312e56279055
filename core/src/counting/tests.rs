//! Tests of windowed counters against a model.

use crate::admission::{Admission, Terms};
use crate::counting::counter::Counter;
use crate::counting::counter::tests::words;
use crate::counting::held::ring::{MOST_SLICES, TagRing, own_bytes};
use crate::counting::layout::SegmentCounts;
use crate::counting::params::Params;
use crate::counting::payload::tests::encode;
use crate::counting::stored::CounterForm;
use crate::counting::view::tests::standing;
use crate::counting::{diff_card, inter_card, union_card};
use crate::error::{Error, Parameter};
use crate::live::tests::Copier;
use crate::live::{Outcome, Value};
use crate::size_limit::{MaxBytes, SizeLimit, Unlimited};
use crate::window::{ClockSource, Mark, Move};
use crate::window::{Time, Window};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

mod admit;
mod memory;
mod questions;
mod remove;
mod spans;

crate::live::tests::short_forms!(Counter);

impl Counter {
    pub(crate) fn mark(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<Mark, Error> {
        self.add_item(item.as_ref(), limit)
    }

    pub(in crate::counting) fn merge(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let (merged, changed) = self.merged(others, Move::Stay, limit)?;
        *self = merged;
        Ok(changed)
    }
}

const NOON: u64 = 1_000_000;

/// Numbers of slices whose tags take half a byte or a whole byte, at the ends of both ranges.
const SLICES: [u32; 6] = [1, 4, 14, 15, 60, 254];

fn params(exact_limit: u32, error_rate: f64) -> Params {
    Params { error_rate, exact_limit, exact_bytes: 500, seed: 7 }
}

fn window(slices: u32, clock_source: ClockSource) -> Window {
    Window::new(u64::from(slices) * 10, slices, MOST_SLICES, clock_source).unwrap()
}

/// A counter and its model: the slice in which each member was last seen, always 0 without a window. Both get the same
/// items, and their answers are compared.
struct Tracked {
    counter: Counter,
    newest: i128,
    seen: BTreeMap<u32, i128>,
}

impl Tracked {
    fn new((params, window): (Params, Option<Window>), now: u64) -> Self {
        let (counter, newest) = (Counter::new(params).unwrap(), window.map_or(0, |window| window.first_slice(now)));
        let counter = match window {
            Some(window) => counter.with_window(window, newest).unwrap(),
            None => counter,
        };
        Tracked { counter, newest: newest.into(), seen: BTreeMap::new() }
    }

    /// The length of a slice, and the present slice of the clock if the clock source is the system. `None` without a
    /// window.
    fn length_and_clock(&self, now: u64) -> Option<(i128, Option<i128>)> {
        let window = self.counter.window()?;
        let length = i128::from(window.slice_seconds());
        let is_by_clock = window.clock_source() == ClockSource::System;
        Some((length, is_by_clock.then(|| i128::from(now).div_euclid(length))))
    }

    /// Makes the move that is due, in the model alone.
    fn renew(&mut self, now: u64) -> Move {
        match self.length_and_clock(now) {
            Some((_, Some(clock))) if self.newest > clock + 1 => {
                // The clock had jumped ahead: every member keeps its age.
                let back = self.newest - clock;
                self.seen.values_mut().for_each(|seen| *seen -= back);
                self.newest = clock;
                Move::Rebase(clock as u64)
            }
            Some((_, Some(clock))) if self.newest < clock => {
                self.newest = clock;
                Move::Advance(clock as u64)
            }
            _ => Move::Stay,
        }
    }

    fn since(&self, slice: i128) -> BTreeSet<u32> {
        self.seen.iter().filter(|&(_, &seen)| seen >= slice).map(|(&item, _)| item).collect()
    }

    /// The oldest slice that is live.
    fn oldest(&self) -> i128 {
        self.newest - i128::from(self.counter.window().map_or(0, Window::slices))
    }

    fn merge(&mut self, other: &Tracked) {
        self.newest = self.newest.max(other.newest);
        for (&item, &seen) in &other.seen {
            let own = self.seen.entry(item).or_insert(seen);
            *own = seen.max(*own);
        }
    }

    fn mark(&mut self, item: u32, now: u64) {
        assert_eq!(self.counter.advance_due(Time::At(now)), self.renew(now));
        let oldest = self.oldest();
        let before = self.seen.insert(item, self.newest).filter(|&before| before >= oldest);
        let mark = self.counter.mark(item.to_le_bytes(), &Unlimited).unwrap();
        if self.counter.is_exact() {
            let known = before.map(|before| if before == self.newest { Mark::Same } else { Mark::Renewed });
            assert_eq!(mark, known.unwrap_or(Mark::New));
        }
    }

    /// Checks each span that ends at `now`: the counter must equal a counter that saw only the members in that span.
    fn check(&self, now: u64) {
        let (counter, window) = (&self.counter, self.counter.window().unwrap());
        assert_eq!(
            (i128::from(counter.reached()), counter.oldest_live(Time::Reached)),
            (self.newest, window.oldest_live(counter.reached()))
        );
        let (oldest, present) =
            (counter.oldest_live(Time::At(now)), i128::from(counter.present_slice(Time::At(now)).unwrap()));
        let rows = counter.history(Time::At(now)).unwrap();
        assert_eq!(rows.len() as u64, u64::from(window.slices()) + 1);
        let slices = BTreeSet::from([oldest, oldest + 1, (oldest + present) / 2, present - 1, present]);
        for slice in slices.into_iter().filter(|slice| (oldest..=present).contains(slice)) {
            let expected = self.since(slice);
            let view = counter.view_of_slice(slice);
            let seen = view.plain().unwrap();
            let start = (slice * i128::from(window.slice_seconds())) as i64;
            assert_eq!(rows[(present - slice) as usize], (start, seen.at(Time::Reached).estimated()));
            let is_exact = counter.is_exact() || expected.is_empty() && counter.params().exact_limit > 0;
            assert!(seen.window().is_none() && seen.is_exact() == is_exact);
            // With an exact limit of 0, no list is exact, not even an empty one.
            let is_listed = counter.is_exact() || counter.params().exact_limit > 0 && expected.is_empty();
            assert_eq!(view.members().is_ok(), is_listed);
            if counter.is_exact() {
                let members: Vec<u32> = seen.members().unwrap().map(|member| number(&member.text())).collect();
                assert!(view.members().unwrap().map(|member| number(&member.text())).eq(members.iter().copied()));
                assert_eq!(members.into_iter().collect::<BTreeSet<_>>(), expected);
                for item in 0..60u32 {
                    assert_eq!(view.contains(item.to_le_bytes()).unwrap(), expected.contains(&item));
                }
            } else {
                let exact_limit = 0;
                let mut plain = Counter::new(Params { exact_limit, ..*counter.params() }).unwrap();
                for item in &expected {
                    plain.add(item.to_le_bytes(), &Unlimited).unwrap();
                }
                assert_eq!(words(&seen), words(&plain));
                assert_eq!(seen.count(), plain.count());
                assert_eq!(view.contains([7; 5]).ok(), is_listed.then_some(false));
            }
        }
        let live = self.since(oldest).len() as u64;
        assert!(!counter.is_exact() || counter.at(Time::At(now)).count() == live);
        if i128::from(counter.reached()) == present {
            assert_eq!(counter.count(), counter.view_of_slice(oldest).plain().unwrap().count());
            assert_eq!(counter.estimate(), counter.view_of_slice(oldest).plain().unwrap().estimate());
        }
        assert!(!self.since(self.oldest()).is_empty() || counter.count() == 0);
        assert!(counter.count() > 0 || counter.is_empty());
        let mut bytes = own_bytes(false);
        counter.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        assert_eq!(counter.size_bytes(), bytes);
    }
}

fn number(member: &[u8]) -> u32 {
    u32::from_le_bytes(member.try_into().unwrap())
}

/// All stored properties of a counter, and its payload.
fn stored(counter: &Counter) -> (Params, bool, TagRing, Option<SegmentCounts>, Vec<u8>) {
    let (ring, payload) = (*counter.ring().unwrap(), encode(counter));
    (*counter.params(), counter.is_exact(), ring, counter.counts(), payload)
}

fn reloaded(counter: &Counter) -> Counter {
    CounterForm::of(counter).load(&encode(counter)).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    /// Adds items to one of the two counters.
    Add(bool, Vec<u32>),
    /// Removes items from one of the two counters.
    Remove(bool, Vec<u32>),
    /// The given time passes.
    Pass(u64),
    /// The clock goes back.
    Back(u64),
    /// Merges the second counter into the first, or the first into the second.
    Merge(bool),
    /// Stores and loads a counter, copies it and moves it.
    Keep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (any::<bool>(), vec(0u32..60, 1..8)).prop_map(|(first, items)| Step::Add(first, items)),
        2 => (any::<bool>(), vec(any::<u32>(), 1..80)).prop_map(|(first, items)| Step::Add(first, items)),
        3 => (any::<bool>(), vec(0u32..60, 1..8)).prop_map(|(first, items)| Step::Remove(first, items)),
        4 => (0u64..40).prop_map(Step::Pass),
        1 => (0u64..1000).prop_map(Step::Pass),
        1 => Just(Step::Pass(1 << 33)),
        1 => (0u64..200).prop_map(Step::Back),
        1 => any::<bool>().prop_map(Step::Merge),
        1 => Just(Step::Keep),
    ];
    vec(step, 1..40)
}

proptest! {
    #[test]
    fn every_span_is_as_the_model_says(
        steps in steps(),
        slices in 0..SLICES.len(),
        exact_limit in prop_oneof![Just(0u32), Just(10), Just(60)],
        rates in (prop_oneof![Just(0.05), Just(0.02)], prop_oneof![Just(0.05), Just(0.02)]),
        // A clock may be set back to less than a window after 1970.
        start in prop_oneof![Just(NOON * 1000), 0u64..200],
    ) {
        let window = window(SLICES[slices], ClockSource::System);
        let mut now = start;
        let mut all = [rates.0, rates.1].map(|rate| Tracked::new((params(exact_limit, rate), Some(window)), now));
        for step in steps {
            match step {
                Step::Add(first, items) => {
                    items.into_iter().for_each(|item| all[usize::from(!first)].mark(item, now));
                }
                Step::Remove(first, items) => all[usize::from(!first)].remove(&items, now),
                Step::Pass(seconds) => now += seconds,
                Step::Back(seconds) => now = now.saturating_sub(seconds),
                Step::Merge(into_first) => {
                    let [one, other] = &mut all;
                    let (one, other) = if into_first { (one, other) } else { (other, one) };
                    let before = stored(&one.counter);
                    let changed = one.counter.merge(&[&other.counter], &Unlimited).unwrap();
                    one.merge(other);
                    prop_assert_eq!(changed, stored(&one.counter) != before);
                    prop_assert!(!one.counter.merge(&[&other.counter], &Unlimited).unwrap());
                }
                Step::Keep => {
                    for tracked in &mut all {
                        let (loaded, copy) = (reloaded(&tracked.counter), tracked.counter.try_clone().unwrap());
                        prop_assert_eq!(stored(&loaded), stored(&tracked.counter));
                        prop_assert_eq!(stored(&copy), stored(&tracked.counter));
                        tracked.counter = loaded;
                        prop_assert!(tracked.counter.relocate(0, &Copier) && !tracked.counter.relocate(1, &Copier));
                    }
                }
            }
            for tracked in &all {
                tracked.check(now);
            }
        }
    }

    /// A batch has the same outcome as its items one by one.
    #[test]
    fn a_batch_equals_its_items_one_by_one(
        items in vec((0u64..5, vec(any::<u16>(), 0..200)), 1..8),
        slices in 0..SLICES.len(),
    ) {
        let window = window(SLICES[slices], ClockSource::Manual);
        let new = || Counter::new(params(10, 0.05)).unwrap().with_window(window, 0).unwrap();
        let (mut one_by_one, mut at_once, mut added, mut slice) = (new(), new(), new(), 0);
        for (passed, items) in items {
            slice += passed;
            one_by_one.advance(slice);
            at_once.advance(slice);
            let bytes: Vec<[u8; 2]> = items.iter().map(|item| item.to_le_bytes()).collect();
            let mut reported = Vec::new();
            at_once.add_each(bytes.iter().map(|item| &item[..]), &Unlimited, |mark| reported.push(mark)).unwrap();
            let expected: Vec<Mark> = bytes.iter().map(|item| one_by_one.mark(item, &Unlimited).unwrap()).collect();
            prop_assert_eq!(reported, &expected[..]);
            prop_assert_eq!(stored(&at_once), stored(&one_by_one));
            added.advance(slice);
            let mut reported = Vec::new();
            added.add_all(&bytes, &Unlimited, |is_new| reported.push(is_new)).unwrap();
            let expected: Vec<bool> = expected.iter().map(|&mark| mark == Mark::New).collect();
            prop_assert_eq!(reported, expected);
            prop_assert_eq!(stored(&added), stored(&one_by_one));
            prop_assert_eq!(at_once.count(), one_by_one.count());
        }
    }
}

#[test]
fn windows_that_differ_are_named() {
    let of = |seconds, slices, clock_source| {
        let window = Window::new(seconds, slices, MOST_SLICES, clock_source).unwrap();
        Counter::new(params(10, 0.05)).unwrap().with_window(window, 0).unwrap()
    };
    let mut ours = of(120, 12, ClockSource::System);
    // Slices must have the same length and the same clock source; the number of slices may differ.
    let longer = of(240, 24, ClockSource::System);
    assert_eq!(ours.merge(&[&longer], &Unlimited), Ok(false));
    let mut by_hand = of(120, 12, ClockSource::Manual);
    let rejected = |ours, theirs| Err(Error::incompatible(Parameter::Window, ours, theirs));
    assert_eq!(ours.merge(&[&by_hand], &Unlimited), rejected("system clock", "manual clock"));
    assert_eq!(by_hand.merge(&[&ours], &Unlimited), rejected("manual clock", "system clock"));
    let plain = Counter::new(params(10, 0.05)).unwrap();
    assert_eq!(ours.merge(&[&plain], &Unlimited), rejected("slices of 10 s", "no window"));
    let too_many = Window::new(1020, 255, 1000, ClockSource::System).unwrap();
    assert!(Counter::new(params(10, 0.05)).unwrap().with_window(too_many, 0).is_err());
    let mut ahead = longer;
    ahead.advance(9);
    assert!(ours.merging(&[&ahead], Time::At(80)).is_ok() && ours.merging(&[&ahead], Time::At(79)).is_err());
}

/// Merging a counter without live members changes neither an exact counter to an estimate nor the layout of a bitmap.
#[test]
fn a_source_without_live_members_changes_no_form() {
    let coarse_params = params(10, 0.05);
    let fine_params = Params { error_rate: 0.005, ..params(10, 0.02) };
    let of = |params, newest| {
        let mut counter = Counter::new(params).unwrap().with_window(window(4, ClockSource::System), newest).unwrap();
        (0..50u32).for_each(|member| drop(counter.add(member.to_le_bytes(), &Unlimited)));
        counter
    };
    let mut coarse = of(coarse_params, 0);
    // The newest slice of the counter is now after the slices of its members.
    coarse.advance(3);
    for newest in [4, 5, 100] {
        let mut exact = Counter::new(fine_params).unwrap().with_window(window(4, ClockSource::System), newest).unwrap();
        let mut fine = of(fine_params, newest);
        let (layout, members) = (fine.layout(), fine.count());
        assert_eq!(exact.merge(&[&coarse], &Unlimited), Ok(newest == 4));
        assert_eq!(fine.merge(&[&coarse], &Unlimited), Ok(newest == 4));
        assert_eq!((exact.is_exact(), fine.layout() == layout), (newest > 4, newest > 4));
        assert!(newest == 4 || fine.count() == members && exact.is_empty());
    }
}

/// Slices near the largest number work like all others.
#[test]
fn slices_near_the_largest_number_work() {
    let last = u64::MAX;
    for (clock_source, newest) in [
        (ClockSource::Manual, 1 << 63),
        (ClockSource::System, last),
        (ClockSource::Manual, last),
        (ClockSource::System, 0),
    ] {
        for members in [3, 30, 3000u32] {
            let mut counter =
                Counter::new(params(10, 0.05)).unwrap().with_window(window(14, clock_source), newest).unwrap();
            (0..members).for_each(|member| drop(counter.add(member.to_le_bytes(), &Unlimited)));
            assert_eq!(
                (counter.at(Time::At(0)).count(), counter.history(Time::At(0)).unwrap()[0].1.count()),
                (counter.count(), counter.count())
            );
            assert_eq!(counter.count_since(1, Time::At(0)).unwrap().count(), counter.count());
            assert_eq!(counter.history(Time::At(last)).unwrap().len(), 15);
            assert_eq!(
                counter.at(Time::At(last)).count(),
                if counter.present_slice(Time::At(last)) == Some(newest) { counter.count() } else { 0 }
            );
            counter.advance_due(Time::At(last));
            counter.advance(last);
            assert_eq!(counter.reached(), last);
            counter.set_clock_source(if clock_source == ClockSource::System {
                ClockSource::Manual
            } else {
                ClockSource::System
            });
            assert!(counter.window().is_some_and(|window| window.clock_source() != clock_source));
            counter.rebase(7);
            assert_eq!(counter.reached(), 7);
            assert_eq!(stored(&reloaded(&counter)), stored(&counter));
        }
    }
}
