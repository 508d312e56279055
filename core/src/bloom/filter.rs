//! A Bloom filter in the cache-line layout or in RedisBloom's.

use std::alloc::Layout;

use super::classic::ClassicFilter;
use super::lines::LineFilter;
use super::lines::sizing::Geometry;
use super::lines::sub_filter::LineSubFilter;
use super::params::{BitLayout, Params};
use super::sub_filter::SubFilter;
use super::windowing::Windowing;
use crate::error::Error;
use crate::heap::{Mover, OnHeap};
use crate::size_limit::SizeLimit;
use crate::window::Time;

/// A Bloom filter that grows, in either layout. The [module](crate::bloom) describes its guarantees.
#[derive(Debug, PartialEq)]
pub struct BloomFilter {
    pub(crate) chain: EitherChain,
}

/// The size of the struct matters because a server may hold millions of small filters: it fits in a cache line.
const _: () = assert!(size_of::<BloomFilter>() == 56);

/// A chain of either layout.
#[derive(Debug, PartialEq)]
pub enum EitherChain {
    /// A filter in the cache-line layout, the only one that can have a window.
    Lines(LineFilter),
    /// A filter in RedisBloom's layout.
    Classic(ClassicFilter),
}

/// Parameters, size and fill of a sub-filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SubFilterInfo {
    /// The number of items that the sub-filter is sized for.
    pub capacity: u64,
    /// The number of insertions that set a bit; after a merge an estimate.
    pub num_items: u64,
    /// The error rate of the sub-filter when full.
    pub error_rate: f64,
    /// Bytes of the bitmap.
    pub num_bytes: u64,
    /// Bits of the bitmap.
    pub num_bits: u64,
    /// The number of bits that an item sets; some may coincide.
    pub hashes: u32,
    /// The number of set bits.
    pub set_bits: u64,
    /// The geometry of the cache-line layout; `None` in the classic layout.
    pub geometry: Option<Geometry>,
}

/// Calls a method of the chain, whatever its layout.
macro_rules! either {
    ($chain:expr, $filter:ident => $call:expr) => {
        match $chain {
            EitherChain::Lines($filter) => $call,
            EitherChain::Classic($filter) => $call,
        }
    };
}

pub(crate) use either;

impl BloomFilter {
    /// An empty filter with this layout and these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(layout: BitLayout, params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(match layout {
            BitLayout::Lines => LineFilter::new(params, limit)?.into(),
            BitLayout::Classic => ClassicFilter::new(params, limit)?.into(),
        })
    }

    /// The layout of the filter.
    pub fn layout(&self) -> BitLayout {
        match self.chain {
            EitherChain::Lines(_) => BitLayout::Lines,
            EitherChain::Classic(_) => BitLayout::Classic,
        }
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(either!(&self.chain, filter => filter.try_clone()?.into()))
    }

    /// An empty filter with the same layout and parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(match &self.chain {
            EitherChain::Classic(filter) => filter.new_like(limit)?.into(),
            EitherChain::Lines(filter) => match (filter.windowing(), filter.newest_slice()) {
                (Some(&windowing), Some(newest)) => LineFilter::windowed(*filter.params(), windowing, newest, limit)?,
                _ => LineFilter::new(*filter.params(), limit)?,
            }
            .into(),
        })
    }

    /// An empty windowed filter whose newest slice is `newest_slice`. Methods without a time parameter answer as of the
    /// newest slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`, which is asked for the bytes
    /// of all slices at once.
    pub fn windowed(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        Ok(LineFilter::windowed(params, windowing, newest_slice, limit)?.into())
    }

    /// The window, if the filter has one.
    pub fn windowing(&self) -> Option<&Windowing> {
        either!(&self.chain, filter => filter.windowing())
    }

    /// A view of the filter at this time.
    #[inline]
    pub fn at(&self, time: Time) -> Present<'_> {
        let reached = either!(&self.chain, filter => filter.windowing().zip(filter.newest_slice()));
        let slices_later = reached.map_or(0, |(windowing, newest)| windowing.window.present(newest, time) - newest);
        Present { filter: self, slices_later }
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        self.at(Time::Reached).may_contain(item)
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than one call
    /// after another. Some hundred items may be taken before the first answer.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        self.at(Time::Reached).may_contain_all(items, found);
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for a classic filter, rate and
    /// capacity follow from the first sub-filter, and the seed is 0.
    pub fn params(&self) -> &Params {
        either!(&self.chain, filter => filter.params())
    }

    /// The sub-filters, oldest first.
    pub fn sub_filters(&self) -> impl ExactSizeIterator<Item = SubFilterInfo> + '_ {
        let len = either!(&self.chain, filter => filter.sub_filters().len());
        (0..len).map(move |index| match &self.chain {
            EitherChain::Lines(filter) => info_of_lines(&filter.sub_filters()[index]),
            EitherChain::Classic(filter) => info(&filter.sub_filters()[index], None),
        })
    }

    /// The number of items that the filter holds: of added items, those that were new, without expired ones. After a
    /// merge it is an estimate.
    pub fn num_items(&self) -> u64 {
        self.at(Time::Reached).num_items()
    }

    /// Whether the filter is in the state of a new filter: clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        either!(&self.chain, filter => filter.is_empty())
    }

    /// The number of items that all sub-filters together are sized for; in a windowed filter, those of a window.
    pub fn capacity(&self) -> u64 {
        either!(&self.chain, filter => filter.capacity())
    }

    /// A lower bound of the number of new items that fit before the filter grows or rejects them. Known items take no
    /// room.
    pub fn room(&self) -> u64 {
        either!(&self.chain, filter => filter.room())
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        either!(&self.chain, filter => filter.size_bytes())
    }

    /// The share of set bits.
    pub fn fill_ratio(&self) -> f64 {
        self.at(Time::Reached).fill_ratio()
    }

    /// The current false-positive rate, estimated from the set bits.
    pub fn false_positive_rate(&self) -> f64 {
        self.at(Time::Reached).false_positive_rate()
    }

    pub(super) fn as_lines(&self) -> Option<&LineFilter> {
        if let EitherChain::Lines(filter) = &self.chain { Some(filter) } else { None }
    }

    pub(super) fn as_classic(&self) -> Option<&ClassicFilter> {
        if let EitherChain::Classic(filter) = &self.chain { Some(filter) } else { None }
    }
}

