//! One filter of a chain: its bits and counts, and the trait [`Placement`] for everything that differs between the two
//! layouts.

use std::alloc::Layout;
use std::fmt;

use super::bitmap::{Line, LineBitmap};
use super::params::Params;
use crate::error::Error;
use crate::hash::{CHUNK, Chunk, Hash128, Marks, fill, fill_beside, first_marks};
use crate::live::sealed::Sealed;
use crate::shared::{Shared, own_layout};
use crate::size_limit::{SizeLimit, array_bytes, try_collect_ok};

/// Where the bits of an item are in a bitmap, and everything else in which the two layouts differ. The implementing
/// type holds the parameters that only its layout has. No type of another crate can implement the trait.
///
/// A method with a parameter `pending` takes at most 64 hashes, and handles only the hashes whose bits are set in this
/// mask.
pub trait Placement: Sealed + fmt::Debug + PartialEq + Sized + Send + Sync + 'static {
    /// Bytes of a chain without its sub-filters, as `BF.INFO` reports them.
    const CHAIN_BYTES: u64;

    /// Bytes of a sub-filter without its bitmap, as `BF.INFO` reports them.
    const SUB_FILTER_BYTES: u64;

    /// Bytes that `BF.INFO` does not report for a single sub-filter, since it is stored in the chain itself.
    const IN_PLACE_BYTES: u64;

    /// The hash of an item.
    fn hash(item: &[u8], seed: u64) -> Hash128;

    /// The first sub-filter of a chain with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    fn first(params: &Params) -> Result<Shared<Spec<Self>>, Error>;

    /// The sub-filter that follows `newest`: number `index` of the chain that starts with `first`.
    ///
    /// # Errors
    /// [`Error::Full`] for a filter that does not scale, [`Error::OutOfRange`] when no such sub-filter can exist.
    fn next(first: &Spec<Self>, newest: &Spec<Self>, index: u64) -> Result<Shared<Spec<Self>>, Error>;

    /// Whether the item of this hash may have been inserted.
    fn contains(spec: &Spec<Self>, lines: &[Line], hash: Hash128) -> bool;

    /// Looks up the hashes in the mask `pending`. Returns the mask of the hashes that may have been inserted.
    fn contains_chunk(spec: &Spec<Self>, lines: &[Line], hashes: &[Hash128], pending: Marks) -> Marks;

    /// Sets the bits of this hash. Returns whether any of them was free, and how many were.
    fn insert(spec: &Spec<Self>, lines: &mut [Line], hash: Hash128) -> (bool, u64);

    /// Sets the bits of the hashes in the mask `pending`, in order. Returns the mask of the hashes that set a bit, and
    /// the number of bits that were free.
    fn insert_chunk(spec: &Spec<Self>, lines: &mut [Line], hashes: &[Hash128], pending: Marks) -> (Marks, u64);

    /// Calls `visit` with the index of each word that may have bits of the item with this hash.
    fn words_of(spec: &Spec<Self>, hash: Hash128, visit: &mut dyn FnMut(usize));

    /// Whether any of `sub_filters` may contain the item of this hash.
    fn look_up(sub_filters: &[SubFilter<Self>], hash: Hash128) -> bool;

    /// Prefetches the bits that [`Self::screen_chunk`] reads first for the hashes in the mask `_pending`, unless they
    /// are in a cache. With a single sub-filter and `Expected::Present`, these are all bits of the hashes.
    /// [`Self::insert_chunk`] needs them, too. A layout can prefetch in its other methods instead.
    fn prefetch(_sub_filters: &[SubFilter<Self>], _hashes: &[Hash128], _pending: Marks, _expected: Expected) {}

    /// The first step of a look-up: looks for the hashes, at most 64, in all `sub_filters`. A layout can leave some
    /// hashes undecided, and prefetch the bits that the second step reads for them. `_expected` is a hint: a wrong hint
    /// costs time but changes no answer.
    fn screen_chunk(sub_filters: &[SubFilter<Self>], hashes: &[Hash128], _expected: Expected) -> Screened {
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
    fn resolve_chunk(_sub_filters: &[SubFilter<Self>], _hashes: &[Hash128], screened: &Screened) -> Marks {
        screened.found
    }

    /// Checks that equal bits of two sub-filters represent equal items.
    ///
    /// # Errors
    /// [`Error::Incompatible`].
    fn check_mergeable(ours: &Spec<Self>, theirs: &Spec<Self>) -> Result<(), Error>;

    /// The maximum-likelihood estimate of the number of items from the number of set bits.
    fn estimate_items(spec: &Spec<Self>, set_bits: u64) -> f64;

    /// The estimated false-positive rate of a sub-filter with `num_items` items.
    fn rate_of(spec: &Spec<Self>, num_items: f64) -> f64;

    /// The estimated false-positive rate of a sub-filter with `set_bits` set bits.
    fn rate_with(spec: &Spec<Self>, set_bits: u64) -> f64 {
        Self::rate_of(spec, Self::estimate_items(spec, set_bits))
    }

    /// The sum of the false-positive rates of all sub-filters that may follow the first `len` of the chain that starts
    /// with `first`. A union must reserve this sum for its growth. It is 0 if the filter does not scale.
    fn rate_to_come(first: &Spec<Self>, len: usize) -> f64;
}

