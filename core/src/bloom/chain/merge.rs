//! Unions of chains of one family of parameters: sub-filter by sub-filter, however many each has.

use std::iter::once;

use super::{Chain, SubFilter, chain_rate};
use crate::error::{Error, Parameter};
use crate::size_limit::{SizeLimit, held_bytes, try_reserve, try_with_capacity};

/// Rounding may make as much more of a rate, relative to it.
const ROUNDING: f64 = 1e-12;

impl<S: SubFilter> Chain<S> {
    /// Becomes the union of itself and `others`: contains what any of them contained, in as many sub-filters as the
    /// longest has. Tells whether that changed anything; a bit must have been set for that.
    ///
    /// A sub-filter that has all bits of the others keeps its number of items. Else that is the estimate from the bits, within
    /// what is certain: no fewer than each of those merged had, no more than all together.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs, [`Error::RateExceeded`] when the union would err more often than the
    /// error rate asked for, what `limit` says, [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn merge(&mut self, others: &[&Self], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
        others.iter().try_for_each(|other| self.check_params(other))?;
        // Filters from elsewhere need not have the sizes that follow from their parameters.
        self.merged(others)
            .try_for_each(|(first, mut rest)| rest.try_for_each(|other| first.check_mergeable(other)))?;
        let Some(num_items) = self.plan_union(others)? else { return Ok(false) };
        let mut more = self.empty_twins(others, limit)?;
        try_reserve(&mut self.sub_filters, more.len())?;
        self.sub_filters.append(&mut more);
        for (index, (ours, num_items)) in self.sub_filters.iter_mut().zip(num_items).enumerate() {
            for theirs in others.iter().filter_map(|other| other.sub_filters.get(index)) {
                ours.union_with(theirs);
            }
            ours.set_num_items(num_items)?;
        }
        Ok(true)
    }

    /// Whether `other` is made with the same parameters.
    fn check_params(&self, other: &Self) -> Result<(), Error> {
        let (ours, theirs) = (self.params(), other.params());
        if ours.capacity != theirs.capacity {
            return Err(Error::incompatible(Parameter::Capacity, ours.capacity, theirs.capacity));
        }
        if ours.error_rate != theirs.error_rate {
            return Err(Error::incompatible(Parameter::ErrorRate, ours.error_rate, theirs.error_rate));
        }
        if ours.expansion != theirs.expansion {
            return Err(Error::incompatible(Parameter::Expansion, ours.expansion, theirs.expansion));
        }
        if ours.seed != theirs.seed {
            return Err(Error::incompatible(Parameter::Seed, ours.seed, theirs.seed));
        }
        Ok(())
    }

    /// For each sub-filter of the union those that it is made of: the first, and the rest.
    fn merged<'a>(
        &'a self,
        others: &'a [&'a Self],
    ) -> impl Iterator<Item = (&'a S, impl Iterator<Item = &'a S> + Clone)> {
        (0..).map_while(move |index| {
            let chains = once(self).chain(others.iter().copied());
            let mut merged = chains.filter_map(move |chain| chain.sub_filters.get(index));
            Some((merged.next()?, merged))
        })
    }

    /// The number of items of each sub-filter of a union with mergeable filters; `None` when it would have no bit that this
    /// one has not.
    ///
    /// # Errors
    /// [`Error::RateExceeded`] when it would err more often than was asked for.
    fn plan_union(&self, others: &[&Self]) -> Result<Option<Vec<u64>>, Error> {
        // From reading alone: the bitmaps are not held twice.
        let len = others.iter().fold(self.sub_filters.len(), |len, other| len.max(other.sub_filters.len()));
        let (mut unions, mut rates) = (try_with_capacity(len)?, try_with_capacity(len)?);
        let mut changed = len > self.sub_filters.len();
        for (index, (first, rest)) in self.merged(others).enumerate() {
            let set_bits = first.count_union(rest.clone());
            changed |= self.sub_filters.get(index).is_some_and(|ours| ours.set_bits() != set_bits);
            let all = || once(first).chain(rest.clone());
            let whole = all().filter(|one| one.set_bits() == set_bits).map(S::num_items).max();
            let most = all().map(S::num_items).fold(0, u64::max);
            let sum = whole.unwrap_or_else(|| all().map(S::num_items).fold(0, u64::saturating_add));
            let estimate = libm::round(first.estimate_items(set_bits)) as u64;
            unions.push(whole.unwrap_or_else(|| estimate.clamp(most, sum).min(first.num_bits())));
            let rate = first.rate_with(set_bits);
            // What fits by its number of items is not kept out because more bits than expected are set by chance.
            rates.push(if first.holds(sum, set_bits) { rate.min(first.error_rate()) } else { rate });
        }
        if !changed {
            return Ok(None);
        }
        let (would_be, asked) = (chain_rate(rates.into_iter()), self.params().error_rate);
        if would_be > asked * (1.0 + ROUNDING) {
            return Err(Error::RateExceeded { would_be, asked });
        }
        Ok(Some(unions))
    }

    /// An empty sub-filter for each that the longest of `others` has more.
    fn empty_twins(&self, others: &[&Self], limit: &(impl SizeLimit + ?Sized)) -> Result<Vec<S>, Error> {
        let len = self.sub_filters.len();
        let mut twins = try_with_capacity(self.merged(others).skip(len).count())?;
        let mut held = held_bytes::<Self>(limit, |visit| self.heap_layouts(visit));
        for (first, _) in self.merged(others).skip(len) {
            let twin = first.empty_twin(held, limit)?;
            held = held.saturating_add(held_bytes::<S>(limit, |visit| twin.heap_layouts(visit)));
            twins.push(twin);
        }
        Ok(twins)
    }
}
