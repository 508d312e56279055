//! The marked slots of an estimating counter: a count for each segment, a range of segments held as cells, and lists.
//!
//! As members are added, the early segments fill up one after the other, while the late ones stay almost empty. Only
//! about seven segments in between hold much information. Lang uses this to compress the same bitmap ("Back to the
//! future: an even more nearly optimal cardinality estimation algorithm", 2017). The slots are held as
//!
//! ```text
//! counts:  the number of marked slots in each segment
//! window:  | cells of segment first | ... | cells of segment end - 1 |      C bits each, or C tags
//! later:   | slots of segment end | slots of segment end + 1 | ...          ascending in each segment
//!            place, tag | place, tag | ...                                  2 bytes, and 1 with a window of time
//! ```
//!
//! The segments before `first` are full and take no memory. In a windowed counter `first` is 0, since the tags of full
//! segments have to be kept. The last segment with more than C / 16 marked slots is `end - 1`. So `first` and `end`
//! follow from the counts alone. The slots never take more memory than a bitmap of all segments, and a quarter more for
//! the free room in lists. This holds for any members and for any loaded bytes.
//!
//! Worked example, C = 4096, 50,000 members: segments 0 to 6 have 4087, 3886, 3205, 2183, 1293, 708 and 371 marked
//! slots. They are held as cells, in 512 bytes each. Segment 7, with 190 marked slots, and all later segments are held
//! as lists: 380 slots in 760 bytes. With ten times as many members, segment 0 is full and takes no memory.

use std::alloc::Layout as Memory;
use std::marker::PhantomData;
use std::ops::Range;

use crate::bits;
use crate::counting::estimate::{KeptEstimate, Segments};
use crate::counting::held::adding::Adding;
use crate::counting::held::cells::{SlotTag, for_each_count};
use crate::counting::held::ring::Ages;
use crate::counting::layout::{Layout, MAX_SEGMENT_BITS, SegmentCounts, slots_of};
use crate::error::Error;
use crate::hash::{self, CHUNK};
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_to_vec, try_zeroed};
use crate::window::Mark;

/// A segment is held as a list if at most one slot in this number is marked. A slot in a list takes 16 bits, so a
/// fuller list would be larger than a bitmap.
const LISTED_PART: u64 = 16;
/// The binary search for a record without tags stops at this number of records. Comparing all of them is faster than
/// going on.
const FEW: usize = 96;
/// The fewest bytes by which a list grows.
const LEAST_ROOM: usize = 16;

/// The marked slots of an estimating counter, with the cached estimate.
#[derive(Debug)]
pub(in crate::counting) struct Slots<T: SlotTag = ()> {
    /// The cells of the segments `first..end`.
    window: Box<[u64]>,
    /// The lists of the marked slots of the segments from `end` on, and free room. A record has the place of a slot in
    /// its segment, and its tag. The number of records follows from the counts.
    later: Box<[u8]>,
    /// The cached estimate; absent if a slot was marked after it was computed.
    estimate: KeptEstimate,
    counts: SegmentCounts,
    /// A lower bound of the number of members: one more than the last exact count, or the largest lower bound of the
    /// merged counters. The estimate is never reported below it.
    lower_bound: u32,
    layout: Layout,
    first: u8,
    end: u8,
    tags: PhantomData<T>,
}

// The struct is a fifth of the memory of a counter with a few hundred members, and allocators have a size class of 160
// bytes.
const _: () = assert!(size_of::<Slots>() <= 160);

