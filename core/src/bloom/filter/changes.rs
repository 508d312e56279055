//! Changes of a filter: adding items, and removing expired items.

use std::alloc::Layout;

use super::generations::{Generation, Generations, Parts};
use super::{BloomFilter, Expired};
use crate::admission::{Admission, Terms};
use crate::bloom::look_up::{look_up, look_up_chunk, prefetch_all, prefetch_first};
use crate::bloom::sub_filter::{Spec, SubFilter, num_items};
use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::heap::Mover;
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::marks::{Chunk, Marks, fill, fill_beside, first_marked, first_marks, marked};
use crate::size_limit::{SizeLimit, try_collect, try_filled, try_reserve, try_with_capacity};
use crate::window::{Ahead, ClockSource, Mark, Merging, Move, Time, Window};

/// The largest number of sub-filters to which a filter grows. Each item is looked up in every sub-filter, so the time
/// to fill a filter is quadratic in their number. A lower limit could make stored filters unreadable.
pub(crate) const MAX_SUB_FILTERS: usize = 1024;

impl Sealed for BloomFilter {}

impl Windowed for BloomFilter {
    type Expired = Expired;

    #[inline]
    fn window(&self) -> Option<&Window> {
        self.windowing().map(|windowing| &windowing.window)
    }

    #[inline]
    fn newest_slice(&self) -> Option<u64> {
        self.ring().map(|ring| ring.newest_slice)
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Some(ring) = self.ring_mut() {
            ring.windowing.window = ring.windowing.window.with_clock_source(clock_source);
        }
    }

    fn advance(&mut self, slice: u64) -> Expired {
        let slices_later = self.newest_slice().map_or(0, |newest| slice.saturating_sub(newest));
        let (generations, sub_filters) = self.dead(slices_later);
        let (Parts::Many(all, Some(ring)), 1..) = (&mut self.parts, slices_later) else {
            return Expired::default();
        };
        ring.newest_slice = slice;
        ring.list.drain(..generations);
        // The list is empty if `slices_later` exceeds the number of slices of the window, so the cast loses nothing.
        ring.list.iter_mut().for_each(|one| one.age = one.age.saturating_add(slices_later as u32));
        // If there is no memory for the returned list, the expired sub-filters are freed here.
        Expired(try_collect(sub_filters, all.drain(..sub_filters)).unwrap_or_default())
    }

    fn rebase(&mut self, slice: u64) {
        if let Some(ring) = self.ring_mut() {
            ring.newest_slice = ring.newest_slice.min(slice);
        }
    }

    #[inline]
    fn renews(&self) -> bool {
        self.ring().is_some_and(|ring| ring.windowing.refresh)
    }

    fn by_age(&self, slices_later: u64) -> Result<Vec<u64>, Error> {
        let slices = self.window().map_or(0, Window::slices);
        let mut by_age = try_filled(slices as usize + 1, 0u64)?;
        for (generation, sub_filters) in self.by_generation() {
            let age = slices_later.saturating_add(generation.age.into());
            if let Some(items) = by_age.get_mut(usize::try_from(age).unwrap_or(usize::MAX)) {
                *items = num_items(sub_filters).saturating_sub(generation.renewed);
            }
        }
        Ok(by_age)
    }

    fn age_of(&self, item: &[u8]) -> Option<u64> {
        let hash = self.hasher()(item);
        let ages = self.by_generation().filter(|(_, sub_filters)| look_up(sub_filters, hash));
        ages.last().map(|(generation, _)| generation.age.into())
    }

