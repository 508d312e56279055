//! Merges of counters. With windows, a member keeps the latest slice in which it was added to any of the counters.

use std::borrow::Cow;
use std::iter::once;

use crate::counting::counter::Counter;
use crate::counting::params::Params;
use crate::error::Error;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_collect};
use crate::window::Move;

impl Counter {
    /// The union of the counter and `others`, and whether it differs from the counter. The counter's window is first
    /// moved as `before` says.
    ///
    /// The union has the parameters of the counter, unless another counter that estimates has a smaller bitmap. Then it
    /// has the error rate of the counter with the smallest bitmap. It is exact if all counters are exact and it is
    /// within the limits of the counter.
    ///
    /// With windows, the newest slice becomes the latest of all counters, and all members that have then expired are
    /// removed.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if seeds or windows differ, the errors of `limit`, and [`Error::OutOfMemory`].
    pub(in crate::counting) fn merged(
        &self,
        others: &[&Counter],
        before: Move,
        limit: &impl SizeLimit,
    ) -> Result<(Counter, bool), Error> {
        others.iter().try_for_each(|other| self.check_mergeable(other))?;
        let all = once(self).chain(others.iter().copied());
        let lower_bound = all.map(|counter| counter.lower_bound()).max().unwrap_or(0);
        // The server's limit measures the used memory at its first check. So the first check comes before the copy
        // takes memory.
        limit.check(0, 0)?;
        let mut own = Cow::Borrowed(self);
        if before != Move::Stay {
            let mut copy = self.try_clone()?;
            copy.make(before);
            own = Cow::Owned(copy);
        }
        let newest = own.reached().max(newest(others));
        // Counters whose members have all expired are left out, so they do not affect the layout of the bitmap.
        let live = others.iter().copied().filter(|counter| counter.is_live_at(newest, self.ages().most_age));
        let live = try_collect(others.len(), live)?;
        let with_slots = live.iter().copied().filter(|counter| counter.set_bits() > 0);
        let coarsest = once(self).chain(with_slots).min_by_key(|counter| counter.layout()).unwrap_or(self);
        let (is_later, is_folded) = (newest > own.reached(), coarsest.layout() != self.layout());
        if is_folded {
            let empty = Counter::empty(coarsest.params_for(self), own.ring().copied())?;
            own = Cow::Owned(empty.with_members(&[&own], own.reached(), 0, limit)?.0);
        }
        let (merged, changed) = own.with_members(&live, newest, lower_bound, limit)?;
        Ok((merged, changed || is_later || is_folded))
    }

    /// The union of `first` and `others`. It has the parameters of `first`. But if any of the counters estimate and
    /// have members, it has the largest error rate of these.
    ///
    /// # Errors
    /// The errors of a merge.
    pub fn union(first: &Counter, others: &[&Counter], limit: &impl SizeLimit) -> Result<Counter, Error> {
        let all = try_collect(others.len() + 1, once(first).chain(others.iter().copied()))?;
        let newest = newest(&all);
        let live = all.iter().copied().filter(|counter| counter.is_live_at(newest, first.ages().most_age));
        let coarsest = live.filter(|counter| counter.set_bits() > 0).min_by_key(|counter| counter.layout());
        let (union, _) = match coarsest.filter(|coarsest| coarsest.layout() != first.layout()) {
            Some(coarsest) => {
                Counter::empty(coarsest.params_for(first), first.ring().copied())?.merged(&all, Move::Stay, limit)?
            }
            None => {
                // A merge checks only the bytes beyond those of `first`, and the union is a new value.
                limit.check(0, first.num_bytes())?;
                first.merged(others, Move::Stay, limit)?
            }
        };
        Ok(union)
    }

    /// Whether this counter has a member that is at most `most_age` slices older than the slice `newest`.
    fn is_live_at(&self, newest: u64, most_age: u8) -> bool {
        let behind = u8::try_from(newest.saturating_sub(self.reached())).ok();
        self.held.has_any(self.ages(), behind.and_then(|behind| most_age.checked_sub(behind)))
    }

    /// The parameters of a union: the error rate of `self`, and everything else of `own`.
    fn params_for(&self, own: &Counter) -> Params {
        Params { error_rate: self.params().error_rate, ..*own.params() }
    }
}

fn newest(counters: &[&Counter]) -> u64 {
    counters.iter().map(|counter| counter.reached()).max().unwrap_or(0)
}
