//! One filter of a fixed size, of lines.

use std::alloc::Layout;

use super::super::bitmap::{Bitmap, LINE_BITS, Line, PREFETCH_FROM_LINES};
use super::super::chain::{Chain, Expected, Sealed, SubFilter, check_items, marked};
use super::super::params::Params;
use super::line::{line_index, pick};
use super::plan::Plan;
use super::probe::ItemShape;
use super::screen::Screened;
use super::sizing::{self, Geometry};
use super::{build, probe, screen};
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, hash128};
use crate::shared::Shared;
use crate::size_limit::SizeLimit;

/// A Bloom filter of a fixed size, of lines. It takes hashes and does not know their seed.
///
/// Invariants: `bitmap` has the lines of `plan`. `num_items` is at most the number of bits, since each counted item sets
/// at least one. So the items of all sub-filters that fit in memory can be summed.
#[derive(Debug)]
pub struct LineSubFilter {
    bitmap: Bitmap,
    num_items: u64,
    plan: Shared<Plan>,
}

impl LineSubFilter {
    /// An empty filter by itself, whose false-positive rate is at most `error_rate` while it holds `capacity` items.
    /// `limit` is asked whether a value of `held_bytes` may grow by the new filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, what `limit` says, and
    /// [`Error::OutOfMemory`] when the allocator refuses.
    pub fn new(
        error_rate: f64,
        capacity: u64,
        held_bytes: u64,
        limit: &(impl SizeLimit + ?Sized),
    ) -> Result<Self, Error> {
        Self::of_chain(&Params { error_rate, capacity, expansion: 0, seed: 0 }, 0, held_bytes, limit)
    }

    /// The same, as sub-filter `index` of a chain of these parameters.
    ///
    /// # Errors
    /// As [`LineSubFilter::new`].
    pub(crate) fn of_chain(
        params: &Params,
        index: u64,
        held_bytes: u64,
        limit: &(impl SizeLimit + ?Sized),
    ) -> Result<Self, Error> {
        Self::of_plan(Plan::of(params, index)?, held_bytes, limit)
    }

    /// Bytes of the first sub-filter of a chain of these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when there can be no such sub-filter.
    pub(in crate::bloom) fn bytes_for(params: &Params) -> Result<u64, Error> {
        let bitmap_bytes = Bitmap::bytes_for(Plan::of(params, 0)?.geometry.num_lines);
        Ok(bitmap_bytes.saturating_add(size_of::<Self>() as u64))
    }

    fn of_plan(plan: Shared<Plan>, held_bytes: u64, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let num_lines = plan.geometry.num_lines;
        let bitmap_bytes = Bitmap::bytes_for(num_lines);
        limit.check(held_bytes, bitmap_bytes.saturating_add(size_of::<Self>() as u64))?;
        Ok(LineSubFilter { bitmap: Bitmap::zeroed(num_lines)?, num_items: 0, plan })
    }

    /// Checks that it is made as sub-filter `index` of a chain of these parameters.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(in crate::bloom) fn check_place(&self, params: &Params, index: u64) -> Result<(), Error> {
        let plan = &self.plan;
        if plan.index != index {
            return Err(Error::corrupt("sub-filter", format_args!("number {index}"), plan.index));
        }
        if plan.params != *params {
            let expected = format_args!("those of the filter, {params:?}");
            return Err(Error::corrupt("parameters of a sub-filter", expected, format!("{:?}", plan.params)));
        }
        Ok(())
    }

    /// As [`SubFilter::look_up_chunk_in`], for sub-filters that are mostly of one size.
    pub(in crate::bloom) fn look_up_chunk_in_even(sub_filters: &[Self], hashes: &[Hash128], expected: Expected) -> u32 {
        let is_even = |pair: &[Self]| pair[0].geometry() == pair[1].geometry();
        if sub_filters.windows(2).all(is_even) {
            screen::look_up_chunk_in_even(sub_filters, hashes, expected)
        } else {
            // Not the newest first: the items that are there are in all of them alike.
            screen::look_up_chunk(sub_filters, hashes, Expected::Absent)
        }
    }

    /// Prefetches every line of the item of this hash.
    pub fn prefetch(&self, hash: Hash128) {
        probe::prefetch(self.lines(), &[hash], 1, self.plan.geometry.lines_per_item);
    }

    #[inline(always)]
    fn shape(&self) -> ItemShape {
        (self.plan.geometry.lines_per_item, self.plan.geometry.probes_per_line)
    }

    /// Lines, lines an item and bits a line.
    #[inline]
    pub fn geometry(&self) -> Geometry {
        self.plan.geometry
    }
}

