//! Functions that make tests shorter.

use super::*;

/// A view of each counter at the time of its newest slice.
pub(in crate::counting) fn standing<'a>(counters: &[&'a Counter]) -> Vec<View<'a>> {
    counters.iter().map(|counter| counter.at(Time::Reached)).collect()
}

impl Counter {
    pub(in crate::counting) fn oldest_live(&self, time: Time) -> i128 {
        self.window().map_or(0, |window| window.oldest_live(window.present(self.reached(), time)))
    }

    pub(in crate::counting) fn slice_since(&self, seconds: u64, time: Time) -> i128 {
        self.window().map_or(0, |window| window.since(seconds, self.reached(), time))
    }

    /// A view of the members that were added in `slice` or later.
    pub(in crate::counting) fn view_of_slice(&self, slice: i128) -> View<'_> {
        self.view(|_| slice)
    }

    /// The estimate of [`Counter::since`], also for numbers of seconds that it rejects.
    pub(in crate::counting) fn count_since(&self, seconds: u64, time: Time) -> Result<Estimated, Error> {
        Ok(self.view_of_slice(self.slice_since(seconds, time)).estimated())
    }
}
