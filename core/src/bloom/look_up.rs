//! Look-ups in a filter of many sub-filters.
//!
//! The positions of an item's bits in its first line are the same in every sub-filter; only the index of the line
//! differs. So one mask of these bits is compared with a line of each sub-filter in a group, without a branch. In a
//! full sub-filter, one line in thirty has all these bits set by chance. Only then are the item's other lines read.
//!
//! Nothing stored depends on the constants of this file.

use super::bitmap::Line;
#[cfg(target_arch = "x86_64")]
use super::lines::line::avx512;
use super::lines::line::{lay_out, line_index, places};
use super::lines::probe::{self, Candidates};
use super::sub_filter::SubFilter;
use crate::hash::{CHUNK, Chunk, Hash128, Marks, fill, fill_beside, first_marks, marked};
use multiversion::multiversion;
use multiversion::target::match_target;

/// The largest number of sub-filters that are searched together. Their lines should stay in the first-level cache.
const GROUP: usize = 8;

// The mask `Candidates` has a bit for each sub-filter of a group.
const _: () = assert!(NEWEST <= GROUP && GROUP <= Candidates::BITS as usize);

/// The bitmap of a filter's only sub-filter is prefetched if it has at least this many lines: 256 KiB. A smaller bitmap
/// fits into a second-level cache, where prefetching saves no time.
const FAR_FROM_LINES: usize = 4096;

/// The bitmaps of several sub-filters are prefetched only if together they have this many lines: 640 KiB, most of a
/// second-level cache.
const ALL_FAR_FROM_LINES: usize = 10_240;

/// In a filter with several sub-filters, a bitmap of fewer lines (less than 32 KiB) is not prefetched, because it stays
/// in a cache near the core.
const ONE_FAR_FROM_LINES: usize = 512;

/// If most items are expected to be present, this number of newest sub-filters, which hold most of the items, is looked
/// up first.
const NEWEST: usize = 4;

/// Whether most items of a list are expected to be in the filter. A wrong expectation only costs time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Expected {
    Absent,
    Present,
}

/// The outcome of [`screen_chunk`], the first step of a look-up.
struct Screened {
    found: Marks,
    /// The mask of the hashes that are undecided.
    open: Marks,
    /// The number of oldest sub-filters that are still to be searched for the undecided hashes.
    num_oldest: usize,
    /// For each undecided hash, the mask of the sub-filters that may contain it; unused for a single sub-filter.
    candidates: [Candidates; CHUNK],
}

impl Screened {
    fn found(found: Marks) -> Self {
        Screened { found, open: 0, candidates: [0; CHUNK], num_oldest: 0 }
    }
}

#[inline(always)]
fn is_classic(sub_filters: &[SubFilter]) -> bool {
    sub_filters.first().is_some_and(|one| one.spec.classic.is_some())
}

/// Returns the mask of the hashes, at most [`CHUNK`], that any of `sub_filters` may contain.
pub(super) fn look_up_chunk(sub_filters: &[SubFilter], hashes: &[Hash128], expected: Expected) -> Marks {
    resolve_chunk(sub_filters, hashes, &screen_chunk(sub_filters, hashes, expected))
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
    let (mut hashes, mut expected, mut screened) = (hashes.fuse(), Expected::Absent, Screened::found(0));
    let [before, chunk, next] = &mut [const { Chunk::new_const() }; 3];
    let (mut before, mut chunk, mut next) = (before, chunk, next);
    let mut answer = |chunk: &Chunk, marks: Marks, i: usize| found(chunk[i], marks >> i & 1 == 1);
    fill(chunk, &mut hashes);
    while !chunk.is_empty() {
        prefetch(sub_filters, chunk, first_marks(chunk.len()), expected);
        let marks = resolve_chunk(sub_filters, before, &screened);
        fill_beside(next, &mut hashes, (0..before.len()).map(|i| answer(before, marks, i)));
        screened = screen_chunk(sub_filters, chunk, expected);
        // The next chunk is most likely like this one. Undecided hashes count as found, because if there are many, most
        // are found later.
        let (likely, half) = (screened.found | screened.open, chunk.len() / 2);
        expected = if likely.count_ones() as usize > half { Expected::Present } else { Expected::Absent };
        (before, chunk, next) = (chunk, next, before);
    }
    let marks = resolve_chunk(sub_filters, before, &screened);
    (0..before.len()).for_each(|i| answer(before, marks, i));
}

