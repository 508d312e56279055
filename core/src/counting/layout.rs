//! The tapered bitmap: a bitmap for linear counting in which later segments sample the hash space more and more thinly.
//! This module maps hashes to slots, and folds a bitmap to a coarser layout.
//!
//! ```text
//! precision p, m = 2^p slots of the hash space; tail bits c, C = 2^c:
//!
//!   slot 0                                m - C      m         m + C            m + (34-p)C
//!   | main: m - C slots, each 2^-p of the   | tail     | tail      |    ...   | tail    |
//!   | hash space                            | s = p-c  | s = p-c+1 |          | s = 34-c|
//! ```
//!
//! `ones` is the number of leading 1 bits of a 64-bit hash. With `ones < p - c` the slot is the top
//! `p` bits, as in plain linear counting. Otherwise the hash falls in tail segment `s = min(ones, 34 - c)`,
//! at the `c` bits that follow the ones and the 0 that ends them (for `s = 34 - c`: the `c` bits that follow
//! the first `34 - c`). A tail slot of segment `s` has `2^-(s+1+c)` of the hash space, `2^-34` in the last two:
//! density halves from segment to segment, so there is always a segment that is neither empty nor full.
//!
//! Worked example, p = 11, c = 10: hash `0x4000_0000_0000_0000` has no leading ones, and 0 < 1, so its slot is
//! the top 11 bits: 512. Hash `0xbff0_0000_0000_0000` begins `10 1111111111 0...`: one leading 1, a 0,
//! then ten 1 bits, so it goes to slot 1023 of segment 1, the first tail segment: 1024 + 1023 = 2047.
//!
//! Slots are in the order of the hashes that fall in them. Each is a dyadic interval of the hash space, and
//! none gets longer when `p` or `c` grows. Hence the bits are a function of the set alone, a union is an OR,
//! and a bitmap folds exactly to a smaller `p`, a smaller `c` or both.
//!
//! All of this is stored format: nothing here can change without a new encoding version.

use std::ops::Range;

use multiversion::multiversion;

use crate::bits;
use crate::error::{Error, Parameter};

/// The smallest slots have a share of `2^-FINEST_BITS` of the hash space. They are in the last two segments. With 34
/// the standard error stays level up to 10^10 members.
const FINEST_BITS: u32 = 34;
/// The fewest tail bits: a tail segment has at least 2^8 slots, which fill whole words. With 2^8 slots, the standard
/// error of large counts is 4.1 %.
pub const MIN_TAIL_BITS: u32 = 8;
/// The most tail bits of a layout within `MAX_BITS`: a tail segment has at most 2^19 slots. With 2^19 slots, the
/// standard error of large counts is 0.09 %.
pub const MAX_TAIL_BITS: u32 = 19;
/// The smallest precision: one more than the fewest tail bits.
pub const MIN_PRECISION: u32 = MIN_TAIL_BITS + 1;
/// The largest precision of a layout within `MAX_BITS`.
pub const MAX_PRECISION: u32 = 22;
/// The most slots: 1 MiB of bits, or 8 MiB of cells with a window. An error rate of 0.1 % up to 10^10 members needs all
/// of these slots.
pub(crate) const MAX_BITS: u64 = 1 << 23;
/// The number of segments at the smallest precision, including the main one; higher precisions have fewer.
pub const MAX_SEGMENTS: usize = (FINEST_BITS - MIN_PRECISION + 2) as usize;

/// The shape of a tapered bitmap: its precision and tail bits. Segment 0 is the main segment; the tail segments follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    // Bytes, because every counter has a layout.
    precision: u8,
    tail_bits: u8,
}

/// A slot of a bitmap.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The index of the slot's bit in the whole bitmap.
    pub index: u64,
    /// The segment of the slot.
    pub segment: usize,
}

/// The number of hashes whose slots are computed at a time. The reads of their slots overlap.
pub(super) const CHUNK: usize = 32;

/// Writes the slots of a chunk of hashes to `slots`. The loop is also compiled for wide registers, where it has no branch:
/// which hashes fall in the main segment cannot be predicted.
#[multiversion(targets(
    "x86_64+avx512f+avx512cd+avx512dq+avx512vl+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
