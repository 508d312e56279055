//! One sub-filter in RedisBloom's layout.
//!
//! ```text
//! a = MurmurHash64A(item, 0xc6a4a7935bd1e995), b = MurmurHash64A(item, a)
//! position_i = (a + i*b) mod bits,  i in 0..hashes         wrapping 64-bit arithmetic; bit n % 8 of byte n / 8
//! ```

use std::ops::Range;

use super::super::params::Params;
use super::super::sub_filter::{Store, SubFilter};
use super::sizing::{FORCE64, NO_SCALING, NOROUND, Shape, TIGHTENING, default_growth};
use super::spec::{ClassicSpec, Rules};
use crate::bits;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, Marks, classic_hash, first_marked, first_marks, marked};
use crate::live::sealed::Sealed;
use crate::size_limit::SizeLimit;

/// Bytes that RedisBloom reports for a chain, in addition to its sub-filters.
const CHAIN_BYTES: u64 = 32;

/// Bytes that RedisBloom reports for a sub-filter, in addition to its bitmap.
pub(in crate::bloom) const SUB_FILTER_BYTES: u64 = 64;

/// The number of an item's bits that a look-up tests first. In a full filter each bit is set with chance 1/2, so one
/// absent item in four needs more tests. Free to change: nothing stored depends on it.
const FIRST_PROBES: u32 = 2;

/// The number of sub-filters that are queried together for one item, so that their cache misses overlap. Shorter chains
/// query their sub-filters one by one. Free to change: nothing stored depends on it.
const AT_ONCE: usize = 16;

/// The size from which bitmaps are prefetched, in lines: 8 MiB. Look-ups in smaller ones, which a third-level cache
/// holds, take longer with it, since the processor overlaps the loads by itself. Free to change: nothing stored depends
/// on it.
const PREFETCH_FROM_LINES: usize = 131_072;

/// Largest number of bits that are prefetched before they are tested or set. Their lines fill half a first-level cache,
/// so none is evicted before its use. Free to change: nothing stored depends on it.
const ASKED_AHEAD: u32 = 256;

/// A filter of a fixed size in RedisBloom's layout.
///
/// Invariant: the bitmap has just enough lines for the bytes of its shape, and bits beyond those are 0.
#[derive(Debug, PartialEq)]
pub struct ClassicSubFilter(Store<ClassicSpec>);

