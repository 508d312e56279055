//! Implements [`Value`] for [`BloomFilter`].

use std::alloc::Layout;

use super::generations::{Generations, Parts};
use super::stored::{PartialFilter, lines, redisbloom};
use super::{BloomFilter, Expired};
use crate::admission::{Admission, Terms};
use crate::bloom::look_up::look_up;
use crate::bloom::params::BitLayout;
use crate::bloom::sub_filter::num_items;
use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::heap::Mover;
use crate::live::sealed::Sealed;
use crate::live::{Live, Value};
use crate::size_limit::{SizeLimit, try_collect, try_collect_ok, try_filled};
use crate::stored::inline::is_inline;
use crate::stored::payload::{Apart, Payload};
use crate::stored::{ChunkFormat, Kind, Source, no_chunk};
use crate::window::{Ahead, ClockSource, Mark, Merging, Move, Time, Window};

impl Sealed for BloomFilter {}

impl Value for BloomFilter {
    type Partial = PartialFilter;
    const KIND: Kind = Kind::Filter;
    type Expired = Expired;

    #[inline]
    fn window(&self) -> Option<&Window> {
        self.windowing().map(|windowing| &windowing.window)
    }

    #[inline]
    fn newest_slice(&self) -> Option<u64> {
        self.ring().map(|ring| ring.newest_slice)
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Some(ring) = self.ring_mut() {
            ring.windowing.window = ring.windowing.window.with_clock_source(clock_source);
        }
    }

    fn advance(&mut self, slice: u64) -> Expired {
        let slices_later = self.newest_slice().map_or(0, |newest| slice.saturating_sub(newest));
        let (generations, sub_filters) = self.dead(slices_later);
        let (Parts::Many(all, Some(ring)), 1..) = (&mut self.parts, slices_later) else {
            return Expired::default();
        };
        ring.newest_slice = slice;
        ring.list.drain(..generations);
        // The list is empty if `slices_later` exceeds the number of slices of the window, so the cast loses nothing.
        ring.list.iter_mut().for_each(|one| one.age = one.age.saturating_add(slices_later as u32));
        // If there is no memory for the returned list, the expired sub-filters are freed here.
        Expired(try_collect(sub_filters, all.drain(..sub_filters)).unwrap_or_default())
    }

    fn rebase(&mut self, slice: u64) {
        if let Some(ring) = self.ring_mut() {
            ring.newest_slice = ring.newest_slice.min(slice);
        }
    }

    #[inline]
    fn renews(&self) -> bool {
        self.ring().is_some_and(|ring| ring.windowing.refresh)
    }

    fn by_age(&self, slices_later: u64) -> Result<Vec<u64>, Error> {
        let slices = self.window().map_or(0, Window::slices);
        let mut by_age = try_filled(slices as usize + 1, 0u64)?;
        for (generation, sub_filters) in self.by_generation() {
            let age = slices_later.saturating_add(generation.age.into());
            if let Some(items) = by_age.get_mut(usize::try_from(age).unwrap_or(usize::MAX)) {
                *items = num_items(sub_filters).saturating_sub(generation.renewed);
            }
        }
        Ok(by_age)
    }

    fn age_of(&self, item: &[u8]) -> Option<u64> {
        let hash = self.hasher()(item);
        let ages = self.by_generation().filter(|(_, sub_filters)| look_up(sub_filters, hash));
        ages.last().map(|(generation, _)| generation.age.into())
    }

    fn fits(&self) -> u64 {
        match self.newest() {
            [only] if self.params().expansion == 0 && only.is_full() => 0,
            // The result of `room` may be too low, but a sub-filter that is not full takes at least one item.
            [only] if self.params().expansion == 0 => only.room().max(1),
            _ => u64::MAX,
        }
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let Some(ring) = self.ring() else { return Ok(Merging::default()) };
        // Filters with other windows have other slice numbers. They are skipped here, and the merge rejects them later.
        let same = others.iter().filter_map(|other| other.ring());
        let of = |ring: &Generations| ring.windowing.with_volatile(false);
        let same = same.filter(|other| of(other) == of(ring)).map(|other| other.newest_slice);
        ring.windowing.window.merging(ring.newest_slice, same, time).map_err(|Ahead { slice, present }| {
            let got = format_args!("{slice}, where that is {present}");
            Error::out_of_range(Parameter::Slice, "at most one ahead of the destination's", got)
        })
    }

    fn is_changed_by(&self, item: &[u8], due: Move) -> bool {
        match (due, self.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => {
                self.renews() || !look_up(self.live_after(slice.saturating_sub(newest)), self.hasher()(item))
            }
            // `due` is a move back to the clock's slice. Adding any item, even a known one, makes this move.
            _ => true,
        }
    }

