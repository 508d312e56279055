//! Windowed filters in the cache-line layout: a list of generations, one per slice.
//!
//! ```text
//! slices of time:   | e-4 | e-3 | e-2 | e-1 |  e  |      e is the newest, of 4 slices
//! generations:      | S S |     | S   | S S | S   |      S is a sub-filter
//! their age:           4     -     2     1     0
//! ```
//!
//! Each generation is a chain of sub-filters. An item is looked up in all live generations and added to the newest,
//! which begins with its first item. As slices pass, the oldest generations are dropped as a whole. One hash of an item
//! serves all generations.
//!
//! Items expire by time, or by the number of items that came after them. In a window of the last items a generation is
//! a single sub-filter. Once it is full, the next generation begins, so the age of a generation is then a number of
//! generations.

use std::alloc::Layout;

use super::chain::{
    Chain, MAX_SUB_FILTERS, SubFilter, false_positive_rate, fill_ratio, look_up_chunks, num_items, try_clone_all,
};
use super::lines::sizing;
use super::lines::sub_filter::LineSubFilter;
use super::params::Params;
use super::windowing::Windowing;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, hash128};
use crate::size_limit::{SizeLimit, try_reserve, try_to_vec};

mod add;
mod admit;
mod merge;
mod moves;

pub use self::moves::Expired;

/// A windowed filter in the cache-line layout.
///
/// Invariants: generations have different ages, less than the number of generations that may be live, and at least one
/// sub-filter each. The sizes of a sub-filter are derived from the parameters of a generation and the index of the
/// sub-filter in its generation.
#[derive(Debug, PartialEq)]
pub struct WindowedFilter {
    /// The parameters that the user asked for. Each generation has parameters of its own.
    params: Params,
    windowing: Windowing,
    of_generation: Params,
    newest_slice: u64,
    /// The generations, oldest first. Generations without an item are left out.
    generations: Vec<Generation>,
    /// The sub-filters of all generations end to end, oldest first.
    sub_filters: Vec<LineSubFilter>,
}

/// The items that were added in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    /// The age of the generation: the number of slices from its slice to the newest. It stays the same when slices are
    /// renumbered.
    pub(crate) age: u32,
    /// The number of sub-filters.
    pub(crate) len: u32,
    /// The number of items of this generation that were added again later, and so count in a later generation. It is at
    /// most the number of items of this generation.
    pub(crate) renewed: u64,
}

impl WindowedFilter {
    /// Bytes of an empty filter: the size of a chain, and the struct itself.
    const EMPTY_BYTES: u64 = (size_of::<Chain<LineSubFilter>>() + size_of::<Self>()) as u64;

    /// An empty filter whose newest slice is `newest_slice`. `limit` is asked for the bytes of all generations at once.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`.
    pub fn new(params: Params, windowing: Windowing, newest_slice: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let of_generation = windowing.of_generation(&params)?;
        let bytes = LineSubFilter::bytes_for(&of_generation)?.saturating_add(size_of::<Generation>() as u64);
        let live = u64::from(windowing.generations(params.capacity));
        limit.check(Self::EMPTY_BYTES, bytes.saturating_mul(live))?;
        let (generations, sub_filters) = (Vec::new(), Vec::new());
        Ok(WindowedFilter { params, windowing, of_generation, newest_slice, generations, sub_filters })
    }

    /// Builds a filter from its loaded generations, oldest first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, [`Error::Corrupt`] for generations that no filter of
    /// these parameters can have.
    pub(crate) fn from_parts(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        generations: Vec<Generation>,
        sub_filters: Vec<LineSubFilter>,
    ) -> Result<Self, Error> {
        let of_generation = windowing.of_generation(&params)?;
        check_generations(&params, &windowing, &generations)?;
        Self::check_parts(&of_generation, &generations, &sub_filters)?;
        Ok(WindowedFilter { params, windowing, of_generation, newest_slice, generations, sub_filters })
    }

