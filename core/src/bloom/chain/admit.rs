//! Admission to chains: new items are added only while the chain holds fewer items than a limit.

use super::{Chain, Expected, SubFilter, look_up_chunk, look_up_chunks, prefetch};
use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::error::Error;
use crate::hash::{CHUNK, Hash128, first_marked, first_marks, marked};
use crate::size_limit::{SizeLimit, try_with_capacity};

/// A sub-filter's state before items were added to it.
enum Undo<S> {
    /// A copy of the sub-filter. It is used if it is smaller than the saved words.
    Whole(S),
    /// The words that may have bits of the items, each with its index, and the number of items.
    Words { words: Vec<(usize, u64)>, num_items: u64 },
}

impl<S: SubFilter> Undo<S> {
    /// Saves the parts of `sub_filter` that adding the items with these hashes can change.
    fn of(sub_filter: &S, hashes: &[Hash128]) -> Result<Self, Error> {
        let mut len = 0;
        hashes.iter().for_each(|&hash| sub_filter.words_of(hash, &mut |_, _| len += 1));
        if len * size_of::<(usize, u64)>() >= sub_filter.as_bytes().len() {
            return Ok(Undo::Whole(sub_filter.try_clone()?));
        }
        let mut words = try_with_capacity(len)?;
        hashes.iter().for_each(|&hash| sub_filter.words_of(hash, &mut |index, word| words.push((index, word))));
        Ok(Undo::Words { words, num_items: sub_filter.num_items() })
    }

    fn put_back(self, sub_filter: &mut S) {
        match self {
            Undo::Whole(whole) => sub_filter.restore(whole),
            Undo::Words { words, num_items } => sub_filter.put_back(&words, num_items),
        }
    }
}

impl<S: SubFilter> Chain<S> {
    /// Adds the items that `terms` admit, in order, and returns the outcome of each.
    ///
    /// All memory is allocated before the first bit is set. A filter that does not scale rejects items for which it has
    /// no room.
    ///
    /// # Errors
    /// The error that keeps the filter from growing, [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn admit<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let (mut look_up, seed) = (LookUp::of(items.len())?, self.params().seed);
        let hashes = items.map(|item| S::hash(item, seed));
        look_up_chunks(self.sub_filters(), hashes, |hash, is_known| look_up.record(hash.lo, hash, is_known));
        let new = look_up.new_items();
        let admitted = terms.admitted(self.num_items(), new.len());
        let of_new = if admitted == 0 { first_of(0, new.len())? } else { self.admit_new(new, admitted, terms, limit)? };
        Ok(look_up.into_answers(&of_new))
    }

    /// Adds the first `most` of the absent items with these hashes, as far as they fit. Returns the outcome of each.
    fn admit_new(
        &mut self,
        hashes: &[Hash128],
        most: usize,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let mut reported = first_of(if terms.dry_run { most } else { 0 }, hashes.len())?;
        let len = self.sub_filters().len();
        let stopped = self.grow_ahead(most as u64, limit).err();
        let kept = self.admit_to_newest(len - 1, hashes, most, &mut reported, terms, stopped);
        self.sub_filters.truncate(*kept.as_ref().unwrap_or(&len));
        kept.map(|_| reported)
    }

    /// Grows by the sub-filters that `items` new items may need.
    fn grow_ahead(&mut self, items: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        let mut room = self.room();
        while room < items {
            self.grow(limit)?;
            // A new sub-filter takes at least one.
            room = room.saturating_add(self.room().max(1));
        }
        Ok(())
    }

    /// Adds items to the sub-filter at index `newest`, which was the newest before the chain grew, and to its
    /// successors. Returns the number of sub-filters that the chain keeps. `stopped` is the error that ended the
    /// growth, if any.
    fn admit_to_newest(
        &mut self,
        newest: usize,
        hashes: &[Hash128],
        most: usize,
        reported: &mut [Admission],
        terms: Terms,
        stopped: Option<Error>,
    ) -> Result<usize, Error> {
        if stopped.is_none() && terms.dry_run {
            return Ok(newest + 1);
        }
        // Where growth was rejected, the items may fit nevertheless: the room is a lower bound, and the bits decide.
        // Only adding the items shows it.
        let does_not_scale = matches!(stopped, Some(Error::Full { .. }));
        let goes_on = stopped.is_none() || does_not_scale && !terms.all;
        let one = &self.sub_filters()[newest];
        // A full sub-filter changes no more, so nothing of it is saved.
        let may_return = (terms.dry_run || !goes_on) && !one.is_full();
        let before = if may_return { Some(Undo::of(one, hashes)?) } else { None };
        let end = self.fill(newest, hashes, most, reported, goes_on);
        if let (Some(end), false) = (end, terms.dry_run) {
            return Ok(newest + 1 + end);
        }
        if let Some(before) = before {
            before.put_back(&mut self.sub_filters_mut()[newest]);
        }
        match (end, stopped) {
            (None, Some(error)) if !does_not_scale => return Err(error),
            (None, _) => reported.fill(Admission::Rejected),
            (Some(_), _) => {}
        }
        Ok(newest + 1)
    }

    /// Adds the first `most` of the absent items in `hashes` to the sub-filters from index `newest` on, and rejects the
    /// others. An item counts as known instead if items added before it have set all of its bits. Returns the number of
    /// sub-filters after `newest` that received an item. If `goes_on`, an item for which there is no room is rejected.
    /// Otherwise such an item makes the method return `None`.
    fn fill(
        &mut self,
        newest: usize,
        hashes: &[Hash128],
        most: usize,
        reported: &mut [Admission],
        goes_on: bool,
    ) -> Option<usize> {
        let tail = &mut self.sub_filters_mut()[newest..];
        let (mut at, mut admitted) = (0, 0);
        for (hashes, reported) in hashes.chunks(CHUNK).zip(reported.chunks_mut(CHUNK)) {
            prefetch(&tail[at..=at], hashes, Expected::Present);
            reported.fill(Admission::Known);
            let mut left = !look_up_chunk(&tail[..=at], hashes, Expected::Absent) & first_marks(hashes.len());
            while left != 0 {
                if admitted < most && tail[at].is_full() && at + 1 < tail.len() {
                    at += 1;
                }
                if admitted == most || tail[at].is_full() {
                    if admitted < most && !goes_on {
                        return None;
                    }
                    marked(left).for_each(|i| reported[i] = Admission::Rejected);
                    break;
                }
                // At most the hashes that fit if all are new, and that may be admitted.
                let fitting = first_marked(left, tail[at].room().min((most - admitted) as u64));
                left ^= fitting;
                let new = tail[at].insert_chunk(hashes, fitting);
                marked(new).for_each(|i| reported[i] = Admission::Admitted);
                admitted += new.count_ones() as usize;
                left &= !tail[at].look_up_chunk(hashes, left);
            }
        }
        Some(at)
    }
}
