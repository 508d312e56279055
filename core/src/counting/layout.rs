//! The layout of the bitmap of an estimating counter. A bit is called a slot, and a set bit a marked slot. The bitmap
//! consists of segments of `2^c` slots. The error rate determines `c`. Each segment takes half as many hashes as the
//! one before, by the leading 1 bits of the hash (docs/formulas.md#slots):
//!
//! ```text
//! c, C = 2^c slots a segment:
//!
//!   slot 0         C           2C                (34-c)C        (35-c)C
//!   | segment 0    | segment 1 |      ...        | segment 34-c |
//!   hash 0...      10...       110...            111...1...
//! ```
//!
//! This is the bitmap of Flajolet and Martin (see [papers](crate::counting#papers)), with stochastic averaging.
//!
//! Worked example, c = 10: hash `0x4000_0000_0000_0000` has no leading ones, so it falls in segment 0. The ten bits
//! after the first 0 are 1000000000, so the slot is 512. Hash `0xbff0_0000_0000_0000` begins `10 1111111111 0...`: one
//! leading 1, a 0, then ten 1 bits. It falls at position 1023 of segment 1, so the slot is 1024 + 1023 = 2047.
//!
//! Each slot takes an interval of hashes, in the order of the slots. A larger `c` only divides these intervals further.
//! So a bitmap can be converted to a smaller `c` without error: the result equals the bitmap of a counter that always
//! had this `c`. The bitmap of a union is the OR of the bitmaps.
//!
//! All of this is part of the stored format: nothing here can change without a new encoding version.

use std::ops::Range;

use multiversion::multiversion;

/// The smallest slots, in the last two segments of the bitmap, get `2^-FINEST_BITS` of all hashes each. With 34, the
/// standard error does not rise with the number of members, up to 10^10 members.
const FINEST_BITS: u32 = 34;
/// The base-2 logarithm of the smallest number of slots that a segment may have: 256, which fill whole words.
pub(crate) const MIN_SEGMENT_BITS: u32 = 8;
/// The base-2 logarithm of the largest number of slots that a segment may have: 2^16, so that the position of a slot in
/// its segment fits in 16 bits.
pub(crate) const MAX_SEGMENT_BITS: u32 = MIN_SEGMENT_BITS + LARGEST_ERRORS.len() as u32 - 1;
/// The largest number of segments of a bitmap: that of the smallest segments.
pub(crate) const MAX_SEGMENTS: usize = (FINEST_BITS - MIN_SEGMENT_BITS + 1) as usize;

/// For each possible size of segments, from 2^8 to 2^16 slots, the largest standard error of counters with 251 to 10^10
/// members, rounded up. The layout for an error rate is chosen by these numbers, so they are part of the stored format.
pub const LARGEST_ERRORS: [f64; 9] =
    [0.041_45, 0.029_31, 0.020_73, 0.014_66, 0.010_37, 0.007_327, 0.005_181, 0.003_664, 0.002_591];

/// The standard error of a counter may be this multiple of its error rate. If it had to be at most the error rate
/// itself, a counter with the error rate 0.01 would take twice the memory.
const MOST_OF_RATE: f64 = 1.04;

/// The layout of a counter's bitmap. It is determined by `c`: a segment has `2^c` slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    // Every counter has a layout, so this is a single byte.
    segment_bits: u8,
}

impl Layout {
    /// The layout with segments of `2^segment_bits` slots.
    ///
    /// # Panics
    /// If `segment_bits` is not in `MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS`.
    pub const fn new(segment_bits: u32) -> Self {
        assert!(segment_bits >= MIN_SEGMENT_BITS && segment_bits <= MAX_SEGMENT_BITS);
        Layout { segment_bits: segment_bits as u8 }
    }

    /// The smallest layout whose standard error is at most 1.04 times `error_rate`, for any number of members up to
    /// 10^10. The result is `None` if no layout is large enough.
    pub fn for_error(error_rate: f64) -> Option<Self> {
        let larger = LARGEST_ERRORS.iter().position(|&error| error <= MOST_OF_RATE * error_rate)?;
        Some(Layout::new(MIN_SEGMENT_BITS + larger as u32))
    }

    /// The base-2 logarithm of the number of slots in a segment of the bitmap.
    #[inline]
    pub fn segment_bits(self) -> u32 {
        u32::from(self.segment_bits)
    }

    /// The index of the last segment. It gets the hashes that begin with this number of 1 bits, or with more.
    #[inline]
    fn last(self) -> u32 {
        FINEST_BITS - self.segment_bits()
    }

    /// The number of slots in a segment of the bitmap.
    #[inline]
    pub fn slots(self) -> u64 {
        1 << self.segment_bits
    }

    /// The number of segments.
    #[inline]
    pub fn num_segments(self) -> usize {
        self.last() as usize + 1
    }

