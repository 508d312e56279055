//! The target `filters`: runs operations on filters, and compares each filter with a naive list of the items that it
//! must find.

use std::collections::BTreeMap;
use std::mem::discriminant;

use rollcall_core::admission::{Admission, Terms};
use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Move, Time, Window};

use crate::family::Family;
use crate::input::{Input, item, items_of};
use crate::laws;
use crate::limit::Limit;
use crate::{made, operation};

/// Makes two filters with equal parameters, and runs the operations of the input on them.
pub fn filters(data: &[u8]) {
    let mut input = Input::new(data);
    let (limit, cut) = (Limit::chosen(&mut input), input.number());
    let Ok(filter) = made::empty_filter(&mut input, &limit) else { return };
    let Ok(empty) = filter.new_like(&limit) else { return };
    limit.check_taken(0, limit.taken_by(&filter));
    let [mut one, mut other] = [filter, empty].map(|filter| Tracked { filter, since: BTreeMap::new() });
    operation::run(&mut input, |input| one.step(input, &mut other, &limit));
    for tracked in [&one, &other] {
        tracked.check();
    }
    laws::check(&one.filter, cut);
}

struct Tracked {
    filter: BloomFilter,
    /// The items that the filter must find: for each, the newest slice in which the filter certainly recorded it.
    since: BTreeMap<usize, i128>,
}

impl Tracked {
    fn newest(&self) -> i128 {
        self.filter.newest_slice().unwrap_or(0).into()
    }

    /// Runs one operation. Checks that it took no more memory than was allowed, and renumbers the slices of items if
    /// the filter renumbered its own.
    fn step(&mut self, input: &mut Input<'_>, other: &mut Tracked, limit: &Limit) {
        let (before_bytes, newest) = (limit.taken_by(&self.filter), self.newest());
        limit.forget();
        match input.choice(16) {
            0 | 1 => self.add_one(input.item(), limit),
            2..=4 => self.add_all(&input.items(), limit),
            5 => self.add_both_ways(&input.items(), limit),
            6 => self.admit(input, limit),
            7 if input.choice(16) == 0 => self.build(&input.items(), limit),
            7 => self.add_all(&input.items(), limit),
            8 | 9 => self.advance(input, limit),
            10 => self.filter.rebase(newest.saturating_sub(input.number().into()).max(0) as u64),
            11 => self.filter.set_clock_source(if input.flag() { ClockSource::Manual } else { ClockSource::System }),
            12 => return self.merge(other, limit),
            13 => {
                self.filter = self.filter.new_like(&Unlimited).expect("its own parameters");
                self.since.clear();
                assert!(self.filter.is_empty());
            }
            14 => {
                self.check();
                // This size is not compared with the limit, because the lists of a reloaded value have another
                // capacity.
                self.filter = laws::reloaded(&self.filter, input.byte());
                return;
            }
            _ => return std::mem::swap(self, other),
        }
        let back = newest - self.newest();
        if back > 0 && self.filter.windowing().is_some() {
            self.since.values_mut().for_each(|since| *since -= back);
        }
        limit.check_taken(before_bytes, limit.taken_by(&self.filter));
    }

    /// Records an added item, if the filter answered that it was new or renews items on each addition.
    fn note(&mut self, number: usize, is_new: bool) {
        let is_renewed = self.filter.windowing().is_some_and(|windowing| windowing.refresh);
        if is_new || is_renewed {
            self.since.insert(number, self.newest());
        }
    }

    fn add_one(&mut self, number: usize, limit: &Limit) {
        let before = self.filter.copy();
        let was_there = before.may_contain(item(number));
        match self.filter.live(Time::Reached).add(item(number), limit) {
            Ok(is_new) => {
                assert_eq!(is_new, !was_there);
                assert!(self.filter.may_contain(item(number)));
                self.note(number, is_new);
            }
            Err(_) => assert!(self.filter.is_same(&before)),
        }
    }