impl Screened for LineSubFilter {
    #[inline]
    fn geometry(&self) -> Geometry {
        LineSubFilter::geometry(self)
    }

    #[inline]
    fn lines(&self) -> &[Line] {
        self.bitmap.lines()
    }

    #[inline]
    fn has_rest(&self, hash: Hash128) -> bool {
        self.plan.geometry.lines_per_item == 1 || probe::contains_rest(self.shape(), self.lines(), hash)
    }

    #[inline]
    fn is_large(&self) -> bool {
        self.lines().len() >= PREFETCH_FROM_LINES
    }

    fn prefetch_chunk(&self, hashes: &[Hash128], pending: u32, count: u32) {
        if self.is_large() {
            probe::prefetch(self.lines(), hashes, pending, count);
        }
    }
}

/// Equal in every bit and number.
impl PartialEq for LineSubFilter {
    fn eq(&self, other: &Self) -> bool {
        *self.plan == *other.plan
            && self.num_items == other.num_items
            && self.set_bits() == other.set_bits()
            && self.as_bytes() == other.as_bytes()
    }
}

impl Sealed for LineSubFilter {}

impl SubFilter for LineSubFilter {
    #[inline(always)]
    fn params(&self) -> &Params {
        &self.plan.params
    }

    #[inline(always)]
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        hash128(item, seed)
    }

    fn next(sub_filters: &[Self], held_bytes: u64, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let Some(newest) = sub_filters.last() else {
            return Err(Error::corrupt("number of sub-filters", "at least 1", 0));
        };
        let params = newest.params();
        if params.expansion == 0 {
            return Err(Error::Full { capacity: params.capacity });
        }
        LineSubFilter::of_chain(params, sub_filters.len() as u64, held_bytes, limit)
    }

    fn empty_twin(&self, held_bytes: u64, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        LineSubFilter::of_plan(self.plan.clone(), held_bytes, limit)
    }

    fn try_clone(&self) -> Result<Self, Error> {
        Ok(LineSubFilter { bitmap: self.bitmap.try_clone()?, num_items: self.num_items, plan: self.plan.clone() })
    }

    /// Without the plans, which are shared.
    fn size_bytes(sub_filters: &[Self]) -> u64 {
        // A single one is in the chain.
        let list = if sub_filters.len() == 1 { 0 } else { size_of_val(sub_filters) };
        let bitmaps: u64 = sub_filters.iter().map(|sub_filter| sub_filter.geometry().num_bytes()).sum();
        (size_of::<Chain<Self>>() + list) as u64 + bitmaps
    }

    fn capacity(&self) -> u64 {
        self.plan.capacity
    }

    fn error_rate(&self) -> f64 {
        self.plan.error_rate
    }

    fn num_items(&self) -> u64 {
        self.num_items
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.num_items >= self.plan.capacity || self.set_bits() >= self.plan.full_bits
    }

    fn room(&self) -> u64 {
        let plan = &*self.plan;
        let items_until_full = plan.full_bits.saturating_sub(self.set_bits()).div_ceil(plan.bits_per_item());
        plan.capacity.saturating_sub(self.num_items).min(items_until_full)
    }

    fn holds(&self, num_items: u64, set_bits: u64) -> bool {
        // The item that fills it may set more bits than are missing.
        let plan = &*self.plan;
        num_items <= plan.capacity && set_bits < plan.full_bits.saturating_add(plan.bits_per_item())
    }

    fn set_num_items(&mut self, num_items: u64) -> Result<(), Error> {
        check_items(num_items, self.geometry().num_bits())?;
        self.num_items = num_items;
        Ok(())
    }

    #[inline]
    fn num_bits(&self) -> u64 {
        (self.bitmap.lines().len() as u64) * u64::from(LINE_BITS)
    }

    fn set_bits(&self) -> u64 {
        self.bitmap.set_bits()
    }

    fn as_bytes(&self) -> &[u8] {
        self.bitmap.as_bytes()
    }

    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let len = self.as_bytes().len();
        self.bitmap.append_bytes(offset, bytes, len)
    }

    #[inline(always)]
    fn may_contain(&self, hash: Hash128) -> bool {
        probe::contains(self.shape(), self.lines(), hash)
    }

    #[inline]
    fn insert(&mut self, hash: Hash128) -> bool {
        let (shape, most_items) = (self.shape(), self.num_bits());
        let (lines, set_bits) = self.bitmap.lines_mut();
        let free = probe::insert(shape, lines, hash);
        *set_bits += free;
        self.num_items = (self.num_items + u64::from(free != 0)).min(most_items);
        free != 0
    }

    fn words_of(&self, hash: Hash128, visit: &mut dyn FnMut(usize, u64)) {
        let lines = self.bitmap.lines();
        for i in 0..self.geometry().lines_per_item {
            let index = line_index(pick(hash, i), lines.len());
            let words = lines[index].0;
            (0..).zip(words).for_each(|(word, value)| visit(index * words.len() + word, value));
        }
    }

    fn put_back(&mut self, words: &[(usize, u64)], num_items: u64) {
        self.bitmap.put_back(words);
        self.num_items = num_items;
    }

    fn look_up_chunk(&self, hashes: &[Hash128], pending: u32) -> u32 {
        self.prefetch_chunk(hashes, pending, self.plan.geometry.lines_per_item);
        marked(pending).fold(0, |found, i| found | u32::from(self.may_contain(hashes[i])) << i)
    }

    fn insert_chunk(&mut self, hashes: &[Hash128], pending: u32) -> u32 {
        let (mut new, mut which) = (0, marked(pending));
        self.insert_all(marked(pending).map(|i| hashes[i]), &mut |is_new| {
            new |= which.next().map_or(0, |i| u32::from(is_new) << i);
        });
        new
    }

    fn look_up_all(&self, hashes: impl Iterator<Item = Hash128>, found: &mut impl FnMut(bool)) {
        probe::contains_all(self.shape(), self.lines(), hashes, found);
    }

    fn insert_all(&mut self, hashes: impl Iterator<Item = Hash128>, added: &mut impl FnMut(bool)) {
        let (shape, most_items) = (self.shape(), self.num_bits());
        let (lines, set_bits) = self.bitmap.lines_mut();
        probe::insert_all(shape, lines, hashes, |free| {
            // The counts change before `added` is called: it may panic, and the counts must agree with the bits.
            *set_bits += free;
            self.num_items = (self.num_items + u64::from(free != 0)).min(most_items);
            added(free != 0);
        });
    }

    fn insert_blocks(&mut self, blocks: &[&[Hash128]], threads: usize) -> Result<(), Error> {
        let (shape, most_items) = (self.shape(), self.num_bits());
        let (lines, set_bits) = self.bitmap.lines_mut();
        let changed = build::insert_blocks(shape, lines, blocks, threads)?;
        *set_bits += changed.bits;
        self.num_items = (self.num_items + changed.items).min(most_items);
        Ok(())
    }

    #[inline(always)]
    fn look_up(sub_filters: &[Self], hash: Hash128) -> bool {
        screen::look_up(sub_filters, hash)
    }

    fn look_up_chunk_in(sub_filters: &[Self], hashes: &[Hash128], expected: Expected) -> u32 {
        screen::look_up_chunk(sub_filters, hashes, expected)
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        if self.capacity() != other.capacity() {
            return Err(Error::incompatible(Parameter::Capacity, self.capacity(), other.capacity()));
        }
        if self.error_rate() != other.error_rate() {
            return Err(Error::incompatible(Parameter::ErrorRate, self.error_rate(), other.error_rate()));
        }
        Ok(())
    }

    fn union_with(&mut self, other: &Self) -> bool {
        self.bitmap.union_with(&other.bitmap)
    }

    fn count_union<'a>(&'a self, others: impl Iterator<Item = &'a Self> + Clone + Sync) -> u64 {
        self.bitmap.count_union(others.map(|other| &other.bitmap))
    }

    fn estimate_items(&self, set_bits: u64) -> f64 {
        sizing::estimate_items(&self.geometry(), set_bits)
    }

    fn rate_with(&self, set_bits: u64) -> f64 {
        sizing::false_positive_rate(&self.geometry(), self.estimate_items(set_bits))
    }

    fn rate_to_come(&self, len: usize) -> f64 {
        sizing::rate_from(self.params(), len as u64)
    }

    fn clear(&mut self) {
        self.bitmap.clear();
        self.num_items = 0;
    }

    fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {
        self.bitmap.relocate(f);
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(self.bitmap.heap_layout());
        if let Some(layout) = self.plan.own_layout() {
            visit(layout);
        }
    }
}

#[cfg(test)]
mod tests;
