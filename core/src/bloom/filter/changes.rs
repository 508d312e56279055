//! Chains of sub-filters, in either layout, with or without a window. An item is looked up in all sub-filters and added
//! to the newest. Once the newest sub-filter is full, a new one is appended.

use std::alloc::Layout;
use std::iter::once;

use super::params::Params;
use super::sub_filter::{
    Expected, Placement, SubFilter, look_up_chunk, look_up_chunks, num_items, reported_bytes, try_clone_all,
};
use crate::error::{Error, Parameter};
use crate::hash::{Chunk, Hash128, Marks, fill, fill_beside, first_marked, first_marks, marked};
use crate::size_limit::{SizeLimit, try_to_vec};
use crate::window::Mark;

mod admit;
mod generations;
mod merge;
mod store;

use store::SubFilters;
pub(crate) use store::{Generation, Generations, check_generations};

/// The largest number of sub-filters to which a chain grows. Every item is looked up in each, so filling a chain takes
/// time quadratic in their number. A chain with an expansion of 2 or more never has more than 64 sub-filters, because
/// its capacity would overflow. A smaller limit would make stored filters unreadable.
pub(crate) const MAX_SUB_FILTERS: usize = 1024;

/// A Bloom filter that grows. Items are added to the newest sub-filter; the filter has an item if any of its
/// sub-filters has it. The two kinds are `LineFilter` and `ClassicFilter`.
///
/// The first sub-filter stores the parameters and the rules of growth. So a small filter consists of this sub-filter
/// alone. A server may hold millions of small filters.
///
/// Invariants: a chain without a window has at least one sub-filter, and only one if it does not scale. In a chain that
/// was not loaded from elsewhere, all sub-filters except the newest are full; loading does not check this. If there is
/// a single sub-filter, it is stored in the struct itself if, and only if, the chain has no window.
#[derive(Debug, PartialEq)]
pub struct Chain<L: Placement> {
    sub_filters: SubFilters<SubFilter<L>>,
    /// The generations of a windowed filter; `None` for a plain filter, which is one generation of age 0.
    ring: Option<Box<Generations>>,
}

/// The expired sub-filters that were taken out when the window moved, if any.
type Dropped<L> = Option<Vec<SubFilter<L>>>;

/// The outcome of adding a chunk of hashes to a chain.
struct AddedChunk {
    /// The mask of the items that were new.
    new: Marks,
    /// Whether any item changed the chain.
    changed: bool,
    /// The number of hashes that were handled.
    handled: usize,
}

impl<L: Placement> Chain<L> {
    /// A chain of one sub-filter.
    pub(super) fn from_first(first: SubFilter<L>) -> Self {
        Chain { sub_filters: SubFilters::One(first), ring: None }
    }

    /// A chain of several sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `sub_filters` is empty.
    pub(crate) fn from_all(sub_filters: Vec<SubFilter<L>>) -> Result<Self, Error> {
        let none = || Error::corrupt("number of sub-filters", "at least 1", 0);
        Ok(Chain { sub_filters: SubFilters::from_vec(sub_filters).ok_or_else(none)?, ring: None })
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = try_clone_all(self.sub_filters())?;
        match &self.ring {
            None => Chain::from_all(sub_filters),
            Some(ring) => {
                let ring = Generations { list: try_to_vec(&ring.list)?, ..**ring };
                Ok(Chain { sub_filters: SubFilters::Many(sub_filters), ring: Some(Box::new(ring)) })
            }
        }
    }