impl ClassicSubFilter {
    /// An empty sub-filter. `limit` is asked whether a value of `held_bytes` may grow by the new sub-filter.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(
        rules: Rules,
        is_first: bool,
        shape: Shape,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let spec = ClassicSpec::of(rules, is_first, shape)?;
        Ok(ClassicSubFilter(Store::new(spec, shape.num_lines(), held_bytes, limit)?))
    }

    /// The first sub-filter of a chain with these parameters and this growth, which RedisBloom stores even for filters
    /// that do not scale.
    pub(super) fn first_with(
        params: &Params,
        growth: u32,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let (scaling, tightening) = if params.expansion == 0 { (NO_SCALING, 1.0) } else { (0, TIGHTENING) };
        let options = NOROUND | FORCE64 | scaling;
        let shape = Shape::new(params.error_rate * tightening, params.capacity, options)?;
        // The parameters are derived from the shape, as in loading. Half of a subnormal rate may be rounded, and twice
        // the half then differs from the rate asked for.
        ClassicSubFilter::new(Rules { options, growth }, true, shape, held_bytes, limit)
    }

    /// The shape of the sub-filter.
    pub fn shape(&self) -> &Shape {
        &self.0.spec.shape
    }

    /// The rules of the chain.
    pub(super) fn rules(&self) -> Rules {
        self.0.spec.rules
    }

    /// Overwrites the bitmap with `bytes` from byte `offset` on. Items with a bit that is cleared are lost.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end; nothing is changed then.
    pub(crate) fn overwrite_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.0.bitmap.overwrite_bytes(offset, bytes, self.num_bytes())
    }

    fn words(&self) -> &[u64] {
        bytemuck::cast_slice(self.0.bitmap.lines())
    }

    /// Whether prefetching pays: the bitmap is large, and there is more than one hash.
    fn prefetches(&self, pending: Marks) -> bool {
        self.0.bitmap.lines().len() >= PREFETCH_FROM_LINES && pending.count_ones() > 1
    }

    /// Sets the bits of this hash; returns whether at least one was free.
    #[inline(always)]
    fn set(&mut self, hash: Hash128) -> bool {
        let positions = self.0.spec.modulus.positions(hash, 0..self.0.spec.shape.hashes);
        let (lines, set_bits) = self.0.bitmap.lines_mut();
        let words: &mut [u64] = bytemuck::cast_slice_mut(lines);
        let free = positions.fold(0, |free, position| free + u64::from(bits::set(words, position)));
        *set_bits += free;
        free != 0
    }

    /// Whether the item's bits with the indices `probes` are all set.
    #[inline(always)]
    fn has(&self, words: &[u64], hash: Hash128, probes: Range<u32>) -> bool {
        // No early exit: a branch for each bit would be mispredicted half the time.
        self.0.spec.modulus.positions(hash, probes).fold(true, |all, position| all & bits::get(words, position))
    }

    /// Whether all bits of an item from index `start` on are set. Ends at the first free one.
    #[inline(always)]
    fn has_from(&self, words: &[u64], hash: Hash128, start: u32) -> bool {
        let rest = start..self.0.spec.shape.hashes;
        self.0.spec.modulus.positions(hash, rest).all(|position| bits::get(words, position))
    }

    /// Whether any of `group`, at most [`AT_ONCE`] sub-filters, may contain the item with this hash. No branch
    /// separates the loads of a round, so their cache misses overlap: a mispredicted branch would delay the next miss.
    fn look_up_at_once(group: &[Self], hash: Hash128) -> bool {
        let mut found = first_marks(group.len());
        for probe in 0..FIRST_PROBES {
            for i in marked(found) {
                let (one, probes) = (&group[i], probe..(probe + 1).min(group[i].0.spec.shape.hashes));
                found &= !(Marks::from(!one.has(one.words(), hash, probes)) << i);
            }
        }
        marked(found).any(|i| group[i].has_from(group[i].words(), hash, FIRST_PROBES))
    }

    /// Tests the hashes in the mask `pending`. Returns the mask of the hashes that have all bits with the indices
    /// `probes`.
    #[inline(always)]
    fn having(&self, hashes: &[Hash128], pending: Marks, probes: Range<u32>) -> Marks {
        let (words, mut having, mut left) = (self.words(), 0, pending);
        // Loops, since the compiler makes `fold` one call for all rounds.
        while left != 0 {
            let these = self.prefetch_some(hashes, left, probes.clone());
            for i in marked(these) {
                having |= Marks::from(self.has(words, hashes[i], probes.clone())) << i;
            }
            left ^= these;
        }
        having
    }

    /// Prefetches the bits with the indices `probes` of so many hashes in the mask `pending` that the bits stay in the
    /// first-level cache. Returns the mask of these hashes; without prefetching, these are all.
    #[inline(always)]
    fn prefetch_some(&self, hashes: &[Hash128], pending: Marks, probes: Range<u32>) -> Marks {
        let at_once = if self.prefetches(pending) { ASKED_AHEAD / (probes.len() as u32).max(1) } else { 0 };
        // The loads of one item's bits overlap anyway, so prefetching them gains nothing.
        if at_once < 2 {
            return pending;
        }
        let these = first_marked(pending, at_once.into());
        marked(these).for_each(|i| self.prefetch(self.words(), hashes[i], probes.clone()));
        these
    }

    /// Prefetches the item's bits with the indices `probes`.
    #[inline(always)]
    fn prefetch(&self, words: &[u64], hash: Hash128, probes: Range<u32>) {
        self.0.spec.modulus.positions(hash, probes).for_each(|position| bits::prefetch(words, position));
    }
}

impl Sealed for ClassicSubFilter {}

impl SubFilter for ClassicSubFilter {
    type Spec = ClassicSpec;

    fn of(store: Store<ClassicSpec>) -> Self {
        ClassicSubFilter(store)
    }