pub fn slots_of(layout: Layout, hashes: &[u64; CHUNK], slots: &mut [Slot; CHUNK]) {
    slots.iter_mut().zip(hashes).for_each(|(slot, &hash)| *slot = layout.slot_of(hash));
}

impl Layout {
    /// The layout of precision `p` and tail bits `c`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] outside [`MIN_PRECISION`]`..=`[`MAX_PRECISION`] or
    /// [`MIN_TAIL_BITS`]`..=`[`MAX_TAIL_BITS`], when `c` is not below `p`, and when the bitmap would exceed `MAX_BITS`.
    pub fn new(precision: u32, tail_bits: u32) -> Result<Self, Error> {
        let is_within = (MIN_PRECISION..=MAX_PRECISION).contains(&precision);
        Error::check_range(is_within, Parameter::Precision, "between 9 and 22", precision)?;
        let is_within = (MIN_TAIL_BITS..=MAX_TAIL_BITS).contains(&tail_bits);
        Error::check_range(is_within, Parameter::TailBits, "between 8 and 19", tail_bits)?;
        Error::check_range(tail_bits < precision, Parameter::TailBits, "below the precision", tail_bits)?;
        let layout = Layout { precision: precision as u8, tail_bits: tail_bits as u8 };
        let expected = "few enough for a bitmap of at most 8388608 bits";
        Error::check_range(layout.num_bits() <= MAX_BITS, Parameter::TailBits, expected, tail_bits)?;
        Ok(layout)
    }

    /// The precision `p`: a slot of the main segment has a share of `2^-p` of the hash space.
    #[inline]
    pub fn precision(self) -> u32 {
        u32::from(self.precision)
    }

    /// The tail bits `c`: a tail segment has `2^c` slots.
    #[inline]
    pub fn tail_bits(self) -> u32 {
        u32::from(self.tail_bits)
    }

    /// The finest layout to which bitmaps of both layouts can be folded.
    #[must_use]
    pub fn common(self, other: Layout) -> Layout {
        // The tail bits stay below the precision: the layout with the smaller precision already has fewer tail bits.
        Layout { precision: self.precision.min(other.precision), tail_bits: self.tail_bits.min(other.tail_bits) }
    }

    /// Whether a bitmap with this layout can be folded exactly to the layout `to`.
    pub fn folds_to(self, to: Layout) -> bool {
        self.common(to) == to
    }

    /// The number of leading ones of the hashes in the first tail segment.
    #[inline]
    fn first_tail(self) -> u32 {
        self.precision() - self.tail_bits()
    }

    /// The number of leading ones at which the last tail segment begins; hashes with more leading ones are in it too.
    #[inline]
    fn last_tail(self) -> u32 {
        FINEST_BITS - self.tail_bits()
    }

    /// The number of slots in a tail segment.
    #[inline]
    fn tail_slots(self) -> u64 {
        1 << self.tail_bits
    }

    /// The number of segments: the main one and the tail segments.
    #[inline]
    pub fn num_segments(self) -> usize {
        (self.last_tail() - self.first_tail() + 2) as usize
    }

    /// The number of slots in the main segment.
    #[inline]
    pub fn main_slots(self) -> u64 {
        (1 << self.precision) - self.tail_slots()
    }

    /// The number of slots in `segment`.
    #[inline]
    pub fn slots(self, segment: usize) -> u64 {
        if segment == 0 { self.main_slots() } else { self.tail_slots() }
    }

    /// The number of slots in all segments, which is the number of bits in the bitmap. A multiple of 256.
    #[inline]
    pub fn num_bits(self) -> u64 {
        self.main_slots() + (self.num_segments() as u64 - 1) * self.tail_slots()
    }

    /// The number of 64-bit words in the bitmap.
    #[inline]
    pub fn num_words(self) -> usize {
        words(self.num_bits())
    }

    /// The number of 64-bit words in the main segment.
    #[inline]
    pub fn main_words(self) -> usize {
        words(self.main_slots())
    }

    /// Bytes of the bitmap when dense.
    #[inline]
    pub fn num_bytes(self) -> u64 {
        self.num_bits() / 8
    }

