//! Implements [`Placement`] for the cache-line layout.

use super::super::bitmap::Line;
use super::super::chain::Chain;
use super::super::params::Params;
use super::super::sub_filter::{Expected, Placement, Screened, Spec};
use super::line::{line_index, pick};
use super::sizing;
use super::spec::{LineSubFilter, Lines};
use super::{probe, screen};
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, Marks, hash128};
use crate::live::sealed::Sealed;
use crate::shared::Shared;

impl Sealed for Lines {}

impl Placement for Lines {
    const CHAIN_BYTES: u64 = size_of::<Chain<Self>>() as u64;
    const SUB_FILTER_BYTES: u64 = size_of::<LineSubFilter>() as u64;
    const IN_PLACE_BYTES: u64 = Self::SUB_FILTER_BYTES;

    #[inline(always)]
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        hash128(item, seed)
    }

    fn first(params: &Params) -> Result<Shared<Spec<Self>>, Error> {
        Spec::of_lines(params, 0)
    }

    fn next(first: &Spec<Self>, _newest: &Spec<Self>, index: u64) -> Result<Shared<Spec<Self>>, Error> {
        let params = &first.params;
        if params.expansion == 0 {
            return Err(Error::Full { capacity: params.capacity });
        }
        Spec::of_lines(params, index)
    }

    #[inline(always)]
    fn contains(spec: &Spec<Self>, lines: &[Line], hash: Hash128) -> bool {
        probe::contains(spec.shape(), lines, hash)
    }

    fn contains_chunk(spec: &Spec<Self>, lines: &[Line], hashes: &[Hash128], pending: Marks) -> Marks {
        probe::contains_chunk(spec.shape(), lines, hashes, pending, false)
    }

    #[inline]
    fn insert(spec: &Spec<Self>, lines: &mut [Line], hash: Hash128) -> (bool, u64) {
        probe::insert(spec.shape(), lines, hash)
    }

    fn insert_chunk(spec: &Spec<Self>, lines: &mut [Line], hashes: &[Hash128], pending: Marks) -> (Marks, u64) {
        probe::insert_chunk(spec.shape(), lines, hashes, pending)
    }

    fn words_of(spec: &Spec<Self>, hash: Hash128, visit: &mut dyn FnMut(usize)) {
        const WORDS: usize = size_of::<Line>() / size_of::<u64>();
        for i in 0..spec.geometry().lines_per_item {
            let start = line_index(pick(hash, i), spec.geometry().num_lines as usize) * WORDS;
            (start..start + WORDS).for_each(&mut *visit);
        }
    }

    #[inline(always)]
    fn look_up(sub_filters: &[LineSubFilter], hash: Hash128) -> bool {
        screen::look_up(sub_filters, hash)
    }

    fn prefetch(sub_filters: &[LineSubFilter], hashes: &[Hash128], pending: Marks, expected: Expected) {
        screen::prefetch(sub_filters, hashes, pending, expected);
    }

    fn screen_chunk(sub_filters: &[LineSubFilter], hashes: &[Hash128], expected: Expected) -> Screened {
        screen::screen_chunk(sub_filters, hashes, expected)
    }

    fn resolve_chunk(sub_filters: &[LineSubFilter], hashes: &[Hash128], screened: &Screened) -> Marks {
        screen::resolve_chunk(sub_filters, hashes, screened)
    }

    fn check_mergeable(ours: &Spec<Self>, theirs: &Spec<Self>) -> Result<(), Error> {
        Error::check_same(Parameter::Capacity, ours.capacity, theirs.capacity)?;
        Error::check_same(Parameter::ErrorRate, ours.error_rate, theirs.error_rate)
    }

    fn estimate_items(spec: &Spec<Self>, set_bits: u64) -> f64 {
        sizing::estimate_items(spec.geometry(), set_bits)
    }

    fn rate_of(spec: &Spec<Self>, num_items: f64) -> f64 {
        sizing::false_positive_rate(spec.geometry(), num_items)
    }

    fn rate_to_come(first: &Spec<Self>, len: usize) -> f64 {
        sizing::rate_from(&first.params, len as u64)
    }
}

#[cfg(test)]
mod tests;
