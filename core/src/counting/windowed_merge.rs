//! Merges of windowed counters: of what both have seen, the younger slice stays.

use crate::counting::counter::{Counter, Shaped, State};
use crate::counting::dated::{Seen, Touch};
use crate::counting::union::{check_seeds, layout_of_bits, promised};
use crate::counting::windowed::check_windows;
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::{Ahead, Merging, Pace};

impl Counter {
    /// What a merge with these at a time, Unix seconds, does to the numbers of its slices, and first whether it may be.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// let mut ahead = visitors.try_clone()?;
    /// ahead.advance(500_002);
    /// assert!(visitors.merging(&[&ahead], noon).is_err());
    /// assert!(visitors.merging(&[&ahead], noon + 3600).is_ok());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Incompatible`] where a source is more than a slice ahead of the present one: it would be the newest after a
    /// merge, and the counter would forget early.
    pub fn merging(&self, sources: &[&Counter], now: u64) -> Result<Merging, Error> {
        let Some(window) = self.window() else { return Ok(Merging::STAYS) };
        // Other windows are for the merge to refuse: their slices mean other times.
        let numbering = |counter: &Counter| counter.window().map(|window| (window.pace(), window.slice_seconds()));
        let same = sources.iter().filter(|source| numbering(source) == numbering(self));
        let merging = window.merging(self.reached(), same.map(|source| source.reached()), now);
        merging.map_err(|Ahead { slice, present }| Error::incompatible(Parameter::Slice, present, slice))
    }

    /// As [`Self::merge`], at a time, Unix seconds, with the rebase that is due by then. Tells whether the merge changed
    /// anything, and which moves were made: the same merge between these gives the same counter elsewhere.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Move, Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// // The clock was a year ahead.
    /// let mut visitors = Counter::new(params)?.with_window(day, 508_760)?;
    /// let mut others = Counter::new(params)?.with_window(day, 500_000)?;
    /// others.add(b"ann", &Unlimited)?;
    /// let (changed, moves) = visitors.merge_at(&[&others], noon, &Unlimited)?;
    /// assert_eq!((changed, moves.before, moves.after), (true, Move::Rebase(500_000), Move::Stay));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::merging`] and [`Self::merge`]. Nothing is changed then, and nothing renumbered.
    pub fn merge_at(
        &mut self,
        others: &[&Counter],
        now: u64,
        limit: &impl SizeLimit,
    ) -> Result<(bool, Merging), Error> {
        let merging = self.merging(others, now)?;
        let stored = self.ring().copied();
        self.make(merging.before);
        match self.merge(others, limit) {
            Ok(changed) => {
                self.make(merging.after);
                Ok((changed, merging))
            }
            Err(error) => {
                if let Some(((dated, _), stored)) = self.dated_mut().zip(stored) {
                    dated.undo_rebase(stored);
                }
                Err(error)
            }
        }
    }

    /// [`Self::merge`] where there are windows. The largest slice of all becomes the newest; what is dead by that is
    /// dropped.
    pub(super) fn merge_windows(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let mut all: Vec<&Counter> = try_with_capacity(others.len() + 1)?;
        all.push(self);
        all.extend_from_slice(others);
        check_seeds(&all)?;
        check_windows(&all)?;
        check_paces(&all)?;
        let newest = all.iter().map(|counter| counter.reached()).max().unwrap_or(0);
        let mut merged = self.try_clone()?;
        let mut changed = merged.advance(newest);
        // What is dead as a whole does not count, and its layout neither.
        let most_age = self.ring().map_or(0, |ring| ring.most_age());
        let behind = |counter: &Counter| newest - counter.reached();
        let left = |counter| u8::try_from(behind(counter)).ok().and_then(|behind| most_age.checked_sub(behind));
        all.retain(|counter| counter.dated().is_some_and(|dated| dated.has_any(left(counter))));
        all.retain(|&counter| !std::ptr::eq(counter, self));
        let others = all;

        let mut of_bits = try_with_capacity(others.len() + 1)?;
        of_bits.push(&merged);
        of_bits.extend_from_slice(&others);
        if let Some(common) = layout_of_bits(&of_bits) {
            let layout = common.common(merged.layout());
            if merged.is_exact() || layout != merged.layout() {
                let params = if layout == merged.layout() {
                    *merged.params()
                } else {
                    promised(layout, &of_bits, merged.params())
                };
                let Some(dated) = merged.dated() else { return Ok(false) };
                let slots = dated.as_slots(merged.plan(), layout, Self::WINDOWED_BYTES, limit)?;
                merged = Counter::from_state(params, layout, 0, State::Windowed(Box::new(slots)));
                changed = true;
            }
        }
        for other in others {
            changed |= merged.note_all(other, behind(other), limit)?;
        }
        if changed {
            *self = merged;
        }
        Ok(changed)
    }

    /// Notes all that another has seen, whose newest slice is so many before its own. True when that changed anything.
    fn note_all(&mut self, other: &Counter, behind: u64, limit: &impl SizeLimit) -> Result<bool, Error> {
        let (Some(theirs), Some((ours, plan))) = (other.dated(), self.dated_mut()) else { return Ok(false) };
        let Seen::Exact(members) = theirs.seen() else {
            return ours.note_slots(theirs, other.layout(), plan.layout, behind, Self::WINDOWED_BYTES, limit);
        };
        let (ages, most_age) = (theirs.ring().ages(), u64::from(ours.ring().most_age()));
        let mut changed = false;
        for (tag, member) in members.iter() {
            let age = behind + u64::from(ages.age(tag));
            if age <= most_age {
                let hash = hash64(member, plan.params.seed);
                let touch = ours.touch_at(member, hash, age as u8, plan, Self::WINDOWED_BYTES, limit)?;
                changed |= touch != Touch::Same;
            }
        }
        Ok(changed)
    }
}

/// Checks that all windows go by the clock, or all by hand: their slices have numbers of different kinds.
fn check_paces(counters: &[&Counter]) -> Result<(), Error> {
    let paces = counters.iter().filter_map(|counter| counter.window().map(|window| window.pace()));
    let in_words = |pace| if pace == Pace::Clock { "by the clock" } else { "by hand" };
    match paces.clone().zip(paces.skip(1)).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(Error::incompatible(Parameter::Window, in_words(ours), in_words(theirs))),
        None => Ok(()),
    }
}
