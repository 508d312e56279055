//! Implements [`Windowed`] for [`BloomFilter`]: all changes of a filter, with or without a window.

use super::filter::{BloomFilter, EitherChain};
use super::windowed_filter::{Expired, WindowedFilter};
use super::windowing::Windowing;
use crate::admission::{Admission, Terms};
use crate::error::{Error, Parameter};
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::size_limit::{SizeLimit, try_collect};
use crate::window::{ClockSource, Merging, Time, Window};

impl BloomFilter {
    /// Gives access to change the filter at this time.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    pub(super) fn as_windowed_mut(&mut self) -> Option<&mut WindowedFilter> {
        if let EitherChain::Windowed(filter) = &mut self.chain { Some(filter) } else { None }
    }

    /// Checks that `other` has the layout of this filter, and that both filters or neither have a window.
    fn check_kind(&self, other: &BloomFilter) -> Result<(), Error> {
        Error::check_same(Parameter::Layout, self.layout(), other.layout())?;
        if self.windowing().is_some() == other.windowing().is_some() {
            return Ok(());
        }
        let [ours, theirs] = [self, other].map(|filter| filter.windowing().map_or("none".into(), Windowing::to_string));
        Err(Error::incompatible(Parameter::Window, ours, theirs))
    }
}

impl Live<'_, BloomFilter> {
    /// The same as [`BloomFilter::room`].
    pub fn room(&self) -> u64 {
        self.value.room()
    }
}

impl Sealed for BloomFilter {}

impl Windowed for BloomFilter {
    type Expired = Expired;

    fn window(&self) -> Option<&Window> {
        self.windowing().and_then(Windowing::window)
    }

    fn newest_slice(&self) -> Option<u64> {
        self.as_windowed().map(WindowedFilter::newest_slice)
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        self.as_windowed_mut().into_iter().for_each(|filter| filter.set_clock_source(clock_source));
    }

    fn advance(&mut self, slice: u64) -> Expired {
        self.as_windowed_mut().map_or_else(Expired::default, |filter| filter.advance(slice))
    }

    fn rebase(&mut self, slice: u64) {
        self.as_windowed_mut().into_iter().for_each(|filter| filter.rebase(slice));
    }

    fn renews(&self) -> bool {
        self.windowing().is_some_and(|windowing| windowing.refresh)
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let others = others.iter().filter_map(|other| other.as_windowed());
        self.as_windowed().map_or_else(|| Ok(Merging::default()), |filter| filter.merging(others, time))
    }

    #[inline(always)]
    fn add_live(live: &mut Live<'_, Self>, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let is_new = match &mut live.value.chain {
            EitherChain::Lines(filter) => filter.add(item, limit)?,
            EitherChain::Classic(filter) => filter.add(item, limit)?,
            EitherChain::Windowed(filter) => {
                // By value, so that the outcome of a plain filter stays in registers.
                let (added, outcome) = filter.add_at(item, live.time, limit);
                live.outcome.join(outcome);
                return added;
            }
        };
        live.outcome.changed |= is_new;
        Ok(is_new)
    }

    fn add_all_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let changed = &mut live.outcome.changed;
        let note = |is_new| {
            *changed |= is_new;
            added(is_new);
        };
        match &mut live.value.chain {
            EitherChain::Lines(filter) => filter.add_all(items, limit, note),
            EitherChain::Classic(filter) => filter.add_all(items, limit, note),
            EitherChain::Windowed(filter) => filter.add_all_at(items, live.time, limit, &mut live.outcome, added),
        }
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let reported = match &mut live.value.chain {
            EitherChain::Lines(filter) => filter.admit(items, terms, limit)?,
            EitherChain::Classic(filter) => filter.admit(items, terms, limit)?,
            EitherChain::Windowed(filter) => return filter.admit_at(items, terms, live.time, limit, &mut live.outcome),
        };
        live.outcome.changed |= !terms.dry_run && reported.contains(&Admission::Admitted);
        Ok(reported)
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        others.iter().try_for_each(|other| live.value.check_kind(other))?;
        let merging = live.value.merging(others, live.time)?;
        let changed = match &mut live.value.chain {
            EitherChain::Lines(ours) => ours.merge(&all_of(others, Self::as_lines)?, limit)?,
            EitherChain::Classic(ours) => ours.merge(&all_of(others, Self::as_classic)?, limit)?,
            EitherChain::Windowed(ours) => {
                let (changed, expired) = ours.merge(&all_of(others, Self::as_windowed)?, merging, limit)?;
                live.outcome.expired = expired;
                changed
            }
        };
        (live.outcome.before, live.outcome.after) = (merging.before, merging.after);
        live.outcome.changed |= changed;
        Ok(changed)
    }
}

/// The filters for which `as_kind` returns `Some`, in order.
fn all_of<'a, F>(
    filters: &[&'a BloomFilter],
    as_kind: impl Fn(&'a BloomFilter) -> Option<&'a F>,
) -> Result<Vec<&'a F>, Error> {
    try_collect(filters.len(), filters.iter().filter_map(|filter| as_kind(filter)))
}

#[cfg(test)]
crate::live::short_forms!(BloomFilter);

#[cfg(test)]
impl BloomFilter {
    pub(crate) fn merge(&mut self, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        self.live(Time::Reached).merge(others, limit)
    }
}

#[cfg(test)]
mod tests;
