//! A sub-filter, in either layout. A filter that grows is a chain of sub-filters.

use std::alloc::Layout;
use std::fmt;

use super::bitmap::{Bits, Line, add_union, part};
use super::classic::bits::Classic;
use super::classic::sizing::{Rules, Shape};
use super::lines::probe::{self, ItemShape};
use super::lines::sizing::{self, Geometry};
use super::params::{BitLayout, Params};
use crate::bits;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, classic_hash, hash128, table_hash};
use crate::marks::Marks;
use crate::parallel::{self, PIECE_BYTES};
use crate::shared::{Pool, Shared, own_layout};
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_collect_ok, try_zeroed};

/// The parameters that are derived from those of a filter for one of its sub-filters.
#[derive(Debug, PartialEq)]
pub(crate) struct Spec {
    /// The parameters of the filter. In RedisBloom's layout they are derived from the size of this sub-filter, so they
    /// are right only if it is the first.
    pub(super) params: Params,
    /// The index in the filter, from 0 on; always 0 in RedisBloom's layout.
    index: u64,
    /// The number of items that the sub-filter is sized for.
    pub(super) capacity: u64,
    /// The false-positive rate that the sub-filter may have at its capacity.
    pub(super) error_rate: f64,
    /// The numbers of lines, of lines per item, and of an item's bits in each line. A sub-filter in RedisBloom's layout
    /// is described as if each bit of an item had a line of its own.
    pub(crate) as_lines: Geometry,
    /// The number of bits of the bitmap that items can set.
    pub(crate) num_bits: u64,
    /// Bytes of the bitmap.
    pub(super) num_bytes: u64,
    /// The number of set bits at which the sub-filter is full; `u64::MAX` if the number of items alone decides.
    full_bits: u64,
    /// The parameters that only RedisBloom's layout has.
    pub(crate) classic: Option<Classic>,
}

/// Shared derived parameters: a pool for first sub-filters, and a pool for later ones. A filter with many sub-filters
/// can fill a pool, which is then cleared.
static SPECS: [Pool<Spec>; 2] = [Pool::new(), Pool::new()];

impl Spec {
    /// The derived parameters of sub-filter `index`, in the cache-line layout.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the sub-filter would be too large.
    pub(crate) fn of_lines(params: &Params, index: u64) -> Result<Shared<Self>, Error> {
        let Params { error_rate, capacity, expansion, seed } = *params;
        let numbers = [error_rate.to_bits(), capacity, u64::from(expansion), seed, index];
        SPECS[usize::from(index > 0)].get(
            table_hash(bytemuck::cast_slice(&numbers)),
            |spec| spec.index == index && spec.params == *params && spec.classic.is_none(),
            || {
                let Some(capacity) = sizing::sub_filter_capacity(params, index) else {
                    let got = format!("{capacity} * {expansion}^{index}");
                    return Err(Error::out_of_range(Parameter::Capacity, "less than 2^64 for every sub-filter", got));
                };
                let error_rate = sizing::sub_filter_rate(params, index);
                let as_lines = sizing::geometry(error_rate, capacity)?;
                let (num_bits, num_bytes) = (as_lines.num_bits(), as_lines.num_bytes());
                let full_bits = sizing::full_bits(error_rate, &as_lines).unwrap_or(u64::MAX);
                let (params, classic) = (*params, None);
                Ok(Spec { params, index, capacity, error_rate, as_lines, num_bits, num_bytes, full_bits, classic })
            },
        )
    }

