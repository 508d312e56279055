//! The bits of one sub-filter, in either layout.

use bytemuck::{Pod, Zeroable};

use crate::bits;
use crate::error::Error;
use crate::parallel::{self, PIECE_BYTES};

/// A line is one cache line of 64 bytes. Part of the stored format.
pub(crate) const LINE_BITS: u32 = 512;

pub(crate) const LINE_BYTES: u64 = LINE_BITS as u64 / 8;

/// 512 bits in one cache line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(super) [u64; 8]);

/// [`count_union`] unites this number of lines at a time, in a buffer of 4 KiB on the stack.
const BLOCK: usize = 64;

/// The number of set bits in the union of `lines` and `others`, all of the same length.
pub(super) fn count_union<'a>(lines: &[Line], others: impl Iterator<Item = &'a [Line]> + Clone + Sync) -> u64 {
    const PIECE: usize = PIECE_BYTES / size_of::<Line>();
    parallel::sum(lines.chunks(PIECE).enumerate(), size_of_val(lines), |(index, piece)| {
        let mut set_bits = 0;
        for (start, block) in (index * PIECE..).step_by(BLOCK).zip(piece.chunks(BLOCK)) {
            let mut union = [Line::default(); BLOCK];
            let union = &mut union[..block.len()];
            union.copy_from_slice(block);
            let union: &mut [u64] = bytemuck::cast_slice_mut(union);
            for other in others.clone() {
                bits::or_into(union, bytemuck::cast_slice(&other[start..start + block.len()]));
            }
            set_bits += bits::count_ones(union);
        }
        set_bits
    })
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
    fn a_union_of_several_pieces_is_counted_in_each() {
        let num_bytes = 2 * PIECE_BYTES + 3 * LINE_BYTES as usize;
        let with = |bytes: &[(usize, u8)]| {
            let mut lines = vec![Line::default(); num_bytes / LINE_BYTES as usize];
            bytes.iter().for_each(|&(at, byte)| bytemuck::cast_slice_mut(&mut lines)[at] = byte);
            lines
        };
        let places = [0, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES - 1, num_bytes - 1];
        let (ours, theirs) = (with(&places.map(|at| (at, 0b1))), with(&places.map(|at| (at, 0b11))));
        let others = with(&[(PIECE_BYTES + 5, 0b111), (num_bytes - 1, 0b110)]);
        assert_eq!(count_union(&ours, [].into_iter()), 5);
        assert_eq!(count_union(&ours, [&theirs[..]].into_iter()), 10);
        assert_eq!(count_union(&ours, [&theirs[..], &others].into_iter()), 14);
    }
}