    fn store(&self) -> &Store<ClassicSpec> {
        &self.0
    }

    fn store_mut(&mut self) -> &mut Store<ClassicSpec> {
        &mut self.0
    }

    fn num_bytes(&self) -> usize {
        self.0.spec.shape.num_bytes as usize
    }

    fn hashes(&self) -> u32 {
        self.0.spec.shape.hashes
    }

    fn params(&self) -> &Params {
        &self.0.spec.params
    }

    #[inline(always)]
    fn hash(item: &[u8], _seed: u64) -> Hash128 {
        classic_hash(item)
    }

    fn first(params: &Params, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        ClassicSubFilter::first_with(params, default_growth(params), held_bytes, limit)
    }

    fn next(&self, newest: &Self, _index: u64, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        // The first sub-filter has the rules that are stored. A merge may have brought sub-filters of equal shapes
        // under other rules.
        let rules = self.rules();
        if rules.options & NO_SCALING != 0 {
            return Err(Error::Full { capacity: newest.capacity() });
        }
        ClassicSubFilter::new(rules, false, newest.shape().next(rules.growth, rules.options)?, held_bytes, limit)
    }

    /// The size that RedisBloom reports.
    fn size_bytes(sub_filters: &[Self]) -> u64 {
        CHAIN_BYTES + sub_filters.iter().map(|sub_filter| sub_filter.shape().num_bytes + SUB_FILTER_BYTES).sum::<u64>()
    }

    fn capacity(&self) -> u64 {
        self.0.spec.shape.capacity
    }