/// How the marked slots of one segment are held.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// All slots are marked, so nothing has to be held.
    Full,
    Cells(&'a [u64]),
    /// Records of the marked slots, in ascending order.
    Listed(&'a [u8]),
}

/// The range of segments that are held as cells, if the segments have these counts.
fn window_of<T: SlotTag>(layout: Layout, counts: &SegmentCounts) -> Range<usize> {
    let is_full = |&segment: &usize| T::BYTES == 0 && counts.get(segment) == layout.slots();
    let first = (0..layout.num_segments()).take_while(is_full).count();
    let is_listed = |&segment: &usize| counts.get(segment) * LISTED_PART <= layout.slots();
    let listed = (first..layout.num_segments()).rev().take_while(is_listed).count();
    first..layout.num_segments() - listed
}

/// The capacity of a list of `len` bytes: `len`, rounded up to a size class of common allocators (four per doubling).
fn room_for(len: usize) -> usize {
    let step = len.checked_ilog2().map_or(0, |bits| bits.saturating_sub(2));
    len.next_multiple_of(LEAST_ROOM.max(1 << step))
}

/// The heap bytes of slots with these counts, if the segments in `window` are held as cells.
fn heap_bytes<T: SlotTag>(layout: Layout, counts: &SegmentCounts, window: &Range<usize>, ages: T::Ages) -> u64 {
    let listed = counts.sum(window.end..layout.num_segments()) * Slots::<T>::RECORD_BYTES;
    (window.len() * Slots::<T>::segment_words(layout, ages) * size_of::<u64>() + room_for(listed)) as u64
}

/// The heap bytes of slots with these counts.
pub(in crate::counting) fn bytes_of_counts<T: SlotTag>(layout: Layout, counts: &SegmentCounts, ages: T::Ages) -> u64 {
    Slots::<T>::STRUCT_BYTES + heap_bytes::<T>(layout, counts, &window_of::<T>(layout, counts), ages)
}

/// The records of a list: the place of each slot in its segment, and its tag.
fn records<T: SlotTag>(list: &[u8]) -> impl Iterator<Item = (usize, T)> {
    list.chunks_exact(Slots::<T>::RECORD_BYTES).filter_map(|record| {
        let (place, tag) = record.split_first_chunk()?;
        Some((u16::from_le_bytes(*place).into(), T::split(tag)?.0))
    })
}

impl<'a> Place<'a> {
    /// Calls `visit` with the place and tag of each marked slot, in ascending order.
    fn for_each<T: SlotTag>(self, layout: Layout, ages: T::Ages, visit: &mut dyn FnMut(usize, T)) {
        match self {
            Place::Full => (0..layout.slots() as usize).for_each(|place| visit(place, T::default())),
            Place::Cells(cells) => T::for_each(cells, ages, visit),
            Place::Listed(list) => records(list).for_each(|(place, tag)| visit(place, tag)),
        }
    }
}

impl<T: SlotTag> Slots<T> {
    /// Bytes of the struct itself.
    pub(in crate::counting) const STRUCT_BYTES: u64 = size_of::<Self>() as u64;
    /// Bytes of a listed slot.
    const RECORD_BYTES: usize = size_of::<u16>() + T::BYTES;

    /// Makes slots of which none is marked; allocates nothing.
    pub(in crate::counting) fn new(layout: Layout) -> Self {
        let (window, later, counts) = (Box::default(), Box::default(), SegmentCounts::default());
        let estimate = KeptEstimate::none();
        Slots { window, later, estimate, counts, lower_bound: 0, layout, first: 0, end: 0, tags: PhantomData }
    }

    /// Slots with these counts, all free. The caller [fills](Self::fill) each segment, in order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn with_counts(
        layout: Layout,
        counts: SegmentCounts,
        ages: T::Ages,
    ) -> Result<Self, Error> {
        let window = window_of::<T>(layout, &counts);
        let listed = counts.sum(window.end..layout.num_segments()) * Self::RECORD_BYTES;
        Ok(Slots {
            window: try_zeroed(window.len() * Self::segment_words(layout, ages))?,
            later: try_zeroed(room_for(listed))?,
            counts,
            first: window.start as u8,
            end: window.end as u8,
            ..Slots::new(layout)
        })
    }

    /// Fills a segment of new slots. `marked` has the bits of the segment's marked slots, and `tags` has their tags.
    pub(in crate::counting) fn fill(&mut self, segment: usize, marked: &[u64], tags: &[T], ages: T::Ages) {
        let tagged = || bits::ones_of(marked.iter().copied()).zip(tags.iter().copied());
        if segment >= self.end.into() {
            let mut at = self.counts.sum(self.end.into()..segment) * Self::RECORD_BYTES;
            tagged().for_each(|(place, tag)| put(&mut self.later, &mut at, place as usize, tag));
        } else if let Some(cells) = self.cells_mut(segment, ages) {
            if T::BYTES == 0 {
                bits::or_into(cells, marked);
            } else {
                tagged().for_each(|(place, tag)| _ = T::mark(cells, place as usize, tag, ages));
            }
        }
    }

    /// The number of words that the cells of a segment take.
    fn segment_words(layout: Layout, ages: T::Ages) -> usize {
        layout.slots() as usize * T::cell_bits(ages) / bits::WORD_BITS
    }

    /// The layout of the slots.
    #[inline]
    pub(in crate::counting) fn layout(&self) -> Layout {
        self.layout
    }

    /// The number of marked slots in each segment.
    pub(in crate::counting) fn counts(&self) -> &SegmentCounts {
        &self.counts
    }

    /// The least number of members that the counter can have.
    pub(in crate::counting) fn lower_bound(&self) -> u32 {
        self.lower_bound
    }

    /// Raises the lower bound of the number of members to at least `lower_bound`. Returns whether the bound changed.
    pub(in crate::counting) fn raise_lower_bound(&mut self, lower_bound: u32) -> bool {
        let is_raised = lower_bound > self.lower_bound;
        if is_raised {
            self.lower_bound = lower_bound;
            self.estimate.clear();
        }
        is_raised
    }

    /// The most likely number of members, at least the lower bound.
    pub(in crate::counting) fn estimate(&self) -> f64 {
        let compute = || Segments::new(self.layout, &self.counts).estimate();
        self.estimate.get_or(|| compute().max(f64::from(self.lower_bound)))
    }

    /// Bytes of the records.
    fn listed_bytes(&self) -> usize {
        self.counts.sum(self.end.into()..self.layout.num_segments()) * Self::RECORD_BYTES
    }

    /// The number of each segment, and how its marked slots are held.
    fn places(&self, ages: T::Ages) -> impl Iterator<Item = (usize, Place<'_>)> {
        let mut cells = self.window.chunks_exact(Self::segment_words(self.layout, ages));
        let mut later = &*self.later;
        (0..self.layout.num_segments()).map(move |segment| {
            if segment < self.first.into() {
                return (segment, Place::Full);
            }
            if segment < self.end.into() {
                return (segment, Place::Cells(cells.next().unwrap_or_default()));
            }
            let (list, rest) = later.split_at(self.counts.get(segment) as usize * Self::RECORD_BYTES);
            later = rest;
            (segment, Place::Listed(list))
        })
    }

    /// The cells of a segment; `None` if the segment is not held as cells.
    fn cells_mut(&mut self, segment: usize, ages: T::Ages) -> Option<&mut [u64]> {
        let words = Self::segment_words(self.layout, ages);
        let start = segment.checked_sub(self.first.into())? * words;
        self.window.get_mut(start..start + words)
    }

    /// A copy of the slots in which the segments in `window` are held as cells, and all later segments as lists.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_window(&self, window: Range<usize>, ages: T::Ages) -> Result<Self, Error> {
        let words = Self::segment_words(self.layout, ages);
        let mut cells: Box<[u64]> = try_zeroed(window.len() * words)?;
        let listed = self.counts.sum(window.end..self.layout.num_segments()) * Self::RECORD_BYTES;
        let (mut later, mut at): (Box<[u8]>, _) = (try_zeroed(room_for(listed))?, 0);
        for (segment, place) in self.places(ages).skip(window.start) {
            let to = cells.chunks_exact_mut(words).nth(segment - window.start);
            match (to, place) {
                (Some(to), Place::Full) => to.fill(u64::MAX),
                (Some(to), Place::Cells(own)) => to.copy_from_slice(own),
                (Some(to), place) => {
                    place.for_each(self.layout, ages, &mut |place, tag| _ = T::mark(to, place, tag, ages))
                }
                (None, place) => {
                    place.for_each(self.layout, ages, &mut |place, tag| put::<T>(&mut later, &mut at, place, tag));
                }
            }
        }
        let (first, end, estimate) = (window.start as u8, window.end as u8, self.estimate.clone());
        Ok(Slots { window: cells, later, estimate, first, end, ..*self })
    }

    /// A copy of the slots in which all segments are held as cells.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn widened(&self, ages: T::Ages) -> Result<Self, Error> {
        self.with_window(0..self.layout.num_segments(), ages)
    }

    /// Counts the marked slots anew, and returns a copy of the slots that is held as these counts require.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and the errors of `check`, which gets the heap bytes of the result.
    pub(in crate::counting) fn formed(
        mut self,
        ages: T::Ages,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        self.counts = self.counts_within(ages, u8::MAX);
        self.estimate.clear();
        let window = window_of::<T>(self.layout, &self.counts);
        check(heap_bytes::<T>(self.layout, &self.counts, &window, ages))?;
        self.with_window(window, ages)
    }

    /// Marks a slot, if it is free or its own tag is older.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`]; on error the slots are unchanged.
    #[inline(always)]
    pub(in crate::counting) fn mark(
        &mut self,
        slot: u32,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<Mark, Error> {
        let segment = self.layout.segment_of(slot);
        if segment >= self.end.into() {
            return self.mark_later(slot, adding);
        }
        let Some(slot) = slot.checked_sub(self.start()) else { return Ok(Mark::Same) };
        let mark = T::mark(&mut self.window, slot as usize, adding.tag, adding.ages);
        if mark == Mark::New {
            self.count_new(segment, adding.ages);
        }
        Ok(mark)
    }

    /// Marks `slots`, at most a chunk, one after the other like [`Self::mark`]. Passes the result for each slot to
    /// `marked`.
    ///
    /// # Errors
    /// The errors of [`Self::mark`]; on error the slots before the rejected one are marked.
    #[inline(always)]
    pub(in crate::counting) fn mark_all(
        &mut self,
        hashes: &[u64],
        adding: Adding<'_, T, impl SizeLimit>,
        mut marked: impl FnMut(Mark),
    ) -> Result<(), Error> {
        let (mut slots, mut next) = ([0; CHUNK], 0);
        let slots = &mut slots[..hashes.len()];
        slots_of(self.layout, hashes, slots);
        // In a large counter, most members mark slots that are marked already.
        for at in hash::marked(T::may_be_free(&self.window, self.start(), slots)) {
            (next..at).for_each(|_| marked(Mark::Same));
            marked(self.mark(slots[at], adding)?);
            next = at + 1;
        }
        (next..slots.len()).for_each(|_| marked(Mark::Same));
        Ok(())
    }

    /// The first slot that is held as a cell.
    #[inline(always)]
    fn start(&self) -> u32 {
        u32::from(self.first) << self.layout.segment_bits()
    }

    /// Counts a newly marked slot.
    #[inline(always)]
    fn count_new(&mut self, segment: usize, ages: T::Ages) {
        self.counts.add(segment, 1);
        self.estimate.clear();
        if T::BYTES == 0 && self.counts.get(segment) == self.layout.slots() {
            self.drop_full(ages);
        }
    }

    /// Stops holding cells for the full segments at the front. If memory for the smaller copy is lacking, all cells are
    /// kept.
    #[cold]
    fn drop_full(&mut self, ages: T::Ages) {
        if let Ok(smaller) = self.with_window(window_of::<T>(self.layout, &self.counts), ages) {
            *self = smaller;
        }
    }

    /// Marks a slot of a segment that is held as a list.
    #[inline(never)]
    fn mark_later(&mut self, slot: u32, adding: Adding<'_, T, impl SizeLimit>) -> Result<Mark, Error> {
        let Adding { tag, ages, limit, .. } = adding;
        let held_bytes = adding.held_bytes + Self::STRUCT_BYTES;
        let (segment, place) = (self.layout.segment_of(slot), self.layout.within(slot));
        let start = self.counts.sum(self.end.into()..segment) * Self::RECORD_BYTES;
        let len = self.counts.get(segment) as usize;
        let list = &mut self.later[start..start + len * Self::RECORD_BYTES];
        let at = find::<T>(list, place);
        if let Some(record) = list.get_mut(at..at + Self::RECORD_BYTES)
            && record[..2] == place.to_le_bytes()
        {
            return Ok(tag.renew_in(&mut record[2..], ages));
        }
        if (len as u64 + 1) * LISTED_PART > self.layout.slots() {
            let window = self.first.into()..segment + 1;
            limit.check(held_bytes, heap_bytes::<T>(self.layout, &self.counts, &window, ages))?;
            *self = self.with_window(window, ages)?;
            return self.mark(slot, adding);
        }
        let (at, end) = (start + at, self.listed_bytes());
        if end + Self::RECORD_BYTES > self.later.len() {
            let room = room_for(end + Self::RECORD_BYTES);
            limit.check(held_bytes + self.num_bytes(), (room - self.later.len()) as u64)?;
            let mut later: Box<[u8]> = try_zeroed(room)?;
            later[..end].copy_from_slice(&self.later[..end]);
            self.later = later;
        }
        self.later.copy_within(at..end, at + Self::RECORD_BYTES);
        put(&mut self.later, &mut { at }, place.into(), tag);
        self.count_new(segment, ages);
        Ok(Mark::New)
    }

    /// Marks the slots that are marked in `from`, folded to the layout of these slots. All segments of these slots must
    /// be held as cells. The newest slice of `from` is `behind` slices older than ours. Returns whether any tag
    /// changed. The caller must then call [`Self::formed`].
    pub(in crate::counting) fn merge(&mut self, from: &Self, theirs: T::Ages, behind: u8, ages: T::Ages) -> bool {
        let (layout, mut changed) = (self.layout, false);
        let is_alike = layout == from.layout && T::cell_bits(ages) == T::cell_bits(theirs);
        for (segment, place) in from.places(theirs) {
            match place {
                Place::Cells(cells) if is_alike => {
                    let own = self.cells_mut(segment, ages);
                    changed |= own.is_some_and(|own| T::merge(own, ages, cells, theirs, behind));
                }
                Place::Full if is_alike => {
                    let own = self.cells_mut(segment, ages).unwrap_or_default();
                    changed |= bits::count_ones(own) < layout.slots();
                    own.fill(u64::MAX);
                }
                _ => place.for_each(from.layout, theirs, &mut |place, tag: T| {
                    let slot = from.layout.slot_at(segment, place as u16);
                    let slot = if layout == from.layout { slot } else { from.layout.fold(slot, layout) };
                    changed |= self.mark_wide(slot, T::of_age(tag.age(theirs).saturating_add(behind), ages), ages);
                }),
            }
        }
        changed
    }

    /// Marks a slot with `tag`, if the tag is not too old. All segments must be held as cells. Returns whether the
    /// slot's tag changed. The caller must then call [`Self::formed`].
    pub(in crate::counting) fn mark_wide(&mut self, slot: u32, tag: Option<T>, ages: T::Ages) -> bool {
        tag.is_some_and(|tag| T::mark(&mut self.window, slot as usize, tag, ages) != Mark::Same)
    }

    /// Frees the slots that were marked more than `most_age` slices ago, and the memory that is no longer needed. If
    /// memory for the smaller copy is lacking, the larger one is kept.
    pub(in crate::counting) fn expire(&mut self, ages: T::Ages, most_age: u8) {
        let counts = self.counts_within(ages, most_age);
        T::free(&mut self.window, ages, most_age);
        let (mut from, mut to, record) = (0, 0, Self::RECORD_BYTES);
        let listed = self.listed_bytes();
        while from < listed {
            let tag = T::split(&self.later[from + 2..from + record]);
            if tag.is_some_and(|(tag, _)| tag.age(ages) <= most_age) {
                self.later.copy_within(from..from + record, to);
                to += record;
            }
            from += record;
        }
        self.counts = counts;
        self.estimate.clear();
        self.drop_full(ages);
    }

    /// The number of slots in each segment that were marked at most `most_age` slices ago.
    pub(in crate::counting) fn counts_within(&self, ages: T::Ages, most_age: u8) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        for (segment, place) in self.places(ages) {
            counts.add(
                segment,
                match place {
                    Place::Full => self.layout.slots(),
                    Place::Cells(cells) => T::count(cells, ages, most_age),
                    Place::Listed(list) => {
                        records::<T>(list).filter(|(_, tag)| tag.age(ages) <= most_age).count() as u64
                    }
                },
            );
        }
        counts
    }

    /// Sets in `bits` the bits of the slots that were marked at most `most_age` slices ago, folded to the layout `to`.
    /// `bits` has a bit for each slot of that layout.
    pub(in crate::counting) fn or_bits(&self, ages: T::Ages, most_age: u8, to: Layout, bits: &mut [u64]) {
        let words = to.slots() as usize / bits::WORD_BITS;
        for (segment, place) in self.places(ages) {
            if to == self.layout {
                self.or_segment(place, ages, most_age, &mut bits[segment * words..][..words]);
                continue;
            }
            place.for_each(self.layout, ages, &mut |place, tag: T| {
                if tag.age(ages) <= most_age {
                    let slot = self.layout.slot_at(segment, place as u16);
                    bits::set(bits, self.layout.fold(slot, to) as usize);
                }
            });
        }
    }

    fn or_segment(&self, place: Place<'_>, ages: T::Ages, most_age: u8, bits: &mut [u64]) {
        match place {
            Place::Listed(list) => {
                let live = records::<T>(list).filter(|(_, tag)| tag.age(ages) <= most_age);
                bits::set_all(bits, live.map(|(place, _)| place));
            }
            // In a union of many counters, all bits of the early segments are soon set. Checking this is faster than
            // reading tags.
            _ if T::BYTES > 0 && bits.iter().all(|&word| word == u64::MAX) => {}
            Place::Full => bits.fill(u64::MAX),
            Place::Cells(cells) => T::or_bits(cells, ages, most_age, bits),
        }
    }

    /// Calls `visit` with each segment that has a marked slot: its number, the bits of its marked slots, and their
    /// tags.
    pub(in crate::counting) fn for_each_segment(&self, ages: T::Ages, mut visit: impl FnMut(usize, &[u64], &[u8])) {
        let (mut words, mut tags) = ([0; (1 << MAX_SEGMENT_BITS) / bits::WORD_BITS], Vec::new());
        let bits = &mut words[..self.layout.slots() as usize / bits::WORD_BITS];
        for (segment, place) in self.places(ages).filter(|&(segment, _)| self.counts.get(segment) > 0) {
            bits.fill(0);
            tags.clear();
            self.or_segment(place, ages, u8::MAX, bits);
            if T::BYTES > 0 {
                place.for_each(self.layout, ages, &mut |_, tag: T| tags.extend_from_slice(tag.as_bytes()));
            }
            visit(segment, bits, &tags);
        }
    }

    /// Calls `visit` with the layout of each heap allocation, except the struct itself.
    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(Memory)) {
        let buffers = [Memory::for_value::<[u64]>(&self.window), Memory::for_value::<[u8]>(&self.later)];
        buffers.into_iter().filter(|memory| memory.size() > 0).for_each(visit);
    }

    /// Bytes of all heap allocations, except the struct itself.
    #[inline]
    pub(in crate::counting) fn num_bytes(&self) -> u64 {
        (size_of_val(&*self.window) + self.later.len()) as u64
    }

    /// Passes the buffer of cells to `mover`, and keeps the buffer that `mover` returns.
    pub(in crate::counting) fn relocate(&mut self, mover: &impl Mover) {
        self.window = mover.relocate(std::mem::take(&mut self.window));
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        let (window, later) =
            (try_to_vec(&self.window)?.into_boxed_slice(), try_to_vec(&self.later)?.into_boxed_slice());
        Ok(Slots { window, later, estimate: self.estimate.clone(), ..*self })
    }
}