/// A view of a filter at a given time. The view ignores items that have expired by this time, and changes nothing.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
/// use rollcall_core::window::Time;
///
/// // Without a window it answers the same at any time.
/// let seen: BloomFilter = ["ann"].into_iter().collect();
/// assert!(seen.at(Time::At(1_800_000_000)).may_contain("ann"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    filter: &'a BloomFilter,
    slices_later: u64,
}

impl Present<'_> {
    /// The answer of [`BloomFilter::may_contain`] at the time of the view.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        let item = item.as_ref();
        either!(&self.filter.chain, filter => filter.may_contain(item, self.slices_later))
    }

    /// Calls `found` like [`BloomFilter::may_contain_all`], with the answers at the time of the view.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        let items = items.into_iter().map(AsRef::as_ref);
        either!(&self.filter.chain, filter => filter.may_contain_all(items, self.slices_later, found));
    }

    /// The result of [`BloomFilter::num_items`] at the time of the view.
    pub fn num_items(&self) -> u64 {
        either!(&self.filter.chain, filter => filter.num_items(self.slices_later))
    }

    /// The result of [`BloomFilter::fill_ratio`] at the time of the view.
    pub fn fill_ratio(&self) -> f64 {
        either!(&self.filter.chain, filter => filter.fill_ratio(self.slices_later))
    }

    /// The result of [`BloomFilter::false_positive_rate`] at the time of the view.
    pub fn false_positive_rate(&self) -> f64 {
        either!(&self.filter.chain, filter => filter.false_positive_rate(self.slices_later))
    }
}

impl OnHeap for BloomFilter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        either!(&self.chain, filter => filter.heap_layouts(visit));
    }

    fn num_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        either!(&mut self.chain, filter => match filter.sub_filters_mut().get_mut(index) {
            Some(one) => {
                one.relocate(|lines| mover.relocate(lines));
                true
            }
            None => false,
        })
    }
}

fn info_of_lines(sub_filter: &LineSubFilter) -> SubFilterInfo {
    info(sub_filter, Some(sub_filter.geometry()))
}

fn info(sub_filter: &impl SubFilter, geometry: Option<Geometry>) -> SubFilterInfo {
    let num_bytes = sub_filter.num_bytes() as u64;
    SubFilterInfo {
        capacity: sub_filter.capacity(),
        num_items: sub_filter.num_items(),
        error_rate: sub_filter.error_rate(),
        num_bytes,
        num_bits: num_bytes * 8,
        hashes: sub_filter.hashes(),
        set_bits: sub_filter.set_bits(),
        geometry,
    }
}

impl From<LineFilter> for BloomFilter {
    fn from(filter: LineFilter) -> Self {
        BloomFilter { chain: EitherChain::Lines(filter) }
    }
}

impl From<ClassicFilter> for BloomFilter {
    fn from(filter: ClassicFilter) -> Self {
        BloomFilter { chain: EitherChain::Classic(filter) }
    }
}

impl AsRef<EitherChain> for BloomFilter {
    fn as_ref(&self) -> &EitherChain {
        &self.chain
    }
}

#[cfg(test)]
mod tests;
