//! A filter in either layout.

use std::alloc::Layout;

use super::chain::SubFilter;
use super::classic::ClassicFilter;
use super::lines::LineFilter;
use super::lines::sizing::Geometry;
use super::lines::sub_filter::LineSubFilter;
use super::params::{BitLayout, Params};
use super::ring::{Forgotten, Ring};
use crate::error::{Error, Parameter};
use crate::heap::{Mover, OnHeap};
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::Merging;

/// A Bloom filter that grows, in either layout. See the [module](crate::bloom) for what it guarantees.
#[derive(Debug, PartialEq)]
pub struct BloomFilter {
    pub(crate) chain: EitherChain,
}

/// Millions of small filters have this and their bitmaps. No allocator has a size class between 48 and 64 bytes that
/// all have.
const _: () = assert!(size_of::<BloomFilter>() == 48);

/// A chain of either layout.
#[derive(Debug, PartialEq)]
pub enum EitherChain {
    /// In lines.
    Lines(LineFilter),
    /// In RedisBloom's layout.
    Classic(ClassicFilter),
    /// In lines, and forgetting.
    Windowed(Box<Ring>),
}

/// Parameters, size and fill of a sub-filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SubFilterInfo {
    /// How many items it is made for.
    pub capacity: u64,
    /// How many insertions set a bit; after a merge an estimate.
    pub num_items: u64,
    /// The error rate it has when full.
    pub error_rate: f64,
    /// Bytes of its bitmap.
    pub num_bytes: u64,
    /// Bits of its bitmap.
    pub num_bits: u64,
    /// Bits an item sets; some may coincide.
    pub hashes: u32,
    /// Bits set.
    pub set_bits: u64,
    /// Its geometry in lines; `None` in the classic layout.
    pub geometry: Option<Geometry>,
}

/// Calls the same method of either chain.
macro_rules! either {
    ($chain:expr, $filter:ident => $call:expr) => {
        match $chain {
            EitherChain::Lines($filter) => $call,
            EitherChain::Classic($filter) => $call,
            EitherChain::Windowed($filter) => $call,
        }
    };
}

/// Calls the same method of either chain. One that forgets is told how many slices later than its newest it is.
macro_rules! reached {
    ($chain:expr, $method:ident($($argument:expr),*), $slices_later:expr) => {
        match $chain {
            EitherChain::Lines(filter) => filter.$method($($argument),*),
            EitherChain::Classic(filter) => filter.$method($($argument),*),
            EitherChain::Windowed(filter) => filter.$method($($argument,)* $slices_later),
        }
    };
}

pub(super) use reached;

impl BloomFilter {
    /// An empty filter.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::MaxBytes;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let filter = BloomFilter::new(BitLayout::Lines, params, &MaxBytes(1 << 20))?;
    /// assert!(!filter.may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, what `limit` says, [`Error::OutOfMemory`].
    pub fn new(layout: BitLayout, params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(match layout {
            BitLayout::Lines => LineFilter::new(params, limit)?.into(),
            BitLayout::Classic => ClassicFilter::new(params, limit)?.into(),
        })
    }

