//! The bitmap of an estimating counter in compressed form. A bit is called a slot, and a set bit a marked slot. The
//! bitmap consists of segments, of which each takes half as many members as the one before.
//!
//! As members are added, the early segments fill up one after the other, while the late segments stay almost empty.
//! Only about seven segments in between hold much information (Lang; see [papers](crate::counting#papers)). The slots
//! are held in three parts:
//!
//! ```text
//! counts:  the number of marked slots in each segment
//! window:  | cells of segment first | ... | cells of segment end - 1 |      C bits each, or C tags
//! later:   | slots of segment end | slots of segment end + 1 | ...          ascending in each segment
//!            positions of 2 bytes, then, in a windowed counter, their tags of 1 byte
//! ```
//!
//! A cell is the bit of a slot or, in a windowed counter, its tag: the slice in which it was last marked. C is the
//! number of slots in a segment. The segments before `first` are full and take no memory. In a windowed counter `first`
//! is 0, since the tags of full segments have to be kept. Segment `end - 1` is the last that has too many marked slots
//! for a list. The slots never take more memory than the cells of all segments.

use std::alloc::Layout as Memory;
use std::ops::Range;

use multiversion::multiversion;

use crate::bits;
use crate::counting::estimate::{KeptEstimate, Segments};
use crate::counting::held::cells::{
    self, EARLY, Own, Place, find, list_bytes, list_room, lists_of, most_listed, segment_words,
};
use crate::counting::held::ring::{Ages, own_bytes};
use crate::counting::layout::{Layout, SegmentCounts, slots_of};
use crate::error::Error;
use crate::heap::Mover;
use crate::marks::{self, CHUNK};
use crate::size_limit::{SizeLimit, try_to_vec, try_zeroed};
use crate::window::Mark;

/// The marked slots (set bits) of an estimating counter, with the cached estimate.
#[derive(Debug)]
pub(in crate::counting) struct Slots {
    /// The cells of the segments `first..end`. A cell is a bit or, in a windowed counter, a slice tag.
    pub(in crate::counting) window: Box<[u64]>,
    /// The marked slots of all segments from number `end` on: their 16-bit positions in their segments, then unused
    /// elements. In a windowed counter, the slice tags of these slots follow, then unused elements. `counts` has the
    /// number of slots.
    later: Box<[u16]>,
    /// The cached estimate; it is absent if a slot of the bitmap was marked after it was computed.
    estimate: KeptEstimate,
    pub(in crate::counting) counts: SegmentCounts,
    /// A lower bound of the number of members: their number when the counter stopped being exact, or the largest lower
    /// bound of the merged counters. The estimate is never below it.
    pub(in crate::counting) lower_bound: u32,
    pub(in crate::counting) layout: Layout,
    ages: Ages,
    first: u8,
    end: u8,
}

// This struct takes a large part of a small counter's memory. Allocators have a size class of 160 bytes.
const _: () = assert!(size_of::<Slots>() <= 160);

/// The segments that are stored as cells: a bit or a slice tag for each slot. Segments before them are full and take no
/// memory. Segments after them are stored as lists.
fn window_of(layout: Layout, counts: &SegmentCounts, ages: Ages) -> Range<usize> {
    let is_full = |&segment: &usize| !ages.has_tags() && counts.get(segment) == layout.slots();
    let first = (0..layout.num_segments()).take_while(is_full).count();
    let is_listed = |&segment: &usize| counts.get(segment) <= most_listed(layout, segment, ages);
    let listed = (first..layout.num_segments()).rev().take_while(is_listed).count();
    first..layout.num_segments() - listed
}

/// The heap bytes for these numbers of marked slots. From segment `window.end` on, marked slots are stored in lists.
fn heap_bytes(layout: Layout, counts: &SegmentCounts, window: &Range<usize>, ages: Ages) -> u64 {
    let listed = counts.sum(window.end..layout.num_segments());
    (window.len() * segment_words(layout, ages) * size_of::<u64>() + list_bytes(listed, ages)) as u64
}

