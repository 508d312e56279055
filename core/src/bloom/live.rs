//! Implements [`Windowed`] for [`BloomFilter`]: all changes of a filter, with or without a window.

use super::filter::{BloomFilter, EitherChain, either};
use super::lines::sub_filter::LineSubFilter;
use super::windowing::Windowing;
use crate::admission::{Admission, Terms};
use crate::error::{Error, Parameter};
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::size_limit::{SizeLimit, try_collect};
use crate::window::{ClockSource, Mark, Merging, Move, Time, Window};

impl BloomFilter {
    /// Gives access to change the filter at this time.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
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

/// The expired sub-filters of a filter. Freeing large sub-filters takes long, so the caller may send them to another
/// thread.
///
/// ```
/// use rollcall_core::bloom::{BloomFilter, Params, Windowing};
/// use rollcall_core::live::Windowed;
/// use rollcall_core::size_limit::Unlimited;
/// use rollcall_core::window::{ClockSource, Time};
///
/// let day = Windowing::new(86_400, 4, ClockSource::Manual, false)?;
/// let mut filter = BloomFilter::windowed(Params::default(), day, 0, &Unlimited)?;
/// filter.live(Time::Reached).add("ann", &Unlimited)?;
/// assert_eq!(filter.advance(4).num_bytes(), 0);
/// assert!(filter.advance(5).num_bytes() > 0);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Expired(
    /// `None` if nothing expired, as after nearly every change: dropping that costs only a comparison.
    Option<Vec<LineSubFilter>>,
);

impl Expired {
    /// Bytes of the expired bitmaps.
    pub fn num_bytes(&self) -> u64 {
        self.0.iter().flatten().map(|sub_filter| sub_filter.geometry().num_bytes()).sum()
    }
}

impl Windowed for BloomFilter {
    type Expired = Expired;

    #[inline]
    fn window(&self) -> Option<&Window> {
        self.windowing().map(|windowing| &windowing.window)
    }

    #[inline]
    fn newest_slice(&self) -> Option<u64> {
        either!(&self.chain, filter => filter.newest_slice())
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        either!(&mut self.chain, filter => filter.set_clock_source(clock_source));
    }

    fn advance(&mut self, slice: u64) -> Expired {
        match &mut self.chain {
            EitherChain::Lines(filter) => Expired(filter.advance(slice)),
            EitherChain::Classic(_) => Expired::default(),
        }
    }

    fn rebase(&mut self, slice: u64) {
        either!(&mut self.chain, filter => filter.rebase(slice));
    }

    fn renews(&self) -> bool {
        either!(&self.chain, filter => filter.renews())
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let others = others.iter().filter_map(|other| other.as_lines());
        self.as_lines().map_or_else(|| Ok(Merging::default()), |filter| filter.merging(others, time))
    }

    #[inline(always)]
    fn add_live(live: &mut Live<'_, Self>, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let due = live.due();
        if due != Move::Stay {
            if !either!(&live.value.chain, filter => filter.is_changed_by(item, due)) {
                return Ok(false);
            }
            live.make(due);
        }
        let mark = either!(&mut live.value.chain, filter => filter.add(item, limit)?);
        live.outcome.changed |= mark != Mark::Same;
        Ok(mark == Mark::New)
    }

    fn add_all_live<'a>(
        live: &mut Live<'_, Self>,
        mut items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let (due, mut first) = (live.due(), None);
        if due != Move::Stay {
            // Until the move is made, known items change nothing.
            while first.is_none() {
                let Some(item) = items.next() else { return Ok(()) };
                if either!(&live.value.chain, filter => filter.is_changed_by(item, due)) {
                    first = Some(item);
                } else {
                    added(false);
                }
            }
            live.make(due);
        }
        let (items, changed) = (first.into_iter().chain(items), &mut live.outcome.changed);
        either!(&mut live.value.chain, filter => filter.add_all(items, limit, changed, added))
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let due = live.due();
        let slices_later = match (due, live.value.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => slice - newest,
            _ => 0,
        };
        // A rebase is made even if all items are rejected: the clock had jumped ahead and came back. Without the
        // rebase, no item would expire and make room below the limit for a long time.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0 && !terms.dry_run;
        let reported = match &mut live.value.chain {
            EitherChain::Lines(filter) => {
                let admitting = filter.plan_admission(items, terms, slices_later, limit)?;
                live.outcome.changed |= admitting.renews();
                if admitting.adds() || rebases {
                    live.make(due);
                }
                // Borrowed anew: the move has changed the value.
                let EitherChain::Lines(filter) = &mut live.value.chain else { return Ok(Vec::new()) };
                filter.admit(admitting)?
            }
            EitherChain::Classic(filter) => {
                let admitting = filter.plan_admission(items, terms, 0, limit)?;
                filter.admit(admitting)?
            }
        };
        live.outcome.changed |= !terms.dry_run && reported.contains(&Admission::Admitted);
        Ok(reported)
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        others.iter().try_for_each(|other| live.value.check_kind(other))?;
        let merging = live.value.merging(others, live.time)?;
        let changed = match &mut live.value.chain {
            EitherChain::Lines(ours) => {
                let (changed, expired) = ours.merge(&all_of(others, Self::as_lines)?, merging, limit)?;
                live.outcome.expired = Expired(expired);
                changed
            }
            EitherChain::Classic(ours) => ours.merge(&all_of(others, Self::as_classic)?, merging, limit)?.0,
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
