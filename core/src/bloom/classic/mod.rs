//! Filters in RedisBloom's layout: for data brought in from it, and for filters that are to go back.
//!
//! The same items in the same order give the same bits, numbers and answers as there, and a filter grows by the
//! same rules. It costs a cache miss for each bit of an item where lines cost one or two for all.
//!
//! - [`sizing`]: sizes and what is asked of filters from elsewhere
//! - [`ClassicSubFilter`]: one filter of a fixed size
//! - [`ClassicFilter`]: the chain

pub mod sizing;
mod sub_filter;

use std::alloc::Layout;

use sizing::{DEFAULT_GROWTH, FORCE64, NO_SCALING, NOROUND, Shape, TIGHTENING};
pub use sub_filter::ClassicSubFilter;

use super::chain::{self, Chain};
use super::params::Params;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, classic_hash};
use crate::size_limit::{SizeLimit, held_bytes, try_reserve, try_with_capacity};

/// Bytes that RedisBloom counts for a chain besides its sub-filters.
const CHAIN_BYTES: u64 = 32;

/// Most sub-filters of a filter from elsewhere. RedisBloom halves the error rate for each, which it can do 1,074 times:
/// no filter of its own has more than this. The header of so many stays below 64 KiB.
pub const MAX_LOADED_SUB_FILTERS: u64 = 1200;

/// A Bloom filter that grows, in RedisBloom's layout and by its rules.
///
/// Invariants: at least one sub-filter, and one only if it does not scale; the shapes are valid; the options are
/// known and say 64-bit hashes.
#[derive(Debug, PartialEq)]
pub struct ClassicFilter {
    params: Params,
    options: u32,
    growth: u32,
    sub_filters: Vec<ClassicSubFilter>,
}

impl ClassicFilter {
    /// An empty filter. The seed of `params` is ignored: RedisBloom has none.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, what `limit` says, [`Error::OutOfMemory`].
    pub fn new(params: Params, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let growth = if params.expansion == 0 { DEFAULT_GROWTH } else { params.expansion };
        Self::with_growth(params, growth, limit)
    }

    /// As [`ClassicFilter::new`]. `growth` is what RedisBloom notes, which it does for filters that do not scale as
    /// well; for those that do it must be their expansion.
    ///
    /// # Errors
    /// As [`ClassicFilter::new`].
    pub fn with_growth(params: Params, growth: u32, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        params.validate()?;
        Self::of_any_range(params, growth, limit)
    }

    /// As [`ClassicFilter::with_growth`], for a filter that exists elsewhere: its parameters may lie beyond the ranges
    /// that one can ask for here, as those of a filter that is loaded may.
    ///
    /// # Errors
    /// As [`ClassicFilter::new`]; [`Error::OutOfRange`] only where there is no such filter.
    pub fn of_any_range(params: Params, growth: u32, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        if params.expansion != 0 && params.expansion != growth {
            return Err(Error::out_of_range(Parameter::Growth, "the expansion of a filter that scales", growth));
        }
        let (scaling, tightening) = if params.expansion == 0 { (NO_SCALING, 1.0) } else { (0, TIGHTENING) };
        let options = NOROUND | FORCE64 | scaling;
        let shape = Shape::new(params.error_rate * tightening, params.capacity, options)?;
        let mut sub_filters = try_with_capacity(1)?;
        sub_filters.push(ClassicSubFilter::new(shape, size_of::<Self>() as u64, limit)?);
        // The rate asked for is not kept: half of a subnormal one may be rounded, and twice that is another.
        Ok(ClassicFilter { params: params_of(options, growth, &shape), options, growth, sub_filters })
    }

    /// A filter from its sub-filters, oldest first: for loading.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for what no filter can have.
    pub fn from_sub_filters(options: u32, growth: u32, sub_filters: Vec<ClassicSubFilter>) -> Result<Self, Error> {
        check_chain(options, growth, sub_filters.len() as u64)?;
        let Some(first) = sub_filters.first() else {
            return Err(Error::corrupt("number of sub-filters", "at least 1", 0));
        };
        Ok(ClassicFilter { params: params_of(options, growth, first.shape()), options, growth, sub_filters })
    }

