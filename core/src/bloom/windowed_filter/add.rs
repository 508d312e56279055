//! Adds items to the newest generation of a windowed filter.

use std::iter::once;
use std::slice;

use super::super::chain::{AddedChunk, Expected, SubFilter, add_chunks, look_up_chunk, num_items, prefetch};
use super::super::lines::sub_filter::LineSubFilter;
use super::{Expired, Generation, WindowedFilter};
use crate::error::Error;
use crate::hash::{Hash128, Marks, first_marked, first_marks, hash128, marked};
use crate::live::Outcome;
use crate::size_limit::{SizeLimit, try_reserve};
use crate::window::{Mark, Move, Time};

/// The outcome of adding a chunk of items, and whether any was added to the newest generation.
type Marked = (AddedChunk, bool);

impl WindowedFilter {
    /// Adds an item to the newest slice that the filter has reached. The item counts as known if the filter may contain
    /// it already.
    ///
    /// # Errors
    /// The error that keeps the newest generation from growing. Nothing is changed then.
    pub(in crate::bloom) fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        let hash = self.hash(item);
        let is_known = if self.windowing.refresh {
            if LineSubFilter::look_up(self.newest(), hash) {
                return Ok(Mark::Same);
            }
            LineSubFilter::look_up(&self.sub_filters[..self.newest_start()], hash)
        } else {
            if LineSubFilter::look_up(&self.sub_filters, hash) {
                return Ok(Mark::Same);
            }
            false
        };
        if self.room() == 0 {
            self.make_room(limit)?;
        }
        if let Some(newest) = self.sub_filters.last_mut() {
            newest.insert(hash);
        }
        if !is_known {
            return Ok(Mark::New);
        }
        self.count_renewed(hash);
        Ok(Mark::Renewed)
    }

    /// Adds an item at `time`, as [`Self::add`] does. If the item changes the filter, the filter first moves to the
    /// slice of `time`. Returns whether the item was new, and the outcome.
    pub(in crate::bloom) fn add_at(
        &mut self,
        item: &[u8],
        time: Time,
        limit: &impl SizeLimit,
    ) -> (Result<bool, Error>, Outcome<Expired>) {
        let (due, mut outcome) = (self.due(time), Outcome::default());
        if due != Move::Stay {
            if !self.is_changed_by(item, due) {
                return (Ok(false), outcome);
            }
            self.make(due, &mut outcome);
        }
        let added = self.add(item, limit).map(|mark| {
            outcome.changed = mark != Mark::Same;
            mark == Mark::New
        });
        (added, outcome)
    }

    /// Adds items in order, with the same outcome as a call of [`Self::add_at`] for each. `added` is called for each
    /// item with whether it was new.
    ///
    /// # Errors
    /// The errors of [`Self::add`]. The items before the rejected item are added, and `added` was called for each of
    /// them.
    pub(in crate::bloom) fn add_all_at<'a>(
        &mut self,
        mut items: impl Iterator<Item = &'a [u8]>,
        time: Time,
        limit: &impl SizeLimit,
        outcome: &mut Outcome<Expired>,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let due = self.due(time);
        if due == Move::Stay {
            return self.add_all(items, limit, outcome, added);
        }
        // Until the move is made, known items change nothing.
        let first = loop {
            match items.next() {
                None => return Ok(()),
                Some(item) if self.is_changed_by(item, due) => break item,
                Some(_) => added(false),
            }
        };
        self.make(due, outcome);
        self.add_all(once(first).chain(items), limit, outcome, added)
    }

    fn add_all<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        outcome: &mut Outcome<Expired>,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let seed = self.params.seed;
        let hashes = items.map(move |item| hash128(item, seed));
        let prefetch_addition = |filter: &Self, hashes: &[Hash128]| {
            prefetch(&filter.sub_filters, hashes, Expected::Absent);
            // New items set all their bits in the newest sub-filter.
            let newest = filter.newest().last().map_or(&[][..], slice::from_ref);
            prefetch(newest, hashes, Expected::Present);
        };
        let add = |filter: &mut Self, chunk: &[Hash128]| {
            let ((added, has_inserted), result) = filter.add_chunk(chunk, limit);
            outcome.changed |= has_inserted;
            (added, result)
        };
        add_chunks(self, hashes, prefetch_addition, add, added)
    }

    /// Adds the items of at most a chunk of hashes, in order, up to the first that fails.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> (Marked, Result<(), Error>) {
        // As in a chain, each item is looked up once here, and again only in sub-filters that have changed since.
        let all = first_marks(hashes.len());
        let (mut known, mut left) = self.known_and_left(hashes, all);
        let (mut new, mut has_inserted) = (0, false);
        while left != 0 {
            let first = left.trailing_zeros();
            if self.room() == 0 {
                match self.make_room(limit) {
                    Err(error) => return ((AddedChunk { new, handled: first as usize }, has_inserted), Err(error)),
                    // From here on, items that only the dropped generation had are new. The item that caused the drop
                    // was judged before it.
                    Ok(true) => {
                        let later = all & Marks::MAX.checked_shl(first + 1).unwrap_or(0);
                        let (known_later, left_later) = self.known_and_left(hashes, later);
                        known = known & !later | known_later;
                        left = 1 << first | left_later;
                    }
                    Ok(false) => {}
                }
            }
            // `fitting` has at most the hashes that fit if all of them set bits, so the room need not be checked after
            // each hash.
            let fitting = first_marked(left, self.room().max(1));
            left ^= fitting;
            let Some(newest) = self.sub_filters.last_mut() else { break };
            let taken = newest.insert_chunk(hashes, fitting);
            if newest.is_full() {
                left &= !newest.look_up_chunk(hashes, left);
            }
            has_inserted |= taken != 0;
            new |= taken & !known;
            marked(taken & known).for_each(|i| self.count_renewed(hashes[i]));
        }
        ((AddedChunk { new, handled: hashes.len() }, has_inserted), Ok(()))
    }

    /// Returns two masks of the hashes in `which`: the known hashes, and the hashes to add to the newest generation.
    fn known_and_left(&self, hashes: &[Hash128], which: Marks) -> (Marks, Marks) {
        let known = which & look_up_chunk(&self.sub_filters, hashes, Expected::Absent);
        // Where nothing is known, the answers of the newest generation do not matter.
        let asks_newest = self.windowing.refresh && known != 0;
        let newest = if asks_newest { look_up_chunk(self.newest(), hashes, Expected::Absent) } else { known };
        (known, which & !(known & newest))
    }

    /// Counts an item as renewed, after it was added to the newest generation. It is counted in the youngest older
    /// generation that has the item.
    pub(super) fn count_renewed(&mut self, hash: Hash128) {
        let mut end = self.newest_start();
        for generation in self.generations.iter_mut().rev().filter(|one| one.age > 0) {
            let sub_filters = &self.sub_filters[..end][end - generation.len as usize..];
            if LineSubFilter::look_up(sub_filters, hash) {
                generation.renewed = (generation.renewed + 1).min(num_items(sub_filters));
                return;
            }
            end -= sub_filters.len();
        }
    }

    /// Makes room for an item. Returns whether a new generation began in a filter of the last items.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`], [`Error::OutOfRange`]. Nothing is changed then.
    fn make_room(&mut self, limit: &impl SizeLimit) -> Result<bool, Error> {
        if self.is_of_last() && !self.newest().is_empty() {
            return self.turn(limit).map(|()| true);
        }
        let next = self.sub_filter(self.newest().len(), self.sub_filters.len(), self.size_bytes(), limit)?;
        self.append(once(next)).map(|()| false)
    }

    /// Begins the next generation of a filter of the last items. If the oldest generation expires by that, the new
    /// generation reuses its memory. So a filter with all its generations grows no further.
    fn turn(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        if self.dead(1).0 > 0 {
            self.generations.remove(0);
            self.sub_filters.rotate_left(1);
            self.sub_filters.last_mut().into_iter().for_each(LineSubFilter::clear);
        } else {
            let next = self.sub_filter(0, self.sub_filters.len(), self.size_bytes(), limit)?;
            try_reserve(&mut self.generations, 1)?;
            try_reserve(&mut self.sub_filters, 1)?;
            self.sub_filters.push(next);
        }
        self.generations.iter_mut().for_each(|one| one.age += 1);
        self.generations.push(Generation { age: 0, len: 1, renewed: 0 });
        self.newest_slice = self.newest_slice.saturating_add(1);
        Ok(())
    }
}
