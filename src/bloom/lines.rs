//! Lines of 512 bits, and where in them the bits of an item are.
//!
//! ```text
//! a = hash.lo, d = hash.hi | 1                          wrapping 64-bit arithmetic throughout
//! for i in 0..b:   x = a + i*d
//!                  line  = (x * L) >> 64                of the 128-bit product; L lines
//!                  y = x * 0x9E3779B97F4A7C15;  y ^= y >> 32
//!                  bits  = (y >> 9*j) & 511             for j in 0..g; bit n is bit n % 64 of word n / 64
//! ```
//!
//! The product takes the line from the high bits of `x`; the multiply and shift make the bits in the
//! line depend on all of them. Cheaper ways were measured and are not good enough: slices of `x`
//! itself raise the false-positive rate by 36 to 88 %, double hashing modulo 512 by 7 to 25 %.
//! Every constant and shift here is part of the stored format.

use super::math::Geometry;
use crate::hash::Hash128;
use bytemuck::{Pod, Zeroable};
use prefetch_index::prefetch_index;

/// 512 bits in one cache line.
#[derive(Debug, Default, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line([u64; 8]);

/// Most hashes a job takes at once: one bit each in a `u32`, and about as many cache misses as a core has in flight.
pub(super) const CHUNK: usize = 32;

/// How many lines an item has and how many bits in each. With [`Fixed`] the compiler knows both and
/// unrolls the loops, which saves 8 to 20 ns an item; [`Looped`] serves the shapes that only
/// error rates below 1e-13 ask for.
pub(super) trait Shape: Copy {
    fn lines_per_item(self) -> u32;
    fn probes_per_line(self) -> u32;
}

#[derive(Clone, Copy)]
struct Fixed<const B: u32, const G: u32>;

impl<const B: u32, const G: u32> Shape for Fixed<B, G> {
    #[inline(always)]
    fn lines_per_item(self) -> u32 {
        B
    }
    #[inline(always)]
    fn probes_per_line(self) -> u32 {
        G
    }
}

#[derive(Clone, Copy)]
struct Looped {
    lines_per_item: u32,
    probes_per_line: u32,
}

impl Shape for Looped {
    #[inline(always)]
    fn lines_per_item(self) -> u32 {
        self.lines_per_item
    }
    #[inline(always)]
    fn probes_per_line(self) -> u32 {
        self.probes_per_line
    }
}

/// Work on many items that is compiled once for every shape.
pub(super) trait Job {
    type Output;
    fn run(self, shape: impl Shape) -> Self::Output;
}

/// Runs `job` with the implementation for `geometry`. This is the only place where one is chosen.
pub(super) fn run<J: Job>(geometry: &Geometry, job: J) -> J::Output {
    let (lines_per_item, probes_per_line) = (geometry.lines_per_item, geometry.probes_per_line);
    macro_rules! shapes {
        ($(($b:literal, $g:literal))*) => {
            match (lines_per_item, probes_per_line) {
                $(($b, $g) => job.run(Fixed::<$b, $g>),)*
                _ => job.run(Looped { lines_per_item, probes_per_line }),
            }
        };
    }
    // With two lines and more, a line's share of the error rate is under 0.071: at least four probes.
    shapes! {
        (1, 1) (1, 2) (1, 3) (1, 4) (1, 5) (1, 6) (1, 7)
        (2, 4) (2, 5) (2, 6) (2, 7)
        (3, 4) (3, 5) (3, 6) (3, 7)
        (4, 4) (4, 5) (4, 6) (4, 7)
        (5, 4) (5, 5) (5, 6) (5, 7)
        (6, 4) (6, 5) (6, 6) (6, 7)
    }
}

/// Brings the lines of the hashes marked in `pending` to the cache.
pub(super) struct Prefetch<'a> {
    pub lines: &'a [Line],
    pub hashes: &'a [Hash128],
    pub pending: u32,
}

impl Job for Prefetch<'_> {
    type Output = ();

    #[inline]
    fn run(self, shape: impl Shape) {
        for i in marked(self.pending) {
            for x in picks(self.hashes[i], shape) {
                prefetch_index(self.lines, line_index(x, self.lines.len()));
            }
        }
    }
}

/// Which of the hashes marked in `pending` have all their bits set; a mark for each.
pub(super) struct Contain<'a> {
    pub lines: &'a [Line],
    pub hashes: &'a [Hash128],
    pub pending: u32,
}

impl Job for Contain<'_> {
    type Output = u32;

    #[inline]
    fn run(self, shape: impl Shape) -> u32 {
        marked(self.pending).fold(0, |found, i| found | (u32::from(contains(self.lines, self.hashes[i], shape)) << i))
    }
}

/// Sets the bits of the hashes marked in `pending`, in order.
pub(super) struct Insert<'a> {
    pub lines: &'a mut [Line],
    pub hashes: &'a [Hash128],
    pub pending: u32,
}

/// What an [`Insert`] changed.
pub(super) struct Inserted {
    /// A mark for each hash that had a bit free.
    pub new: u32,
    /// Bits that were free.
    pub bits: u64,
}

impl Job for Insert<'_> {
    type Output = Inserted;

    #[inline]
    fn run(self, shape: impl Shape) -> Inserted {
        marked(self.pending).fold(Inserted { new: 0, bits: 0 }, |before, i| {
            let bits = insert(self.lines, self.hashes[i], shape);
            Inserted { new: before.new | (u32::from(bits != 0) << i), bits: before.bits + bits }
        })
    }
}

/// The positions of the bits set in `marks`, ascending.
#[inline(always)]
pub(super) fn marked(mut marks: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = marks.trailing_zeros() as usize;
        if marks == 0 {
            return None;
        }
        marks &= marks - 1;
        Some(next)
    })
}

/// The number a line and the bits in it are drawn from, for each of the lines of an item.
#[inline(always)]
fn picks(hash: Hash128, shape: impl Shape) -> impl Iterator<Item = u64> {
    let step = hash.hi | 1;
    (0..shape.lines_per_item()).scan(hash.lo, move |x, _| {
        let this = *x;
        *x = x.wrapping_add(step);
        Some(this)
    })
}

#[inline(always)]
fn line_index(x: u64, num_lines: usize) -> usize {
    // Less than num_lines, since x is less than 2^64.
    ((u128::from(x) * num_lines as u128) >> 64) as usize
}

/// Word and mask of each bit in the line.
#[inline(always)]
fn bits_in_line(x: u64, shape: impl Shape) -> impl Iterator<Item = (usize, u64)> {
    let y = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let y = y ^ (y >> 32);
    (0..shape.probes_per_line()).map(move |j| {
        let bit = y >> (9 * j);
        ((bit >> 6) as usize & 7, 1 << (bit & 63))
    })
}

#[inline(always)]
fn contains(lines: &[Line], hash: Hash128, shape: impl Shape) -> bool {
    picks(hash, shape).all(|x| {
        let line = &lines[line_index(x, lines.len())].0;
        // No early exit within a line: the line is here anyway, and a branch a bit would be mispredicted every other time.
        bits_in_line(x, shape).fold(true, |all, (word, mask)| all & (line[word] & mask != 0))
    })
}

/// Sets the bits of `hash` and tells how many of them were free.
#[inline(always)]
fn insert(lines: &mut [Line], hash: Hash128, shape: impl Shape) -> u64 {
    let mut bits = 0;
    for x in picks(hash, shape) {
        let line = &mut lines[line_index(x, lines.len())].0;
        for (word, mask) in bits_in_line(x, shape) {
            bits += u64::from(line[word] & mask == 0);
            line[word] |= mask;
        }
    }
    bits
}
