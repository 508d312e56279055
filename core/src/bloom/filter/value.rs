//! Implements [`Value`] for [`BloomFilter`].

use std::alloc::Layout;

use super::generations::{Generations, Parts};
use super::stored::{PartialFilter, lines, redisbloom};
use super::{BloomFilter, Expired};
use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::bloom::look_up::{look_up, look_up_chunks};
use crate::bloom::params::BitLayout;
use crate::bloom::sub_filter::num_items;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, table_hash};
use crate::heap::Mover;
use crate::live::sealed::Sealed;
use crate::live::{Live, Value};
use crate::size_limit::{SizeLimit, try_collect, try_filled, try_reserve, try_with_capacity};
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

    /// If the filter does not scale and has room for fewer items, a dry run reports that these are admitted, and
    /// `terms.all` rejects all. The computed room is a lower bound, exact at error rates up to 0.02.
    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error> {
        let (due, filter) = (live.due(), &mut *live.value);
        let slices_later = match (due, filter.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => slice - newest,
            _ => 0,
        };
        // If the clock had jumped ahead and was set back, the window moves back to the clock's slice even if all items
        // are rejected. Otherwise the filter's items would expire far too late.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let renews = filter.renews();
        let mut sorted = LookUp::of(items.len())?;
        // Items that the filter has already and that will be added again, so that they expire later. Each comes with
        // the number of new items before it in the call.
        let mut renewed = try_with_capacity(if renews { items.len() } else { 0 })?;
        let newest = if slices_later == 0 { filter.newest() } else { &[] };
        look_up_chunks(filter.live_after(slices_later), items.map(filter.hasher()), |hash, is_known| {
            sorted.record(table_hash(bytemuck::cast_slice(&[hash.lo, hash.hi])), hash, is_known);
            if is_known && renews && !look_up(newest, hash) {
                renewed.push((sorted.new.len(), hash));
            }
        });
        let num_new = sorted.new.len();
        let mut admitted = terms.admitted(filter.after(slices_later).num_items(), num_new);
        if terms.all && admitted < num_new {
            renewed.clear();
        }
        let (more, room) = match filter.sub_filters_for((admitted + renewed.len()) as u64, slices_later, limit) {
            Ok(more) => (more, admitted),
            Err(Error::Full { .. }) => (Vec::new(), filter.room() as usize),
            Err(error) => return Err(error),
        };
        if terms.all && room < admitted {
            admitted = 0;
        }
        let mut reported = first_of(if terms.dry_run { admitted.min(room) } else { 0 }, num_new)?;
        if !terms.dry_run {
            // After the window has moved, no error may occur. So memory is reserved here.
            if let Parts::Many(all, Some(ring)) = &mut filter.parts {
                try_reserve(&mut ring.list, 1)?;
                try_reserve(all, more.len())?;
            }
            let adds = admitted > 0 || !renewed.is_empty();
            if adds || rebases {
                live.make(due);
            }
            if adds {
                live.value.add_admitted(more, &sorted.new, &renewed, admitted, &mut reported)?;
            }
            live.outcome.changed |= !renewed.is_empty() || reported.contains(&Admission::Admitted);
        }
        Ok((sorted.into_answers(&reported), num_new))
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        Error::check_same(Parameter::Layout, self.layout(), other.layout())?;
        let [ours, theirs] =
            [self, other].map(|filter| filter.windowing().map(|windowing| windowing.with_volatile(false)));
        if ours != theirs {
            let [ours, theirs] = [ours, theirs].map(|windowing| windowing.map_or("none".into(), |one| one.to_string()));
            return Err(Error::incompatible(Parameter::Window, ours, theirs));
        }
        let (ours, theirs) = (self.params(), other.params());
        Error::check_same(Parameter::Capacity, ours.capacity, theirs.capacity)?;
        Error::check_same(Parameter::ErrorRate, ours.error_rate, theirs.error_rate)?;
        Error::check_same(Parameter::Expansion, ours.expansion, theirs.expansion)?;
        Error::check_same(Parameter::Seed, ours.seed, theirs.seed)?;
        if self.windowing().is_some() {
            // The merge finds out which sub-filters are of the same slice.
            return Ok(());
        }
        let mut both = self.chain().iter().zip(other.chain());
        both.try_for_each(|(ours, theirs)| ours.spec.check_mergeable(&theirs.spec))
    }

    fn merge_live<'a>(
        live: &mut Live<'_, Self>,
        mut others: Vec<Apart<'a, &'a Self>>,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        for (other, payload) in others.iter_mut().filter(|(_, payload)| payload.is_empty()) {
            *payload = Payload::of_parts(other.bitmaps());
        }
        let filters = try_collect(others.len(), others.iter().map(|&(other, _)| other))?;
        filters.iter().try_for_each(|other| live.value.check_mergeable(other))?;
        let (merging, newest) = (live.value.merging(&filters, live.time)?, live.value.newest_slice());
        live.value.make(merging.before);
        let united = live.value.unite(&others, limit);
        if let (Err(_), Some(ring)) = (&united, live.value.ring_mut()) {
            // Only a step back may have been made, which moves no sub-filter.
            ring.newest_slice = newest.unwrap_or(ring.newest_slice);
        }
        let (changed, expired) = united?;
        live.value.make(merging.after);
        (live.outcome.before, live.outcome.after, live.outcome.expired) = (merging.before, merging.after, expired);
        live.outcome.changed |= changed;
        Ok(changed)
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
        if is_inline { Payload::default() } else { Payload::of_parts(self.bitmaps()) }
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
