//! Look-ups in a long chain, for little more than one comparison per sub-filter.
//!
//! The bits of an item within its first line are the same in every sub-filter; only the index of that line depends on
//! the size. So the bits are laid out once as a mask for many sub-filters, and one line of each sub-filter is compared
//! with the mask. The comparison has no branch: which sub-filters match cannot be predicted, and a mispredicted branch
//! costs more than a comparison. In full sub-filters about one line in thirty passes by chance. Only sub-filters that
//! pass are looked up in full.

use super::super::bitmap::Line;
use super::super::chain::{Expected, SubFilter};
#[cfg(target_arch = "x86_64")]
use super::line::avx512;
use super::line::{lay_out, line_index, places};
use super::probe;
use super::sub_filter::LineSubFilter;
use crate::hash::{CHUNK, Hash128, first_marks, marked};
#[cfg(target_arch = "x86_64")]
use bytemuck::cast;
use multiversion::multiversion;
use multiversion::target::match_target;

/// The number of sub-filters that are screened together. The lines of a chunk in five sub-filters are about the number
/// of cache misses that a core has in flight. Items found in the newest group, which holds most items, are not looked
/// up in the others. Free to change: nothing stored depends on it.
const GROUP: usize = 5;

/// The size from which few lines are looked at rather than all at once, in lines: 2 MiB, about what a second-level cache
/// holds. Free to change: nothing stored depends on it.
const FAR_FROM_LINES: usize = 32 << 10;

/// The number of sub-filters that are screened first if most items are expected to be present: the newest, which hold
/// most of the items. Free to change: nothing stored depends on it.
const NEWEST: usize = 3;

/// Returns the mask of the hashes, at most [`CHUNK`], that may have been inserted in any of the sub-filters. `expected`
/// is a hint: a wrong hint costs time but changes no answer.
pub(super) fn look_up_chunk(sub_filters: &[LineSubFilter], hashes: &[Hash128], expected: Expected) -> u32 {
    match sub_filters {
        [only] => probe::contains_chunk(only.shape(), only.lines(), hashes, first_marks(hashes.len()), expected),
        // Mostly one group, so no masks are kept for another.
        few if few.len() <= GROUP => look_up_groups(few, hashes, expected, screen, contained),
        _ => {
            let mut masks = Masks { probes: 0, bits: [[0; 8]; CHUNK] };
            let screen = |group: &[LineSubFilter], hashes: &[Hash128], pending, candidates: &mut _| {
                screen_with(&mut masks, group, hashes, pending, candidates);
            };
            look_up_groups(sub_filters, hashes, expected, screen, contained)
        }
    }
}

/// Returns the same mask as [`look_up_chunk`], and is faster if all sub-filters have one size, as the generations of a
/// windowed filter usually have: an item then has the same lines in each sub-filter.
pub(in crate::bloom) fn look_up_chunk_in_even(
    sub_filters: &[LineSubFilter],
    hashes: &[Hash128],
    expected: Expected,
) -> u32 {
    let is_even = |pair: &[LineSubFilter]| pair[0].geometry() == pair[1].geometry();
    let Some(first) = sub_filters.first() else { return 0 };
    if !sub_filters.windows(2).all(is_even) {
        // The newest are not screened first, since present items are in all sub-filters alike.
        return look_up_chunk(sub_filters, hashes, Expected::Absent);
    }
    // In bitmaps from 2 MiB on each line counts, and present items are found before the oldest sub-filters are asked. In
    // smaller ones it is faster to ask all sub-filters at once.
    let expected = if first.lines().len() >= FAR_FROM_LINES { expected } else { Expected::Absent };
    look_up_groups(sub_filters, hashes, expected, screen, contained_in_even)
}

