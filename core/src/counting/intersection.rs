//! Intersections of counters.
//!
//! Of two, by the maximum of the likelihood of what the slots show ([`pair`]). Of more these patterns are too many. By
//! inclusion and exclusion, the members that all of some sets have are a sum of the numbers of members of all unions of
//! these sets, each with its sign. Each union is estimated from its bits. For one segment that is the maximum of the
//! likelihood too; several would each weigh otherwise.
//!
//! The estimates of the unions `S` and `T` err together, for they see the same members. With `n` members in `S`, `m` in
//! `T` and `k` in both, and segments of `c` slots with the share `a` of the hash space each:
//!
//! ```text
//! covariance = sum of c a^2 (exp(-a u) - exp(-a n) exp(-a m)) / ((1 - exp(-a n)) (1 - exp(-a m))) / (I(n) I(m)) - k
//! I(n)       = sum of c a^2 / (exp(a n) - 1),    u = n + m - k
//! ```
//!
//! The first is the covariance of the numbers of free slots while members are taken as Poisson, as in
//! [`estimate`](super::estimate); that their number is known takes `k` off. Of a union with itself it is the square of
//! the standard error there.
//!
//! Both errors are those of the numbers found, which may be none where there are some. A member that only set `i` lacks
//! shows that by chance `q`, the share of the hash space that `i` left free. If `v` of them do, they are `v / q`, with
//! the variance `v (1 - q) / q^2`. But few seen do not prove that there are few, and none that there is none: so that of
//! [`UNSEEN`] more is added, for each set.

use crate::counting::counter::{Counter, Shaped};
use crate::counting::estimate::{Estimated, Segments};
use crate::counting::intersection::gather::counts_of_unions;
use crate::counting::intersection::pair::Pair;
use crate::counting::layout::{Layout, MAX_SEGMENTS};
use crate::counting::params::Params;
use crate::counting::union::{check_seeds, layout_of_bits, try_with_capacity};
use crate::counting::windowed::{have_windows, with_plain};
use crate::error::{Error, Parameter};
use crate::size_limit::Unlimited;

mod gather;
mod pair;

/// The most counters that hold estimates of which an intersection is estimated; exact ones count as one together. Each
/// one more doubles the number of unions, and makes four times as many pairs of them: 65,536 at 8.
pub const MAX_INTERSECTED: usize = 8;

/// Bytes that all unions of more than two may have together: to join and count so many takes some milliseconds.
const MAX_UNIONS_BYTES: u64 = 64 << 20;

/// How many more are taken to have been seen. A number seen of a Poisson one, two roots of `UNSEEN` more than it either
/// way, covers 91 % or more whatever the mean is (and 87 % with one more, 80 % with one at least).
const UNSEEN: f64 = 1.5;

/// Number of distinct members that every one of `counters` has; exact while one of them is empty, or all are exact.
///
/// ```
/// # use rollcall_core::counting::{Counter, Params, estimate_intersection};
/// # use rollcall_core::size_limit::Unlimited;
/// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
/// let [mut june, mut july] = [Counter::new(params)?, Counter::new(params)?];
/// for (counter, members) in [(&mut june, 0..20_000u32), (&mut july, 10_000..40_000)] {
///     members.for_each(|member| drop(counter.add(&member.to_le_bytes(), &Unlimited)));
/// }
/// let both = estimate_intersection(&[&june, &july])?;
/// assert!((both.estimate - 10_000.0).abs() < 3.0 * both.standard_error);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Incompatible`] when seeds differ, [`Error::OutOfRange`] for more than [`MAX_INTERSECTED`] that hold
/// estimates, or fewer where their common bitmap takes more than 256 KiB, [`Error::OutOfMemory`].
pub fn estimate_intersection(counters: &[&Counter]) -> Result<Estimated, Error> {
    if have_windows(counters) {
        return with_plain(counters, estimate_intersection);
    }
    check_seeds(counters)?;
    let (Some(&first), false) = (counters.first(), counters.iter().any(|counter| counter.count() == 0)) else {
        return Ok(Estimated::exact(0));
    };
    let mut estimating = try_with_capacity(counters.len())?;
    let mut exact = try_with_capacity(counters.len())?;
    for &counter in counters {
        if counter.is_exact() { exact.push(counter) } else { estimating.push(counter) }
    }
    exact.sort_unstable_by_key(|counter| counter.count());
    // Of exact counters only the members that all have matter: these are a counter too.
    let common;
    let known = match exact[..] {
        [] => None,
        // One alone is that counter, and its members are not hashed again.
        [only] if !estimating.is_empty() => Some(only),
        [smallest, ref others @ ..] => {
            let members = smallest.members_within(others)?;
            if members.is_empty() || estimating.is_empty() {
                return Ok(Estimated::exact(members.len()));
            }
            common = of_members(first, &members)?;
            Some(&common)
        }
    };
    let most = known.map_or(f64::INFINITY, Counter::estimate);
    estimating.extend(known);
    if let [only] = estimating[..] {
        return Ok(only.estimated());
    }
    let Some(layout) = layout_of_bits(&estimating) else { return Ok(Estimated::exact(0)) };
    check_number(layout, estimating.len())?;
    let unions = Union::of_all(layout, &estimating)?;
    let found = match &unions[..] {
        [_, one, other, both] => of_pair(one, other, both).unwrap_or_else(|| of_unions(&unions)),
        _ => of_unions(&unions),
    };
    let variance = found.standard_error * found.standard_error + unseen_variance(&unions);
    // It is further off by no more than the smallest set has.
    let sizes = estimating.iter().map(|counter| counter.estimated());
    let largest_error = sizes.map(|size| size.estimate + size.standard_error).fold(f64::INFINITY, f64::min);
    Ok(Estimated { estimate: found.estimate.min(most), standard_error: libm::sqrt(variance).min(largest_error) })
}

