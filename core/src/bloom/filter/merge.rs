//! Unions of filters with equal parameters. Sub-filters of the same slice and index are united. A slice may have more
//! sub-filters in one filter than in another.

use std::iter::once;

use super::changes::MAX_SUB_FILTERS;
use super::generations::{Generation, Parts};
use super::{BloomFilter, Expired, chain_rate};
use crate::bits::{PAGE_BYTES, count_ones_in_bytes, or_page};
use crate::bloom::bitmap::{Bits, count_union};
use crate::bloom::lines::sizing::rate_from;
use crate::bloom::sub_filter::{Spec, SubFilter, num_bytes, num_items};
use crate::error::{Error, Parameter};
use crate::live::Value;
use crate::parallel::{self, PIECE_BYTES};
use crate::size_limit::{SizeLimit, try_collect, try_filled, try_with_capacity};
use crate::stored::payload::{Apart, Payload};

/// The largest relative rounding error of the computed false-positive rate of a filter.
const ROUNDING: f64 = 1e-12;

/// The items of one slice in one filter: the number of those that were added again later, the sub-filters, and their
/// bits end to end.
type Part<'a> = (u64, &'a [SubFilter], Bits<'a>);

/// The bits of the sub-filters at this index.
fn bits_at<'a>(parts: &[Part<'a>], index: usize) -> impl Iterator<Item = Bits<'a>> + Clone + Sync {
    let longer = parts.iter().filter(move |(_, sub_filters, _)| index < sub_filters.len());
    longer.map(move |&(_, sub_filters, (payload, position))| (payload, position + num_bytes(&sub_filters[..index])))
}

/// The plan for one slice of the union.
struct Planned<'a> {
    age: u32,
    /// The number of sub-filters that the filter to be changed has for the slice.
    ours: usize,
    /// The items of this slice in the other filters.
    theirs: Vec<Part<'a>>,
    /// The [`counts_of`] the slice in the filter to be changed.
    own: (u64, u64, u64),
    /// The numbers of items and of set bits of each sub-filter in the union; `None` if the union adds nothing to this
    /// filter's slice.
    counts: Option<Vec<(u64, u64)>>,
    /// Empty sub-filters to append to this filter's slice. It then has as many as the merged slice with the most
    /// sub-filters.
    added: Vec<SubFilter>,
}

impl BloomFilter {
    /// Turns the filter into the union with `others`, whose parameters have been checked, without expired slices. The
    /// newest slice of the union is the latest slice of all filters. Returns whether anything changed, and the removed
    /// sub-filters.
    ///
    /// If one of the merged sub-filters already has all bits of the union, the union has the same number of items.
    /// Otherwise the number is estimated from the bits. It is at least the largest merged number.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if sub-filters differ. [`Error::RateExceeded`] if the union's false-positive rate would
    /// exceed the rate asked for. Also errors of `limit` and [`Error::OutOfMemory`]. On error the filter is unchanged.
    pub(super) fn unite(&mut self, others: &[Apart<&Self>], limit: &impl SizeLimit) -> Result<(bool, Expired), Error> {
        let newest_slice = others.iter().fold(self.newest_slice(), |newest, one| newest.max(one.0.newest_slice()));
        let mut plans = self.plan(others, newest_slice, limit)?;
        let changed = newest_slice > self.newest_slice() || plans.iter().any(|plan| plan.counts.is_some());
        if !changed {
            return Ok((false, Expired::default()));
        }
        let len = plans.iter().map(|plan| plan.ours + plan.added.len()).sum();
        let is_within = self.windowing().is_none() || len <= MAX_SUB_FILTERS;
        Error::check_range(is_within, Parameter::SubFilters, format_args!("at most {MAX_SUB_FILTERS}"), len)?;
        let (mut sub_filters, mut generations) = (try_with_capacity(len)?, try_with_capacity(plans.len())?);
        let mut merged = try_filled(others.len() + 1, (true, 0))?;
        // Items have the same bits in all slices if each slice has a single sub-filter.
        let spec = self.ring().filter(|_| len == plans.len()).map(|ring| Spec::of_lines(&ring.of_generation, 0));
        let mut later = spec.map(|spec| SubFilter::from_spec(spec?, 0, limit)).transpose()?;
        let expired = newest_slice.map(|slice| self.advance(slice)).unwrap_or_default();
        let (only, many, ring) = match std::mem::replace(&mut self.parts, Parts::Many(Vec::new(), None)) {
            Parts::One(only) => (Some(only), Vec::new(), None),
            Parts::Many(many, ring) => (None, many, ring),
        };
        let mut ours = only.into_iter().chain(many);
        for plan in &mut plans {
            let start = sub_filters.len();
            sub_filters.extend(ours.by_ref().take(plan.ours));
            sub_filters.append(&mut plan.added);
            let these = &mut sub_filters[start..];
            plan.unite(these);
            generations.push(Generation { age: plan.age, len: these.len() as u32, renewed: 0 });
        }
        let (mut rest, mut items) = (&sub_filters[..], 0);
        for (generation, plan) in generations.iter_mut().zip(&plans).rev() {
            let these;
            (rest, these) = rest.split_at(rest.len() - generation.len as usize);
            generation.renewed = plan.renewed(these, items, &mut merged, later.as_mut());
            items += num_items(these) - generation.renewed;
        }
        let largest = merged.iter().map(|&(_, items)| items).max();
        let mut missing = largest.unwrap_or(0).saturating_sub(items);
        for generation in &mut generations {
            let fewer = missing.min(generation.renewed);
            (generation.renewed, missing) = (generation.renewed - fewer, missing - fewer);
        }
        self.parts = match ring {
            Some(mut ring) => {
                ring.list = generations;
                Parts::Many(sub_filters, Some(ring))
            }
            None => Parts::from_vec(sub_filters),
        };
        Ok((true, expired))
    }