    /// The share of the hash space that each slot of `segment` has; a power of two, so exact.
    #[inline]
    pub fn share(self, segment: usize) -> f64 {
        // The last segment has the same share as the one before it: it takes all hashes that remain.
        let halvings = (self.precision() + segment as u32).min(FINEST_BITS);
        // 2^-halvings, by its exponent.
        f64::from_bits(u64::from(f64::MAX_EXP as u32 - 1 - halvings) << (f64::MANTISSA_DIGITS - 1))
    }

    /// The slot of a hash.
    #[inline]
    pub fn slot_of(self, hash: u64) -> Slot {
        let ones = hash.leading_ones();
        if ones < self.first_tail() {
            return Slot { index: hash >> (u64::BITS - self.precision()), segment: 0 };
        }
        let tail = ones.min(self.last_tail()) - self.first_tail();
        // Skips the ones and the 0 that ends them. In the last segment no such 0 is skipped.
        let skipped = (ones + 1).min(self.last_tail());
        let within = (hash >> (u64::BITS - self.tail_bits() - skipped)) & (self.tail_slots() - 1);
        Slot { index: self.tail_start(tail) + within, segment: tail as usize + 1 }
    }

    /// The segment of the slot at `index`.
    #[inline]
    pub fn segment_of(self, index: u64) -> usize {
        match index.checked_sub(self.main_slots()) {
            None => 0,
            Some(beyond) => (beyond >> self.tail_bits) as usize + 1,
        }
    }

    /// The first slot of the tail segment with number `tail`, counted from 0.
    #[inline]
    fn tail_start(self, tail: u32) -> u64 {
        self.main_slots() + (u64::from(tail) << self.tail_bits)
    }

    /// The smallest hash that falls in the slot at `index`.
    fn first_hash(self, index: u64) -> u64 {
        let Some(beyond) = index.checked_sub(self.main_slots()) else {
            return index << (u64::BITS - self.precision());
        };
        let ones = self.first_tail() + (beyond >> self.tail_bits) as u32;
        let within = beyond & (self.tail_slots() - 1);
        let skipped = (ones + 1).min(self.last_tail());
        !(u64::MAX >> ones) | within << (u64::BITS - self.tail_bits() - skipped)
    }

    /// Folds a slot: maps its `index` in this layout to its index in the coarser layout `to`. This layout must
    /// [fold](Self::folds_to) to `to`. The order of slots is kept.
    pub fn fold(self, index: u64, to: Layout) -> u64 {
        debug_assert!(self.folds_to(to));
        to.slot_of(self.first_hash(index)).index
    }

    /// The first slot in which hashes with exactly `ones` leading ones fall.
    fn octave_start(self, ones: u32) -> u64 {
        if ones < self.first_tail() {
            (1 << self.precision) - (1 << (self.precision() - ones))
        } else if ones <= self.last_tail() {
            self.tail_start(ones - self.first_tail())
        } else {
            self.num_bits() - (1 << (FINEST_BITS - ones))
        }
    }

    /// Folds the bitmap `src` of this layout to the coarser layout `to`, and ORs it into the bitmap `dst` of that
    /// layout.
    ///
    /// # Panics
    /// When the length of a slice is not the number of words in its layout, or this layout does not fold to `to`.
    pub fn or_folded(self, src: &[u64], to: Layout, dst: &mut [u64]) {
        assert!(self.folds_to(to) && src.len() == self.num_words() && dst.len() == to.num_words());
        // Splits the hash space where slots have one length in each layout: the main slots of both, then octave by
        // octave, then the last segment of `to`. Each part is whole words: in `to` 256 slots or more, and in this
        // layout a power of two times that number.
        let main_in_both = self.first_tail().min(to.first_tail());
        let mut or = |from: u64, end: u64, to_from: u64, to_end: u64| {
            let shift = ((end - from) / (to_end - to_from)).trailing_zeros();
            bits::or_folded(&mut dst[words(to_from)..words(to_end)], &src[words(from)..words(end)], shift);
        };
        or(0, self.octave_start(main_in_both), 0, to.octave_start(main_in_both));
        for ones in main_in_both..to.last_tail() {
            let [from, end] = [ones, ones + 1].map(|ones| self.octave_start(ones));
            or(from, end, to.octave_start(ones), to.octave_start(ones + 1));
        }
        or(self.octave_start(to.last_tail()), self.num_bits(), to.octave_start(to.last_tail()), to.num_bits());
    }

