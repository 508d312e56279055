//! The payload of a counter: its members, or the bitmap of an estimating counter, as bytes for storing. Parameters and
//! checksums are stored elsewhere. [`stored`](super::stored) reads payloads.
//!
//! The payload of an exact counter is its encoded members as they are in memory (`held/members/record.rs`).
//!
//! The payload of an estimating counter is its bitmap, segment by segment. The number of set bits in each segment is
//! stored in the header of the value. This number determines the code of the segment:
//!
//! | set bits of the segment | bytes |
//! |---|---|
//! | none, or all | none |
//! | at most a third | the positions of the set bits in Golomb-Rice code (`golomb_rice.rs`) |
//! | at least two thirds | the positions of the other bits in Golomb-Rice code |
//! | else | the bits themselves, because Golomb-Rice code could take more bytes |
//!
//! With a window, the slice tags of the set bits follow each segment: 4 or 8 bits each. An unused half of the last byte
//! is 0.

use std::borrow::Cow;

use crate::bits;
use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::cells::{self, Own, Place};
use crate::counting::held::ring::Ages;
use crate::counting::held::slots::Slots;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::error::Error;
use crate::golomb_rice;
use crate::size_limit::try_filled;

/// How the set bits of a segment are encoded.
enum Code {
    Full,
    Marked,
    Free,
    Bits,
}

impl Code {
    fn new(layout: Layout, marked: u64) -> Self {
        let slots = layout.slots();
        match marked {
            all if all == slots => Code::Full,
            few if 3 * few <= slots => Code::Marked,
            many if 3 * (slots - many) <= slots => Code::Free,
            _ => Code::Bits,
        }
    }
}

fn tags_bytes(marked: u64, ages: Ages) -> usize {
    if ages.has_tags() { (marked as usize * ages.cell_bits()).div_ceil(8) } else { 0 }
}

/// The largest number of bytes of the payload of a bitmap with these numbers of set bits.
pub(super) fn most_bytes(layout: Layout, counts: &SegmentCounts, ages: Ages) -> u64 {
    let marked = (0..layout.num_segments()).map(|segment| counts.get(segment)).filter(|&marked| marked > 0);
    let of_segment = |marked| {
        let all = layout.slots();
        let slots = match Code::new(layout, marked) {
            Code::Full => 0,
            Code::Marked => golomb_rice::most_bytes(marked, all),
            Code::Free => golomb_rice::most_bytes(all - marked, all),
            Code::Bits => all / 8,
        };
        slots + tags_bytes(marked, ages) as u64
    };
    marked.map(of_segment).sum()
}

fn encode(slots: &Slots, ages: Ages) -> Vec<u8> {
    let (layout, counts) = (slots.layout, &slots.counts);
    let mut bytes = Vec::with_capacity(most_bytes(layout, counts, ages) as usize);
    let (mut words, mut tags) = (vec![], vec![]);
    for (segment, place) in slots.places() {
        let (count, all) = (counts.get(segment), layout.slots());
        let marked = match place {
            Place::Full => continue,
            Place::Listed(places, tags) => {
                golomb_rice::encode(places.iter().map(|&place| place.into()), count, all, &mut bytes);
                append_tags(&mut bytes, tags, ages);
                continue;
            }
            Place::Cells(cells) if !ages.has_tags() => cells,
            Place::Cells(cells) => {
                words.clear();
                words.resize(all as usize / bits::WORD_BITS, 0);
                cells::merge(&mut words, Ages::PLAIN, cells, ages, u8::MAX, 0);
                cells::tags_of(cells, ages, &mut tags);
                &words
            }
        };
        match Code::new(layout, count) {
            Code::Full => {}
            Code::Marked => golomb_rice::encode(bits::ones_of(marked.iter().copied()), count, all, &mut bytes),
            Code::Free => {
                golomb_rice::encode(bits::ones_of(marked.iter().map(|word| !word)), all - count, all, &mut bytes)
            }
            Code::Bits => bytes.extend_from_slice(bytemuck::cast_slice(marked)),
        }
        append_tags(&mut bytes, &tags, ages);
    }
    bytes
}

/// Appends the tags of the set bits of a segment.
fn append_tags(bytes: &mut Vec<u8>, tags: &[u8], ages: Ages) {
    if ages.cell_bits() != 4 {
        return bytes.extend_from_slice(tags);
    }
    let (pairs, last) = tags.as_chunks();
    bytes.extend(pairs.iter().map(|[first, second]| first | second << 4));
    bytes.extend_from_slice(last);
}

