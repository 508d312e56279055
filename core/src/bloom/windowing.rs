//! The window of a windowed filter: how far back it reaches, and the generations that it has.

use std::fmt;

use super::params::Params;
use crate::error::{Error, Parameter};
use crate::window::{ClockSource, Window};

/// The window of a windowed filter: how far back it reaches, and whether adding an item again renews it.
///
/// ```
/// use rollcall_core::bloom::Windowing;
/// use rollcall_core::window::ClockSource;
///
/// let day = Windowing::new(86_400, 4, ClockSource::System, false)?;
/// // One more slice is live than the window has.
/// assert_eq!((day.window.slices(), day.generations(), day.window.first_slice(50_000)), (4, 5, 2));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windowing {
    /// The window of time.
    pub window: Window,
    /// Whether adding an item again renews it, so that the item expires later. Otherwise the time when the item was new
    /// decides when it expires.
    pub refresh: bool,
}

impl Windowing {
    /// The largest number of slices of a filter.
    pub(crate) const MAX_SLICES: u32 = 64;

    /// The default number of slices of a filter.
    pub const fn default_slices(refresh: bool) -> u32 {
        // With refresh, each generation may have to hold all items.
        if refresh { 2 } else { 4 }
    }

    /// A window of `seconds` seconds, in `slices` slices or fewer ([`Window::new`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `slices` is not from 1 to 64, or if `seconds` is 0, more than [`Window::MAX_SECONDS`]
    /// or less than `slices`.
    pub fn new(seconds: u64, slices: u32, clock_source: ClockSource, refresh: bool) -> Result<Self, Error> {
        Ok(Windowing { window: Window::new(seconds, slices, Self::MAX_SLICES, clock_source)?, refresh })
    }

    /// The number of generations that may be live at once.
    pub fn generations(&self) -> u32 {
        self.window.slices() + 1
    }

    /// The number of items that each generation of a filter with this capacity is sized for.
    fn share(&self, capacity: u64) -> u64 {
        // A renewed item may be in each generation.
        let share = if self.refresh { capacity } else { capacity.div_ceil(u64::from(self.window.slices())) };
        share.max(1)
    }

    /// The same window, with another value of `is_volatile`: whether a server deletes the filter once it is empty. For
    /// the server module.
    #[doc(hidden)]
    #[must_use]
    pub fn with_volatile(self, is_volatile: bool) -> Self {
        Windowing { window: self.window.with_volatile(is_volatile), ..self }
    }

    /// Whether two filters with these windows can be merged: only whether they are volatile may differ.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.with_volatile(false) == other.with_volatile(false)
    }

    /// The parameters of each generation of a filter with `params`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    pub fn of_generation(&self, params: &Params) -> Result<Params, Error> {
        params.validate()?;
        // Without growth, a burst in one slice would be rejected although the filter holds no more than its capacity.
        let expected = "at least 1 with a window";
        Error::check_range(params.expansion > 0, Parameter::Expansion, expected, params.expansion)?;
        // An absent item is looked up in all generations, so their rates add up.
        let error_rate = params.error_rate / f64::from(self.generations());
        let of_generation = Params { error_rate, capacity: self.share(params.capacity), ..*params };
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

/// The generations of a windowed filter.
///
/// Invariants: generations have different ages, less than the number of generations that may be live, and at least one
/// sub-filter each. The sizes of a sub-filter are derived from the parameters of a generation and the index of the
/// sub-filter in its generation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generations {
    /// The parameters that the user asked for. Each generation has parameters of its own.
    pub(in crate::bloom) params: Params,
    pub(in crate::bloom) windowing: Windowing,
    pub(in crate::bloom) of_generation: Params,
    pub(in crate::bloom) newest_slice: u64,
    /// The generations, oldest first. Generations without an item are left out.
    pub(in crate::bloom) list: Vec<Generation>,
}

/// The items that were added in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    /// The age of the generation: the number of slices from its slice to the newest. It stays the same when slices are
    /// renumbered.
    pub(crate) age: u32,
    /// The number of sub-filters.
    pub(crate) len: u32,
    /// The number of items of this generation that were added again later, and so count in a later generation. It is at
    /// most the number of items of this generation.
    pub(crate) renewed: u64,
}

impl Generations {
    /// The bytes of the generations, without their sub-filters.
    pub(in crate::bloom) fn size_bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.list)) as u64
    }
}

/// Checks that a windowed filter may have these generations, oldest first.
///
/// # Errors
/// [`Error::Corrupt`].
pub(crate) fn check_generations(windowing: &Windowing, generations: &[Generation]) -> Result<(), Error> {
    let mut end = windowing.generations();
    for &Generation { age, .. } in generations {
        Error::check_field(age < end, "age of a generation", format_args!("less than {end}"), age)?;
        end = age;
    }
    Ok(())
}

/// Each generation with its sub-filters.
pub(super) fn by_generation<'a, S>(
    generations: &'a [Generation],
    mut rest: &'a [S],
) -> impl Iterator<Item = (&'a Generation, &'a [S])> {
    generations.iter().map_while(move |generation| {
        let (these, later) = rest.split_at_checked(generation.len as usize)?;
        rest = later;
        Some((generation, these))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_printed_in_words() {
        let time = |clock_source, refresh| Windowing::new(86_400, 4, clock_source, refresh).unwrap().to_string();
        assert_eq!(time(ClockSource::System, false), "86400 seconds in 4 slices");
        assert_eq!(time(ClockSource::System, true), "86400 seconds in 4 slices with refresh");
        assert_eq!(time(ClockSource::Manual, false), "86400 seconds on a manual clock in 4 slices");
        assert_eq!(time(ClockSource::Manual, true), "86400 seconds on a manual clock in 4 slices with refresh");
    }
}