    /// Splits `range`, a range of words, by segment. Each item is a segment and its part of the range. No word spans
    /// two segments.
    fn segments_of(self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            let segment = self.segment_of(start as u64 * u64::from(u64::BITS));
            let end = words(self.tail_start(segment as u32)).min(range.end);
            let part = start..end;
            start = end;
            (!part.is_empty()).then_some((segment, part))
        })
    }
}

/// The number of words that `slots` slots fill.
fn words(slots: u64) -> usize {
    (slots / u64::from(u64::BITS)) as usize
}

/// The number of set slots in each segment. It is updated as bits are set, so that counting never scans the bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentCounts {
    /// `u32` is enough: a bitmap has fewer than 2^32 slots.
    set: [u32; MAX_SEGMENTS],
}

impl SegmentCounts {
    /// Counts the set bits of a whole bitmap.
    pub fn of_words(words: &[u64], layout: Layout) -> Self {
        let mut counts = SegmentCounts::default();
        counts.add_words(layout, 0, words);
        counts
    }

    /// Adds the set bits of `words`, a part of a bitmap that begins at its word `start`.
    pub fn add_words(&mut self, layout: Layout, start: usize, words: &[u64]) {
        for (segment, range) in layout.segments_of(start..start + words.len()) {
            self.add(segment, bits::count_ones(&words[range.start - start..range.end - start]));
        }
    }

    /// Records that `slots` slots of `segment` were newly set.
    #[inline]
    pub fn add(&mut self, segment: usize, slots: u64) {
        self.set[segment] += slots as u32;
    }

    /// Adds the counts of another bitmap.
    pub fn add_all(&mut self, others: &Self) {
        self.set.iter_mut().zip(others.set).for_each(|(sum, count)| *sum += count);
    }

    /// The number of set slots in `segment`.
    #[inline]
    pub fn get(&self, segment: usize) -> u64 {
        u64::from(self.set[segment])
    }

