//! Unions of chains with equal parameters, sub-filter by sub-filter. The chains may have different lengths.

use std::iter::once;

use super::{Chain, SubFilter, chain_rate, taken_bytes};
use crate::error::Error;
use crate::size_limit::{SizeLimit, try_collect, try_with_capacity};

/// The largest relative error that rounding causes in the rate of a chain.
const ROUNDING: f64 = 1e-12;

impl<S: SubFilter> Chain<S> {
    /// Turns the chain into the union with `others`. Returns whether that set a bit or added a sub-filter. The union
    /// has the number of sub-filters of the longest chain.
    ///
    /// If one of the merged sub-filters has all bits of the union, its number of items is kept. Otherwise the number is
    /// estimated from the bits, and clamped: at least the largest number among the merged sub-filters, at most their
    /// sum.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the parameter that differs. [`Error::RateExceeded`] means that the false-positive
    /// rate of the union would exceed the rate asked for. Other errors come from `limit` or are [`Error::OutOfMemory`].
    /// Nothing is changed then.
    pub fn merge(&mut self, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        others.iter().try_for_each(|other| self.params().check_equal(other.params()))?;
        let lists = try_collect(others.len(), others.iter().map(|other| other.sub_filters()))?;
        let Some(num_items) = plan_union(self.sub_filters(), &lists)? else { return Ok(false) };
        let held = self.size_bytes().saturating_add(self.sub_filters.bytes_to_grow());
        let more = all_new_like(self.sub_filters(), &lists, held, limit)?;
        self.sub_filters.append(more.into_iter())?;
        unite(self.sub_filters_mut(), &lists, &num_items);
        Ok(true)
    }
}

/// For each sub-filter of the union, yields the sub-filters to unite: the first one, and an iterator over the others.
fn merged<'a, S: Sync>(
    ours: &'a [S],
    others: &'a [&'a [S]],
) -> impl Iterator<Item = (&'a S, impl Iterator<Item = &'a S> + Clone + Sync)> {
    (0..).map_while(move |index| {
        let lists = once(ours).chain(others.iter().copied());
        let mut merged = lists.filter_map(move |list| list.get(index));
        Some((merged.next()?, merged))
    })
}

/// Returns the number of items of each sub-filter in the union of `ours` and `others`, which have equal parameters.
/// Returns `None` when the union would add neither a bit nor a sub-filter to `ours`.
///
/// # Errors
/// [`Error::Incompatible`] where a loaded list has other sizes. [`Error::RateExceeded`] when the false-positive rate of
/// the union would exceed the rate asked for, now or once the union has grown.
pub(in crate::bloom) fn plan_union<S: SubFilter>(ours: &[S], others: &[&[S]]) -> Result<Option<Vec<u64>>, Error> {
    // A loaded filter may have sizes that do not follow from its parameters.
    merged(ours, others).try_for_each(|(first, mut rest)| rest.try_for_each(|other| first.check_mergeable(other)))?;
    let Some((oldest, _)) = merged(ours, others).next() else { return Ok(None) };
    // The plan only reads, so no bitmap is held twice.
    let len = others.iter().fold(ours.len(), |len, other| len.max(other.len()));
    let (mut unions, mut rates) = (try_with_capacity(len)?, try_with_capacity(len)?);
    let to_come = oldest.rate_to_come(len);
    let mut changed = len > ours.len();
    for (index, (first, rest)) in merged(ours, others).enumerate() {
        let set_bits = first.count_union(rest.clone());
        changed |= ours.get(index).is_some_and(|ours| ours.set_bits() != set_bits);
        let all = || once(first).chain(rest.clone());
        let whole = all().filter(|one| one.set_bits() == set_bits).map(S::num_items).max();
        let most = all().map(S::num_items).fold(0, u64::max);
        let sum = whole.unwrap_or_else(|| all().map(S::num_items).fold(0, u64::saturating_add));
        let estimate = libm::round(first.estimate_items(set_bits)) as u64;
        unions.push(whole.map_or_else(|| estimate.clamp(most, sum).min(first.num_bits()), |whole| whole.max(most)));
        let (rate, nominal) = (first.rate_with(set_bits), first.error_rate());
        let fills_up = index + 1 == len && to_come > 0.0;
        // A sub-filter within its capacity counts with at most its nominal rate, even if by chance it has more bits set
        // than expected. The newest reaches its nominal rate before the union grows.
        rates.push(match (first.holds(sum, set_bits), fills_up) {
            (true, true) => nominal,
            (true, false) => rate.min(nominal),
            (false, true) => rate.max(nominal),
            (false, false) => rate,
        });
    }
    if !changed {
        return Ok(None);
    }
    // Later sub-filters keep their rates, whatever the present sub-filters hold.
    let (would_be, asked) = (chain_rate(rates.into_iter().chain(once(to_come))), oldest.params().error_rate);
    if would_be > asked * (1.0 + ROUNDING) {
        return Err(Error::RateExceeded { would_be, asked });
    }
    Ok(Some(unions))
}

/// Makes an empty sub-filter for each sub-filter that the longest of `others` has and `ours` lacks. `held` is the
/// number of bytes that our value takes already.
pub(in crate::bloom) fn all_new_like<S: SubFilter>(
    ours: &[S],
    others: &[&[S]],
    mut held: u64,
    limit: &impl SizeLimit,
) -> Result<Vec<S>, Error> {
    let mut added = try_with_capacity(merged(ours, others).skip(ours.len()).count())?;
    for (first, _) in merged(ours, others).skip(ours.len()) {
        let empty = first.new_like(held, limit)?;
        held = held.saturating_add(taken_bytes(&empty));
        added.push(empty);
    }
    Ok(added)
}

/// Turns `ours` into the union with `others`, and sets the numbers of items to `num_items`. `ours` must be as long as
/// the longest of `others`.
pub(in crate::bloom) fn unite<S: SubFilter>(ours: &mut [S], others: &[&[S]], num_items: &[u64]) {
    for (index, (ours, &num_items)) in ours.iter_mut().zip(num_items).enumerate() {
        for theirs in others.iter().filter_map(|other| other.get(index)) {
            ours.union_with(theirs);
        }
        let set = ours.set_num_items(num_items);
        debug_assert!(set.is_ok(), "at most one a bit is planned");
    }
}
