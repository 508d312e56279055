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
use crate::error::Error;

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
            return Err(Error::out_of_range("precision", "between 11 and 32", precision));
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

    /// The counts of a bitmap that has these slots set.
    pub fn of_positions(positions: impl Iterator<Item = u64>, layout: Layout) -> Self {
        let mut counts = SegmentCounts::default();
        positions.for_each(|index| counts.increment(layout.segment_of(index)));
        counts
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
        match segment.checked_sub(1) {
            None => self.main += 1,
            Some(tail) => self.tail[tail] += 1,
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