    fn fits(&self) -> u64 {
        match self.newest() {
            [only] if self.params().expansion == 0 && only.is_full() => 0,
            // The result of `room` may be too low, but a sub-filter that is not full takes at least one item.
            [only] if self.params().expansion == 0 => only.room().max(1),
            _ => u64::MAX,
        }
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let Some(ring) = self.ring() else { return Ok(Merging::default()) };
        // Filters with other windows have other slice numbers. They are skipped here, and the merge rejects them later.
        let same = others.iter().filter_map(|other| other.ring());
        let same = same.filter(|other| other.windowing.is_like(&ring.windowing)).map(|other| other.newest_slice);
        ring.windowing.window.merging(ring.newest_slice, same, time).map_err(|Ahead { slice, present }| {
            let got = format_args!("{slice}, where that is {present}");
            Error::out_of_range(Parameter::Slice, "at most one ahead of the destination's", got)
        })
    }

    fn is_changed_by(&self, item: &[u8], due: Move) -> bool {
        match (due, self.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => {
                self.renews() || !look_up(self.live_after(slice.saturating_sub(newest)), self.hasher()(item))
            }
            // `due` is a move back to the clock's slice. Adding any item, even a known one, makes this move.
            _ => true,
        }
    }

    #[inline(always)]
    fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        match &mut self.parts {
            // `insert` returns whether the item was new, so it needs no look-up before.
            Parts::One(only) if !only.is_full() => {
                Ok(if only.insert(only.hash(item)) { Mark::New } else { Mark::Same })
            }
            _ => self.add_to_many(item, limit),
        }
    }

    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let hash = self.hasher();
        self.add_hashes(items.map(hash), limit, changed, added)
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error> {
        let due = live.due();
        let slices_later = match (due, live.value.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => slice - newest,
            _ => 0,
        };
        // If the clock had jumped ahead and was set back, the window moves back to the clock's slice even if all items
        // are rejected. Otherwise the filter's items would expire far too late.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0 && !terms.dry_run;
        let admitting = live.value.plan_admission(items, terms, slices_later, limit)?;
        let new = admitting.sorted.new.len();
        live.outcome.changed |= admitting.renews();
        if admitting.adds() || rebases {
            live.make(due);
        }
        let reported = live.value.carry_out(admitting)?;
        live.outcome.changed |= !terms.dry_run && reported.contains(&Admission::Admitted);
        Ok((reported, new))
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        others.iter().try_for_each(|other| live.value.check_kind(other))?;
        let merging = live.value.merging(others, live.time)?;
        let (changed, expired) = live.value.merge_as(others, merging, limit)?;
        (live.outcome.before, live.outcome.after, live.outcome.expired) = (merging.before, merging.after, expired);
        live.outcome.changed |= changed;
        Ok(changed)
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        if let Parts::Many(all, _) = &self.parts {
            list_layout(all).into_iter().for_each(&mut *visit);
        }
        self.chain().iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        if let Some(ring) = self.ring() {
            visit(Layout::for_value::<Generations>(ring));
            list_layout(&ring.list).into_iter().for_each(visit);
        }
    }

    fn num_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        let sub_filter = self.chain_mut().get_mut(index);
        sub_filter.map(|one| one.bitmap.relocate(|lines| mover.relocate(lines))).is_some()
    }
}

fn list_layout<T>(list: &Vec<T>) -> Option<Layout> {
    Layout::array::<T>(list.capacity()).ok().filter(|layout| layout.size() > 0)
}

impl Live<'_, BloomFilter> {
    /// Adds the items with these hashes, in order, and returns how many were new. It allows hashing on several threads.
    /// The command-line tool calls it.
    ///
    /// # Errors
    /// The errors of [`Live::add`]. The items before the rejected item are added.
    #[doc(hidden)]
    pub fn add_hashes(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> Result<u64, Error> {
        self.move_on();
        let mut new = 0;
        let (hashes, added) = (hashes.iter().copied(), |is_new| new += u64::from(is_new));
        self.value.add_hashes(hashes, limit, &mut self.outcome.changed, added)?;
        Ok(new)
    }
}

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
    fn add_to_many(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
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
    fn add_hashes(
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
            let fitting = first_marked(left, self.room().max(1));
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
    fn a_list_has_no_room_that_is_not_used() {
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
