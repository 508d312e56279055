//! The payload of a counter: its set as bytes, without version, parameters and checksums. [`form`](super::form) reads
//! payloads.
//!
//! | representation | bytes |
//! |---|---|
//! | exact | each member as its length (LEB128) and its bytes, in the order they were added |
//! | sparse | the positions of the set slots, ascending, u32 each |
//! | dense | the words of the bitmap, u64 each |
//! | windowed, exact | each member as its tag, a byte, its length and its bytes |
//! | windowed, sparse | the positions, ascending, u32 each with its tag, a byte, behind it |
//! | windowed, dense | the cells, a byte each or half a byte |
//!
//! Numbers are little-endian.

use std::borrow::Cow;

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::held::Held;
use crate::counting::held::bitmap::{Bitmap, SlotTag, Slots};
use crate::counting::held::cells::Cells;
use crate::counting::held::positions::{POSITION_BYTES, Positions};
use crate::counting::layout::Layout;

/// The number of positions in a part. Changing it changes where dumps are cut.
const POSITIONS_PER_PART: u64 = 1 << 16;

/// Bytes of a whole part of positions without tags. One read encodes at most one part.
pub(crate) const PART_BYTES: usize = POSITIONS_PER_PART as usize * POSITION_BYTES;

/// A part of a counter's payload: bytes in memory, or positions that are encoded when they are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PayloadPart<'a> {
    /// Bytes, as they are in memory.
    Bytes(&'a [u8]),
    /// The words of a dense bitmap, built from these positions when they are read.
    Words(&'a Positions, Layout),
    /// Positions, encoded when they are read. The numbers are the rank of the first position, and the number of
    /// positions.
    Plain(&'a Positions, u64, u64),
    /// Positions with their tags, encoded when they are read. The numbers are as in [`PayloadPart::Plain`].
    Tagged(&'a Positions<u8>, u64, u64),
}

impl<'a> PayloadPart<'a> {
    /// Length in bytes.
    pub(crate) fn num_bytes(&self) -> u64 {
        match *self {
            PayloadPart::Bytes(bytes) => bytes.len() as u64,
            PayloadPart::Words(_, layout) => layout.num_bytes(),
            PayloadPart::Plain(_, _, len) => len * POSITION_BYTES as u64,
            PayloadPart::Tagged(_, _, len) => len * (POSITION_BYTES as u64 + 1),
        }
    }

    /// The bytes of the part from `start` on, up to `end`.
    ///
    /// # Panics
    /// When `start` is after `end`, or `end` is beyond the part.
    pub(crate) fn read(&self, start: u64, end: u64) -> Cow<'a, [u8]> {
        if let PayloadPart::Bytes(bytes) = self {
            return Cow::Borrowed(&bytes[start as usize..end as usize]);
        }
        // At most the bytes of one part, so no client decides how much is allocated here.
        let mut bytes = Vec::with_capacity(self.num_bytes() as usize);
        self.append_to(&mut bytes, start, end);
        Cow::Owned(bytes)
    }

    /// Appends the result of [`Self::read`] to `bytes`. `bytes` is not reallocated if it has room for the whole part.
    ///
    /// # Panics
    /// In the cases of [`Self::read`].
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>, start: u64, end: u64) {
        let before = bytes.len();
        match *self {
            PayloadPart::Bytes(own) => return bytes.extend_from_slice(&own[start as usize..end as usize]),
            PayloadPart::Words(positions, layout) => {
                bytes.resize(before + layout.num_bytes() as usize, 0);
                let words = &mut bytes[before..];
                positions.iter().for_each(|(position, ())| words[position as usize / 8] |= 1 << (position % 8));
            }
            PayloadPart::Plain(positions, rank, len) => positions.append_to(bytes, rank, len as usize),
            PayloadPart::Tagged(positions, rank, len) => positions.append_to(bytes, rank, len as usize),
        }
        // The part was encoded whole, and is cut here.
        bytes.truncate(before + end as usize);
        bytes.drain(before..before + start as usize);
    }
}

/// Part number `index` of the payload of a set; `None` after the last part.
fn part<'a, T: SlotTag>(
    held: &'a Held<T>,
    index: usize,
    of_positions: impl FnOnce(&'a Positions<T>, u64, u64) -> PayloadPart<'a>,
) -> Option<PayloadPart<'a>> {
    let bytes = match held {
        Held::Exact(members) => members.as_bytes(),
        Held::Estimating(bitmap) => match bitmap.slots() {
            Slots::Sparse(positions) => {
                let rank = (index as u64).checked_mul(POSITIONS_PER_PART).filter(|&rank| rank < positions.len())?;
                return Some(of_positions(positions, rank, POSITIONS_PER_PART.min(positions.len() - rank)));
            }
            Slots::Dense(cells) => cells.as_bytes(),
        },
    };
    (index == 0).then_some(PayloadPart::Bytes(bytes))
}