    /// An empty filter with the same parameters, in new memory. Only for a filter without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub(super) fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(Chain::from_first(SubFilter::from_spec(self.sub_filters.first().spec.clone(), 0, limit)?))
    }

    /// Adds an item. Returns whether the item was new. An item is known, and so not new, if the filter already answered
    /// that it may contain the item.
    ///
    /// # Errors
    /// A full filter rejects a new item. The error is [`Error::Full`] if the filter does not scale. Otherwise it is the
    /// error that kept the filter from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). On
    /// error the filter is unchanged.
    #[inline]
    pub(super) fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        match &mut self.sub_filters {
            // `insert` itself returns whether the item was new. So a single sub-filter with room needs no look-up
            // first.
            SubFilters::One(only) if !only.is_full() => {
                Ok(if only.insert(L::hash(item, only.spec.params.seed)) { Mark::New } else { Mark::Same })
            }
            _ => self.add_to_many(item, limit),
        }
    }

    /// Adds an item like [`Self::add`], in a chain of any length. Not inlined, so that the code for one sub-filter
    /// stays small.
    #[inline(never)]
    fn add_to_many(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        let (added, result) = self.add_chunk(&[self.hash(item)], limit);
        result?;
        Ok(match (added.changed, added.new) {
            (false, _) => Mark::Same,
            (true, 0) => Mark::Renewed,
            (true, _) => Mark::New,
        })
    }

    /// Adds items in order, with the same outcome as a call of [`Self::add`] for each. Many items are added faster,
    /// since their cache misses overlap. `added` is called for each item with whether it was new. `changed` is set if
    /// any item changes the filter.
    ///
    /// # Errors
    /// The errors of [`Self::add`], for the first rejected item. The items before this item are added, and `added` was
    /// called for each of them.
    pub(super) fn add_all<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let seed = self.params().seed;
        self.add_hashes(items.map(|item| L::hash(item, seed)), limit, changed, added)
    }

    /// Adds the items with these hashes, otherwise like [`Self::add_all`]. A chunk is added right after it is
    /// prefetched. While its answers are passed on, the next chunk is hashed.
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
            // In a single sub-filter, items are inserted without a look-up; several sub-filters are looked up first.
            let expected = if self.sub_filters().len() == 1 { Expected::Present } else { Expected::Absent };
            L::prefetch(self.sub_filters(), chunk, first_marks(chunk.len()), expected);
            let (chunk_added, result) = self.add_chunk(chunk, limit);
            *changed |= chunk_added.changed;
            fill_beside(next, &mut hashes, (0..chunk_added.handled).map(|i| added(chunk_added.new >> i & 1 == 1)));
            result?;
            (chunk, next) = (next, chunk);
        }
        Ok(())
    }

    /// Adds the items of at most a chunk of hashes, in order, up to the first that fails.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> (AddedChunk, Result<(), Error>) {
        // Only an insertion changes the answers of a sub-filter. So each item is looked up once here, and again only in
        // sub-filters that took items of this chunk. If all items fit into a single sub-filter, no look-up is needed:
        // inserting an item tells whether it is new.
        let start = self.newest_start();
        let fit_into_one = start == 0 && self.sub_filters().len() == 1 && self.room() >= hashes.len() as u64;
        let all = first_marks(hashes.len());
        let known = if fit_into_one { 0 } else { look_up_chunk(self.sub_filters(), hashes, Expected::Absent) };
        // With refresh, known items are added to the newest generation, too.
        let renews = self.renews() && known != 0;
        let held = if renews { look_up_chunk(&self.sub_filters()[start..], hashes, Expected::Absent) } else { known };
        let mut left = all & !(known & held);
        if !fit_into_one && let [.., newest] = &self.sub_filters()[start..] {
            // For most items, the look-up has read one line in each sub-filter.
            L::prefetch(std::slice::from_ref(newest), hashes, left, Expected::Present);
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
            // `fitting` has at most as many hashes as fit if all of them are new, so the room need not be checked after
            // each hash. A new sub-filter takes at least one hash, as in `add`.
            let fitting = first_marked(left, self.room().max(1));
            left ^= fitting;
            let Some(newest) = self.sub_filters_mut().last_mut() else { break };
            // `insert_chunk` does not report an item as new if earlier items of the chunk have set all its bits. So
            // duplicates are not new either.
            taken |= newest.insert_chunk(hashes, fitting);
            if newest.is_full() {
                left &= !newest.look_up_chunk(hashes, left);
            }
        }
        marked(taken & known).for_each(|i| self.count_renewed(hashes[i]));
        (AddedChunk { new: taken & !known, changed: taken != 0, handled }, result)
    }

    /// Whether the item may have been added and is still live once `slices_later` more slices have begun. If `false`,
    /// it certainly was not added, or has expired.
    #[inline]
    pub(super) fn may_contain(&self, item: &[u8], slices_later: u64) -> bool {
        match &self.sub_filters {
            SubFilters::One(only) => only.may_contain(L::hash(item, only.spec.params.seed)),
            SubFilters::Many(_) => L::look_up(self.live(slices_later), self.hash(item)),
        }
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than one call
    /// after another.
    pub(super) fn may_contain_all<'a>(
        &self,
        items: impl IntoIterator<Item = &'a [u8]>,
        slices_later: u64,
        mut found: impl FnMut(bool),
    ) {
        let seed = self.params().seed;
        let hashes = items.into_iter().map(|item| L::hash(item, seed));
        look_up_chunks(self.live(slices_later), hashes, |_, is_found| found(is_found));
    }

    /// Takes the filter out. What is left has no sub-filters and must not be used.
    pub(crate) fn take(&mut self) -> Self {
        let sub_filters = std::mem::replace(&mut self.sub_filters, SubFilters::Many(Vec::new()));
        Chain { sub_filters, ring: self.ring.take() }
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for a classic filter, rate and
    /// capacity follow from the first sub-filter, and the seed is 0.
    #[inline(always)]
    pub fn params(&self) -> &Params {
        match &self.ring {
            None => &self.sub_filters.first().spec.params,
            Some(ring) => &ring.params,
        }
    }

    /// The sub-filters, oldest first.
    #[inline(always)]
    pub fn sub_filters(&self) -> &[SubFilter<L>] {
        self.sub_filters.as_slice()
    }

    /// The sub-filters, mutable, so that the caller can relocate or overwrite their bitmaps. Relocating changes no bit.
    /// Overwriting loses items only where RedisBloom loses them too.
    #[inline(always)]
    pub(crate) fn sub_filters_mut(&mut self) -> &mut [SubFilter<L>] {
        self.sub_filters.as_mut_slice()
    }

    /// The number of items that the filter still holds once `slices_later` more slices have begun: added items that
    /// were new count, known ones do not. After a merge the number is an estimate.
    #[inline]
    pub fn num_items(&self, slices_later: u64) -> u64 {
        if self.ring.is_none() {
            return num_items(self.sub_filters());
        }
        let (dead, _) = self.dead(slices_later);
        self.by_generation().skip(dead).fold(0, |sum, (generation, sub_filters)| {
            sum.saturating_add(num_items(sub_filters).saturating_sub(generation.renewed))
        })
    }

    /// Whether the filter is in the state of a new filter: clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        match &self.sub_filters {
            SubFilters::One(only) => only.num_items() == 0 && only.set_bits() == 0,
            SubFilters::Many(all) => all.is_empty(),
        }
    }

    /// The number of items that all sub-filters together are sized for. In a windowed filter, it is the number of items
    /// per window.
    pub fn capacity(&self) -> u64 {
        match &self.ring {
            None => self.sub_filters().iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.capacity())),
            Some(ring) => ring.params.capacity,
        }
    }

    /// A lower bound of the number of new items that fit before the filter grows or rejects them. Known items take no
    /// room.
    #[inline]
    pub fn room(&self) -> u64 {
        self.newest().last().map_or(0, SubFilter::room)
    }

    /// Whether adding `additions` items changes only bits and counts: there is no window, and the newest sub-filter has
    /// room for that many new items and can count each of them.
    #[inline]
    pub fn has_room_for(&self, additions: u64) -> bool {
        let fits = |newest: &SubFilter<L>| if additions == 1 { !newest.is_full() } else { newest.room() >= additions };
        // A classic sub-filter cannot count more items than it has bits. At high error rates, that may be fewer than
        // its capacity.
        let counts = |newest: &SubFilter<L>| newest.num_items().saturating_add(additions) <= newest.num_bits();
        self.ring.is_none() && self.sub_filters().last().is_some_and(|newest| fits(newest) && counts(newest))
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        let in_place = if let SubFilters::One(_) = &self.sub_filters { L::IN_PLACE_BYTES } else { 0 };
        self.held_bytes(self.sub_filters()) - in_place
    }

    /// The bytes of a filter with the sub-filters `sub_filters`, once it has room in its list for one more. The
    /// additional sub-filter itself is not included.
    fn held_bytes(&self, sub_filters: &[SubFilter<L>]) -> u64 {
        let ring = self.ring.as_ref().map_or(0, |ring| ring.size_bytes());
        L::CHAIN_BYTES.saturating_add(ring).saturating_add(reported_bytes(sub_filters))
    }

    /// The share of set bits in the sub-filters that are live once `slices_later` more slices have begun.
    pub fn fill_ratio(&self, slices_later: u64) -> f64 {
        // A sub-filter from elsewhere may have bits set that no item can set.
        let (set, all) = self.live(slices_later).iter().fold((0.0, 0.0), |(set, all), sub_filter| {
            let num_bits = sub_filter.num_bits();
            (set + sub_filter.set_bits().min(num_bits) as f64, all + num_bits as f64)
        });
        if all > 0.0 { set / all } else { 0.0 }
    }

    /// The false-positive rate, estimated from the set bits of the sub-filters that are live once `slices_later` more
    /// slices have begun. Renewed items are in several generations, and these generations then err for the same absent
    /// items. So renewed items lower the rate.
    pub fn false_positive_rate(&self, slices_later: u64) -> f64 {
        let (live, generations) = (self.live(slices_later), &self.generations()[self.dead(slices_later).0..]);
        // Without a sub-filter the rate may come out as -0.0; `abs` makes it 0.0.
        let rate = chain_rate(live.iter().map(|sub_filter| sub_filter.false_positive_rate())).abs();
        let renewed = generations.iter().fold(0.0, |sum, generation| sum + generation.renewed as f64);
        // Sub-filters of different sizes err for different absent items, so renewed items do not lower the rate.
        let Some(first) = live.first().filter(|_| renewed > 0.0 && live.len() == generations.len()) else {
            return rate;
        };
        // A single bitmap with the items of all generations would err for every absent item for which a generation
        // errs. So its rate is an upper bound. In this bitmap, a renewed item counts only once.
        let items = live.iter().map(SubFilter::estimate_items);
        let (all, most) = items.fold((0.0, 0.0), |(all, most): (f64, f64), items| (all + items, most.max(items)));
        rate.min(L::rate_of(&first.spec, (all - renewed).max(most)))
    }

    /// Calls `visit` with the layout of every heap allocation that the filter owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.sub_filters.list_layout().into_iter().for_each(&mut *visit);
        self.sub_filters().iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        if let Some(ring) = &self.ring {
            visit(Layout::for_value::<Generations>(ring));
            let list = Layout::array::<Generation>(ring.list.capacity());
            list.into_iter().filter(|layout| layout.size() > 0).for_each(visit);
        }
    }

    #[inline(always)]
    fn hash(&self, item: &[u8]) -> Hash128 {
        L::hash(item, self.params().seed)
    }

    /// Makes the sub-filter that follows the sub-filters `newest` and then `more` of a generation. `len` is the number
    /// of sub-filters of the whole chain, and `held_bytes` its size.
    fn next(
        &self,
        newest: &[SubFilter<L>],
        more: &[SubFilter<L>],
        len: usize,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<SubFilter<L>, Error> {
        let expected = format_args!("at most {MAX_SUB_FILTERS}, as a larger capacity or expansion needs");
        Error::check_range(len < MAX_SUB_FILTERS, Parameter::SubFilters, expected, len + 1)?;
        let mut all = newest.iter().chain(more);
        match (all.next(), more.last().or(newest.last()), &self.ring) {
            (Some(first), Some(last), _) => {
                let spec = L::next(&first.spec, &last.spec, (newest.len() + more.len()) as u64)?;
                SubFilter::from_spec(spec, held_bytes, limit)
            }
            (_, _, Some(ring)) => {
                let held_bytes = held_bytes.saturating_add(size_of::<Generation>() as u64);
                SubFilter::from_spec(L::first(&ring.of_generation)?, held_bytes, limit)
            }
            // A chain without a window has at least one sub-filter.
            _ => SubFilter::from_spec(L::first(self.params())?, held_bytes, limit),
        }
    }

    /// Appends a new, empty sub-filter to the newest generation.
    fn grow(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        let next =
            self.next(self.newest(), &[], self.sub_filters().len(), self.held_bytes(self.sub_filters()), limit)?;
        self.append(once(next))
    }
}

/// The chance that any of several independent sub-filters errs, from the chance of each.
fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // Logarithms are added, since computing 1 - (1 - r) would lose rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

#[cfg(test)]
mod tests;
