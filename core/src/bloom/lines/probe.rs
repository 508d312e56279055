//! Probes for items and lists of items: the order in which lines are prefetched and read. They are compiled for every
//! shape of an item and for several instruction sets.

use super::super::bitmap::Line;
use super::super::chain::chunks::{CHUNK, marked};
use super::line::{self, line_index, pick, places};
use crate::hash::{Hash128, fill};
use multiversion::multiversion;
use multiversion::target::match_target;
use prefetch_index::prefetch_index;
use std::ops::Range;

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

/// Whether all bits of this hash are set.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn contains(shape: ItemShape, lines: &[Line], hash: Hash128) -> bool {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, One(Seek { lines, has, first: 0 }, hash))
}

/// Whether all bits of this hash are set in its lines except the first.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn contains_rest(shape: ItemShape, lines: &[Line], hash: Hash128) -> bool {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, One(Seek { lines, has, first: 1 }, hash))
}

/// Sets the bits of this hash and returns how many of them were free.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn insert(shape: ItemShape, lines: &mut [Line], hash: Hash128) -> u64 {
    let fill = match_target! {
        "x86_64+avx512f" => |line: &mut Line, places, probes| line::avx512::fill(line, places, probes),
        _ => line::fill,
    };
    run(shape, One(Fill { lines, fill }, hash))
}

/// Calls `found` with the answer of [`contains`] for each hash, in order.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn contains_all(
    shape: ItemShape,
    lines: &[Line],
    hashes: impl Iterator<Item = Hash128>,
    found: impl FnMut(bool),
) {
    let has = match_target! {
        "x86_64+avx512f" => |line: &Line, places, probes| line::avx512::has(line, places, probes),
        _ => line::has,
    };
    run(shape, All(Seek { lines, has, first: 0 }, hashes, found))
}

/// Inserts the hashes in order, and calls `free` with the result of [`insert`] for each.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt"))]
pub(in crate::bloom) fn insert_all(
    shape: ItemShape,
    lines: &mut [Line],
    hashes: impl Iterator<Item = Hash128>,
    free: impl FnMut(u64),
) {
    let fill = match_target! {
        "x86_64+avx512f" => |line: &mut Line, places, probes| line::avx512::fill(line, places, probes),
        _ => line::fill,
    };
    run(shape, All(Fill { lines, fill }, hashes, free))
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
        "x86_64+avx512f" => |line: &mut Line, places, probes| line::avx512::fill(line, places, probes),
        _ => line::fill,
    };
    run(shape, FillPart { part, fill, hashes, start, new })
}

/// Prefetches the first line of the hash.
#[inline(always)]
pub(super) fn prefetch_first(lines: &[Line], hash: Hash128) {
    ask(lines, hash, 0..1);
}

/// Prefetches the first `count` lines of each hash in the mask `pending`.
pub(in crate::bloom) fn prefetch(lines: &[Line], hashes: &[Hash128], pending: u32, count: u32) {
    marked(pending).for_each(|i| ask(lines, hashes[i], 0..count));
}

/// An operation on the lines of an item.
trait Probe {
    type Answer;
    fn lines(&self) -> &[Line];
    fn probe(&mut self, hash: Hash128, shape: impl LineShape) -> Self::Answer;
}

/// Tests whether all bits of an item are set, from its line number `first` on. `has` tests the bits in one line.
struct Seek<'a, W> {
    lines: &'a [Line],
    has: W,
    first: u32,
}

impl<W: Fn(&Line, u64, u32) -> bool> Probe for Seek<'_, W> {
    type Answer = bool;

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn probe(&mut self, hash: Hash128, shape: impl LineShape) -> bool {
        self.has(hash, self.first..shape.lines_per_item(), shape)
    }
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

/// Sets all bits of an item and counts those that were free. `fill` sets and counts the bits in one line.
struct Fill<'a, W> {
    lines: &'a mut [Line],
    fill: W,
}

impl<W: Fn(&mut Line, u64, u32) -> u64> Probe for Fill<'_, W> {
    type Answer = u64;

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn probe(&mut self, hash: Hash128, shape: impl LineShape) -> u64 {
        let mut free = 0;
        for i in 0..shape.lines_per_item() {
            let x = pick(hash, i);
            let index = line_index(x, self.lines.len());
            free += (self.fill)(&mut self.lines[index], places(x), shape.probes_per_line());
        }
        free
    }
}

