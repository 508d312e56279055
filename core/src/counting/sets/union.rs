//! Unions and differences of counters.
//!
//! The answer is exact if every counter that has members is exact. Otherwise the counters that have bits are folded to
//! the finest layout common to them, in which the union is the OR of the bits. Exact members are hashed into that
//! layout, whatever layout their own counter has, so that an exact counter never coarsens the others.

use std::iter::once;

use crate::bits;
use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::estimate::{Estimated, Segments, UNEVEN, unseen_variance};
use crate::counting::held::Held;
use crate::counting::held::bitmap::{self, Bitmap, slot_at};
use crate::counting::held::cells::Cells;
use crate::counting::held::members::Members;
use crate::counting::held::words::{Words, zeroed_words};
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::params::Params;
use crate::counting::sets::check_seeds;
use crate::counting::sets::lists::{diff, union};
use crate::counting::sizing::largest_error;
use crate::counting::view::{View, with_plain};
use crate::error::Error;
use crate::heap::OnHeap;
use crate::size_limit::{SizeLimit, try_collect, try_with_capacity};
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
        let segments = union_segments(layout, counters)?;
        Ok(segments.reported(segments.estimate().max(f64::from(largest_lower_bound(counters)))))
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
/// # Errors
/// The errors of [`union_card`].
pub fn diff_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    with_plain(views, |counters| {
        check_seeds(counters.iter().copied())?;
        let Some((&first, others)) = counters.split_first().filter(|(first, _)| first.count() > 0) else {
            return Ok(Estimated::exact(0));
        };
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

/// The segments of the union of these counters. All bits are folded to `layout`.
pub(in crate::counting) fn union_segments(layout: Layout, counters: &[&Counter]) -> Result<Segments, Error> {
    let (counts, _) = layered_counts(layout, counters, None)?;
    Ok(Segments::new(layout, &counts))
}

/// The largest lower bound of the number of members in the union of these counters.
fn largest_lower_bound(counters: &[&Counter]) -> u32 {
    counters.iter().map(|counter| counter.lower_bound()).max().unwrap_or(0)
}

impl Counter {
    /// Makes the counter the union of itself and `others`; returns whether that changed anything.
    ///
    /// The result takes the finest layout to which its own and the layouts of all counters with bits fold. It keeps its
    /// parameters unless the layout changes. If the layout changes, it takes capacity and error rate from the first
    /// counter with bits in the new layout. If no counter has that layout, it takes the smallest capacity, and the
    /// largest standard error up to that capacity. It stays exact if it is exact, no other counter has bits, and the
    /// union is within its limits.
    ///
    /// # Errors
    /// [`Error::Incompatible`] when seeds differ, the errors of `limit`, and [`Error::OutOfMemory`]; on error the
    /// counter is unchanged.
    pub(in crate::counting) fn merge(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let all = with_first(self, others)?;
        if all.iter().any(|counter| counter.window().is_some()) {
            return self.merge_windows(others, limit);
        }
        check_seeds(all.iter().copied())?;
        let of_bits = layout_of_bits(&all);
        let layout = of_bits.map_or(self.layout(), |layout| layout.common(self.layout()));
        let mut lower_bound = largest_lower_bound(&all);
        if self.is_exact() && of_bits.is_none() {
            match union_of_members(&exact_members(&all)?, self.params(), limit)? {
                UnionOfMembers::Within(members) => {
                    let changed = members.len() as u32 != self.lower_bound();
                    if changed {
                        let contents = Contents::Plain(Held::Exact(members));
                        *self = Counter::with_contents(*self.params(), layout, contents);
                    }
                    return Ok(changed);
                }
                UnionOfMembers::Beyond(known) => lower_bound = lower_bound.max(known),
            }
        }

        let before = (self.is_exact(), self.layout(), self.set_bits(), self.lower_bound());
        let mut or_others = |layout, words: &mut [u64]| others.iter().for_each(|other| other.or_into(layout, words));
        if self.layout() == layout && self.or_dense(lower_bound, &mut or_others) {
            return Ok((false, layout, self.set_bits(), lower_bound) != before);
        }
        let all = with_first(self, others)?;
        let bitmap = union_of_bits(layout, &all, limit)?;
        let changed = (false, layout, bitmap.set_bits(), lower_bound) != before;
        if changed {
            let params = if self.layout() == layout { *self.params() } else { promised(layout, &all, self.params()) };
            *self = Counter::of_slots(params, bitmap.with_lower_bound(lower_bound));
        }
        Ok(changed)
    }

    /// The union of `first` and `others`, with the parameters of `first`. The layout is the finest to which the bitmaps
    /// of all counters with bits can be folded. If no counter has bits, it is the layout of `first`.
    ///
    /// # Errors
    /// The errors of a merge.
    pub fn union(first: &Counter, others: &[&Counter], limit: &impl SizeLimit) -> Result<Counter, Error> {
        let all = with_first(first, others)?;
        let (params, layout) = match layout_of_bits(&all) {
            Some(layout) if layout != first.layout() => (promised(layout, &all, first.params()), layout),
            _ => (*first.params(), first.layout()),
        };
        if first.ring().is_some() && layout == first.layout() {
            // Copying takes a fraction of the time of marking the slots one by one.
            limit.check(0, first.num_bytes())?;
            let mut union = first.try_clone()?;
            union.merge(others, limit)?;
            return Ok(union);
        }
        let mut union = match first.ring() {
            None => Counter::with_layout(params, layout)?,
            Some(&ring) => Counter::with_ring(params, layout, ring)?,
        };
        union.merge(&all, limit)?;
        Ok(union)
    }

    /// Whether the counter has bits, so that its layout matters.
    fn has_bits(&self) -> bool {
        !self.is_exact() && self.set_bits() > 0
    }

    /// The members of an exact counter without a window; `None` for any other counter.
    pub(in crate::counting) fn exact_members(&self) -> Option<&Members> {
        self.plain()?.members()
    }

    /// Folds the set slots to the layout `to`, and ORs them into `words`, a bitmap of this layout. Exact members are
    /// hashed into the bitmap. The counter has no window.
    pub(in crate::counting) fn or_into(&self, to: Layout, words: &mut [u64]) {
        match self.plain() {
            Some(Held::Estimating(bitmap)) => bitmap.or_into(to, words),
            _ => self.for_each_position(to, &mut |index| {
                bits::set(words, index as usize);
            }),
        }
    }

    /// Calls `visit` with each set slot, folded to the layout `to`. A slot may come more than once.
    fn for_each_position(&self, to: Layout, visit: &mut dyn FnMut(u64)) {
        match self.plain() {
            Some(Held::Estimating(bitmap)) => bitmap.for_each_folded(to, visit),
            Some(Held::Exact(members)) => {
                members.hashed(self.params().seed).for_each(|(hash, ..)| visit(to.slot_of(hash).index));
            }
            None => {}
        }
    }

    /// The most slots that [`Self::or_into`] sets.
    pub(in crate::counting) fn most_slots(&self) -> u64 {
        self.exact_members().map_or(self.set_bits(), |members| members.len() as u64)
    }

    /// The set slots, folded to the layout `to`, in ascending order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn positions(&self, to: Layout) -> Result<Vec<u32>, Error> {
        let mut slots = Gathered::Positions(try_with_capacity(self.most_slots() as usize)?);
        slots.or(to, &[self]);
        Ok(match slots {
            Gathered::Positions(positions) => positions,
            Gathered::Words(_) => Vec::new(),
        })
    }

    /// The words of the bitmap; `None` unless it is dense and has this layout.
    pub(in crate::counting) fn words_at(&self, layout: Layout) -> Option<&[u64]> {
        self.plain()?.bitmap().filter(|bitmap| bitmap.layout() == layout)?.words()
    }
}

/// A list of `first` and all of `rest`.
pub(in crate::counting) fn with_first<'a>(first: &'a Counter, rest: &[&'a Counter]) -> Result<Vec<&'a Counter>, Error> {
    try_collect(rest.len() + 1, once(first).chain(rest.iter().copied()))
}

/// The finest layout to which the bitmaps of all counters can be folded; `None` if no counter has a set bit.
pub(in crate::counting) fn layout_of_bits(counters: &[&Counter]) -> Option<Layout> {
    let layouts = counters.iter().filter(|counter| counter.has_bits()).map(|counter| counter.layout());
    layouts.reduce(Layout::common)
}

/// `params` with the capacity and error rate that a union of this layout keeps. They come from the first counter with
/// bits in this layout. If there is none, they are the smallest capacity, and the largest standard error up to that
/// capacity.
pub(in crate::counting) fn promised(layout: Layout, counters: &[&Counter], params: &Params) -> Params {
    let mut with_bits = counters.iter().filter(|counter| counter.has_bits());
    let (capacity, error_rate) = match with_bits.clone().find(|counter| counter.layout() == layout) {
        Some(same) => (same.params().capacity, same.params().error_rate),
        None => {
            let capacity = with_bits.by_ref().map(|counter| counter.params().capacity).fold(params.capacity, u64::min);
            // A layout that was given explicitly may be finer than any allowed error rate leads to.
            let error_rate = largest_error(layout, capacity).clamp(Params::MIN_ERROR_RATE, Params::MAX_ERROR_RATE);
            (capacity, error_rate)
        }
    };
    Params { capacity, error_rate, ..*params }
}

/// The members of each exact counter.
fn exact_members<'a>(counters: &[&'a Counter]) -> Result<Vec<&'a Members>, Error> {
    try_collect(counters.len(), counters.iter().filter_map(|counter| counter.exact_members()))
}