/// The parameters of a chain, and what is derived from them for one of its sub-filters.
#[derive(Debug, PartialEq)]
pub struct Spec<L> {
    /// The parameters of the chain to which the sub-filter belongs.
    pub(in crate::bloom) params: Params,
    /// The number of items that the sub-filter is sized for.
    pub(in crate::bloom) capacity: u64,
    /// The false-positive rate that the sub-filter may have at its capacity.
    pub(in crate::bloom) error_rate: f64,
    /// The number of bits that an item sets; some may coincide.
    pub(in crate::bloom) hashes: u32,
    /// The number of bits of the bitmap that items can set.
    pub(crate) num_bits: u64,
    /// Bytes of the bitmap.
    pub(in crate::bloom) num_bytes: u64,
    /// The number of set bits with which the sub-filter is full; `u64::MAX` if the number of items alone decides.
    pub(in crate::bloom) full_bits: u64,
    /// The parameters that only this layout has.
    pub(in crate::bloom) own: L,
}

impl<L> Spec<L> {
    /// Bytes of a sub-filter and its bitmap.
    pub(crate) fn sub_filter_bytes(&self) -> u64 {
        array_bytes::<Line>(self.num_lines()).saturating_add(size_of::<SubFilter<L>>() as u64)
    }

    pub(in crate::bloom) fn num_lines(&self) -> u64 {
        self.num_bytes.div_ceil(size_of::<Line>() as u64)
    }
}

/// Checks that a sub-filter counts no more items than it has bits, since each counted item has set at least one bit.
///
/// # Errors
/// [`Error::Corrupt`].
pub(super) fn check_items(num_items: u64, num_bits: u64) -> Result<(), Error> {
    Error::check_field(num_items <= num_bits, "num_items", format_args!("at most {num_bits}, one a bit"), num_items)
}

/// A Bloom filter of a fixed size, in one of the two layouts. It takes hashes instead of items.
///
/// Invariants: the bitmap has just enough lines for the bytes that `spec` gives, and bits beyond those are 0.
/// `num_items` is at most the number of bits of the bitmap, since an item counts only if it sets a new bit. So the
/// sum over all sub-filters that fit in memory does not overflow.
#[derive(Debug, PartialEq)]
pub struct SubFilter<L> {
    pub(in crate::bloom) bitmap: LineBitmap,
    pub(in crate::bloom) num_items: u64,
    pub(in crate::bloom) spec: Shared<Spec<L>>,
}

impl<L: Placement> SubFilter<L> {
    /// An empty sub-filter. `limit` is asked whether a value of `held_bytes` may grow by the sub-filter.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`].
    pub(crate) fn from_spec(spec: Shared<Spec<L>>, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        limit.check(held_bytes, spec.sub_filter_bytes())?;
        Ok(SubFilter { bitmap: LineBitmap::zeroed(spec.num_lines())?, num_items: 0, spec })
    }

