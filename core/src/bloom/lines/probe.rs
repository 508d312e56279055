//! Probes for items and lists of items: the order in which lines are prefetched and read. They are compiled for every
//! shape of an item and for several instruction sets.

use super::super::bitmap::Line;
use super::line::{self, Count, line_index, pick, places};
use crate::hash::{CHUNK, Hash128, Marks, marked};
use multiversion::multiversion;
use multiversion::target::match_target;
use prefetch_index::prefetch_index;
use std::ops::Range;

/// The number of lines per item, and the number of bits in each line. A probe needs only these two numbers of a
/// geometry, and they fit in registers.
pub(in crate::bloom) type ItemShape = (u32, u32);

/// Runs `$body` with a shape that the compiler knows. The compiler then unrolls the loops, which saves 8 to 20 ns per
/// item. At error rates below 1e-13 there are other shapes, for which loops are not unrolled. This is the only place
/// where a shape is chosen.
macro_rules! with_shape {
    ($shape:ident => $body:expr) => {
        // With two lines or more, the error rate of a line is below 0.071, which takes at least four probes.
        with_shape!($shape => $body,
            (1, 1) (1, 2) (1, 3) (1, 4) (1, 5) (1, 6) (1, 7)
            (2, 4) (2, 5) (2, 6) (2, 7)
            (3, 4) (3, 5) (3, 6) (3, 7)
            (4, 4) (4, 5) (4, 6) (4, 7)
            (5, 4) (5, 5) (5, 6) (5, 7)
            (6, 4) (6, 5) (6, 6) (6, 7))
    };
    ($shape:ident => $body:expr, $($known:tt)*) => {
        match $shape {
            $($known => {
                let $shape: ItemShape = $known;
                $body
            })*
            _ => $body,
        }
    };
}

/// A function that is compiled for every shape, and for processors with and without AVX-512. Its body gets the shape,
/// and the operation on one line, `has` or `fill` of [`mod@line`].
macro_rules! kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($shape:ident, $line:ident($($operand:ident),*) $(, $arg:ident: $type:ty)*)
        -> $output:ty $body:block) => {
        $(#[$doc])*
        #[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
        $vis fn $name($shape: ItemShape $(, $arg: $type)*) -> $output {
            // Closures: functions with target features implement no trait.
            let $line = match_target! {
                "x86_64+avx512f" => |$($operand: kernel!(@ $operand)),*| line::avx512::$line($($operand),*),
                _ => |$($operand: kernel!(@ $operand)),*| line::$line($($operand),*),
            };
            with_shape!($shape => $body)
        }
    };
    (@ line) => { &Line };
    (@ line_mut) => { &mut Line };
    (@ places) => { u64 };
    (@ probes) => { u32 };
    (@ free) => { &mut Count };
}

/// A mask of the bitmaps that may have an item, with one bit for each of the bitmaps that are looked up together, at
/// most eight.
pub(in crate::bloom) type Candidates = u8;

/// Whether the bits of an item in its lines with the indices `which` are all set.
#[inline(always)]
fn has_all(
    lines: &[Line],
    hash: Hash128,
    which: Range<u32>,
    (_, probes): ItemShape,
    has: impl Fn(&Line, u64, u32) -> bool,
) -> bool {
    // This is a loop, because the compiler would make `all` a call and would not unroll it.
    for i in which {
        let x = pick(hash, i);
        if !has(&lines[line_index(x, lines.len())], places(x), probes) {
            return false;
        }
    }
    true
}

/// Sets all bits of an item, and adds to `free` how many of them were free. Returns whether any was.
#[inline(always)]
fn fill_all(
    lines: &mut [Line],
    hash: Hash128,
    (lines_per_item, probes): ItemShape,
    free: &mut Count,
    fill: impl Fn(&mut Line, u64, u32, &mut Count) -> bool,
) -> bool {
    let mut is_new = false;
    for i in 0..lines_per_item {
        let x = pick(hash, i);
        let index = line_index(x, lines.len());
        is_new |= fill(&mut lines[index], places(x), probes, free);
    }
    is_new
}