/// Whether these sub-filters are so large that prefetching saves time.
pub(super) fn is_far(sub_filters: &[SubFilter]) -> bool {
    match sub_filters {
        [only] => only.lines().len() >= FAR_FROM_LINES,
        many => many.iter().map(|sub_filter| sub_filter.lines().len()).sum::<usize>() >= ALL_FAR_FROM_LINES,
    }
}

/// Prefetches the lines that a look-up reads first. For a single sub-filter and `Expected::Present` these are all lines
/// of an item, otherwise its first lines. RedisBloom-compatible sub-filters prefetch their bits themselves.
pub(super) fn prefetch(sub_filters: &[SubFilter], hashes: &[Hash128], pending: Marks, expected: Expected) {
    match sub_filters {
        _ if is_classic(sub_filters) || !is_far(sub_filters) => {}
        [only] => {
            let lines = if expected == Expected::Absent { 1 } else { only.spec.geometry.lines_per_item };
            marked(pending).for_each(|i| probe::prefetch(only.lines(), hashes[i], 0..lines));
        }
        many => groups(many, expected).take(1).for_each(|group| prefetch_first(group, hashes, pending)),
    }
}

/// Prefetches the first line of each hash in the mask `pending`, sub-filter by sub-filter: addresses in the same
/// sub-filter are translated faster, since they share a part of the page table.
fn prefetch_first(group: &[SubFilter], hashes: &[Hash128], pending: Marks) {
    for lines in group.iter().map(SubFilter::lines).filter(|lines| lines.len() >= ONE_FAR_FROM_LINES) {
        marked(pending).for_each(|i| probe::prefetch(lines, hashes[i], 0..1));
    }
}

/// The first step of a look-up, which tests the bits of each hash in its first line. If all are set, the hash may stay
/// undecided. Its other lines are then prefetched, and [`resolve_chunk`] tests them.
fn screen_chunk(sub_filters: &[SubFilter], hashes: &[Hash128], expected: Expected) -> Screened {
    match (sub_filters, hashes) {
        (_, [hash]) => Screened::found(look_up(sub_filters, *hash).into()),
        _ if is_classic(sub_filters) => {
            let all = first_marks(hashes.len());
            Screened::found(sub_filters.iter().rev().fold(0, |found, one| match all & !found {
                0 => found,
                pending => found | one.look_up_chunk(hashes, pending),
            }))
        }
        ([only], _) => screen_in_one(only, hashes, expected),
        _ => screen_groups(sub_filters, hashes, expected),
    }
}

/// The second step of a look-up: decides the undecided hashes. Returns the mask of all hashes that may be contained.
fn resolve_chunk(sub_filters: &[SubFilter], hashes: &[Hash128], screened: &Screened) -> Marks {
    let &Screened { found, open, num_oldest, ref candidates } = screened;
    if open == 0 {
        return found;
    }
    found
        | match &sub_filters[..num_oldest] {
            [only] => probe::contains_chunk(only.spec.item_shape(), only.lines(), hashes, open, true),
            group => contained(group, hashes, open, candidates),
        }
}

fn screen_in_one(only: &SubFilter, hashes: &[Hash128], expected: Expected) -> Screened {
    let (shape, lines) = (only.spec.item_shape(), only.lines());
    if lines.len() < FAR_FROM_LINES || expected == Expected::Present {
        return Screened::found(probe::contains_chunk(shape, lines, hashes, first_marks(hashes.len()), false));
    }
    // Only first lines are tested here: in its first line, nearly every absent item has a bit that is 0.
    let open = probe::screen_chunk(shape, lines, hashes);
    Screened { open, num_oldest: 1, ..Screened::found(0) }
}

