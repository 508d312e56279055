//! Look-ups and insertions, compiled for several instruction sets, and for each usual number of lines and bits per
//! item.

use super::super::bitmap::Line;
use super::line::{self, Count, line_index, pick, places};
use crate::hash::Hash128;
use crate::marks::{Marks, marked};
use multiversion::multiversion;
use multiversion::target::match_target;
use prefetch_index::prefetch_index;
use std::ops::Range;

/// The number of lines per item, and the number of bits in each line. Both fit in registers, unlike a
/// [`Geometry`](crate::bloom::sizing::Geometry).
pub(in crate::bloom) type ItemShape = (u32, u32);

/// Runs `$body` with numbers of lines and bits per item that the compiler knows. Loops are then unrolled, which saves 8
/// to 20 ns per item. More than six lines per item (error rates below 1e-14) take loops that are not unrolled.
macro_rules! with_shape {
    ($shape:ident => $body:expr) => {
        // Lines per item, and bits per line: an item with several lines has at least four bits in each.
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

/// Defines a function that is compiled for each pair in `with_shape!` (lines, and bits per line), for AVX-512, for
/// AVX2 and for other processors. Its body can call `$line`, which is the function `has` or `fill` of [`mod@line`].
macro_rules! kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($shape:ident, $line:ident($($operand:ident),*) $(, $arg:ident: $type:ty)*)
        -> $output:ty $body:block) => {
        $(#[$doc])*
        #[cfg_attr(rollcall_no_avx512, multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt")))]
        #[cfg_attr(
            not(rollcall_no_avx512),
            multiversion(targets(
                "x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt",
                "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
            ))
        )]
        $vis fn $name($shape: ItemShape $(, $arg: $type)*) -> $output {
            // Closures, because functions with target features do not implement `Fn`.
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

/// Whether all bits of an item are set in those of its lines that `which` selects, where 0 is the item's first line.
#[inline(always)]
fn has_all(
    lines: &[Line],
    hash: Hash128,
    which: Range<u32>,
    (_, probes): ItemShape,
    has: impl Fn(&Line, u64, u32) -> bool,
) -> bool {
    // The compiler would not inline and unroll `all`.
    for i in which {
        let x = pick(hash, i);
        if !has(&lines[line_index(x, lines.len())], places(x), probes) {
            return false;
        }
    }
    true
}

/// Sets all bits of an item, and adds the number of those that were 0 to `free`. Returns whether any was 0.
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
    pub(in crate::bloom) fn contains(shape, has(line, places, probes), lines: &[Line], hash: Hash128) -> bool {
        has_all(lines, hash, 0..shape.0, shape, has)
    }
}

kernel! {
    /// Sets the bits of the item with this hash. Returns whether a bit was newly set, and the number of newly set bits.
    pub(in crate::bloom) fn insert(
        shape, fill(line_mut, places, probes, free), lines: &mut [Line], hash: Hash128
    ) -> (bool, u64) {
        let mut free = [0; 8];
        let is_new = fill_all(lines, hash, shape, &mut free, fill);
        (is_new, free.iter().sum())
    }
}

kernel! {
    /// Looks up the hashes in the mask `pending`. If `screened` is true, all their bits in their first lines are known
    /// to be set.
    pub(in crate::bloom) fn contains_chunk(
        shape, has(line, places, probes), lines: &[Line], hashes: &[Hash128], pending: Marks, screened: bool
    ) -> Marks {
        let all = shape.0;
        let mut found = 0;
        // Each case has a loop of its own, so that the compiler knows the range of lines and unrolls `has_all`.
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
    /// Returns the mask of the hashes, among those in `pending`, whose bits in their first line are all set.
    pub(in crate::bloom) fn screen_chunk(
        shape, has(line, places, probes), lines: &[Line], hashes: &[Hash128], pending: Marks
    ) -> Marks {
        let mut passed = 0;
        for i in marked(pending) {
            passed |= Marks::from(has_all(lines, hashes[i], 0..1, shape, has)) << i;
        }
        passed
    }
}

kernel! {
    /// Inserts the hashes in the mask `pending`, in order. Returns the mask of those that newly set a bit, and the
    /// number of newly set bits.
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

/// Prefetches those lines of an item that `which` selects, where 0 is the item's first line.
#[inline(always)]
pub(in crate::bloom) fn prefetch(lines: &[Line], hash: Hash128, which: Range<u32>) {
    for i in which {
        prefetch_index(lines, line_index(pick(hash, i), lines.len()));
    }
}