kernel! {
    /// Whether all bits of this hash are set.
    pub(in crate::bloom) fn contains(shape, has(line, places, probes), lines: &[Line], hash: Hash128) -> bool {
        has_all(lines, hash, 0..shape.0, shape, has)
    }
}

kernel! {
    /// Sets the bits of this hash. Returns whether any of them was free, and how many were. The first result is known
    /// earlier than the second, so both are returned.
    pub(in crate::bloom) fn insert(
        shape, fill(line_mut, places, probes, free), lines: &mut [Line], hash: Hash128
    ) -> (bool, u64) {
        let mut free = [0; 8];
        let is_new = fill_all(lines, hash, shape, &mut free, fill);
        (is_new, free.iter().sum())
    }
}

kernel! {
    /// Looks up the hashes whose bits are set in the mask `pending`, and returns the mask of those for which
    /// [`contains`] is true. With `screened`, their first lines are known to have all bits.
    pub(in crate::bloom) fn contains_chunk(
        shape, has(line, places, probes), lines: &[Line], hashes: &[Hash128], pending: Marks, screened: bool
    ) -> Marks {
        let all = shape.0;
        let mut found = 0;
        // These are loops, because the compiler would make `fold` and `for_each` calls. There are two, because the
        // compiler unrolls a loop over a constant range of lines.
        if screened {
            for i in marked(pending) {
                found |= Marks::from(has_all(lines, hashes[i], 1..all, shape, has)) << i;
            }
        } else {
            for i in marked(pending) {
                found |= Marks::from(has_all(lines, hashes[i], 0..all, shape, has)) << i;
            }
        }
        found
    }
}

kernel! {
    /// Returns the mask of the hashes whose first line has all bits, and prefetches their other lines.
    pub(in crate::bloom) fn screen_chunk(
        shape, has(line, places, probes), lines: &[Line], hashes: &[Hash128]
    ) -> Marks {
        let mut passed = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if has_all(lines, hash, 0..1, shape, has) {
                passed |= 1 << i;
                prefetch(lines, hash, 1..shape.0);
            }
        }
        passed
    }
}

kernel! {
    /// Looks up the hashes whose bits are set in the mask `pending` in several bitmaps of one shape. `candidates` has
    /// for each hash the mask of the bitmaps in which its first line is known to have all bits. Returns the mask of the
    /// hashes that are in any of their candidates.
    pub(in crate::bloom) fn contains_rest_chunk(
        shape, has(line, places, probes),
        bitmaps: &[&[Line]], hashes: &[Hash128], pending: Marks, candidates: &[Candidates; CHUNK]
    ) -> Marks {
        let mut found = 0;
        for i in marked(pending) {
            // The newest bitmap is looked up first, because its lines were prefetched.
            let mut left = candidates[i];
            while let Some(newest) = left.checked_ilog2() {
                if has_all(bitmaps[newest as usize], hashes[i], 1..shape.0, shape, has) {
                    found |= 1 << i;
                    break;
                }
                left ^= 1 << newest;
            }
        }
        found
    }
}

kernel! {
    /// Inserts the hashes whose bits are set in the mask `pending`, in order. Returns the mask of the hashes that set a
    /// bit, and the number of bits that were free.
    pub(in crate::bloom) fn insert_chunk(
        shape, fill(line_mut, places, probes, free), lines: &mut [Line], hashes: &[Hash128], pending: Marks
    ) -> (Marks, u64) {
        let (mut free, mut new) = ([0; 8], 0);
        for i in marked(pending) {
            new |= Marks::from(fill_all(lines, hashes[i], shape, &mut free, fill)) << i;
        }
        (new, free.iter().sum())
    }
}

/// Prefetches the item's lines with the indices `which`.
#[inline(always)]
pub(in crate::bloom) fn prefetch(lines: &[Line], hash: Hash128, which: Range<u32>) {
    for i in which {
        prefetch_index(lines, line_index(pick(hash, i), lines.len()));
    }
}
