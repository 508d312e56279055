//! Probes for items and lists of items: the order in which lines are prefetched and read. They are compiled for every
//! shape of an item and for several instruction sets.

use super::super::bitmap::Line;
use super::line::{self, Count, line_index, pick, places};
use crate::hash::{CHUNK, Hash128, Marks, marked};
use multiversion::multiversion;
use multiversion::target::match_target;
use prefetch_index::prefetch_index;
use std::ops::{Range, RangeInclusive};

/// The number of lines per item, and the number of bits in each line. With [`Fixed`] the compiler knows both and
/// unrolls the loops, which saves 8 to 20 ns an item. [`ItemShape`] itself serves the other shapes, which only error
/// rates below 1e-13 need.
pub(in crate::bloom) trait LineShape: Copy {
    fn lines_per_item(self) -> u32;
    fn probes_per_line(self) -> u32;
}

#[derive(Clone, Copy)]
struct Fixed<const B: u32, const G: u32>;

impl<const B: u32, const G: u32> LineShape for Fixed<B, G> {
    #[inline(always)]
    fn lines_per_item(self) -> u32 {
        B
    }
    #[inline(always)]
    fn probes_per_line(self) -> u32 {
        G
    }
}

/// The number of lines per item, and the number of bits in each line. A probe needs no more of a geometry, and both fit
/// in registers.
pub(in crate::bloom) type ItemShape = (u32, u32);

impl LineShape for ItemShape {
    #[inline(always)]
    fn lines_per_item(self) -> u32 {
        self.0
    }
    #[inline(always)]
    fn probes_per_line(self) -> u32 {
        self.1
    }
}

/// An operation that is compiled once for every shape.
trait Job {
    type Output;
    fn run(self, shape: impl LineShape) -> Self::Output;
}

/// Runs `job` with the implementation for `shape`. This is the only place where an implementation is chosen.
#[inline(always)]
fn run<J: Job>(shape: ItemShape, job: J) -> J::Output {
    macro_rules! shapes {
        ($(($b:literal, $g:literal))*) => {
            match shape {
                $(($b, $g) => job.run(Fixed::<$b, $g>),)*
                _ => job.run(shape),
            }
        };
    }
    // With two lines or more, the error rate of a line is below 0.071, which takes at least four probes.
    shapes! {
        (1, 1) (1, 2) (1, 3) (1, 4) (1, 5) (1, 6) (1, 7)
        (2, 4) (2, 5) (2, 6) (2, 7)
        (3, 4) (3, 5) (3, 6) (3, 7)
        (4, 4) (4, 5) (4, 6) (4, 7)
        (5, 4) (5, 5) (5, 6) (5, 7)
        (6, 4) (6, 5) (6, 6) (6, 7)
    }
}

/// A mask of the bitmaps that may have an item, with one bit for each of the bitmaps that are looked up together, at
/// most eight.
pub(super) type Candidates = u8;

/// Whether all bits of this hash are set.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn contains(shape: ItemShape, lines: &[Line], hash: Hash128) -> bool {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, One(Seek { lines, has }, hash))
}

/// Sets the bits of this hash. Returns whether any of them was free, and how many were: the first is known earlier.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn insert(shape: ItemShape, lines: &mut [Line], hash: Hash128) -> (bool, u64) {
    let fill = match_target! {
        "x86_64+avx512f" => |line: &mut Line, places, probes, free: &mut Count| line::avx512::fill(line, places, probes, free),
        _ => line::fill,
    };
    run(shape, One(Fill { lines, fill, free: [0; 8] }, hash))
}

/// Looks up the hashes whose bits are set in the mask `pending`, and returns the mask of those for which [`contains`] is
/// true. With `screened`, their first lines are known to have all bits.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn contains_chunk(
    shape: ItemShape,
    lines: &[Line],
    hashes: &[Hash128],
    pending: Marks,
    screened: bool,
) -> Marks {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, SeekChunk { seek: Seek { lines, has }, hashes, pending, screened })
}