    /// Its layout.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let filter = BloomFilter::new(BitLayout::Classic, params, &Unlimited)?;
    /// assert_eq!(filter.layout(), BitLayout::Classic);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn layout(&self) -> BitLayout {
        match self.chain {
            EitherChain::Lines(_) | EitherChain::Windowed(_) => BitLayout::Lines,
            EitherChain::Classic(_) => BitLayout::Classic,
        }
    }

    /// An equal filter.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.try_clone()?.may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(either!(&self.chain, filter => filter.try_clone()?.into()))
    }

    /// An empty filter of the same layout and parameters, in new memory.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// let mut other = filter.empty_twin(&Unlimited)?;
    /// assert!(other.is_empty());
    /// other.merge(&[&filter], &Unlimited)?;
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and what `limit` says.
    pub fn empty_twin(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(either!(&self.chain, filter => filter.empty_twin(limit)?.into()))
    }

    /// Adds an item. Tells whether it was new; `false` means that the filter already answered that it may contain it.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// assert!(filter.add(b"ann", &Unlimited)?);
    /// assert!(!filter.add(b"ann", &Unlimited)?);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// A full filter refuses a new item. The error is [`Error::Full`] if the filter does not scale, else what keeps it
    /// from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is changed then.
    pub fn add(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<bool, Error> {
        let item = item.as_ref();
        either!(&mut self.chain, filter => filter.add(item, limit))
    }

    /// Adds items with the same outcome as [`Self::add`] for one after another. It is faster for many, since their
    /// cache misses overlap. `added` is called for each item with whether it was new.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// let (items, mut new) = (["ann", "ben", "ann"], Vec::new());
    /// filter.add_all(items.iter().map(|item| item.as_bytes()), &Unlimited, |is_new| new.push(is_new))?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::add`]. The items before the refused one are added, and `added` was called for each of them.
    pub fn add_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        limit: &impl SizeLimit,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let items = items.into_iter().map(AsRef::as_ref);
        either!(&mut self.chain, filter => filter.add_all(items, limit, added))
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.may_contain(b"ann"));
    /// assert!(!filter.may_contain(b"zoe"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        self.may_contain_bytes(item.as_ref())
    }

    // Compiled once for all types of items.
    fn may_contain_bytes(&self, item: &[u8]) -> bool {
        reached!(&self.chain, may_contain(item), 0)
    }

    /// [`Self::may_contain`] for many items, faster than one after another. `found` is called with each answer, in
    /// order.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// let mut known = Vec::new();
    /// filter.may_contain_all([&b"ann"[..], b"zoe"], |found| known.push(found));
    /// assert_eq!(known, [true, false]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        let items = items.into_iter().map(AsRef::as_ref);
        reached!(&self.chain, may_contain_all(items, found), 0);
    }

    /// The parameters it was made with. RedisBloom does not store them: for a classic filter, rate and capacity follow
    /// from the first sub-filter, and the seed is 0.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// assert_eq!(filter.params(), &params);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn params(&self) -> &Params {
        either!(&self.chain, filter => filter.params())
    }

    /// Its sub-filters, oldest first.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// for item in 0..2000u32 {
    ///     filter.add(&item.to_le_bytes(), &Unlimited)?;
    /// }
    /// let capacities: Vec<u64> = filter.sub_filters().map(|sub_filter| sub_filter.capacity).collect();
    /// assert_eq!(capacities, [1000, 2000]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn sub_filters(&self) -> impl ExactSizeIterator<Item = SubFilterInfo> + '_ {
        let len = either!(&self.chain, filter => filter.sub_filters().len());
        (0..len).map(move |index| match &self.chain {
            EitherChain::Lines(filter) => info_of_lines(&filter.sub_filters()[index]),
            EitherChain::Windowed(filter) => info_of_lines(&filter.sub_filters()[index]),
            EitherChain::Classic(filter) => {
                let (sub_filter, shape) = (&filter.sub_filters()[index], filter.sub_filters()[index].shape());
                SubFilterInfo {
                    capacity: shape.capacity,
                    num_items: sub_filter.num_items(),
                    error_rate: shape.error_rate,
                    num_bytes: shape.num_bytes,
                    num_bits: shape.num_bits(),
                    hashes: shape.hashes,
                    set_bits: sub_filter.set_bits(),
                    geometry: None,
                }
            }
        })
    }

    /// How many of the added items were new. After a merge it is an estimate.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert_eq!(filter.num_items(), 1);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_items(&self) -> u64 {
        reached!(&self.chain, num_items(), 0)
    }

    /// Whether it is as new, so that clearing it would change nothing.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// assert!(filter.is_empty());
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(!filter.is_empty());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        either!(&self.chain, filter => filter.is_empty())
    }

    /// How many items its sub-filters are made for, in all.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// assert_eq!(filter.capacity(), 1000);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn capacity(&self) -> u64 {
        either!(&self.chain, filter => filter.capacity())
    }

    /// How many new items fit, at least, before it grows or refuses them. Known items take no room.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert_eq!(filter.room(), 999);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn room(&self) -> u64 {
        either!(&self.chain, filter => filter.room())
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// let bitmap_bytes: u64 = filter.sub_filters().map(|sub_filter| sub_filter.num_bytes).sum();
    /// assert!(filter.size_bytes() - bitmap_bytes < 200);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn size_bytes(&self) -> u64 {
        either!(&self.chain, filter => filter.size_bytes())
    }

    /// The share of its bits that are set.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.fill_ratio() > 0.0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        reached!(&self.chain, fill_ratio(), 0)
    }

    /// The current false-positive rate, estimated from the set bits.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// for item in 0..500u32 {
    ///     filter.add(&item.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(filter.false_positive_rate() < filter.params().error_rate);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        reached!(&self.chain, false_positive_rate(), 0)
    }

    /// Empties it. It keeps its parameters and the memory of its first sub-filter.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// filter.clear();
    /// assert!(filter.is_empty());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn clear(&mut self) {
        either!(&mut self.chain, filter => filter.clear());
    }

    /// Becomes the union of itself and `others`, with as many sub-filters as the longest chain. Tells whether that
    /// changed anything.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// let mut other = filter.empty_twin(&Unlimited)?;
    /// other.add(b"ben", &Unlimited)?;
    /// assert!(filter.merge(&[&other], &Unlimited)?);
    /// assert!(filter.may_contain(b"ben"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Incompatible`] names what differs. [`Error::RateExceeded`] means that the union would err more often
    /// than was asked for. Other errors are what `limit` says and [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn merge(&mut self, others: &[&BloomFilter], limit: &impl SizeLimit) -> Result<bool, Error> {
        self.unite(others, None, limit).map(|(changed, ..)| changed)
    }

    /// As [`Self::merge`], at a time, if one is given, with the rebase that is due by then. Gives back what a filter with a
    /// window has forgotten by that.
    pub(super) fn unite(
        &mut self,
        others: &[&BloomFilter],
        now: Option<u64>,
        limit: &impl SizeLimit,
    ) -> Result<(bool, Merging, Forgotten), Error> {
        if let Some(error) = others.iter().find_map(|other| self.mismatch(other)) {
            return Err(error);
        }
        let stays = Merging::STAYS;
        let changed = match &mut self.chain {
            EitherChain::Lines(ours) => ours.merge(&all_of(others, Self::as_lines)?, limit),
            EitherChain::Classic(ours) => ours.merge(&all_of(others, Self::as_classic)?, limit),
            EitherChain::Windowed(ours) => {
                let others = all_of(others, Self::as_ring)?;
                if let Some(now) = now {
                    return ours.merge_at(&others, now, limit);
                }
                let (changed, forgotten) = ours.merge(&others, limit)?;
                return Ok((changed, stays, forgotten));
            }
        };
        Ok((changed?, stays, Forgotten::default()))
    }

    /// Why a filter of another kind cannot be merged into this one.
    fn mismatch(&self, other: &BloomFilter) -> Option<Error> {
        if self.layout() != other.layout() {
            return Some(Error::incompatible(Parameter::Layout, self.layout(), other.layout()));
        }
        let sliding =
            |filter: &BloomFilter| filter.as_ring().map_or("none".to_owned(), |ring| ring.sliding().to_string());
        let differ = self.as_ring().is_some() != other.as_ring().is_some();
        differ.then(|| Error::incompatible(Parameter::Window, sliding(self), sliding(other)))
    }

    fn as_lines(&self) -> Option<&LineFilter> {
        match &self.chain {
            EitherChain::Lines(filter) => Some(filter),
            _ => None,
        }
    }

    fn as_classic(&self) -> Option<&ClassicFilter> {
        match &self.chain {
            EitherChain::Classic(filter) => Some(filter),
            _ => None,
        }
    }

    pub(super) fn as_ring(&self) -> Option<&Ring> {
        match &self.chain {
            EitherChain::Windowed(filter) => Some(filter),
            _ => None,
        }
    }
}

