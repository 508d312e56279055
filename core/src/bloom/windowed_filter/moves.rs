//! Moves a windowed filter to a later slice, and drops the generations that expire.

use super::super::chain::SubFilter;
use super::super::lines::sub_filter::LineSubFilter;
use super::super::windowing::Span;
use super::WindowedFilter;
use crate::live::Outcome;
use crate::size_limit::try_with_capacity;
use crate::window::{ClockSource, Move, Time};

/// The expired sub-filters of a filter. Freeing large sub-filters takes long, so the caller may send them to another
/// thread.
///
/// ```
/// use rollcall_core::bloom::{BloomFilter, Params, Windowing};
/// use rollcall_core::live::Windowed;
/// use rollcall_core::size_limit::Unlimited;
/// use rollcall_core::window::{ClockSource, Time};
///
/// let day = Windowing::time(86_400, 4, ClockSource::Manual, false)?;
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

impl WindowedFilter {
    /// The number of slices from the newest one to the slice of `time`.
    #[inline]
    pub(in crate::bloom) fn slices_later(&self, time: Time) -> u64 {
        self.windowing.window().map_or(0, |window| window.present(self.newest_slice, time) - self.newest_slice)
    }

    /// Begins all slices up to `slice`, and returns the generations that expire. Nothing changes if `slice` has begun
    /// already, or in a filter of the last items.
    pub fn advance(&mut self, slice: u64) -> Expired {
        let slices_later = slice.saturating_sub(self.newest_slice);
        if slices_later == 0 || self.is_of_last() {
            return Expired::default();
        }
        let (generations, sub_filters) = self.dead(slices_later);
        // Without memory for the list, the expired sub-filters are dropped here.
        let list = try_with_capacity(sub_filters).ok();
        self.newest_slice = slice;
        self.generations.drain(..generations);
        // The ages of live generations stay less than the number of generations that may be live, so the cast fits.
        self.generations.iter_mut().for_each(|one| one.age = one.age.saturating_add(slices_later as u32));
        let dead = self.sub_filters.drain(..sub_filters);
        Expired(list.map(|mut list| {
            list.extend(dead);
            list
        }))
    }

    /// The move to a later slice that must precede a change at `time`.
    #[inline]
    pub(super) fn due(&self, time: Time) -> Move {
        self.windowing.window().map_or(Move::Stay, |window| window.due(self.newest_slice, time))
    }

    /// Moves the filter to a later slice as `due` says, and records the move in `outcome`.
    pub(super) fn make(&mut self, due: Move, outcome: &mut Outcome<Expired>) {
        match due {
            Move::Stay => {}
            Move::Advance(slice) => outcome.expired = self.advance(slice),
            Move::Rebase(slice) => self.rebase(slice),
        }
        outcome.before = due;
    }

    /// Whether adding an item would change the filter after the move `due`.
    pub(super) fn is_changed_by(&self, item: &[u8], due: Move) -> bool {
        match due {
            // A known item makes a rebase too. Otherwise a filter whose clock had jumped ahead would not come back
            // while only known items arrive.
            Move::Stay | Move::Rebase(_) => true,
            Move::Advance(slice) => {
                self.windowing.refresh
                    || !LineSubFilter::look_up(self.live(slice.saturating_sub(self.newest_slice)), self.hash(item))
            }
        }
    }

    /// Renumbers all slices so that the newest has the earlier number `slice`. If `slice` is later than the newest
    /// slice, nothing changes.
    pub fn rebase(&mut self, slice: u64) {
        if !self.is_of_last() {
            self.newest_slice = self.newest_slice.min(slice);
        }
    }

    /// Changes the clock source of the window. A filter of the last items has no clock.
    pub(in crate::bloom) fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Span::Time(window) = &mut self.windowing.span {
            *window = window.with_clock_source(clock_source);
        }
    }
}