    #[inline(always)]
    fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        match &mut self.parts {
            // `insert` returns whether the item was new, so it needs no look-up before.
            Parts::One(only) if !only.is_full() => {
                Ok(if only.insert(only.hash(item)) { Mark::New } else { Mark::Same })
            }
            _ => self.add_to_many(item, limit),
        }
    }

    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let hash = self.hasher();
        self.add_hashes(items.map(hash), limit, changed, added)
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error> {
        live.admit_items(items, terms, limit)
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        self.check_params(other)
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        let with_bits = others.iter().map(|&other| (other, Payload::of_bitmaps(other.bitmaps())));
        live.unite(&try_collect(others.len(), with_bits)?, limit)
    }

    fn merge_apart(live: &mut Live<'_, Self>, others: &[Apart<Self>], limit: &impl SizeLimit) -> Result<bool, Error> {
        let with_bits = others.iter().map(|(other, payload)| match payload.is_empty() {
            true => Ok((other, Payload::of_bitmaps(other.bitmaps()))),
            false => Ok((other, payload.borrowed()?)),
        });
        live.unite(&try_collect_ok(others.len(), with_bits)?, limit)
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        if let Parts::Many(all, _) = &self.parts {
            list_layout(all).into_iter().for_each(&mut *visit);
        }
        self.chain().iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        if let Some(ring) = self.ring() {
            visit(Layout::for_value::<Generations>(ring));
            list_layout(&ring.list).into_iter().for_each(visit);
        }
    }

    fn num_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        let Some(sub_filter) = self.chain_mut().get_mut(index) else { return false };
        let len = sub_filter.lines.len();
        sub_filter.lines = mover.relocate(std::mem::take(&mut sub_filter.lines));
        debug_assert_eq!(sub_filter.lines.len(), len, "relocated lines keep their number");
        true
    }

    fn header(&self) -> Vec<u8> {
        match self.layout() {
            BitLayout::Lines => lines::header(self),
            BitLayout::Classic => redisbloom::header(self),
        }
    }

    fn payload(&self) -> Payload<'_> {
        let is_inline =
            self.layout() == BitLayout::Lines && is_inline(self.bitmaps().map(|bitmap| bitmap.len() as u64).sum());
        if is_inline { Payload::none() } else { Payload::of_bitmaps(self.bitmaps()) }
    }

    fn chunk_format(&self) -> ChunkFormat {
        match self.layout() {
            BitLayout::Lines => lines::chunk_format(self),
            BitLayout::Classic => ChunkFormat::Plain,
        }
    }

    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        match self.layout() {
            BitLayout::Lines => Err(no_chunk(next, chunk)),
            BitLayout::Classic => redisbloom::overwrite(self, next, chunk),
        }
    }

    fn load_classic(source: &mut impl Source, encoding: u32, limit: &impl SizeLimit) -> Option<Result<Self, Error>> {
        Some(redisbloom::load_rdb(source, encoding, limit))
    }
}

fn list_layout<T>(list: &Vec<T>) -> Option<Layout> {
    Layout::array::<T>(list.capacity()).ok().filter(|layout| layout.size() > 0)
}

impl Live<'_, BloomFilter> {
    /// Merges filters, each with its bits.
    fn unite(&mut self, with_bits: &[Apart<&BloomFilter>], limit: &impl SizeLimit) -> Result<bool, Error> {
        let others = &try_collect(with_bits.len(), with_bits.iter().map(|&(other, _)| other))?;
        others.iter().try_for_each(|other| self.value.check_mergeable(other))?;
        let (merging, newest) = (self.value.merging(others, self.time)?, self.value.newest_slice());
        self.value.make(merging.before);
        let united = self.value.unite(with_bits, limit);
        if let (Err(_), Some(ring)) = (&united, self.value.ring_mut()) {
            // Only a step back may have been made, which moves no sub-filter.
            ring.newest_slice = newest.unwrap_or(ring.newest_slice);
        }
        let (changed, expired) = united?;
        self.value.make(merging.after);
        (self.outcome.before, self.outcome.after, self.outcome.expired) = (merging.before, merging.after, expired);
        self.outcome.changed |= changed;
        Ok(changed)
    }

    /// Adds the items with these hashes, in order, and returns how many were new. It allows hashing on several threads.
    /// The command-line tool calls it.
    ///
    /// # Errors
    /// The errors of [`Live::add`]. The items before the rejected item are added.
    #[doc(hidden)]
    pub fn add_hashes(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> Result<u64, Error> {
        self.move_on();
        let mut new = 0;
        let (hashes, added) = (hashes.iter().copied(), |is_new| new += u64::from(is_new));
        self.value.add_hashes(hashes, limit, &mut self.outcome.changed, added)?;
        Ok(new)
    }
}