    fn error_rate(&self) -> f64 {
        self.0.spec.shape.error_rate
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// The capacity minus the number of counted items. As in RedisBloom, the count omits new items that the filter took
    /// for known.
    fn room(&self) -> u64 {
        self.0.spec.shape.capacity.saturating_sub(self.0.num_items)
    }

    fn holds(&self, num_items: u64, _set_bits: u64) -> bool {
        num_items <= self.0.spec.shape.capacity
    }

    fn num_bits(&self) -> u64 {
        self.0.spec.shape.num_positions()
    }

    #[inline(always)]
    fn may_contain(&self, hash: Hash128) -> bool {
        // Half of the look-ups of an absent item end at the first bit. A branch for each of the next two would be
        // mispredicted more often than one for both.
        let (words, few) = (self.words(), self.0.spec.shape.hashes < 3);
        (few || self.has(words, hash, 0..1) && self.has(words, hash, 1..3))
            && self.has_from(words, hash, if few { 0 } else { 3 })
    }

    fn insert(&mut self, hash: Hash128) -> bool {
        let free = self.set(hash);
        self.0.num_items = (self.0.num_items + u64::from(free)).min(self.0.spec.shape.num_positions());
        free
    }

    fn words_of(&self, hash: Hash128, visit: &mut dyn FnMut(usize, u64)) {
        let words = self.words();
        let positions = self.0.spec.modulus.positions(hash, 0..self.0.spec.shape.hashes);
        positions.map(|position| position / 64).for_each(|index| visit(index, words[index]));
    }

    fn look_up(sub_filters: &[Self], hash: Hash128) -> bool {
        // Newest first: it is the largest, so it most likely holds a present item.
        if sub_filters.len() < AT_ONCE {
            return sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash));
        }
        sub_filters.rchunks(AT_ONCE).any(|group| Self::look_up_at_once(group, hash))
    }

    fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks {
        let (words, all) = (self.words(), self.0.spec.shape.hashes);
        if pending.is_power_of_two() {
            // A single hash is looked up with branches: the processor predicts them and loads the later bits without
            // waiting.
            let i = pending.trailing_zeros();
            return Marks::from(self.may_contain(hashes[i as usize])) << i;
        }
        // The first round stands alone: it takes most of the time, and its constant length lets the compiler unroll it.
        let (mut found, start) = if all < FIRST_PROBES {
            (pending, 0)
        } else {
            (self.having(hashes, pending, 0..FIRST_PROBES), FIRST_PROBES)
        };
        if !self.prefetches(pending) {
            let has_rest = |i: usize| self.has_from(words, hashes[i], start);
            return marked(found).fold(0, |having, i| having | (Marks::from(has_rest(i)) << i));
        }
        // Only one absent item in sixteen is left after the second round, so asking for all other bits at once wastes
        // little.
        let second = all.min(2 * FIRST_PROBES);
        found = self.having(hashes, found, start..second);
        self.having(hashes, found, second..all)
    }

    fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks {
        let all = 0..self.0.spec.shape.hashes;
        let (mut new, mut left) = (0, pending);
        while left != 0 {
            let these = self.prefetch_some(hashes, left, all.clone());
            new |= marked(these).fold(0, |new, i| new | (Marks::from(self.set(hashes[i])) << i));
            left ^= these;
        }
        self.0.num_items = (self.0.num_items + u64::from(new.count_ones())).min(self.0.spec.shape.num_positions());
        new
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        if self.shape() != other.shape() {
            let (ours, theirs) = (format!("{:?}", self.shape()), format!("{:?}", other.shape()));
            return Err(Error::Incompatible { parameter: Parameter::Shape, ours, theirs });
        }
        Ok(())
    }

    /// The number of items at which `set_bits` set bits are most likely. See Swamidass and Baldi, "Mathematical
    /// Correction for Fingerprint Similarity Measures to Improve Chemical Retrieval", 2007, section 2. With every bit
    /// set the likelihood has no maximum: the answer is then the estimate for one free bit.
    fn estimate_items(&self, set_bits: u64) -> f64 {
        let all = self.0.spec.shape.num_positions() as f64;
        let free = (all - set_bits as f64).max(1.0);
        (-all / f64::from(self.0.spec.shape.hashes) * libm::log(free / all)).max(0.0)
    }

    fn rate_of(&self, num_items: f64) -> f64 {
        let Shape { hashes, .. } = self.0.spec.shape;
        let fill = -libm::expm1(-num_items * f64::from(hashes) / self.0.spec.shape.num_positions() as f64);
        libm::pow(fill, f64::from(hashes))
    }

    /// The share of set bits to the power of the number of hashes, as for independent positions. See Bloom, "Space/Time
    /// Trade-offs in Hash Coding with Allowable Errors", 1970.
    fn rate_with(&self, set_bits: u64) -> f64 {
        let fill = set_bits as f64 / self.0.spec.shape.num_positions() as f64;
        libm::pow(fill.min(1.0), f64::from(self.0.spec.shape.hashes))
    }

    fn rate_to_come(&self, _len: usize) -> f64 {
        // RedisBloom's shares of the error rate leave no slack. A union that had to reserve a rate for later
        // sub-filters could hold no item beyond the capacities of its sub-filters. So a union is held to its present
        // rate alone.
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::{FORCE64, NOROUND};
    use super::*;
    use crate::hash::{CHUNK, classic_hash};
    use crate::size_limit::Unlimited;

    fn filter(error_rate: f64, capacity: u64) -> ClassicSubFilter {
        let rules = Rules { options: NOROUND | FORCE64, growth: 2 };
        let shape = Shape::new(error_rate, capacity, rules.options).unwrap();
        ClassicSubFilter::new(rules, true, shape, 0, &Unlimited).unwrap()
    }

    #[test]
    fn large_filters_answer_in_chunks_as_one_by_one() {
        let mut large = filter(0.01, 7_500_000);
        assert!(large.0.bitmap.lines().len() >= PREFETCH_FROM_LINES);
        let hashes: Vec<Hash128> = (0..10 * CHUNK as u32).map(|item| classic_hash(&item.to_le_bytes())).collect();
        for (chunk, all) in hashes.chunks(CHUNK).step_by(2).zip(std::iter::repeat(Marks::MAX)) {
            assert_eq!(large.insert_chunk(chunk, all), all);
        }
        for (index, chunk) in hashes.chunks(CHUNK).enumerate() {
            let expected = if index % 2 == 0 { Marks::MAX } else { 0 };
            assert_eq!(large.look_up_chunk(chunk, Marks::MAX), expected);
            for (i, hash) in chunk.iter().enumerate() {
                assert_eq!(large.may_contain(*hash), expected >> i & 1 == 1);
            }
        }
        let mut single = filter(0.01, 7_500_000);
        for chunk in hashes.chunks(CHUNK).step_by(2) {
            chunk.iter().for_each(|hash| assert_eq!(single.insert_chunk(&[*hash], 1), 1));
        }
        assert!(single == large);
    }

    /// Every number of hashes below, at and above the ends of the rounds, with few items at once and with many.
    #[test]
    fn items_of_few_and_many_hashes_are_found_in_rounds() {
        for (error_rate, expected) in [(0.51, 1), (0.26, 2), (0.13, 3), (0.065, 4), (0.04, 5), (1e-3, 10), (1e-9, 30)] {
            let mut large = filter(error_rate, 64_000_000 / expected);
            assert_eq!(u64::from(large.hashes()), expected);
            assert!(large.0.bitmap.lines().len() >= PREFETCH_FROM_LINES, "{error_rate}");
            let hashes: Vec<Hash128> = (0..2 * CHUNK as u32).map(|item| classic_hash(&item.to_le_bytes())).collect();
            let (known, absent) = hashes.split_at(CHUNK);
            assert_eq!(large.insert_chunk(known, Marks::MAX), Marks::MAX);
            for pending in [Marks::MAX, 1 << 63 | 1, 0b100, 0] {
                assert_eq!(large.look_up_chunk(known, pending), pending);
                assert_eq!(large.look_up_chunk(absent, pending), 0);
                assert_eq!(large.insert_chunk(known, pending), 0);
            }
        }
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        let filter = filter(0.01, 1000);
        let bits = filter.shape().num_bits() as f64;
        for num_items in [0.0, 1.0, 500.0, 1000.0, 1300.0] {
            let set = bits * -libm::expm1(-f64::from(filter.shape().hashes) * num_items / bits);
            assert!((filter.estimate_items(libm::round(set) as u64) - num_items).abs() < 0.5);
        }
        assert!(filter.estimate_items(filter.shape().num_bits()).is_finite());
        let full = bits * -libm::expm1(-f64::from(filter.shape().hashes) * 1000.0 / bits);
        assert!(filter.rate_with(full as u64) < 0.0101 && filter.rate_with(full as u64) > 0.009);
        assert_eq!([filter.rate_with(0), filter.rate_with(filter.shape().num_bits())], [0.0, 1.0]);
    }

    #[test]
    fn sub_filters_are_equal_in_every_bit_and_number() {
        let same = |other: &ClassicSubFilter| filter(0.01, 100) == *other;
        assert!(same(&filter(0.01, 100)));
        // The same number of bytes, with no bit set, but another shape.
        let other = filter(0.01, 99);
        assert!(!same(&other) && other.as_bytes() == filter(0.01, 100).as_bytes());
        let mut other = filter(0.01, 100);
        other.set_num_items(1).unwrap();
        assert!(!same(&other));
        let mut other = filter(0.01, 100);
        other.append_bytes(119, &[1]).unwrap();
        assert!(!same(&other));
        let mut copy = other.try_clone().unwrap();
        assert!(copy == other);
        copy.set_num_items(1).unwrap();
        assert!(copy != other);
    }

    #[test]
    fn a_sub_filter_reports_what_it_was_made_with() {
        let one = filter(0.0125, 100);
        assert_eq!((one.error_rate(), one.capacity(), one.num_bits()), (0.0125, 100, one.as_bytes().len() as u64 * 8));
    }

    /// An imported sub-filter may have another shape than its parameters give.
    #[test]
    fn only_equal_shapes_merge() {
        let (ours, theirs) = (filter(0.01, 100), filter(0.01, 99));
        assert_eq!(ours.check_mergeable(&filter(0.01, 100)), Ok(()));
        let (reported, of_theirs) = (format!("{:?}", ours.shape()), format!("{:?}", theirs.shape()));
        assert!(reported.contains("capacity: 100") && of_theirs.contains("capacity: 99"));
        let rejected = Error::Incompatible { parameter: Parameter::Shape, ours: reported, theirs: of_theirs };
        assert_eq!(ours.check_mergeable(&theirs), Err(rejected));
    }
}