/// Returns the mask of the hashes whose first line has all bits, and prefetches their other lines.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn screen_chunk(shape: ItemShape, lines: &[Line], hashes: &[Hash128]) -> Marks {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, ScreenChunk { seek: Seek { lines, has }, hashes })
}

/// Looks up the hashes whose bits are set in the mask `pending` in several bitmaps of one shape. `candidates`
/// has for each hash the mask of the bitmaps in which its first line is known to have all bits. Returns the mask of the
/// hashes that are in any of their candidates.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn contains_rest_chunk(
    shape: ItemShape,
    bitmaps: &[&[Line]],
    hashes: &[Hash128],
    pending: Marks,
    candidates: &[Candidates; CHUNK],
) -> Marks {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, SeekRest { bitmaps, has, hashes, pending, candidates })
}

/// Inserts the hashes whose bits are set in the mask `pending`, in order. Returns the mask of those that set a bit, and
/// the number of bits that were free.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn insert_chunk(
    shape: ItemShape,
    lines: &mut [Line],
    hashes: &[Hash128],
    pending: Marks,
) -> (Marks, u64) {
    let fill = match_target! {
        "x86_64+avx512f" => |line: &mut Line, places, probes, free: &mut Count| line::avx512::fill(line, places, probes, free),
        _ => line::fill,
    };
    run(shape, FillChunk { fill: Fill { lines, fill, free: [0; 8] }, hashes, pending })
}

/// Sets the bits of the hashes that fall into the lines of a part, and returns how many of them were free. `new` has a
/// bit for each hash, from bit `start` on. The function sets it if a bit of the hash was free.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn insert_part(
    shape: ItemShape,
    part: &mut Part<'_>,
    hashes: &[Hash128],
    start: usize,
    new: &mut [u64],
) -> u64 {
    let fill = match_target! {
        "x86_64+avx512f" => |line: &mut Line, places, probes, free: &mut Count| line::avx512::fill(line, places, probes, free),
        _ => line::fill,
    };
    run(shape, FillPart { part, fill, hashes, start, new })
}

/// Tests whether all bits of an item are set. `has` tests the bits in one line.
struct Seek<'a, W> {
    lines: &'a [Line],
    has: W,
}

impl<W: Fn(&Line, u64, u32) -> bool> Seek<'_, W> {
    /// Whether the item's bits are all set in its lines with the indices `lines`.
    #[inline(always)]
    fn has(&self, hash: Hash128, lines: Range<u32>, shape: impl LineShape) -> bool {
        // A loop, since the compiler makes `all` a call and does not unroll it.
        for i in lines {
            let x = pick(hash, i);
            if !(self.has)(&self.lines[line_index(x, self.lines.len())], places(x), shape.probes_per_line()) {
                return false;
            }
        }
        true
    }
}

/// Sets all bits of items and counts those that were free. `fill` sets and counts the bits in one line.
struct Fill<'a, W> {
    lines: &'a mut [Line],
    fill: W,
    free: Count,
}

impl<W: Fn(&mut Line, u64, u32, &mut Count) -> bool> Fill<'_, W> {
    /// Sets all bits of an item, and returns whether any was free.
    #[inline(always)]
    fn set(&mut self, hash: Hash128, shape: impl LineShape) -> bool {
        let mut is_new = false;
        for i in 0..shape.lines_per_item() {
            let x = pick(hash, i);
            let index = line_index(x, self.lines.len());
            is_new |= (self.fill)(&mut self.lines[index], places(x), shape.probes_per_line(), &mut self.free);
        }
        is_new
    }
}

/// An operation on one item.
struct One<P>(P, Hash128);

impl<W: Fn(&Line, u64, u32) -> bool> Job for One<Seek<'_, W>> {
    type Output = bool;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> bool {
        self.0.has(self.1, 0..shape.lines_per_item(), shape)
    }
}