    /// Checks that the sub-filters match the generations.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn check_parts(
        of_generation: &Params,
        generations: &[Generation],
        sub_filters: &[LineSubFilter],
    ) -> Result<(), Error> {
        let len: u64 = generations.iter().map(|one| u64::from(one.len)).sum();
        Error::check_field(len == sub_filters.len() as u64, "number of sub-filters", len, sub_filters.len())?;
        for (generation, sub_filters) in by_generation(generations, sub_filters) {
            for (index, sub_filter) in sub_filters.iter().enumerate() {
                sub_filter.check_place(of_generation, index as u64)?;
            }
            let num_items = num_items(sub_filters);
            let expected = format_args!("at most {num_items}");
            Error::check_field(generation.renewed <= num_items, "renewed items", expected, generation.renewed)?;
        }
        Ok(())
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = try_clone_all(&self.sub_filters)?;
        Ok(WindowedFilter { generations: try_to_vec(&self.generations)?, sub_filters, ..*self })
    }

    /// An empty filter with the same parameters, at the same slice.
    ///
    /// # Errors
    /// An error of `limit`.
    pub fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        WindowedFilter::new(self.params, self.windowing, self.newest_slice, limit)
    }

    /// The parameters that the filter was made with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The window of the filter.
    pub fn windowing(&self) -> &Windowing {
        &self.windowing
    }

    /// The newest slice that the filter has reached.
    pub fn newest_slice(&self) -> u64 {
        self.newest_slice
    }

    /// The generations that hold items, oldest first.
    pub(crate) fn generations(&self) -> &[Generation] {
        &self.generations
    }

    /// The sub-filters of all generations, oldest first.
    pub fn sub_filters(&self) -> &[LineSubFilter] {
        &self.sub_filters
    }

    /// The sub-filters, mutable, so that the caller can relocate their bitmaps.
    pub(crate) fn sub_filters_mut(&mut self) -> &mut [LineSubFilter] {
        &mut self.sub_filters
    }

    /// Each generation with its sub-filters, oldest first.
    pub(crate) fn by_generation(&self) -> impl Iterator<Item = (&Generation, &[LineSubFilter])> {
        by_generation(&self.generations, &self.sub_filters)
    }

    /// The number of generations that have expired once `slices_later` more slices have begun, and the number of their
    /// sub-filters.
    fn dead(&self, slices_later: u64) -> (usize, usize) {
        let most = u64::from(self.windowing.generations(self.params.capacity));
        let dead = self.generations.iter().take_while(|one| u64::from(one.age).saturating_add(slices_later) >= most);
        dead.fold((0, 0), |(generations, sub_filters), one| (generations + 1, sub_filters + one.len as usize))
    }

    /// The sub-filters that are live once `slices_later` more slices have begun, oldest first.
    #[inline]
    fn live(&self, slices_later: u64) -> &[LineSubFilter] {
        match slices_later {
            0 => &self.sub_filters,
            _ => &self.sub_filters[self.dead(slices_later).1..],
        }
    }

    /// The index at which the sub-filters of the newest slice begin.
    #[inline]
    fn newest_start(&self) -> usize {
        let newest = self.generations.last().filter(|one| one.age == 0).map_or(0, |one| one.len as usize);
        self.sub_filters.len() - newest
    }

    /// The sub-filters of the newest slice.
    #[inline]
    fn newest(&self) -> &[LineSubFilter] {
        &self.sub_filters[self.newest_start()..]
    }

    fn hash(&self, item: &[u8]) -> Hash128 {
        hash128(item, self.params.seed)
    }

    /// Whether the item may have been added, once `slices_later` more slices have begun.
    // Out of line, so that the code for a plain filter stays small.
    #[inline(never)]
    pub fn may_contain(&self, item: &[u8], slices_later: u64) -> bool {
        LineSubFilter::look_up(self.live(slices_later), self.hash(item))
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than one call
    /// after another.
    pub fn may_contain_all<'a>(
        &self,
        items: impl IntoIterator<Item = &'a [u8]>,
        mut found: impl FnMut(bool),
        slices_later: u64,
    ) {
        let (live, seed) = (self.live(slices_later), self.params.seed);
        let hashes = items.into_iter().map(|item| hash128(item, seed));
        look_up_chunks(live, hashes, |_, is_found| found(is_found));
    }

    /// The number of items that the filter still holds once `slices_later` more slices have begun. After a merge it is
    /// an estimate.
    pub fn num_items(&self, slices_later: u64) -> u64 {
        let (dead, _) = self.dead(slices_later);
        self.by_generation().skip(dead).fold(0, |sum, (generation, sub_filters)| {
            sum.saturating_add(num_items(sub_filters).saturating_sub(generation.renewed))
        })
    }

    /// Whether the filter holds no items, not even expired ones.
    pub fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// The number of items per window that the filter is sized for.
    pub fn capacity(&self) -> u64 {
        self.params.capacity
    }

    /// A lower bound of the number of new items that the newest sub-filter takes.
    pub fn room(&self) -> u64 {
        self.newest().last().map_or(0, LineSubFilter::room)
    }

    /// Bytes of all bitmaps and structs.
    pub fn size_bytes(&self) -> u64 {
        let bitmaps: u64 = self.sub_filters.iter().map(|one| one.geometry().num_bytes()).sum();
        let lists = size_of_val(&*self.generations) + size_of_val(&*self.sub_filters);
        Self::EMPTY_BYTES + lists as u64 + bitmaps
    }

    /// The share of set bits in the sub-filters that are live once `slices_later` more slices have begun.
    pub fn fill_ratio(&self, slices_later: u64) -> f64 {
        fill_ratio(self.live(slices_later))
    }

    /// The false-positive rate, estimated from the set bits of the sub-filters that are live once `slices_later` more
    /// slices have begun. If items were renewed, it is an upper bound: generations that share items err for the same
    /// absent items.
    pub fn false_positive_rate(&self, slices_later: u64) -> f64 {
        let (live, generations) = (self.live(slices_later), &self.generations[self.dead(slices_later).0..]);
        let rate = false_positive_rate(live);
        let renewed = generations.iter().fold(0.0, |sum, generation| sum + generation.renewed as f64);
        // Sub-filters of several sizes share no errors.
        let Some(first) = live.first().filter(|_| renewed > 0.0 && live.len() == generations.len()) else {
            return rate;
        };
        // What any generation finds, one bitmap with the items of all of them would find too. It has each item once.
        let items = live.iter().map(|one| one.estimate_items(one.set_bits()));
        let (all, most) = items.fold((0.0, 0.0), |(all, most): (f64, f64), items| (all + items, most.max(items)));
        rate.min(sizing::false_positive_rate(&first.geometry(), (all - renewed).max(most)))
    }

    /// Calls `visit` with the layout of every heap allocation that the filter owns, without the struct itself.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        let lists = [
            Layout::array::<Generation>(self.generations.capacity()),
            Layout::array::<LineSubFilter>(self.sub_filters.capacity()),
        ];
        lists.into_iter().flatten().filter(|layout| layout.size() > 0).for_each(&mut *visit);
        self.sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
    }

    /// Makes sub-filter `index` of a generation, for a filter that already has `len` sub-filters.
    fn sub_filter(
        &self,
        index: usize,
        len: usize,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<LineSubFilter, Error> {
        let expected = "at most 1024, as a larger capacity or expansion needs";
        Error::check_range(len < MAX_SUB_FILTERS, Parameter::SubFilters, expected, len + 1)?;
        // The first sub-filter begins a generation.
        let more_bytes = if index == 0 { size_of::<Generation>() as u64 } else { 0 };
        LineSubFilter::of_chain(&self.of_generation, index as u64, held_bytes.saturating_add(more_bytes), limit)
    }

    /// Appends sub-filters to the newest generation. Nothing is changed on an error.
    fn append(&mut self, more: impl ExactSizeIterator<Item = LineSubFilter>) -> Result<(), Error> {
        if more.len() == 0 {
            return Ok(());
        }
        try_reserve(&mut self.sub_filters, more.len())?;
        let len = more.len() as u32;
        match self.generations.last_mut() {
            Some(newest) if newest.age == 0 => newest.len += len,
            _ => {
                try_reserve(&mut self.generations, 1)?;
                self.generations.push(Generation { age: 0, len, renewed: 0 });
            }
        }
        self.sub_filters.extend(more);
        Ok(())
    }

    /// Whether the window is a number of items, not a time. A new slice then begins once the newest is full.
    fn is_of_last(&self) -> bool {
        self.windowing.window().is_none()
    }
}

/// Checks that a windowed filter may have these generations, oldest first.
///
/// # Errors
/// [`Error::Corrupt`].
pub(crate) fn check_generations(
    params: &Params,
    windowing: &Windowing,
    generations: &[Generation],
) -> Result<(), Error> {
    let most_sub_filters = if windowing.window().is_none() { 1 } else { MAX_SUB_FILTERS as u32 };
    let mut end = windowing.generations(params.capacity);
    for &Generation { age, len, .. } in generations {
        Error::check_field(age < end, "age of a generation", format_args!("less than {end}"), age)?;
        let is_within = (1..=most_sub_filters).contains(&len);
        Error::check_field(is_within, "number of sub-filters", format_args!("from 1 to {most_sub_filters}"), len)?;
        end = age;
    }
    Ok(())
}

/// Each generation with its sub-filters.
fn by_generation<'a>(
    generations: &'a [Generation],
    mut rest: &'a [LineSubFilter],
) -> impl Iterator<Item = (&'a Generation, &'a [LineSubFilter])> {
    generations.iter().map_while(move |generation| {
        let (these, later) = rest.split_at_checked(generation.len as usize)?;
        rest = later;
        Some((generation, these))
    })
}
