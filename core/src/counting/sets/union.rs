//! Unions and differences of counters.
//!
//! The answer is exact if every view that has members is exact. Otherwise the bitmaps of all views are converted to the
//! smallest size among the views that estimate. Their OR is the bitmap of the union.

use crate::bits;
use crate::counting::estimate::{Estimated, Segments, UNEVEN, unseen_variance};
use crate::counting::held::slots::Slots;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::sets::lists::{Distinct, diff};
use crate::counting::sets::pair::Pair;
use crate::counting::sets::{check_seeds, distinct};
use crate::counting::view::{View, union_of};
use crate::error::Error;
use crate::size_limit::{try_collect, try_filled};

/// The number of distinct members of all views together, with its standard error. The standard error is 0 if every view
/// with members is exact. The number is never below the lower bound of any of the views.
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
/// [`Error::Incompatible`] if seeds differ, [`Error::OutOfMemory`].
pub fn union_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    let views = &distinct(views, |_, _| false)?[..];
    if let [only] = views {
        return Ok(only.estimated());
    }
    check_seeds(views)?;
    let Some(layout) = layout_of_slots(views) else {
        return Ok(Estimated::exact(Distinct::of(&exact_views(views)?)?.len()));
    };
    let segments = Segments::new(layout, &union_of(layout, views)?.counts_within(0));
    let lower_bound = views.iter().map(View::lower_bound).max().unwrap_or(0);
    Ok(segments.reported(segments.estimate().max(f64::from(lower_bound))))
}

/// The number of members of the first view that are in none of the other views, with its standard error. The number is
/// 0 without views, and at most the count of the first view.
///
/// The result is the most likely number, given which bits are set in the first view and in the union of the other views
/// (`pair.rs`). A member does not show in the bitmaps if its bit is set in another view too. The standard error allows
/// for such members.
///
/// # Errors
/// The errors of [`union_card`].
pub fn diff_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    let views = &distinct(views, |at, _| at == 0)?[..];
    check_seeds(views)?;
    let Some((first, others)) = views.split_first().filter(|(first, _)| first.has_any()) else {
        return Ok(Estimated::exact(0));
    };
    let counted = first.estimated();
    if !others.iter().any(View::has_any) {
        return Ok(counted);
    }
    let Some(layout) = layout_of_slots(views) else {
        return Ok(Estimated::exact(diff(&exact_views(views)?)?.len()));
    };
    let unions = unions_of(&[union_of(layout, &[*first])?, union_of(layout, others)?])?;
    let (own, other, both) = (&unions[1], &unions[2], &unions[3]);
    let (one, two, all) = (own.estimate(), other.estimate(), both.estimate());
    let likely = Pair::new(own, other, both).most_likely([all - two, all - one, one + two - all]);
    let (left, variance) = match likely {
        Some((members, variances)) => (members[0], variances[0]),
        // The most likely number cannot be found, because nearly all bits are set. The difference of two estimates
        // replaces it.
        None => ((all - two).max(0.0), both.standard_error(all).powi(2) + other.standard_error(two).powi(2)),
    };
    // The count of the first view may be more precise than `one`, the estimate from its bits, for example if the view
    // is exact. So `left`, the estimated difference, is multiplied by the count divided by `one`.
    let estimate = (left / one * counted.estimate).min(counted.estimate);
    let estimate = if estimate < LEAST { 0.0 } else { estimate };
    let reported = Estimated::rounded(estimate, variance + unseen_variance(other.free_share()) + UNEVEN);
    let largest_error = counted.estimate + counted.standard_error;
    Ok(Estimated { standard_error: reported.standard_error.min(largest_error), ..reported })
}

/// An estimated difference or intersection below this number of members is reported as 0.
pub(super) const LEAST: f64 = 1e-6;

/// Counts the set bits in the union of each subset of `bitmaps`. Bit `i` of an index of the result says whether the
/// union includes bitmap `i`. The bitmaps must be [wide](Slots::wide), and have the same layout.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn unions_of(bitmaps: &[Slots]) -> Result<Vec<Segments>, Error> {
    let layout = bitmaps[0].layout;
    let mut union = try_filled(layout.slots() as usize / bits::WORD_BITS, 0)?;
    let mut counts = try_filled(1 << bitmaps.len(), SegmentCounts::default())?;
    // The bitmaps are read segment by segment. A segment is added to every union while it is in the first-level cache.
    for segment in 0..layout.num_segments() {
        let start = segment * union.len();
        for (marks, counts) in counts.iter_mut().enumerate().skip(1) {
            union.fill(0);
            let marked = bitmaps.iter().enumerate().filter(|(bitmap, _)| marks >> bitmap & 1 == 1);
            marked.for_each(|(_, slots)| bits::or_into(&mut union, &slots.window[start..]));
            counts.add(segment, bits::count_ones(&union));
        }
    }
    try_collect(counts.len(), counts.iter().map(|counts| Segments::new(layout, counts)))
}

pub(super) fn exact_views<'a>(views: &[View<'a>]) -> Result<Vec<View<'a>>, Error> {
    try_collect(views.len(), views.iter().copied().filter(View::is_exact))
}

/// The smallest layout of the bitmaps of views that estimate; `None` if no view estimates.
pub(super) fn layout_of_slots(views: &[View<'_>]) -> Option<Layout> {
    views.iter().filter(|view| !view.is_exact() && view.has_any()).map(|view| view.counter.layout()).min()
}

#[cfg(test)]
mod tests;
