//! The two forms of a segment of a counter's bitmap: cells, and a list of the marked slots. With a window, a cell has a
//! small number, the tag, which stands for the slice in which the slot was last marked. A cell is 0 while its slot is
//! free. Without a window the only tag is 1, so the cells are bits.
//!
//! Cells have 1, 4 or 8 bits, and the first cell is in the lowest bits of the first word. Loops over all cells are also
//! compiled for wide registers, like those in [`bits`].

use multiversion::multiversion;

use crate::bits;
use crate::counting::held::ring::Ages;
use crate::counting::layout::Layout;
use crate::marks::{self, CHUNK, Marks};
use crate::window::Mark;

/// The number of slots in a list that are compared at once in a search.
const FEW: usize = 64;
/// The lists of marked slots (set bits) grow by at least this number of bytes.
const LEAST_ROOM: usize = 16;
/// The number of segments whose lists may be long. Later ones have many members only in a large counter.
pub(super) const EARLY: usize = 4;
/// The largest number of slots in a list. An addition may move all of them.
const LONGEST_LIST: u64 = 4096;

/// The form in which the set bits of one segment of the bitmap are stored.
#[derive(Clone, Copy)]
pub(in crate::counting) enum Place<'a> {
    /// All slots of the segment are marked, so nothing has to be stored.
    Full,
    Cells(&'a [u64]),
    /// The positions of the marked slots in the segment of the bitmap, ascending, and their slice tags. Without a
    /// window there are no tags.
    Listed(&'a [u16], &'a [u8]),
}

/// Like [`Place`], for writing.
pub(in crate::counting) enum Own<'a> {
    Full,
    Cells(&'a mut [u64]),
    Listed(&'a mut [u16], &'a mut [u8]),
}

impl Place<'_> {
    /// Calls `visit` with the position and the slice tag of each marked slot of the bitmap, in ascending order.
    pub(super) fn for_each(self, layout: Layout, ages: Ages, mut visit: impl FnMut(usize, u8)) {
        match self {
            Place::Full => (0..layout.slots() as usize).for_each(|place| visit(place, ages.newest)),
            Place::Cells(cells) => for_each(cells, ages, visit),
            Place::Listed(places, tags) => {
                let tag = |at| tags.get(at).copied().unwrap_or(ages.newest);
                places.iter().enumerate().for_each(|(at, &place)| visit(place.into(), tag(at)));
            }
        }
    }
}

/// The number of words for a segment that has a bit or a slice tag for each slot.
pub(super) fn segment_words(layout: Layout, ages: Ages) -> usize {
    layout.slots() as usize * ages.cell_bits() / bits::WORD_BITS
}

/// Writes the marked slots of a segment to the memory of a segment that is all zeros.
pub(super) fn fill(own: Own<'_>, place: Place<'_>, ages: Ages) {
    match (own, place) {
        // A segment that is full stays full.
        (Own::Full, _) | (_, Place::Full) => {}
        (Own::Cells(own), Place::Cells(cells)) => own.copy_from_slice(cells),
        (Own::Cells(own), Place::Listed(places, [])) => bits::set_all(own, places),
        (Own::Cells(own), Place::Listed(places, tags)) => mark_free(own, places, tags, ages),
        (Own::Listed(own, own_tags), Place::Listed(places, tags)) => {
            own.copy_from_slice(places);
            own_tags.copy_from_slice(tags);
        }
        (Own::Listed(places, tags), Place::Cells(cells)) => {
            let mut at = 0;
            for_each(cells, ages, |place, tag| {
                places[at] = place as u16;
                tags.get_mut(at).into_iter().for_each(|own| *own = tag);
                at += 1;
            });
        }
    }
}

/// Marks free slots with their tags.
// Not inlined, for the same reason as `bits::set_all`.
#[inline(never)]
fn mark_free(cells: &mut [u64], places: &[u16], tags: &[u8], ages: Ages) {
    let (bytes, cell_bits): (&mut [u8], _) = (bytemuck::cast_slice_mut(cells), ages.cell_bits());
    for (&place, &tag) in places.iter().zip(tags) {
        let at = usize::from(place) * cell_bits;
        bytes[at / 8] |= tag << (at % 8);
    }
}

