//! The dense bitmap of a windowed counter. Each slot has a cell: the tag of the slice in which it was last marked, or 0
//! while free.
//!
//! Cells have 4 or 8 bits. The first of two cells in a byte is the lower half. Loops over all cells are also compiled
//! for wide registers, as in [`bits`].

use std::alloc::Layout as Memory;
use std::fmt::Debug;

use multiversion::multiversion;

use crate::bits;
use crate::counting::held::ring::Ages;
use crate::counting::held::tag::Tag;
use crate::counting::layout::{CHUNK, Layout, SegmentCounts, Slot, slots_of};
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::try_zeroed;
use crate::window::Mark;

/// The bytes of a block of cells. A search for live cells ends only after a whole block, whose loop has no branch.
const BLOCK_BYTES: usize = 8192;

/// The number of cells for a bitmap word of 64 bits, one bit for each cell.
const WORD_CELLS: usize = u64::BITS as usize;

/// The dense form of a bitmap: a cell for each slot of a layout.
pub(crate) trait Cells<T: Tag>: Debug + Sized {
    /// Bytes of the cells of a layout.
    fn num_bytes(layout: Layout, ages: T::Ages) -> u64;

    /// Bytes of the cells and of the counts that are allocated with them.
    fn heap_bytes(layout: Layout, ages: T::Ages) -> u64 {
        Self::num_bytes(layout, ages) + size_of::<SegmentCounts>() as u64
    }

    /// Cells of a layout, all free.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn new(layout: Layout, ages: T::Ages) -> Result<Self, Error>;

    /// Reads `num_bytes` bytes of stored cells. Where it can, the function moves the bytes out of `payload` and does
    /// not copy them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when a cell is neither free nor of a live slice, and [`Error::OutOfMemory`].
    fn from_payload(payload: &mut Vec<u8>, layout: Layout, ages: T::Ages) -> Result<Self, Error>;

    /// The cells, as they are stored.
    fn as_bytes(&self) -> &[u8];

    /// Marks the cell of `slot` with `tag`, if the cell is free or its own tag is older.
    fn mark(&mut self, slot: Slot, tag: T, ages: T::Ages) -> Mark;

    /// Marks the cell of `slot` with `tag`, whatever its own tag is. No branch depends on that: it could not be predicted.
    fn set(&mut self, slot: Slot, tag: T) -> Mark;

    /// Prefetches the cell of `slot`.
    fn prefetch(&self, slot: Slot);

    /// Marks the cells of `hashes`, in order, with the tag of the newest slice. It works in chunks, so that the reads
    /// of memory overlap.
    #[inline(always)]
    fn mark_all(
        &mut self,
        layout: Layout,
        mut hashes: impl Iterator<Item = u64>,
        ages: T::Ages,
        mut marked: impl FnMut(Mark),
    ) {
        let (mut chunk, mut slots) = ([0; CHUNK], [Slot::default(); CHUNK]);
        loop {
            let mut len = 0;
            for (place, hash) in chunk.iter_mut().zip(hashes.by_ref()) {
                *place = hash;
                len += 1;
            }
            if len == 0 {
                return;
            }
            slots_of(layout, &chunk, &mut slots);
            slots[..len].iter().for_each(|&slot| self.prefetch(slot));
            slots[..len].iter().for_each(|&slot| marked(self.set(slot, T::newest(ages))));
            if len < CHUNK {
                return;
            }
        }
    }

    /// The number of cells in each segment that are not free.
    fn counts(&self) -> &SegmentCounts;

    /// The number of cells in each segment that were marked at most `most_age` slices ago.
    fn counts_within(&self, layout: Layout, ages: T::Ages, most_age: u8) -> SegmentCounts;

    /// Whether any cell was marked at most `most_age` slices ago.
    fn has_any(&self, ages: T::Ages, most_age: u8) -> bool;

    /// Marks the cells of `from`, a bitmap of the layout `layout` whose newest slice is `behind` slices older. A cell
    /// keeps the younger of two tags; tags that are too old are ignored. Returns whether any tag changed. If the cells
    /// of the two bitmaps cannot be merged at once, changes nothing and returns `None`. After the last merge, the cells
    /// must be [counted](Self::count).
    fn merge(
        &mut self,
        to: Layout,
        ages: T::Ages,
        from: &Self,
        layout: Layout,
        theirs: T::Ages,
        behind: u8,
    ) -> Option<bool>;

