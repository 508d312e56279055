//! Unions and differences of counters.
//!
//! The answer is exact if every counter that has members is exact. Otherwise the counters that have bits are folded to
//! the finest layout common to them, in which the union is the OR of the bits. Exact members are hashed into that
//! layout, whatever layout their own counter has, so that an exact counter never coarsens the others.

use crate::bits;
use crate::counting::counter::{Counter, Shaped};
use crate::counting::estimate::{Estimated, Segments, UNEVEN, unseen_variance};
use crate::counting::held::Held;
use crate::counting::held::words::zeroed_words;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::sets::check_seeds;
use crate::counting::sets::lists::{diff, union};
use crate::counting::view::{View, with_plain};
use crate::error::Error;
use crate::size_limit::{try_collect, try_with_capacity};
use crate::window::Time;

/// The number of words of a union that are computed at a time. They take 16 KiB, which stay in the nearest cache while
/// bitmap after bitmap is ORed into them.
const BLOCK_WORDS: usize = 2048;

/// The number of distinct members of all views together, with its standard error. The standard error is 0 if every view
/// with members is exact. The number is at least the lower bound of each view.
///
/// ```
/// use rollcall_core::counting::{Counter, inter_card, union_card};
/// use rollcall_core::window::Time;
///
/// let june: Counter = ["ann", "ben"].into_iter().collect();
/// let july: Counter = ["ben", "cem"].into_iter().collect();
/// let both = [june.at(Time::Reached), july.at(Time::Reached)];
/// assert_eq!((union_card(&both)?.count(), inter_card(&both)?.count()), (3, 1));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Incompatible`] when seeds differ, [`Error::OutOfMemory`].
pub fn union_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    if let [only] = views {
        return Ok(only.estimated());
    }
    with_plain(views, |counters| {
        check_seeds(counters.iter().copied())?;
        let Some(layout) = layout_of_bits(counters) else {
            return Ok(Estimated::exact(union(&exact_views(counters)?)?.len()));
        };
        let (counts, _) = layered_counts(layout, counters, None)?;
        let segments = Segments::new(layout, &counts);
        let lower_bound = counters.iter().map(|counter| counter.lower_bound()).max().unwrap_or(0);
        Ok(segments.reported(segments.estimate().max(f64::from(lower_bound))))
    })
}

/// The number of members of the first view that are in none of the other views, with its standard error. The number is
/// 0 without views.
///
/// Let B be the union of the others. Members of the difference can only be seen in slots that B left free, and members
/// of B never fall there. So these slots are a bitmap of the difference alone, over a part of the hash space. The
/// estimate and its standard error are computed as for any bitmap ([`Segments`]). With one segment the estimate equals
/// |A or B| - |B|, each by linear counting; with several segments it is more accurate, and it is never negative.
///
/// The standard error includes some members that were not seen: if B left few slots free, seeing no member does not
/// prove that the difference is empty.
///
/// If B is empty, the answer is the count of the first view.
///
/// # Errors
/// The errors of [`union_card`].
pub fn diff_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    with_plain(views, |counters| {
        check_seeds(counters.iter().copied())?;
        let Some((&first, others)) = counters.split_first().filter(|(first, _)| first.count() > 0) else {
            return Ok(Estimated::exact(0));
        };
        // Only the count of the first view knows its lower bound.
        if others.iter().all(|other| other.count() == 0) {
            return Ok(first.estimated());
        }
        let Some(layout) = layout_of_bits(counters) else {
            return Ok(Estimated::exact(diff(&exact_views(counters)?)?.len()));
        };
        let (base, union) = layered_counts(layout, others, Some(first))?;
        let segments = Segments::beyond(layout, &base, &union);
        let estimate = segments.estimate();
        let error = segments.standard_error(estimate);
        let variance = error * error + unseen_variance(segments.share()) + UNEVEN;
        // The difference has at most the members of the first view, whose number is known while it is exact.
        let most = if first.is_exact() { first.estimate() } else { f64::INFINITY };
        let reported = Estimated::rounded(estimate.min(most), variance);
        Ok(Estimated { standard_error: reported.standard_error.min(most), ..reported })
    })
}

/// Views of the exact counters, if all other counters are empty.
pub(in crate::counting) fn exact_views<'a>(counters: &[&'a Counter]) -> Result<Vec<View<'a>>, Error> {
    let exact = counters.iter().filter(|counter| counter.is_exact());
    try_collect(counters.len(), exact.map(|counter| counter.at(Time::Reached)))
}

impl Counter {
    /// Whether the counter has bits, so that its layout matters.
    pub(super) fn has_bits(&self) -> bool {
        !self.is_exact() && self.set_bits() > 0
    }

    /// Folds the set slots to the layout `to`, and ORs them into `words`, a bitmap of this layout. Exact members are
    /// hashed into the bitmap. The counter has no window.
    pub(in crate::counting) fn or_into(&self, to: Layout, words: &mut [u64]) {
        match self.words() {
            // An empty bitmap needs no layout that folds.
            Some(own) if self.has_bits() => self.layout().or_folded(own, to, words),
            _ => self.for_each_position(to, &mut |index| _ = bits::set(words, index as usize)),
        }
    }

