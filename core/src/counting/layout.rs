//! Where a hash goes: the tapered bitmap.
//!
//! ```text
//! precision p, m = 2^p, C = 1024:
//!
//!   slot 0                                m - C      m         m + C            m + (34-p)C
//!   | main: m - C slots, each 2^-p of the   | tail     | tail      |    ...   | tail  |
//!   | hash space                            | s = p-10 | s = p-9   |          | s = 24|
//! ```
//!
//! `ones` is the number of leading 1 bits of a 64-bit hash. With `ones < p - 10` the slot is the top
//! `p` bits, as in plain linear counting. Otherwise the hash falls in tail segment `s = min(ones, 24)`,
//! at the 10 bits that follow the ones and the 0 that ends them (for `s = 24`: the 10 bits that follow
//! the first 24). A tail slot of segment `s` has `2^-(s+11)` of the hash space, `2^-34` in the last two:
//! density halves from segment to segment, so there is always a segment that is neither empty nor full.
//!
//! Worked example, p = 11: hash `0x4000_0000_0000_0000` has no leading ones, and 0 < 1, so its slot is
//! the top 11 bits: 512. Hash `0xbff0_0000_0000_0000` begins `10 1111111111 0...`: one leading 1, a 0,
//! then ten 1 bits, so it goes to slot 1023 of segment 1, the first tail segment: 1024 + 1023 = 2047.
//!
//! Every slot is a dyadic interval of the hash space. Hence the bits are a function of the set alone, a
//! union is an OR, and a bitmap folds exactly to any smaller precision: one step down, the last C slots
//! of main are the new first tail segment, and the other slots of main pair up by OR.
//!
//! All of this is stored format: nothing here can change without a new encoding version.

use crate::bits;
use crate::error::{Error, Parameter};

/// Slots of a tail segment.
pub const SEGMENT_SLOTS: u32 = 1 << SEGMENT_BITS;
/// log2 of [`SEGMENT_SLOTS`].
const SEGMENT_BITS: u32 = 10;
/// The last tail segment: the leading ones beyond which hashes are not told apart. With 24 the last
/// slots have 2^-34 of the hash space, which keeps the error at 2 % to 10^10 members.
const LAST_SEGMENT: u32 = 24;
/// The smallest precision: one bit beyond a segment.
pub const MIN_PRECISION: u32 = SEGMENT_BITS + 1;
/// The largest precision: a main bitmap of 512 MiB.
pub const MAX_PRECISION: u32 = 32;
/// Tail segments of the smallest precision; larger ones have fewer.
pub const MAX_TAIL_SEGMENTS: usize = (LAST_SEGMENT - (MIN_PRECISION - SEGMENT_BITS) + 1) as usize;

/// The shape of the bitmap of one precision. Segment 0 is main; the tail follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    precision: u32,
}

/// A slot of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its bit in the whole bitmap.
    pub index: u64,
    /// The segment it lies in.
    pub segment: usize,
}

impl Layout {
    /// The layout of precision `p`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] outside [`MIN_PRECISION`]`..=`[`MAX_PRECISION`].
    pub fn new(precision: u32) -> Result<Self, Error> {
        if !(MIN_PRECISION..=MAX_PRECISION).contains(&precision) {
            return Err(Error::out_of_range(Parameter::Precision, "between 11 and 32", precision));
        }
        Ok(Layout { precision })
    }

    /// The precision: log2 of the main bitmap's nominal size.
    #[inline]
    pub fn precision(self) -> u32 {
        self.precision
    }

    /// Leading ones of the first tail segment.
    #[inline]
    fn first_tail(self) -> u32 {
        self.precision - SEGMENT_BITS
    }

    /// Number of segments: main and the tail.
    #[inline]
    pub fn num_segments(self) -> usize {
        (LAST_SEGMENT - self.first_tail() + 2) as usize
    }

    /// Slots of main.
    #[inline]
    pub fn main_slots(self) -> u64 {
        (1 << self.precision) - u64::from(SEGMENT_SLOTS)
    }

    /// Slots of `segment`.
    #[inline]
    pub fn slots(self, segment: usize) -> u64 {
        if segment == 0 { self.main_slots() } else { u64::from(SEGMENT_SLOTS) }
    }

    /// Slots of all segments: the bits of the bitmap. A multiple of 1024.
    #[inline]
    pub fn num_bits(self) -> u64 {
        self.main_slots() + (self.num_segments() as u64 - 1) * u64::from(SEGMENT_SLOTS)
    }

