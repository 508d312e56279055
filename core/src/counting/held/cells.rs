//! The cells of the slots in a range of segments. Without a window, the cell of a slot is a bit. With a window, it is
//! the tag of the slice in which the slot was last marked; 0 while the slot is free.
//!
//! Cells have 1, 4 or 8 bits and fill words from the lowest bits up. Loops over all cells are also compiled for wide
//! registers, as in [`bits`].

use multiversion::multiversion;

use crate::bits;
use crate::counting::held::ring::Ages;
use crate::counting::held::tag::Tag;
use crate::hash::{Marks, first_marks};
use crate::window::Mark;

/// A tag of a slot, and the functions for the cells that hold such tags.
pub(crate) trait SlotTag: Tag {
    /// The number of bits in a cell: 1, 4 or 8.
    fn cell_bits(ages: Self::Ages) -> usize;

    /// Marks a slot with `tag`, if the slot is free or its own tag is older.
    fn mark(cells: &mut [u64], slot: usize, tag: Self, ages: Self::Ages) -> Mark;

    /// The mask of those slots, of at most a chunk, that may still be free. `cells` begin with the cell of slot
    /// `start`. All slots before `start` are marked.
    fn may_be_free(_cells: &[u64], _start: u32, slots: &[u32]) -> Marks {
        first_marks(slots.len())
    }

    /// Calls `visit` with each marked slot and its tag, in ascending order of slots.
    fn for_each(cells: &[u64], ages: Self::Ages, visit: &mut dyn FnMut(usize, Self));

    /// The number of slots that were marked at most `most_age` slices ago.
    fn count(cells: &[u64], ages: Self::Ages, most_age: u8) -> u64;

    /// Marks the slots that are marked in `from`. The cells of `from` have as many bits as ours, and its newest slice
    /// is `behind` slices older than ours. A slot keeps the younger of two tags; tags that are too old are ignored.
    /// Returns whether any tag changed.
    fn merge(cells: &mut [u64], ages: Self::Ages, from: &[u64], theirs: Self::Ages, behind: u8) -> bool;

    /// Sets in `bits` the bits of the slots that were marked at most `most_age` slices ago.
    fn or_bits(cells: &[u64], ages: Self::Ages, most_age: u8, bits: &mut [u64]);

    /// Frees the slots whose tag is older than `most_age` slices.
    fn free(cells: &mut [u64], ages: Self::Ages, most_age: u8);
}

impl SlotTag for () {
    #[inline(always)]
    fn cell_bits((): ()) -> usize {
        1
    }

    #[inline(always)]
    fn mark(cells: &mut [u64], slot: usize, (): (), (): ()) -> Mark {
        if bits::set(cells, slot) { Mark::New } else { Mark::Same }
    }

    fn may_be_free(cells: &[u64], start: u32, slots: &[u32]) -> Marks {
        may_be_free(cells, start, slots)
    }

    fn for_each(cells: &[u64], (): (), visit: &mut dyn FnMut(usize, ())) {
        bits::ones(cells).for_each(|slot| visit(slot, ()));
    }

    fn count(cells: &[u64], (): (), _: u8) -> u64 {
        bits::count_ones(cells)
    }

    fn merge(cells: &mut [u64], (): (), from: &[u64], (): (), _: u8) -> bool {
        let before = bits::count_ones(cells);
        bits::or_into(cells, from);
        bits::count_ones(cells) > before
    }

    fn or_bits(cells: &[u64], (): (), _: u8, bits: &mut [u64]) {
        bits::or_into(bits, cells);
    }

    fn free(_: &mut [u64], (): (), _: u8) {}
}

impl SlotTag for u8 {
    #[inline(always)]
    fn cell_bits(ages: Ages) -> usize {
        if ages.has_halves() { 4 } else { 8 }
    }

    #[inline(always)]
    fn mark(cells: &mut [u64], slot: usize, tag: u8, ages: Ages) -> Mark {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(cells);
        let (byte, shift, mask) =
            if ages.has_halves() { (&mut bytes[slot / 2], slot % 2 * 4, 0xf) } else { (&mut bytes[slot], 0, 0xff) };
        let before = *byte >> shift & mask;
        // No tag is younger than the tag of the newest slice.
        if before == tag || before != 0 && tag != ages.newest && ages.age(before) <= ages.age(tag) {
            return Mark::Same;
        }
        // XOR with `before ^ tag` replaces one half of the byte and leaves the other.
        *byte ^= (before ^ tag) << shift;
        if before == 0 { Mark::New } else { Mark::Renewed }
    }

    fn for_each(cells: &[u64], ages: Ages, visit: &mut dyn FnMut(usize, u8)) {
        let bits = Self::cell_bits(ages);
        for (word, &cells) in cells.iter().enumerate() {
            let mut rest = cells;
            while rest != 0 {
                let cell = rest.trailing_zeros() as usize / bits;
                let mask = ((1u64 << bits) - 1) << (cell * bits);
                visit(word * (u64::BITS as usize / bits) + cell, ((rest & mask) >> (cell * bits)) as u8);
                rest &= !mask;
            }
        }
    }

