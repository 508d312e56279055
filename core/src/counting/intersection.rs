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
//! covariance = sum of c a^2 (exp(a k) - 1) / ((exp(a n) - 1) (exp(a m) - 1)) / (I(n) I(m)) - k
//! I(n)       = sum of c a^2 / (exp(a n) - 1)
//! ```
//!
//! It follows from the covariance of the numbers of free slots, `c exp(-a (n + m)) (exp(a k) - 1)` while members are
//! taken as Poisson, as in [`estimate`](super::estimate); that their number is known takes `k` off. Of a union with
//! itself it is the square of the standard error there.

use crate::counting::counter::{Counter, Shaped};
use crate::counting::estimate::{Segment, Segments};
use crate::counting::intersection::pair::Pair;
use crate::counting::layout::Layout;
use crate::counting::params::Params;
use crate::counting::union::{Estimated, check_seeds, layout_of_bits, try_with_capacity, union_segments};
use crate::error::{Error, Parameter};
use crate::size_limit::Unlimited;

mod pair;

/// The most counters that hold estimates of which an intersection is estimated; exact ones count as one together. Each
/// one more doubles the number of unions, and makes four times as many pairs of them: 65,536 at 8.
pub const MAX_INTERSECTED: usize = 8;

/// Exponents from which on `exp` would leave the range of a double; odds are 0 long before.
const MAX_EXPONENT: f64 = 700.0;

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
/// estimates, [`Error::OutOfMemory`].
pub fn estimate_intersection(counters: &[&Counter]) -> Result<Estimated, Error> {
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
    let known = match exact.split_first() {
        None => None,
        Some((smallest, others)) => {
            let members = smallest.members_within(others)?;
            if members.is_empty() || estimating.is_empty() {
                return Ok(Estimated::exact(members.len()));
            }
            Some(of_members(first, &members)?)
        }
    };
    let most = known.as_ref().map_or(f64::INFINITY, Counter::estimate);
    estimating.extend(known.as_ref());
    if let [only] = estimating[..] {
        return Ok(Estimated::of(only));
    }
    if estimating.len() > MAX_INTERSECTED {
        return Err(Error::out_of_range(Parameter::Counters, "at most 8 that hold estimates", estimating.len()));
    }
    let Some(layout) = layout_of_bits(&estimating) else { return Ok(Estimated::exact(0)) };
    let unions = Union::of_all(layout, &estimating)?;
    let found = match &unions[..] {
        [_, one, other, both] => of_pair(one, other, both).unwrap_or_else(|| of_unions(&unions)),
        _ => of_unions(&unions),
    };
    Ok(Estimated { estimate: found.estimate.min(most), standard_error: found.standard_error.min(most) })
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
}

impl Union {
    /// All unions of these sets: bit `i` of the index tells whether set `i` is in. The empty union is first.
    fn of_all(layout: Layout, sets: &[&Counter]) -> Result<Vec<Union>, Error> {
        let mut unions = try_with_capacity(1 << sets.len())?;
        let mut some: Vec<&Counter> = try_with_capacity(sets.len())?;
        for marks in 0..1usize << sets.len() {
            some.clear();
            some.extend(sets.iter().enumerate().filter(|(i, _)| marks >> i & 1 == 1).map(|(_, &set)| set));
            let segments = union_segments(layout, &some)?;
            let estimate = segments.estimate();
            let information = segments.as_slice().iter().map(|s| s.slots * s.share * s.share * odds(s, estimate)).sum();
            unions.push(Union { segments, estimate, information });
        }
        Ok(unions)
    }

    /// How the estimates of two unions vary together that have `both` members in common.
    fn covariance(&self, other: &Union, both: f64) -> f64 {
        let shared = |s: &Segment| {
            let both = libm::expm1((s.share * both).min(MAX_EXPONENT));
            s.slots * s.share * s.share * (both * odds(s, self.estimate)) * odds(s, other.estimate)
        };
        let sum: f64 = self.segments.as_slice().iter().map(shared).sum();
        sum / (self.information * other.information) - both
    }
}

/// `1 / (exp(a n) - 1)`: how likely a slot stays free, against that it is taken, by `n` members.
fn odds(segment: &Segment, n: f64) -> f64 {
    1.0 / libm::expm1(segment.share * n)
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
            let in_both = unions[one].estimate + unions[other].estimate - unions[one | other].estimate;
            let covariance = unions[one].covariance(&unions[other], in_both.max(0.0));
            variance += sign(one) * sign(other) * covariance * if one == other { 1.0 } else { 2.0 };
        }
    }
    // Not a number where a union has no slot free that would tell anything.
    let standard_error = if variance.is_nan() { f64::INFINITY } else { libm::sqrt(variance.max(0.0)) };
    Estimated { estimate: estimate.clamp(0.0, smallest), standard_error }
}

#[cfg(test)]
mod tests;
