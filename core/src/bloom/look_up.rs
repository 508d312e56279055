//! Look-ups in a filter of any number of sub-filters.
//!
//! The positions of an item's bits in its first line are the same in every sub-filter; only the index of the line
//! differs. So one mask of these bits is compared with a line of each sub-filter, without a branch. In a full
//! sub-filter, one line in thirty has all these bits set by chance. Only then are the item's other lines read.
//!
//! Nothing stored depends on the constants of this file.

use super::bitmap::Line;
use super::lines::line::{lay_out, line_index, places};
use super::lines::probe;
use super::sub_filter::SubFilter;
use crate::hash::Hash128;
use crate::marks::{CHUNK, Chunk, Marks, fill, fill_beside, first_marks, marked};
use multiversion::multiversion;

/// The number of sub-filters whose lines are prefetched together. Their lines should stay in the first-level cache.
const GROUP: usize = 8;

/// A bitmap is prefetched if it has at least this many lines: 32 KiB, a first-level cache.
pub(super) const FAR_FROM_LINES: usize = 512;

/// The outcome of [`screen_chunk`], the first step of a look-up.
#[derive(Default)]
struct Screened {
    found: Marks,
    /// For each sub-filter of the oldest group, the mask of the hashes that it may contain.
    open: [Marks; GROUP],
}

/// Returns the mask of the hashes, at most [`CHUNK`], that any of `sub_filters` may contain.
pub(super) fn look_up_chunk(sub_filters: &[SubFilter], hashes: &[Hash128]) -> Marks {
    resolve_chunk(sub_filters, hashes, &screen_chunk(sub_filters, hashes))
}

/// Calls `found` with each hash and whether any of `sub_filters` may contain it, in order.
///
/// Each round works on chunks of up to 64 hashes:
/// 1. Prefetch the first lines of `chunk`, unless they are in a cache.
/// 2. Decide the hashes of `before`, the previous chunk, that the previous round left undecided.
/// 3. In turn, call `found` for a hash of `before` and hash an item of the chunk `next`. A processor overlaps both.
/// 4. Look up `chunk` in its first lines, and prefetch the other lines of the hashes that stay undecided.
pub(super) fn look_up_chunks(
    sub_filters: &[SubFilter],
    hashes: impl Iterator<Item = Hash128>,
    mut found: impl FnMut(Hash128, bool),
) {
    let (mut hashes, mut screened) = (hashes.fuse(), Screened::default());
    let [before, chunk, next] = &mut [const { Chunk::new_const() }; 3];
    let (mut before, mut chunk, mut next) = (before, chunk, next);
    let mut answer = |chunk: &Chunk, marks: Marks, i: usize| found(chunk[i], marks >> i & 1 == 1);
    fill(chunk, &mut hashes);
    while !chunk.is_empty() {
        prefetch_first(sub_filters, chunk);
        let marks = resolve_chunk(sub_filters, before, &screened);
        fill_beside(next, &mut hashes, (0..before.len()).map(|i| answer(before, marks, i)));
        screened = screen_chunk(sub_filters, chunk);
        (before, chunk, next) = (chunk, next, before);
    }
    let marks = resolve_chunk(sub_filters, before, &screened);
    (0..before.len()).for_each(|i| answer(before, marks, i));
}

/// Whether the item of this hash may have been inserted in one of the sub-filters.
#[inline(always)]
pub(super) fn look_up(sub_filters: &[SubFilter], hash: Hash128) -> bool {
    // The newest sub-filter is the largest, so most items are in it.
    sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
}

/// Prefetches the lines that a look-up reads first: the first lines of the hashes, in the newest sub-filters.
pub(super) fn prefetch_first(sub_filters: &[SubFilter], hashes: &[Hash128]) {
    let newest = sub_filters.rchunks(GROUP).next().unwrap_or_default();
    newest.iter().for_each(|one| prefetch(one, hashes, first_marks(hashes.len()), 0, 1));
}

/// Prefetches all lines of each hash in the mask `pending`, which inserting needs.
pub(super) fn prefetch_all(one: &SubFilter, hashes: &[Hash128], pending: Marks) {
    prefetch(one, hashes, pending, 0, one.spec.as_lines.lines_per_item);
}

/// Prefetches the lines from `from` to `to` of each hash in the mask `pending`, unless they are in a cache.
/// RedisBloom-compatible sub-filters prefetch their bits themselves.
fn prefetch(one: &SubFilter, hashes: &[Hash128], pending: Marks, from: u32, to: u32) {
    if one.spec.classic.is_none() && one.lines.len() >= FAR_FROM_LINES {
        marked(pending).for_each(|i| probe::prefetch(&one.lines, hashes[i], from..to));
    }
}

