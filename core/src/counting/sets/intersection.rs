//! Intersections of counters.
//!
//! The intersection of two counters maximises the likelihood of the slots' patterns ([`pair`]). More counters have too
//! many patterns, so inclusion and exclusion is used: the number of common members is the sum, with alternating signs,
//! of the sizes of all unions of the counters ([`unions`]). Each union is estimated from its bits. If the bitmap had
//! one segment, this would maximise the likelihood too. With several segments it does not, since each union weights the
//! segments differently.
//!
//! The standard error of either method is computed at the estimated numbers. An estimated number may be 0 although
//! members exist. So the variance of members that may exist [unseen](unseen_variance) is added for each set.

use crate::counting::counter::{Counter, Shaped};
use crate::counting::estimate::{Estimated, Segments, UNEVEN, unseen_variance};
use crate::counting::layout::Layout;
use crate::counting::params::Params;
use crate::counting::sets::check_seeds;
use crate::counting::sets::intersection::gather::counts_of_unions;
use crate::counting::sets::intersection::pair::Pair;
use crate::counting::sets::intersection::unions::{Common, of_unions};
use crate::counting::sets::lists::inter;
use crate::counting::sets::union::{exact_views, layout_of_bits};
use crate::counting::view::{View, with_plain};
use crate::error::{Error, Parameter};
use crate::size_limit::{Unlimited, try_collect, try_with_capacity};

mod gather;
mod pair;
mod unions;

use unions::MAX_INTERSECTED;

/// The most bytes that the unions of more than two counters may take together. Joining and counting them takes some
/// milliseconds.
const MAX_UNIONS_BYTES: u64 = 64 << 20;

/// The number of distinct members that all views share, with its standard error. The standard error is 0 if a view is
/// empty or all views are exact.
///
/// # Errors
/// [`Error::Incompatible`] when seeds differ; [`Error::OutOfRange`] for more than 8 estimating views, or for fewer
/// views if their common bitmap takes more than 256 KiB; [`Error::OutOfMemory`].
pub fn inter_card(views: &[View<'_>]) -> Result<Estimated, Error> {
    with_plain(views, of_plain)
}

fn of_plain(counters: &[&Counter]) -> Result<Estimated, Error> {
    check_seeds(counters.iter().copied())?;
    let (Some(&first), false) = (counters.first(), counters.iter().any(|counter| counter.count() == 0)) else {
        return Ok(Estimated::exact(0));
    };
    let mut estimating = try_with_capacity(counters.len())?;
    let mut exact = try_with_capacity(counters.len())?;
    for &counter in counters {
        if counter.is_exact() { exact.push(counter) } else { estimating.push(counter) }
    }
    // Only the common members of the exact counters matter. They are put in a counter of their own.
    let common;
    let known = match exact[..] {
        [] => None,
        // A single exact counter is used as it is, so its members are not hashed again.
        [only] if !estimating.is_empty() => Some(only),
        ref several => {
            let members = inter(&exact_views(several)?)?;
            if members.is_empty() || estimating.is_empty() {
                return Ok(Estimated::exact(members.len()));
            }
            common = of_members(first, &members)?;
            Some(&common)
        }
    };
    estimating.extend(known);
    if let [only] = estimating[..] {
        return Ok(only.estimated());
    }
    let Some(layout) = layout_of_bits(&estimating) else { return Ok(Estimated::exact(0)) };
    check_number(layout, estimating.len())?;
    // Sorts the smallest first.
    estimating.sort_by(|one, other| one.estimate().total_cmp(&other.estimate()));
    let unions = unions_of(layout, &estimating)?;
    let pair = if let [_, one, other, both] = &unions[..] { of_pair(one, other, both) } else { None };
    let found = match pair {
        Some(found) => found,
        None => of_unions(&unions)?,
    };
    // The smallest counter knows more than its bits: its lower bound, or its members. A share of its bits becomes the
    // same share of its count, so that a counter and itself have all of them in common.
    let smallest = estimating[0].estimate();
    let estimate = (found.estimate / unions[1].estimate() * smallest).min(smallest);
    let unseen: f64 = (0..estimating.len()).map(|set| unseen_variance(unions[1 << set].free_share())).sum();
    let reported = Estimated::rounded(estimate, found.variance + unseen + UNEVEN);
    // The error cannot exceed the size of the smallest set.
    let sizes = estimating.iter().map(|counter| counter.estimated());
    let largest_error = sizes.map(|size| size.estimate + size.standard_error).fold(f64::INFINITY, f64::min);
    Ok(Estimated { standard_error: reported.standard_error.min(largest_error), ..reported })
}

/// Checks that the unions of this number of sets, with bitmaps of this layout, stay within the memory limit.
fn check_number(layout: Layout, sets: usize) -> Result<(), Error> {
    let fits = |&number: &usize| layout.num_bytes() << number <= MAX_UNIONS_BYTES;
    let most = (1..=MAX_INTERSECTED).rev().find(fits).unwrap_or(1);
    if sets <= most {
        return Ok(());
    }
    let expected = match most {
        6 => "at most 6 that hold estimates in bitmaps so large",
        7 => "at most 7 that hold estimates in bitmaps so large",
        _ => "at most 8 that hold estimates",
    };
    Err(Error::out_of_range(Parameter::Counters, expected, sets))
}

/// An exact counter with these members and the seed and layout of `like`.
fn of_members(like: &Counter, members: &[&[u8]]) -> Result<Counter, Error> {
    let (exact_limit, exact_bytes) = (Params::MAX_EXACT_LIMIT, Params::MAX_EXACT_BYTES);
    let mut counter = Counter::with_layout(Params { exact_limit, exact_bytes, ..*like.params() }, like.layout())?;
    counter.add_each(members.iter().copied(), &Unlimited, |_| {})?;
    Ok(counter)
}

/// The segments of all unions of these sets. Bit `i` of the index says whether set `i` is included; the empty union is
/// first.
fn unions_of(layout: Layout, sets: &[&Counter]) -> Result<Vec<Segments>, Error> {
    let counts = counts_of_unions(layout, sets)?;
    try_collect(counts.len(), counts.iter().map(|counts| Segments::new(layout, counts)))
}

/// The number of common members, from two sets and their union; `None` if the search for the most likely number fails.
fn of_pair(one: &Segments, other: &Segments, union: &Segments) -> Option<Common> {
    let pair = Pair::new(one, other, union);
    let (one, other, union) = (one.estimate(), other.estimate(), union.estimate());
    let ([_, _, estimate], variance) = pair.most_likely([union - other, union - one, one + other - union])?;
    // An estimate below a millionth of a member counts as 0.
    let estimate = if estimate < 1e-6 { 0.0 } else { estimate.min(one.min(other)) };
    Some(Common { estimate, variance })
}

#[cfg(test)]
mod tests;