impl Counter {
    /// Part number `index` of the payload; `None` after the last part. The parts are stored one after the other.
    pub(crate) fn payload_part(&self, index: usize) -> Option<PayloadPart<'_>> {
        match self.contents() {
            Contents::Plain(held) => match held.bitmap().and_then(Bitmap::stored_as_words) {
                Some(positions) => (index == 0).then_some(PayloadPart::Words(positions, self.layout())),
                None => part(held, index, PayloadPart::Plain),
            },
            Contents::Windowed(set) => part(&set.held, index, PayloadPart::Tagged),
        }
    }

    /// The members of an exact counter, with their tags if it has a window. `None` once the counter estimates.
    pub(crate) fn records(&self) -> Option<Vec<(&[u8], Option<u8>)>> {
        Some(match self.contents() {
            Contents::Plain(held) => held.members()?.iter().map(|((), member)| (member, None)).collect(),
            Contents::Windowed(set) => set.held.members()?.iter().map(|(tag, member)| (member, Some(tag))).collect(),
        })
    }

    /// Bytes of the whole payload.
    pub(crate) fn payload_bytes(&self) -> u64 {
        (0..).map_while(|index| self.payload_part(index)).map(|part| part.num_bytes()).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::counting::counter::tests::{LARGEST, SIZES, counter, params};
    use crate::counting::form::CounterForm;
    use crate::counting::params::Representation;
    use crate::hash::hash64;
    use crate::window::{ClockSource, Window};

    fn parts(counter: &Counter) -> Vec<PayloadPart<'_>> {
        (0..).map_while(|index| counter.payload_part(index)).collect()
    }

    /// The whole payload of a counter.
    pub(crate) fn encode(counter: &Counter) -> Vec<u8> {
        parts(counter).iter().map(|part| part.read(0, part.num_bytes())).collect::<Vec<_>>().concat()
    }

    /// A sparse counter whose payload has more than one part.
    pub(crate) fn many() -> Counter {
        let many = counter(params(LARGEST, 0), 0..100_000);
        assert_eq!(many.representation(), Representation::Sparse);
        many
    }

    /// A sparse windowed counter with `len` marked slots: every 29th slot, with all tags in turn.
    fn windowed_counter(len: u32) -> Counter {
        let records = (0..len).flat_map(|number| {
            let [a, b, c, d] = (29 * number).to_le_bytes();
            [a, b, c, d, 1 + (number % 4) as u8]
        });
        let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
        let (params, layout) = (params(LARGEST, 0), Layout::new(21, 10).unwrap());
        let (representation, window) = (Representation::Sparse, Some((window, 3, 0)));
        let form = CounterForm { params, layout, lower_bound: 0, representation, window };
        let counter = form.load(&mut records.collect()).unwrap();
        assert_eq!(counter.representation(), Representation::Sparse);
        counter
    }

    #[test]
    fn payloads_are_pinned() {
        assert_eq!(encode(&counter(params(SIZES[2], 250), [1, 2])), b"\x06user:1\x06user:2");
        // Slots 3797 and 6760, as computed by the separate program that the tests of the layout mention.
        assert_eq!(encode(&counter(params(SIZES[2], 0), [2, 1])), [0xd5, 0x0e, 0, 0, 0x68, 0x1a, 0, 0]);
    }

    #[test]
    fn a_long_sparse_payload_comes_in_parts() {
        let many = many();
        let lengths: Vec<u64> = parts(&many).iter().map(PayloadPart::num_bytes).collect();
        assert_eq!(lengths, [1 << 18, many.payload_bytes() - (1 << 18)]);
        assert_eq!(encode(&many).len() as u64, many.payload_bytes());
    }

    #[test]
    fn a_part_has_positions() {
        let lengths = |counter: &Counter| parts(counter).iter().map(PayloadPart::num_bytes).collect::<Vec<_>>();
        for (len, of_dated) in
            [(0, vec![]), (1, vec![5]), (65_536, vec![5 << 16]), (70_000, vec![5 << 16, 5 * (70_000 - 65_536)])]
        {
            let counter = windowed_counter(len);
            assert_eq!(lengths(&counter), of_dated);
            assert_eq!(counter.payload_bytes(), 5 * u64::from(len));
            let layout = Layout::new(20, 19).unwrap();
            let bitmap = Bitmap::from_ascending(layout, (0..len).map(|number| (29 * number, ())), ()).unwrap();
            let plain = Counter::of_slots(*counter.params(), bitmap);
            let plain_lengths: Vec<u64> = of_dated.iter().map(|bytes| bytes / 5 * 4).collect();
            assert_eq!((lengths(&plain), plain.representation()), (plain_lengths, Representation::Sparse));
        }
    }

    #[test]
    fn any_stretch_is_that_of_the_whole() {
        let (few, many) = (counter(params(SIZES[5], 0), 0..3000), many());
        for counter in [few, many, windowed_counter(3000), windowed_counter(70_000)] {
            let payload = encode(&counter);
            let mut start_of_part = 0;
            for part in parts(&counter) {
                let len = part.num_bytes();
                for run in 0..100u64 {
                    let [a, b] = [run, run + 100].map(|number| hash64(&number.to_le_bytes(), 0) % (len + 1));
                    let (start, end) = (a.min(b), a.max(b));
                    let expected = &payload[(start_of_part + start) as usize..(start_of_part + end) as usize];
                    assert!(part.read(start, end) == expected, "{start}..{end}");
                    let mut appended = Vec::with_capacity(2 + len as usize);
                    appended.extend_from_slice(b"ab");
                    let capacity = appended.capacity();
                    part.append_to(&mut appended, start, end);
                    assert!(appended == [b"ab", expected].concat() && appended.capacity() == capacity);
                }
                start_of_part += len;
            }
        }
    }
}