/// The union of the members of several exact counters, if it is small enough.
enum UnionOfMembers {
    /// All members, which are within the limits of an exact counter.
    Within(Members),
    /// The members exceed the limits of an exact counter. The number is a lower bound of the number of members.
    Beyond(u32),
}

/// Joins the members of `sets`, as long as they stay within the limits of an exact counter.
fn union_of_members(sets: &[&Members], params: &Params, limit: &impl SizeLimit) -> Result<UnionOfMembers, Error> {
    let Some((first, rest)) = sets.split_first() else { return Ok(UnionOfMembers::Within(Members::new())) };
    let (seed, room) = (params.seed, params.room());
    let mut union = first.try_clone(seed)?;
    for members in rest {
        for (hash, (), item) in members.hashed(seed) {
            if union.contains(item, hash) {
                continue;
            }
            if !union.has_room_for(item, room) {
                return Ok(UnionOfMembers::Beyond(union.len() as u32 + 1));
            }
            union.insert(item, hash, seed, ())?;
        }
    }
    if union.len() > first.len() {
        limit.check(Counter::STRUCT_BYTES, union.heap_bytes())?;
    }
    Ok(UnionOfMembers::Within(union))
}

/// The bitmap of the union. It is dense if one of the counters is dense, or has more slots than a sparse bitmap of
/// `layout` holds.
fn union_of_bits(layout: Layout, counters: &[&Counter], limit: &impl SizeLimit) -> Result<Bitmap, Error> {
    let is_large = |counter: &&Counter| {
        let is_dense = counter.plain().and_then(Held::bitmap).is_some_and(|bitmap| bitmap.words().is_some());
        is_dense || !bitmap::is_sparse::<()>(layout, counter.most_slots(), ())
    };
    let held_bytes = Counter::STRUCT_BYTES + Bitmap::<()>::STRUCT_BYTES;
    if counters.iter().any(is_large) {
        limit.check(held_bytes, Words::heap_bytes(layout, ()))?;
        let mut words = zeroed_words(layout)?;
        counters.iter().for_each(|counter| counter.or_into(layout, &mut words));
        return Ok(Bitmap::dense(layout, Words::counted(layout, words)));
    }
    let mut gathered = Gathered::none(layout, counters.iter().copied())?;
    gathered.or(layout, counters);
    let len = gathered.counts(layout).total();
    limit.check(held_bytes, bitmap::heap_bytes::<()>(layout, len, ()))?;
    match gathered {
        Gathered::Positions(positions) => {
            Bitmap::from_ascending(layout, positions.iter().map(|&position| (position, ())), ())
        }
        Gathered::Words(words) => {
            Bitmap::from_ascending(layout, bits::ones(&words).map(|position| (position as u32, ())), ())
        }
    }
}

