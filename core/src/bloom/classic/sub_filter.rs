//! One sub-filter in RedisBloom's layout.
//!
//! ```text
//! a = MurmurHash64A(item, 0xc6a4a7935bd1e995), b = MurmurHash64A(item, a)
//! position_i = (a + i*b) mod bits,  i in 0..hashes         wrapping 64-bit arithmetic; bit n % 8 of byte n / 8
//! ```

use std::alloc::Layout;

use super::super::bitmap::Bitmap;
use super::super::chain::{SubFilter, first_marks, next_chunk};
use super::super::lines::line::Line;
use super::super::lines::probe::{CHUNK, PREFETCH_FROM_LINES, marked};
use super::sizing::Shape;
use crate::bits;
use crate::error::Error;
use crate::hash::Hash128;
use crate::size_limit::SizeLimit;

/// Bytes that RedisBloom counts for a sub-filter besides its bitmap.
pub(in crate::bloom) const SUB_FILTER_BYTES: u64 = 64;

/// Of an item that is looked for, this many bits are asked for before the first is looked at. In a full filter each
/// is set with chance 1/2, so few absent items need more.
const FIRST_PROBES: u32 = 2;

/// A filter of a fixed size in RedisBloom's layout.
///
/// Invariants: `bitmap` has just enough lines for the bytes of `shape`, and bits beyond those are 0; `num_items` is at
/// most the number of positions, as in [`Filter`](super::super::Filter).
#[derive(Debug)]
pub struct ClassicSubFilter {
    bitmap: Bitmap,
    shape: Shape,
    num_items: u64,
    modulus: Modulus,
}

impl ClassicSubFilter {
    /// An empty one. `limit` is asked whether the value it will be part of, `held_bytes` without it, may grow by it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a shape that does not hang together, what `limit` says, [`Error::OutOfMemory`].
    pub fn new(shape: Shape, held_bytes: u64, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        shape.validate()?;
        let num_lines = shape.num_lines();
        limit.check(held_bytes, Bitmap::bytes_for(num_lines, limit).saturating_add(size_of::<Self>() as u64))?;
        let bitmap = Bitmap::zeroed(num_lines)?;
        Ok(ClassicSubFilter { bitmap, shape, num_items: 0, modulus: Modulus::new(shape.num_positions()) })
    }

    /// An equal one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(ClassicSubFilter { bitmap: self.bitmap.try_clone()?, ..*self })
    }

    /// Its sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many items it is made for.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity
    }

    /// The share of the items it does not hold for which it may err while it holds [`ClassicSubFilter::capacity`] items.
    pub fn error_rate(&self) -> f64 {
        self.shape.error_rate
    }

    /// How many insertions set a bit; after a union an estimate.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// For loading: how many items the bits written stand for.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for more than it has bits.
    pub fn set_num_items(&mut self, num_items: u64) -> Result<(), Error> {
        self.shape.validate_items(num_items)?;
        self.num_items = num_items;
        Ok(())
    }

    /// How many bits are set.
    pub fn set_bits(&self) -> u64 {
        self.bitmap.set_bits()
    }

    /// The share of the bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        self.set_bits() as f64 / self.shape.num_positions() as f64
    }

    /// The estimated share of the items it does not hold for which it errs now.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate_at(self.num_items)
    }

    /// Bytes of the bitmap and of a struct, as RedisBloom counts them.
    pub fn size_bytes(&self) -> u64 {
        self.shape.num_bytes + SUB_FILTER_BYTES
    }

    /// The bitmap.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bitmap.as_bytes()[..self.num_bytes()]
    }

    /// Bytes of the bitmap, which is in memory.
    fn num_bytes(&self) -> usize {
        self.shape.num_bytes as usize
    }

    /// For loading: writes the bytes of the bitmap from `offset` on, of which no bit is set yet.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end; nothing is changed then.
    pub(crate) fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bitmap.append_bytes(offset, bytes, self.num_bytes())
    }

    /// Writes over the bytes of the bitmap from `offset` on: items are forgotten whose bits that clears.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end; nothing is changed then.
    pub(crate) fn overwrite_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bitmap.overwrite_bytes(offset, bytes, self.num_bytes())
    }

    /// Has the bits of both afterwards.
    pub(in crate::bloom) fn union_with(&mut self, other: &ClassicSubFilter) {
        self.bitmap.union_with(&other.bitmap);
    }

    /// Empties it, in place.
    pub fn clear(&mut self) {
        self.bitmap.clear();
        self.num_items = 0;
    }

    /// Lets `f` move the bitmap to another place in memory, as the server's defragmenter does.
    ///
    /// # Panics
    /// If `f` returns another number of lines than it was given.
    pub fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {
        self.bitmap.relocate(f);
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(self.bitmap.heap_layout());
    }

    fn words(&self) -> &[u64] {
        bytemuck::cast_slice(self.bitmap.lines())
    }

    /// Whether work on these hashes is worth asking for their lines ahead.
    fn prefetches(&self, pending: u32) -> bool {
        self.bitmap.lines().len() >= PREFETCH_FROM_LINES && pending.count_ones() > 1
    }

    /// The walks of marked hashes; of the others any.
    fn walks(&self, hashes: &[Hash128], pending: u32) -> [Walk; CHUNK] {
        let mut walks = [self.modulus.walk(Hash128 { lo: 0, hi: 0 }); CHUNK];
        for i in marked(pending) {
            walks[i] = self.modulus.walk(hashes[i]);
        }
        walks
    }
}

