//! Adding to the newest generation.

use std::iter::once;

use super::super::chain::chunks::{first_marked, first_marks, marked, next_chunk};
use super::super::chain::{Expected, SubFilter, hashes_of, num_items};
use super::super::lines::sub_filter::LineSubFilter;
use super::{Expired, Generation, WindowedFilter, look_up_chunk};
use crate::error::Error;
use crate::hash::Hash128;
use crate::live::Outcome;
use crate::size_limit::{SizeLimit, try_reserve};
use crate::window::{Mark, Move, Time};

/// What became of a chunk of items.
struct Marked {
    /// A bit for each, set for those that were new.
    new: u32,
    /// Whether the newest generation took any.
    has_inserted: bool,
    /// How many were handled; fewer than all when one was rejected.
    handled: usize,
}

impl WindowedFilter {
    /// Adds an item to the newest slice that it has reached. One that the filter already answered that it may contain is
    /// known.
    ///
    /// # Errors
    /// What keeps the newest generation from growing. Nothing is changed then.
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

    /// As [`Self::add`], at a time: the move that is due comes first, if the item changes anything.
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

    /// Adds items with the same outcome as [`Self::add_at`] for one after another. `added` is called with whether each is
    /// new.
    ///
    /// # Errors
    /// As [`Self::add`]. The items before the rejected one are added, and `added` was called for each of them.
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
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let seed = self.params.seed;
        let mut hashes = hashes_of(items, move |item| LineSubFilter::hash(item, seed));
        while let Some((chunk, len)) = next_chunk(&mut hashes) {
            let (chunk, result) = self.add_chunk(&chunk[..len], limit);
            (0..chunk.handled).for_each(|i| added(chunk.new >> i & 1 == 1));
            outcome.changed |= chunk.has_inserted;
            result?;
        }
        Ok(())
    }

    /// Adds the items of at most a chunk of hashes, in order, up to the first that fails.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> (Marked, Result<(), Error>) {
        // As in a chain, each item is looked up once here, and again only in what has changed since.
        let all = first_marks(hashes.len());
        let (mut known, mut left) = self.known_and_left(hashes, all);
        let (mut new, mut has_inserted) = (0, false);
        while left != 0 {
            let first = left.trailing_zeros();
            if self.room() == 0 {
                match self.make_room(limit) {
                    Err(error) => return (Marked { new, has_inserted, handled: first as usize }, Err(error)),
                    // Items that the dropped generation alone had are new from here on. The one that dropped it was
                    // judged before.
                    Ok(true) => {
                        let later = all & u32::MAX.checked_shl(first + 1).unwrap_or(0);
                        let (known_later, left_later) = self.known_and_left(hashes, later);
                        known = known & !later | known_later;
                        left = 1 << first | left_later;
                    }
                    Ok(false) => {}
                }
            }
            // Only as many hashes as fit if all set bits, so the room need not be checked after each.
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
        (Marked { new, has_inserted, handled: hashes.len() }, Ok(()))
    }

    /// The masks of those hashes in `which` that are known, and of those that the newest generation is to take.
    fn known_and_left(&self, hashes: &[Hash128], which: u32) -> (u32, u32) {
        let known = which & look_up_chunk(&self.sub_filters, hashes, Expected::Absent);
        let newest =
            if self.windowing.refresh { look_up_chunk(self.newest(), hashes, Expected::Absent) } else { known };
        (known, which & !(known & newest))
    }

    /// Records that an item which the newest generation has taken is in an older one too.
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

    /// Makes room for an item. Returns whether that began a generation.
    ///
    /// # Errors
    /// What `limit` says, [`Error::OutOfMemory`], [`Error::OutOfRange`]. Nothing is changed then.
    fn make_room(&mut self, limit: &impl SizeLimit) -> Result<bool, Error> {
        if self.is_of_last() && !self.newest().is_empty() {
            return self.turn(limit).map(|()| true);
        }
        let next = self.sub_filter(self.newest().len(), self.sub_filters.len(), self.size_bytes(), limit)?;
        self.append(once(next)).map(|()| false)
    }

    /// Begins the next generation of a filter of the last items. The memory of the generation that dies by that serves again,
    /// so a filter that has come round takes no more.
    fn turn(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        let dies = self.dead(1).0 > 0;
        if !dies {
            let next = self.sub_filter(0, self.sub_filters.len(), self.size_bytes(), limit)?;
            try_reserve(&mut self.generations, 1)?;
            try_reserve(&mut self.sub_filters, 1)?;
            self.sub_filters.push(next);
            self.generations.push(Generation { age: 0, len: 1, renewed: 0 });
        } else {
            self.generations.rotate_left(1);
            self.sub_filters.rotate_left(1);
            self.sub_filters.last_mut().into_iter().for_each(LineSubFilter::clear);
        }
        let older = self.generations.len() - 1;
        self.generations[..older].iter_mut().for_each(|one| one.age += 1);
        self.generations[older] = Generation { age: 0, len: 1, renewed: 0 };
        self.newest_slice = self.newest_slice.saturating_add(1);
        Ok(())
    }
}
