//! Look-ups in a filter of many sub-filters, at a cost of little more than one comparison per sub-filter.
//!
//! An item has bits in one or more lines of 512 bits. The positions of the bits in its first line are the same in every
//! sub-filter. Only the index of this line depends on the size of the sub-filter. So a mask of these bits is made once
//! for a group of sub-filters, and compared with one line of each sub-filter. The comparison has no branch, because a
//! mispredicted branch would cost more than a comparison. In a full sub-filter, about one line in thirty matches by
//! chance. The other lines of the item are read only in sub-filters that match.
//!
//! The constants of this file may be changed: nothing stored depends on them.

use super::bitmap::Line;
#[cfg(target_arch = "x86_64")]
use super::lines::line::avx512;
use super::lines::line::{lay_out, line_index, places};
use super::lines::probe::{self, Candidates};
use super::sub_filter::SubFilter;
use crate::hash::{CHUNK, Chunk, Hash128, Marks, fill, fill_beside, first_marks, marked};
use multiversion::multiversion;
use multiversion::target::match_target;

/// The largest number of sub-filters in a group: an item's first lines in all of them are compared in one step. A
/// window of up to seven slices, with eight generations, is one group. A larger number means fewer groups, and each
/// group costs time. But the lines of a group should stay in the first-level cache.
const GROUP: usize = 8;

// A group has at most `GROUP` sub-filters, and the mask `Candidates` has a bit for each.
const _: () = assert!(NEWEST <= GROUP && GROUP <= Candidates::BITS as usize);

/// A single bitmap of at least this number of lines, 256 KiB, is prefetched. Smaller bitmaps fit into a second-level
/// cache, and a core overlaps loads from there by itself.
const FAR_FROM_LINES: usize = 4096;

/// Several bitmaps with at least this number of lines in all, 640 KiB, are prefetched. They fill most of a second-level
/// cache.
const ALL_FAR_FROM_LINES: usize = 10_240;

/// One of several bitmaps is prefetched if it has at least this number of lines, 32 KiB. Smaller bitmaps stay in a
/// cache near the core while a list of items is looked up.
const ONE_FAR_FROM_LINES: usize = 512;

/// If most items are expected to be present, this number of sub-filters is looked up first: the newest, which hold most
/// of the items.
const NEWEST: usize = 4;

/// Whether most items of a list are expected to be in the filter. A wrong expectation costs time but changes no answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Expected {
    Absent,
    Present,
}

/// The outcome of [`screen_chunk`], the first step of a look-up, for up to 64 hashes.
struct Screened {
    found: Marks,
    /// The mask of the hashes that are undecided.
    open: Marks,
    /// The number of sub-filters, from the oldest on, that may contain undecided hashes.
    num_oldest: usize,
    /// For each undecided hash, the mask of the sub-filters that may contain it. It is not used if there is a single
    /// sub-filter.
    candidates: [Candidates; CHUNK],
}

impl Screened {
    /// The outcome of a look-up that left no hash undecided.
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
/// 3. Call `found` for `before` and hash the chunk `next`, item by item in turn, so that a processor overlaps both.
/// 4. Compare the first lines of `chunk`, and prefetch the other lines of the hashes that stay undecided.
///
/// All prefetches of a chunk follow each other closely, because a processor then looks up the addresses of several
/// pages at a time.
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
        // The next chunk of hashes is most likely like this one. An undecided hash counts as found: if many are
        // undecided, most of them are found later.
        let (likely, half) = (screened.found | screened.open, chunk.len() / 2);
        expected = if likely.count_ones() as usize > half { Expected::Present } else { Expected::Absent };
        (before, chunk, next) = (chunk, next, before);
    }
    let marks = resolve_chunk(sub_filters, before, &screened);
    (0..before.len()).for_each(|i| answer(before, marks, i));
}

