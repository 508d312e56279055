//! Implements [`Placement`] for RedisBloom's layout.
//!
//! ```text
//! a = MurmurHash64A(item, 0xc6a4a7935bd1e995), b = MurmurHash64A(item, a)
//! position_i = (a + i*b) mod bits,  i in 0..hashes         wrapping 64-bit arithmetic; bit n % 8 of byte n / 8
//! ```

use std::ops::Range;

use super::super::bitmap::Line;
use super::super::params::Params;
use super::super::sub_filter::{Placement, Spec};
use super::sizing::{NO_SCALING, default_growth};
use super::spec::{Classic, ClassicSubFilter};
use crate::bits;
use crate::error::{Error, Parameter};
use crate::hash::{Hash128, Marks, classic_hash, marked};
use crate::live::sealed::Sealed;
use crate::shared::Shared;

/// The number of an item's bits that are prefetched for a look-up. In a full filter each bit is set with chance 1/2, so
/// for one absent item in four more bits have to be read. Free to change: nothing stored depends on it.
const FIRST_PROBES: u32 = 2;

/// The size from which bitmaps are prefetched, in words: 8 MiB. Smaller bitmaps fit in a third-level cache. Prefetching
/// would slow down look-ups in them, since the processor overlaps these loads by itself. Free to change: nothing stored
/// depends on it.
const PREFETCH_FROM_WORDS: usize = 1 << 20;

/// The bits of a sub-filter, and the positions of an item's bits among them.
#[derive(Clone, Copy)]
struct Bits<'a> {
    spec: &'a Spec<Classic>,
    words: &'a [u64],
}

impl<'a> Bits<'a> {
    fn new(spec: &'a Spec<Classic>, lines: &'a [Line]) -> Self {
        Bits { spec, words: bytemuck::cast_slice(lines) }
    }

    /// Prefetches the first `probes` bits of each hash in the mask `pending`, if the bitmap is large and there is more
    /// than one hash. Otherwise prefetching would save no time.
    fn prefetch(self, hashes: &[Hash128], pending: Marks, probes: u32) {
        if self.words.len() < PREFETCH_FROM_WORDS || pending.count_ones() < 2 {
            return;
        }
        for i in marked(pending) {
            let positions = self.spec.own.modulus.positions(hashes[i], 0..probes.min(self.spec.hashes));
            positions.for_each(|position| bits::prefetch(self.words, position));
        }
    }

    /// Whether the item's bits with the indices `probes` are all set.
    #[inline(always)]
    fn has(self, hash: Hash128, probes: Range<u32>) -> bool {
        // No early exit: a branch for each bit would be mispredicted half the time.
        self.spec.own.modulus.positions(hash, probes).fold(true, |all, position| all & bits::get(self.words, position))
    }

    /// Whether all bits of an item from index `start` on are set. The loop ends at the first free bit.
    #[inline(always)]
    fn has_from(self, hash: Hash128, start: u32) -> bool {
        let mut rest = self.spec.own.modulus.positions(hash, start..self.spec.hashes);
        rest.all(|position| bits::get(self.words, position))
    }

    /// Whether all bits of an item are set.
    #[inline(always)]
    fn has_all(self, hash: Hash128) -> bool {
        // Half of the look-ups of an absent item end at the first bit. The next two bits share a branch, because two
        // branches would be mispredicted more often.
        let few = self.spec.hashes < 3;
        (few || self.has(hash, 0..1) && self.has(hash, 1..3)) && self.has_from(hash, if few { 0 } else { 3 })
    }
}

/// Sets the bits of this hash; returns how many were free.
#[inline(always)]
fn set(spec: &Spec<Classic>, lines: &mut [Line], hash: Hash128) -> u64 {
    let words: &mut [u64] = bytemuck::cast_slice_mut(lines);
    let positions = spec.own.modulus.positions(hash, 0..spec.hashes);
    positions.fold(0, |free, position| free + u64::from(bits::set(words, position)))
}

impl Sealed for Classic {}

/// The constants for bytes have the values that RedisBloom reports.
impl Placement for Classic {
    const CHAIN_BYTES: u64 = 32;
    const SUB_FILTER_BYTES: u64 = 64;
    const IN_PLACE_BYTES: u64 = 0;

    #[inline(always)]
    fn hash(item: &[u8], _seed: u64) -> Hash128 {
        classic_hash(item)
    }

    fn first(params: &Params) -> Result<Shared<Spec<Self>>, Error> {
        Spec::first_of(params, default_growth(params))
    }

    fn next(first: &Spec<Self>, newest: &Spec<Self>, _index: u64) -> Result<Shared<Spec<Self>>, Error> {
        // The rules are taken from the first sub-filter, because its rules are stored. A merge may have brought in
        // sub-filters of equal shapes that have other rules.
        let rules = first.own.rules;
        if rules.options & NO_SCALING != 0 {
            return Err(Error::Full { capacity: newest.capacity });
        }
        Spec::of_shape(rules, false, newest.own.shape.next(rules.growth, rules.options)?)
    }

    #[inline(always)]
    fn contains(spec: &Spec<Self>, lines: &[Line], hash: Hash128) -> bool {
        Bits::new(spec, lines).has_all(hash)
    }

