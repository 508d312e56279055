//! Unions of chains with equal parameters. Chains are united generation by generation, and each generation sub-filter
//! by sub-filter. The chains may have different lengths.

use std::iter::once;

use super::store::Generation;
use super::{Chain, Dropped, MAX_SUB_FILTERS, chain_rate};
use crate::bloom::sub_filter::{Placement, SubFilter, num_items, reported_bytes};
use crate::error::{Error, Parameter};
use crate::size_limit::{SizeLimit, try_collect, try_with_capacity};
use crate::window::{Ahead, Merging, Move, Time};

/// The largest relative error that rounding causes in the rate of a chain.
const ROUNDING: f64 = 1e-12;

/// The parts that make up a generation of the union.
struct Planned<'a, L> {
    /// The number of sub-filters of our generation.
    ours: usize,
    renewed: u64,
    /// The number of renewed items in this generation of each other filter, as far as the filter has the generation.
    their_renewed: Vec<u64>,
    their_sub_filters: Vec<&'a [SubFilter<L>]>,
    /// The number of items of each sub-filter of the union; `None` if our sub-filters do not change.
    num_items: Option<Vec<u64>>,
    /// The empty sub-filters to append to this filter's generation, so that it has as many as the merged one.
    added: Vec<SubFilter<L>>,
    age: u32,
}

impl<L: Placement> Chain<L> {
    /// Turns the filter into the union with `others`. `merging` says how the slices are renumbered before and after the
    /// merge. The newest slice becomes the latest that any of the filters has reached. Generations that have expired by
    /// then are dropped. Returns whether anything changed, and the dropped sub-filters. The union has the number of
    /// sub-filters of the longest chain.
    ///
    /// If one of the merged sub-filters has all bits of their union, its number of items is the number of the union.
    /// Otherwise the number is estimated from the bits. The result is at least the largest number among the merged
    /// sub-filters, and at most the sum of their numbers.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the parameter that differs. [`Error::RateExceeded`] means that the false-positive
    /// rate of the union would exceed the rate asked for. Other errors come from `limit` or are [`Error::OutOfMemory`].
    /// Nothing is changed then.
    pub(in crate::bloom) fn merge(
        &mut self,
        others: &[&Self],
        merging: Merging,
        limit: &impl SizeLimit,
    ) -> Result<(bool, Dropped<L>), Error> {
        let stored = self.newest_slice();
        if let Move::Rebase(slice) = merging.before {
            self.rebase(slice);
        }
        let united = self.unite(others, limit);
        match (&united, merging.after, &mut self.ring) {
            (Ok(_), Move::Rebase(slice), _) => self.rebase(slice),
            (Err(_), _, Some(ring)) => ring.newest_slice = stored.unwrap_or(ring.newest_slice),
            _ => {}
        }
        united
    }

    fn unite(&mut self, others: &[&Self], limit: &impl SizeLimit) -> Result<(bool, Dropped<L>), Error> {
        for other in others {
            self.params().check_equal(other.params())?;
            if let (Some(ours), Some(theirs)) = (self.windowing(), other.windowing())
                && !ours.is_like(theirs)
            {
                let [ours, theirs] = [ours, theirs].map(|windowing| windowing.with_volatile(false));
                return Err(Error::incompatible(Parameter::Window, ours, theirs));
            }
        }
        let newest_slice = others.iter().fold(self.newest_slice(), |newest, other| newest.max(other.newest_slice()));
        let plans = self.plan(others, newest_slice, limit)?;
        let changed = newest_slice > self.newest_slice() || plans.iter().any(|plan| plan.num_items.is_some());
        if !changed {
            return Ok((false, None));
        }
        let len = plans.iter().map(|plan| plan.ours + plan.added.len()).sum();
        let is_within = self.ring.is_none() || len <= MAX_SUB_FILTERS;
        Error::check_range(is_within, Parameter::SubFilters, format_args!("at most {MAX_SUB_FILTERS}"), len)?;
        let (mut sub_filters, mut generations) = (try_with_capacity(len)?, try_with_capacity(plans.len())?);
        let expired = newest_slice.and_then(|slice| self.advance(slice));
        let mut ours = self.sub_filters.take();
        for mut plan in plans {
            let start = sub_filters.len();
            sub_filters.extend(ours.by_ref().take(plan.ours));
            sub_filters.append(&mut plan.added);
            let these = &mut sub_filters[start..];
            generations.push(Generation { age: plan.age, len: these.len() as u32, renewed: plan.unite(these) });
        }
        self.sub_filters.put_back(sub_filters, self.ring.is_none());
        if let Some(ring) = &mut self.ring {
            ring.list = generations;
        }
        Ok((true, expired))
    }

