//! Hashes in chunks, so that their cache misses overlap, and masks with one bit for each hash of a chunk.

use std::iter::from_fn;

use crate::hash::Hash128;

/// The number of hashes of a chunk: one for each bit of a `u32` mask, and about the number of cache misses that a core
/// has in flight.
pub(in crate::bloom) const CHUNK: usize = 32;

/// The hashes in chunks, each with its length.
pub(in crate::bloom) fn chunks(
    hashes: impl Iterator<Item = Hash128>,
) -> impl Iterator<Item = ([Hash128; CHUNK], usize)> {
    let mut hashes = hashes.fuse();
    from_fn(move || {
        let (mut chunk, mut len) = ([Hash128 { lo: 0, hi: 0 }; CHUNK], 0);
        for (slot, hash) in chunk.iter_mut().zip(&mut hashes) {
            *slot = hash;
            len += 1;
        }
        (len > 0).then_some((chunk, len))
    })
}

/// The mask of the first `len` hashes of a chunk.
pub(in crate::bloom) fn first_marks(len: usize) -> u32 {
    ((1u64 << len) - 1) as u32
}

/// The positions of the bits set in `marks`, ascending.
#[inline(always)]
pub(in crate::bloom) fn marked(mut marks: u32) -> impl Iterator<Item = usize> {
    from_fn(move || {
        if marks == 0 {
            return None;
        }
        let next = marks.trailing_zeros() as usize;
        marks &= marks - 1;
        Some(next)
    })
}

/// The mask of the lowest `count` set bits of `marks`.
#[inline(always)]
pub(in crate::bloom) fn first_marked(marks: u32, count: u64) -> u32 {
    if count >= u64::from(u32::BITS) {
        return marks;
    }
    let rest = (0..count).fold(marks, |rest, _| rest & rest.wrapping_sub(1));
    marks ^ rest
}