/// The slots of a union, while they are gathered.
enum Gathered {
    Words(Box<[u64]>),
    /// Distinct positions, ascending, with room for the positions of all counters.
    Positions(Vec<u32>),
}

impl Gathered {
    /// An empty union with room for the slots of these counters. It gathers positions if they are likely faster than
    /// words: a position is assumed to cost the time of eight words.
    fn none<'a>(layout: Layout, counters: impl Iterator<Item = &'a Counter>) -> Result<Self, Error> {
        let most: usize = counters.map(|counter| counter.most_slots() as usize).sum();
        if 8 * most <= layout.num_words() {
            return Ok(Gathered::Positions(try_with_capacity(most)?));
        }
        Ok(Gathered::Words(zeroed_words(layout)?))
    }

    fn or(&mut self, layout: Layout, counters: &[&Counter]) {
        match self {
            Gathered::Words(words) => counters.iter().for_each(|counter| counter.or_into(layout, words)),
            Gathered::Positions(positions) => {
                for counter in counters {
                    counter.for_each_position(layout, &mut |index| positions.push(index as u32));
                }
                positions.sort_unstable();
                positions.dedup();
            }
        }
    }

    fn counts(&self, layout: Layout) -> SegmentCounts {
        match self {
            Gathered::Words(words) => SegmentCounts::of_words(words, layout),
            Gathered::Positions(positions) => {
                let mut counts = SegmentCounts::default();
                positions.iter().for_each(|&index| counts.increment(slot_at(layout, index.into()).segment));
                counts
            }
        }
    }
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

    let mut union = Gathered::none(layout, base.iter().copied().chain(top))?;
    union.or(layout, base);
    let base_counts = union.counts(layout);
    union.or(layout, top.as_slice());
    Ok((base_counts, if top.is_some() { union.counts(layout) } else { base_counts }))
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
