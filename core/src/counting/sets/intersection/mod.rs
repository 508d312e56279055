//! Intersections of counters.
//!
//! For two counters, the result is the most likely number of common members, given the bits of both bitmaps
//! ([`pair`](super::pair)). For more counters this would have too many unknown numbers. So the sizes of all unions of
//! the counters are estimated, and added with alternating signs: inclusion and exclusion ([`unions`]).
//!
//! The standard error is computed as if the estimated numbers were the true numbers, except for the number of common
//! members of two counters: the error grows with this number, so a small estimate would report the error of a still
//! smaller truth. So the error is that of a truth one standard error above the estimate. If an estimate is 0 although
//! members exist, the error would be too small too. So [`unseen_variance`] is added for each set.

use crate::counting::counter::Counter;
use crate::counting::estimate::{Estimated, Segments, UNEVEN, unseen_variance};
use crate::counting::held::members::record::Member;
use crate::counting::params::Params;
use crate::counting::sets::intersection::unions::{Common, MAX_INTERSECTED, of_unions};
use crate::counting::sets::lists::inter;
use crate::counting::sets::pair::Pair;
use crate::counting::sets::union::{LEAST, exact_views, layout_of_slots, unions_of};
use crate::counting::sets::{check_seeds, distinct};
use crate::counting::view::{View, union_of};
use crate::error::{Error, Parameter};
use crate::live::Value;
use crate::size_limit::{Unlimited, try_collect, try_collect_ok, try_with_capacity};
use crate::window::Time;

mod unions;

/// The number of distinct members that all views share, with its standard error. The standard error is 0 if a view is
/// empty or all views are exact.
///
/// # Errors
/// [`Error::Incompatible`] if seeds differ. [`Error::OutOfRange`] for more than 8 estimating views, or more than 7 if
/// any view is exact. [`Error::OutOfMemory`].
pub fn inter_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    // A bitmap of a view that is repeated counts as another set, as a copy of the counter would.
    let views = &distinct(views, |_, view| !view.is_exact())?[..];
    check_seeds(views)?;
    let (Some(first), false) = (views.first(), !views.iter().all(View::has_any)) else {
        return Ok(Estimated::exact(0));
    };
    let mut sets = try_with_capacity(views.len() + 1)?;
    sets.extend(views.iter().copied().filter(|view| !view.is_exact()));
    // One new counter replaces all exact counters. It has the members that they share.
    let common;
    match exact_views(views)?[..] {
        [] => {}
        // A single exact counter needs no replacement, so its members are not hashed again.
        [only] if !sets.is_empty() => sets.push(only),
        ref several => {
            let members = inter(several)?;
            if members.is_empty() || sets.is_empty() {
                return Ok(Estimated::exact(members.len()));
            }
            common = of_members(first.counter, &members)?;
            sets.push(common.at(Time::Reached));
        }
    }
    if let [only] = sets[..] {
        return Ok(only.estimated());
    }
    let Some(layout) = layout_of_slots(&sets) else { return Ok(Estimated::exact(0)) };
    // At most [`MAX_INTERSECTED`] sets can be intersected. All exact counters together count as one set.
    let estimates = sets.iter().filter(|view| !view.is_exact()).count();
    let (most, beside) = match estimates == sets.len() {
        true => (MAX_INTERSECTED, ""),
        false => (MAX_INTERSECTED - 1, " beside exact ones"),
    };
    let expected = format_args!("at most {most} that hold estimates{beside}");
    Error::check_range(estimates <= most, Parameter::Counters, expected, estimates)?;
    // The smallest set comes first.
    let mut sized = try_collect(sets.len(), sets.iter().map(|&set| (set.estimated(), set)))?;
    sized.sort_by(|(one, _), (other, _)| one.estimate.total_cmp(&other.estimate));
    let unions = unions_of(&try_collect_ok(sets.len(), sized.iter().map(|&(_, set)| union_of(layout, &[set])))?)?;
    let unseen: f64 = (0..sets.len()).map(|set| unseen_variance(unions[1 << set].free_share())).sum();
    let more = unseen + UNEVEN;
    let pair = if let [_, one, other, both] = &unions[..] { of_pair(one, other, both, more) } else { None };
    let found = pair.map_or_else(|| of_unions(&unions), Ok)?;
    // The size of the smallest set may be more precise than `unions[1].estimate()`, the estimate from the set's bits,
    // for example if the set is exact. So the estimated size of the intersection is multiplied by the first number
    // divided by the second. A counter intersected with itself then has its own count.
    let smallest = sized[0].0.estimate;
    let estimate = (found.estimate / unions[1].estimate() * smallest).min(smallest);
    let reported = Estimated::rounded(estimate, found.variance + more);
    // The error cannot exceed the size of the smallest set.
    let largest_error = sized.iter().map(|(size, _)| size.estimate + size.standard_error).fold(f64::INFINITY, f64::min);
    Ok(Estimated { standard_error: reported.standard_error.min(largest_error), ..reported })
}

/// An exact counter with these members, and with the seed and the layout of `like`.
fn of_members(like: &Counter, members: &[Member<'_>]) -> Result<Counter, Error> {
    let (exact_limit, exact_bytes) = (Params::MAX_EXACT_LIMIT, Params::MAX_EXACT_BYTES);
    let mut counter = Counter::new(Params { exact_limit, exact_bytes, ..*like.params() })?;
    for text in members.iter().map(|member| member.text()) {
        counter.add_item(&text, &Unlimited)?;
    }
    Ok(counter)
}

/// The number of common members, from two sets and their union; `None` if the search for the most likely number fails.
/// The variance is that of a number one standard error larger; `more` is added to its square.
fn of_pair(one: &Segments, other: &Segments, union: &Segments, more: f64) -> Option<Common> {
    let pair = Pair::new(one, other, union);
    let (one, other, union) = (one.estimate(), other.estimate(), union.estimate());
    let start = [union - other, union - one, one + other - union];
    let ([left, right, estimate], [.., variance]) = pair.most_likely(start)?;
    let error = libm::sqrt(variance + more).min(left).min(right);
    let [.., above] = pair.variances([left - error, right - error, estimate + error])?;
    let estimate = if estimate < LEAST { 0.0 } else { estimate.min(one.min(other)) };
    Some(Common { estimate, variance: variance.max(above) })
}

#[cfg(test)]
mod tests;