/// Equal in every bit and number.
impl PartialEq for ClassicSubFilter {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.num_items == other.num_items && self.as_bytes() == other.as_bytes()
    }
}

impl SubFilter for ClassicSubFilter {
    fn capacity(&self) -> u64 {
        self.shape.capacity
    }

    fn num_items(&self) -> u64 {
        self.num_items
    }

    fn num_bits(&self) -> u64 {
        self.shape.num_positions()
    }

    fn set_bits(&self) -> u64 {
        self.set_bits()
    }

    fn may_contain(&self, hash: Hash128) -> bool {
        let words = self.words();
        self.modulus.walk(hash).take(self.shape.hashes as usize).all(|position| bits::get(words, position))
    }

    fn insert(&mut self, hash: Hash128) -> bool {
        let positions = self.modulus.walk(hash).take(self.shape.hashes as usize);
        let (lines, set_bits) = self.bitmap.lines_mut();
        let words: &mut [u64] = bytemuck::cast_slice_mut(lines);
        let free = positions.fold(0, |free, position| free + u64::from(bits::set(words, position)));
        *set_bits += free;
        self.num_items = (self.num_items + u64::from(free != 0)).min(self.shape.num_positions());
        free != 0
    }

    fn look_up_chunk(&self, hashes: &[Hash128], mut pending: u32) -> u32 {
        if !self.prefetches(pending) {
            return marked(pending).fold(0, |found, i| found | (u32::from(self.may_contain(hashes[i])) << i));
        }
        let words = self.words();
        let mut walks = self.walks(hashes, pending);
        let first = FIRST_PROBES.min(self.shape.hashes);
        for probes in [first, self.shape.hashes - first] {
            for i in marked(pending) {
                walks[i].take(probes as usize).for_each(|position| bits::prefetch(words, position));
            }
            pending = marked(pending).fold(0, |found, i| {
                let all = walks[i].by_ref().take(probes as usize).all(|position| bits::get(words, position));
                found | (u32::from(all) << i)
            });
        }
        pending
    }

    fn insert_chunk(&mut self, hashes: &[Hash128], pending: u32) -> u32 {
        let hashes_per_item = self.shape.hashes as usize;
        let mut walks = self.walks(hashes, pending);
        if self.prefetches(pending) {
            for i in marked(pending) {
                walks[i].take(hashes_per_item).for_each(|position| bits::prefetch(self.words(), position));
            }
        }
        let (lines, set_bits) = self.bitmap.lines_mut();
        let words: &mut [u64] = bytemuck::cast_slice_mut(lines);
        let new = marked(pending).fold(0, |new, i| {
            let positions = walks[i].by_ref().take(hashes_per_item);
            let free = positions.fold(0, |free, position| free + u64::from(bits::set(words, position)));
            *set_bits += free;
            new | (u32::from(free != 0) << i)
        });
        self.num_items = (self.num_items + u64::from(new.count_ones())).min(self.shape.num_positions());
        new
    }

    fn look_up_all(&self, mut hashes: impl Iterator<Item = Hash128>, found: &mut impl FnMut(bool)) {
        while let Some((chunk, len)) = next_chunk(&mut hashes) {
            let marks = self.look_up_chunk(&chunk[..len], first_marks(len));
            (0..len).for_each(|i| found(marks >> i & 1 == 1));
        }
    }

    fn insert_all(&mut self, mut hashes: impl Iterator<Item = Hash128>, added: &mut impl FnMut(bool)) {
        while let Some((chunk, len)) = next_chunk(&mut hashes) {
            let marks = self.insert_chunk(&chunk[..len], first_marks(len));
            (0..len).for_each(|i| added(marks >> i & 1 == 1));
        }
    }

    fn count_union<'a>(&'a self, others: impl Iterator<Item = &'a Self> + Clone) -> u64 {
        self.bitmap.count_union(others.map(|other| &other.bitmap))
    }

    /// Swamidass and Baldi, "Mathematical Correction for Fingerprint Similarity Measures to Improve Chemical
    /// Retrieval", 2007, section 2. With every bit set the likelihood has no maximum: the answer is then that for one
    /// free bit.
    fn estimate_items(&self, set_bits: u64) -> f64 {
        let all = self.shape.num_positions() as f64;
        let free = (all - set_bits as f64).max(1.0);
        (-all / f64::from(self.shape.hashes) * libm::log(free / all)).max(0.0)
    }

    /// Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970, with independent positions.
    fn rate_at(&self, num_items: u64) -> f64 {
        let hashes = f64::from(self.shape.hashes);
        let fill = -libm::expm1(-hashes * num_items as f64 / self.shape.num_positions() as f64);
        libm::pow(fill, hashes)
    }
}

