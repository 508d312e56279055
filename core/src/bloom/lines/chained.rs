//! Implements [`SubFilter`] for the cache-line layout. It is a file of its own, since no two files import each other:
//! [`screen`] needs the type, and the methods here need [`screen`].

use super::super::bitmap::LINE_BITS;
use super::super::chain::Chain;
use super::super::params::Params;
use super::super::sub_filter::{Expected, Screened, Store, SubFilter};
use super::line::{line_index, pick};
use super::sizing;
use super::spec::LineSpec;
use super::sub_filter::LineSubFilter;
use super::{probe, screen};
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, Marks, hash128};
use crate::live::sealed::Sealed;
use crate::size_limit::SizeLimit;

impl Sealed for LineSubFilter {}

impl SubFilter for LineSubFilter {
    type Spec = LineSpec;

    fn of(store: Store<LineSpec>) -> Self {
        LineSubFilter(store)
    }

    #[inline(always)]
    fn store(&self) -> &Store<LineSpec> {
        &self.0
    }

    fn store_mut(&mut self) -> &mut Store<LineSpec> {
        &mut self.0
    }

    fn num_bytes(&self) -> usize {
        self.geometry().num_bytes() as usize
    }

    fn hashes(&self) -> u32 {
        self.0.spec.hashes()
    }

    #[inline(always)]
    fn params(&self) -> &Params {
        &self.0.spec.params
    }

    #[inline(always)]
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        hash128(item, seed)
    }

    fn first(params: &Params, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        LineSubFilter::of_chain(params, 0, held_bytes, limit)
    }

    fn next(&self, _newest: &Self, index: u64, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let params = self.params();
        if params.expansion == 0 {
            return Err(Error::Full { capacity: params.capacity });
        }
        LineSubFilter::of_chain(params, index, held_bytes, limit)
    }

    /// Bytes of the chain, without the shared parameters.
    fn size_bytes(sub_filters: &[Self]) -> u64 {
        // A single sub-filter is stored in the chain itself.
        let list = if sub_filters.len() == 1 { 0 } else { size_of_val(sub_filters) };
        let bitmaps: u64 = sub_filters.iter().map(|sub_filter| sub_filter.geometry().num_bytes()).sum();
        (size_of::<Chain<Self>>() + list) as u64 + bitmaps
    }

    fn capacity(&self) -> u64 {
        self.0.spec.capacity
    }

    fn error_rate(&self) -> f64 {
        self.0.spec.error_rate
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.0.num_items >= self.0.spec.capacity || self.set_bits() >= self.0.spec.full_bits
    }

    fn room(&self) -> u64 {
        let spec = &*self.0.spec;
        let items_until_full = spec.full_bits.saturating_sub(self.set_bits()).div_ceil(spec.hashes().into());
        spec.capacity.saturating_sub(self.0.num_items).min(items_until_full)
    }

    fn holds(&self, num_items: u64, set_bits: u64) -> bool {
        // The item that fills the sub-filter may set more bits than are missing.
        let spec = &*self.0.spec;
        num_items <= spec.capacity && set_bits < spec.full_bits.saturating_add(spec.hashes().into())
    }

    #[inline]
    fn num_bits(&self) -> u64 {
        (self.0.bitmap.lines().len() as u64) * u64::from(LINE_BITS)
    }

    #[inline(always)]
    fn may_contain(&self, hash: Hash128) -> bool {
        probe::contains(self.shape(), self.lines(), hash)
    }

    #[inline]
    fn insert(&mut self, hash: Hash128) -> bool {
        let (shape, most_items) = (self.shape(), self.num_bits());
        let (lines, set_bits) = self.0.bitmap.lines_mut();
        let (is_new, free) = probe::insert(shape, lines, hash);
        *set_bits += free;
        self.0.num_items = (self.0.num_items + u64::from(is_new)).min(most_items);
        is_new
    }

    fn words_of(&self, hash: Hash128, visit: &mut dyn FnMut(usize, u64)) {
        let lines = self.0.bitmap.lines();
        for i in 0..self.geometry().lines_per_item {
            let index = line_index(pick(hash, i), lines.len());
            let words = lines[index].0;
            (0..).zip(words).for_each(|(word, value)| visit(index * words.len() + word, value));
        }
    }

    fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks {
        probe::contains_chunk(self.shape(), self.lines(), hashes, pending, false)
    }

    fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks {
        let (shape, most_items) = (self.shape(), self.num_bits());
        let (lines, set_bits) = self.0.bitmap.lines_mut();
        let (new, free) = probe::insert_chunk(shape, lines, hashes, pending);
        *set_bits += free;
        self.0.num_items = (self.0.num_items + u64::from(new.count_ones())).min(most_items);
        new
    }

    #[inline(always)]
    fn look_up(sub_filters: &[Self], hash: Hash128) -> bool {
        screen::look_up(sub_filters, hash)
    }

    fn is_far(sub_filters: &[Self]) -> bool {
        screen::is_far(sub_filters)
    }

    fn prefetch(sub_filters: &[Self], hashes: &[Hash128], pending: Marks, expected: Expected) {
        screen::prefetch(sub_filters, hashes, pending, expected);
    }

    fn screen_chunk(sub_filters: &[Self], hashes: &[Hash128], expected: Expected) -> Screened {
        screen::screen_chunk(sub_filters, hashes, expected)
    }

    fn resolve_chunk(sub_filters: &[Self], hashes: &[Hash128], screened: &Screened) -> Marks {
        screen::resolve_chunk(sub_filters, hashes, screened)
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        Error::check_same(Parameter::Capacity, self.capacity(), other.capacity())?;
        Error::check_same(Parameter::ErrorRate, self.error_rate(), other.error_rate())
    }

    fn estimate_items(&self, set_bits: u64) -> f64 {
        sizing::estimate_items(&self.geometry(), set_bits)
    }

    fn rate_of(&self, num_items: f64) -> f64 {
        sizing::false_positive_rate(&self.geometry(), num_items)
    }

    fn rate_to_come(&self, len: usize) -> f64 {
        sizing::rate_from(self.params(), len as u64)
    }
}