    /// Checks that a merge with `others` at `time` is allowed, and returns its effect on the slice numbers.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one of `others` is more than one slice ahead, because items of this filter would then
    /// expire early.
    pub(in crate::bloom) fn merging<'a>(
        &self,
        others: impl Iterator<Item = &'a Self>,
        time: Time,
    ) -> Result<Merging, Error> {
        let Some(ring) = &self.ring else { return Ok(Merging::default()) };
        // Filters with other windows are left out, since their slice numbers mean other times. The merge rejects them
        // later.
        let same = others
            .filter_map(|other| other.ring.as_ref())
            .filter(|other| other.windowing.is_like(&ring.windowing))
            .map(|other| other.newest_slice);
        ring.windowing.window.merging(ring.newest_slice, same, time).map_err(|Ahead { slice, present }| {
            let got = format_args!("{slice}, where that is {present}");
            Error::out_of_range(Parameter::Slice, "at most one ahead of the destination's", got)
        })
    }

    /// Plans the generations of the union that are live once `newest_slice` is the newest slice, oldest first.
    fn plan<'a>(
        &self,
        others: &[&'a Self],
        newest_slice: Option<u64>,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Planned<'a, L>>, Error> {
        let live = self.windowing().map_or(1, |windowing| windowing.generations());
        let mut plans = try_with_capacity(live as usize)?;
        let mut held = self.held_bytes(self.sub_filters());
        for age in (0..live).rev() {
            let (renewed, ours) = self.aged(age, newest_slice).unwrap_or_default();
            let theirs = others.iter().filter_map(|other| other.aged(age, newest_slice));
            let (their_renewed, their_sub_filters) = (
                try_collect(others.len(), theirs.clone().map(|one| one.0))?,
                try_collect(others.len(), theirs.map(|one| one.1))?,
            );
            if ours.is_empty() && their_sub_filters.is_empty() {
                continue;
            }
            let num_items = plan_union(ours, &their_sub_filters)?;
            let added = all_new_like(ours, &their_sub_filters, held, limit)?;
            held = held.saturating_add(reported_bytes(&added));
            plans.push(Planned { ours: ours.len(), renewed, their_renewed, their_sub_filters, num_items, added, age });
        }
        Ok(plans)
    }

    /// The number of renewed items, and the sub-filters, of the generation that has this age once `newest_slice` is the
    /// newest slice.
    fn aged(&self, age: u32, newest_slice: Option<u64>) -> Option<(u64, &[SubFilter<L>])> {
        let (Some(own), Some(newest)) = (self.newest_slice(), newest_slice) else {
            return Some((0, self.sub_filters()));
        };
        let slices_later = newest - own;
        let (one, sub_filters) = self
            .by_generation()
            .find(|(one, _)| u64::from(one.age).checked_add(slices_later) == Some(u64::from(age)))?;
        Some((one.renewed, sub_filters))
    }
}

impl<L: Placement> Planned<'_, L> {
    /// Adds the items of the merged generations to the sub-filters `ours`. Returns how many items of the union count as
    /// renewed. Renewed items were added again later, so a younger generation has them too.
    fn unite(&self, ours: &mut [SubFilter<L>]) -> u64 {
        let Some(planned) = &self.num_items else { return self.renewed };
        // If one of the merged generations has all bits of the union, its number of renewed items is kept. Otherwise,
        // the fraction of renewed items in the union is their fraction in all merged generations together.
        let theirs = self.their_renewed.iter().zip(&self.their_sub_filters);
        let theirs = theirs.map(|(&renewed, list)| (renewed, num_items(list), set_bits(list)));
        let of_ours = (self.renewed, num_items(ours), set_bits(ours));
        unite(ours, &self.their_sub_filters, planned);
        let all = once(of_ours).chain(theirs);
        let (bits, items) = (set_bits(ours), num_items(ours));
        let (mut whole, mut renewed, mut sum) = (None, 0u128, 0u128);
        for (one_renewed, one_items, one_bits) in all {
            if one_bits == bits {
                whole = whole.max(Some(one_renewed));
            }
            (renewed, sum) = (renewed + u128::from(one_renewed), sum + u128::from(one_items));
        }
        // The result is at most `items`, because `renewed` is at most `sum`.
        let share = (renewed * u128::from(items)).checked_div(sum).unwrap_or(0) as u64;
        whole.unwrap_or(share).min(items)
    }
}

