//! The methods of [`BloomFilter`] that make windowed filters and read a filter at a given time.

use super::filter::{BloomFilter, EitherChain, reached};
use super::params::Params;
use super::windowed_filter::WindowedFilter;
use super::windowing::Windowing;
use crate::error::Error;
use crate::size_limit::SizeLimit;
use crate::window::Time;

/// A view of a filter at a given time. The view ignores items that have expired by this time, and changes nothing.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
/// use rollcall_core::window::Time;
///
/// // Without a window it answers the same at any time.
/// let seen: BloomFilter = ["ann"].into_iter().collect();
/// assert!(seen.at(Time::At(1_800_000_000)).may_contain("ann"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    filter: &'a BloomFilter,
    slices_later: u64,
}

impl BloomFilter {
    /// An empty windowed filter whose newest slice is `newest_slice`. Methods without a time parameter answer as of the
    /// newest slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`, which is asked for the bytes
    /// of all slices at once.
    pub fn windowed(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        Ok(WindowedFilter::new(params, windowing, newest_slice, limit)?.into())
    }

    /// The window, if the filter has one.
    pub fn windowing(&self) -> Option<&Windowing> {
        self.as_windowed().map(WindowedFilter::windowing)
    }

    /// A view of the filter at this time.
    #[inline]
    pub fn at(&self, time: Time) -> Present<'_> {
        Present { filter: self, slices_later: self.as_windowed().map_or(0, |filter| filter.slices_later(time)) }
    }
}

impl Present<'_> {
    /// The answer of [`BloomFilter::may_contain`] at the time of the view.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        let item = item.as_ref();
        reached!(&self.filter.chain, may_contain(item), self.slices_later)
    }

    /// Calls `found` like [`BloomFilter::may_contain_all`], with the answers at the time of the view.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        let items = items.into_iter().map(AsRef::as_ref);
        reached!(&self.filter.chain, may_contain_all(items, found), self.slices_later);
    }

    /// The result of [`BloomFilter::num_items`] at the time of the view.
    pub fn num_items(&self) -> u64 {
        reached!(&self.filter.chain, num_items(), self.slices_later)
    }

    /// The result of [`BloomFilter::fill_ratio`] at the time of the view.
    pub fn fill_ratio(&self) -> f64 {
        reached!(&self.filter.chain, fill_ratio(), self.slices_later)
    }

    /// The result of [`BloomFilter::false_positive_rate`] at the time of the view.
    pub fn false_positive_rate(&self) -> f64 {
        reached!(&self.filter.chain, false_positive_rate(), self.slices_later)
    }
}

#[cfg(test)]
mod tests;