    fn add_all(&mut self, numbers: &[usize], limit: &Limit) {
        let mut reported = Vec::with_capacity(numbers.len());
        let added = self.filter.live(Time::Reached).add_all(items_of(numbers), limit, |is_new| reported.push(is_new));
        assert_eq!(added.is_ok(), reported.len() == numbers.len());
        for (&number, is_new) in numbers.iter().zip(reported) {
            self.note(number, is_new);
        }
    }

    /// Checks that adding a list gives the same filter as adding its items one by one.
    fn add_both_ways(&mut self, numbers: &[usize], limit: &Limit) {
        // Both filters are copies, because lists of the original may have spare capacity.
        let (mut single, mut reported) = (self.filter.copy(), Vec::new());
        self.filter = self.filter.copy();
        let one_by_one = numbers.iter().try_for_each(|&number| {
            reported.push(single.live(Time::Reached).add(item(number), limit)?);
            Ok::<_, Error>(())
        });
        let mut together = Vec::new();
        let added = self.filter.live(Time::Reached).add_all(items_of(numbers), limit, |is_new| together.push(is_new));
        let same = reported.iter().zip(&together).all(|(one, other)| one == other);
        // Sub-filters with equal parameters share them, and only the first one counts them. So one of both ways may
        // reach the size limit earlier.
        let both = added.is_ok() && one_by_one.is_ok();
        assert!(same && (!both || reported.len() == together.len() && self.filter.is_same(&single)));
        for (&number, is_new) in numbers.iter().zip(together) {
            self.note(number, is_new);
        }
    }

    fn admit(&mut self, input: &mut Input<'_>, limit: &Limit) {
        let (numbers, most) = (input.items(), input.number());
        let flags = input.byte();
        let terms = Terms { limit: most, all: flags & 1 != 0, dry_run: flags & 6 == 6 };
        let before = self.filter.copy();
        let Ok(reported) = self.filter.live(Time::Reached).admit(items_of(&numbers), terms, limit) else {
            assert!(self.filter.is_same(&before));
            return;
        };
        assert_eq!(reported.len(), numbers.len());
        let count = |one| reported.iter().filter(|&&other| other == one).count() as u64;
        let (admitted, rejected) = (count(Admission::Admitted), count(Admission::Rejected));
        assert!(admitted <= most.saturating_sub(before.num_items()), "{admitted} of {most}");
        assert!(!terms.all || admitted == 0 || rejected == 0);
        if terms.dry_run {
            assert!(self.filter.is_same(&before));
            return;
        }
        // A renewed item is taken from the count of an older slice, but no count goes below 0. Items known by chance
        // make the total larger.
        let by_chance = if self.filter.windowing().is_some_and(|windowing| windowing.refresh) {
            count(Admission::Known)
        } else {
            0
        };
        let least = before.num_items().saturating_add(admitted);
        assert!((least..=least.saturating_add(by_chance)).contains(&self.filter.num_items()));
        for (&number, reported) in numbers.iter().zip(reported) {
            if reported == Admission::Admitted {
                self.since.insert(number, self.newest());
            }
            assert!(reported == Admission::Rejected || self.filter.may_contain(item(number)));
        }
    }

    /// Checks that a filter to which hashes were added equals a filter to which the items were added.
    fn build(&self, numbers: &[usize], limit: &Limit) {
        let (layout, params) = (self.filter.layout(), *self.filter.params());
        let made = (BloomFilter::new(layout, params, limit), BloomFilter::new(layout, params, limit));
        let (Ok(mut filter), Ok(mut hashed)) = made else { return };
        let hashes: Vec<_> = items_of(numbers).map(hashed.hasher()).collect();
        let mut new = 0;
        let added = filter.live(Time::Reached).add_all(items_of(numbers), limit, |is_new| new += u64::from(is_new));
        let built = hashed.live(Time::Reached).add_hashes(&hashes, limit);
        // The filter may reach the size limit earlier, because shared parameters count only for the first filter that
        // uses them.
        if let Err(Error::TooLarge { .. }) = added {
            return;
        }
        assert_eq!(built.as_ref().err().map(discriminant), added.as_ref().err().map(discriminant));
        assert!(built.is_err() || built == Ok(new));
        assert!(hashed.is_same(&filter));
    }

