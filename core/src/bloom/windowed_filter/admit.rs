//! Admission to windowed filters: new items are added only while the filter holds fewer items than a limit.

use super::super::chain::{SubFilter, look_up_chunks, taken_bytes};
use super::super::lines::sub_filter::LineSubFilter;
use super::{Expired, WindowedFilter};
use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::error::Error;
use crate::hash::Hash128;
use crate::live::Outcome;
use crate::size_limit::{SizeLimit, try_reserve, try_with_capacity};
use crate::window::{Move, Time};

impl WindowedFilter {
    /// Adds the items that `terms` admit, in order, and returns the outcome of each. If the items change the filter,
    /// the filter first moves to the slice of its time.
    ///
    /// All memory is allocated before the first change.
    ///
    /// # Errors
    /// [`Error::NotOfLast`] in a filter of the last items. The error that keeps the filter from growing,
    /// [`Error::OutOfMemory`]. Nothing is changed then.
    pub(in crate::bloom) fn admit_at<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        time: Time,
        limit: &impl SizeLimit,
        outcome: &mut Outcome<Expired>,
    ) -> Result<Vec<Admission>, Error> {
        if self.is_of_last() {
            return Err(Error::NotOfLast { what: "admission up to a limit" });
        }
        let due = self.due(time);
        let slices_later = if let Move::Advance(slice) = due { slice - self.newest_slice } else { 0 };
        // A rebase is made even if all items are rejected: the clock had jumped ahead and came back. Without the
        // rebase, no item would expire and make room below the limit for a long time.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let mut look_up = LookUp::of(items.len())?;
        // Known items that the newest generation takes too, each with the number of new items before it.
        let mut renewed = try_with_capacity(if self.windowing.refresh { items.len() } else { 0 })?;
        let newest = if slices_later == 0 { self.newest() } else { &[] };
        let record = |hash: Hash128, is_known| {
            look_up.record(hash.lo, hash, is_known);
            if is_known && self.windowing.refresh && !LineSubFilter::look_up(newest, hash) {
                renewed.push((look_up.new_items().len(), hash));
            }
        };
        let live = self.live(slices_later);
        look_up_chunks(live, items.map(|item| self.hash(item)), record);
        let new = look_up.new_items().len();
        let admitted = terms.admitted(self.num_items(slices_later), new);
        if terms.all && admitted < new {
            renewed.clear();
        }
        let mut reported = first_of(if terms.dry_run { admitted } else { 0 }, new)?;
        let more = self.sub_filters_for((admitted + renewed.len()) as u64, slices_later, limit)?;
        try_reserve(&mut self.sub_filters, more.len())?;
        try_reserve(&mut self.generations, 1)?;
        let changes = !terms.dry_run && (admitted > 0 || !renewed.is_empty());
        if changes || rebases && !terms.dry_run {
            self.make(due, outcome);
        }
        if changes {
            outcome.changed = true;
            self.fill(more, look_up.new_items(), &renewed, admitted, &mut reported);
        }
        Ok(look_up.into_answers(&reported))
    }

    /// Adds the first `most` of the `new` items and all `renewed` items, in order, to the newest generation. The
    /// sub-filters `more` are appended to the generation first, so that all items fit. The lists must have spare
    /// capacity for `more`. An item is reported as known if items added before it have set all of its bits.
    fn fill(
        &mut self,
        more: Vec<LineSubFilter>,
        new: &[Hash128],
        renewed: &[(usize, Hash128)],
        most: usize,
        reported: &mut [Admission],
    ) {
        let had_newest = !self.newest().is_empty();
        let mut at = self.sub_filters.len() - usize::from(had_newest);
        let start = self.newest_start();
        let appended = self.append(more.into_iter());
        debug_assert!(appended.is_ok(), "there is room");
        let (mut admitted, mut renewed) = (0, renewed.iter().peekable());
        for (place, hash) in new.iter().map(Some).chain([None]).enumerate() {
            while let Some(&(_, hash)) = renewed.next_if(|(before, _)| *before == place) {
                // Only an item that the newest generation took counts as renewed.
                if self.insert_from(start, &mut at, hash) {
                    self.count_renewed(hash);
                }
            }
            let Some(&hash) = hash else { break };
            reported[place] = if admitted < most && self.insert_from(start, &mut at, hash) {
                admitted += 1;
                Admission::Admitted
            } else if admitted < most || LineSubFilter::look_up(&self.sub_filters[start..=at], hash) {
                Admission::Known
            } else {
                Admission::Rejected
            };
        }
        // Sub-filters are left over if other items of the call made some items known.
        let dropped = self.sub_filters.len() - (at + 1);
        self.sub_filters.truncate(at + 1);
        self.generations.last_mut().into_iter().for_each(|newest| newest.len -= dropped as u32);
    }

    /// Makes the additional sub-filters that `items` more items may need. They are for the generation that is the
    /// newest once `slices_later` more slices have begun.
    fn sub_filters_for(
        &self,
        items: u64,
        slices_later: u64,
        limit: &impl SizeLimit,
    ) -> Result<Vec<LineSubFilter>, Error> {
        let mut more: Vec<LineSubFilter> = Vec::new();
        let live = self.live(slices_later);
        let dead_bytes: u64 = self.sub_filters[..self.sub_filters.len() - live.len()].iter().map(taken_bytes).sum();
        let mut held = self.size_bytes().saturating_sub(dead_bytes);
        let (begun, mut room) = if slices_later == 0 { (self.newest().len(), self.room()) } else { (0, 0) };
        while room < items {
            let next = self.sub_filter(begun + more.len(), live.len() + more.len(), held, limit)?;
            held = held.saturating_add(taken_bytes(&next));
            // A new sub-filter takes at least one item.
            room = room.saturating_add(next.room().max(1));
            try_reserve(&mut more, 1)?;
            more.push(next);
        }
        Ok(more)
    }

    /// Inserts an item into the sub-filter at index `at`, or into the next one if that one is full. Returns false if
    /// the sub-filters from `start` to `at` already had the item.
    fn insert_from(&mut self, start: usize, at: &mut usize, hash: Hash128) -> bool {
        if LineSubFilter::look_up(&self.sub_filters[start..=*at], hash) {
            return false;
        }
        *at += usize::from(self.sub_filters[*at].is_full() && *at + 1 < self.sub_filters.len());
        self.sub_filters[*at].insert(hash)
    }
}