    /// The derived parameters of a sub-filter in RedisBloom's layout.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape.
    pub(crate) fn of_shape(rules: Rules, is_first: bool, shape: Shape) -> Result<Shared<Self>, Error> {
        let Shape { capacity, error_rate, bits_per_item, hashes, num_bytes, n2 } = shape;
        let numbers = [
            u64::from(rules.options) << 32 | u64::from(rules.growth),
            u64::from(hashes) << 32 | u64::from(n2),
            capacity,
            error_rate.to_bits(),
            bits_per_item.to_bits(),
            num_bytes,
        ];
        SPECS[usize::from(!is_first)].get(
            table_hash(bytemuck::cast_slice(&numbers)),
            |spec| spec.classic.as_ref().is_some_and(|one| one.rules == rules && one.shape == shape),
            || {
                shape.validate()?;
                let (params, index, full_bits) = (rules.params(&shape), 0, u64::MAX);
                let as_lines = Geometry { lines_per_item: hashes, probes_per_line: 1, num_lines: shape.num_lines() };
                let (num_bits, classic) = (shape.num_positions(), Some(Classic::new(rules, shape)));
                Ok(Spec { params, index, capacity, error_rate, as_lines, num_bits, num_bytes, full_bits, classic })
            },
        )
    }

    /// The parameters of the sub-filter that follows `newest` and gets the index `index`. `self` has the parameters of
    /// the first sub-filter.
    ///
    /// # Errors
    /// [`Error::Full`] for a filter that does not scale, [`Error::OutOfRange`] if the sub-filter would be too large.
    pub(super) fn next(&self, newest: &Self, index: u64) -> Result<Shared<Self>, Error> {
        match (&self.classic, &newest.classic) {
            // The growth factor and the options come from the first sub-filter, as in the stored form. Sub-filters that
            // a merge appended may have others.
            (Some(Classic { rules, .. }), Some(newest)) if rules.scales() => {
                Self::of_shape(*rules, false, newest.shape.next(rules.growth, rules.options)?)
            }
            (None, _) if self.params.expansion > 0 => Self::of_lines(&self.params, index),
            _ => Err(Error::Full { capacity: newest.capacity }),
        }
    }

    #[inline(always)]
    pub(super) fn layout(&self) -> BitLayout {
        if self.classic.is_some() { BitLayout::Classic } else { BitLayout::Lines }
    }

    #[inline(always)]
    pub(super) fn item_shape(&self) -> ItemShape {
        (self.as_lines.lines_per_item, self.as_lines.probes_per_line)
    }

    /// The number of bits that an item sets; some may coincide.
    pub(super) fn hashes(&self) -> u32 {
        self.as_lines.lines_per_item * self.as_lines.probes_per_line
    }

    /// Bytes of a sub-filter and its bitmap.
    pub(crate) fn sub_filter_bytes(&self) -> u64 {
        array_bytes::<Line>(self.as_lines.num_lines).saturating_add(size_of::<SubFilter>() as u64)
    }

    /// Checks that there are at most as many items as bits, since each counted item has set a new bit.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn check_items(&self, num_items: u64) -> Result<(), Error> {
        let expected = format_args!("at most {}, one a bit", self.num_bits);
        Error::check_field(num_items <= self.num_bits, "num_items", expected, num_items)
    }

    /// Checks that an item sets the same bits in two sub-filters.
    ///
    /// # Errors
    /// [`Error::Incompatible`].
    pub(super) fn check_mergeable(&self, theirs: &Self) -> Result<(), Error> {
        if let (Some(Classic { shape: ours, .. }), Some(Classic { shape: theirs, .. })) =
            (&self.classic, &theirs.classic)
        {
            let equal = || Error::incompatible(Parameter::Shape, format_args!("{ours:?}"), format_args!("{theirs:?}"));
            return if ours == theirs { Ok(()) } else { Err(equal()) };
        }
        Error::check_same(Parameter::Capacity, self.capacity, theirs.capacity)?;
        Error::check_same(Parameter::ErrorRate, self.error_rate, theirs.error_rate)
    }

    /// The most likely number of items for this number of set bits (Swamidass and Baldi, "Mathematical Correction for
    /// Fingerprint Similarity Measures to Improve Chemical Retrieval", 2007, section 2). If all bits are set, the
    /// result is the same as if one bit were 0.
    pub(super) fn estimate_items(&self, set_bits: u64) -> f64 {
        if self.classic.is_none() {
            return sizing::estimate_items(&self.as_lines, set_bits);
        }
        let all = self.num_bits as f64;
        let free = (all - set_bits as f64).max(1.0);
        (-all / f64::from(self.hashes()) * libm::log(free / all)).max(0.0)
    }

    /// The estimated false-positive rate with `num_items` items, in the cache-line layout.
    pub(super) fn rate_of(&self, num_items: f64) -> f64 {
        sizing::false_positive_rate(&self.as_lines, num_items)
    }

    /// The estimated false-positive rate with `set_bits` set bits.
    pub(super) fn rate_with(&self, set_bits: u64) -> f64 {
        if self.classic.is_none() {
            return self.rate_of(self.estimate_items(set_bits));
        }
        let fill = set_bits as f64 / self.num_bits as f64;
        libm::pow(fill.min(1.0), f64::from(self.hashes()))
    }
}

