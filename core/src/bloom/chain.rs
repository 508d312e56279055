//! Chains of sub-filters, in either layout. An item is looked up in all sub-filters and added to the newest. Once the
//! newest is full, a new one follows it.

use std::alloc::Layout;
use std::fmt;
use std::iter::once;

use super::bitmap::Line;
use super::params::Params;
use crate::error::{Error, Parameter};
use crate::hash::{Chunk, Hash128, Marks, fill, fill_beside, first_marked, first_marks};
use crate::live::sealed::Sealed;
use crate::shared::own_layout;
use crate::size_limit::{SizeLimit, try_collect_ok};

mod admit;
mod chunk;
pub(super) mod merge;
mod store;
mod sub_filters;

pub(super) use chunk::{AddedChunk, Expected, Screened};
pub(super) use store::Store;
pub(super) use sub_filters::SubFilters;

/// The largest number of sub-filters to which a chain grows. Every item is looked up in each, so filling a chain takes
/// time quadratic in their number. Chains with an expansion of 2 or more end at 64 sub-filters, where the capacity
/// overflows. A smaller limit would make stored filters unreadable.
pub(crate) const MAX_SUB_FILTERS: usize = 1024;

/// One filter of a chain: the methods in which the two layouts differ. No type of another crate can implement the
/// trait.
///
/// A method with a parameter `pending` takes at most 64 hashes, and handles only the hashes whose bits are set in this
/// mask.
pub trait SubFilter: Sealed + fmt::Debug + PartialEq + Sized + Send + Sync + 'static {
    /// The derived parameters that sub-filters of equal sizes share.
    type Spec;
    /// Makes a sub-filter from its bits, counts and derived parameters.
    fn of(store: Store<Self::Spec>) -> Self;
    /// The bits, counts and derived parameters of the sub-filter.
    fn store(&self) -> &Store<Self::Spec>;
    /// The bits, counts and derived parameters of the sub-filter, mutable.
    fn store_mut(&mut self) -> &mut Store<Self::Spec>;

    /// The parameters of the chain that starts with this sub-filter.
    fn params(&self) -> &Params;
    /// The hash of an item.
    fn hash(item: &[u8], seed: u64) -> Hash128;
    /// Makes the sub-filter that follows `newest`: number `index` of the chain that starts with `self`. `limit` is
    /// asked for the growth before memory is allocated; `held_bytes` is the size of the chain without the new
    /// sub-filter.
    fn next(&self, newest: &Self, index: u64, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error>;
    /// Makes an empty sub-filter of the same sizes. `limit` is asked whether a value of `held_bytes` may grow by the
    /// new sub-filter.
    fn new_like(&self, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let Store { spec, bitmap, .. } = self.store();
        Ok(Self::of(Store::new(spec.clone(), bitmap.lines().len() as u64, held_bytes, limit)?))
    }
    /// A copy of the sub-filter.
    fn try_clone(&self) -> Result<Self, Error> {
        Ok(Self::of(self.store().try_clone()?))
    }
    /// The bytes that a chain of `sub_filters` takes, as `BF.INFO` reports them.
    fn size_bytes(sub_filters: &[Self]) -> u64;

    /// The number of items that the sub-filter is sized for.
    fn capacity(&self) -> u64;
    /// The false-positive rate that the sub-filter may have at its capacity.
    fn error_rate(&self) -> f64;
    /// The number of items that the sub-filter counts.
    #[inline]
    fn num_items(&self) -> u64 {
        self.store().num_items
    }
    /// Sets the number of items that the bits represent. Loading and unions call this method.
    fn set_num_items(&mut self, num_items: u64) -> Result<(), Error> {
        check_items(num_items, self.num_bits())?;
        self.store_mut().num_items = num_items;
        Ok(())
    }
    /// The number of bits of the bitmap that items can set.
    fn num_bits(&self) -> u64;
    /// The number of set bits.
    #[inline]
    fn set_bits(&self) -> u64 {
        self.store().bitmap.set_bits()
    }
    /// The number of bytes of the bitmap. The bitmap is in memory, so a `usize` holds the number.
    fn num_bytes(&self) -> usize;
    /// The bytes of the bitmap.
    fn as_bytes(&self) -> &[u8] {
        &self.store().bitmap.as_bytes()[..self.num_bytes()]
    }
    /// Writes `bytes` at byte `offset` of the bitmap, where no bit may be set yet. Loading calls this method.
    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let len = self.num_bytes();
        self.store_mut().bitmap.append_bytes(offset, bytes, len)
    }
    /// The number of bits that an item sets; some may coincide.
    fn hashes(&self) -> u32;

    /// Whether the sub-filter takes no more new items.
    fn is_full(&self) -> bool;
    /// A lower bound of the number of new items that fit; 0 if the sub-filter is full.
    fn room(&self) -> u64;
    /// Whether a sub-filter with `num_items` items and `set_bits` set bits is within its capacity.
    fn holds(&self, num_items: u64, set_bits: u64) -> bool;

    /// Whether the item of this hash may have been inserted.
    fn may_contain(&self, hash: Hash128) -> bool;
    /// Inserts the item with this hash; returns whether any bit was newly set.
    fn insert(&mut self, hash: Hash128) -> bool;
    /// Calls `visit` with the index and the value of each word that may have bits of the item with this hash.
    fn words_of(&self, hash: Hash128, visit: &mut dyn FnMut(usize, u64));
    /// Undoes insertions: restores words of the bitmap and the number of items. `words` has the index and the value of
    /// each word.
    fn put_back(&mut self, words: &[(usize, u64)], num_items: u64) {
        let store = self.store_mut();
        store.bitmap.put_back(words);
        store.num_items = num_items;
    }
    /// Undoes insertions: takes the bits and the number of items of `earlier`, a copy of this sub-filter. The bits stay
    /// where they are in memory.
    fn restore(&mut self, earlier: Self) {
        let (store, earlier) = (self.store_mut(), earlier.store());
        store.bitmap.restore(&earlier.bitmap);
        store.num_items = earlier.num_items;
    }
    /// Looks up the hashes whose bits are set in the mask `pending`. Returns the mask of the hashes that may have been
    /// inserted.
    fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks;
    /// Inserts the hashes whose bits are set in the mask `pending`, in order. Returns the mask of the hashes that set a
    /// bit.
    fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks;

    /// Whether any of `sub_filters` may contain the item of this hash.
    fn look_up(sub_filters: &[Self], hash: Hash128) -> bool {
        // Newest first: it is the largest, so it most likely holds a present item.
        sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
    }
    /// Whether the caller should [prefetch](Self::prefetch) what it looks up or inserts. A layout can prefetch by
    /// itself instead.
    fn is_far(_sub_filters: &[Self]) -> bool {
        false
    }
    /// Prefetches what [`Self::screen_chunk`] reads first of the hashes in the mask `_pending`. With a single
    /// sub-filter and `Expected::Present`, these are all their bits, which [`Self::insert_chunk`] needs, too.
    fn prefetch(_sub_filters: &[Self], _hashes: &[Hash128], _pending: Marks, _expected: Expected) {}
    /// The first step of a look-up: looks for the hashes, at most 64, in all `sub_filters`. A layout can leave some
    /// undecided, and prefetch bits that the second step reads. `_expected` is a hint: a wrong hint costs time but
    /// changes no answer.
    fn screen_chunk(sub_filters: &[Self], hashes: &[Hash128], _expected: Expected) -> Screened {
        let (all, mut found) = (first_marks(hashes.len()), 0);
        for sub_filter in sub_filters.iter().rev() {
            let pending = all & !found;
            if pending == 0 {
                break;
            }
            found |= sub_filter.look_up_chunk(hashes, pending);
        }
        Screened::found(found)
    }
    /// The second step of a look-up: returns the mask of the hashes that any of `_sub_filters` may contain.
    fn resolve_chunk(_sub_filters: &[Self], _hashes: &[Hash128], screened: &Screened) -> Marks {
        screened.found
    }

    /// Checks that equal bits of both sub-filters represent equal items.
    fn check_mergeable(&self, other: &Self) -> Result<(), Error>;
    /// Becomes the union with `other`; returns whether any bit was newly set.
    fn union_with(&mut self, other: &Self) -> bool {
        self.store_mut().bitmap.union_with(&other.store().bitmap)
    }
    /// The number of set bits in the union with mergeable `others`.
    fn count_union<'a>(&'a self, others: impl Iterator<Item = &'a Self> + Clone + Sync) -> u64 {
        self.store().bitmap.count_union(others.map(|other| &other.store().bitmap))
    }
    /// The maximum-likelihood estimate of the number of items from the number of set bits.
    fn estimate_items(&self, set_bits: u64) -> f64;
    /// The estimated false-positive rate with `set_bits` set bits.
    fn rate_with(&self, set_bits: u64) -> f64;

    /// The sum of the false-positive rates of all sub-filters that may follow the first `len` of the chain that starts
    /// with `self`. A union must reserve this sum for its growth. It is 0 if the filter does not scale.
    fn rate_to_come(&self, len: usize) -> f64;

    /// Empties the sub-filter, in place.
    fn clear(&mut self) {
        let store = self.store_mut();
        store.bitmap.clear();
        store.num_items = 0;
    }
    /// Lets `f` move the bitmap to another place in memory.
    fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {
        self.store_mut().bitmap.relocate(f);
    }
    /// Calls `visit` with the layout of every heap allocation that the sub-filter owns.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(self.store().bitmap.heap_layout());
        own_layout(&self.store().spec).into_iter().for_each(visit);
    }
}