impl Slots {
    /// Makes slots from a bitmap of all segments, in which the set bits are the marked slots.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn from_bits(layout: Layout, bits: Box<[u64]>) -> Result<Self, Error> {
        let wide = Slots { window: bits, end: layout.num_segments() as u8, ..Slots::new(layout) };
        wide.formed((), |_| Ok(()))
    }
}

impl Slots<u8> {
    /// Calls `visit` with a segment, a tag, and the number of the segment's slots with this tag. The same segment and
    /// tag may come several times.
    pub(in crate::counting) fn for_each_count(&self, ages: Ages, visit: &mut dyn FnMut(usize, u8, u64)) {
        for (segment, place) in self.places(ages) {
            match place {
                Place::Cells(cells) => for_each_count(cells, ages, &mut |tag, count| visit(segment, tag, count)),
                place => place.for_each(self.layout, ages, &mut |_, tag| visit(segment, tag, 1)),
            }
        }
    }
}

/// Writes a record at an offset, and moves the offset behind the record.
#[inline(always)]
fn put<T: SlotTag>(list: &mut [u8], at: &mut usize, place: usize, tag: T) {
    let record = &mut list[*at..*at + Slots::<T>::RECORD_BYTES];
    record[..2].copy_from_slice(&(place as u16).to_le_bytes());
    record[2..].copy_from_slice(tag.as_bytes());
    *at += record.len();
}

/// The offset of the first record whose place is at least `place`.
fn find<T: SlotTag>(list: &[u8], place: u16) -> usize {
    let record = Slots::<T>::RECORD_BYTES;
    let few = if T::BYTES == 0 { FEW } else { 0 };
    let (mut from, mut end) = (0, list.len() / record);
    while end - from > few {
        let middle = (from + end) / 2;
        // No branch, since a processor could not predict it.
        let is_below = u16::from_le_bytes([list[middle * record], list[middle * record + 1]]) < place;
        from = if is_below { middle + 1 } else { from };
        end = if is_below { end } else { middle };
    }
    // The remaining records are compared several at a time.
    let places = list[from * record..end * record].as_chunks().0;
    from += usize::from(places.iter().map(|&other| u16::from(u16::from_le_bytes(other) < place)).sum::<u16>());
    from * record
}

#[cfg(test)]
mod tests;