    /// Moves the window, as ADVANCE or as the clock does. Checks that the move changes no answer, and that a replica
    /// that moves its window first has the same filter in the end.
    fn advance(&mut self, input: &mut Input<'_>, limit: &Limit) {
        let newest = self.newest() as u64;
        if input.choice(3) == 0 {
            return drop(self.filter.advance(newest.saturating_add(input.number())));
        }
        let (time, numbers) = (Time::At(moment(input, self.window(), newest)), input.items());
        let (before, mut replica, mut reported) = (self.filter.copy(), self.filter.copy(), Vec::new());
        let mut live = self.filter.live(time);
        let added = live.add_all(items_of(&numbers), limit, |is_new| reported.push(is_new));
        let outcome = live.finish();
        assert_eq!(added.is_ok(), reported.len() == numbers.len());
        follow(&mut replica, outcome.before);
        let ask = |filter: &BloomFilter| {
            let (mut found, asked) = (Vec::new(), self.since.keys().chain(&[0, 1]).take(64));
            filter.at(time).may_contain_all(asked.map(|&number| item(number)), |is_there| found.push(is_there));
            (found, filter.at(time).num_items())
        };
        assert!(ask(&replica) == ask(&before), "a move changed an answer");
        let (done, mut again) = (&numbers[..reported.len()], Vec::new());
        let followed = replica.live(Time::Reached).add_all(items_of(done), &Unlimited, |is_new| again.push(is_new));
        assert!(followed.is_ok() && again == reported && replica.is_same(&self.filter));
        let has_changed = outcome.changed || outcome.before != Move::Stay;
        assert!(has_changed != self.filter.is_same(&before));
        // If the filter renumbered its slices, these items get the new numbers.
        let slice = self.newest().max(newest.into());
        for (&number, is_new) in numbers.iter().zip(reported) {
            if is_new || self.filter.renews() {
                self.since.insert(number, slice);
            }
        }
    }

    fn window(&self) -> Option<Window> {
        self.filter.windowing().map(|windowing| windowing.window)
    }

    fn merge(&mut self, other: &Tracked, limit: &Limit) {
        let (before, before_bytes) = (self.filter.copy(), limit.taken_by(&self.filter));
        match self.filter.live(Time::Reached).merge(&[&other.filter], limit) {
            Ok(changed) => {
                assert_eq!(changed, !self.filter.is_same(&before));
                assert_eq!(self.newest(), before.newest_slice().max(other.filter.newest_slice()).unwrap_or(0).into());
                for (&number, &slice) in &other.since {
                    let since = self.since.entry(number).or_insert(slice);
                    *since = slice.max(*since);
                }
            }
            Err(_) => assert!(self.filter.is_same(&before)),
        }
        limit.check_taken(before_bytes, limit.taken_by(&self.filter));
    }

    /// Checks that the filter has no false negatives.
    fn check(&self) {
        let live =
            |since: i128| self.window().is_none_or(|window| since + i128::from(window.slices()) >= self.newest());
        let since = self.since.iter();
        let numbers: Vec<usize> = since.filter(|&(_, &since)| live(since)).map(|(&number, _)| number).collect();
        self.filter.may_contain_all(items_of(&numbers), |is_there| assert!(is_there, "a false negative"));
    }
}

/// Moves the window of a replica as its primary's was, by the commands that a primary sends.
pub(super) fn follow<T: Value>(replica: &mut T, made: Move) {
    match made {
        Move::Stay => {}
        Move::Advance(slice) => drop(replica.advance(slice)),
        Move::Rebase(slice) => replica.rebase(slice),
    }
}

/// A Unix time in or near the newest slice, or any time.
pub(super) fn moment(input: &mut Input<'_>, window: Option<Window>, newest: u64) -> u64 {
    let (kind, number) = (input.byte(), input.number());
    match window {
        Some(window) if kind < 128 => window.start_of(newest).saturating_add(number),
        Some(window) if kind < 192 => window.start_of(newest.saturating_add(number)),
        Some(window) if kind < 224 => window.start_of(newest).saturating_sub(number),
        _ => number,
    }
}