/// The first step of a look-up, newest sub-filters first. It tests the bits of each hash in its first lines. In the
/// oldest group, hashes with all bits set stay undecided: their other lines are prefetched, and [`resolve_chunk`] tests
/// these.
fn screen_chunk(sub_filters: &[SubFilter], hashes: &[Hash128]) -> Screened {
    let (all, mut screened) = (first_marks(hashes.len()), Screened::default());
    let mut groups = sub_filters.rchunks(GROUP).peekable();
    while let Some(group) = groups.next() {
        let pending = all & !screened.found;
        if let Some(next) = groups.peek() {
            next.iter().for_each(|one| prefetch(one, hashes, pending, 0, 1));
        }
        screened.open = screen(group, hashes, pending);
        let mut prefetched = 0;
        for (one, &passed) in group.iter().zip(&screened.open).rev() {
            prefetch(one, hashes, passed & !prefetched, 1, one.spec.as_lines.lines_per_item);
            prefetched |= passed;
        }
        if groups.peek().is_some() {
            screened.found |= contained(group, hashes, &screened.open);
        }
    }
    screened
}

/// The second step of a look-up: decides the undecided hashes. Returns the mask of all hashes that may be contained.
fn resolve_chunk(sub_filters: &[SubFilter], hashes: &[Hash128], screened: &Screened) -> Marks {
    let oldest = sub_filters.rchunks(GROUP).next_back().unwrap_or_default();
    screened.found | contained(oldest, hashes, &screened.open)
}

/// For each sub-filter of the group, the mask of the hashes, among those in `pending`, that it may contain.
fn screen(group: &[SubFilter], hashes: &[Hash128], pending: Marks) -> [Marks; GROUP] {
    let mut open = [0; GROUP];
    match group {
        [first, ..] if first.spec.classic.is_some() => {
            let mut left = pending;
            for (one, passed) in group.iter().zip(&mut open).rev() {
                *passed = one.look_up_chunk(hashes, left);
                left &= !*passed;
            }
        }
        [only] => open[0] = probe::screen_chunk(only.spec.item_shape(), &only.lines, hashes, pending),
        _ => {
            let (probes, mut masks) = (common_probes(group), [[0; 8]; CHUNK]);
            marked(pending).for_each(|i| lay_out(&mut masks[i], places(hashes[i].lo), probes));
            let (mut indexes, mut of_len) = ([0; CHUNK], 0);
            for (lines, passed) in group.iter().map(|one| &one.lines).zip(&mut open) {
                if of_len != lines.len() {
                    of_len = lines.len();
                    indexes.iter_mut().zip(hashes).for_each(|(index, hash)| *index = line_index(hash.lo, of_len));
                }
                *passed = compare(lines, &indexes, &masks, pending);
            }
        }
    }
    open
}

/// The mask of the hashes, among those in `pending`, of which all bits in `masks` are set in the line at their index.
#[cfg_attr(rollcall_no_avx512, multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt")))]
#[cfg_attr(
    not(rollcall_no_avx512),
    multiversion(targets(
        "x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt",
        "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
    ))
)]
fn compare(lines: &[Line], indexes: &[usize; CHUNK], masks: &[[u64; 8]; CHUNK], pending: Marks) -> Marks {
    marked(pending).fold(0, |passed, i| passed | Marks::from(lines[indexes[i]].has(&masks[i])) << i)
}

/// The mask of the hashes that any sub-filter of the group may contain, of those that passed [`screen`].
fn contained(group: &[SubFilter], hashes: &[Hash128], open: &[Marks; GROUP]) -> Marks {
    let (probes, mut found) = (common_probes(group), 0);
    // The newest sub-filter is looked up first, because its lines were prefetched.
    for (one, passed) in group.iter().zip(open).rev() {
        let left = passed & !found;
        if left != 0 {
            found |= match one.spec.classic {
                Some(_) => left,
                None if one.spec.item_shape() == (1, probes) => left,
                None => {
                    let screened = one.spec.as_lines.probes_per_line == probes;
                    probe::contains_chunk(one.spec.item_shape(), &one.lines, hashes, left, screened)
                }
            };
        }
    }
    found
}

/// The smallest number of bits that an item sets in one line of these sub-filters. [`screen`] tests only this number of
/// bits.
fn common_probes(group: &[SubFilter]) -> u32 {
    group.iter().map(|one| one.spec.as_lines.probes_per_line).min().unwrap_or(0)
}

#[cfg(test)]
mod tests;
