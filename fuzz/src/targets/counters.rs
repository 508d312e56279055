//! The target `counters`: runs operations on counters, and compares each counter with a naive map of its members.

use std::collections::{BTreeMap, BTreeSet};

use rollcall_core::admission::{Admission, Terms};
use rollcall_core::counting::{self, Counter, Member, View, diff_card, inter_card, union_card};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time};

use super::filters::{follow, moment};
use crate::family::Family;
use crate::input::{Input, item, items_of};
use crate::laws;
use crate::limit::Limit;
use crate::{made, operation};

/// Makes two counters, mostly with the same seed, and runs the operations of the input on them.
pub fn counters(data: &[u8]) {
    let mut input = Input::new(data);
    let (limit, cut, is_like) = (Limit::chosen(&mut input), input.number(), input.byte() < 160);
    let Ok(counter) = made::empty_counter(&mut input) else { return };
    let other = if is_like { counter.new_like() } else { made::empty_counter(&mut input) };
    let Ok(other) = other else { return };
    let [mut one, mut other] = [counter, other].map(|counter| Tracked { counter, seen: BTreeMap::new() });
    operation::run(&mut input, |input| one.step(input, &mut other, &limit));
    one.check();
    check_together(&one, &other);
    laws::check(&one.counter, cut);
}

struct Tracked {
    counter: Counter,
    /// For each member, the newest slice in which it was added.
    seen: BTreeMap<usize, i128>,
}

impl Tracked {
    fn newest(&self) -> i128 {
        self.counter.newest_slice().unwrap_or(0).into()
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        self.seen.keys().copied()
    }

    /// Drops the members that have expired for good.
    fn forget(&mut self) {
        let Some(slices) = self.counter.window().map(|window| i128::from(window.slices())) else { return };
        let newest = self.newest();
        self.seen.retain(|_, seen| *seen + slices >= newest);
    }

    /// Runs one operation. Checks that it took no more memory than was allowed, and renumbers the slices of members if
    /// the counter renumbered its own.
    fn step(&mut self, input: &mut Input<'_>, other: &mut Tracked, limit: &Limit) {
        let (before_bytes, newest) = (limit.taken_by(&self.counter), self.newest());
        limit.forget();
        match input.choice(16) {
            0 | 1 => self.add_one(input.item(), limit),
            2 | 3 => self.add_all(&input.items(), limit),
            4 => self.remove(input),
            5 => self.add_both_ways(&input.items(), limit),
            6 | 7 => return self.admit(input, limit),
            8 | 9 => self.advance(input, limit),
            10 => self.counter.rebase(newest.saturating_sub(input.number().into()).max(0) as u64),
            11 => self.counter.set_clock_source(if input.flag() { ClockSource::Manual } else { ClockSource::System }),
            12 => return self.merge(other, limit),
            13 => {
                self.counter = self.counter.new_like().expect("its own parameters");
                self.seen.clear();
                assert!(self.counter.is_empty());
            }
            14 => {
                self.check();
                // This size is not compared with the limit, because the lists of a reloaded value have another
                // capacity.
                self.counter = laws::reloaded(&self.counter, input.byte());
                return;
            }
            _ => return std::mem::swap(self, other),
        }
        self.renumber(newest);
        limit.check_taken(before_bytes, limit.taken_by(&self.counter));
    }

    /// Renumbers the slices of all members by as many slices as the counter's newest slice went back from `newest`.
    fn renumber(&mut self, newest: i128) {
        let back = newest - self.newest();
        if back > 0 {
            self.seen.values_mut().for_each(|seen| *seen -= back);
        }
        self.forget();
    }

    fn add_one(&mut self, number: usize, limit: &Limit) {
        let (before, slice) = (self.counter.copy(), self.newest());
        let seen = self.seen.get(&number).copied();
        let mut live = self.counter.live(Time::Reached);
        let added = live.add(item(number), limit);
        let changed = live.finish().changed;
        match added {
            Ok(is_new) => {
                if before.is_exact() {
                    assert_eq!((is_new, changed), (seen.is_none(), seen != Some(slice)));
                }
                assert!(before.window().is_some() || self.counter.count() >= before.count());
                assert!(changed || self.counter.is_same(&before));
                self.seen.insert(number, slice);
            }
            Err(_) => assert!(self.counter.is_same(&before)),
        }
    }

    fn add_all(&mut self, numbers: &[usize], limit: &Limit) {
        let (mut reported, slice, count) = (0, self.newest(), self.counter.count());
        let added = self.counter.live(Time::Reached).add_all(items_of(numbers), limit, |_| reported += 1);
        assert_eq!(added.is_ok(), reported == numbers.len());
        assert!(self.counter.window().is_some() || self.counter.count() >= count);
        self.seen.extend(numbers[..reported].iter().map(|&number| (number, slice)));
    }

