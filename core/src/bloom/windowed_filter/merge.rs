//! Unions of windowed filters: the generations of each slice are united.

use super::super::chain::merge::{all_new_like, plan_union, unite};
use super::super::chain::{MAX_SUB_FILTERS, SubFilter, num_items, taken_bytes};
use super::super::lines::sub_filter::LineSubFilter;
use super::{Expired, Generation, WindowedFilter};
use crate::error::{Error, Parameter};
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::{Ahead, Merging, Move, Time};

/// The parts that make up a generation of the union.
struct Planned<'a> {
    /// The number of sub-filters that our generation has.
    ours: usize,
    renewed: u64,
    /// For each other filter that has this generation, the number of items that are counted as renewed.
    their_renewed: Vec<u64>,
    their_sub_filters: Vec<&'a [LineSubFilter]>,
    /// The number of items of each sub-filter of the union; `None` if our sub-filters do not change.
    num_items: Option<Vec<u64>>,
    /// The empty sub-filters that our generation needs to become as long as the union.
    added: Vec<LineSubFilter>,
    age: u32,
}

impl WindowedFilter {
    /// Turns the filter into the union with `others`. The caller renumbers the slices before and after, as `merging`
    /// says. Its newest slice becomes the newest slice of all filters, and generations that have expired by then are
    /// dropped. Returns whether anything changed, and the dropped data.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the parameter that differs. [`Error::NotOfLast`] is for filters of the last items,
    /// and [`Error::RateExceeded`] for a generation whose false-positive rate would be too high. Other errors come from
    /// `limit` or are [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn merge(
        &mut self,
        others: &[&Self],
        merging: Merging,
        limit: &impl SizeLimit,
    ) -> Result<(bool, Expired), Error> {
        let stored = self.newest_slice;
        if let Move::Rebase(slice) = merging.before {
            self.rebase(slice);
        }
        let united = self.unite(others, limit);
        match (&united, merging.after) {
            (Ok(_), Move::Rebase(slice)) => self.rebase(slice),
            (Ok(_), _) => {}
            (Err(_), _) => self.newest_slice = stored,
        }
        united
    }

    fn unite(&mut self, others: &[&Self], limit: &impl SizeLimit) -> Result<(bool, Expired), Error> {
        if self.is_of_last() {
            return Err(Error::NotOfLast { what: "unions" });
        }
        for other in others {
            self.params.check_equal(&other.params)?;
            Error::check_same(
                Parameter::Window,
                self.windowing.with_volatile(false),
                other.windowing.with_volatile(false),
            )?;
        }
        let newest_slice = others.iter().fold(self.newest_slice, |newest, other| newest.max(other.newest_slice));
        let plans = self.plan(others, newest_slice, limit)?;
        let changed = newest_slice > self.newest_slice || plans.iter().any(|plan| plan.num_items.is_some());
        if !changed {
            return Ok((false, Expired::default()));
        }
        let len = plans.iter().map(|plan| plan.ours + plan.added.len()).sum();
        Error::check_range(len <= MAX_SUB_FILTERS, Parameter::SubFilters, "at most 1024", len)?;
        let (mut sub_filters, mut generations) = (try_with_capacity(len)?, try_with_capacity(plans.len())?);
        let expired = self.advance(newest_slice);
        let mut ours = std::mem::take(&mut self.sub_filters).into_iter();
        for mut plan in plans {
            let start = sub_filters.len();
            sub_filters.extend(ours.by_ref().take(plan.ours));
            sub_filters.append(&mut plan.added);
            let these = &mut sub_filters[start..];
            generations.push(Generation { age: plan.age, len: these.len() as u32, renewed: plan.unite(these) });
        }
        (self.sub_filters, self.generations) = (sub_filters, generations);
        Ok((true, expired))
    }

    /// Checks that a merge with `others` at `time` is allowed, and returns its effect on the slice numbers.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one of `others` is more than a slice ahead: this filter would expire items early.
    pub fn merging<'a>(&self, others: impl Iterator<Item = &'a Self>, time: Time) -> Result<Merging, Error> {
        let Some(window) = self.windowing.window() else { return Ok(Merging::default()) };
        // Filters with other windows are left out, since their slices mean other times. The merge rejects them.
        let same = others
            .filter(|other| other.windowing.with_volatile(false) == self.windowing.with_volatile(false))
            .map(|other| other.newest_slice);
        window.merging(self.newest_slice, same, time).map_err(|Ahead { slice, present }| {
            let got = format_args!("{slice}, where that is {present}");
            Error::out_of_range(Parameter::Slice, "at most one ahead of the destination's", got)
        })
    }

    /// Plans each generation of the union that is live once `newest_slice` is the newest, oldest first.
    fn plan<'a>(
        &self,
        others: &[&'a Self],
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Planned<'a>>, Error> {
        let live = self.windowing.generations(self.params.capacity);
        let mut plans = try_with_capacity(live as usize)?;
        let mut held = self.size_bytes();
        for age in (0..live).rev() {
            let (renewed, ours) = self.aged(age, newest_slice).map_or((0, &[][..]), |(one, list)| (one.renewed, list));
            let mut their_renewed = try_with_capacity(others.len())?;
            let mut their_sub_filters = try_with_capacity(others.len())?;
            for (generation, sub_filters) in others.iter().filter_map(|other| other.aged(age, newest_slice)) {
                their_renewed.push(generation.renewed);
                their_sub_filters.push(sub_filters);
            }
            if ours.is_empty() && their_sub_filters.is_empty() {
                continue;
            }
            let num_items = plan_union(ours, &their_sub_filters)?;
            let added = all_new_like(ours, &their_sub_filters, held, limit)?;
            held = added.iter().map(taken_bytes).fold(held, u64::saturating_add);
            plans.push(Planned { ours: ours.len(), renewed, their_renewed, their_sub_filters, num_items, added, age });
        }
        Ok(plans)
    }

    /// The generation, with its sub-filters, that has this age once `newest_slice` is the newest.
    fn aged(&self, age: u32, newest_slice: u64) -> Option<(&Generation, &[LineSubFilter])> {
        let slices_later = newest_slice - self.newest_slice;
        self.by_generation().find(|(one, _)| u64::from(one.age).checked_add(slices_later) == Some(u64::from(age)))
    }
}

