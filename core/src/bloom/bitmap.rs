//! The bits of one sub-filter, in either layout.

use bytemuck::{Pod, Zeroable};

use crate::bits::{PAGE_BYTES, count_ones_in_bytes};
use crate::error::Error;
use crate::parallel::{self, PIECE_BYTES};
use crate::stored::payload::Payload;

/// A line is one cache line of 64 bytes. Part of the stored format.
pub(crate) const LINE_BITS: u32 = 512;

pub(crate) const LINE_BYTES: u64 = LINE_BITS as u64 / 8;

/// 512 bits in one cache line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(super) [u64; 8]);

/// The bits of a sub-filter in the payload of its filter: from this position on.
pub(super) type Bits<'a> = (&'a Payload<'a>, u64);

/// The number of set bits in the union of `own`, if it is not empty, and `bitmaps`, all of `num_bytes` bytes.
pub(super) fn count_union<'a>(
    num_bytes: usize,
    own: &[u8],
    bitmaps: impl Iterator<Item = Bits<'a>> + Clone + Sync,
) -> u64 {
    parallel::sum((0..num_bytes).step_by(PIECE_BYTES), num_bytes, |start| {
        let end = num_bytes.min(start + PIECE_BYTES);
        let count = |at: usize| {
            let union = &mut [0; PAGE_BYTES][..PAGE_BYTES.min(end - at)];
            own.get(at..at + union.len()).into_iter().for_each(|own| union.copy_from_slice(own));
            bitmaps.clone().for_each(|(payload, position)| payload.or_into(position + at as u64, union));
            count_ones_in_bytes(union)
        };
        (start..end).step_by(PAGE_BYTES).map(count).sum()
    })
}

/// ORs `bitmaps` into `bytes`, which has the same length.
pub(super) fn add_union<'a>(bytes: &mut [u8], bitmaps: impl Iterator<Item = Bits<'a>> + Clone + Sync) {
    let num_bytes = bytes.len();
    parallel::sum(bytes.chunks_mut(PIECE_BYTES).enumerate(), num_bytes, |(index, piece)| {
        let pages = (index * PIECE_BYTES..).step_by(PAGE_BYTES).zip(piece.chunks_mut(PAGE_BYTES));
        pages.for_each(|(at, page)| {
            bitmaps.clone().for_each(|(payload, position)| payload.or_into(position + at as u64, page))
        });
        0
    });
}

/// Returns `num_bytes` bytes of the lines, from byte `offset` on. If this range reaches past the first `len` bytes, the
/// error is [`Error::Corrupt`].
pub(super) fn part(lines: &mut [Line], offset: u64, num_bytes: usize, len: usize) -> Result<&mut [u8], Error> {
    let bitmap: &mut [u8] = bytemuck::cast_slice_mut(lines);
    let bitmap = bitmap.get_mut(..len).unwrap_or_default();
    let start = usize::try_from(offset).ok();
    start.and_then(|start| bitmap.get_mut(start..start.checked_add(num_bytes)?)).ok_or_else(|| {
        let got = format!("{num_bytes} bytes from byte {offset} on");
        Error::corrupt("bitmap", format_args!("at most {len} bytes"), got)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_of_several_pieces_is_counted_and_made_in_each() {
        let num_bytes = 2 * PIECE_BYTES + 3 * LINE_BYTES as usize;
        let with = |bytes: &[(usize, u8)]| {
            let mut bitmap = vec![0; num_bytes];
            bytes.iter().for_each(|&(at, byte)| bitmap[at] = byte);
            bitmap
        };
        let places = [0, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES - 1, num_bytes - 1];
        let (ours, theirs) = (with(&places.map(|at| (at, 0b1))), with(&places.map(|at| (at, 0b11))));
        let others = with(&[(PIECE_BYTES + 5, 0b111), (num_bytes - 1, 0b110)]);
        // The bits of `others` begin in the middle of a payload, whose parts are no pages.
        let parts = || [7; 9].iter().map(std::slice::from_ref).chain(others.chunks(1000));
        let payloads = [Payload::of_parts([&*theirs]), Payload::of_parts(parts())];
        let bits = [(&payloads[0], 0), (&payloads[1], 9)];
        let counts = [0, 1, 2].map(|len| count_union(num_bytes, &ours, bits[..len].iter().copied()));
        assert_eq!((counts, count_union(num_bytes, &[], bits.into_iter())), ([5, 10, 14], 14));
        let expected: Vec<u8> = (0..num_bytes).map(|at| ours[at] | theirs[at] | others[at]).collect();
        let mut union = ours.clone();
        add_union(&mut union, bits.into_iter());
        assert!(union == expected);
    }
}
