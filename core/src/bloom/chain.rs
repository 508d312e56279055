//! Chains of sub-filters, in either layout, with or without a window. An item is looked up in all sub-filters and added
//! to the newest. Once the newest is full, a new one follows it.

use std::alloc::Layout;
use std::iter::once;

use super::params::Params;
use super::sub_filter::{Expected, Screened, SubFilter};
use super::windowing::{Generation, Generations};
use crate::error::{Error, Parameter};
use crate::hash::{Chunk, Hash128, Marks, fill, fill_beside, first_marked, first_marks, marked};
use crate::size_limit::{SizeLimit, try_collect_ok, try_to_vec};
use crate::window::Mark;

mod admit;
mod generations;
mod merge;
mod sub_filters;

use sub_filters::SubFilters;

/// The largest number of sub-filters to which a chain grows. Every item is looked up in each, so filling a chain takes
/// time quadratic in their number. Chains with an expansion of 2 or more end at 64 sub-filters, where the capacity
/// overflows. A smaller limit would make stored filters unreadable.
pub(crate) const MAX_SUB_FILTERS: usize = 1024;

/// A Bloom filter that grows. Items are added to the newest sub-filter; the filter holds an item if any sub-filter
/// does. The two kinds are `LineFilter` and `ClassicFilter`.
///
/// The first sub-filter stores the parameters and the rules of growth. So a small filter, of which a server may hold
/// millions, consists of this sub-filter alone.
///
/// Invariants: a chain without a window has at least one sub-filter, and only one if it does not scale. In a chain that
/// grew here, all sub-filters except the newest are full; loading does not check this. A single sub-filter is in place
/// if, and only if, the chain has no window.
#[derive(Debug, PartialEq)]
pub struct Chain<S: SubFilter> {
    sub_filters: SubFilters<S>,
    /// The generations of a windowed filter; `None` for a plain filter, which is one generation of age 0.
    ring: Option<Box<Generations>>,
}

/// The outcome of adding a chunk of hashes to a chain.
struct AddedChunk {
    /// The mask of the items that were new.
    new: Marks,
    /// Whether any item changed the chain.
    changed: bool,
    /// The number of hashes that were handled.
    handled: usize,
}

/// The bytes that a sub-filter takes in a list: the struct and its bitmap.
fn taken_bytes<S: SubFilter>(sub_filter: &S) -> u64 {
    size_of::<S>() as u64 + sub_filter.as_bytes().len() as u64
}

impl<S: SubFilter> Chain<S> {
    /// A chain of one sub-filter.
    pub(super) fn of(first: S) -> Self {
        Chain { sub_filters: SubFilters::One(first), ring: None }
    }