/// Checks that so many sets are not too many for bitmaps of this layout.
fn check_number(layout: Layout, sets: usize) -> Result<(), Error> {
    let fits = |&number: &usize| layout.num_bytes() << number <= MAX_UNIONS_BYTES;
    let most = (3..=MAX_INTERSECTED).rev().find(fits).unwrap_or(2);
    if sets <= most {
        return Ok(());
    }
    let expected = match most {
        2 => "at most 2 that hold estimates in bitmaps so large",
        3 => "at most 3 that hold estimates in bitmaps so large",
        4 => "at most 4 that hold estimates in bitmaps so large",
        5 => "at most 5 that hold estimates in bitmaps so large",
        6 => "at most 6 that hold estimates in bitmaps so large",
        7 => "at most 7 that hold estimates in bitmaps so large",
        _ => "at most 8 that hold estimates",
    };
    Err(Error::out_of_range(Parameter::Counters, expected, sets))
}

/// An exact counter of these members, hashed like `like`.
fn of_members(like: &Counter, members: &[&[u8]]) -> Result<Counter, Error> {
    let (exact_limit, exact_bytes) = (Params::MAX_EXACT_LIMIT, Params::MAX_EXACT_BYTES);
    let mut counter = Counter::with_layout(Params { exact_limit, exact_bytes, ..*like.params() }, like.layout())?;
    counter.add_all(members.iter().copied(), &Unlimited, |_| {})?;
    Ok(counter)
}

/// The union of some of the sets.
struct Union {
    segments: Segments,
    /// Members.
    estimate: f64,
    /// I(n).
    information: f64,
    /// How likely a slot of each segment stays free, `exp(-a n)`, and how likely it is taken.
    chances: [(f64, f64); MAX_SEGMENTS],
}

impl Union {
    /// All unions of these sets: bit `i` of the index tells whether set `i` is in. The empty union is first.
    fn of_all(layout: Layout, sets: &[&Counter]) -> Result<Vec<Union>, Error> {
        let counts = counts_of_unions(layout, sets)?;
        let mut unions = try_with_capacity(counts.len())?;
        unions.extend(counts.iter().map(|counts| Union::new(Segments::new(layout, counts))));
        Ok(unions)
    }

    fn new(segments: Segments) -> Self {
        let estimate = segments.estimate();
        let mut chances = [(0.0, 0.0); MAX_SEGMENTS];
        let mut information = 0.0;
        for (s, chances) in segments.as_slice().iter().zip(&mut chances) {
            let (free, taken) = (libm::exp(-s.share * estimate), -libm::expm1(-s.share * estimate));
            *chances = (free, taken);
            information += s.slots * s.share * s.share * free / taken;
        }
        Union { segments, estimate, information, chances }
    }

    /// How the estimates of two unions vary together, `both` being the union of these.
    fn covariance(&self, other: &Union, both: &Union) -> f64 {
        let chances = self.chances.iter().zip(&other.chances).zip(&both.chances);
        let shared = self.segments.as_slice().iter().zip(chances).map(|(s, ((own, others), joined))| {
            s.slots * s.share * s.share * (joined.0 - own.0 * others.0).max(0.0) / (own.1 * others.1)
        });
        let in_both = (self.estimate + other.estimate - both.estimate).max(0.0);
        shared.sum::<f64>() / (self.information * other.information) - in_both
    }
}

/// The variance by members that only one set lacks, and that do not show it.
fn unseen_variance(unions: &[Union]) -> f64 {
    let sets = (0..unions.len().trailing_zeros()).filter_map(|set| unions.get(1 << set));
    sets.map(|set| set.segments.free_share()).map(|q| UNSEEN * (1.0 - q) / (q * q)).sum()
}

/// What two sets and their union tell of the members that both have.
fn of_pair(one: &Union, other: &Union, union: &Union) -> Option<Estimated> {
    let pair = Pair::new(&one.segments, &other.segments, &union.segments);
    let in_both = one.estimate + other.estimate - union.estimate;
    let start = [union.estimate - other.estimate, union.estimate - one.estimate, in_both];
    let ([_, _, estimate], variance) = pair.most_likely(start)?;
    let most = one.estimate.min(other.estimate);
    // What is below a millionth of a member is none.
    let estimate = if estimate < 1e-6 { 0.0 } else { estimate.min(most) };
    Some(Estimated { estimate, standard_error: libm::sqrt(variance) })
}

/// What the unions, by the marks of their sets, tell of the members that all sets have.
fn of_unions(unions: &[Union]) -> Estimated {
    let sign = |marks: usize| if marks.count_ones() % 2 == 1 { 1.0 } else { -1.0 };
    let estimate: f64 = (1..unions.len()).map(|marks| sign(marks) * unions[marks].estimate).sum();
    let smallest = unions.iter().skip(1).map(|union| union.estimate).fold(f64::INFINITY, f64::min);
    let mut variance = 0.0;
    for one in 1..unions.len() {
        for other in 1..=one {
            let covariance = unions[one].covariance(&unions[other], &unions[one | other]);
            variance += sign(one) * sign(other) * covariance * if one == other { 1.0 } else { 2.0 };
        }
    }
    // Not a number where a union has no slot free that would tell anything.
    let standard_error = if variance.is_nan() { f64::INFINITY } else { libm::sqrt(variance.max(0.0)) };
    Estimated { estimate: estimate.clamp(0.0, smallest), standard_error }
}

#[cfg(test)]
mod tests;