    /// Checks that adding a list gives the same counter as adding its members one by one.
    fn add_both_ways(&mut self, numbers: &[usize], limit: &Limit) {
        // Both counters are copies, because lists of the original may have spare capacity.
        let (mut single, mut reported, slice) = (self.counter.copy(), Vec::new(), self.newest());
        self.counter = self.counter.copy();
        let mut live = single.live(Time::Reached);
        let one_by_one = numbers.iter().try_for_each(|&number| {
            reported.push(live.add(item(number), limit)?);
            Ok::<_, Error>(())
        });
        let (changed, mut together) = (live.finish().changed, Vec::new());
        let mut live = self.counter.live(Time::Reached);
        let added = live.add_all(items_of(numbers), limit, |is_new| together.push(is_new));
        assert_eq!((added, &together, live.finish().changed), (one_by_one, &reported, changed));
        assert!(self.counter.is_same(&single));
        self.seen.extend(numbers[..reported.len()].iter().map(|&number| (number, slice)));
    }

    fn admit(&mut self, input: &mut Input<'_>, limit: &Limit) {
        let (numbers, most, flags) = (input.items(), input.number(), input.byte());
        let terms = Terms { limit: most, all: flags & 1 != 0, dry_run: flags & 6 == 6 };
        let (before, before_bytes) = (self.counter.copy(), limit.taken_by(&self.counter));
        let Ok(reported) = self.counter.live(Time::Reached).admit(items_of(&numbers), terms, limit) else {
            assert!(self.counter.is_same(&before));
            return;
        };
        let known: BTreeSet<usize> = self.live().collect();
        self.renumber(before.newest_slice().unwrap_or(0).into());
        let mut new: Vec<usize> = Vec::new();
        for &number in &numbers {
            if !known.contains(&number) && !new.contains(&number) {
                new.push(number);
            }
        }
        let left = most.saturating_sub(known.len() as u64).min(new.len() as u64) as usize;
        let rejects_all = terms.all && left < new.len();
        let admitted: BTreeSet<usize> = new.into_iter().take(if rejects_all { 0 } else { left }).collect();
        let mut come = BTreeSet::new();
        for (&number, reported) in numbers.iter().zip(&reported) {
            let expected = match (known.contains(&number), admitted.contains(&number)) {
                (true, _) => Admission::Known,
                (_, true) if come.insert(number) => Admission::Admitted,
                (_, true) => Admission::Known,
                _ => Admission::Rejected,
            };
            assert_eq!(*reported, expected);
            if !terms.dry_run && (admitted.contains(&number) || expected == Admission::Known && !rejects_all) {
                self.seen.insert(number, self.newest());
            }
        }
        assert_eq!(reported.len(), numbers.len());
        assert!(!terms.dry_run || self.counter.is_same(&before));
        limit.check_taken(before_bytes, limit.taken_by(&self.counter));
    }

    /// Removes items at a time, and checks what was removed. Checks that a replica that makes the same move and removes
    /// only these items has the same counter in the end.
    fn remove(&mut self, input: &mut Input<'_>) {
        let (newest, window) = (self.newest(), self.counter.window().copied());
        let (time, numbers) = (Time::At(moment(input, window, newest as u64)), input.items());
        let present = self.counter.present_slice(time).map_or(0, i128::from);
        let slices = window.map_or(i128::MAX >> 1, |window| window.slices().into());
        let is_live = |number| self.seen.get(number).is_some_and(|seen| *seen + slices >= present);
        let (is_exact, mut replica) = (self.counter.at(time).members().is_ok(), self.counter.copy());
        let mut live = self.counter.live(time);
        let removed = live.remove(items_of(&numbers));
        let outcome = live.finish();
        if !is_exact {
            assert!(removed.is_err() && !outcome.changed && self.counter.is_same(&replica));
            return;
        }
        let mut gone: Vec<usize> = Vec::new();
        for &number in numbers.iter().filter(|number| is_live(number)) {
            if !gone.contains(&number) {
                gone.push(number);
            }
        }
        let mut left = gone.iter();
        let expected = numbers.iter().map(|number| left.as_slice().first() == Some(number) && left.next().is_some());
        assert_eq!((removed, outcome.changed), (Ok(expected.collect()), !gone.is_empty()));
        follow(&mut replica, outcome.before);
        if !gone.is_empty() {
            assert_eq!(replica.live(Time::Reached).remove(items_of(&gone)), Ok(vec![true; gone.len()]));
        }
        assert!(replica.is_same(&self.counter));
        self.seen.retain(|number, _| !gone.contains(number));
    }

    /// Moves the window, as ADVANCE or as the clock does. Checks that the move changes no answer, and that a replica
    /// that moves its window first has the same counter in the end.
    fn advance(&mut self, input: &mut Input<'_>, limit: &Limit) {
        let newest = self.newest() as u64;
        if input.flag() {
            self.counter.advance(newest.saturating_add(input.number()));
            return self.forget();
        }
        let time = Time::At(moment(input, self.counter.window().copied(), newest));
        let (numbers, mut replica) = (input.items(), self.counter.copy());
        let (count, mut reported) = (self.counter.at(time).count(), 0);
        self.counter = self.counter.copy();
        let mut live = self.counter.live(time);
        let _ = live.add_all(items_of(&numbers), limit, |_| reported += 1);
        follow(&mut replica, live.finish().before);
        assert_eq!(replica.at(time).count(), count, "a move changed an answer");
        let followed = replica.live(Time::Reached).add_all(items_of(&numbers[..reported]), &Unlimited, |_| ());
        assert!(followed.is_ok() && replica.is_same(&self.counter));
        // If the counter renumbered its slices, these members get the new numbers.
        let slice = self.newest().max(newest.into());
        self.seen.extend(numbers[..reported].iter().map(|&number| (number, slice)));
    }