/// Reads the payload of an estimating counter whose bitmap has these numbers of set bits.
///
/// # Errors
/// [`Error::Corrupt`] names what is wrong. [`Error::OutOfMemory`].
pub(super) fn decode(payload: &[u8], layout: Layout, counts: SegmentCounts, ages: Ages) -> Result<Slots, Error> {
    let mut slots = Slots::with_counts(layout, counts, ages)?;
    let all = layout.slots() as usize;
    let (num_words, num_tags) = if ages.has_tags() { (all / bits::WORD_BITS, all + 1) } else { (0, 0) };
    let (mut words, mut tags) = (try_filled(num_words, 0)?, try_filled(num_tags, 0)?);
    let mut rest = payload;
    for segment in (0..layout.num_segments()).filter(|&segment| counts.get(segment) > 0) {
        let count = counts.get(segment);
        match slots.own_mut(segment) {
            Own::Full => {}
            Own::Listed(places, tags) => {
                let mut places = places.iter_mut();
                let add = |one| _ = places.next().map(|place| *place = one as u16);
                rest = golomb_rice::decode_front(rest, count, all as u64, add)?;
                read_tags(take(&mut rest, tags_bytes(count, ages))?, tags, ages)?;
            }
            Own::Cells(cells) if ages.has_tags() => {
                rest = decode_bits(rest, layout, count, &mut words)?;
                read_tags(take(&mut rest, tags_bytes(count, ages))?, &mut tags[..count as usize], ages)?;
                cells::set_tags(cells, &words, &tags, ages);
            }
            Own::Cells(cells) => rest = decode_bits(rest, layout, count, cells)?,
        }
    }
    Error::check_field(rest.is_empty(), "segments", "the end", format_args!("{} bytes more", rest.len()))?;
    Ok(slots)
}

/// Reads a segment that has `count` set bits into `words`. Returns the bytes after it.
///
/// # Errors
/// [`Error::Corrupt`].
fn decode_bits<'a>(bytes: &'a [u8], layout: Layout, count: u64, words: &mut [u64]) -> Result<&'a [u8], Error> {
    let (code, all, mut rest) = (Code::new(layout, count), layout.slots(), bytes);
    let empty = if matches!(code, Code::Full | Code::Free) { u64::MAX } else { 0 };
    words.fill(empty);
    match code {
        Code::Full => Ok(rest),
        Code::Marked => golomb_rice::flip_front(rest, count, words),
        Code::Free => golomb_rice::flip_front(rest, all - count, words),
        Code::Bits => {
            bytemuck::cast_slice_mut(words).copy_from_slice(take(&mut rest, all as usize / 8)?);
            let found = bits::count_ones(words);
            Error::check_field(found == count, "marked slots", count, found)?;
            Ok(rest)
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    rest.split_off(..len).ok_or_else(|| Error::corrupt("segments", format_args!("{len} bytes more"), "the end"))
}

/// Reads the tags that are packed in `bytes`.
///
/// # Errors
/// [`Error::Corrupt`] if the slice of a tag has expired.
fn read_tags(bytes: &[u8], tags: &mut [u8], ages: Ages) -> Result<(), Error> {
    if ages.cell_bits() == 4 {
        let (pairs, last) = tags.as_chunks_mut();
        pairs.iter_mut().zip(bytes).for_each(|(pair, byte)| *pair = [byte & 0xf, byte >> 4]);
        if let (&mut [ref mut last], Some(byte)) = (last, bytes.last()) {
            *last = byte & 0xf;
            Error::check_field(byte >> 4 == 0, "tag", "0 behind the last", byte >> 4)?;
        }
    } else {
        tags.copy_from_slice(bytes);
    }
    tags.iter().try_for_each(|&tag| ages.check(tag))
}

impl Counter {
    /// The largest number of bytes that the payload can take.
    pub(crate) fn most_payload_bytes(&self) -> u64 {
        match &self.held {
            Held::Exact(members) => members.as_bytes().len() as u64,
            Held::Estimating(slots) => most_bytes(slots.layout, &slots.counts, self.ages()),
        }
    }

    pub(crate) fn payload_part(&self) -> Cow<'_, [u8]> {
        match &self.held {
            Held::Exact(members) => Cow::Borrowed(members.as_bytes()),
            Held::Estimating(slots) => Cow::Owned(encode(slots, self.ages())),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