/// Numbers modulo the positions of a sub-filter.
#[derive(Debug, Clone, Copy)]
struct Modulus {
    /// At most 2^60, so that three remainders can be added.
    positions: u64,
    /// What a wrap past 2^64 adds to a remainder: `-2^64 mod positions`.
    wrap: u64,
}

impl Modulus {
    fn new(positions: u64) -> Self {
        // At least one, as every shape that validates has.
        let positions = positions.max(1);
        let wrap = (positions - (u64::MAX % positions + 1) % positions) % positions;
        Modulus { positions, wrap }
    }

    /// The positions of an item, without end.
    #[inline]
    fn walk(self, hash: Hash128) -> Walk {
        Walk {
            sum: hash.lo,
            step: hash.hi,
            position: hash.lo % self.positions,
            step_position: hash.hi % self.positions,
            modulus: self,
        }
    }
}

/// The remainders of `a + i*b`. Two divisions an item: the remainder of a sum is that of the remainders' sum, and
/// where the sum passes 2^64, [`Modulus::wrap`] makes up for it.
#[derive(Debug, Clone, Copy)]
struct Walk {
    sum: u64,
    step: u64,
    position: u64,
    step_position: u64,
    modulus: Modulus,
}

impl Iterator for Walk {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let Modulus { positions, wrap } = self.modulus;
        let position = self.position;
        let (sum, wrapped) = self.sum.overflowing_add(self.step);
        self.sum = sum;
        let next = position + self.step_position + if wrapped { wrap } else { 0 };
        // Below three times `positions`. The smaller of itself and itself less `positions`, which wraps if it may not be.
        let next = next.min(next.wrapping_sub(positions));
        self.position = next.min(next.wrapping_sub(positions));
        Some(position as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::{FORCE64, NOROUND};
    use super::*;
    use crate::hash::classic_hash;
    use crate::size_limit::Unlimited;
    use proptest::prelude::*;

    fn filter(error_rate: f64, capacity: u64) -> ClassicSubFilter {
        ClassicSubFilter::new(Shape::new(error_rate, capacity, NOROUND | FORCE64).unwrap(), 0, &Unlimited).unwrap()
    }

    #[test]
    fn large_filters_answer_in_chunks_as_one_by_one() {
        let mut large = filter(0.01, 1_000_000);
        assert!(large.bitmap.lines().len() >= PREFETCH_FROM_LINES);
        let hashes: Vec<Hash128> = (0..320u32).map(|item| classic_hash(&item.to_le_bytes())).collect();
        for (chunk, all) in hashes.chunks(CHUNK).step_by(2).zip(std::iter::repeat(u32::MAX)) {
            assert_eq!(large.insert_chunk(chunk, all), all);
        }
        for (index, chunk) in hashes.chunks(CHUNK).enumerate() {
            let expected = if index % 2 == 0 { u32::MAX } else { 0 };
            assert_eq!(large.look_up_chunk(chunk, u32::MAX), expected);
            for (i, hash) in chunk.iter().enumerate() {
                assert_eq!(large.may_contain(*hash), expected >> i & 1 == 1);
            }
        }
        let mut single = filter(0.01, 1_000_000);
        for chunk in hashes.chunks(CHUNK).step_by(2) {
            chunk.iter().for_each(|hash| assert_eq!(single.insert_chunk(&[*hash], 1), 1));
        }
        assert!(single == large);
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        let filter = filter(0.01, 1000);
        let bits = filter.shape.num_bits() as f64;
        for num_items in [0.0, 1.0, 500.0, 1000.0, 1300.0] {
            let set = bits * -libm::expm1(-f64::from(filter.shape.hashes) * num_items / bits);
            assert!((filter.estimate_items(libm::round(set) as u64) - num_items).abs() < 0.5);
        }
        assert!(filter.estimate_items(filter.shape.num_bits()).is_finite());
        assert!(filter.rate_at(1000) < 0.0101 && filter.rate_at(1000) > 0.009);
        assert_eq!(filter.rate_at(0), 0.0);
    }

    proptest! {
        #[test]
        fn walks_are_remainders(lo: u64, hi: u64, positions in prop_oneof![1u64..100, 1u64..1 << 60, Just(1 << 60), (0u32..60).prop_map(|n| 1 << n)]) {
            let walk = Modulus::new(positions).walk(Hash128 { lo, hi });
            for (i, position) in walk.take(50).enumerate() {
                let expected = lo.wrapping_add(hi.wrapping_mul(i as u64)) % positions;
                prop_assert_eq!(position as u64, expected);
            }
        }
    }
}