fn set_bits<L: Placement>(sub_filters: &[SubFilter<L>]) -> u64 {
    sub_filters.iter().map(SubFilter::set_bits).sum()
}

/// For each sub-filter of the union, yields the sub-filters that are united into it: one of them, and an iterator over
/// the others.
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
/// [`Error::Incompatible`] if a loaded filter has sub-filters of other sizes. [`Error::RateExceeded`] if the
/// false-positive rate of the union would exceed the rate asked for, now or once the union has grown.
fn plan_union<L: Placement>(ours: &[SubFilter<L>], others: &[&[SubFilter<L>]]) -> Result<Option<Vec<u64>>, Error> {
    // A loaded filter may have sizes that do not follow from its parameters.
    merged(ours, others)
        .try_for_each(|(first, mut rest)| rest.try_for_each(|other| L::check_mergeable(&first.spec, &other.spec)))?;
    let Some((oldest, _)) = merged(ours, others).next() else { return Ok(None) };
    // Planning only reads, so it needs no copy of a bitmap.
    let len = others.iter().fold(ours.len(), |len, other| len.max(other.len()));
    let (mut unions, mut rates) = (try_with_capacity(len)?, try_with_capacity(len)?);
    let to_come = L::rate_to_come(&oldest.spec, len);
    let mut changed = len > ours.len();
    for (index, (first, rest)) in merged(ours, others).enumerate() {
        let set_bits = first.bitmap.count_union(rest.clone().map(|other| &other.bitmap));
        changed |= ours.get(index).is_some_and(|ours| ours.set_bits() != set_bits);
        let all = || once(first).chain(rest.clone());
        let whole = all().filter(|one| one.set_bits() == set_bits).map(SubFilter::num_items).max();
        let most = all().map(SubFilter::num_items).fold(0, u64::max);
        let sum = whole.unwrap_or_else(|| all().map(SubFilter::num_items).fold(0, u64::saturating_add));
        let estimate = libm::round(L::estimate_items(&first.spec, set_bits)) as u64;
        unions.push(whole.map_or_else(|| estimate.clamp(most, sum).min(first.num_bits()), |whole| whole.max(most)));
        let (rate, nominal) = (L::rate_with(&first.spec, set_bits), first.error_rate());
        let fills_up = index + 1 == len && to_come > 0.0;
        // For a sub-filter within its capacity, at most its nominal rate is used, even if by chance it has more bits
        // set than expected. For the newest, at least its nominal rate is used, since it reaches that rate before the
        // union grows.
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
    // Later sub-filters will keep their nominal rates, no matter how full the present sub-filters are.
    let (would_be, asked) = (chain_rate(rates.into_iter().chain(once(to_come))), oldest.spec.params.error_rate);
    if would_be > asked * (1.0 + ROUNDING) {
        return Err(Error::RateExceeded { would_be, asked });
    }
    Ok(Some(unions))
}

/// Makes an empty sub-filter for each sub-filter that the longest of `others` has and `ours` lacks. `held` is the
/// number of bytes that our filter takes already.
fn all_new_like<L: Placement>(
    ours: &[SubFilter<L>],
    others: &[&[SubFilter<L>]],
    held: u64,
    limit: &impl SizeLimit,
) -> Result<Vec<SubFilter<L>>, Error> {
    let mut added = try_with_capacity(merged(ours, others).skip(ours.len()).count())?;
    for (first, _) in merged(ours, others).skip(ours.len()) {
        let held = held.saturating_add(reported_bytes(&added));
        added.push(SubFilter::from_spec(first.spec.clone(), held, limit)?);
    }
    Ok(added)
}

/// Turns `ours` into the union with `others`, and sets the numbers of items to `num_items`. `ours` must be as long as
/// the longest of `others`.
fn unite<L: Placement>(ours: &mut [SubFilter<L>], others: &[&[SubFilter<L>]], num_items: &[u64]) {
    for (index, (ours, &num_items)) in ours.iter_mut().zip(num_items).enumerate() {
        for theirs in others.iter().filter_map(|other| other.get(index)) {
            ours.bitmap.union_with(&theirs.bitmap);
        }
        let set = ours.set_num_items(num_items);
        debug_assert!(set.is_ok(), "at most one a bit is planned");
    }
}