/// Checks that a sub-filter counts no more items than it has bits: each counted item has set at least one.
///
/// # Errors
/// [`Error::Corrupt`].
pub(super) fn check_items(num_items: u64, num_bits: u64) -> Result<(), Error> {
    Error::check_field(num_items <= num_bits, "num_items", format_args!("at most {num_bits}, one a bit"), num_items)
}

/// A Bloom filter that grows. Items are added to the newest sub-filter; the filter holds an item if any sub-filter
/// does. The two kinds are `LineFilter` and `ClassicFilter`.
///
/// The first sub-filter stores the parameters and the rules of growth. So a small filter, of which a server may hold
/// millions, consists of this sub-filter alone.
///
/// Invariants: the chain has at least one sub-filter, and only one if it does not scale. In a chain that grew here, all
/// sub-filters except the newest are full; loading does not check this.
#[derive(Debug, PartialEq)]
pub struct Chain<S: SubFilter> {
    pub(super) sub_filters: SubFilters<S>,
}

/// The bytes that a sub-filter takes in a list: the struct and its bitmap.
pub(in crate::bloom) fn taken_bytes<S: SubFilter>(sub_filter: &S) -> u64 {
    size_of::<S>() as u64 + sub_filter.as_bytes().len() as u64
}

impl<S: SubFilter> Chain<S> {
    /// A chain of one sub-filter.
    pub(super) fn of(first: S) -> Self {
        Chain { sub_filters: SubFilters::One(first) }
    }