impl<W: Fn(&mut Line, u64, u32, &mut Count) -> bool> Job for One<Fill<'_, W>> {
    type Output = (bool, u64);

    #[inline(always)]
    fn run(mut self, shape: impl LineShape) -> (bool, u64) {
        let is_new = self.0.set(self.1, shape);
        (is_new, self.0.free.iter().sum())
    }
}

/// A probe for each item of a chunk.
struct SeekChunk<'a, W> {
    seek: Seek<'a, W>,
    hashes: &'a [Hash128],
    pending: Marks,
    screened: bool,
}

impl<W: Fn(&Line, u64, u32) -> bool> Job for SeekChunk<'_, W> {
    type Output = Marks;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> Marks {
        let SeekChunk { seek, hashes, pending, screened } = self;
        let all = shape.lines_per_item();
        let mut found = 0;
        // Loops, since the compiler makes `fold` and `for_each` calls. Two of them, each with a constant range of lines,
        // which the compiler unrolls.
        if screened {
            for i in marked(pending) {
                found |= Marks::from(seek.has(hashes[i], 1..all, shape)) << i;
            }
        } else {
            for i in marked(pending) {
                found |= Marks::from(seek.has(hashes[i], 0..all, shape)) << i;
            }
        }
        found
    }
}

/// A probe for each item of a chunk in its first line.
struct ScreenChunk<'a, W> {
    seek: Seek<'a, W>,
    hashes: &'a [Hash128],
}

impl<W: Fn(&Line, u64, u32) -> bool> Job for ScreenChunk<'_, W> {
    type Output = Marks;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> Marks {
        let ScreenChunk { seek, hashes } = self;
        let mut passed = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if seek.has(hash, 0..1, shape) {
                passed |= 1 << i;
                prefetch(seek.lines, hash, 1..shape.lines_per_item());
            }
        }
        passed
    }
}

/// A probe for the items of a chunk in several bitmaps of one shape, in all lines of an item except the first.
struct SeekRest<'a, W> {
    bitmaps: &'a [&'a [Line]],
    has: W,
    hashes: &'a [Hash128],
    pending: Marks,
    candidates: &'a [Candidates; CHUNK],
}

impl<W: Fn(&Line, u64, u32) -> bool> Job for SeekRest<'_, W> {
    type Output = Marks;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> Marks {
        let SeekRest { bitmaps, has, hashes, pending, candidates } = self;
        let mut found = 0;
        for i in marked(pending) {
            // Newest first: the lines in it were prefetched.
            let mut left = candidates[i];
            while let Some(newest) = left.checked_ilog2() {
                let seek = Seek { lines: bitmaps[newest as usize], has: &has };
                if seek.has(hashes[i], 1..shape.lines_per_item(), shape) {
                    found |= 1 << i;
                    break;
                }
                left ^= 1 << newest;
            }
        }
        found
    }
}

/// An insertion of each item of a chunk.
struct FillChunk<'a, W> {
    fill: Fill<'a, W>,
    hashes: &'a [Hash128],
    pending: Marks,
}

impl<W: Fn(&mut Line, u64, u32, &mut Count) -> bool> Job for FillChunk<'_, W> {
    type Output = (Marks, u64);

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> (Marks, u64) {
        let FillChunk { mut fill, hashes, pending } = self;
        let mut new = 0;
        for i in marked(pending) {
            new |= Marks::from(fill.set(hashes[i], shape)) << i;
        }
        (new, fill.free.iter().sum())
    }
}

/// The lines of a bitmap that one thread handles.
pub(super) struct Part<'a> {
    lines: &'a mut [Line],
    /// The index of the part's first line in the whole bitmap.
    first: usize,
    /// The number of lines of the whole bitmap.
    num_lines: usize,
    /// The least and the largest number that select a line of the part.
    picks: RangeInclusive<u64>,
}

impl<'a> Part<'a> {
    /// The part that consists of `lines`, from line number `first` of a bitmap of `num_lines` lines on.
    pub(super) fn new(lines: &'a mut [Line], first: usize, num_lines: usize) -> Self {
        // The least number for which `line_index` gives this line.
        let least = |line: usize| ((line as u128) << 64).div_ceil(num_lines.max(1) as u128);
        let picks = least(first) as u64..=least(first + lines.len()).wrapping_sub(1) as u64;
        Part { lines, first, num_lines, picks }
    }
}