    /// Plans the union slice by slice, oldest first, without slices that have expired when the window is at
    /// `newest_slice`.
    fn plan<'a>(
        &self,
        others: &'a [Apart<'a, &Self>],
        newest_slice: Option<u64>,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Planned<'a>>, Error> {
        let live = self.windowing().map_or(1, |windowing| windowing.generations());
        let mut plans = try_with_capacity(live as usize)?;
        let (mut held, none) = (self.held_bytes(self.chain()), Payload::default());
        for age in (0..live).rev() {
            let own = self.aged(age, newest_slice, &none);
            let theirs = others.iter().map(|(other, payload)| other.aged(age, newest_slice, payload));
            let (ours, theirs) = (own.1, try_collect(others.len(), theirs)?);
            if merged(ours, &theirs).next().is_none() {
                continue;
            }
            let counts = plan_union(ours, &theirs)?;
            let mut added = try_with_capacity(merged(ours, &theirs).skip(ours.len()).count())?;
            for (first, _) in merged(ours, &theirs).skip(ours.len()) {
                let next = SubFilter::from_spec(first.spec.clone(), held, limit)?;
                held = held.saturating_add(next.reported_bytes());
                added.push(next);
            }
            plans.push(Planned { age, ours: ours.len(), theirs, own: counts_of(&own), counts, added });
        }
        Ok(plans)
    }

    /// The items of the slice that is `age` slices before `newest_slice`. Without a window, all items have age 0.
    fn aged<'a>(&'a self, age: u32, newest_slice: Option<u64>, payload: &'a Payload<'a>) -> Part<'a> {
        let slices_later = self.newest_slice().zip(newest_slice).map_or(0, |(own, newest)| newest - own);
        let is_it = |one: &Generation| u64::from(one.age).checked_add(slices_later) == Some(u64::from(age));
        let mut position = 0;
        let found = self.by_generation().find_map(|(one, sub_filters)| {
            let start = position;
            position += num_bytes(sub_filters);
            is_it(&one).then_some((one.renewed, sub_filters, (payload, start)))
        });
        found.unwrap_or((0, &[], (payload, 0)))
    }
}

impl Planned<'_> {
    /// Merges the sub-filters that the other filters have for this slice into `ours`, the sub-filters of this filter.
    fn unite(&self, ours: &mut [SubFilter]) {
        for (index, (ours, &(num_items, set_bits))) in ours.iter_mut().zip(self.counts.iter().flatten()).enumerate() {
            ours.unite(bits_at(&self.theirs, index), set_bits);
            let set = ours.set_num_items(num_items);
            debug_assert!(set.is_ok(), "at most one a bit is planned");
        }
    }

    /// Returns how many items of the merged slice, which has the sub-filters `these`, were added again later. The later
    /// slices have `counted` items. `merged` says of each filter whether it has all bits of them, and how many items
    /// it has there. `later` has their bits. Both then include this slice.
    ///
    /// If one of the filters has all bits, its number is kept. Otherwise the number is estimated from the bits of this
    /// slice and `later` together. Without `later`, or if too many of these bits are set, the fraction of such items is
    /// that in all filters together.
    fn renewed(
        &self,
        these: &[SubFilter],
        counted: u64,
        merged: &mut [(bool, u64)],
        later: Option<&mut SubFilter>,
    ) -> u64 {
        let (items, bits) = (num_items(these), set_bits(these));
        let (mut kept, mut renewed, mut sum) = (None, 0u128, 0u128);
        let counts = once(self.own).chain(self.theirs.iter().map(counts_of));
        for ((whole, of_one), (one_renewed, one_items, one_bits)) in merged.iter_mut().zip(counts) {
            *whole &= one_bits == bits;
            *of_one += one_items - one_renewed;
            kept = kept.max(whole.then_some(one_renewed));
            (renewed, sum) = (renewed + u128::from(one_renewed), sum + u128::from(one_items));
        }
        let estimate = match (later, these) {
            (Some(later), [only]) => {
                let (all, own) = (bytemuck::cast_slice_mut(&mut later.lines), only.as_bytes());
                let pieces = all.chunks_mut(PIECE_BYTES).zip(own.chunks(PIECE_BYTES));
                later.set_bits = parallel::sum(pieces, own.len(), |(all, own)| {
                    all.chunks_mut(PAGE_BYTES).zip(own.chunks(PAGE_BYTES)).for_each(|(all, own)| or_page(all, own));
                    count_ones_in_bytes(all)
                });
                let all = libm::round(later.spec.estimate_items(later.set_bits)) as u64;
                let fresh = if counted > 0 { all.saturating_sub(counted) } else { items };
                (later.set_bits <= later.spec.num_bits / 16 * 15).then(|| items.saturating_sub(fresh))
            }
            _ => None,
        };
        // The cast loses nothing: `renewed` is at most `sum`, so the result is at most `items`.
        let share = || (renewed * u128::from(items)).checked_div(sum).unwrap_or(0) as u64;
        kept.or(estimate).unwrap_or_else(share).min(items)
    }
}