    fn contains_chunk(spec: &Spec<Self>, lines: &[Line], hashes: &[Hash128], pending: Marks) -> Marks {
        let bits = Bits::new(spec, lines);
        bits.prefetch(hashes, pending, FIRST_PROBES);
        marked(pending).fold(0, |found, i| found | (Marks::from(bits.has_all(hashes[i])) << i))
    }

    fn insert(spec: &Spec<Self>, lines: &mut [Line], hash: Hash128) -> (bool, u64) {
        let free = set(spec, lines, hash);
        (free != 0, free)
    }

    fn insert_chunk(spec: &Spec<Self>, lines: &mut [Line], hashes: &[Hash128], pending: Marks) -> (Marks, u64) {
        Bits::new(spec, lines).prefetch(hashes, pending, spec.hashes);
        marked(pending).fold((0, 0), |(new, all_free), i| {
            let free = set(spec, lines, hashes[i]);
            (new | Marks::from(free != 0) << i, all_free + free)
        })
    }

    fn words_of(spec: &Spec<Self>, hash: Hash128, visit: &mut dyn FnMut(usize)) {
        let positions = spec.own.modulus.positions(hash, 0..spec.hashes);
        positions.map(|position| position / bits::WORD_BITS).for_each(visit);
    }

    fn look_up(sub_filters: &[ClassicSubFilter], hash: Hash128) -> bool {
        // The newest sub-filter is looked up first. It is the largest, so it is the most likely one to have a present
        // item.
        sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
    }

    fn check_mergeable(ours: &Spec<Self>, theirs: &Spec<Self>) -> Result<(), Error> {
        let (ours, theirs) = (&ours.own.shape, &theirs.own.shape);
        if ours != theirs {
            let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
            return Err(Error::Incompatible { parameter: Parameter::Shape, ours, theirs });
        }
        Ok(())
    }

    /// The number of items at which `set_bits` set bits are most likely. See Swamidass and Baldi, "Mathematical
    /// Correction for Fingerprint Similarity Measures to Improve Chemical Retrieval", 2007, section 2. If every bit is
    /// set, the likelihood has no maximum. The result is then the estimate for one free bit.
    fn estimate_items(spec: &Spec<Self>, set_bits: u64) -> f64 {
        let all = spec.num_bits as f64;
        let free = (all - set_bits as f64).max(1.0);
        (-all / f64::from(spec.hashes) * libm::log(free / all)).max(0.0)
    }

    fn rate_of(spec: &Spec<Self>, num_items: f64) -> f64 {
        let fill = -libm::expm1(-num_items * f64::from(spec.hashes) / spec.num_bits as f64);
        libm::pow(fill, f64::from(spec.hashes))
    }

    /// The share of set bits to the power of the number of hashes, as for independent positions. See Bloom, "Space/Time
    /// Trade-offs in Hash Coding with Allowable Errors", 1970.
    fn rate_with(spec: &Spec<Self>, set_bits: u64) -> f64 {
        let fill = set_bits as f64 / spec.num_bits as f64;
        libm::pow(fill.min(1.0), f64::from(spec.hashes))
    }

    fn rate_to_come(_first: &Spec<Self>, _len: usize) -> f64 {
        // RedisBloom divides the whole error rate among the sub-filters. If a union had to reserve a rate for later
        // sub-filters, it could not have a single item more than the capacities of its sub-filters. So only the present
        // rate of a union is limited.
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::{FORCE64, NOROUND, Shape};
    use super::super::spec::Rules;
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
        assert!(large.lines().len() * 8 >= PREFETCH_FROM_WORDS);
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

    /// Tests numbers of hashes below, at and above the ends of the rounds, for short and long lists of items.
    #[test]
    fn items_of_few_and_many_hashes_are_found_in_rounds() {
        for (error_rate, expected) in [(0.51, 1), (0.26, 2), (0.13, 3), (0.065, 4), (0.04, 5), (1e-3, 10), (1e-9, 30)] {
            let mut large = filter(error_rate, 64_000_000 / expected);
            assert_eq!(u64::from(large.hashes()), expected);
            assert!(large.lines().len() * 8 >= PREFETCH_FROM_WORDS, "{error_rate}");
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
            assert!((Classic::estimate_items(&filter.spec, libm::round(set) as u64) - num_items).abs() < 0.5);
        }
        assert!(Classic::estimate_items(&filter.spec, filter.shape().num_bits()).is_finite());
        let full = bits * -libm::expm1(-f64::from(filter.shape().hashes) * 1000.0 / bits);
        assert!(
            Classic::rate_with(&filter.spec, full as u64) < 0.0101
                && Classic::rate_with(&filter.spec, full as u64) > 0.009
        );
        assert_eq!(
            [Classic::rate_with(&filter.spec, 0), Classic::rate_with(&filter.spec, filter.shape().num_bits())],
            [0.0, 1.0]
        );
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
        assert_eq!(Classic::check_mergeable(&ours.spec, &filter(0.01, 100).spec), Ok(()));
        let (reported, of_theirs) = (format!("{:?}", ours.shape()), format!("{:?}", theirs.shape()));
        assert!(reported.contains("capacity: 100") && of_theirs.contains("capacity: 99"));
        let rejected = Error::Incompatible { parameter: Parameter::Shape, ours: reported, theirs: of_theirs };
        assert_eq!(Classic::check_mergeable(&ours.spec, &theirs.spec), Err(rejected));
    }
}