    /// The fraction of all hashes that each slot (bit) in `segment` of the bitmap gets. It is a power of two, so the
    /// result is exact.
    #[inline]
    pub fn share(self, segment: usize) -> f64 {
        // The last segment of the bitmap takes all remaining hashes: as many as the segment before. So the slots of
        // both have the same share.
        let halvings = (self.segment_bits() + 1 + segment as u32).min(FINEST_BITS);
        // This builds 2^-halvings from its exponent.
        f64::from_bits(u64::from(f64::MAX_EXP as u32 - 1 - halvings) << (f64::MANTISSA_DIGITS - 1))
    }

    /// The slot of a hash: the number of its segment times [`Self::slots`], plus its position in the segment.
    #[inline]
    pub fn slot_of(self, hash: u64) -> u32 {
        let segment = hash.leading_ones().min(self.last());
        // The bits that select the segment are skipped: the leading 1 bits and the 0 after them; for the last segment,
        // only 1 bits.
        let skipped = (segment + 1).min(self.last());
        let within = hash << skipped >> (u64::BITS - self.segment_bits());
        segment << self.segment_bits | within as u32
    }

    /// The segment of a slot.
    #[inline]
    pub fn segment_of(self, slot: u32) -> usize {
        (slot >> self.segment_bits) as usize
    }

    /// The position of a slot in its segment of the bitmap.
    #[inline]
    pub(super) fn within(self, slot: u32) -> u16 {
        (slot & ((1 << self.segment_bits) - 1)) as u16
    }

    /// The slot at a position in a segment of the bitmap.
    #[inline]
    pub(super) fn slot_at(self, segment: usize, within: u16) -> u32 {
        (segment as u32) << self.segment_bits | u32::from(within)
    }

    /// The smallest hash that belongs to a slot of the bitmap.
    pub(super) fn first_hash(self, slot: u32) -> u64 {
        let segment = self.segment_of(slot) as u32;
        let skipped = (segment + 1).min(self.last());
        !(u64::MAX >> segment) | u64::from(self.within(slot)) << (u64::BITS - self.segment_bits() - skipped)
    }

    /// The slot to which the hashes of `slot` belong in the layout `to`, which has fewer slots. The order of slots
    /// stays the same.
    pub fn fold(self, slot: u32, to: Layout) -> u32 {
        debug_assert!(to <= self);
        to.slot_of(self.first_hash(slot))
    }
}

/// Computes [`Layout::slot_of`] for several hashes.
#[cfg_attr(rollcall_no_avx512, multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt")))]
#[cfg_attr(
    not(rollcall_no_avx512),
    multiversion(targets("x86_64+avx512f+avx512cd", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))
)]
pub(super) fn slots_of(layout: Layout, hashes: &[u64], slots: &mut [u32]) {
    slots.iter_mut().zip(hashes).for_each(|(slot, &hash)| *slot = layout.slot_of(hash));
}

/// The number of marked slots (set bits) in each segment of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentCounts {
    marked: [u32; MAX_SEGMENTS],
}

impl SegmentCounts {
    /// Records that `slots` more slots of `segment` are marked.
    #[inline]
    pub fn add(&mut self, segment: usize, slots: u64) {
        self.marked[segment] += slots as u32;
    }

    /// Adds other counts.
    pub fn add_all(&mut self, others: &Self) {
        self.marked.iter_mut().zip(others.marked).for_each(|(sum, count)| *sum += count);
    }

    /// The number of marked slots in `segment`.
    #[inline]
    pub fn get(&self, segment: usize) -> u64 {
        u64::from(self.marked[segment])
    }

    /// The number of marked slots in these segments.
    #[inline]
    pub(super) fn sum(&self, segments: Range<usize>) -> usize {
        // A sum of 32-bit numbers takes few instructions. There are fewer than 2^32 slots, so it does not overflow.
        self.marked[segments].iter().sum::<u32>() as usize
    }

    /// The number of marked slots in all segments.
    pub fn total(&self) -> u64 {
        self.sum(0..MAX_SEGMENTS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash64;
    use proptest::prelude::*;

    impl Layout {
        /// The number of slots in all segments of the bitmap. It is a multiple of 256.
        pub(in crate::counting) fn num_slots(self) -> u64 {
            (self.num_segments() as u64) << self.segment_bits
        }
    }

    fn all_layouts() -> impl Iterator<Item = Layout> {
        (MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS).map(Layout::new)
    }

    fn any_layout() -> impl Strategy<Value = Layout> {
        (MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS).prop_map(Layout::new)
    }

    /// A hash with up to 39 leading 1 bits. They are set here, since random hashes rarely have many.
    fn any_hash() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..40).prop_map(|(hash, ones)| hash | !(u64::MAX >> ones))
    }