/// Marks a slot of the bitmap with `tag`, if the slot is free or has the tag of an older slice.
#[inline(always)]
pub(in crate::counting) fn mark(cells: &mut [u64], slot: usize, tag: u8, ages: Ages) -> Mark {
    let at = slot * ages.cell_bits();
    let (byte, shift) = (&mut bytemuck::cast_slice_mut::<_, u8>(cells)[at / 8], at % 8);
    let before = *byte >> shift & ages.modulus;
    // If `tag` is that of the newest slice, it replaces any other tag, and no ages have to be compared.
    let is_later = tag == ages.newest || before == 0 || ages.age(tag) < ages.age(before);
    let after = if is_later { tag } else { before };
    // A byte may have the tags of two slots. XOR with `before ^ after` changes only one of them. It is written even if
    // nothing changes, because a processor cannot predict a branch on that.
    *byte ^= (before ^ after) << shift;
    match before {
        0 => Mark::New,
        _ if before == after => Mark::Same,
        _ => Mark::Renewed,
    }
}

/// Calls `visit` with the index and the slice tag of each marked slot of the bitmap, in ascending order.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::counting) fn for_each<F: FnMut(usize, u8)>(cells: &[u64], ages: Ages, mut visit: F) {
    let (bits, modulus) = (ages.cell_bits(), u64::from(ages.modulus));
    for (start, words) in (0..).step_by(CHUNK * bits::WORD_BITS).zip(cells.chunks(CHUNK)) {
        // In a sparse bitmap, most words are 0. A processor could not predict where the others are.
        let some = (0..).zip(words).fold(0, |some, (number, &word)| some | Marks::from(word != 0) << number);
        for number in marks::marked(some) {
            let mut rest = words[number];
            while rest != 0 {
                let at = rest.trailing_zeros() as usize & !(bits - 1);
                visit((start + number * bits::WORD_BITS + at) >> bits.trailing_zeros(), (rest >> at & modulus) as u8);
                rest &= !(modulus << at);
            }
        }
    }
}

/// Replaces `tags` by the slice tags of the marked slots of the bitmap, in ascending order of the slots.
pub(in crate::counting) fn tags_of(cells: &[u64], ages: Ages, tags: &mut Vec<u8>) {
    let (bytes, has_halves): (&[u8], _) = (bytemuck::cast_slice(cells), ages.cell_bits() == 4);
    tags.resize(2 * bytes.len() + 1, 0);
    let mut len = 0;
    for tag in bytes.iter().flat_map(|&byte| cells_of(byte, has_halves)) {
        // There is no branch, because a processor could not predict which slots are free.
        tags[len] = tag;
        len += usize::from(tag != 0);
    }
    tags.truncate(len);
}

/// Sets all cells of the bitmap. `tags` has the slice tags of the slots whose bits are set in `marked`, in ascending
/// order of the slots, and at the end one more element, which is read but not used. All other slots become free.
pub(in crate::counting) fn set_tags(cells: &mut [u64], marked: &[u64], tags: &[u8], ages: Ages) {
    let has_halves = ages.cell_bits() == 4;
    let (mut len, bytes) = (0, bytemuck::cast_slice_mut(cells).chunks_exact_mut(8 * ages.cell_bits()));
    for (bytes, &word) in bytes.zip(marked) {
        let mut rest = word;
        let mut next = || {
            // There is no branch, because a processor could not predict which slots are marked.
            let (tag, is_marked) = (tags[len], rest & 1);
            (len, rest) = (len + is_marked as usize, rest >> 1);
            tag * is_marked as u8
        };
        for byte in bytes {
            *byte = if has_halves { next() | next() << 4 } else { next() };
        }
    }
}

/// The number of bits (slots) of the bitmap that were last set at most `most_age` slices ago.
pub(super) fn count(cells: &[u64], ages: Ages, most_age: u8) -> u64 {
    match ages.cell_bits() {
        1 => bits::count_ones(cells),
        4 => count_tags::<true>(bytemuck::cast_slice(cells), ages, most_age),
        _ => count_tags::<false>(bytemuck::cast_slice(cells), ages, most_age),
    }
}

/// Calls `visit` with each slice tag, and with the number of slots of the bitmap that have it.
pub(super) fn tally(cells: &[u64], ages: Ages, visit: &mut dyn FnMut(u8, u64)) {
    let bytes: &[u8] = bytemuck::cast_slice(cells);
    // Neighbouring slots often have the same tag. If their additions went to the same number, each would wait for the
    // one before. So four tallies take turns, and are added up at the end.
    let mut tallies = [[0u32; 1 << u8::BITS]; 4];
    for four in bytes.as_chunks::<4>().0 {
        tallies.iter_mut().zip(four).for_each(|(tally, &byte)| tally[usize::from(byte)] += 1);
    }
    for byte in 0..=u8::MAX {
        let number: u32 = tallies.iter().map(|tally| tally[usize::from(byte)]).sum();
        let tags = cells_of(byte, ages.cell_bits() == 4).into_iter().filter(|&tag| number > 0 && tag != 0);
        tags.for_each(|tag| visit(tag, number.into()));
    }
}

