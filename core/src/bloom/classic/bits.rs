//! The positions of an item's bits in RedisBloom's layout.
//!
//! ```text
//! a = MurmurHash64A(item, 0xc6a4a7935bd1e995), b = MurmurHash64A(item, a)
//! position_i = (a + i*b) mod bits,  i in 0..hashes         wrapping 64-bit arithmetic; bit n % 8 of byte n / 8
//! ```

use std::ops::Range;

use super::super::bitmap::Line;
use super::sizing::{Rules, Shape};
use crate::bits::{self, WORD_BITS};
use crate::hash::Hash128;
use crate::marks::{Marks, marked};
use prefetch_index::prefetch_index;

/// The number of an item's bits that are prefetched for a look-up. In a full filter half of the bits are set, so only a
/// quarter of absent items need more bits. The number may be changed.
const FIRST_PROBES: u32 = 2;

/// The smallest bitmap that is prefetched, in 64-bit words: 8 MiB. Smaller bitmaps fit in a third-level cache, where
/// prefetching would slow down look-ups. The number may be changed.
pub(in crate::bloom) const PREFETCH_FROM_WORDS: usize = 1 << 20;

/// What only sub-filters in RedisBloom's layout have.
#[derive(Debug, PartialEq)]
pub struct Classic {
    /// The rules by which the filter grows.
    pub rules: Rules,
    /// The size of the sub-filter, and the number of bits that an item sets.
    pub shape: Shape,
    modulus: Modulus,
}

impl Classic {
    pub(in crate::bloom) fn new(rules: Rules, shape: Shape) -> Self {
        Classic { rules, shape, modulus: Modulus::new(shape.num_positions()) }
    }

    /// Prefetches the first `probes` bits of each hash in the mask `pending`. For a small bitmap or a single hash this
    /// would save no time, so nothing is prefetched.
    fn prefetch(&self, words: &[u64], hashes: &[Hash128], pending: Marks, probes: u32) {
        if words.len() < PREFETCH_FROM_WORDS || pending.count_ones() < 2 {
            return;
        }
        for i in marked(pending) {
            let positions = self.modulus.positions(hashes[i], 0..probes.min(self.shape.hashes));
            positions.for_each(|position| prefetch_index(words, position / WORD_BITS));
        }
    }

    #[inline(always)]
    pub(in crate::bloom) fn contains(&self, lines: &[Line], hash: Hash128) -> bool {
        let words: &[u64] = bytemuck::cast_slice(lines);
        // The loop has no early exit, because a branch for each bit would be mispredicted half the time.
        let has =
            |which| self.modulus.positions(hash, which).fold(true, |all, position| all & bits::get(words, position));
        // Half of the look-ups of absent items end at the first bit. One branch tests the next two bits, because two
        // branches would be mispredicted more often.
        let few = self.shape.hashes < 3;
        (few || has(0..1) && has(1..3)) && {
            let mut rest = self.modulus.positions(hash, if few { 0 } else { 3 }..self.shape.hashes);
            rest.all(|position| bits::get(words, position))
        }
    }

    /// Returns the mask of those hashes in `pending` that may have been inserted.
    pub(in crate::bloom) fn contains_chunk(&self, lines: &[Line], hashes: &[Hash128], pending: Marks) -> Marks {
        self.prefetch(bytemuck::cast_slice(lines), hashes, pending, FIRST_PROBES);
        marked(pending).fold(0, |found, i| found | (Marks::from(self.contains(lines, hashes[i])) << i))
    }

    /// Sets the bits of the item with this hash. Returns whether any of these bits was 0, and how many were.
    #[inline(always)]
    pub(in crate::bloom) fn insert(&self, lines: &mut [Line], hash: Hash128) -> (bool, u64) {
        let words: &mut [u64] = bytemuck::cast_slice_mut(lines);
        let positions = self.modulus.positions(hash, 0..self.shape.hashes);
        let free = positions.fold(0, |free, position| free + u64::from(bits::set(words, position)));
        (free != 0, free)
    }

    /// Inserts the hashes in the mask `pending`, in order. Returns the mask of the hashes that newly set a bit, and the
    /// number of newly set bits.
    pub(in crate::bloom) fn insert_chunk(
        &self,
        lines: &mut [Line],
        hashes: &[Hash128],
        pending: Marks,
    ) -> (Marks, u64) {
        self.prefetch(bytemuck::cast_slice(lines), hashes, pending, self.shape.hashes);
        marked(pending).fold((0, 0), |(new, all_free), i| {
            let (is_new, free) = self.insert(lines, hashes[i]);
            (new | Marks::from(is_new) << i, all_free + free)
        })
    }
}

/// Computes remainders modulo the number of bits of a sub-filter. It multiplies, because division is several times
/// slower.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Modulus {
    positions: u64,
    /// `2^64 / positions`, at most 1 too small.
    reciprocal: u64,
}

impl Modulus {
    fn new(positions: u64) -> Self {
        // A valid shape has at least one position; `max` only rules out a division by zero.
        let positions = positions.max(1);
        Modulus { positions, reciprocal: u64::MAX / positions }
    }

    #[inline(always)]
    fn of(self, x: u64) -> u64 {
        // The rounded quotient is exact or 1 too small.
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x - quotient * self.positions;
        if rest >= self.positions { rest - self.positions } else { rest }
    }

    /// The positions of those bits of the item that `which` selects, where 0 is the item's first bit.
    #[inline(always)]
    fn positions(self, hash: Hash128, which: Range<u32>) -> impl Iterator<Item = usize> {
        which.map(move |i| self.of(hash.lo.wrapping_add(u64::from(i).wrapping_mul(hash.hi))) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_remainders(
            lo: u64, hi: u64, positions in prop_oneof![1u64..100, 1u64.., (0u32..64).prop_map(|n| 1 << n)],
        ) {
            let modulus = Modulus::new(positions);
            for (i, position) in modulus.positions(Hash128 { lo, hi }, 0..50).enumerate() {
                let expected = lo.wrapping_add(hi.wrapping_mul(i as u64)) % positions;
                prop_assert_eq!(position as u64, expected);
            }
            let last_multiple = u64::MAX - u64::MAX % positions;
            for x in [0, positions - 1, positions, last_multiple - 1, last_multiple, u64::MAX] {
                prop_assert_eq!(modulus.of(x), x % positions);
            }
        }
    }
}