    #[test]
    fn each_error_rate_has_a_layout() {
        assert_eq!(all_layouts().count(), LARGEST_ERRORS.len());
        assert_eq!(Layout::new(MIN_SEGMENT_BITS).num_segments(), MAX_SEGMENTS);
        let bits = |error_rate| Layout::for_error(error_rate).map(Layout::segment_bits);
        let rates = [0.25, 0.04, 0.03, 0.02, 0.015, 0.01, 0.0074, 0.005, 0.004, 0.0025];
        assert_eq!(rates.map(bits), [8, 8, 9, 10, 11, 12, 13, 14, 15, 16].map(Some));
        assert_eq!([0.0, 0.002, f64::NAN].map(bits), [None; 3]);
    }

    #[test]
    fn slots_of_hashes_are_pinned() {
        // The expected slots come from a separate program, which follows the description of this file bit by bit.
        let cases: [(u64, u32); 10] = [
            (0, 0),
            (1 << 63, 1024),
            (0xbff0_0000_0000_0000, 2047),
            (0xfffe_a5a5_5a5a_1234, 16_022),
            (0xffff_fe55_4000_0000, 23_893),
            (0xffff_feff_ffff_ffff, 24_575),
            (0xffff_ff00_0000_0000, 24_576),
            (0xffff_ff55_4000_0000, 24_917),
            (0xffff_ff7f_ffff_ffff, 25_087),
            (u64::MAX, 25_599),
        ];
        for (hash, slot) in cases {
            assert_eq!(Layout::new(10).slot_of(hash), slot, "{hash:#x}");
        }
    }

    #[test]
    fn slots_of_items_are_pinned() {
        // The expected slots of the bitmap come from a separate program, with the reference implementation of XXH3.
        let long = [b'a'; 300];
        let cases: [(u64, &[u8], u32); 8] = [
            (0, b"", 360),
            (0, b"user:1", 474),
            (0, b"user:2", 845),
            (0, &long, 2106),
            (42, b"", 1794),
            (42, b"user:1", 2279),
            (42, b"user:2", 2464),
            (42, &long, 2603),
        ];
        for (seed, item, slot) in cases {
            assert_eq!(Layout::new(10).slot_of(hash64(item, seed)), slot, "{seed} {item:?}");
        }
    }

    #[test]
    fn slots_of_any_segment_bits_are_pinned() {
        // The expected slots of the bitmap come from a separate program, which follows the description of this file on
        // text of binary digits.
        let cases: [(u64, [u32; 3]); 9] = [
            (0x0, [0, 0, 0]),
            (0x8000000000000000, [256, 2048, 8192]),
            (0xbff0000000000000, [511, 4094, 16376]),
            (0xfffea5a55a5a1234, [4005, 32045, 128180]),
            (0xfffffe5540000000, [5973, 47445, 178517]),
            (0xfffffeffffffffff, [6143, 48127, 179199]),
            (0xffffff5540000000, [6314, 48469, 179541]),
            (0xfffffffff1234567, [6911, 49151, 180223]),
            (0xffffffffffffffff, [6911, 49151, 180223]),
        ];
        for (hash, slots) in cases {
            assert_eq!([8, 11, 13].map(|c| Layout::new(c).slot_of(hash)), slots, "{hash:#x}");
        }
    }

    #[test]
    fn segments_share_out_the_whole_hash_space() {
        for layout in all_layouts() {
            let shares: f64 = (0..layout.num_segments()).map(|i| layout.slots() as f64 * layout.share(i)).sum();
            assert_eq!(shares, 1.0, "{layout:?}");
        }
    }

    proptest! {
        #[test]
        fn a_slot_lies_in_its_segment(hash in any_hash(), layout in any_layout()) {
            let slot = layout.slot_of(hash);
            prop_assert!(u64::from(slot) < layout.num_slots());
            prop_assert_eq!(layout.slot_at(layout.segment_of(slot), layout.within(slot)), slot);
            prop_assert_eq!(layout.fold(slot, layout), slot);
        }

        #[test]
        fn fold_of_a_slot_is_the_slot_built_small(hash in any_hash(), one in any_layout(), other in any_layout()) {
            let (from, to) = (one.max(other), one.min(other));
            prop_assert_eq!(from.fold(from.slot_of(hash), to), to.slot_of(hash));
        }

        #[test]
        fn fold_keeps_the_order(hashes in [any_hash(), any_hash()], one in any_layout(), other in any_layout()) {
            let (from, to) = (one.max(other), one.min(other));
            let slots = hashes.map(|hash| from.slot_of(hash));
            let (first, second) = (slots[0].min(slots[1]), slots[0].max(slots[1]));
            prop_assert!(from.fold(first, to) <= from.fold(second, to));
        }
    }
}