/// Frees the slots of the bitmap that were last marked more than `most_age` slices ago.
pub(super) fn free(cells: &mut [u64], ages: Ages, most_age: u8) {
    let free = if ages.cell_bits() == 4 { free_tags::<true> } else { free_tags::<false> };
    free(bytemuck::cast_slice_mut(cells), ages, most_age);
}

/// Merges the bitmap `from` into the bitmap `cells`. Slots that were last marked more than `most_age` slices before the
/// newest slice of `from` are left out. The newest slice of `from` is `behind` slices earlier than that of `cells`. A
/// slot that is marked in both bitmaps gets the tag of the later slice. `cells` must have no tags, or tags of as many
/// bits as `from`.
pub(in crate::counting) fn merge(cells: &mut [u64], ages: Ages, from: &[u64], theirs: Ages, most_age: u8, behind: u8) {
    let bytes = bytemuck::cast_slice(from);
    match (ages.cell_bits(), theirs.cell_bits()) {
        (1, 1) => bits::or_into(cells, from),
        // If all bits of `cells` are set already, nothing is left to do. Checking this is faster than reading slice
        // tags.
        (1, _) if cells.iter().all(|&word| word == u64::MAX) => {}
        (1, 4) => or_bits::<true>(bytes, theirs, most_age, cells),
        (1, _) => or_bits::<false>(bytes, theirs, most_age, cells),
        (4, _) => merge_tags::<true>(bytemuck::cast_slice_mut(cells), ages, bytes, theirs, most_age, behind),
        _ => merge_tags::<false>(bytemuck::cast_slice_mut(cells), ages, bytes, theirs, most_age, behind),
    }
}

/// Does the same as [`merge`] for a list of marked slots: their positions, and their tags.
pub(super) fn merge_list(cells: &mut [u64], ages: Ages, list: (&[u16], &[u8]), theirs: Ages, most_age: u8, behind: u8) {
    let slots = list.0.iter().zip(list.1).map(|(&place, &tag)| (usize::from(place), tag));
    if !ages.has_tags() {
        let seen = slots.filter(|&(_, tag)| theirs.age(tag) <= most_age);
        return seen.for_each(|(place, _)| _ = bits::set(cells, place));
    }
    let (bytes, younger): (&mut [u8], _) = (bytemuck::cast_slice_mut(cells), younger(ages, theirs, most_age, behind));
    for (place, tag) in slots {
        let at = place * ages.cell_bits();
        let (byte, shift) = (&mut bytes[at / 8], at % 8);
        let before = *byte >> shift & ages.modulus;
        *byte ^= (before ^ younger(before, tag)) << shift;
    }
}

/// Returns a function that takes the tags of a slot in the two bitmaps of a [`merge`], and returns the tag of the later
/// slice.
#[inline(always)]
fn younger(ages: Ages, theirs: Ages, most_age: u8, behind: u8) -> impl Fn(u8, u8) -> u8 {
    // There is no branch, because a processor could not predict which tag is the later one.
    move |own, other| {
        let age = theirs.age(other).wrapping_add(behind);
        let is_taken = theirs.is_within(other, most_age) & ((own == 0) | (age < ages.age(own)));
        if is_taken { ages.tag(age) } else { own }
    }
}

/// Returns, as a mask, which of at most 64 `slots` may be free. `cells` has the bits of the slots from `start` on.
/// Slots before `start` are known to be marked. Slots after the last cell are unknown, so they may be free.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn may_be_free(cells: &[u64], start: u32, slots: &[u32]) -> Marks {
    let mut marks = 0;
    for (number, &slot) in slots.iter().enumerate() {
        // This loop has no branch, because a processor cannot predict which slots of the bitmap are free.
        let word = slot.wrapping_sub(start) as usize / bits::WORD_BITS;
        let is_free = cells.get(word).unwrap_or(&0) >> (slot % u64::BITS) & 1 == 0;
        marks |= Marks::from(is_free & (slot >= start)) << number;
    }
    marks
}

/// The number of bytes that are processed at a time, in a wide register.
const LANES: usize = 64;

/// The tags of two slots in the two halves of a byte. If a tag takes the whole byte, the second result is 0.
#[inline(always)]
fn cells_of(byte: u8, has_halves: bool) -> [u8; 2] {
    if has_halves { [byte & 0xf, byte >> 4] } else { [byte, 0] }
}

/// Joins the tags of two slots into a byte: the reverse of [`cells_of`].
#[inline(always)]
fn byte_of([first, second]: [u8; 2], has_halves: bool) -> u8 {
    if has_halves { first | second << 4 } else { first }
}

#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn count_tags<const HALVES: bool>(bytes: &[u8], ages: Ages, most_age: u8) -> u64 {
    let mut total = 0;
    // A lane counts in a `u8`. So the lanes are summed before a count can exceed 255.
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

