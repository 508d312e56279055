//! A chain of sub-filters that grows with what is put in.

pub mod line;
mod load;
pub(in crate::bloom) mod probe;
mod screen;
pub mod sizing;
pub mod sub_filter;

use std::alloc::Layout;

use self::sizing as math;
use self::sub_filter::Filter;
use super::chain::{self, Chain, Expected};
use super::params::Params;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, hash128};
use crate::size_limit::{SizeLimit, held_bytes, try_reserve, try_with_capacity};

/// A Bloom filter that grows: sub-filters, of which the newest takes what is added. It holds an item
/// if any of them does.
///
/// Invariants: at least one sub-filter; sub-filter `i` is the one that the parameters give for `i`;
/// all but the newest are full.
#[derive(Debug, PartialEq)]
pub struct ScalableFilter {
    params: Params,
    sub_filters: Vec<Filter>,
}

impl ScalableFilter {
    /// Most sub-filters a filter has.
    pub const MAX_SUB_FILTERS: usize = chain::MAX_SUB_FILTERS;

    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, what `limit` says, [`Error::OutOfMemory`].
    pub fn new(params: Params, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        params.validate()?;
        let mut filter = ScalableFilter { params, sub_filters: Vec::new() };
        filter.grow(limit)?;
        Ok(filter)
    }

    /// A filter from its sub-filters, oldest first: for loading.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, [`Error::Corrupt`] for sub-filters
    /// that no filter of these parameters can have.
    pub fn from_sub_filters(params: Params, sub_filters: Vec<Filter>) -> Result<Self, Error> {
        params.validate()?;
        if !(1..=Self::MAX_SUB_FILTERS).contains(&sub_filters.len()) {
            return Err(Error::corrupt("sub_filters", "from 1 to 1024", sub_filters.len()));
        }
        for (index, sub_filter) in sub_filters.iter().enumerate() {
            let Some(capacity) = math::sub_filter_capacity(&params, index as u64) else {
                return Err(Error::corrupt("sub_filters", format_args!("{index} at most"), sub_filters.len()));
            };
            if sub_filter.capacity() != capacity {
                return Err(Error::corrupt("capacity", capacity, sub_filter.capacity()));
            }
            let error_rate = math::sub_filter_rate(&params, index as u64);
            if sub_filter.error_rate() != error_rate {
                return Err(Error::corrupt("error_rate", error_rate, sub_filter.error_rate()));
            }
        }
        Ok(ScalableFilter { params, sub_filters })
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
        Ok(ScalableFilter { params: self.params, sub_filters })
    }

    /// Adds an item. Tells whether it was new; `false` means that the filter already answered that it may contain it.
    ///
    /// # Errors
    /// For a new item that finds the filter full: [`Error::Full`] if it does not scale, else what
    /// keeps it from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is changed then.
    pub fn add(&mut self, item: &[u8], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
        chain::add(self, item, limit)
    }

    /// Adds items, with the same outcome as [`ScalableFilter::add`] for one after another, but faster
    /// for many: their cache misses overlap. Tells `added` of each whether it was new.
    ///
    /// # Errors
    /// As [`ScalableFilter::add`]. The items before the one that failed are in, and `added` was told of them.
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

    /// [`ScalableFilter::may_contain`] for many items, faster than one after another. Tells `found` the answers.
    pub fn may_contain_all<'a>(&self, items: impl IntoIterator<Item = &'a [u8]>, found: impl FnMut(bool)) {
        chain::may_contain_all(self, items, found);
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Its sub-filters, oldest first.
    pub fn sub_filters(&self) -> &[Filter] {
        &self.sub_filters
    }

    /// Its sub-filters, for [`Filter::relocate`] alone: their bits and numbers must stay as they are.
    pub fn sub_filters_mut(&mut self) -> &mut [Filter] {
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

    /// Bytes of all bitmaps and structs.
    pub fn size_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.sub_filters.iter().map(Filter::size_bytes).sum::<u64>()
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
        self.sub_filters.iter_mut().for_each(Filter::clear);
    }

    /// Whether `other` could be merged into this filter, but for the error rate that would result.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs.
    pub fn check_mergeable(&self, other: &ScalableFilter) -> Result<(), Error> {
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
        if ours.seed != theirs.seed {
            return Err(Error::incompatible(Parameter::Seed, ours.seed, theirs.seed));
        }
        if self.sub_filters.len() != other.sub_filters.len() {
            return Err(Error::incompatible(Parameter::SubFilters, self.sub_filters.len(), other.sub_filters.len()));
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
    pub fn merge(&mut self, others: &[&ScalableFilter]) -> Result<bool, Error> {
        for other in others {
            self.check_mergeable(other)?;
        }
        let Some(unions) = chain::plan_union(self, others, self.params.error_rate)? else { return Ok(false) };
        for (index, (ours, num_items)) in self.sub_filters.iter_mut().zip(unions).enumerate() {
            for other in others {
                ours.union_with(&other.sub_filters[index])?;
            }
            ours.set_num_items(num_items)?;
        }
        Ok(true)
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[Filter]>(&self.sub_filters));
        for sub_filter in &self.sub_filters {
            sub_filter.heap_layouts(visit);
        }
    }
}

impl Chain for ScalableFilter {
    type SubFilter = Filter;

    fn sub_filters(&self) -> &[Filter] {
        &self.sub_filters
    }

    fn newest_mut(&mut self) -> Option<&mut Filter> {
        self.sub_filters.last_mut()
    }

    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[inline(always)]
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        hash128(item, seed)
    }

    fn look_up(&self, hash: Hash128) -> bool {
        screen::look_up(&self.sub_filters, hash)
    }

    fn look_up_chunk(&self, hashes: &[Hash128], expected: Expected) -> u32 {
        screen::look_up_chunk(&self.sub_filters, hashes, expected)
    }

    fn grow(&mut self, limit: &(impl SizeLimit + ?Sized)) -> Result<(), Error> {
        let index = self.sub_filters.len() as u64;
        if self.params.expansion == 0 && index > 0 {
            return Err(Error::Full { capacity: self.params.capacity });
        }
        let Some(capacity) = math::sub_filter_capacity(&self.params, index) else {
            let got = format!("{} * {}^{index}", self.params.capacity, self.params.expansion);
            return Err(Error::out_of_range(Parameter::Capacity, "less than 2^64 for every sub-filter", got));
        };
        let error_rate = math::sub_filter_rate(&self.params, index);
        let held_bytes = held_bytes::<Self>(limit, |visit| self.heap_layouts(visit));
        let sub_filter = Filter::new(error_rate, capacity, held_bytes, limit)?;
        try_reserve(&mut self.sub_filters, 1)?;
        self.sub_filters.push(sub_filter);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