    /// Counts the cells that are not free, after many of them changed.
    fn count(&mut self, layout: Layout, ages: T::Ages);

    /// Calls `visit` with the index and tag of each cell that is not free, in ascending order.
    fn for_each(&self, visit: &mut dyn FnMut(u64, T));

    /// The layouts of the heap allocations: the cells and the counts.
    fn heap_layouts(&self) -> [Memory; 2];

    /// Passes the buffer of cells to `mover` and keeps the buffer that it returns.
    fn relocate(&mut self, mover: &impl Mover);

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_clone(&self) -> Result<Self, Error>;
}

/// The dense form of a windowed bitmap: a tag for each slot.
#[derive(Debug)]
pub(crate) struct TagCells {
    bytes: Box<[u8]>,
    /// Whether a cell takes half a byte.
    has_halves: bool,
    /// The number of cells in each segment that are not free. Boxed, so that sparse bitmaps stay small.
    counts: Box<SegmentCounts>,
}

impl Cells<u8> for TagCells {
    fn num_bytes(layout: Layout, ages: Ages) -> u64 {
        layout.num_bits() >> u32::from(ages.has_halves())
    }

    fn new(layout: Layout, ages: Ages) -> Result<Self, Error> {
        let bytes = try_zeroed(Self::num_bytes(layout, ages) as usize)?;
        Ok(TagCells { bytes, has_halves: ages.has_halves(), counts: Box::default() })
    }

    fn from_payload(payload: &mut Vec<u8>, layout: Layout, ages: Ages) -> Result<Self, Error> {
        let has_halves = ages.has_halves();
        let is_dead = |&tag: &u8| tag != 0 && !ages.is_within(tag, ages.most_age);
        if let Some(tag) = payload.iter().flat_map(|&byte| cells_of(byte, has_halves)).find(is_dead) {
            return Err(Error::corrupt("tag", "0 or that of a living slice", tag));
        }
        let bytes = std::mem::take(payload).into_boxed_slice();
        let mut cells = TagCells { bytes, has_halves, counts: Box::default() };
        cells.count(layout, ages);
        Ok(cells)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline(always)]
    fn mark(&mut self, slot: Slot, tag: u8, ages: Ages) -> Mark {
        let before = self.get(slot.index as usize);
        // No tag is younger than the newest, and the compiler knows that `tag` is the newest where this is inlined.
        if before == tag || before != 0 && tag != ages.newest && ages.age(before) <= ages.age(tag) {
            return Mark::Same;
        }
        self.set(slot, tag)
    }

    #[inline(always)]
    fn set(&mut self, slot: Slot, tag: u8) -> Mark {
        let index = slot.index as usize;
        let before = self.get(index);
        if self.has_halves {
            // XOR with the difference replaces the half of the byte.
            self.bytes[index / 2] ^= (before ^ tag) << (index % 2 * 4);
        } else {
            self.bytes[index] = tag;
        }
        self.counts.add(slot.segment, u64::from(before == 0));
        match before {
            0 => Mark::New,
            _ if before == tag => Mark::Same,
            _ => Mark::Renewed,
        }
    }

    #[inline(always)]
    fn prefetch(&self, slot: Slot) {
        prefetch_index::prefetch_index(&self.bytes, slot.index as usize >> u32::from(self.has_halves));
    }

    fn counts(&self) -> &SegmentCounts {
        &self.counts
    }

    fn counts_within(&self, layout: Layout, ages: Ages, most_age: u8) -> SegmentCounts {
        let count = if self.has_halves { count::<true> } else { count::<false> };
        let mut counts = SegmentCounts::default();
        for (segment, cells) in self.by_segment(layout) {
            counts.add(segment, count(cells, ages, most_age));
        }
        counts
    }

    fn has_any(&self, ages: Ages, most_age: u8) -> bool {
        let count = if self.has_halves { count::<true> } else { count::<false> };
        self.bytes.chunks(BLOCK_BYTES).any(|block| count(block, ages, most_age) > 0)
    }