    fn count(cells: &[u64], ages: Ages, most_age: u8) -> u64 {
        let count = if ages.has_halves() { count::<true> } else { count::<false> };
        count(bytemuck::cast_slice(cells), ages, most_age)
    }

    fn merge(cells: &mut [u64], ages: Ages, from: &[u64], theirs: Ages, behind: u8) -> bool {
        let merge = if ages.has_halves() { merge::<true> } else { merge::<false> };
        merge(bytemuck::cast_slice_mut(cells), ages, bytemuck::cast_slice(from), theirs, behind)
    }

    fn or_bits(cells: &[u64], ages: Ages, most_age: u8, bits: &mut [u64]) {
        let or_bits = if ages.has_halves() { or_bits::<true> } else { or_bits::<false> };
        or_bits(bytemuck::cast_slice(cells), ages, most_age, bits);
    }

    fn free(cells: &mut [u64], ages: Ages, most_age: u8) {
        let free = if ages.has_halves() { free::<true> } else { free::<false> };
        free(bytemuck::cast_slice_mut(cells), ages, most_age);
    }
}

/// Calls `visit` with each tag and the number of the slots that have it. The same tag may come several times.
pub(in crate::counting) fn for_each_count(cells: &[u64], ages: Ages, visit: &mut dyn FnMut(u8, u64)) {
    // Neighbouring bytes are often equal. With a single table, each increment would have to wait for the last one, so
    // four tables take turns.
    let mut counts = [[0u32; 256]; 4];
    for four in bytemuck::cast_slice::<_, u8>(cells).as_chunks::<4>().0 {
        counts.iter_mut().zip(four).for_each(|(counts, &byte)| counts[usize::from(byte)] += 1);
    }
    for byte in 0..=u8::MAX {
        let count = counts.iter().map(|counts| u64::from(counts[usize::from(byte)])).sum();
        let tags = cells_of(byte, ages.has_halves()).into_iter().filter(|&tag| tag != 0 && count > 0);
        tags.for_each(|tag| visit(tag, count));
    }
}

/// The same as [`SlotTag::may_be_free`] for bits.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn may_be_free(cells: &[u64], start: u32, slots: &[u32]) -> Marks {
    let mut marks = 0;
    for (number, &slot) in slots.iter().enumerate() {
        // No branch: a processor cannot predict which members fall in full segments or on free slots.
        let word = slot.wrapping_sub(start) as usize / bits::WORD_BITS;
        let is_free = cells.get(word).unwrap_or(&0) >> (slot % u64::BITS) & 1 == 0;
        marks |= Marks::from(is_free & (slot >= start)) << number;
    }
    marks
}

/// The number of bytes that are processed in parallel.
const LANES: usize = 64;

/// The two cells of a byte: its two halves. If a cell takes a whole byte, the second cell is a free one.
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
    // A lane counts in one byte, so it counts at most 255 cells before the counts are summed.
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

/// The younger of the tags `own` and `other`, as a tag of our counter. The newest slice of the counter of `other` is
/// `behind` slices older than ours.
#[inline(always)]
fn younger(own: u8, ages: Ages, other: u8, theirs: Ages, behind: u8) -> u8 {
    let age = theirs.age(other).saturating_add(behind);
    let is_taken = (other != 0) & (age <= ages.most_age) & ((own == 0) | (age < ages.age(own)));
    if is_taken { ages.tag(age) } else { own }
}

/// Gives each cell of `bytes` the [`younger`] of its own tag and the tag in `from`. Returns whether any cell changed.
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

/// Sets the bits of the cells whose age is at most `most_age`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn or_bits<const HALVES: bool>(bytes: &[u8], ages: Ages, most_age: u8, bits: &mut [u64]) {
    let cells = 1 + usize::from(HALVES);
    for (word, bytes) in bits.iter_mut().zip(bytes.chunks_exact(bits::WORD_BITS / cells)) {
        let mut marks = [0u8; bits::WORD_BITS];
        for (mark, &byte) in marks.iter_mut().zip(bytes) {
            let [first, second] = cells_of(byte, HALVES).map(|tag| u8::from(ages.is_within(tag, most_age)));
            *mark = first | second << 1;
        }
        let eights = (0..).zip(marks[..bytes.len()].as_chunks().0);
        *word = eights.fold(*word, |word, (place, eight)| word | gathered(*eight, cells) << (8 * cells * place));
    }
}

/// Packs the `width` lowest bits of each byte into adjacent bits. All other bits of the bytes must be 0.
#[inline(always)]
fn gathered(bytes: [u8; 8], width: usize) -> u64 {
    // Each step joins the lanes in pairs, from 8 bits to 64.
    [1, 2, 4].into_iter().fold(u64::from_le_bytes(bytes), |lanes, len| {
        let mask = u64::MAX / (u64::MAX >> (64 - 16 * len)) * ((1 << (2 * width * len)) - 1);
        (lanes | lanes >> ((8 - width) * len)) & mask
    })
}
