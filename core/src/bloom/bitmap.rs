//! The bits of one sub-filter, in either layout.

use std::fmt;

use bytemuck::{Pod, Zeroable};

use crate::bits;
use crate::error::Error;
use crate::parallel::{self, PIECE_BYTES};
use crate::size_limit::try_zeroed;

/// A line is one cache line of 64 bytes. Part of the stored format.
pub(crate) const LINE_BITS: u32 = 512;

pub(crate) const LINE_BYTES: u64 = LINE_BITS as u64 / 8;

/// 512 bits in one cache line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(super) [u64; 8]);

/// [`LineBitmap::count_union`] unites this number of lines at a time, in a buffer of 4 KiB on the stack.
const BLOCK: usize = 64;

/// Invariant: `set_bits` is the number of set bits in `lines`.
#[derive(PartialEq)]
pub(super) struct LineBitmap {
    pub(super) set_bits: u64,
    pub(super) lines: Box<[Line]>,
}

impl fmt::Debug for LineBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineBitmap").field("num_lines", &self.lines.len()).field("set_bits", &self.set_bits).finish()
    }
}

impl LineBitmap {
    pub(super) fn zeroed(num_lines: u64) -> Result<Self, Error> {
        let len = usize::try_from(num_lines).unwrap_or(usize::MAX);
        Ok(LineBitmap { lines: try_zeroed(len)?, set_bits: 0 })
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let mut copy = Self::zeroed(self.lines.len() as u64)?;
        if self.set_bits > 0 {
            copy.set_bits = bits::copy_to_zeroed(bytemuck::cast_slice_mut(&mut copy.lines), self.as_bytes());
        }
        Ok(copy)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// Writes `bytes` at byte `offset`, where all bits must still be 0. Only the first `len` bytes of the bitmap are in
    /// use. The old bytes are not read, because reading untouched memory costs a page fault.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past `len`. On error the bitmap is unchanged.
    pub(super) fn append_bytes(&mut self, offset: u64, bytes: &[u8], len: usize) -> Result<(), Error> {
        let unset = part(&mut self.lines, offset, bytes.len(), len)?;
        debug_assert!(unset.iter().all(|&byte| byte == 0), "bytes written twice");
        self.set_bits += bits::copy_to_zeroed(unset, bytes);
        Ok(())
    }

    /// Overwrites the bytes from byte `offset` on with `bytes`. Otherwise it is like [`LineBitmap::append_bytes`].
    pub(super) fn overwrite_bytes(&mut self, offset: u64, bytes: &[u8], len: usize) -> Result<(), Error> {
        let old = part(&mut self.lines, offset, bytes.len(), len)?;
        // `set_bits` includes the old bits, so the subtraction cannot underflow.
        self.set_bits = self.set_bits - bits::count_ones_in_bytes(old) + bits::count_ones_in_bytes(bytes);
        old.copy_from_slice(bytes);
        Ok(())
    }

    /// Changes this bitmap to its union with `other`, which has the same size.
    pub(super) fn union_with(&mut self, other: &LineBitmap) {
        if other.set_bits > 0 {
            self.set_bits +=
                bits::or_new(bytemuck::cast_slice_mut(&mut self.lines), bytemuck::cast_slice(&other.lines));
        }
    }

    /// The number of set bits in the union with `others`, all of the same size.
    pub(super) fn count_union<'a>(&self, others: impl Iterator<Item = &'a LineBitmap> + Clone + Sync) -> u64 {
        const PIECE: usize = PIECE_BYTES / size_of::<Line>();
        let pieces = self.lines.chunks(PIECE).enumerate();
        parallel::sum(pieces, size_of_val(&*self.lines), |(index, piece)| {
            let mut set_bits = 0;
            for (start, block) in (index * PIECE..).step_by(BLOCK).zip(piece.chunks(BLOCK)) {
                let mut union = [Line::default(); BLOCK];
                let union = &mut union[..block.len()];
                union.copy_from_slice(block);
                let union: &mut [u64] = bytemuck::cast_slice_mut(union);
                for other in others.clone() {
                    bits::or_into(union, bytemuck::cast_slice(&other.lines[start..start + block.len()]));
                }
                set_bits += bits::count_ones(union);
            }
            set_bits
        })
    }

    /// Lets `f` move the lines to another place in memory.
    ///
    /// # Panics
    /// If `f` returns another number of lines than it was given.
    pub(super) fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {
        let len = self.lines.len();
        self.lines = f(std::mem::take(&mut self.lines));
        assert_eq!(self.lines.len(), len, "a relocated bitmap keeps its length");
    }
}

/// Returns `num_bytes` bytes of the lines, from byte `offset` on. If this range reaches past the first `len` bytes, the
/// error is [`Error::Corrupt`].
fn part(lines: &mut [Line], offset: u64, num_bytes: usize, len: usize) -> Result<&mut [u8], Error> {
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

    /// A bitmap with the given pairs of offset and byte.
    fn bitmap(num_lines: u64, bytes: &[(u64, u8)]) -> LineBitmap {
        let mut bitmap = LineBitmap::zeroed(num_lines).unwrap();
        let len = bitmap.as_bytes().len();
        bytes.iter().for_each(|&(offset, byte)| bitmap.overwrite_bytes(offset, &[byte], len).unwrap());
        bitmap
    }

    #[test]
    fn a_union_counts_its_set_bits() {
        let mut ours = bitmap(3, &[(0, 0b111), (190, 0b1)]);
        for (theirs, set_bits) in [
            (bitmap(3, &[]), 4),
            (bitmap(3, &[(0, 0b101), (190, 0b1)]), 4),
            (bitmap(3, &[(0, 0b1001)]), 5),
            (bitmap(3, &[(191, 0b1)]), 6),
        ] {
            ours.union_with(&theirs);
            assert_eq!(ours.set_bits, set_bits);
            assert_eq!(bits::count_ones_in_bytes(ours.as_bytes()), set_bits);
        }
    }

    #[test]
    fn a_union_of_several_pieces_is_counted_in_each() {
        let num_bytes = 2 * PIECE_BYTES as u64 + 3 * LINE_BYTES;
        let places = [0, PIECE_BYTES as u64 - 1, PIECE_BYTES as u64, 2 * PIECE_BYTES as u64 - 1, num_bytes - 1];
        let num_lines = num_bytes / LINE_BYTES;
        let ours = bitmap(num_lines, &places.map(|at| (at, 0b1)));
        let theirs = bitmap(num_lines, &places.map(|at| (at, 0b11)));
        let others = bitmap(num_lines, &[(PIECE_BYTES as u64 + 5, 0b111), (num_bytes - 1, 0b110)]);
        assert_eq!(ours.count_union([].into_iter()), 5);
        assert_eq!(ours.count_union([&theirs].into_iter()), 10);
        assert_eq!(ours.count_union([&theirs, &others].into_iter()), 14);
    }
}