/// A Bloom filter of a fixed size, which takes hashes instead of items.
///
/// Invariants: the bitmap has just enough lines for the bytes that `spec` gives, and the bits after these bytes are 0.
/// There are no lines while the bits lie elsewhere ([`set_apart`](crate::stored::Partial::set_apart)).
/// `set_bits` is the number of set bits. `num_items` is at most the number of bits, so sums over sub-filters in memory
/// do not overflow.
#[derive(PartialEq)]
pub struct SubFilter {
    pub(super) lines: Box<[Line]>,
    pub(crate) set_bits: u64,
    pub(super) num_items: u64,
    pub(crate) spec: Shared<Spec>,
}

/// Without the bits.
impl fmt::Debug for SubFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SubFilter { lines: _, set_bits, num_items, spec } = self;
        let mut shown = f.debug_struct("SubFilter");
        shown.field("set_bits", set_bits).field("num_items", num_items).field("spec", spec).finish_non_exhaustive()
    }
}

/// Parameters, size and fill of a sub-filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SubFilterInfo {
    /// The number of items that the sub-filter is sized for.
    pub capacity: u64,
    /// The number of items that set a new bit when they were inserted. After a merge it is an estimate.
    pub num_items: u64,
    /// The error rate of the sub-filter when full.
    pub error_rate: f64,
    /// Bytes of the bitmap.
    pub num_bytes: u64,
    /// The number of bits that an item sets; some may coincide.
    pub hashes: u32,
    /// The number of set bits.
    pub set_bits: u64,
    /// The geometry of the cache-line layout; `None` in RedisBloom's layout.
    pub geometry: Option<Geometry>,
}