    /// The number of set slots in all segments.
    pub fn total(&self) -> u64 {
        self.set.iter().map(|&count| u64::from(count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash64;
    use proptest::prelude::*;

    /// The precisions in the tables of expected slots. The layouts all have 10 tail bits.
    const PRECISIONS: [u32; 3] = [11, 14, 20];

    fn layout(precision: u32, tail_bits: u32) -> Layout {
        Layout::new(precision, tail_bits).unwrap()
    }

    fn all_layouts() -> impl Iterator<Item = Layout> {
        let pairs = (MIN_PRECISION..=MAX_PRECISION).flat_map(|p| (MIN_TAIL_BITS..=MAX_TAIL_BITS).map(move |c| (p, c)));
        pairs.filter_map(|(p, c)| Layout::new(p, c).ok())
    }

    /// Any layout with a precision within `precisions`.
    fn any_layout(precisions: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Layout> {
        (precisions, MIN_TAIL_BITS..=MAX_TAIL_BITS)
            .prop_filter_map("a layout", |(p, c)| Layout::new(p, c.min(p - 1)).ok())
    }

    /// Any hash, with up to 39 leading ones. Random hashes rarely have many leading ones, so the test sets them.
    fn any_hash() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..40).prop_map(|(hash, ones)| hash | !(u64::MAX >> ones))
    }

    #[test]
    fn parameters_outside_their_ranges_are_rejected() {
        for (precision, tail_bits, wrong) in [
            (8, 8, Parameter::Precision),
            (23, 10, Parameter::Precision),
            (u32::MAX, 10, Parameter::Precision),
            (0, 10, Parameter::Precision),
            (14, 7, Parameter::TailBits),
            (22, 20, Parameter::TailBits),
            (22, 19, Parameter::TailBits),
            (21, 19, Parameter::TailBits),
            (14, u32::MAX, Parameter::TailBits),
            (10, 10, Parameter::TailBits),
        ] {
            let rejected = Layout::new(precision, tail_bits);
            assert!(matches!(rejected, Err(Error::OutOfRange { parameter, .. }) if parameter == wrong), "{rejected:?}");
        }
    }

    #[test]
    fn layouts_end_where_sizing_does() {
        for layout in all_layouts() {
            assert!(layout.num_bits() <= MAX_BITS && layout.num_segments() <= MAX_SEGMENTS, "{layout:?}");
        }
        assert!(all_layouts().any(|layout| layout.precision() == MAX_PRECISION));
        assert!(all_layouts().any(|layout| layout.tail_bits() == MAX_TAIL_BITS));
        assert!(all_layouts().any(|layout| layout.num_bits() == MAX_BITS));
        assert_eq!(layout(MIN_PRECISION, MIN_TAIL_BITS).num_segments(), MAX_SEGMENTS);
    }

    #[test]
    fn slots_of_hashes_are_pinned() {
        // The expected slots are from a separate program, written bit by bit from the description above.
        let cases: [(u64, [u64; 3]); 10] = [
            (0, [0, 0, 0]),
            (1 << 63, [1024, 8192, 524_288]),
            (0xbff0_0000_0000_0000, [2047, 12_284, 786_176]),
            (0xfffe_a5a5_5a5a_1234, [16_022, 27_286, 1_053_334]),
            (0xffff_fe55_4000_0000, [23_893, 35_157, 1_061_205]),
            (0xffff_feff_ffff_ffff, [24_575, 35_839, 1_061_887]),
            (0xffff_ff00_0000_0000, [24_576, 35_840, 1_061_888]),
            (0xffff_ff55_4000_0000, [24_917, 36_181, 1_062_229]),
            (0xffff_ff7f_ffff_ffff, [25_087, 36_351, 1_062_399]),
            (u64::MAX, [25_599, 36_863, 1_062_911]),
        ];
        for (hash, indexes) in cases {
            assert_eq!(PRECISIONS.map(|p| layout(p, 10).slot_of(hash).index), indexes, "{hash:#x}");
        }
    }

    #[test]
    fn slots_of_items_are_pinned() {
        // The expected slots are from the same program, with the reference XXH3.
        let long = [b'a'; 300];
        let cases: [(u64, &[u8], [u64; 3]); 8] = [
            (0, b"", [360, 2881, 184_424]),
            (0, b"user:1", [474, 3797, 243_063]),
            (0, b"user:2", [845, 6760, 432_643]),
            (0, &long, [2106, 12_404, 793_879]),
            (42, b"", [1794, 11_274, 721_556]),
            (42, b"user:1", [2279, 12_751, 816_103]),
            (42, b"user:2", [2464, 13_120, 839_720]),
            (42, &long, [2603, 13_399, 857_597]),
        ];
        for (seed, item, indexes) in cases {
            assert_eq!(PRECISIONS.map(|p| layout(p, 10).slot_of(hash64(item, seed)).index), indexes, "{seed} {item:?}");
        }
    }

    #[test]
    fn slots_of_any_tail_bits_are_pinned() {
        // The expected slots are from a separate program that follows the description above on text of binary digits.
        let layouts = [(9, 8), (14, 9), (12, 11), (14, 13), (20, 19)];
        let cases: [(u64, [u64; 5]); 9] = [
            (0x0, [0, 0, 0, 0, 0]),
            (0x8000000000000000, [256, 8192, 2048, 8192, 524288]),
            (0xbff0000000000000, [511, 12284, 4094, 16376, 1048064]),
            (0xfffea5a55a5a1234, [4005, 21323, 32045, 128180, 8033941]),
            (0xfffffe5540000000, [5973, 25258, 47445, 178517, 8386901]),
            (0xfffffeffffffffff, [6143, 25599, 48127, 179199, 8387583]),
            (0xffffff5540000000, [6314, 25941, 48469, 179541, 8387925]),
            (0xfffffffff1234567, [6911, 26623, 49151, 180223, 8388607]),
            (0xffffffffffffffff, [6911, 26623, 49151, 180223, 8388607]),
        ];
        for (hash, indexes) in cases {
            assert_eq!(layouts.map(|(p, c)| layout(p, c).slot_of(hash).index), indexes, "{hash:#x}");
        }
    }

    #[test]
    fn segments_share_out_the_whole_hash_space() {
        for layout in all_layouts() {
            let (precision, segments) = (layout.precision(), 0..layout.num_segments());
            let shares: f64 = segments.clone().map(|i| layout.slots(i) as f64 * layout.share(i)).sum();
            assert_eq!(shares, 1.0, "{layout:?}");
            assert_eq!(segments.map(|i| layout.slots(i)).sum::<u64>(), layout.num_bits());
            assert_eq!(layout.num_bits(), (1 << precision) + (u64::from(34 - precision) << layout.tail_bits()));
            assert_eq!(layout.num_words() as u64 * 64, layout.num_bits());
        }
    }

    #[test]
    fn folds_in_both_parameters_meet_at_the_smaller_of_each() {
        let (one, other) = (layout(14, 9), layout(12, 11));
        assert_eq!((one.common(other), other.common(one)), (layout(12, 9), layout(12, 9)));
        assert!(!one.folds_to(other) && !other.folds_to(one));
        assert!([one, other].iter().all(|from| from.folds_to(layout(12, 9)) && from.folds_to(*from)));
    }

    proptest! {
        #[test]
        fn a_slot_lies_in_its_segment(hash in any_hash(), layout in any_layout(9..=22)) {
            let slot = layout.slot_of(hash);
            prop_assert!(slot.index < layout.num_bits());
            prop_assert_eq!(layout.segment_of(slot.index), slot.segment);
            let first = layout.first_hash(slot.index);
            prop_assert!(first <= hash && layout.slot_of(first) == slot);
            prop_assert!(first == 0 || layout.slot_of(first - 1).index + 1 == slot.index);
        }

        #[test]
        fn fold_of_a_slot_is_the_slot_built_small(
            hash in any_hash(),
            near in -2i64..=2,
            one in any_layout(9..=22),
            other in any_layout(9..=22),
        ) {
            let to = one.common(other);
            // Also around the first hash of the slot.
            for hash in [hash, to.first_hash(to.slot_of(hash).index).wrapping_add_signed(near)] {
                for from in [one, other] {
                    prop_assert_eq!(from.fold(from.slot_of(hash).index, to), to.slot_of(hash).index);
                }
            }
        }

        #[test]
        fn fold_keeps_the_order(hashes in [any_hash(), any_hash()], from in any_layout(9..=22), other in any_layout(9..=22)) {
            let to = from.common(other);
            let indexes = hashes.map(|hash| from.slot_of(hash).index);
            let (first, second) = (indexes[0].min(indexes[1]), indexes[0].max(indexes[1]));
            prop_assert!(from.fold(first, to) <= from.fold(second, to));
            prop_assert!(from.fold(first, to) <= from.fold((first + 1).min(from.num_bits() - 1), to));
        }

    }

    proptest! {
        // Fewer cases, because each has bitmaps of up to 2 MiB.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn fold_of_a_bitmap_equals_the_one_built_small(
            seed in any::<u64>(),
            items in 0u32..3000,
            from in any_layout(9..=21),
            other in any_layout(9..=21),
        ) {
            let to = from.common(other);
            let mut large = vec![0u64; from.num_words()];
            let mut small = vec![0u64; to.num_words()];
            let mut folded = small.clone();
            for item in 0..items {
                // Half of the hashes get leading ones, so that they fall in the tail.
                let hash = hash64(&item.to_le_bytes(), seed) | if item % 2 == 0 { 0 } else { !(u64::MAX >> (item % 38)) };
                bits::set(&mut large, from.slot_of(hash).index as usize);
                bits::set(&mut small, to.slot_of(hash).index as usize);
            }
            from.or_folded(&large, to, &mut folded);
            prop_assert_eq!(&folded, &small);
            let mut one_by_one = SegmentCounts::default();
            bits::ones(&small).for_each(|index| one_by_one.add(to.segment_of(index as u64), 1));
            prop_assert_eq!(SegmentCounts::of_words(&folded, to), one_by_one);
            prop_assert_eq!(one_by_one.total(), bits::count_ones(&small));
            // Counting by blocks that end anywhere gives the same.
            let mut by_block = SegmentCounts::default();
            folded.chunks(37).enumerate().for_each(|(i, words)| by_block.add_words(to, 37 * i, words));
            prop_assert_eq!(by_block, one_by_one);
        }
    }
}