    /// A copy of the sub-filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(SubFilter { bitmap: self.bitmap.try_clone()?, num_items: self.num_items, spec: self.spec.clone() })
    }

    #[inline]
    pub(in crate::bloom) fn lines(&self) -> &[Line] {
        self.bitmap.lines()
    }

    /// The number of items that the sub-filter is sized for.
    pub fn capacity(&self) -> u64 {
        self.spec.capacity
    }

    /// The false-positive rate that the sub-filter may have at its capacity.
    pub fn error_rate(&self) -> f64 {
        self.spec.error_rate
    }

    /// The number of items that the sub-filter counts.
    #[inline]
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// Sets the number of items that the bits represent. Loading and unions call this method.
    pub(crate) fn set_num_items(&mut self, num_items: u64) -> Result<(), Error> {
        check_items(num_items, self.num_bits())?;
        self.num_items = num_items;
        Ok(())
    }

    /// The number of bits of the bitmap that items can set.
    #[inline]
    pub fn num_bits(&self) -> u64 {
        self.spec.num_bits
    }

    /// The number of set bits.
    #[inline]
    pub fn set_bits(&self) -> u64 {
        self.bitmap.set_bits()
    }

    /// The bytes of the bitmap. They are in memory, so a `usize` holds their number.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bitmap.as_bytes()[..self.spec.num_bytes as usize]
    }

    /// Writes `bytes` at byte `offset` of the bitmap, where no bit may be set yet. Loading calls this method.
    pub(crate) fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bitmap.append_bytes(offset, bytes, self.spec.num_bytes as usize)
    }

    /// The number of bits that an item sets; some may coincide.
    pub fn hashes(&self) -> u32 {
        self.spec.hashes
    }

    /// Whether the sub-filter is full, so that new items are not added to it.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.num_items >= self.spec.capacity || self.set_bits() >= self.spec.full_bits
    }

    /// A lower bound of the number of new items that fit; 0 if the sub-filter is full.
    pub(in crate::bloom) fn room(&self) -> u64 {
        let items = self.spec.capacity.saturating_sub(self.num_items);
        if self.spec.full_bits == u64::MAX {
            return items;
        }
        items.min(self.spec.full_bits.saturating_sub(self.set_bits()).div_ceil(self.spec.hashes.into()))
    }

    /// Whether a sub-filter with `num_items` items and `set_bits` set bits is within its capacity.
    pub(in crate::bloom) fn holds(&self, num_items: u64, set_bits: u64) -> bool {
        // The last item that fits may set more bits than were missing.
        num_items <= self.spec.capacity && set_bits < self.spec.full_bits.saturating_add(self.spec.hashes.into())
    }

    /// Whether the item of this hash may have been inserted.
    #[inline(always)]
    pub fn may_contain(&self, hash: Hash128) -> bool {
        L::contains(&self.spec, self.lines(), hash)
    }

    /// Does the same as [`Self::may_contain`] for the hashes in the mask `pending`. Returns the mask of the hashes that
    /// were found.
    pub(in crate::bloom) fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks {
        L::contains_chunk(&self.spec, self.lines(), hashes, pending)
    }

    /// Inserts the item with this hash; returns whether any bit was newly set.
    #[inline]
    pub fn insert(&mut self, hash: Hash128) -> bool {
        let (lines, set_bits) = self.bitmap.lines_mut();
        let (is_new, free) = L::insert(&self.spec, lines, hash);
        *set_bits += free;
        self.num_items = (self.num_items + u64::from(is_new)).min(self.spec.num_bits);
        is_new
    }

    /// Inserts the hashes in the mask `pending`, in order. Returns the mask of the hashes that set a bit.
    pub(in crate::bloom) fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks {
        let (lines, set_bits) = self.bitmap.lines_mut();
        let (new, free) = L::insert_chunk(&self.spec, lines, hashes, pending);
        *set_bits += free;
        self.num_items = (self.num_items + u64::from(new.count_ones())).min(self.spec.num_bits);
        new
    }

    /// The estimated number of items.
    pub(in crate::bloom) fn estimate_items(&self) -> f64 {
        L::estimate_items(&self.spec, self.set_bits())
    }

    /// The estimated false-positive rate.
    pub fn false_positive_rate(&self) -> f64 {
        L::rate_with(&self.spec, self.set_bits())
    }

    /// Calls `visit` with the layout of every heap allocation that the sub-filter owns.
    pub(crate) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(self.bitmap.heap_layout());
        own_layout(&self.spec).into_iter().for_each(visit);
    }
}