/// A probe for one item.
struct One<P>(P, Hash128);

impl<P: Probe> Job for One<P> {
    type Output = P::Answer;

    #[inline(always)]
    fn run(mut self, shape: impl LineShape) -> P::Answer {
        self.0.probe(self.1, shape)
    }
}

/// The size from which a bitmap is probed in chunks, in lines: 2 MiB. A separate short loop then prefetches the lines
/// of a whole chunk. Larger bitmaps have more pages than the TLB holds. A core handles several TLB misses at once, but
/// only of loads within a few hundred instructions. Free to change: nothing stored depends on it.
pub(in crate::bloom) const CHUNKED_FROM_LINES: usize = 32 << 10;

/// The prefetch distance, in items, in bitmaps of fewer than [`CHUNKED_FROM_LINES`] lines. Cache misses in such bitmaps
/// are short, so one loop that prefetches and probes is faster than two loops. Free to change: nothing stored depends
/// on it.
const AHEAD: usize = 16;

/// A probe for each of many items, and a function that takes each answer.
struct All<P, H, F>(P, H, F);

/// Looks up many items, in the order that suits the size of the bitmap.
impl<W: Fn(&Line, u64, u32) -> bool, H: Iterator<Item = Hash128>, F: FnMut(bool)> Job for All<Seek<'_, W>, H, F> {
    type Output = ();

    #[inline(always)]
    fn run(self, shape: impl LineShape) {
        let is_far = self.0.lines.len() >= CHUNKED_FROM_LINES;
        match (is_far, shape.lines_per_item()) {
            (false, _) => self.run_ahead(shape),
            (true, 1) => self.run_chunked(shape),
            (true, _) => self.0.run_first_lines_first(shape, self.1, self.2),
        }
    }
}

/// Inserts many items, in the order that suits the size of the bitmap.
impl<W: Fn(&mut Line, u64, u32) -> u64, H: Iterator<Item = Hash128>, F: FnMut(u64)> Job for All<Fill<'_, W>, H, F> {
    type Output = ();

    #[inline(always)]
    fn run(self, shape: impl LineShape) {
        let is_far = self.0.lines.len() >= CHUNKED_FROM_LINES;
        if is_far { self.run_chunked(shape) } else { self.run_ahead(shape) }
    }
}

/// The lines of a bitmap that one thread handles.
pub(super) struct Part<'a> {
    pub(super) lines: &'a mut [Line],
    /// The index of the part's first line in the whole bitmap.
    pub(super) first: usize,
    /// The number of lines of the whole bitmap.
    pub(super) num_lines: usize,
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
    /// The line's index in the part.
    line: usize,
    /// The number from which the line and its bits are derived.
    x: u64,
    /// The index of the item's bit in the list of new items.
    item: usize,
}

/// The number of lines that [`FillPart`] prefetches as one batch. While a batch is loaded, the bits of the batch before
/// are set. Free to change: nothing stored depends on it.
const VISITS: usize = 64;

impl<W: Fn(&mut Line, u64, u32) -> u64> Job for FillPart<'_, '_, W> {
    type Output = u64;

    #[inline(always)]
    fn run(self, shape: impl LineShape) -> u64 {
        let FillPart { part, fill, hashes, start, new } = self;
        let (first, num_lines) = (part.first, part.num_lines);
        let lines = &mut *part.lines;
        let mut set = |visits: &[Visit], lines: &mut [Line]| {
            let mut free = 0;
            for visit in visits {
                let found = fill(&mut lines[visit.line], places(visit.x), shape.probes_per_line());
                new[visit.item / 64] |= u64::from(found != 0) << (visit.item % 64);
                free += found;
            }
            free
        };
        // Two batches by turns, by index: swapping them makes the compiler copy them for each hash.
        let mut batches = [[Visit::default(); VISITS]; 2];
        let (mut turn, mut num_asked, mut num_coming) = (0, 0, 0);
        let mut free = 0;
        for (item, &hash) in (start..).zip(hashes) {
            for i in 0..shape.lines_per_item() {
                let x = pick(hash, i);
                let line = line_index(x, num_lines).wrapping_sub(first);
                // The visit is always written, and kept only if its line is in the part: a branch would be mispredicted
                // half the time.
                batches[turn][num_coming % VISITS] = Visit { line, x, item };
                num_coming += usize::from(line < lines.len());
                if num_coming == VISITS {
                    batches[turn].iter().for_each(|visit| prefetch_index(&*lines, visit.line));
                    // These lines arrive while the bits of the lines asked for before are set.
                    turn ^= 1;
                    free += set(&batches[turn][..num_asked], lines);
                    (num_asked, num_coming) = (VISITS, 0);
                }
            }
        }
        free + set(&batches[turn ^ 1][..num_asked], lines) + set(&batches[turn][..num_coming], lines)
    }
}