    /// A chain of several sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `sub_filters` is empty.
    pub(super) fn of_all(sub_filters: Vec<S>) -> Result<Self, Error> {
        let none = || Error::corrupt("number of sub-filters", "at least 1", 0);
        Ok(Chain { sub_filters: SubFilters::from_vec(sub_filters).ok_or_else(none)? })
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Chain::of_all(try_clone_all(self.sub_filters())?)
    }

    /// An empty filter with the same parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(Chain::of(self.sub_filters.first().new_like(0, limit)?))
    }

    /// Adds an item. Returns whether it was new; `false` means that the filter already answered that it may contain it.
    ///
    /// # Errors
    /// A full filter rejects a new item. The error is [`Error::Full`] if the filter does not scale, else the error that
    /// keeps the filter from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is
    /// changed then.
    #[inline]
    pub fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        match &mut self.sub_filters {
            // `insert` itself returns whether the item was new. So a single sub-filter with room needs no look-up
            // first.
            SubFilters::One(only) if !only.is_full() => Ok(only.insert(S::hash(item, only.params().seed))),
            _ => self.add_to_chain(item, limit),
        }
    }

    /// Adds an item like [`Self::add`], in a chain of any length. Out of line, so that the code for one sub-filter
    /// stays small.
    #[inline(never)]
    fn add_to_chain(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let hash = self.hash(item);
        if S::look_up(self.sub_filters(), hash) {
            return Ok(false);
        }
        if self.sub_filters().last().is_none_or(S::is_full) {
            self.grow(limit)?;
        }
        Ok(self.sub_filters_mut().last_mut().is_some_and(|newest| newest.insert(hash)))
    }

    /// Adds items in order, with the same outcome as a call of [`Self::add`] for each. Many items are added faster,
    /// since their cache misses overlap. `added` is called for each item with whether it was new.
    ///
    /// # Errors
    /// The errors of [`Self::add`], for the first rejected item. The items before this item are added, and `added` was
    /// called for each of them.
    pub fn add_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let seed = self.params().seed;
        self.add_hashes(items.into_iter().map(|item| S::hash(item, seed)), limit, added)
    }

    /// Adds the items with these hashes, otherwise like [`Self::add_all`].
    pub(super) fn add_hashes(
        &mut self,
        hashes: impl Iterator<Item = Hash128>,
        limit: &impl SizeLimit,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let add = |chain: &mut Self, chunk: &[Hash128]| chain.add_chunk(chunk, limit);
        add_chunks(self, hashes, Self::prefetch_addition, add, added)
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    #[inline]
    pub fn may_contain(&self, item: &[u8]) -> bool {
        match &self.sub_filters {
            SubFilters::One(only) => only.may_contain(S::hash(item, only.params().seed)),
            SubFilters::Many(all) => S::look_up(all, self.hash(item)),
        }
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than one call
    /// after another.
    pub fn may_contain_all<'a>(&self, items: impl IntoIterator<Item = &'a [u8]>, mut found: impl FnMut(bool)) {
        let seed = self.params().seed;
        let hashes = items.into_iter().map(|item| S::hash(item, seed));
        look_up_chunks(self.sub_filters(), hashes, |_, is_found| found(is_found));
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for a classic filter, rate and
    /// capacity follow from the first sub-filter, and the seed is 0.
    pub fn params(&self) -> &Params {
        self.sub_filters.first().params()
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

    /// The number of added items that were new. After a merge it is an estimate.
    #[inline]
    pub fn num_items(&self) -> u64 {
        num_items(self.sub_filters())
    }

    /// Whether the filter is in the state of a new filter: clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        matches!(&self.sub_filters, SubFilters::One(only) if only.num_items() == 0 && only.set_bits() == 0)
    }

    /// The number of items that all sub-filters together are sized for.
    pub fn capacity(&self) -> u64 {
        self.sub_filters().iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.capacity()))
    }

    /// A lower bound of the number of new items that fit before the filter grows or rejects them. Known items take no
    /// room.
    #[inline]
    pub fn room(&self) -> u64 {
        self.sub_filters().last().map_or(0, S::room)
    }

    /// Whether the newest sub-filter has room for `additions` new items, and can count each of them.
    #[inline]
    pub fn has_room_for(&self, additions: u64) -> bool {
        let fits = |newest: &S| if additions == 1 { !newest.is_full() } else { newest.room() >= additions };
        // The count of a classic sub-filter ends at its number of bits, which at high error rates may be below its
        // capacity.
        let counts = |newest: &S| newest.num_items().saturating_add(additions) <= newest.num_bits();
        self.sub_filters().last().is_some_and(|newest| fits(newest) && counts(newest))
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        S::size_bytes(self.sub_filters())
    }

    /// The share of set bits.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.sub_filters())
    }

    /// The current false-positive rate, estimated from the set bits.
    pub fn false_positive_rate(&self) -> f64 {
        false_positive_rate(self.sub_filters())
    }

    /// Calls `visit` with the layout of every heap allocation that the filter owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.sub_filters.list_layout().into_iter().for_each(&mut *visit);
        self.sub_filters().iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
    }

    #[inline(always)]
    fn hash(&self, item: &[u8]) -> Hash128 {
        S::hash(item, self.params().seed)
    }

    /// Prefetches what [`Self::add_chunk`] reads first.
    fn prefetch_addition(&self, hashes: &[Hash128]) {
        // A single sub-filter is changed at once; several are looked up first.
        let expected = if self.sub_filters().len() == 1 { Expected::Present } else { Expected::Absent };
        prefetch(self.sub_filters(), hashes, expected);
    }

    /// Appends a new, empty sub-filter to the chain.
    pub(super) fn grow(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        let all = self.sub_filters();
        let len = all.len();
        let expected = "at most 1024, as a larger capacity or expansion needs";
        Error::check_range(len < MAX_SUB_FILTERS, Parameter::SubFilters, expected, len + 1)?;
        let held_bytes = self.size_bytes().saturating_add(self.sub_filters.bytes_to_grow());
        let next = all[0].next(&all[len - 1], len as u64, held_bytes, limit)?;
        self.sub_filters.append(once(next))
    }

    /// Adds the items of at most `CHUNK` hashes, in order, up to the first that fails.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> (AddedChunk, Result<(), Error>) {
        // Only an insertion changes the answers of a sub-filter. So each item is looked up once here, and again only in
        // sub-filters that took items of this chunk. Where all fit into a single sub-filter, inserting them says as
        // much.
        let fit_into_one = self.sub_filters().len() == 1 && self.room() >= hashes.len() as u64;
        let known = if fit_into_one { 0 } else { look_up_chunk(self.sub_filters(), hashes, Expected::Absent) };
        let (mut new, mut left) = (0, first_marks(hashes.len()) & !known);
        let newest = &self.sub_filters()[self.sub_filters().len() - 1..];
        if !fit_into_one && S::is_far(newest) {
            // The look-up read one line of most items, in each sub-filter.
            S::prefetch(newest, hashes, left, Expected::Present);
        }
        while left != 0 {
            if self.room() == 0
                && let Err(error) = self.grow(limit)
            {
                return (AddedChunk { new, handled: left.trailing_zeros() as usize }, Err(error));
            }
            // `fitting` has at most the hashes that fit if all are new, so the room need not be checked after each
            // hash. A new sub-filter takes at least one, as in `add`.
            let fitting = first_marked(left, self.room().max(1));
            left ^= fitting;
            let Some(newest) = self.sub_filters_mut().last_mut() else { break };
            // `insert_chunk` does not report duplicates as new, nor items whose bits earlier items of the chunk set.
            new |= newest.insert_chunk(hashes, fitting);
            if newest.is_full() {
                left &= !newest.look_up_chunk(hashes, left);
            }
        }
        (AddedChunk { new, handled: hashes.len() }, Ok(()))
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
pub(super) fn prefetch<S: SubFilter>(sub_filters: &[S], hashes: &[Hash128], expected: Expected) {
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

/// Adds the hashes to `value` in chunks, in order, up to the first error. Calls `added` for each item that was handled.
/// A chunk is added right after it is prefetched. While its answers are passed on, the next chunk is hashed.
pub(super) fn add_chunks<T>(
    value: &mut T,
    hashes: impl Iterator<Item = Hash128>,
    prefetch: impl Fn(&T, &[Hash128]),
    mut add: impl FnMut(&mut T, &[Hash128]) -> (AddedChunk, Result<(), Error>),
    mut added: impl FnMut(bool),
) -> Result<(), Error> {
    let mut hashes = hashes.fuse();
    let [chunk, next] = &mut [const { Chunk::new_const() }; 2];
    let (mut chunk, mut next) = (chunk, next);
    fill(chunk, &mut hashes);
    while !chunk.is_empty() {
        prefetch(value, chunk);
        let (AddedChunk { new, handled }, result) = add(value, chunk);
        fill_beside(next, &mut hashes, (0..handled).map(|i| added(new >> i & 1 == 1)));
        result?;
        (chunk, next) = (next, chunk);
    }
    Ok(())
}

/// Copies of the sub-filters.
pub(crate) fn try_clone_all<S: SubFilter>(sub_filters: &[S]) -> Result<Vec<S>, Error> {
    try_collect_ok(sub_filters.len(), sub_filters.iter().map(S::try_clone))
}

/// The number of items that these sub-filters count.
#[inline]
pub(super) fn num_items(sub_filters: &[impl SubFilter]) -> u64 {
    sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items()))
}

/// The share of set bits in these sub-filters; 0 without a sub-filter.
pub(super) fn fill_ratio(sub_filters: &[impl SubFilter]) -> f64 {
    // A sub-filter from elsewhere may have bits set that no item can set.
    let (set, all) = sub_filters.iter().fold((0.0, 0.0), |(set, all), sub_filter| {
        let num_bits = sub_filter.num_bits();
        (set + sub_filter.set_bits().min(num_bits) as f64, all + num_bits as f64)
    });
    if all > 0.0 { set / all } else { 0.0 }
}

/// The false-positive rate of a filter with these sub-filters, estimated from their set bits.
pub(super) fn false_positive_rate(sub_filters: &[impl SubFilter]) -> f64 {
    // Without a sub-filter the rate may come out as -0.0; `abs` makes it 0.0.
    chain_rate(sub_filters.iter().map(|sub_filter| sub_filter.rate_with(sub_filter.set_bits()))).abs()
}

/// The chance that any of several independent sub-filters errs, from the chance of each.
pub(super) fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // In logarithms: 1 - (1 - r) would lose rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

#[cfg(test)]
mod tests;