/// Whether these sub-filters are so large that their lines should be prefetched before a look-up.
pub(super) fn is_far(sub_filters: &[SubFilter]) -> bool {
    match sub_filters {
        [only] => only.lines().len() >= FAR_FROM_LINES,
        many => many.iter().map(|sub_filter| sub_filter.lines().len()).sum::<usize>() >= ALL_FAR_FROM_LINES,
    }
}

/// Prefetches the lines that [`look_up_chunk`] reads first for the hashes in the mask `pending`, unless the lines are
/// in a cache. These are the first lines of the hashes. For a single sub-filter and `Expected::Present`, all lines are
/// prefetched: [`SubFilter::insert_chunk`] and look-ups of present items read all of them. RedisBloom-compatible
/// sub-filters prefetch their bits themselves.
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

/// Prefetches the first line of each hash in the mask `pending`, in each sub-filter that is not small. All lines of one
/// sub-filter are prefetched before those of the next. The processor then finds the addresses of pages faster, because
/// they are in one part of the page table.
fn prefetch_first(group: &[SubFilter], hashes: &[Hash128], pending: Marks) {
    for lines in group.iter().map(SubFilter::lines).filter(|lines| lines.len() >= ONE_FAR_FROM_LINES) {
        marked(pending).for_each(|i| probe::prefetch(lines, hashes[i], 0..1));
    }
}

/// The first step of a look-up: compares the first lines of the hashes, at most [`CHUNK`], in all sub-filters. Some
/// hashes may stay undecided. The lines that [`resolve_chunk`] reads for them are prefetched.
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

/// The second step of a look-up, after `screen_chunk`. Returns the mask of the hashes that any of the sub-filters may
/// contain.
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
    // Few absent items have all bits of their first line set. So few hashes are undecided after this.
    let open = probe::screen_chunk(shape, lines, hashes);
    Screened { open, num_oldest: 1, ..Screened::found(0) }
}

/// The groups of sub-filters that are looked up together, newest first.
fn groups(sub_filters: &[SubFilter], expected: Expected) -> impl Iterator<Item = &[SubFilter]> {
    // Without a window, most items are in the newest sub-filters. In a windowed filter, items are spread evenly over
    // the sub-filters, which all have one size unless a slice has several. Comparing the sizes of the oldest and the
    // newest sub-filter distinguishes the two cases well enough, since a wrong guess costs only time.
    let geometry = |one: &SubFilter| one.spec.geometry;
    let is_chain = sub_filters.first().map(geometry) != sub_filters.last().map(geometry);
    let apart = if expected == Expected::Present && is_chain { NEWEST } else { 0 };
    let (older, newest) = sub_filters.split_at(sub_filters.len().saturating_sub(apart));
    newest.chunks(NEWEST).chain(older.rchunks(GROUP))
}

/// The first step of a look-up in several sub-filters, group after group, newest first. A hash that is found is not
/// looked up in older groups. In the oldest group only the first line of each hash is compared. The hashes that match
/// stay undecided (`open`) for [`resolve_chunk`], and their other lines are fetched from memory meanwhile.
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
            // No group is left. `resolve_chunk` will decide about the hashes whose first line matches in this group,
            // the oldest.
            (screened.open, screened.num_oldest) = (passed, group.len());
            break;
        };
        if expected == Expected::Present && is_far() {
            // Most of the hashes whose first line matches will be found in this group. So lines of the next group are
            // prefetched only for the other hashes.
            prefetch_first(next, hashes, pending & !passed);
        }
        screened.found |= contained(group, hashes, passed, candidates);
    }
    screened
}

/// Returns the mask of the hashes in `pending` that are in a sub-filter of the group. For each hash, `candidates` has
/// the mask of the sub-filters to look in.
fn contained(group: &[SubFilter], hashes: &[Hash128], pending: Marks, candidates: &[Candidates; CHUNK]) -> Marks {
    let shape = group[0].spec.item_shape();
    if group.iter().all(|sub_filter| sub_filter.spec.item_shape() == shape) {
        probe::contains_rest_chunk(shape, &bitmaps(group), hashes, pending, candidates)
    } else {
        contained_in_uneven(group, hashes, pending, candidates)
    }
}