    /// Words of the bitmap.
    #[inline]
    pub fn num_words(self) -> usize {
        (self.num_bits() / u64::from(u64::BITS)) as usize
    }

    /// Words of main.
    #[inline]
    pub fn main_words(self) -> usize {
        (self.main_slots() / u64::from(u64::BITS)) as usize
    }

    /// Bytes of the bitmap when dense.
    #[inline]
    pub fn num_bytes(self) -> u64 {
        self.num_bits() / 8
    }

    /// The share of the hash space that each slot of `segment` has; a power of two, so exact.
    #[inline]
    pub fn share(self, segment: usize) -> f64 {
        let halvings = match segment {
            0 => self.precision,
            // The last segment has no room for another halving: it takes all that is left.
            _ => (self.first_tail() + segment as u32 - 1).min(LAST_SEGMENT - 1) + SEGMENT_BITS + 1,
        };
        1.0 / (1u64 << halvings) as f64
    }

    /// The slot of a hash.
    #[inline]
    pub fn slot_of(self, hash: u64) -> Slot {
        let ones = hash.leading_ones();
        if ones < self.first_tail() {
            return Slot { index: hash >> (u64::BITS - self.precision), segment: 0 };
        }
        let tail = (ones.min(LAST_SEGMENT) - self.first_tail()) as usize;
        // Past the ones and the 0 that ends them; in the last segment no 0 is looked for.
        let skipped = (ones + 1).min(LAST_SEGMENT);
        let within = (hash >> (u64::BITS - SEGMENT_BITS - skipped)) & u64::from(SEGMENT_SLOTS - 1);
        Slot { index: self.tail_start(tail) + within, segment: tail + 1 }
    }

    /// The segment that the slot at `index` lies in.
    #[inline]
    pub fn segment_of(self, index: u64) -> usize {
        match index.checked_sub(self.main_slots()) {
            None => 0,
            Some(beyond) => (beyond >> SEGMENT_BITS) as usize + 1,
        }
    }

    /// First slot of the tail segment numbered `tail` from 0.
    fn tail_start(self, tail: usize) -> u64 {
        self.main_slots() + ((tail as u64) << SEGMENT_BITS)
    }

    /// Where the slot at `index` goes in the bitmap of a precision `to` no larger than this one.
    pub fn fold(self, index: u64, to: Layout) -> u64 {
        debug_assert!(to <= self);
        if index >= self.main_slots() {
            return index - self.main_slots() + self.tail_start_in(to);
        }
        // An index in main is the top bits of a hash, so its leading ones tell the segment.
        let aligned = index << (u64::BITS - self.precision);
        to.slot_of(aligned).index
    }

    /// Where this layout's first tail segment begins in the bitmap of a smaller precision.
    fn tail_start_in(self, to: Layout) -> u64 {
        to.tail_start((self.first_tail() - to.first_tail()) as usize)
    }

    /// ORs the bitmap `src` of this layout into the bitmap `dst` of a precision `to` no larger.
    ///
    /// # Panics
    /// When a slice has not the words of its layout.
    pub fn or_folded(self, src: &[u64], to: Layout, dst: &mut [u64]) {
        assert!(to <= self && src.len() == self.num_words() && dst.len() == to.num_words());
        let word = |slot: u64| (slot / u64::from(u64::BITS)) as usize;
        // Main of `to`, then those of its tail segments that are still main here: the hashes with `s`
        // leading ones are the slots from 2^p - 2^(p-s), half as many as are left from there.
        let main = 1u64 << self.precision;
        let shift = self.precision - to.precision;
        bits::or_folded(&mut dst[..to.main_words()], &src[..to.main_words() << shift], shift);
        for (tail, s) in (to.first_tail()..self.first_tail()).enumerate() {
            let from = main - (main >> s);
            let shift = self.precision - s - SEGMENT_BITS - 1;
            let slots = u64::from(SEGMENT_SLOTS);
            let start = to.tail_start(tail);
            let src = &src[word(from)..word(from + (slots << shift))];
            bits::or_folded(&mut dst[word(start)..word(start + slots)], src, shift);
        }
        bits::or_into(&mut dst[word(self.tail_start_in(to))..], &src[self.main_words()..]);
    }
}

/// How many slots of each segment are set. Kept up to date as bits are set, so that counting never scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentCounts {
    main: u64,
    tail: [u16; MAX_TAIL_SEGMENTS],
}

