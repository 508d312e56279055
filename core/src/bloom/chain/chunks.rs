//! Hashes in chunks, whose cache misses overlap, and masks of a bit for each hash of a chunk.

use crate::hash::Hash128;

/// Hashes of a chunk: one for each bit of a `u32` mask, and about as many as a core has cache misses in flight.
pub(in crate::bloom) const CHUNK: usize = 32;

/// An iterator over the hashes of items whose `next` is always inlined, unlike those of `map` and `take`. A call would
/// return the hash through memory: two stores of 64 bits, then one load of 128. Store forwarding fails there, which
/// costs a list a tenth of its time.
pub(in crate::bloom) struct Hashes<I, H> {
    items: I,
    hash: H,
}

pub(in crate::bloom) fn hashes_of<'a, H: Fn(&[u8]) -> Hash128>(
    items: impl IntoIterator<Item = &'a [u8]>,
    hash: H,
) -> Hashes<impl Iterator<Item = &'a [u8]>, H> {
    Hashes { items: items.into_iter().fuse(), hash }
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Hashes<I, H> {
    /// At most `left` hashes. `left` counts down.
    pub(super) fn up_to<'h>(&'h mut self, left: &'h mut usize) -> UpTo<'h, I, H> {
        UpTo { hashes: self, left }
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Iterator for Hashes<I, H> {
    type Item = Hash128;

    #[inline(always)]
    fn next(&mut self) -> Option<Hash128> {
        let item = self.items.next()?;
        Some((self.hash)(item))
    }
}

pub(super) struct UpTo<'h, I, H> {
    hashes: &'h mut Hashes<I, H>,
    left: &'h mut usize,
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Iterator for UpTo<'_, I, H> {
    type Item = Hash128;

    #[inline(always)]
    fn next(&mut self) -> Option<Hash128> {
        if *self.left == 0 {
            return None;
        }
        let hash = self.hashes.next()?;
        *self.left -= 1;
        Some(hash)
    }
}

/// The next chunk of hashes and its length; `None` when there are no more.
pub(in crate::bloom) fn next_chunk(hashes: &mut impl Iterator<Item = Hash128>) -> Option<([Hash128; CHUNK], usize)> {
    let mut chunk = [Hash128 { lo: 0, hi: 0 }; CHUNK];
    let len = fill(&mut chunk, hashes);
    (len > 0).then_some((chunk, len))
}

/// The mask of the first `len` hashes of a chunk.
pub(in crate::bloom) fn first_marks(len: usize) -> u32 {
    ((1u64 << len) - 1) as u32
}

/// Fills `chunk` from `hashes`, as far as they reach; returns how many it took.
#[inline(always)]
pub(in crate::bloom) fn fill(chunk: &mut [Hash128], hashes: &mut impl Iterator<Item = Hash128>) -> usize {
    let mut len = 0;
    for (slot, hash) in chunk.iter_mut().zip(hashes) {
        *slot = hash;
        len += 1;
    }
    len
}

/// The positions of the bits set in `marks`, ascending.
#[inline(always)]
pub(in crate::bloom) fn marked(marks: u32) -> Marked {
    Marked(marks)
}

pub(in crate::bloom) struct Marked(u32);

impl Iterator for Marked {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let next = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(next)
    }
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
