//! One filter of a chain: the trait of both layouts, and what they have in common.

use std::alloc::Layout;
use std::fmt;

use super::bitmap::{Line, LineBitmap};
use super::params::Params;
use crate::error::Error;
use crate::hash::{CHUNK, Hash128, Marks, first_marks};
use crate::live::sealed::Sealed;
use crate::shared::{Shared, own_layout};
use crate::size_limit::{SizeLimit, array_bytes};

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
    /// An empty sub-filter that is the first of a chain with these parameters. `limit` is asked whether a value of
    /// `held_bytes` may grow by it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    fn first(params: &Params, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error>;
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
    /// The estimated false-positive rate with `num_items` items.
    fn rate_of(&self, num_items: f64) -> f64;
    /// The estimated false-positive rate with `set_bits` set bits.
    fn rate_with(&self, set_bits: u64) -> f64 {
        self.rate_of(self.estimate_items(set_bits))
    }

    /// The sum of the false-positive rates of all sub-filters that may follow the first `len` of the chain that starts
    /// with `self`. A union must reserve this sum for its growth. It is 0 if the filter does not scale.
    fn rate_to_come(&self, len: usize) -> f64;

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

/// The bits of a sub-filter, the number of items that they represent, and the parameters shared with equal sub-filters.
///
/// Invariant: `num_items` is at most the number of bits that an item can set, since each counted item sets at least
/// one. So the sum over all sub-filters that fit in memory does not overflow.
#[derive(Debug, PartialEq)]
pub struct Store<P> {
    pub(in crate::bloom) bitmap: LineBitmap,
    pub(in crate::bloom) num_items: u64,
    pub(in crate::bloom) spec: Shared<P>,
}

impl<P> Store<P> {
    /// An empty store of `num_lines` lines. `limit` is asked whether a value of `held_bytes` may grow by the store.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`].
    pub(in crate::bloom) fn new(
        spec: Shared<P>,
        num_lines: u64,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        limit.check(held_bytes, Self::bytes_for(num_lines))?;
        Ok(Store { spec, num_items: 0, bitmap: LineBitmap::zeroed(num_lines)? })
    }

    /// Bytes of a [`Store`] with `num_lines` lines, without its shared parameters.
    pub(in crate::bloom) fn bytes_for(num_lines: u64) -> u64 {
        array_bytes::<Line>(num_lines).saturating_add(size_of::<Self>() as u64)
    }

    /// A copy of the store.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::bloom) fn try_clone(&self) -> Result<Self, Error> {
        Ok(Store { spec: self.spec.clone(), num_items: self.num_items, bitmap: self.bitmap.try_clone()? })
    }
}

/// The expected answer for most items of a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// Most items are absent.
    Absent,
    /// Most items are present.
    Present,
}

/// The outcome of the first step of a look-up of a chunk.
#[derive(Debug)]
pub struct Screened {
    /// The mask of the hashes that were found.
    pub(in crate::bloom) found: Marks,
    /// The mask of the hashes that are undecided. Only the layout `lines` leaves some.
    pub(in crate::bloom) open: Marks,
    /// The number of sub-filters, the oldest, that may contain undecided hashes.
    pub(in crate::bloom) num_oldest: usize,
    /// For each undecided hash, the mask of those sub-filters that may contain it. Not used for a single one.
    pub(in crate::bloom) candidates: [u8; CHUNK],
}

impl Screened {
    /// A look-up that left nothing undecided.
    pub(in crate::bloom) fn found(found: Marks) -> Self {
        Screened { found, open: 0, candidates: [0; CHUNK], num_oldest: 0 }
    }
}