    /// An equal filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut sub_filters = try_with_capacity(self.sub_filters.len())?;
        for sub_filter in &self.sub_filters {
            sub_filters.push(sub_filter.try_clone()?);
        }
        Ok(ClassicFilter { sub_filters, ..*self })
    }

    /// Adds an item. Tells whether it was new; `false` means that the filter already answered that it may contain it.
    ///
    /// # Errors
    /// For a new item that finds the filter full: [`Error::Full`] if it does not scale, else what
    /// keeps it from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is changed then.
    pub fn add(&mut self, item: &[u8], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
        chain::add(self, item, limit)
    }

    /// Adds items, with the same outcome as [`ClassicFilter::add`] for one after another, but faster
    /// for many: their cache misses overlap. Tells `added` of each whether it was new.
    ///
    /// # Errors
    /// As [`ClassicFilter::add`]. The items before the one that failed are in, and `added` was told of them.
    pub fn add_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &(impl SizeLimit + ?Sized),
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        chain::add_all(self, items, limit, added)
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    pub fn may_contain(&self, item: &[u8]) -> bool {
        chain::may_contain(self, item)
    }

    /// [`ClassicFilter::may_contain`] for many items, faster than one after another. Tells `found` the answers.
    pub fn may_contain_all<'a>(&self, items: impl IntoIterator<Item = &'a [u8]>, found: impl FnMut(bool)) {
        chain::may_contain_all(self, items, found);
    }

    /// The parameters it was made with, as far as RedisBloom keeps them: the error rate asked for follows from that
    /// of the first sub-filter, and so does the capacity. The seed is 0.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// RedisBloom's options: [`sizing::NOROUND`] and so on.
    pub fn options(&self) -> u32 {
        self.options
    }

    /// The growth that RedisBloom notes, for filters that do not scale too.
    pub fn growth(&self) -> u32 {
        self.growth
    }

    /// Its sub-filters, oldest first.
    pub fn sub_filters(&self) -> &[ClassicSubFilter] {
        &self.sub_filters
    }

    /// Its sub-filters, for [`ClassicSubFilter::relocate`], which leaves bits and numbers as they are, and for
    /// `overwrite_bytes`, which forgets items only where RedisBloom did.
    pub fn sub_filters_mut(&mut self) -> &mut [ClassicSubFilter] {
        &mut self.sub_filters
    }

    /// How many of the items added were new; after a merge an estimate.
    pub fn num_items(&self) -> u64 {
        chain::num_items(self)
    }

    /// Whether nothing was ever added, so that clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        chain::is_empty(self)
    }

    /// How many items its sub-filters are made for.
    pub fn capacity(&self) -> u64 {
        chain::capacity(self)
    }

    /// How many items can be added before it has to grow, or refuses them: so many at least, for known ones take no room.
    pub fn room(&self) -> u64 {
        chain::room(self)
    }

    /// Bytes as RedisBloom's `BF.INFO` counts them: of the bitmaps, 64 for each and 32 for the chain.
    pub fn size_bytes(&self) -> u64 {
        CHAIN_BYTES + self.sub_filters.iter().map(ClassicSubFilter::size_bytes).sum::<u64>()
    }

    /// The share of its bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        chain::fill_ratio(self)
    }

    /// The estimated share of the items it does not hold for which it errs now.
    pub fn false_positive_rate(&self) -> f64 {
        chain::false_positive_rate(self)
    }

    /// Empties it: one sub-filter as when it was new, and the same parameters.
    pub fn clear(&mut self) {
        self.sub_filters.truncate(1);
        self.sub_filters.shrink_to_fit();
        self.sub_filters.iter_mut().for_each(ClassicSubFilter::clear);
    }

    /// An empty filter of the same parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and what `limit` says.
    pub fn empty_twin(&self, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let mut sub_filters = try_with_capacity(1)?;
        if let Some(first) = self.sub_filters.first() {
            sub_filters.push(ClassicSubFilter::new(*first.shape(), size_of::<Self>() as u64, limit)?);
        }
        Ok(ClassicFilter { sub_filters, ..*self })
    }

    /// Whether `other` could be merged into this filter, but for the error rate that would result.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs.
    pub fn check_mergeable(&self, other: &ClassicFilter) -> Result<(), Error> {
        let (ours, theirs) = (&self.params, &other.params);
        if ours.capacity != theirs.capacity {
            return Err(Error::incompatible(Parameter::Capacity, ours.capacity, theirs.capacity));
        }
        if ours.error_rate != theirs.error_rate {
            return Err(Error::incompatible(Parameter::ErrorRate, ours.error_rate, theirs.error_rate));
        }
        if ours.expansion != theirs.expansion {
            return Err(Error::incompatible(Parameter::Expansion, ours.expansion, theirs.expansion));
        }
        if self.sub_filters.len() != other.sub_filters.len() {
            return Err(Error::incompatible(Parameter::SubFilters, self.sub_filters.len(), other.sub_filters.len()));
        }
        // Filters from elsewhere need not have the shapes that follow from their parameters.
        for (ours, theirs) in self.sub_filters.iter().zip(&other.sub_filters) {
            if ours.shape() != theirs.shape() {
                return Err(Error::incompatible(
                    Parameter::Shape,
                    format_args!("{:?}", ours.shape()),
                    format_args!("{:?}", theirs.shape()),
                ));
            }
        }
        Ok(())
    }

    /// Becomes the union of itself and `others`: contains what any of them contained. Tells whether
    /// that set a bit; if not, nothing at all was changed.
    ///
    /// The number of items of a sub-filter is then the estimate from its bits, within what is
    /// certain: no fewer than each of the filters merged had, no more than all together.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs, [`Error::RateExceeded`] when the union would err
    /// more often than the error rate asked for. Nothing is changed then.
    pub fn merge(&mut self, others: &[&ClassicFilter]) -> Result<bool, Error> {
        for other in others {
            self.check_mergeable(other)?;
        }
        let Some(unions) = chain::plan_union(self, others, self.params.error_rate)? else { return Ok(false) };
        for (index, (ours, num_items)) in self.sub_filters.iter_mut().zip(unions).enumerate() {
            others.iter().for_each(|other| ours.union_with(&other.sub_filters[index]));
            ours.set_num_items(num_items)?;
        }
        Ok(true)
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[ClassicSubFilter]>(&self.sub_filters));
        for sub_filter in &self.sub_filters {
            sub_filter.heap_layouts(visit);
        }
    }
}