impl Planned<'_> {
    /// Adds the items of the merged generations to the sub-filters `ours`. Returns how many items of the union count as
    /// renewed: they were added again later, so a younger generation has them too.
    fn unite(&self, ours: &mut [LineSubFilter]) -> u64 {
        let Some(planned) = &self.num_items else { return self.renewed };
        // If one of the merged generations has all bits of the union, its number of renewed items is kept. Else the
        // union gets the share of renewed items that all merged generations have together.
        let theirs = self.their_renewed.iter().zip(&self.their_sub_filters);
        let theirs = theirs.map(|(&renewed, list)| (renewed, num_items(list), set_bits(list)));
        let of_ours = (self.renewed, num_items(ours), set_bits(ours));
        unite(ours, &self.their_sub_filters, planned);
        let all = std::iter::once(of_ours).chain(theirs);
        let (bits, items) = (set_bits(ours), num_items(ours));
        let (mut whole, mut renewed, mut sum) = (None, 0u128, 0u128);
        for (one_renewed, one_items, one_bits) in all {
            if one_bits == bits {
                whole = whole.max(Some(one_renewed));
            }
            (renewed, sum) = (renewed + u128::from(one_renewed), sum + u128::from(one_items));
        }
        // The share is at most `items`, because `renewed` is at most `sum`.
        let share = (renewed * u128::from(items)).checked_div(sum).unwrap_or(0) as u64;
        whole.unwrap_or(share).min(items)
    }
}

fn set_bits(sub_filters: &[LineSubFilter]) -> u64 {
    sub_filters.iter().map(SubFilter::set_bits).sum()
}