impl SubFilter {
    /// An empty sub-filter in the cache-line layout, for up to `capacity` items at a false-positive rate of at most
    /// `error_rate`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(error_rate: f64, capacity: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let params = Params { error_rate, capacity, expansion: 0, seed: 0 };
        Self::from_spec(Spec::of_lines(&params, 0)?, 0, limit)
    }

    /// An empty first sub-filter in RedisBloom's layout.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape, an error of `limit`, [`Error::OutOfMemory`].
    pub fn from_shape(rules: Rules, shape: Shape, limit: &impl SizeLimit) -> Result<Self, Error> {
        Self::from_spec(Spec::of_shape(rules, true, shape)?, 0, limit)
    }

    /// An empty sub-filter. `limit` is asked whether a value of `held_bytes` may grow by the sub-filter.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`].
    pub(crate) fn from_spec(spec: Shared<Spec>, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        limit.check(held_bytes, spec.sub_filter_bytes())?;
        let num_lines = usize::try_from(spec.as_lines.num_lines).unwrap_or(usize::MAX);
        Ok(SubFilter { lines: try_zeroed(num_lines)?, set_bits: 0, num_items: 0, spec })
    }

    /// A copy of the sub-filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        let mut copy = Self::from_spec(self.spec.clone(), 0, &Unlimited)?;
        copy.num_items = self.num_items;
        copy.append_bytes(0, self.as_bytes())?;
        Ok(copy)
    }

    /// Parameters, size and fill.
    pub fn info(&self) -> SubFilterInfo {
        let Spec { capacity, error_rate, num_bytes, as_lines, .. } = *self.spec;
        let (num_items, hashes, set_bits) = (self.num_items, self.spec.hashes(), self.set_bits);
        let geometry = self.spec.classic.is_none().then_some(as_lines);
        SubFilterInfo { capacity, num_items, error_rate, num_bytes, hashes, set_bits, geometry }
    }

    /// The rules and the shape of a sub-filter in RedisBloom's layout; `None` in the cache-line layout.
    pub fn classic(&self) -> Option<&Classic> {
        self.spec.classic.as_ref()
    }

    #[inline(always)]
    pub(super) fn hash(&self, item: &[u8]) -> Hash128 {
        hash(self.spec.layout(), item, self.spec.params.seed)
    }

    /// Sets the number of items that the bits represent, after loading or a union.
    pub(crate) fn set_num_items(&mut self, num_items: u64) -> Result<(), Error> {
        self.spec.check_items(num_items)?;
        self.num_items = num_items;
        Ok(())
    }

    /// The bytes that `BF.INFO` reports. RedisBloom's struct of a sub-filter has 64 bytes.
    pub(super) fn reported_bytes(&self) -> u64 {
        let own = if self.classic().is_some() { 64 } else { size_of::<Self>() as u64 };
        own + self.spec.num_bytes
    }

    /// The bytes of the bitmap.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines).get(..self.spec.num_bytes as usize).unwrap_or_default()
    }

    /// Writes `bytes` at byte `offset` of the bitmap, where all bits must still be 0. The old bytes are not read,
    /// because reading untouched memory costs a page fault. If the bits lie elsewhere, they are only counted.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end. On error the bitmap is unchanged.
    pub(crate) fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if !self.lines.is_empty() {
            let unset = part(&mut self.lines, offset, bytes.len(), self.spec.num_bytes as usize)?;
            debug_assert!(unset.iter().all(|&byte| byte == 0), "bytes written twice");
            bits::copy_to_zeroed(unset, bytes);
        }
        self.set_bits += parallel::sum(bytes.chunks(PIECE_BYTES), bytes.len(), bits::count_ones_in_bytes);
        Ok(())
    }

    /// Overwrites the bitmap with `bytes` from byte `offset` on. If this clears a bit of an item, the filter loses the
    /// item.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end. On error the bitmap is unchanged.
    pub(crate) fn overwrite_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let old = part(&mut self.lines, offset, bytes.len(), self.spec.num_bytes as usize)?;
        // `set_bits` includes the old bits, so the subtraction cannot underflow.
        self.set_bits = self.set_bits - bits::count_ones_in_bytes(old) + bits::count_ones_in_bytes(bytes);
        old.copy_from_slice(bytes);
        Ok(())
    }

    /// Whether no more new items may be added.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.num_items >= self.spec.capacity || self.set_bits >= self.spec.full_bits
    }

    /// A lower bound of the number of new items that fit in the sub-filter; 0 if it is full.
    pub(super) fn room(&self) -> u64 {
        let items = self.spec.capacity.saturating_sub(self.num_items);
        if self.spec.full_bits == u64::MAX {
            return items;
        }
        items.min(self.spec.full_bits.saturating_sub(self.set_bits).div_ceil(self.spec.hashes().into()))
    }

    /// Whether a sub-filter with `num_items` items and `set_bits` set bits is within its capacity.
    pub(super) fn holds(&self, num_items: u64, set_bits: u64) -> bool {
        // The last item that fits may exceed the limit of set bits by all of its bits.
        let most_bits = self.spec.full_bits.saturating_add(self.spec.hashes().into());
        num_items <= self.spec.capacity && set_bits < most_bits
    }

    /// Whether the item of this hash may have been inserted.
    #[inline(always)]
    pub fn may_contain(&self, hash: Hash128) -> bool {
        match &self.spec.classic {
            None => probe::contains(self.spec.item_shape(), &self.lines, hash),
            Some(classic) => classic.contains(&self.lines, hash),
        }
    }

    /// Looks up the hashes in the mask `pending`, out of at most 64. Returns the mask of those that may have been
    /// inserted.
    pub(super) fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks {
        match &self.spec.classic {
            None => probe::contains_chunk(self.spec.item_shape(), &self.lines, hashes, pending, false),
            Some(classic) => classic.contains_chunk(&self.lines, hashes, pending),
        }
    }

    /// Inserts the item with this hash. Returns whether any bit was newly set.
    #[inline]
    pub fn insert(&mut self, hash: Hash128) -> bool {
        let (is_new, free) = match &self.spec.classic {
            None => probe::insert(self.spec.item_shape(), &mut self.lines, hash),
            Some(classic) => classic.insert(&mut self.lines, hash),
        };
        self.set_bits += free;
        self.num_items = (self.num_items + u64::from(is_new)).min(self.spec.num_bits);
        is_new
    }

    /// Inserts the hashes in the mask `pending`, in order. Returns the mask of those that newly set a bit.
    pub(super) fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks {
        let (new, free) = match &self.spec.classic {
            None => probe::insert_chunk(self.spec.item_shape(), &mut self.lines, hashes, pending),
            Some(classic) => classic.insert_chunk(&mut self.lines, hashes, pending),
        };
        self.set_bits += free;
        self.num_items = (self.num_items + u64::from(new.count_ones())).min(self.spec.num_bits);
        new
    }

    /// Adds the bits of sub-filters of the same size. The union has `set_bits` set bits.
    pub(super) fn unite<'a>(&mut self, others: impl Iterator<Item = Bits<'a>> + Clone + Sync, set_bits: u64) {
        add_union(&mut bytemuck::cast_slice_mut(&mut self.lines)[..self.spec.num_bytes as usize], others);
        self.set_bits = set_bits;
    }

    /// The estimated false-positive rate.
    pub fn false_positive_rate(&self) -> f64 {
        self.spec.rate_with(self.set_bits)
    }

    /// Calls `visit` with the layout of every heap allocation that the sub-filter owns.
    pub(crate) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[Line]>(&self.lines));
        own_layout(&self.spec).into_iter().for_each(visit);
    }
}

#[inline(always)]
pub(super) fn hash(layout: BitLayout, item: &[u8], seed: u64) -> Hash128 {
    match layout {
        BitLayout::Lines => hash128(item, seed),
        BitLayout::Classic => classic_hash(item),
    }
}

/// The sub-filters that a stored header describes, each with its number of items.
pub(crate) type Described = Vec<(Shared<Spec>, u64)>;

/// Makes the described sub-filters, with zeroed bitmaps.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::OutOfMemory`].
pub(crate) fn zeroed(described: Described) -> Result<Vec<SubFilter>, Error> {
    let sub_filter = |(spec, num_items)| {
        let mut sub_filter = SubFilter::from_spec(spec, 0, &Unlimited)?;
        sub_filter.set_num_items(num_items)?;
        Ok(sub_filter)
    };
    try_collect_ok(described.len(), described.into_iter().map(sub_filter))
}

/// The bytes of the bitmaps.
pub(super) fn num_bytes(sub_filters: &[SubFilter]) -> u64 {
    sub_filters.iter().map(|one| one.spec.num_bytes).sum()
}

#[inline]
pub(super) fn num_items(sub_filters: &[SubFilter]) -> u64 {
    sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items))
}