impl OnHeap for BloomFilter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        if let EitherChain::Windowed(ring) = &self.chain {
            visit(Layout::for_value::<Ring>(ring));
        }
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
    let geometry = sub_filter.geometry();
    SubFilterInfo {
        capacity: sub_filter.capacity(),
        num_items: sub_filter.num_items(),
        error_rate: sub_filter.error_rate(),
        num_bytes: geometry.num_bytes(),
        num_bits: geometry.num_bits(),
        hashes: geometry.lines_per_item * geometry.probes_per_line,
        set_bits: sub_filter.set_bits(),
        geometry: Some(geometry),
    }
}

/// Those of the filters that are of one kind.
fn all_of<'a, F>(
    filters: &[&'a BloomFilter],
    as_kind: impl Fn(&'a BloomFilter) -> Option<&'a F>,
) -> Result<Vec<&'a F>, Error> {
    let mut all = try_with_capacity(filters.len())?;
    all.extend(filters.iter().filter_map(|filter| as_kind(filter)));
    Ok(all)
}

impl From<Ring> for BloomFilter {
    fn from(filter: Ring) -> Self {
        BloomFilter { chain: EitherChain::Windowed(Box::new(filter)) }
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

impl From<BloomFilter> for EitherChain {
    fn from(filter: BloomFilter) -> Self {
        filter.chain
    }
}

impl AsRef<EitherChain> for BloomFilter {
    fn as_ref(&self) -> &EitherChain {
        &self.chain
    }
}

#[cfg(test)]
mod tests;