/// Queries one group of sub-filters after another. `screen` finds the candidates: the sub-filters that have the bits of
/// an item in its first line. `contained` returns the mask of the hashes that are in any of their candidates.
#[inline(always)]
fn look_up_groups(
    sub_filters: &[LineSubFilter],
    hashes: &[Hash128],
    expected: Expected,
    mut screen: impl FnMut(&[LineSubFilter], &[Hash128], u32, &mut [u32; CHUNK]),
    contained: impl Fn(&[LineSubFilter], &[Hash128], u32, &[u32; CHUNK]) -> u32,
) -> u32 {
    let (all, mut found) = (first_marks(hashes.len()), 0);
    let apart = if expected == Expected::Present { NEWEST } else { 0 };
    let (older, newest_ones) = sub_filters.split_at(sub_filters.len().saturating_sub(apart));
    let ask = |group: &[LineSubFilter], pending: u32| {
        if group.iter().any(LineSubFilter::is_large) {
            // Item by item, the order in which the loop with AVX-512 compares the lines.
            for i in marked(pending) {
                group.iter().for_each(|sub_filter| probe::prefetch(sub_filter.lines(), hashes[i], 0..1));
            }
        }
    };
    let mut groups = newest_ones.chunks(NEWEST).chain(older.rchunks(GROUP)).peekable();
    let mut has_asked = false;
    while let Some(group) = groups.next() {
        let pending = all & !found;
        if pending == 0 {
            break;
        }
        if !has_asked {
            ask(group, pending);
        }
        // The lines of the next group arrive while this one is screened, unless most items will be found in this one.
        has_asked = expected == Expected::Absent;
        if let Some(next) = groups.peek().filter(|_| has_asked) {
            ask(next, pending);
        }
        let mut candidates = [0; CHUNK];
        screen(group, hashes, pending, &mut candidates);
        if group.last().is_some_and(LineSubFilter::is_large) {
            for i in marked(pending) {
                if let Some(newest) = newest(candidates[i]) {
                    let sub_filter = &group[newest];
                    probe::prefetch(sub_filter.lines(), hashes[i], 0..sub_filter.geometry().lines_per_item);
                }
            }
        }
        found |= contained(group, hashes, pending, &candidates);
    }
    found
}

/// Returns the mask of those hashes of `pending` that are in any of their candidates.
fn contained(group: &[LineSubFilter], hashes: &[Hash128], pending: u32, candidates: &[u32; CHUNK]) -> u32 {
    let is_contained = |&i: &usize| has_any(group, candidates[i], hashes[i]);
    marked(pending).filter(is_contained).fold(0, |found, i| found | 1 << i)
}

/// Returns the same mask as [`contained`], if all sub-filters of the group have one size.
fn contained_in_even(group: &[LineSubFilter], hashes: &[Hash128], pending: u32, candidates: &[u32; CHUNK]) -> u32 {
    let mut bitmaps = [&[][..]; GROUP];
    bitmaps.iter_mut().zip(group).for_each(|(lines, sub_filter)| *lines = sub_filter.lines());
    probe::contains_rest_chunk(group[0].shape(), &bitmaps, hashes, pending, candidates)
}

/// Whether the item of this hash may have been inserted in one of the sub-filters.
#[inline(always)]
pub(super) fn look_up(sub_filters: &[LineSubFilter], hash: Hash128) -> bool {
    match sub_filters {
        [only] => only.may_contain(hash),
        many => look_up_in_many(many, hash),
    }
}

fn look_up_in_many(sub_filters: &[LineSubFilter], hash: Hash128) -> bool {
    sub_filters.rchunks(GROUP).any(|group| has_any(group, screen_one(group, hash), hash))
}

/// Whether one of the sub-filters in the mask `candidates` may contain the item of this hash, newest first.
#[inline(always)]
fn has_any(group: &[LineSubFilter], mut candidates: u32, hash: Hash128) -> bool {
    while let Some(newest) = newest(candidates) {
        if group[newest].may_contain(hash) {
            return true;
        }
        candidates ^= 1 << newest;
    }
    false
}

/// The index of the newest sub-filter in the mask; `None` if the mask is empty.
fn newest(candidates: u32) -> Option<usize> {
    candidates.checked_ilog2().map(|newest| newest as usize)
}

/// The bits that each hash of a chunk has in its first line, with `probes` bits per line.
struct Masks {
    probes: u32,
    bits: [[u64; 8]; CHUNK],
}