/// The groups of sub-filters that are looked up together, newest first.
fn groups(sub_filters: &[SubFilter], expected: Expected) -> impl Iterator<Item = &[SubFilter]> {
    // In a filter without a window, later sub-filters are larger, and the newest hold most items. In a windowed filter,
    // most sub-filters are equally large. The sizes tell the two kinds apart. A mistake only costs time.
    let geometry = |one: &SubFilter| one.spec.geometry;
    let is_chain = sub_filters.first().map(geometry) != sub_filters.last().map(geometry);
    let apart = if expected == Expected::Present && is_chain { NEWEST } else { 0 };
    let (older, newest) = sub_filters.split_at(sub_filters.len().saturating_sub(apart));
    newest.chunks(NEWEST).chain(older.rchunks(GROUP))
}

/// The first step of a look-up in several sub-filters, in the order of [`groups`]. In the last group, the oldest, only
/// the first line of each hash is read. The hash's other lines are prefetched, and [`resolve_chunk`] reads them later.
fn screen_groups(sub_filters: &[SubFilter], hashes: &[Hash128], expected: Expected) -> Screened {
    let (all, mut screened) = (first_marks(hashes.len()), Screened::found(0));
    let mut far = None;
    let mut is_far = || *far.get_or_insert_with(|| is_far(sub_filters));
    let mut groups = groups(sub_filters, expected).peekable();
    while let Some(group) = groups.next() {
        let (pending, next) = (all & !screened.found, groups.peek());
        if pending == 0 {
            break;
        }
        if let (Some(next), Expected::Absent) = (next, expected)
            && is_far()
        {
            prefetch_first(next, hashes, pending);
        }
        screened.candidates = [0; CHUNK];
        let candidates = &mut screened.candidates;
        let passed = screen(group, hashes, pending, candidates);
        if is_far() {
            for i in marked(passed) {
                if let Some(newest) = newest(candidates[i]) {
                    let sub_filter = &group[newest];
                    probe::prefetch(sub_filter.lines(), hashes[i], 1..sub_filter.spec.geometry.lines_per_item);
                }
            }
        }
        let Some(next) = next else {
            // This was the last group. The hashes in `passed` stay undecided: `resolve_chunk` will test their other
            // lines.
            (screened.open, screened.num_oldest) = (passed, group.len());
            break;
        };
        if expected == Expected::Present && is_far() {
            // This group probably contains the hashes in `passed`, because all their bits in the first line are set.
            // The next group is prefetched only for the other hashes.
            prefetch_first(next, hashes, pending & !passed);
        }
        screened.found |= contained(group, hashes, passed, candidates);
    }
    screened
}

/// Returns the mask of the hashes in `pending` that a sub-filter of the group contains. For each hash, `candidates` has
/// the mask of the sub-filters to look in.
fn contained(group: &[SubFilter], hashes: &[Hash128], pending: Marks, candidates: &[Candidates; CHUNK]) -> Marks {
    let shape = group[0].spec.item_shape();
    if group.iter().all(|sub_filter| sub_filter.spec.item_shape() == shape) {
        probe::contains_rest_chunk(shape, &bitmaps(group), hashes, pending, candidates)
    } else {
        contained_in_uneven(group, hashes, pending, candidates)
    }
}

fn is_even(group: &[SubFilter]) -> bool {
    group.iter().all(|sub_filter| sub_filter.spec.geometry == group[0].spec.geometry)
}

/// The bitmaps of a group, filled up to [`GROUP`] with empty ones.
fn bitmaps(group: &[SubFilter]) -> [&[Line]; GROUP] {
    let mut bitmaps = [&[][..]; GROUP];
    bitmaps.iter_mut().zip(group).for_each(|(lines, sub_filter)| *lines = sub_filter.lines());
    bitmaps
}

/// Like [`contained`], for sub-filters with different numbers of lines or bits per item.
fn contained_in_uneven(
    group: &[SubFilter],
    hashes: &[Hash128],
    pending: Marks,
    candidates: &[Candidates; CHUNK],
) -> Marks {
    // For each sub-filter, the mask of the hashes that may be in it.
    let mut of_each = [0; GROUP];
    for i in marked(pending) {
        for which in marked(candidates[i].into()) {
            of_each[which] |= 1 << i;
        }
    }
    let (probes, mut found) = (common_probes(group), 0);
    for (sub_filter, hashes_of) in group.iter().zip(of_each).rev() {
        let left = hashes_of & !found;
        if left != 0 {
            let (shape, lines) = (sub_filter.spec.item_shape(), sub_filter.lines());
            let screened = sub_filter.spec.geometry.probes_per_line == probes;
            found |= probe::contains_chunk(shape, lines, hashes, left, screened);
        }
    }
    found
}