    fn merge(&mut self, to: Layout, ages: Ages, from: &Self, layout: Layout, theirs: Ages, behind: u8) -> Option<bool> {
        if layout != to || from.has_halves != self.has_halves {
            return None;
        }
        let merge = if self.has_halves { merge::<true> } else { merge::<false> };
        Some(merge(&mut self.bytes, ages, &from.bytes, theirs, behind))
    }

    fn count(&mut self, layout: Layout, ages: Ages) {
        *self.counts = self.counts_within(layout, ages, u8::MAX);
    }

    fn for_each(&self, visit: &mut dyn FnMut(u64, u8)) {
        for (chunk, bytes) in self.bytes.chunks(8).enumerate() {
            if bytes.iter().all(|&byte| byte == 0) {
                continue;
            }
            let start = (chunk * 8) << u32::from(self.has_halves);
            for index in start..start + (bytes.len() << u32::from(self.has_halves)) {
                match self.get(index) {
                    0 => {}
                    tag => visit(index as u64, tag),
                }
            }
        }
    }

    fn heap_layouts(&self) -> [Memory; 2] {
        [Memory::for_value::<[u8]>(&self.bytes), Memory::new::<SegmentCounts>()]
    }

    fn relocate(&mut self, mover: &impl Mover) {
        self.bytes = mover.relocate(std::mem::take(&mut self.bytes));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let mut bytes = try_zeroed(self.bytes.len())?;
        bits::copy_to_zeroed(&mut bytes, &self.bytes);
        Ok(TagCells { bytes, has_halves: self.has_halves, counts: self.counts.clone() })
    }
}

impl TagCells {
    #[inline]
    fn get(&self, index: usize) -> u8 {
        if self.has_halves { self.bytes[index / 2] >> (index % 2 * 4) & 0xf } else { self.bytes[index] }
    }

    /// Frees the cells whose tag is older than `most_age` slices. `ages` converts tags to ages.
    pub(in crate::counting) fn free_dead(&mut self, layout: Layout, ages: Ages, most_age: u8) {
        let free = if self.has_halves { free::<true> } else { free::<false> };
        free(&mut self.bytes, ages, most_age);
        self.count(layout, ages);
    }

    /// The bytes of the cells of each segment.
    fn by_segment(&self, layout: Layout) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = &*self.bytes;
        (0..layout.num_segments()).map(move |segment| {
            let (cells, beyond) = rest.split_at(layout.slots(segment) as usize >> u32::from(self.has_halves));
            rest = beyond;
            (segment, cells)
        })
    }

    /// Calls `visit` with a segment, a tag, and the number of the segment's cells with this tag. The same segment and
    /// tag may come several times.
    pub(in crate::counting) fn for_each_count(&self, layout: Layout, visit: &mut dyn FnMut(usize, u8, u64)) {
        for (segment, cells) in self.by_segment(layout) {
            // Neighbouring bytes are often equal. With a single table each increment would wait for the one before.
            let mut counts = [[0u32; 256]; 4];
            for four in cells.as_chunks::<4>().0 {
                counts.iter_mut().zip(four).for_each(|(counts, &byte)| counts[usize::from(byte)] += 1);
            }
            for byte in 0..=u8::MAX {
                let count = counts.iter().map(|counts| u64::from(counts[usize::from(byte)])).sum();
                for tag in cells_of(byte, self.has_halves).into_iter().filter(|&tag| tag != 0 && count > 0) {
                    visit(segment, tag, count);
                }
            }
        }
    }

    /// Sets, in the zeroed words `bitmap`, the bits of the slots that were marked at most `most_age` slices ago.
    pub(in crate::counting) fn to_words(&self, ages: Ages, most_age: u8, bitmap: &mut [u64]) {
        let to_words = if self.has_halves { to_words::<true> } else { to_words::<false> };
        to_words(&self.bytes, ages, most_age, bitmap);
    }
}

/// The number of bytes that are processed in parallel.
const LANES: usize = 64;

/// The cells of a byte: its halves, or the whole byte and a free cell.
#[inline(always)]
fn cells_of(byte: u8, has_halves: bool) -> [u8; 2] {
    if has_halves { [byte & 0xf, byte >> 4] } else { [byte, 0] }
}