impl SegmentCounts {
    /// The counts of a whole bitmap.
    pub fn of_words(words: &[u64], layout: Layout) -> Self {
        let mut counts = SegmentCounts::default();
        let (main, tail) = words.split_at(layout.main_words().min(words.len()));
        counts.add_main(main);
        counts.add_tail(tail);
        counts
    }

    /// Counts the main words of the union of two bitmaps.
    pub fn add_main_of_both(&mut self, one: &[u64], other: &[u64]) {
        self.main += bits::count_either(one, other);
    }

    /// Adds the set bits of some words of main.
    pub fn add_main(&mut self, words: &[u64]) {
        self.main += bits::count_ones(words);
    }

    /// Adds the set bits of the tail's words.
    pub fn add_tail(&mut self, words: &[u64]) {
        for (count, words) in self.tail.iter_mut().zip(words.chunks(SEGMENT_SLOTS as usize / bits::WORD_BITS)) {
            // At most 1024 bits a segment.
            *count += bits::count_ones(words) as u16;
        }
    }

    /// Notes that a slot of `segment` was newly set.
    #[inline]
    pub fn increment(&mut self, segment: usize) {
        self.add(segment, 1);
    }

    /// Notes that so many slots of `segment` were newly set.
    #[inline]
    pub fn add(&mut self, segment: usize, slots: u64) {
        match segment.checked_sub(1) {
            None => self.main += slots,
            // At most 1024 slots a segment.
            Some(tail) => self.tail[tail] += slots as u16,
        }
    }

    /// Set slots of `segment`.
    #[inline]
    pub fn get(&self, segment: usize) -> u64 {
        match segment.checked_sub(1) {
            None => self.main,
            Some(tail) => u64::from(self.tail[tail]),
        }
    }