/// The bytes, struct and heap, for these numbers of marked slots of the bitmap.
pub(in crate::counting) fn bytes_of_counts(layout: Layout, counts: &SegmentCounts, ages: Ages) -> u64 {
    Slots::STRUCT_BYTES + heap_bytes(layout, counts, &window_of(layout, counts, ages), ages)
}

impl Slots {
    pub(in crate::counting) const STRUCT_BYTES: u64 = size_of::<Self>() as u64;

    /// Makes a bitmap without set bits. It allocates nothing.
    pub(in crate::counting) fn new(layout: Layout, ages: Ages) -> Self {
        let (window, later, counts) = (Box::default(), Box::default(), SegmentCounts::default());
        let estimate = KeptEstimate::none();
        Slots { window, later, estimate, counts, lower_bound: 0, layout, ages, first: 0, end: 0 }
    }

    /// Makes a bitmap without marked slots, with all segments stored as cells: a bit or a slice tag for each slot. The
    /// bitmaps of other counters can be [merged](Self::merge) into it. Merging does not update the numbers of marked
    /// slots; [`Self::formed`] counts them afterwards.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn wide(layout: Layout, ages: Ages) -> Result<Self, Error> {
        Slots::new(layout, ages).with_memory(SegmentCounts::default(), 0..layout.num_segments())
    }

    /// Makes a bitmap with these numbers of marked slots per segment. The caller must then write the marked slots of
    /// each segment to [`Self::own_mut`].
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn with_counts(layout: Layout, counts: SegmentCounts, ages: Ages) -> Result<Self, Error> {
        Slots::new(layout, ages).with_memory(counts, window_of(layout, &counts, ages))
    }

    /// Makes a bitmap with room for these numbers of marked slots per segment. The caller must write the slots. From
    /// segment `window.end` on, marked slots are stored in lists.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_memory(&self, counts: SegmentCounts, window: Range<usize>) -> Result<Self, Error> {
        let listed = counts.sum(window.end..self.layout.num_segments());
        Ok(Slots {
            window: try_zeroed(window.len() * segment_words(self.layout, self.ages))?,
            later: try_zeroed(list_bytes(listed, self.ages) / size_of::<u16>())?,
            estimate: KeptEstimate::none(),
            counts,
            first: window.start as u8,
            end: window.end as u8,
            ..*self
        })
    }

    /// Writes the marked slots of `from` to a bitmap that was just made.
    fn fill(&mut self, from: &Self) {
        let marked = from.places().filter(|&(segment, _)| from.counts.get(segment) > 0);
        marked.for_each(|(segment, place)| cells::fill(self.own_mut(segment), place, from.ages));
    }

    /// The memory of a segment of a bitmap that was just made. It is all zeros.
    pub(in crate::counting) fn own_mut(&mut self, segment: usize) -> Own<'_> {
        if segment < self.first.into() {
            return Own::Full;
        }
        let words = segment_words(self.layout, self.ages);
        let start = (segment - usize::from(self.first)) * words;
        if segment < self.end.into() {
            return Own::Cells(&mut self.window[start..start + words]);
        }
        let (start, len) = (self.counts.sum(self.end.into()..segment), self.counts.get(segment) as usize);
        let (places, tags) = lists_of(&mut self.later, self.ages);
        Own::Listed(&mut places[start..start + len], tags.get_mut(start..start + len).unwrap_or_default())
    }

    /// Raises the lower bound of the number of members to at least `lower_bound`. Returns whether the bound changed.
    pub(in crate::counting) fn raise_lower_bound(&mut self, lower_bound: u32) -> bool {
        let changed = lower_bound > self.lower_bound;
        if changed {
            self.lower_bound = lower_bound;
            self.estimate.clear();
        }
        changed
    }

    /// The most likely number of members, or the known lower bound of this number if that is larger.
    pub(in crate::counting) fn estimate(&self) -> f64 {
        let compute = || Segments::new(self.layout, &self.counts).estimate();
        self.estimate.get_or(|| compute().max(f64::from(self.lower_bound)))
    }

    fn num_listed(&self) -> usize {
        self.counts.sum(self.end.into()..self.layout.num_segments())
    }

    /// The positions and slice tags of the marked slots in `later`.
    fn lists(&self) -> (&[u16], &[u8]) {
        let ((places, tags), len) = (self.later.split_at(list_room(self.later.len(), self.ages)), self.num_listed());
        (&places[..len], bytemuck::cast_slice(tags).get(..len).unwrap_or_default())
    }

    /// The number of each segment, and the form in which its marked slots are stored. Empty segments may be left out.
    pub(in crate::counting) fn places(&self) -> impl Iterator<Item = (usize, Place<'_>)> {
        let mut cells = self.window.chunks_exact(segment_words(self.layout, self.ages));
        let (mut places, mut tags) = self.lists();
        let (end, counts) = (self.end.into(), &self.counts);
        let segments = (0..self.layout.num_segments()).filter(move |&segment| segment < end || counts.get(segment) > 0);
        segments.map(move |segment| {
            if segment < self.first.into() {
                return (segment, Place::Full);
            }
            if segment < end {
                return (segment, Place::Cells(cells.next().unwrap_or_default()));
            }
            let len = self.counts.get(segment) as usize;
            let (own, own_tags);
            (own, places) = places.split_at(len);
            (own_tags, tags) = tags.split_at(len.min(tags.len()));
            (segment, Place::Listed(own, own_tags))
        })
    }

    /// A copy of the bitmap. From segment `window.end` on, marked slots are stored in lists.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_window(&self, window: Range<usize>) -> Result<Self, Error> {
        let mut copy = self.with_memory(self.counts, window)?;
        copy.fill(self);
        Ok(copy)
    }

    /// Recounts the marked slots, and returns a copy in which each segment of the bitmap has the form that its number
    /// of marked slots requires.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and the errors of `check`, which is called with the bytes of the copy.
    pub(in crate::counting) fn formed(mut self, check: impl FnOnce(u64) -> Result<(), Error>) -> Result<Self, Error> {
        self.counts = self.counts_within(u8::MAX);
        self.estimate.clear();
        check(bytes_of_counts(self.layout, &self.counts, self.ages))?;
        self.with_window(window_of(self.layout, &self.counts, self.ages))
    }

    /// Whether both bitmaps have the same marked slots, with the same slice tags. Both must have the same layout.
    pub(in crate::counting) fn has_slots_of(&self, other: &Self) -> bool {
        self.counts == other.counts && self.window == other.window && self.lists() == other.lists()
    }

    /// Marks a slot of the bitmap, if it is free or its present slice tag is older.
    ///
    /// # Errors
    /// The errors of the size limit, and [`Error::OutOfMemory`]. On error the slots are unchanged.
    #[inline(always)]
    pub(in crate::counting) fn mark(&mut self, slot: u32, tag: u8, limit: &impl SizeLimit) -> Result<Mark, Error> {
        // Without a window, the tag and `ages` are constants, which makes the compiled code shorter.
        match self.ages {
            ages if ages.has_tags() => self.mark_at(slot, (tag, ages), limit),
            _ => self.mark_at(slot, (Ages::PLAIN.newest, Ages::PLAIN), limit),
        }
    }

    /// Does the same as [`Self::mark`]. `ages` must be that of `self`; a loop keeps it in registers.
    #[inline(always)]
    fn mark_at(&mut self, slot: u32, (tag, ages): (u8, Ages), limit: &impl SizeLimit) -> Result<Mark, Error> {
        let segment = self.layout.segment_of(slot);
        if segment >= self.end.into() {
            return self.mark_later(slot, tag, limit);
        }
        let Some(slot) = slot.checked_sub(self.start()) else { return Ok(Mark::Same) };
        let mark = cells::mark(&mut self.window, slot as usize, tag, ages);
        if mark == Mark::New {
            self.count_new(segment, ages);
        }
        Ok(mark)
    }

    /// Marks the slots of at most 64 hashes like [`Self::mark`], one after the other, with the tag of the newest slice.
    /// Calls `marked` with each result.
    ///
    /// # Errors
    /// The errors of [`Self::mark`]. On error the slots before the rejected one are marked.
    #[inline(always)]
    pub(in crate::counting) fn mark_all(
        &mut self,
        hashes: &[u64],
        limit: &impl SizeLimit,
        mut marked: impl FnMut(Mark),
    ) -> Result<(), Error> {
        let (mut slots, mut next, ages) = ([0; CHUNK], 0, self.ages);
        let slots = &mut slots[..hashes.len()];
        slots_of(self.layout, hashes, slots);
        if ages.has_tags() {
            // The lists of later segments are short.
            if usize::from(self.end) < EARLY
                && let Some(marks) = self.mark_early(slots, limit)
            {
                marks[..slots.len()].iter().for_each(|&mark| marked(mark));
                return Ok(());
            }
            return slots.iter().try_for_each(|&slot| self.mark_at(slot, (ages.newest, ages), limit).map(&mut marked));
        }
        // In a large counter, most slots are marked already. So only the slots that may be free are marked one by one.
        for at in marks::marked(cells::may_be_free(&self.window, self.start(), slots)) {
            (next..at).for_each(|_| marked(Mark::Same));
            marked(self.mark(slots[at], ages.newest, limit)?);
            next = at + 1;
        }
        (next..slots.len()).for_each(|_| marked(Mark::Same));
        Ok(())
    }

    /// Marks at most 64 slots of a windowed counter as [`Self::mark_all`] does, but moves each part of the lists once.
    /// The result is `None`, and the slots are unchanged, if they may have to be marked one by one.
    #[inline(never)]
    fn mark_early(&mut self, slots: &[u32], limit: &impl SizeLimit) -> Option<[Mark; CHUNK]> {
        let (layout, ages, end) = (self.layout, self.ages, u32::from(self.end) << self.layout.segment_bits());
        let (mut listed, mut others, mut num_listed, mut num_others) = ([0; CHUNK], [0; CHUNK], 0, 0);
        // There are few branches here and below, because a processor cannot predict which slots are in lists or marked.
        for (number, &slot) in (0..).zip(slots) {
            let key = slot * CHUNK as u32 + number;
            (listed[num_listed], others[num_others]) = (key, key);
            num_listed += usize::from(slot >= end);
            num_others += usize::from(slot < end);
        }
        let mut marks = self.mark_listed(&mut listed[..num_listed], limit)?;
        for &key in &others[..num_others] {
            let slot = key / CHUNK as u32;
            let mark = cells::mark(&mut self.window, slot as usize, ages.newest, ages);
            self.counts.add(layout.segment_of(slot), (mark == Mark::New).into());
            marks[key as usize % CHUNK] = mark;
        }
        if marks.contains(&Mark::New) {
            self.estimate.clear();
        }
        Some(marks)
    }

    /// The first slot after the segments at the front of the bitmap that are full, and so take no memory.
    #[inline(always)]
    fn start(&self) -> u32 {
        u32::from(self.first) << self.layout.segment_bits()
    }

    #[inline(always)]
    fn count_new(&mut self, segment: usize, ages: Ages) {
        self.counts.add(segment, 1);
        self.estimate.clear();
        if self.counts.get(segment) == self.layout.slots() && !ages.has_tags() {
            self.form_anew();
        }
    }

    /// Makes a smaller copy of the bitmap, for example after a segment has become full, since a full segment needs no
    /// memory. If the allocation fails, the bitmap stays as it is.
    #[cold]
    fn form_anew(&mut self) {
        if let Ok(smaller) = self.with_window(window_of(self.layout, &self.counts, self.ages)) {
            *self = smaller;
        }
    }

    /// Does the same as [`Self::mark`] for a slot in a segment that is stored as a list.
    #[inline(never)]
    fn mark_later(&mut self, slot: u32, tag: u8, limit: &impl SizeLimit) -> Result<Mark, Error> {
        let (ages, segment) = (self.ages, self.layout.segment_of(slot));
        let (at, is_marked) = self.place_from(self.counts.sum(self.end.into()..segment), slot);
        let at = at as usize;
        if is_marked {
            return Ok(lists_of(&mut self.later, ages).1.get_mut(at).map_or(Mark::Same, |own| ages.renew(own, tag)));
        }
        if self.counts.get(segment) >= most_listed(self.layout, segment, ages) {
            let window = self.first.into()..segment + 1;
            let held_bytes = own_bytes(ages.has_tags()) + Self::STRUCT_BYTES;
            limit.check(held_bytes, heap_bytes(self.layout, &self.counts, &window, ages))?;
            *self = self.with_window(window)?;
            return self.mark(slot, tag, limit);
        }
        let num_listed = self.num_listed();
        self.make_room(num_listed + 1, |held, more| limit.check(held, more))?;
        let (places, tags) = lists_of(&mut self.later, ages);
        places.copy_within(at..num_listed, at + 1);
        places[at] = self.layout.within(slot);
        if ages.has_tags() {
            tags.copy_within(at..num_listed, at + 1);
            tags[at] = tag;
        }
        self.count_new(segment, ages);
        Ok(Mark::New)
    }

    /// The part of [`Self::mark_early`] for slots in lists. A key is a slot (21 bits), then the number of its result.
    #[inline(always)]
    fn mark_listed(&mut self, keys: &mut [u32], limit: &impl SizeLimit) -> Option<[Mark; CHUNK]> {
        let (layout, ages, mut counts) = (self.layout, self.ages, self.counts);
        let (mut found, mut marks, mut new) = ([(0, false); CHUNK], [Mark::Same; CHUNK], [(0, 0); CHUNK]);
        keys.sort_unstable();
        places_of(self, keys, &mut found);
        let (mut num_new, mut last) = (0, u32::MAX);
        for (&(at, is_marked), &key) in found.iter().zip(&*keys) {
            // The first of equal slots is the one that is new.
            let slot = key / CHUNK as u32;
            let is_new = !is_marked & (slot != last);
            (new[num_new], last) = ((at, key), slot);
            num_new += usize::from(is_new);
            counts.add(layout.segment_of(slot), is_new.into());
        }
        // A list that becomes too long joins the window at the end.
        let is_long = |&segment: &usize| counts.get(segment) > most_listed(layout, segment, ages);
        let (mut long, mut wider) = ((self.end.into()..layout.num_segments()).filter(is_long), None);
        if let Some(segment) = long.next() {
            let (held_bytes, window) = (own_bytes(true) + Self::STRUCT_BYTES, 0..segment + 1);
            let is_allowed = limit.allows(held_bytes, heap_bytes(layout, &counts, &window, ages));
            if long.next().is_some() || !is_allowed {
                return None;
            }
            wider = Some(self.with_memory(counts, window).ok()?);
        }
        // If the limit rejects all together, each slot asks it again, which is what counts.
        let mut from = self.num_listed();
        let ask = |held, more| limit.allows(held, more).then_some(()).ok_or(Error::OutOfMemory { needed_bytes: more });
        self.make_room(from + num_new, ask).ok()?;
        let (places, tags) = lists_of(&mut self.later, ages);
        for (&(at, is_marked), key) in found.iter().zip(keys) {
            let own = &mut tags[at as usize];
            let is_old = is_marked & (*own != ages.newest);
            marks[*key as usize % CHUNK] = if is_old { Mark::Renewed } else { Mark::Same };
            *own = if is_old { ages.newest } else { *own };
        }
        // What lies behind a new slot moves by the number of new slots up to this one.
        for (number, &(at, key)) in new[..num_new].iter().enumerate().rev() {
            let (at, to) = (at as usize, at as usize + number);
            places.copy_within(at..from, to + 1);
            tags.copy_within(at..from, to + 1);
            (places[to], tags[to], from) = (layout.within(key / CHUNK as u32), ages.newest, at);
            marks[key as usize % CHUNK] = Mark::New;
        }
        self.counts = counts;
        if let Some(mut wider) = wider {
            wider.fill(self);
            *self = wider;
        }
        Some(marks)
    }

    /// The place in the lists of a slot, or of the next marked one if the slot is free, and whether the slot is marked.
    /// The list of its segment begins at `start`.
    #[inline(always)]
    fn place_from(&self, start: usize, slot: u32) -> (u32, bool) {
        let (segment, place) = (self.layout.segment_of(slot), self.layout.within(slot));
        let list = &self.later[start..start + self.counts.get(segment) as usize];
        let at = find(list, place, self.layout.segment_bits());
        ((start + at) as u32, list.get(at) == Some(&place))
    }

    /// Makes room for `len` slots in the lists. `check` is called with the bytes of the counter and those to be added.
    ///
    /// # Errors
    /// The errors of `check`, and [`Error::OutOfMemory`]. On error the slots are unchanged.
    fn make_room(&mut self, len: usize, check: impl FnOnce(u64, u64) -> Result<(), Error>) -> Result<(), Error> {
        if len <= list_room(self.later.len(), self.ages) {
            return Ok(());
        }
        let held_bytes = own_bytes(self.ages.has_tags()) + Self::STRUCT_BYTES + self.num_bytes();
        let bytes = list_bytes(len, self.ages);
        check(held_bytes, (bytes - size_of_val(&*self.later)) as u64)?;
        let mut later: Box<[u16]> = try_zeroed(bytes / size_of::<u16>())?;
        let ((places, tags), (own_places, own_tags)) = (lists_of(&mut later, self.ages), self.lists());
        places[..own_places.len()].copy_from_slice(own_places);
        tags[..own_tags.len()].copy_from_slice(own_tags);
        self.later = later;
        Ok(())
    }

    /// Merges the bitmap `from`, converted to the layout of `self`, into `self`. `self` must be [wide](Self::wide).
    /// Slots that were last marked more than `most_age` slices before the newest slice of `from` are left out. The
    /// newest slice of `from` is `behind` slices earlier than that of `self`. If `self` has a window,
    /// `most_age + behind` must be at most its number of slices.
    pub(in crate::counting) fn merge(&mut self, from: &Self, most_age: u8, behind: u8) {
        let (layout, ages, theirs) = (self.layout, self.ages, from.ages);
        let is_alike = layout == from.layout && (!ages.has_tags() || ages.modulus == theirs.modulus);
        let words = segment_words(layout, ages);
        for (segment, place) in from.places() {
            match (place, self.window.get_mut(segment * words..(segment + 1) * words)) {
                (Place::Cells(cells), Some(own)) if is_alike => {
                    cells::merge(own, ages, cells, theirs, most_age, behind);
                }
                (Place::Full, Some(own)) if is_alike => own.fill(u64::MAX),
                (Place::Listed(places, []), Some(own)) if is_alike => bits::set_all(own, places),
                (Place::Listed(places, tags), Some(own)) if is_alike => {
                    cells::merge_list(own, ages, (places, tags), theirs, most_age, behind);
                }
                _ => place.for_each(from.layout, theirs, |place, tag| {
                    let (age, slot) = (theirs.age(tag), from.layout.slot_at(segment, place as u16));
                    if age <= most_age {
                        self.mark_wide(from.layout.fold(slot, layout), age + behind);
                    }
                }),
            }
        }
    }

    /// Marks the slot of a member that was last added `age` slices before the newest slice, and has not expired. `self`
    /// must be [wide](Self::wide). Without a window, any age is allowed.
    pub(in crate::counting) fn mark_wide(&mut self, slot: u32, age: u8) {
        let tag = self.ages.tag(age.min(self.ages.most_age));
        cells::mark(&mut self.window, slot as usize, tag, self.ages);
    }

    /// Unmarks the slots of the bitmap that were last marked more than `most_age` slices ago, and releases unused
    /// memory. `later` becomes the [`Ages`] of the bitmap.
    pub(in crate::counting) fn expire(&mut self, most_age: u8, later: Ages) {
        let (counts, ages, num_listed) = (self.counts_within(most_age), self.ages, self.num_listed());
        cells::free(&mut self.window, ages, most_age);
        let ((places, tags), mut left) = (lists_of(&mut self.later, ages), 0);
        for at in 0..num_listed {
            if ages.age(tags[at]) <= most_age {
                (places[left], tags[left]) = (places[at], tags[at]);
                left += 1;
            }
        }
        (self.counts, self.ages) = (counts, later);
        self.estimate.clear();
        self.form_anew();
    }

    /// For each segment of the bitmap, its number and how many of its slots were last marked at most `most_age` slices
    /// ago. Segments without marked slots may be left out.
    fn counted(&self, most_age: u8) -> impl Iterator<Item = (usize, u64)> {
        let ages = self.ages;
        self.places().map(move |(segment, place)| match place {
            Place::Full => (segment, self.layout.slots()),
            Place::Cells(cells) => (segment, cells::count(cells, ages, most_age)),
            Place::Listed(places, []) => (segment, places.len() as u64),
            Place::Listed(_, tags) => (segment, tags.iter().filter(|&&tag| ages.age(tag) <= most_age).count() as u64),
        })
    }

    /// For each segment of the bitmap, the number of slots that were last marked at most `most_age` slices ago.
    pub(in crate::counting) fn counts_within(&self, most_age: u8) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        self.counted(most_age).for_each(|(segment, slots)| counts.add(segment, slots));
        counts
    }

    /// Whether any slot of the bitmap was last marked at most `most_age` slices ago.
    pub(in crate::counting) fn has_any(&self, most_age: u8) -> bool {
        self.counted(most_age).any(|(_, slots)| slots > 0)
    }

    /// Calls `visit` with each segment of a windowed counter's bitmap and each slice tag, and with the number of slots
    /// of the segment that have the tag. A segment may be visited several times with the same tag.
    pub(in crate::counting) fn tally(&self, visit: &mut dyn FnMut(usize, u8, u64)) {
        for (segment, place) in self.places() {
            match place {
                Place::Cells(cells) => cells::tally(cells, self.ages, &mut |tag, slots| visit(segment, tag, slots)),
                _ => place.for_each(self.layout, self.ages, |_, tag| visit(segment, tag, 1)),
            }
        }
    }

    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(Memory)) {
        let buffers = [Memory::for_value::<[u64]>(&self.window), Memory::for_value::<[u16]>(&self.later)];
        buffers.into_iter().filter(|memory| memory.size() > 0).for_each(visit);
    }

    /// The total size of the heap buffers, in bytes.
    #[inline]
    pub(in crate::counting) fn num_bytes(&self) -> u64 {
        (size_of_val(&*self.window) + size_of_val(&*self.later)) as u64
    }

    pub(in crate::counting) fn relocate(&mut self, mover: &impl Mover) {
        self.window = mover.relocate(std::mem::take(&mut self.window));
        self.later = mover.relocate(std::mem::take(&mut self.later));
    }

    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        let (window, later) = (try_to_vec(&self.window)?.into(), try_to_vec(&self.later)?.into());
        Ok(Slots { window, later, estimate: KeptEstimate::none(), ..*self })
    }
}

/// Finds the slots of at most 64 ascending keys in the lists. See [`Slots::mark_listed`].
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn places_of(slots: &Slots, keys: &[u32], places: &mut [(u32, bool); CHUNK]) {
    let (mut segment, mut start) = (slots.end.into(), 0);
    for (place, key) in places.iter_mut().zip(keys) {
        let slot = key / CHUNK as u32;
        while segment < slots.layout.segment_of(slot) {
            start += slots.counts.get(segment) as usize;
            segment += 1;
        }
        *place = slots.place_from(start, slot);
    }
}

#[cfg(test)]
mod tests;