    /// A chain of several sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `sub_filters` is empty.
    pub(crate) fn of_all(sub_filters: Vec<S>) -> Result<Self, Error> {
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
            None => Chain::of_all(sub_filters),
            Some(ring) => {
                let ring = Generations { list: try_to_vec(&ring.list)?, ..**ring };
                Ok(Chain { sub_filters: SubFilters::Many(sub_filters), ring: Some(Box::new(ring)) })
            }
        }
    }

    /// An empty filter with the same parameters, in new memory, of a filter without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub(super) fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(Chain::of(self.sub_filters.first().new_like(0, limit)?))
    }

    /// Adds an item. Returns whether it was new; a known item means that the filter already answered that it may
    /// contain it.
    ///
    /// # Errors
    /// A full filter rejects a new item. The error is [`Error::Full`] if the filter does not scale, else the error that
    /// keeps the filter from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is
    /// changed then.
    #[inline]
    pub(super) fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        match &mut self.sub_filters {
            // `insert` itself returns whether the item was new. So a single sub-filter with room needs no look-up
            // first.
            SubFilters::One(only) if !only.is_full() => {
                Ok(if only.insert(S::hash(item, only.params().seed)) { Mark::New } else { Mark::Same })
            }
            _ => self.add_to_many(item, limit),
        }
    }

    /// Adds an item like [`Self::add`], in a chain of any length. Out of line, so that the code for one sub-filter
    /// stays small.
    #[inline(never)]
    fn add_to_many(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        let hash = self.hash(item);
        let is_known = S::look_up(self.sub_filters(), hash);
        if is_known && (!self.renews() || S::look_up(self.newest(), hash)) {
            return Ok(Mark::Same);
        }
        if self.room() == 0 {
            self.grow(limit)?;
        }
        if let Some(newest) = self.sub_filters_mut().last_mut() {
            newest.insert(hash);
        }
        if !is_known {
            return Ok(Mark::New);
        }
        self.count_renewed(hash);
        Ok(Mark::Renewed)
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
        self.add_hashes(items.map(|item| S::hash(item, seed)), limit, changed, added)
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
            // A single sub-filter is changed at once; several are looked up first.
            let expected = if self.sub_filters().len() == 1 { Expected::Present } else { Expected::Absent };
            prefetch(self.sub_filters(), chunk, expected);
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
        // sub-filters that took items of this chunk. Where all fit into a single sub-filter, inserting them says as
        // much.
        let start = self.newest_start();
        let fit_into_one = start == 0 && self.sub_filters().len() == 1 && self.room() >= hashes.len() as u64;
        let all = first_marks(hashes.len());
        let known = if fit_into_one { 0 } else { look_up_chunk(self.sub_filters(), hashes, Expected::Absent) };
        // With refresh, known items are added to the newest generation, too.
        let renews = self.renews() && known != 0;
        let held = if renews { look_up_chunk(&self.sub_filters()[start..], hashes, Expected::Absent) } else { known };
        let mut left = all & !(known & held);
        if !fit_into_one
            && let [.., newest] = &self.sub_filters()[start..]
            && S::is_far(std::slice::from_ref(newest))
        {
            // The look-up read one line of most items, in each sub-filter.
            S::prefetch(std::slice::from_ref(newest), hashes, left, Expected::Present);
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
            // `fitting` has at most the hashes that fit if all are new, so the room need not be checked after each
            // hash. A new sub-filter takes at least one, as in `add`.
            let fitting = first_marked(left, self.room().max(1));
            left ^= fitting;
            let Some(newest) = self.sub_filters_mut().last_mut() else { break };
            // `insert_chunk` does not report duplicates as new, nor items whose bits earlier items of the chunk set.
            taken |= newest.insert_chunk(hashes, fitting);
            if newest.is_full() {
                left &= !newest.look_up_chunk(hashes, left);
            }
        }
        marked(taken & known).for_each(|i| self.count_renewed(hashes[i]));
        (AddedChunk { new: taken & !known, changed: taken != 0, handled }, result)
    }

    /// Whether the item may have been added, once `slices_later` more slices have begun; if `false`, it certainly was
    /// not, or has expired.
    #[inline]
    pub(super) fn may_contain(&self, item: &[u8], slices_later: u64) -> bool {
        match &self.sub_filters {
            SubFilters::One(only) => only.may_contain(S::hash(item, only.params().seed)),
            SubFilters::Many(_) => S::look_up(self.live(slices_later), self.hash(item)),
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
        let hashes = items.into_iter().map(|item| S::hash(item, seed));
        look_up_chunks(self.live(slices_later), hashes, |_, is_found| found(is_found));
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for a classic filter, rate and
    /// capacity follow from the first sub-filter, and the seed is 0.
    #[inline(always)]
    pub fn params(&self) -> &Params {
        match &self.ring {
            None => self.sub_filters.first().params(),
            Some(ring) => &ring.params,
        }
    }

    /// The sub-filters, oldest first.
    #[inline(always)]
    pub fn sub_filters(&self) -> &[S] {
        self.sub_filters.as_slice()
    }

    /// The sub-filters, mutable, so that the caller can relocate or overwrite their bitmaps. Relocating changes no bit.
    /// Overwriting loses items only where RedisBloom loses them too.
    #[inline(always)]
    pub(crate) fn sub_filters_mut(&mut self) -> &mut [S] {
        self.sub_filters.as_mut_slice()
    }

    /// The number of items that the filter still holds once `slices_later` more slices have begun: of added items, those
    /// that were new. After a merge it is an estimate.
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

    /// The number of items that all sub-filters together are sized for; in a windowed filter, those of a window.
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
        self.newest().last().map_or(0, S::room)
    }

    /// Whether adding `additions` items changes only bits and counts: there is no window, the newest sub-filter has
    /// room for as many new items, and can count each of them.
    #[inline]
    pub fn has_room_for(&self, additions: u64) -> bool {
        let fits = |newest: &S| if additions == 1 { !newest.is_full() } else { newest.room() >= additions };
        // The count of a classic sub-filter ends at its number of bits, which at high error rates may be below its
        // capacity.
        let counts = |newest: &S| newest.num_items().saturating_add(additions) <= newest.num_bits();
        self.ring.is_none() && self.sub_filters().last().is_some_and(|newest| fits(newest) && counts(newest))
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        S::size_bytes(self.sub_filters())
            + self.ring.as_ref().map_or(0, |ring| {
                // A single sub-filter is not in place.
                let list = if self.sub_filters().len() == 1 { size_of::<S>() as u64 } else { 0 };
                list + ring.size_bytes()
            })
    }

    /// The bytes that the filter takes once it has room for one more sub-filter, without that sub-filter.
    fn held_bytes(&self) -> u64 {
        self.size_bytes().saturating_add(self.sub_filters.bytes_to_grow())
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
    /// slices have begun. If items were renewed, the true rate is lower: generations that share items err for the same
    /// absent items.
    pub fn false_positive_rate(&self, slices_later: u64) -> f64 {
        let (live, generations) = (self.live(slices_later), &self.generations()[self.dead(slices_later).0..]);
        // Without a sub-filter the rate may come out as -0.0; `abs` makes it 0.0.
        let rate = chain_rate(live.iter().map(|sub_filter| sub_filter.rate_with(sub_filter.set_bits()))).abs();
        let renewed = generations.iter().fold(0.0, |sum, generation| sum + generation.renewed as f64);
        // Sub-filters of several sizes share no errors.
        let Some(first) = live.first().filter(|_| renewed > 0.0 && live.len() == generations.len()) else {
            return rate;
        };
        // What any generation finds, one bitmap with the items of all of them would find too. It has each item once.
        let items = live.iter().map(|one| one.estimate_items(one.set_bits()));
        let (all, most) = items.fold((0.0, 0.0), |(all, most): (f64, f64), items| (all + items, most.max(items)));
        rate.min(first.rate_of((all - renewed).max(most)))
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
        S::hash(item, self.params().seed)
    }

    /// Makes sub-filter `index` of the newest generation, after `last`; `None` is the first. `len` is the number of
    /// sub-filters of the whole chain, and `held_bytes` its size.
    fn next(
        &self,
        index: usize,
        last: Option<&S>,
        len: usize,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<S, Error> {
        let expected = "at most 1024, as a larger capacity or expansion needs";
        Error::check_range(len < MAX_SUB_FILTERS, Parameter::SubFilters, expected, len + 1)?;
        match (last, &self.ring) {
            (Some(last), _) => self.newest().first().unwrap_or(last).next(last, index as u64, held_bytes, limit),
            (None, Some(ring)) => {
                S::first(&ring.of_generation, held_bytes.saturating_add(size_of::<Generation>() as u64), limit)
            }
            // A chain without a window has a sub-filter.
            (None, None) => S::first(self.params(), held_bytes, limit),
        }
    }

    /// Appends a new, empty sub-filter to the newest generation.
    fn grow(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        let newest = self.newest();
        let next = self.next(newest.len(), newest.last(), self.sub_filters().len(), self.held_bytes(), limit)?;
        self.append(once(next))
    }
}

/// Returns the mask of the hashes that any of `sub_filters` may contain.
pub(super) fn look_up_chunk<S: SubFilter>(sub_filters: &[S], hashes: &[Hash128], expected: Expected) -> Marks {
    S::resolve_chunk(sub_filters, hashes, &screen_chunk(sub_filters, hashes, expected))
}

/// Does the same as [`SubFilter::screen_chunk`]. A single hash is looked up in the way that is faster for one.
fn screen_chunk<S: SubFilter>(sub_filters: &[S], hashes: &[Hash128], expected: Expected) -> Screened {
    match hashes {
        [hash] => Screened::found(S::look_up(sub_filters, *hash).into()),
        _ => S::screen_chunk(sub_filters, hashes, expected),
    }
}

/// Prefetches what a look-up of the hashes reads first, if that is not in a cache.
fn prefetch<S: SubFilter>(sub_filters: &[S], hashes: &[Hash128], expected: Expected) {
    if S::is_far(sub_filters) {
        S::prefetch(sub_filters, hashes, first_marks(hashes.len()), expected);
    }
}

/// Calls `found` with each hash and whether any of `sub_filters` may contain it, in order.
///
/// Unless its bits are in a cache, a chunk is prefetched first. Then the chunk before is decided as far as it is open:
/// the bits for this were prefetched when it was screened. Its answers are passed on, and the next chunk is hashed, an
/// item at a time, so that a processor works on both. Then the chunk is screened. Prefetches go all at once: a
/// prefetch waits for the address of its page, and a processor finds several addresses at a time only if the prefetches
/// follow each other closely.
pub(super) fn look_up_chunks<S: SubFilter>(
    sub_filters: &[S],
    hashes: impl Iterator<Item = Hash128>,
    mut found: impl FnMut(Hash128, bool),
) {
    let (mut hashes, mut expected, mut screened) = (hashes.fuse(), Expected::Absent, Screened::found(0));
    let [before, chunk, next] = &mut [const { Chunk::new_const() }; 3];
    let (mut before, mut chunk, mut next) = (before, chunk, next);
    let mut answer = |chunk: &Chunk, marks: Marks, i: usize| found(chunk[i], marks >> i & 1 == 1);
    fill(chunk, &mut hashes);
    while !chunk.is_empty() {
        prefetch(sub_filters, chunk, expected);
        let marks = S::resolve_chunk(sub_filters, before, &screened);
        fill_beside(next, &mut hashes, (0..before.len()).map(|i| answer(before, marks, i)));
        screened = screen_chunk(sub_filters, chunk, expected);
        // The next chunk is most likely like this one. An undecided item counts as found: if there are many, most are.
        let (likely, half) = (screened.found | screened.open, chunk.len() / 2);
        expected = if likely.count_ones() as usize > half { Expected::Present } else { Expected::Absent };
        (before, chunk, next) = (chunk, next, before);
    }
    let marks = S::resolve_chunk(sub_filters, before, &screened);
    (0..before.len()).for_each(|i| answer(before, marks, i));
}

/// Copies of the sub-filters.
pub(crate) fn try_clone_all<S: SubFilter>(sub_filters: &[S]) -> Result<Vec<S>, Error> {
    try_collect_ok(sub_filters.len(), sub_filters.iter().map(S::try_clone))
}

/// The number of items that these sub-filters count.
#[inline]
fn num_items(sub_filters: &[impl SubFilter]) -> u64 {
    sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items()))
}

/// The chance that any of several independent sub-filters errs, from the chance of each.
fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // In logarithms: 1 - (1 - r) would lose rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

#[cfg(test)]
mod tests;