    /// Set slots of all segments.
    pub fn total(&self) -> u64 {
        self.main + self.tail.iter().map(|&count| u64::from(count)).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash64;
    use proptest::prelude::*;

    const PRECISIONS: [u32; 5] = [11, 14, 20, 30, 32];

    fn layout(precision: u32) -> Layout {
        Layout::new(precision).unwrap()
    }

    #[test]
    fn precision_outside_its_range_is_refused() {
        for precision in [0, 10, 33, u32::MAX] {
            assert!(matches!(Layout::new(precision), Err(Error::OutOfRange { parameter: Parameter::Precision, .. })));
        }
    }

    #[test]
    fn slots_of_hashes_are_pinned() {
        // From a program of its own, written bit by bit from the description above.
        let cases: [(u64, [u64; 5]); 10] = [
            (0, [0, 0, 0, 0, 0]),
            (1 << 63, [1024, 8192, 524_288, 536_870_912, 2_147_483_648]),
            (0xbff0_0000_0000_0000, [2047, 12_284, 786_176, 805_044_224, 3_220_176_896]),
            (0xfffe_a5a5_5a5a_1234, [16_022, 27_286, 1_053_334, 1_073_719_657, 4_294_878_629]),
            (0xffff_fe55_4000_0000, [23_893, 35_157, 1_061_205, 1_073_744_213, 4_294_967_637]),
            (0xffff_feff_ffff_ffff, [24_575, 35_839, 1_061_887, 1_073_744_895, 4_294_968_319]),
            (0xffff_ff00_0000_0000, [24_576, 35_840, 1_061_888, 1_073_744_896, 4_294_968_320]),
            (0xffff_ff55_4000_0000, [24_917, 36_181, 1_062_229, 1_073_745_237, 4_294_968_661]),
            (0xffff_ff7f_ffff_ffff, [25_087, 36_351, 1_062_399, 1_073_745_407, 4_294_968_831]),
            (u64::MAX, [25_599, 36_863, 1_062_911, 1_073_745_919, 4_294_969_343]),
        ];
        for (hash, indexes) in cases {
            assert_eq!(PRECISIONS.map(|p| layout(p).slot_of(hash).index), indexes, "{hash:#x}");
        }
    }

    #[test]
    fn slots_of_items_are_pinned() {
        // From the same program, with the reference XXH3.
        let long = [b'a'; 300];
        let cases: [(u64, &[u8], [u64; 5]); 8] = [
            (0, b"", [360, 2881, 184_424, 188_850_177, 755_400_709]),
            (0, b"user:1", [474, 3797, 243_063, 248_897_215, 995_588_861]),
            (0, b"user:2", [845, 6760, 432_643, 443_026_842, 1_772_107_371]),
            (0, &long, [2106, 12_404, 793_879, 812_932_448, 3_251_729_793]),
            (42, b"", [1794, 11_274, 721_556, 738_873_415, 2_955_493_663]),
            (42, b"user:1", [2279, 12_751, 816_103, 835_689_859, 3_342_759_438]),
            (42, b"user:2", [2464, 13_120, 839_720, 859_873_431, 3_439_493_725]),
            (42, &long, [2603, 13_399, 857_597, 878_179_840, 3_512_719_363]),
        ];
        for (seed, item, indexes) in cases {
            assert_eq!(PRECISIONS.map(|p| layout(p).slot_of(hash64(item, seed)).index), indexes, "{seed} {item:?}");
        }
    }

    #[test]
    fn segments_share_out_the_whole_hash_space() {
        for precision in MIN_PRECISION..=MAX_PRECISION {
            let layout = layout(precision);
            let segments = 0..layout.num_segments();
            let shares: f64 = segments.clone().map(|i| layout.slots(i) as f64 * layout.share(i)).sum();
            assert_eq!(shares, 1.0, "precision {precision}");
            assert_eq!(segments.map(|i| layout.slots(i)).sum::<u64>(), layout.num_bits());
            assert_eq!(layout.num_bits(), (1 << precision) + u64::from(34 - precision) * 1024);
            assert_eq!(layout.num_words() as u64 * 64, layout.num_bits());
        }
        assert_eq!(layout(11).num_segments(), MAX_TAIL_SEGMENTS + 1);
    }

    proptest! {
        #[test]
        fn a_slot_lies_in_its_segment(hash in any::<u64>(), ones in 0u32..40, precision in 11u32..=32) {
            // Leading ones are rare in random hashes, so they are put there.
            let hash = hash | !(u64::MAX >> ones);
            let layout = layout(precision);
            let slot = layout.slot_of(hash);
            prop_assert!(slot.index < layout.num_bits());
            prop_assert_eq!(layout.segment_of(slot.index), slot.segment);
        }

        #[test]
        fn fold_of_a_slot_is_the_slot_built_small(hash in any::<u64>(), ones in 0u32..40, from in 11u32..=32, down in 0u32..=21) {
            let hash = hash | !(u64::MAX >> ones);
            let (from, to) = (layout(from), layout(from.saturating_sub(down).max(11)));
            prop_assert_eq!(from.fold(from.slot_of(hash).index, to), to.slot_of(hash).index);
        }

        #[test]
        fn fold_keeps_the_order(hashes in [any::<u64>(), any::<u64>()], ones in [0u32..40, 0u32..40], from in 11u32..=32, down in 0u32..=21) {
            let (from, to) = (layout(from), layout(from.saturating_sub(down).max(11)));
            let index = |i: usize| from.slot_of(hashes[i] | !(u64::MAX >> ones[i])).index;
            let (first, second) = (index(0).min(index(1)), index(0).max(index(1)));
            prop_assert!(from.fold(first, to) <= from.fold(second, to));
            prop_assert!(from.fold(first, to) <= from.fold((first + 1).min(from.num_bits() - 1), to));
        }

        #[test]
        fn fold_of_a_bitmap_equals_the_one_built_small(seed in any::<u64>(), items in 0u32..3000, from in 11u32..=19, down in 0u32..=8) {
            let (from, to) = (layout(from), layout(from.saturating_sub(down).max(11)));
            let mut large = vec![0u64; from.num_words()];
            let mut small = vec![0u64; to.num_words()];
            let mut folded = small.clone();
            for item in 0..items {
                // Half of them are put where the tail is.
                let hash = hash64(&item.to_le_bytes(), seed) | if item % 2 == 0 { 0 } else { !(u64::MAX >> (item % 30)) };
                bits::set(&mut large, from.slot_of(hash).index as usize);
                bits::set(&mut small, to.slot_of(hash).index as usize);
            }
            from.or_folded(&large, to, &mut folded);
            prop_assert_eq!(&folded, &small);
            let counts = SegmentCounts::of_words(&folded, to);
            let mut one_by_one = SegmentCounts::default();
            bits::ones(&small).for_each(|index| one_by_one.increment(to.segment_of(index as u64)));
            prop_assert_eq!(counts, one_by_one);
            prop_assert_eq!(counts.total(), bits::count_ones(&small));
        }
    }
}