/// Whether the item of this hash may have been inserted in one of the sub-filters.
#[inline(always)]
pub(super) fn look_up(sub_filters: &[SubFilter], hash: Hash128) -> bool {
    match sub_filters {
        [only] => only.may_contain(hash),
        many => look_up_in_many(many, hash),
    }
}

fn look_up_in_many(sub_filters: &[SubFilter], hash: Hash128) -> bool {
    if is_classic(sub_filters) {
        // The newest sub-filter is the largest, so most items are in it.
        return sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash));
    }
    sub_filters.rchunks(GROUP).any(|group| {
        let mut candidates = [0; CHUNK];
        screen(group, &[hash], 1, &mut candidates);
        has_any(group, candidates[0], hash)
    })
}

/// Whether a sub-filter in the mask `candidates` may contain the item of this hash.
#[inline(always)]
fn has_any(group: &[SubFilter], mut candidates: Candidates, hash: Hash128) -> bool {
    while let Some(newest) = newest(candidates) {
        if group[newest].may_contain(hash) {
            return true;
        }
        candidates ^= 1 << newest;
    }
    false
}

fn newest(candidates: Candidates) -> Option<usize> {
    candidates.checked_ilog2().map(|newest| newest as usize)
}

/// Tests the first line of each hash in the mask `pending`, in each sub-filter. Writes to `candidates`, which is all 0
/// before, the mask of the sub-filters in which all bits there are set. Returns the mask of the hashes for which there
/// is such a sub-filter.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn screen(group: &[SubFilter], hashes: &[Hash128], pending: Marks, candidates: &mut [Candidates; CHUNK]) -> Marks {
    let (probes, is_even, bitmaps) = (common_probes(group), is_even(group), bitmaps(group));
    // `min` changes nothing, but lets the compiler unroll the loop over the bitmaps.
    let bitmaps = &bitmaps[..group.len().min(GROUP)];
    match_target! {
        "x86_64+avx512f" => {
            for i in marked(pending) {
                let spread = avx512::spread(places(hashes[i].lo), probes);
                candidates[i] = passed(bitmaps, is_even, hashes[i].lo, |line| avx512::has_all(line, spread));
            }
        },
        _ => {
            // The masks are written in one loop and read in another, because a wide load right after narrower stores to
            // the same address has to wait.
            let mut masks = [[0; 8]; CHUNK];
            marked(pending).for_each(|i| lay_out(&mut masks[i], places(hashes[i].lo), probes));
            for i in marked(pending) {
                candidates[i] = passed(bitmaps, is_even, hashes[i].lo, |line| line.has(&masks[i]));
            }
        },
    }
    (0..CHUNK).fold(0, |passed, i| passed | Marks::from(candidates[i] != 0) << i)
}

/// The smallest number of bits that an item sets in one line of these sub-filters. The first step tests only this
/// number of bits.
#[inline(always)]
fn common_probes(group: &[SubFilter]) -> u32 {
    group.iter().fold(u32::MAX, |least, sub_filter| least.min(sub_filter.spec.geometry.probes_per_line))
}

/// The mask of the bitmaps in which an item's first line passes the test `has_bits`. The index of the line follows from
/// `x`, a half of the item's hash, and from the size of the bitmap. If `is_even`, all bitmaps have the same size.
#[inline(always)]
fn passed(bitmaps: &[&[Line]], is_even: bool, x: u64, has_bits: impl Fn(&Line) -> bool) -> Candidates {
    let mut passed = 0;
    if is_even {
        let index = line_index(x, bitmaps.first().map_or(0, |lines| lines.len()));
        for (which, lines) in bitmaps.iter().enumerate() {
            passed |= Candidates::from(has_bits(&lines[index])) << which;
        }
    } else {
        for (which, lines) in bitmaps.iter().enumerate() {
            passed |= Candidates::from(has_bits(&lines[line_index(x, lines.len())])) << which;
        }
    }
    passed
}

#[cfg(test)]
mod tests;