/// The byte with these cells.
#[inline(always)]
fn byte_of([first, second]: [u8; 2], has_halves: bool) -> u8 {
    if has_halves { first | second << 4 } else { first }
}

/// The number of cells whose age is at most `most_age`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn count<const HALVES: bool>(bytes: &[u8], ages: Ages, most_age: u8) -> u64 {
    let mut total = 0;
    // At most 255 cells of a lane, the largest number that its byte can count.
    for rows in bytes.as_chunks::<LANES>().0.chunks(usize::from(u8::MAX) >> u32::from(HALVES)) {
        let mut lanes = [0u8; LANES];
        for row in rows {
            for (lane, &byte) in lanes.iter_mut().zip(row) {
                *lane += cells_of(byte, HALVES).map(|tag| u8::from(ages.is_within(tag, most_age))).iter().sum::<u8>();
            }
        }
        total += lanes.iter().map(|&lane| u64::from(lane)).sum::<u64>();
    }
    total
}

/// Frees the cells whose age is above `most_age`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn free<const HALVES: bool>(bytes: &mut [u8], ages: Ages, most_age: u8) {
    let kept = |tag| if ages.is_within(tag, most_age) { tag } else { 0 };
    bytes.iter_mut().for_each(|byte| *byte = byte_of(cells_of(*byte, HALVES).map(kept), HALVES));
}

/// The younger of the tags `own` and `other`, as a tag of our counter. The newest slice of the other counter is
/// `behind` slices older than ours.
#[inline(always)]
fn younger(own: u8, ages: Ages, other: u8, theirs: Ages, behind: u8) -> u8 {
    let age = theirs.age(other).saturating_add(behind);
    let is_taken = (other != 0) & (age <= ages.most_age) & ((own == 0) | (age < ages.age(own)));
    if is_taken { ages.tag(age) } else { own }
}

/// Gives each cell of `bytes` the [`younger`] of its own tag and that in `from`. Returns whether any cell changed.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn merge<const HALVES: bool>(bytes: &mut [u8], ages: Ages, from: &[u8], theirs: Ages, behind: u8) -> bool {
    let mut changed = 0;
    for (own, &other) in bytes.iter_mut().zip(from) {
        let ([first, second], others) = (cells_of(*own, HALVES), cells_of(other, HALVES));
        let merged =
            [younger(first, ages, others[0], theirs, behind), younger(second, ages, others[1], theirs, behind)];
        let merged = byte_of(merged, HALVES);
        changed |= *own ^ merged;
        *own = merged;
    }
    changed != 0
}

/// Sets the bits of the cells whose age is at most `most_age`, in the zeroed words `bitmap`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn to_words<const HALVES: bool>(bytes: &[u8], ages: Ages, most_age: u8, bitmap: &mut [u64]) {
    let cells = 1 + usize::from(HALVES);
    for (word, bytes) in bitmap.iter_mut().zip(bytes.chunks_exact(WORD_CELLS / cells)) {
        let mut marks = [0u8; WORD_CELLS];
        for (mark, &byte) in marks.iter_mut().zip(bytes) {
            let [first, second] = cells_of(byte, HALVES).map(|tag| u8::from(ages.is_within(tag, most_age)));
            *mark = first | second << 1;
        }
        let eights = (0..).zip(marks[..bytes.len()].as_chunks().0);
        *word = eights.fold(0, |word, (place, eight)| word | gathered(*eight, cells) << (8 * cells * place));
    }
}

/// The `width` lowest bits of each byte, in adjacent bits. All other bits of the bytes are 0.
#[inline(always)]
fn gathered(bytes: [u8; 8], width: usize) -> u64 {
    // Each step joins the lanes in pairs, from 8 bits to 64.
    [1, 2, 4].into_iter().fold(u64::from_le_bytes(bytes), |lanes, len| {
        let mask = u64::MAX / (u64::MAX >> (64 - 16 * len)) * ((1 << (2 * width * len)) - 1);
        (lanes | lanes >> ((8 - width) * len)) & mask
    })
}

#[cfg(test)]
mod tests;