/// The numbers of items that were added again later, of all items, and of set bits.
fn counts_of(&(renewed, sub_filters, _): &Part<'_>) -> (u64, u64, u64) {
    (renewed, num_items(sub_filters), set_bits(sub_filters))
}

fn set_bits(sub_filters: &[SubFilter]) -> u64 {
    sub_filters.iter().map(|one| one.set_bits).sum()
}

/// For each index, the first filter's sub-filter, and an iterator over those of the other filters.
fn merged<'a>(
    ours: &'a [SubFilter],
    theirs: &'a [Part<'a>],
) -> impl Iterator<Item = (&'a SubFilter, impl Iterator<Item = &'a SubFilter> + Clone + Sync)> {
    (0..).map_while(move |index| {
        let lists = once(ours).chain(theirs.iter().map(|(_, sub_filters, _)| *sub_filters));
        let mut merged = lists.filter_map(move |list| list.get(index));
        Some((merged.next()?, merged))
    })
}

/// Returns the numbers of items and of set bits of each sub-filter in the union of `ours` and `theirs`; `None` if the
/// union adds neither a bit nor a sub-filter to `ours`.
///
/// # Errors
/// [`Error::Incompatible`] if sub-filters with the same index have different sizes or error rates.
/// [`Error::RateExceeded`] if the union's false-positive rate, with all sub-filters that it may still append, would
/// exceed the rate asked for.
fn plan_union(ours: &[SubFilter], theirs: &[Part<'_>]) -> Result<Option<Vec<(u64, u64)>>, Error> {
    merged(ours, theirs)
        .try_for_each(|(first, mut rest)| rest.try_for_each(|other| first.spec.check_mergeable(&other.spec)))?;
    let Some((oldest, _)) = merged(ours, theirs).next() else { return Ok(None) };
    let len = theirs.iter().fold(ours.len(), |len, (_, sub_filters, _)| len.max(sub_filters.len()));
    let (mut unions, mut rates) = (try_with_capacity(len)?, try_with_capacity(len)?);
    // The sum of the rates of sub-filters that the union may append later. In RedisBloom's layout they are ignored.
    let to_come = if oldest.classic().is_some() { 0.0 } else { rate_from(&oldest.spec.params, len as u64) };
    let mut changed = len > ours.len();
    for (index, (first, rest)) in merged(ours, theirs).enumerate() {
        let own = ours.get(index).map_or(&[][..], SubFilter::as_bytes);
        let set_bits = count_union(first.spec.num_bytes as usize, own, bits_at(theirs, index));
        changed |= ours.get(index).is_some_and(|ours| ours.set_bits != set_bits);
        let all = || once(first).chain(rest.clone());
        let whole = all().filter(|one| one.set_bits == set_bits).map(|one| one.num_items).max();
        let most = all().map(|one| one.num_items).fold(0, u64::max);
        let sum = whole.unwrap_or_else(|| all().map(|one| one.num_items).fold(0, u64::saturating_add));
        let estimate = libm::round(first.spec.estimate_items(set_bits)) as u64;
        let items = whole.map_or_else(|| estimate.clamp(most, sum).min(first.spec.num_bits), |whole| whole.max(most));
        unions.push((items, set_bits));
        let (rate, nominal) = (first.spec.rate_with(set_bits), first.spec.error_rate);
        let fills_up = index + 1 == len && to_come > 0.0;
        // `nominal` is the rate that a full sub-filter should have. The rate of a sub-filter within its capacity is
        // taken as at most `nominal`, because only chance could raise it above. The rate of the last sub-filter is
        // taken as at least `nominal`, because this sub-filter is filled before the union grows.
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
    let (would_be, asked) = (chain_rate(rates.into_iter().chain(once(to_come))), oldest.spec.params.error_rate);
    if would_be > asked * (1.0 + ROUNDING) {
        return Err(Error::RateExceeded { would_be, asked });
    }
    Ok(Some(unions))
}