/// Insertion of those bits that fall into one part of the lines.
struct FillPart<'a, 'l, W> {
    part: &'a mut Part<'l>,
    fill: W,
    hashes: &'a [Hash128],
    start: usize,
    new: &'a mut [u64],
}

/// One line of an item, which [`FillPart`] will visit to set bits.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// The number from which the line and its bits are derived.
    x: u64,
    /// The index of the item's bit in the list of new items.
    item: usize,
}

/// The number of lines that [`FillPart`] prefetches as one batch. While a batch is loaded, the bits of the batch before
/// are set. Free to change: nothing stored depends on it.
const VISITS: usize = 64;

impl<W: Fn(&mut Line, u64, u32, &mut Count) -> bool> Job for FillPart<'_, '_, W> {
    type Output = u64;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> u64 {
        let FillPart { part, fill, hashes, start, new } = self;
        let (first, num_lines) = (part.first, part.num_lines);
        let (least, span) = (*part.picks.start(), part.picks.end() - part.picks.start());
        let lines = &mut *part.lines;
        let line = |visit: &Visit| line_index(visit.x, num_lines).wrapping_sub(first);
        let mut free = [0; 8];
        let mut set = |visits: &[Visit], lines: &mut [Line]| {
            for visit in visits {
                let is_new = fill(&mut lines[line(visit)], places(visit.x), shape.probes_per_line(), &mut free);
                new[visit.item / 64] |= u64::from(is_new) << (visit.item % 64);
            }
        };
        // Two batches by turns, by index: swapping them makes the compiler copy them for each hash.
        let mut batches = [[Visit::default(); VISITS]; 2];
        let (mut turn, mut num_asked, mut num_coming) = (0, 0, 0);
        for (item, &hash) in (start..).zip(hashes) {
            for i in 0..shape.lines_per_item() {
                let x = pick(hash, i);
                // The visit is always written, and kept only if its line is in the part: a branch would be mispredicted
                // half the time.
                batches[turn][num_coming % VISITS] = Visit { x, item };
                num_coming += usize::from(x.wrapping_sub(least) <= span);
                if num_coming == VISITS {
                    batches[turn].iter().for_each(|visit| prefetch_index(&*lines, line(visit)));
                    // These lines arrive while the bits of the lines asked for before are set.
                    turn ^= 1;
                    set(&batches[turn][..num_asked], lines);
                    (num_asked, num_coming) = (VISITS, 0);
                }
            }
        }
        set(&batches[turn ^ 1][..num_asked], lines);
        set(&batches[turn][..num_coming], lines);
        free.iter().sum()
    }
}

/// Prefetches the item's lines with the indices `which`.
#[inline(always)]
pub(super) fn prefetch(lines: &[Line], hash: Hash128, which: Range<u32>) {
    for i in which {
        prefetch_index(lines, line_index(pick(hash, i), lines.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number selects a line of exactly one part.
    #[test]
    fn the_numbers_of_a_part_are_those_of_its_lines() {
        for num_lines in [1, 2, 3, 7, 64, 1000, 4097, 29_163] {
            for share in [1, 2, 3, 500, 4096, 30_000] {
                let mut lines = vec![Line::default(); num_lines];
                let mut next = Some(0);
                for (index, part) in lines.chunks_mut(share).enumerate() {
                    let part = Part::new(part, index * share, num_lines);
                    let (least, most) = (*part.picks.start(), *part.picks.end());
                    assert_eq!(Some(least), next);
                    let ends = [least, most].map(|x| line_index(x, num_lines));
                    assert_eq!(ends, [part.first, part.first + part.lines.len() - 1], "{num_lines} {share}");
                    next = most.checked_add(1);
                }
                assert_eq!(next, None);
            }
        }
    }
}