/// Whether all sub-filters of a group have the same size.
fn is_even(group: &[SubFilter]) -> bool {
    group.iter().all(|sub_filter| sub_filter.spec.geometry == group[0].spec.geometry)
}

/// The bitmaps of a group, filled up with empty bitmaps to [`GROUP`].
fn bitmaps(group: &[SubFilter]) -> [&[Line]; GROUP] {
    let mut bitmaps = [&[][..]; GROUP];
    bitmaps.iter_mut().zip(group).for_each(|(lines, sub_filter)| *lines = sub_filter.lines());
    bitmaps
}

/// Does the same as [`contained`] for sub-filters with different numbers of lines or bits per item. All hashes that may
/// be in one sub-filter are looked up there in one call.
fn contained_in_uneven(
    group: &[SubFilter],
    hashes: &[Hash128],
    pending: Marks,
    candidates: &[Candidates; CHUNK],
) -> Marks {
    // For each sub-filter, this has the mask of the hashes that may be in it.
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
        // The newest sub-filter is looked up first. It is the largest, so most items of the filter are in it.
        return sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash));
    }
    sub_filters.rchunks(GROUP).any(|group| {
        let mut candidates = [0; CHUNK];
        screen(group, &[hash], 1, &mut candidates);
        has_any(group, candidates[0], hash)
    })
}

/// Whether one of the sub-filters in the mask `candidates` may contain the item of this hash, newest first.
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

/// The index of the newest sub-filter in the mask.
fn newest(candidates: Candidates) -> Option<usize> {
    candidates.checked_ilog2().map(|newest| newest as usize)
}

/// Compares the first line of each hash in the mask `pending` in all sub-filters of the group. Writes to `candidates`
/// (all 0 before) the mask of the sub-filters in which all bits of the hash in this line are set. Returns the mask of
/// the hashes that match in any sub-filter.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn screen(group: &[SubFilter], hashes: &[Hash128], pending: Marks, candidates: &mut [Candidates; CHUNK]) -> Marks {
    let (probes, is_even, bitmaps) = (common_probes(group), is_even(group), bitmaps(group));
    // No group is larger than `GROUP`, so `min` changes nothing. But it tells the compiler an upper bound, so that it
    // unrolls the loop over the bitmaps.
    let bitmaps = &bitmaps[..group.len().min(GROUP)];
    match_target! {
        "x86_64+avx512f" => {
            for i in marked(pending) {
                let spread = avx512::spread(places(hashes[i].lo), probes);
                candidates[i] = passed(bitmaps, is_even, hashes[i].lo, |line| avx512::has_all(line, spread));
            }
        },
        _ => {
            // The masks are written in one loop and read in another. A wide load right after several 64-bit stores to
            // the same address would have to wait for these stores.
            let mut masks = [[0; 8]; CHUNK];
            marked(pending).for_each(|i| lay_out(&mut masks[i], places(hashes[i].lo), probes));
            for i in marked(pending) {
                candidates[i] = passed(bitmaps, is_even, hashes[i].lo, |line| line.has(&masks[i]));
            }
        },
    }
    (0..CHUNK).fold(0, |passed, i| passed | Marks::from(candidates[i] != 0) << i)
}

/// The smallest number of bits per line among these sub-filters. In a sub-filter with more bits per line, the remaining
/// bits are compared later.
#[inline(always)]
fn common_probes(group: &[SubFilter]) -> u32 {
    group.iter().fold(u32::MAX, |least, sub_filter| least.min(sub_filter.spec.geometry.probes_per_line))
}

/// The mask of the bitmaps in which `has_bits` returns true for an item's first line, whose index is derived from `x`.
/// If `is_even` is true, all bitmaps have the same size, so the line has the same index in all of them.
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
