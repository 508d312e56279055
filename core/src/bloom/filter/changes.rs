//! Changes of a filter: adding items, and removing expired items.

use super::BloomFilter;
use super::generations::{Generation, Parts};
use crate::bloom::look_up::{look_up, look_up_chunk, prefetch_all, prefetch_first};
use crate::bloom::sub_filter::{Spec, SubFilter, num_items};
use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::live::Value;
use crate::marks::{CHUNK, Chunk, Marks, fill, fill_beside, first_marks, marked};
use crate::size_limit::{SizeLimit, try_reserve, try_with_capacity};
use crate::window::Mark;

/// The largest number of sub-filters to which a filter grows. Each item is looked up in every sub-filter, so the time
/// to fill a filter is quadratic in their number. A lower limit could make stored filters unreadable.
pub(crate) const MAX_SUB_FILTERS: usize = 1024;

/// The outcome of adding up to 64 hashes.
struct AddedChunk {
    new: Marks,
    changed: bool,
    /// The number of hashes, from the first on, that were handled before an error.
    handled: usize,
}

impl BloomFilter {
    /// Adds an item to a filter with any number of sub-filters. It is not inlined, to keep the code for a single
    /// sub-filter small.
    ///
    /// # Errors
    /// For a new item without room: [`Error::Full`] if the filter does not scale, otherwise the error that kept it from
    /// growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). On error the filter is unchanged.
    #[inline(never)]
    pub(super) fn add_to_many(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        let (added, result) = self.add_chunk(&[self.hasher()(item)], limit);
        result?;
        Ok(match (added.changed, added.new) {
            (false, _) => Mark::Same,
            (true, 0) => Mark::Renewed,
            (true, _) => Mark::New,
        })
    }

    /// Adds the items with these hashes, in order. Calls `added` for each with whether it was new. Sets `changed` if
    /// the filter changes.
    ///
    /// # Errors
    /// The errors of [`Self::add_to_many`], for the first rejected item. The items before it are added.
    pub(super) fn add_hashes(
        &mut self,
        hashes: impl Iterator<Item = Hash128>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut hashes = hashes.fuse();
        let [chunk, next] = &mut [const { Chunk::new_const() }; 2];
        let (mut chunk, mut next) = (chunk, next);
        fill(chunk, &mut hashes);
        while !chunk.is_empty() {
            // Inserting into a single sub-filter needs all lines of an item. Several sub-filters are searched first,
            // and a search begins with the first line of each item.
            match self.chain() {
                [only] => prefetch_all(only, chunk, first_marks(chunk.len())),
                many => prefetch_first(many, chunk),
            }
            let (chunk_added, result) = self.add_chunk(chunk, limit);
            *changed |= chunk_added.changed;
            fill_beside(next, &mut hashes, (0..chunk_added.handled).map(|i| added(chunk_added.new >> i & 1 == 1)));
            result?;
            (chunk, next) = (next, chunk);
        }
        Ok(())
    }