#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn free_tags<const HALVES: bool>(bytes: &mut [u8], ages: Ages, most_age: u8) {
    let kept = |tag| if ages.is_within(tag, most_age) { tag } else { 0 };
    bytes.iter_mut().for_each(|byte| *byte = byte_of(cells_of(*byte, HALVES).map(kept), HALVES));
}

/// Does the same as [`merge`] for two bitmaps with slice tags.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn merge_tags<const HALVES: bool>(bytes: &mut [u8], ages: Ages, from: &[u8], theirs: Ages, most_age: u8, behind: u8) {
    let younger = younger(ages, theirs, most_age, behind);
    for (own, &other) in bytes.iter_mut().zip(from) {
        let ([first, second], others) = (cells_of(*own, HALVES), cells_of(other, HALVES));
        *own = byte_of([younger(first, others[0]), younger(second, others[1])], HALVES);
    }
}

/// For each slot that was last marked at most `most_age` slices ago, sets its bit in `bits`.
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

/// Packs the `width` lowest bits of each byte without gaps. All other bits of the bytes must be 0.
#[inline(always)]
fn gathered(bytes: [u8; 8], width: usize) -> u64 {
    // The first step joins the bits of every two bytes, the second step those of every four, the third step all.
    [1, 2, 4].into_iter().fold(u64::from_le_bytes(bytes), |lanes, len| {
        let mask = u64::MAX / (u64::MAX >> (64 - 16 * len)) * ((1 << (2 * width * len)) - 1);
        (lanes | lanes >> ((8 - width) * len)) & mask
    })
}

/// The largest number of marked slots of a segment that is stored as a list.
///
/// With tags, a list takes 24 bits a slot, so it is smaller than cells up to a 24th of their bits. It ends a little
/// before, because adding a member to a list takes several times as long as writing a cell. Lists of C / 16 in all
/// segments would be faster, but then a counter with a smaller error rate, whose segments are longer, could take less
/// memory than one with a larger rate. Without tags, a list takes 16 bits a slot, and ends early for speed. The stored
/// form needs lists of at most a third of the slots.
#[inline(always)]
pub(super) fn most_listed(layout: Layout, segment: usize, ages: Ages) -> u64 {
    let most = if segment < EARLY { LONGEST_LIST } else { layout.slots() / 16 };
    let bits = layout.slots() * ages.cell_bits() as u64;
    most.min(if ages.has_tags() { bits / 28 } else { bits / 24 })
}

/// The bytes of lists with room for `len` slots of the bitmap, rounded up to a size class of common allocators (four
/// per doubling).
pub(super) fn list_bytes(len: usize, ages: Ages) -> usize {
    let bytes = len * (size_of::<u16>() + usize::from(ages.has_tags()));
    let step = bytes.checked_ilog2().map_or(0, |bits| bits.saturating_sub(2));
    bytes.next_multiple_of(LEAST_ROOM.max(1 << step))
}

/// The number of slots that fit, with their slice tags, in lists of `len` 16-bit elements.
pub(super) fn list_room(len: usize, ages: Ages) -> usize {
    // A position takes one 16-bit element, and a slice tag half an element. So two slots with tags take three elements.
    if ages.has_tags() { len * 2 / 3 } else { len }
}

/// Splits the lists of a bitmap into positions and slice tags. Both parts include unused elements.
pub(super) fn lists_of(later: &mut [u16], ages: Ages) -> (&mut [u16], &mut [u8]) {
    let (places, tags) = later.split_at_mut(list_room(later.len(), ages));
    (places, bytemuck::cast_slice_mut(tags))
}

/// The index of the first element of `places` that is at least `place`. `places` are ascending positions in a segment
/// of `2^segment_bits` slots.
#[inline(always)]
pub(super) fn find(places: &[u16], place: u16, segment_bits: u32) -> usize {
    // Hashes are spread evenly, so the index is nearly proportional to the position. A binary search would take
    // branches that a processor cannot predict.
    let near = (usize::from(place) * places.len()) >> segment_bits;
    let from = near.saturating_sub(FEW / 2).min(places.len().saturating_sub(FEW));
    let num_below = |few: &[u16]| usize::from(few.iter().map(|&other| u16::from(other < place)).sum::<u16>());
    let rest = &places[from..];
    // For an array of fixed length, `num_below` compiles to code without branches.
    let mut at = from + rest.first_chunk::<FEW>().map_or_else(|| num_below(rest), |few| num_below(few));
    while places.get(at).is_some_and(|&other| other < place) {
        at += 1;
    }
    while at > 0 && places[at - 1] >= place {
        at -= 1;
    }
    at
}