/// Copies of the sub-filters.
pub(in crate::bloom) fn try_clone_all<L: Placement>(sub_filters: &[SubFilter<L>]) -> Result<Vec<SubFilter<L>>, Error> {
    try_collect_ok(sub_filters.len(), sub_filters.iter().map(SubFilter::try_clone))
}

/// The bytes of these sub-filters in a chain, as `BF.INFO` reports them.
pub(in crate::bloom) fn reported_bytes<L: Placement>(sub_filters: &[SubFilter<L>]) -> u64 {
    let bytes = sub_filters.iter().map(|sub_filter| L::SUB_FILTER_BYTES + sub_filter.spec.num_bytes);
    bytes.fold(0, u64::saturating_add)
}

/// The number of items that these sub-filters count.
#[inline]
pub(in crate::bloom) fn num_items<L: Placement>(sub_filters: &[SubFilter<L>]) -> u64 {
    sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items))
}

/// Which answer is expected for most items of a chunk.
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
    /// For each undecided hash, the mask of those sub-filters that may contain it. Not used if there is a single
    /// sub-filter.
    pub(in crate::bloom) candidates: [u8; CHUNK],
}

impl Screened {
    /// A look-up that left nothing undecided.
    pub(in crate::bloom) fn found(found: Marks) -> Self {
        Screened { found, open: 0, candidates: [0; CHUNK], num_oldest: 0 }
    }
}

/// Returns the mask of the hashes that any of `sub_filters` may contain.
pub(in crate::bloom) fn look_up_chunk<L: Placement>(
    sub_filters: &[SubFilter<L>],
    hashes: &[Hash128],
    expected: Expected,
) -> Marks {
    L::resolve_chunk(sub_filters, hashes, &screen_chunk(sub_filters, hashes, expected))
}

/// Does the same as [`Placement::screen_chunk`]. A single hash is looked up by [`Placement::look_up`], which is faster
/// for one hash.
fn screen_chunk<L: Placement>(sub_filters: &[SubFilter<L>], hashes: &[Hash128], expected: Expected) -> Screened {
    match hashes {
        [hash] => Screened::found(L::look_up(sub_filters, *hash).into()),
        _ => L::screen_chunk(sub_filters, hashes, expected),
    }
}

/// Calls `found` with each hash and whether any of `sub_filters` may contain it, in order.
///
/// Each round works on three chunks. First, the bits of the present chunk are prefetched, unless they are in a cache.
/// Then the undecided hashes of the previous chunk are resolved; their bits were prefetched when that chunk was
/// screened. The answers of the previous chunk are passed on, and the next chunk is hashed, an item at a time, so that
/// a processor can overlap the two. Finally the present chunk is screened. All prefetches of a chunk follow each other
/// closely, because a processor then looks up the addresses of several pages at a time.
pub(in crate::bloom) fn look_up_chunks<L: Placement>(
    sub_filters: &[SubFilter<L>],
    hashes: impl Iterator<Item = Hash128>,
    mut found: impl FnMut(Hash128, bool),
) {
    let (mut hashes, mut expected, mut screened) = (hashes.fuse(), Expected::Absent, Screened::found(0));
    let [before, chunk, next] = &mut [const { Chunk::new_const() }; 3];
    let (mut before, mut chunk, mut next) = (before, chunk, next);
    let mut answer = |chunk: &Chunk, marks: Marks, i: usize| found(chunk[i], marks >> i & 1 == 1);
    fill(chunk, &mut hashes);
    while !chunk.is_empty() {
        L::prefetch(sub_filters, chunk, first_marks(chunk.len()), expected);
        let marks = L::resolve_chunk(sub_filters, before, &screened);
        fill_beside(next, &mut hashes, (0..before.len()).map(|i| answer(before, marks, i)));
        screened = screen_chunk(sub_filters, chunk, expected);
        // The next chunk is most likely like this one. An undecided item counts as found, because where many are
        // undecided, most are found.
        let (likely, half) = (screened.found | screened.open, chunk.len() / 2);
        expected = if likely.count_ones() as usize > half { Expected::Present } else { Expected::Absent };
        (before, chunk, next) = (chunk, next, before);
    }
    let marks = L::resolve_chunk(sub_filters, before, &screened);
    (0..before.len()).for_each(|i| answer(before, marks, i));
}