    /// Adds the items with these hashes, at most 64, in order, up to the first rejected item.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> (AddedChunk, Result<(), Error>) {
        // All items are looked up first. Later, an item is looked up again only in sub-filters that this call has
        // changed. If all items fit in a single sub-filter, no look-up is needed: inserting shows whether an item is
        // new.
        let start = self.newest_start();
        let fit_into_one = start == 0 && self.chain().len() == 1 && self.room() >= hashes.len() as u64;
        let all = first_marks(hashes.len());
        let known = if fit_into_one { 0 } else { look_up_chunk(self.chain(), hashes) };
        // With `refresh`, items of older slices are added to the newest slice too, so that they expire later.
        let renews = self.renews() && known != 0;
        let held = if renews { look_up_chunk(&self.chain()[start..], hashes) } else { known };
        let mut left = all & !(known & held);
        if !fit_into_one && let [.., newest] = &self.chain()[start..] {
            // Inserting needs all lines of an item, but the look-up has fetched only the first line of most items.
            prefetch_all(newest, hashes, left);
        }
        let (mut taken, mut handled) = (0, hashes.len());
        let mut result = Ok(());
        while left != 0 {
            if self.room() == 0
                && let Err(error) = self.grow(limit)
            {
                (handled, result) = (left.trailing_zeros() as usize, Err(error));
                break;
            }
            // The newest sub-filter has room for all hashes in `fitting`. With `max`, each round of the loop adds at
            // least one hash, even if the room of a new sub-filter is computed as 0.
            let fitting = match self.room().max(1) as usize {
                CHUNK.. => left,
                room => marked(left).take(room).fold(0, |fitting, i| fitting | 1 << i),
            };
            left ^= fitting;
            let Some(newest) = self.chain_mut().last_mut() else { break };
            // A duplicate is not reported as new, since its bits are already set.
            taken |= newest.insert_chunk(hashes, fitting);
            if newest.is_full() {
                left &= !newest.look_up_chunk(hashes, left);
            }
        }
        marked(taken & known).for_each(|i| self.count_renewed(hashes[i]));
        (AddedChunk { new: taken & !known, changed: taken != 0, handled }, result)
    }

    fn grow(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        let next = self.next(self.newest(), &[], self.chain().len(), self.held_bytes(self.chain()), limit)?;
        self.append(std::iter::once(next))
    }

    /// Appends sub-filters to those of the newest slice.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]. On error the filter is unchanged.
    pub(super) fn append(&mut self, more: impl ExactSizeIterator<Item = SubFilter>) -> Result<(), Error> {
        let len = more.len() as u32;
        match &mut self.parts {
            _ if len == 0 => {}
            Parts::One(_) => {
                let mut all = try_with_capacity(1 + more.len())?;
                if let Parts::One(first) = std::mem::replace(&mut self.parts, Parts::Many(Vec::new(), None)) {
                    all.push(first);
                }
                all.extend(more);
                self.parts = Parts::Many(all, None);
            }
            Parts::Many(all, ring) => {
                try_reserve(all, more.len())?;
                if let Some(ring) = ring {
                    match ring.list.last_mut() {
                        Some(newest) if newest.age == 0 => newest.len += len,
                        _ => {
                            try_reserve(&mut ring.list, 1)?;
                            ring.list.push(Generation { age: 0, len, renewed: 0 });
                        }
                    }
                }
                all.extend(more);
            }
        }
        Ok(())
    }

    /// Removes the last sub-filters, until the filter has `len` of them, at least 1.
    pub(super) fn truncate(&mut self, len: usize) {
        let Parts::Many(all, ring) = &mut self.parts else { return };
        let dropped = all.len().saturating_sub(len) as u32;
        all.truncate(len);
        match ring {
            Some(ring) => ring.list.last_mut().into_iter().for_each(|newest| newest.len -= dropped),
            None => {
                all.shrink_to_fit();
                self.parts = Parts::from_vec(std::mem::take(all));
            }
        }
    }

    /// The caller has just added an item of an older slice to the newest slice. Of the older slices that have this
    /// item, the latest counts one more item that was added again.
    pub(super) fn count_renewed(&mut self, hash: Hash128) {
        let mut end = self.newest_start();
        let Parts::Many(all, Some(ring)) = &mut self.parts else { return };
        for generation in ring.list.iter_mut().rev().filter(|one| one.age > 0) {
            let sub_filters = &all[..end][end - generation.len as usize..];
            if look_up(sub_filters, hash) {
                generation.renewed = (generation.renewed + 1).min(num_items(sub_filters));
                return;
            }
            end -= sub_filters.len();
        }
    }

    /// Makes another sub-filter for the newest slice. `newest` are the sub-filters of this slice, and `more` those that
    /// were made but not appended yet. With all these, the filter has `len` sub-filters and takes `held_bytes` bytes.
    pub(super) fn next(
        &self,
        newest: &[SubFilter],
        more: &[SubFilter],
        len: usize,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<SubFilter, Error> {
        let expected = format_args!("at most {MAX_SUB_FILTERS}, as a larger capacity or expansion needs");
        Error::check_range(len < MAX_SUB_FILTERS, Parameter::SubFilters, expected, len + 1)?;
        let mut all = newest.iter().chain(more);
        if let (Some(first), Some(last)) = (all.next(), more.last().or(newest.last())) {
            let spec = first.spec.next(&last.spec, (newest.len() + more.len()) as u64)?;
            return SubFilter::from_spec(spec, held_bytes, limit);
        }
        let params = self.ring().map_or(self.params(), |ring| &ring.of_generation);
        let held_bytes = held_bytes.saturating_add(size_of::<Generation>() as u64);
        SubFilter::from_spec(Spec::of_lines(params, 0)?, held_bytes, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_limit::Unlimited;

    fn sub_filters(capacities: std::ops::RangeInclusive<u64>) -> Vec<SubFilter> {
        capacities.map(|capacity| SubFilter::new(0.01, capacity, &Unlimited).unwrap()).collect()
    }

    /// Checks that the filter has sub-filters with capacities from 1 to `len`, in a list without spare room.
    fn check(filter: &BloomFilter, len: u64) {
        assert!((1..=len).eq(filter.chain().iter().map(|one| one.spec.capacity)));
        let mut layouts = Vec::new();
        filter.heap_layouts(&mut |layout| layouts.push(layout.size() as u64));
        let list = len * size_of::<SubFilter>() as u64;
        assert_eq!(layouts.contains(&list), len > 1, "{layouts:?}");
    }

    #[test]
    fn a_list_of_sub_filters_has_no_spare_capacity() {
        let mut filter = BloomFilter::from_sub_filters(sub_filters(1..=1)).unwrap();
        check(&filter, 1);
        for (more, len) in [(2..=2, 2), (3..=3, 3), (4..=6, 6)] {
            filter.append(sub_filters(more).into_iter()).unwrap();
            check(&filter, len);
        }
        for (len, left) in [(9, 6), (6, 6), (3, 3), (2, 2), (1, 1)] {
            filter.truncate(len);
            check(&filter, left);
        }
    }
}