impl<P: Probe, H: Iterator<Item = Hash128>, F: FnMut(P::Answer)> All<P, H, F> {
    #[inline(always)]
    fn run_ahead(self, shape: impl LineShape) {
        let All(mut probe, mut hashes, mut answer) = self;
        let mut waiting = [Hash128 { lo: 0, hi: 0 }; AHEAD];
        let len = fill(&mut waiting, &mut hashes);
        waiting[..len].iter().for_each(|&hash| ask(probe.lines(), hash, 0..shape.lines_per_item()));
        let mut oldest = 0;
        for hash in hashes {
            ask(probe.lines(), hash, 0..shape.lines_per_item());
            answer(probe.probe(std::mem::replace(&mut waiting[oldest % AHEAD], hash), shape));
            oldest += 1;
        }
        for i in oldest..oldest + len {
            answer(probe.probe(waiting[i % AHEAD], shape));
        }
    }

    #[inline(always)]
    fn run_chunked(self, shape: impl LineShape) {
        let All(mut probe, mut hashes, mut answer) = self;
        let mut chunk = [Hash128 { lo: 0, hi: 0 }; CHUNK];
        loop {
            let len = fill(&mut chunk, &mut hashes);
            let chunk = &chunk[..len];
            chunk.iter().for_each(|&hash| ask(probe.lines(), hash, 0..shape.lines_per_item()));
            chunk.iter().for_each(|&hash| answer(probe.probe(hash, shape)));
            if len < CHUNK {
                return;
            }
        }
    }
}

/// Distance in items between the test of an item's first line and its answer. In between, the item's other lines are
/// loaded, if they are needed. Free to change: nothing stored depends on it.
const LAG: usize = 8;

impl<W: Fn(&Line, u64, u32) -> bool> Seek<'_, W> {
    /// Looks up items in a bitmap that is too large for the cache. The majority of a chunk predicts the next chunk.
    /// Items expected to be present have all their lines prefetched. Items expected to be absent have only the first
    /// prefetched, since few of them have all their bits in it.
    #[inline(always)]
    fn run_first_lines_first(
        self,
        shape: impl LineShape,
        mut hashes: impl Iterator<Item = Hash128>,
        mut found: impl FnMut(bool),
    ) {
        let (first, rest, all) = (0..1, 1..shape.lines_per_item(), 0..shape.lines_per_item());
        let mut chunk = [Hash128 { lo: 0, hi: 0 }; CHUNK];
        let mut mostly_absent = true;
        loop {
            let len = fill(&mut chunk, &mut hashes);
            let chunk = &chunk[..len];
            // The mask of the items that have the bits of their first line, or of all lines. Either mask serves to
            // predict the next chunk.
            let mut has = 0u32;
            if mostly_absent {
                chunk.iter().for_each(|&hash| ask(self.lines, hash, first.clone()));
                for i in 0..len + LAG {
                    if i < len && self.has(chunk[i], first.clone(), shape) {
                        has |= 1 << i;
                        ask(self.lines, chunk[i], rest.clone());
                    }
                    // Answers come in between, so that the next first lines arrive meanwhile.
                    if let Some(i) = i.checked_sub(LAG) {
                        found(has >> i & 1 == 1 && self.has(chunk[i], rest.clone(), shape));
                    }
                }
            } else {
                chunk.iter().for_each(|&hash| ask(self.lines, hash, all.clone()));
                for (i, &hash) in chunk.iter().enumerate() {
                    let is_present = self.has(hash, all.clone(), shape);
                    has |= u32::from(is_present) << i;
                    found(is_present);
                }
            }
            if len < CHUNK {
                return;
            }
            mostly_absent = has.count_ones() < CHUNK as u32 / 2;
        }
    }
}

/// Prefetches the item's lines with the indices `which`.
#[inline(always)]
fn ask(lines: &[Line], hash: Hash128, which: Range<u32>) {
    for i in which {
        prefetch_index(lines, line_index(pick(hash, i), lines.len()));
    }
}
