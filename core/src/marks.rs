//! Chunks of up to 64 hashes, and masks with one bit for each hash of a chunk.

use std::iter::from_fn;

use arrayvec::ArrayVec;

use crate::hash::Hash128;

/// A mask with one bit for each hash of a [`Chunk`].
pub(crate) type Marks = u64;

/// The largest number of hashes in a chunk: one for each bit of a mask. Hashes are looked up in chunks so that their
/// cache misses overlap. The processor waits at the end of each chunk, so large chunks save time.
pub(crate) const CHUNK: usize = Marks::BITS as usize;

pub(crate) type Chunk = ArrayVec<Hash128, CHUNK>;

/// Replaces the hashes in a chunk by the next hashes.
pub(crate) fn fill(chunk: &mut Chunk, hashes: &mut impl Iterator<Item = Hash128>) {
    chunk.clear();
    chunk.extend(hashes.take(CHUNK));
}

/// Like [`fill`], but takes one item from `other` after each hash, and at the end all that remain. A processor then
/// overlaps hashing with the work of `other`.
pub(crate) fn fill_beside(
    chunk: &mut Chunk,
    hashes: &mut impl Iterator<Item = Hash128>,
    mut other: impl Iterator<Item = ()>,
) {
    fill(chunk, &mut hashes.inspect(|_| _ = other.next()));
    other.for_each(|()| ());
}

/// The mask of the first `len` hashes of a chunk. `len` is at most [`CHUNK`].
pub(crate) fn first_marks(len: usize) -> Marks {
    Marks::MAX.checked_shr((CHUNK - len) as u32).unwrap_or(0)
}

/// The indices of the set bits of `marks`, ascending.
#[inline(always)]
pub(crate) fn marked(mut marks: Marks) -> impl Iterator<Item = usize> {
    from_fn(move || {
        if marks == 0 {
            return None;
        }
        let next = marks.trailing_zeros() as usize;
        marks &= marks - 1;
        Some(next)
    })
}