impl Masks {
    /// Computes the masks of the hashes with `lay_out`, unless the current masks are for this number of probes. The
    /// masks are written in place: a copy would wait for narrow stores.
    #[inline(always)]
    fn make(&mut self, hashes: &[Hash128], probes: u32, lay_out: impl Fn(&mut [u64; 8], u64)) {
        if self.probes != probes {
            self.probes = probes;
            self.bits.iter_mut().zip(hashes).for_each(|(bits, hash)| lay_out(bits, places(hash.lo)));
        }
    }
}

/// For each hash in the mask `pending`, writes to `candidates` the mask of the sub-filters in which the first line of
/// the hash has the bits of the hash.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn screen(group: &[LineSubFilter], hashes: &[Hash128], pending: u32, candidates: &mut [u32; CHUNK]) {
    let probes = common_probes(group);
    match_target! {
        "x86_64+avx512f" => {
            for i in marked(pending) {
                let bits = avx512::lay_out(places(hashes[i].lo), probes);
                candidates[i] = passed(group, hashes[i].lo, |line| avx512::has_all(line, bits));
            }
        },
        _ => {
            // Two loops: store forwarding fails for wide loads right after stores of 64 bits.
            let mut masks = [[0; 8]; CHUNK];
            masks.iter_mut().zip(hashes).for_each(|(bits, hash)| lay_out(bits, places(hash.lo), probes));
            let is_whole = pending == first_marks(hashes.len());
            for (which, sub_filter) in group.iter().enumerate() {
                let lines = sub_filter.lines();
                let compare = |i: usize| {
                    let line = &lines[line_index(hashes[i].lo, lines.len())];
                    candidates[i] |= u32::from(line.has(&masks[i])) << which;
                };
                if is_whole {
                    (0..hashes.len().min(CHUNK)).for_each(compare);
                } else {
                    marked(pending).for_each(compare);
                }
            }
        },
    }
}

/// Does the same as [`screen`] with masks that are kept for the next group.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn screen_with(
    masks: &mut Masks,
    group: &[LineSubFilter],
    hashes: &[Hash128],
    pending: u32,
    candidates: &mut [u32; CHUNK],
) {
    let probes = common_probes(group);
    match_target! {
        "x86_64+avx512f" => {
            masks.make(hashes, probes, |bits, places| *bits = cast(avx512::lay_out(places, probes)));
            for i in marked(pending) {
                let bits = cast(masks.bits[i]);
                candidates[i] = passed(group, hashes[i].lo, |line| avx512::has_all(line, bits));
            }
        },
        _ => {
            masks.make(hashes, probes, |bits, places| lay_out_anew(bits, places, probes));
            for i in marked(pending) {
                candidates[i] = passed(group, hashes[i].lo, |line| line.has(&masks.bits[i]));
            }
        },
    }
}

/// The mask of the sub-filters in which the first line of this hash has the bits of the hash.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn screen_one(group: &[LineSubFilter], hash: Hash128) -> u32 {
    let (places, probes) = (places(hash.lo), common_probes(group));
    match_target! {
        "x86_64+avx512f" => {
            let bits = avx512::lay_out(places, probes);
            passed(group, hash.lo, |line| avx512::has_all(line, bits))
        },
        _ => {
            let mut bits = [0; 8];
            lay_out(&mut bits, places, probes);
            passed(group, hash.lo, |line| line.has(&bits))
        },
    }
}

/// Clears `bits`, then does the same as [`lay_out`].
#[inline(always)]
fn lay_out_anew(bits: &mut [u64; 8], places: u64, probes: u32) {
    *bits = [0; 8];
    lay_out(bits, places, probes);
}

/// The smallest number of bits per line among these sub-filters. In sub-filters with more bits per line, the remaining
/// bits are compared later.
#[inline(always)]
fn common_probes(group: &[LineSubFilter]) -> u32 {
    group.iter().fold(u32::MAX, |least, sub_filter| least.min(sub_filter.geometry().probes_per_line))
}

/// The mask of the sub-filters in which `has_bits` returns true for the line that the number `x` selects.
#[inline(always)]
fn passed(group: &[LineSubFilter], x: u64, has_bits: impl Fn(&Line) -> bool) -> u32 {
    let mut passed = 0;
    for (index, sub_filter) in group.iter().enumerate() {
        let lines = sub_filter.lines();
        passed |= u32::from(has_bits(&lines[line_index(x, lines.len())])) << index;
    }
    passed
}