    fn merge(&mut self, other: &Tracked, limit: &Limit) {
        let (before, before_bytes) = (self.counter.copy(), limit.taken_by(&self.counter));
        match self.counter.live(Time::Reached).merge(&[&other.counter], limit) {
            Ok(changed) => {
                assert_eq!(changed, !self.counter.is_same(&before));
                for number in other.live() {
                    let slice = other.seen[&number];
                    let seen = self.seen.entry(number).or_insert(slice);
                    *seen = slice.max(*seen);
                }
                self.forget();
            }
            Err(_) => assert!(self.counter.is_same(&before)),
        }
        limit.check_taken(before_bytes, limit.taken_by(&self.counter));
    }

    /// Checks that exact counts are right.
    fn check(&self) {
        for (view, expected) in self.views() {
            if view.is_exact() {
                assert_eq!(view.count(), expected.len() as u64);
            }
            if let Ok(members) = view.members() {
                let texts = members.map(|member| member.text().to_vec());
                assert!(texts.collect::<BTreeSet<_>>() == expected.into_iter().map(|n| item(n).to_vec()).collect());
            }
        }
    }

    /// Views of all members, and of time spans that end with the first second of the newest slice. Each view comes with
    /// its expected members.
    fn views(&self) -> Vec<(View<'_>, BTreeSet<usize>)> {
        let (counter, newest) = (&self.counter, self.newest());
        let mut views = vec![(counter.at(Time::Reached), self.live().collect())];
        let Some(window) = counter.window() else { return views };
        // A slice that begins after the largest time contains no time at which a view could be asked for.
        let Some(start) = (newest as u64).checked_mul(window.slice_seconds()) else { return views };
        for seconds in [1, window.slice_seconds(), window.seconds()] {
            let since = match window.clock_source() {
                ClockSource::System => {
                    (i128::from(start) - i128::from(seconds)).div_euclid(window.slice_seconds().into())
                }
                // The moment is the last second of the slice.
                ClockSource::Manual => newest - i128::from(seconds / window.slice_seconds()),
            };
            let view = counter.since(seconds, Time::At(start)).expect("seconds of its window");
            let since = since.max(newest - i128::from(window.slices()));
            views.push((view, self.live().filter(|number| self.seen[number] >= since).collect()));
        }
        views
    }
}

/// Checks the answers about two counters together: for all their members, and for a time span of each.
fn check_together(one: &Tracked, other: &Tracked) {
    let (ours, mut theirs) = (one.views(), other.views());
    if one.counter.params().seed != other.counter.params().seed {
        let views = [ours[0].0, theirs[0].0];
        assert!([union_card(&views), diff_card(&views), inter_card(&views)].iter().all(Result::is_err));
        return;
    }
    check_views(&ours[0], &theirs[0]);
    theirs.reverse();
    ours.iter().zip(theirs.iter().cycle()).for_each(|(ours, theirs)| check_views(ours, theirs));
    // Counters with different clock sources cannot be united; all others can.
    if let Ok(made) = Counter::union(&one.counter, &[&other.counter], &Limit::of(64 << 20)) {
        made.check_answers();
    }
}

fn check_views((one, ours): &(View<'_>, BTreeSet<usize>), (other, theirs): &(View<'_>, BTreeSet<usize>)) {
    let views = [*one, *other];
    let [union, left, within] = [union_card(&views), diff_card(&views), inter_card(&views)]
        .map(|reported| reported.expect("counters of one seed"));
    for estimated in [union, left, within] {
        assert!(estimated.estimate.is_finite() && estimated.estimate >= 0.0, "{estimated:?}");
        assert!(!estimated.standard_error.is_nan() && estimated.standard_error >= 0.0, "{estimated:?}");
    }
    if views.iter().all(View::is_exact) {
        assert_eq!(union.count(), ours.union(theirs).count() as u64);
        assert_eq!(left.count(), ours.difference(theirs).count() as u64);
        assert_eq!(within.count(), ours.intersection(theirs).count() as u64);
        let text = |member: &Member<'_>| member.text().to_vec();
        let list = |members: Result<Vec<Member<'_>>, _>| {
            members.expect("exact counters").iter().map(text).collect::<BTreeSet<_>>()
        };
        assert!(list(counting::diff(&views)) == ours.difference(theirs).map(|&n| item(n).to_vec()).collect());
        assert!(list(counting::union(&views)) == ours.union(theirs).map(|&n| item(n).to_vec()).collect());
        assert!(list(counting::inter(&views)) == ours.intersection(theirs).map(|&n| item(n).to_vec()).collect());
    }
}
