//! The parameters of a filter, and its window.

use std::fmt::{self, Display};

use crate::error::{Error, Parameter, named};
use crate::window::{ClockSource, Window};

named! {
    /// The layout of a filter: where in the bitmap an item's bits are.
    ///
    /// ```
    /// assert_eq!(rollcall_core::bloom::BitLayout::Lines.name(), "lines");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BitLayout {
        /// Rollcall's own layout: the bits of an item lie in a few cache lines. It is the faster one.
        Lines = "lines",
        /// RedisBloom's layout: the bits of an item lie anywhere. It is for filters that are imported from RedisBloom
        /// or will be exported to it.
        Classic = "classic",
    }
}

/// The parameters of a filter. Filters with equal parameters, to which the same items were added in the same order,
/// have equal bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The false-positive rate: the largest share of absent items that the filter may report as present.
    pub error_rate: f64,
    /// The number of items that the first sub-filter is sized for.
    pub capacity: u64,
    /// The size of each new sub-filter as a multiple of the previous one; 0 for a filter that does not scale.
    pub expansion: u32,
    /// Seed of the hash.
    pub seed: u64,
}

/// The parameters of a filter that `BF.ADD` creates.
impl Default for Params {
    fn default() -> Self {
        Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 }
    }
}

impl Params {
    /// The largest capacity, in items.
    pub const MAX_CAPACITY: u64 = 1 << 40;

    /// The largest expansion.
    pub const MAX_EXPANSION: u32 = 32768;

    /// Checks that every parameter is in its range.
    ///
    /// ```
    /// use rollcall_core::bloom::Params;
    ///
    /// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// assert!(params.validate().is_ok());
    /// assert!(Params { error_rate: 1.0, ..params }.validate().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] names the first parameter that is not in its range.
    pub fn validate(&self) -> Result<(), Error> {
        check_error_rate(self.error_rate)?;
        let is_within = (1..=Self::MAX_CAPACITY).contains(&self.capacity);
        let expected = format_args!("from 1 to {}", Self::MAX_CAPACITY);
        Error::check_range(is_within, Parameter::Capacity, expected, self.capacity)?;
        if self.expansion <= Self::MAX_EXPANSION { Ok(()) } else { Err(expansion_error(self.expansion)) }
    }
}

/// The error for an expansion above [`Params::MAX_EXPANSION`], which may not fit in a `u32`.
pub fn expansion_error(expansion: impl Display) -> Error {
    Error::out_of_range(Parameter::Expansion, format_args!("from 0 to {}", Params::MAX_EXPANSION), expansion)
}

/// Rejects a rate that is not strictly between 0 and 1, and NaN.
pub(super) fn check_error_rate(error_rate: f64) -> Result<(), Error> {
    let is_within = error_rate > 0.0 && error_rate < 1.0;
    Error::check_range(is_within, Parameter::ErrorRate, "more than 0 and less than 1", error_rate)
}

/// The window of a filter.
///
/// ```
/// use rollcall_core::bloom::Windowing;
/// use rollcall_core::window::ClockSource;
///
/// let day = Windowing::new(86_400, 4, ClockSource::System, false)?;
/// // Besides the slices of the window, the slice that has just begun is live.
/// assert_eq!((day.window.slices(), day.generations(), day.window.first_slice(50_000)), (4, 5, 2));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windowing {
    /// The window of time.
    pub window: Window,
    /// Whether an item that is added again expires later. If not, it expires at a fixed time after it was first added.
    pub refresh: bool,
}

impl Windowing {
    /// The largest number of slices of a filter's window.
    pub(crate) const MAX_SLICES: u32 = 64;

    /// The default number of slices. The server module, the command-line tool and the Python package use it.
    #[doc(hidden)]
    pub const fn default_slices(refresh: bool) -> u32 {
        // With `refresh`, an item may be stored once per slice, so more slices take more memory.
        if refresh { 2 } else { 4 }
    }

    /// A window of `seconds` seconds in `slices` slices or fewer ([`Window::new`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `slices` is not from 1 to 64, or if `seconds` is 0, more than [`Window::MAX_SECONDS`]
    /// or less than `slices`.
    pub fn new(seconds: u64, slices: u32, clock_source: ClockSource, refresh: bool) -> Result<Self, Error> {
        Ok(Windowing { window: Window::new(seconds, slices, Self::MAX_SLICES, clock_source)?, refresh })
    }

    /// The largest number of slices whose items are kept: one more than the window has, because the newest slice is not
    /// over.
    pub fn generations(&self) -> u32 {
        self.window.slices() + 1
    }

    /// A copy with this value of `is_volatile`: whether a server deletes the filter when all its items have expired.
    /// The server module calls this method.
    #[doc(hidden)]
    #[must_use]
    pub fn with_volatile(self, is_volatile: bool) -> Self {
        Windowing { window: self.window.with_volatile(is_volatile), ..self }
    }

    /// The parameters for storing the items of one slice, in a windowed filter with `params`. The command-line tool
    /// calls this method.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    #[doc(hidden)]
    pub fn of_generation(&self, params: &Params) -> Result<Params, Error> {
        params.validate()?;
        // A windowed filter must scale: a slice may have room for a part of the capacity only, and all items may come
        // in one slice.
        let expected = "at least 1 with a window";
        Error::check_range(params.expansion > 0, Parameter::Expansion, expected, params.expansion)?;
        // An absent item is looked up in all slices, so their error rates add up.
        let error_rate = params.error_rate / f64::from(self.generations());
        // With `refresh`, all items may be added again in one slice, so each generation has room for all.
        let generations = if self.refresh { 1 } else { u64::from(self.window.slices()) };
        let of_generation = Params { error_rate, capacity: params.capacity.div_ceil(generations), ..*params };
        of_generation.validate()?;
        Ok(of_generation)
    }
}

impl fmt::Display for Windowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Windowing { window, refresh } = self;
        let by = if window.clock_source() == ClockSource::Manual { " on a manual clock" } else { "" };
        write!(f, "{} seconds{by} in {} slices", window.seconds(), window.slices())?;
        f.write_str(if *refresh { " with refresh" } else { "" })?;
        f.write_str(if window.is_volatile() { " volatile" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_printed_by_name() {
        assert_eq!([BitLayout::Lines, BitLayout::Classic].map(|layout| layout.to_string()), ["lines", "classic"]);
    }

    #[test]
    fn a_window_is_printed_in_words() {
        let time = |clock_source, refresh| Windowing::new(86_400, 4, clock_source, refresh).unwrap().to_string();
        assert_eq!(time(ClockSource::System, false), "86400 seconds in 4 slices");
        assert_eq!(time(ClockSource::System, true), "86400 seconds in 4 slices with refresh");
        assert_eq!(time(ClockSource::Manual, false), "86400 seconds on a manual clock in 4 slices");
        assert_eq!(time(ClockSource::Manual, true), "86400 seconds on a manual clock in 4 slices with refresh");
    }
}