impl Chain for ClassicFilter {
    type SubFilter = ClassicSubFilter;

    fn sub_filters(&self) -> &[ClassicSubFilter] {
        &self.sub_filters
    }

    fn newest_mut(&mut self) -> Option<&mut ClassicSubFilter> {
        self.sub_filters.last_mut()
    }

    fn seed(&self) -> u64 {
        self.params.seed
    }

    fn hash(item: &[u8], _seed: u64) -> Hash128 {
        classic_hash(item)
    }

    fn grow(&mut self, limit: &(impl SizeLimit + ?Sized)) -> Result<(), Error> {
        let Some(newest) = self.sub_filters.last() else {
            return Err(Error::corrupt("number of sub-filters", "at least 1", 0));
        };
        if self.options & NO_SCALING != 0 {
            return Err(Error::Full { capacity: newest.capacity() });
        }
        let shape = newest.shape().next(self.growth, self.options)?;
        let held_bytes = held_bytes::<Self>(limit, |visit| self.heap_layouts(visit));
        let sub_filter = ClassicSubFilter::new(shape, held_bytes, limit)?;
        try_reserve(&mut self.sub_filters, 1)?;
        self.sub_filters.push(sub_filter);
        Ok(())
    }
}

/// Checks what a stored filter says of itself as a whole.
///
/// # Errors
/// [`Error::Corrupt`] naming the field.
pub fn check_chain(options: u32, growth: u32, num_sub_filters: u64) -> Result<(), Error> {
    sizing::validate_options(options)?;
    let scales = options & NO_SCALING == 0;
    if scales && growth == 0 {
        return Err(Error::corrupt("growth", "at least 1 if the filter scales", growth));
    }
    let most = if scales { MAX_LOADED_SUB_FILTERS } else { 1 };
    if !(1..=most).contains(&num_sub_filters) {
        return Err(Error::corrupt("number of sub-filters", format_args!("from 1 to {most}"), num_sub_filters));
    }
    Ok(())
}

/// The parameters that a filter of this first sub-filter was asked for with.
pub(crate) fn params_of(options: u32, growth: u32, first: &Shape) -> Params {
    let does_not_scale = options & NO_SCALING != 0;
    let asked = first.error_rate / TIGHTENING;
    // RedisBloom asks for less than 1, but the first rate may come from elsewhere.
    let error_rate = if does_not_scale || asked >= 1.0 { first.error_rate } else { asked };
    Params { error_rate, capacity: first.capacity, expansion: if does_not_scale { 0 } else { growth }, seed: 0 }
}

#[cfg(test)]
mod tests;