    /// Calls `visit` with each set slot, folded to the layout `to`. A slot may come more than once.
    fn for_each_position(&self, to: Layout, visit: &mut dyn FnMut(u64)) {
        match self.plain() {
            Some(Held::Estimating(bitmap)) => bitmap.for_each_folded(to, &mut |index, ()| visit(index)),
            Some(Held::Exact(members)) => {
                members.hashed(self.params().seed).for_each(|(hash, ..)| visit(to.slot_of(hash).index));
            }
            None => {}
        }
    }

    /// The most slots that [`Self::or_into`] sets.
    fn most_slots(&self) -> u64 {
        self.plain().map_or(0, Held::most_slots)
    }

    /// The words of the bitmap; `None` unless it is dense.
    fn words(&self) -> Option<&[u64]> {
        self.plain()?.bitmap()?.words()
    }

    /// The words of the bitmap; `None` unless it is dense and has this layout.
    pub(in crate::counting) fn words_at(&self, layout: Layout) -> Option<&[u64]> {
        self.words().filter(|_| self.layout() == layout)
    }
}

/// The finest layout to which the bitmaps of all counters can be folded; `None` if no counter has a set bit.
pub(in crate::counting) fn layout_of_bits(counters: &[&Counter]) -> Option<Layout> {
    let layouts = counters.iter().filter(|counter| counter.has_bits()).map(|counter| counter.layout());
    layouts.reduce(Layout::common)
}

/// The numbers of set slots in the union of `base`, and in the union of `base` and `top`. Without `top` both are equal.
fn layered_counts(
    layout: Layout,
    base: &[&Counter],
    top: Option<&Counter>,
) -> Result<(SegmentCounts, SegmentCounts), Error> {
    let words = try_collect(base.len(), base.iter().filter_map(|counter| counter.words_at(layout)))?;
    let top_words = top.and_then(|counter| counter.words_at(layout));
    if words.len() == base.len() && top_words.is_some() == top.is_some() {
        return Ok(counts_by_block(layout, &words, top_words));
    }

    let (mut base_counts, mut counts) = (SegmentCounts::default(), SegmentCounts::default());
    if has_few_slots(layout, base.iter().copied().chain(top)) {
        let sets = base.iter().map(|&counter| (counter, 1)).chain(top.map(|counter| (counter, 2)));
        for_each_slot(layout, sets, |segment, marks| {
            base_counts.add(segment, marks & 1);
            counts.add(segment, 1);
        })?;
        return Ok((base_counts, counts));
    }
    let mut words = zeroed_words(layout)?;
    base.iter().for_each(|counter| counter.or_into(layout, &mut words));
    base_counts.add_words(layout, 0, &words);
    let Some(top) = top else { return Ok((base_counts, base_counts)) };
    top.or_into(layout, &mut words);
    counts.add_words(layout, 0, &words);
    Ok((base_counts, counts))
}

/// Whether the slots of these counters are counted faster [one by one](for_each_slot) than in words of `layout`. A slot
/// is assumed to cost the time of eight words.
pub(in crate::counting) fn has_few_slots<'a>(layout: Layout, counters: impl Iterator<Item = &'a Counter>) -> bool {
    8 * counters.map(Counter::most_slots).sum::<u64>() <= layout.num_words() as u64
}

/// Calls `visit` for each slot that any of the counters has, folded to `layout`, with its segment and the marks of all
/// counters that have it.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(in crate::counting) fn for_each_slot<'a>(
    layout: Layout,
    counters: impl Iterator<Item = (&'a Counter, u64)> + Clone,
    mut visit: impl FnMut(usize, u64),
) -> Result<(), Error> {
    let mut slots = try_with_capacity(counters.clone().map(|(counter, _)| counter.most_slots() as usize).sum())?;
    for (counter, mark) in counters {
        // One number, which sorts in less time than a pair.
        counter.for_each_position(layout, &mut |index| slots.push(index << u8::BITS | mark));
    }
    slots.sort_unstable();
    for same in slots.chunk_by(|one, other| one >> u8::BITS == other >> u8::BITS) {
        let marks = same.iter().fold(0, |marks, slot| marks | slot) & u64::from(u8::MAX);
        visit(layout.segment_of(same[0] >> u8::BITS), marks);
    }
    Ok(())
}

/// [`layered_counts`] for dense bitmaps of one layout. The whole union is never in memory.
fn counts_by_block(layout: Layout, base: &[&[u64]], top: Option<&[u64]>) -> (SegmentCounts, SegmentCounts) {
    let mut base_counts = SegmentCounts::default();
    let mut counts = SegmentCounts::default();
    let mut block = [0u64; BLOCK_WORDS];
    let mut start = 0;
    if let ([one, other], None) = (base, top) {
        // The main segment of two bitmaps, by far the most frequent case, takes one pass without a block.
        start = layout.main_words();
        base_counts.add(0, bits::count_either(&one[..start], &other[..start]));
    }
    while start < layout.num_words() {
        let end = layout.num_words().min(start + BLOCK_WORDS);
        let block = &mut block[..end - start];
        block.fill(0);
        let (eights, rest) = base.as_chunks::<8>();
        for eight in eights {
            bits::or_eight_into(block, eight.map(|words| &words[start..end]));
        }
        rest.iter().for_each(|words| bits::or_into(block, &words[start..end]));
        base_counts.add_words(layout, start, block);
        if let Some(words) = top {
            bits::or_into(block, &words[start..end]);
            counts.add_words(layout, start, block);
        }
        start = end;
    }
    (base_counts, if top.is_some() { counts } else { base_counts })
}

#[cfg(test)]
mod tests;
