//! The window of a windowed filter: how far back it reaches.

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
/// let day = Windowing::time(86_400, 4, ClockSource::System, false)?;
/// // One more slice is live than the window has.
/// assert_eq!((day.slices(), day.generations(1000), day.first_slice(50_000)), (Some(4), 5, 2));
/// assert_eq!(Windowing::last_different().window(), None);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windowing {
    /// The extent of the window: a time or a number of items.
    pub span: Span,
    /// Whether adding an item again renews it, so that the item expires later. Otherwise the time when the item was new
    /// decides when it expires.
    pub refresh: bool,
}

/// The extent of a window: a time, or a number of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A period of time.
    Time(Window),
    /// The last items that were new when added. The number of these items is the capacity.
    Last {
        /// The number of slices into which these items are divided.
        slices: u32,
    },
    /// The last different items, known or new when added. The number of these items is the capacity. This span is used
    /// with `refresh`.
    LastDifferent,
}

impl Windowing {
    /// The largest number of slices of a filter.
    pub(crate) const MAX_SLICES: u32 = 64;

    /// The default number of slices of a filter. A filter of the last different items has no slices.
    pub const fn default_slices(refresh: bool) -> u32 {
        // With refresh, each generation may have to hold all items.
        if refresh { 2 } else { 4 }
    }

    /// A window of `seconds` seconds, in `slices` slices or fewer ([`Window::new`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `slices` is not from 1 to 64, or if `seconds` is 0, more than [`Window::MAX_SECONDS`]
    /// or less than `slices`.
    pub fn time(seconds: u64, slices: u32, clock_source: ClockSource, refresh: bool) -> Result<Self, Error> {
        Ok(Windowing { span: Span::Time(Window::new(seconds, slices, Self::MAX_SLICES, clock_source)?), refresh })
    }

    /// A window of the last items that were new when added.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `slices` is not from 1 to 64.
    pub fn last(slices: u32) -> Result<Self, Error> {
        Error::check_range((1..=Self::MAX_SLICES).contains(&slices), Parameter::Slices, "from 1 to 64", slices)?;
        Ok(Windowing { span: Span::Last { slices }, refresh: false })
    }

    /// A window of the last different items. Adding an item again makes it the newest.
    pub const fn last_different() -> Self {
        Windowing { span: Span::LastDifferent, refresh: true }
    }

    /// The number of slices, if the window has slices.
    pub fn slices(&self) -> Option<u32> {
        match &self.span {
            Span::Time(window) => Some(window.slices()),
            Span::Last { slices } => Some(*slices),
            Span::LastDifferent => None,
        }
    }

    /// The number of generations of a filter with this capacity that may be live at once.
    pub fn generations(&self, capacity: u64) -> u32 {
        match &self.span {
            Span::Time(window) => window.slices() + 1,
            // The newest generation begins with an item, so it holds at least one. The others are full. So the number
            // of generations is at most the number of slices plus one.
            Span::Last { .. } => capacity.saturating_sub(1).div_ceil(self.share(capacity)) as u32 + 1,
            // The generation before the newest is full, so it alone holds `capacity` different items.
            Span::LastDifferent => 2,
        }
    }

    /// The number of items that each generation of a filter with this capacity is sized for.
    fn share(&self, capacity: u64) -> u64 {
        let share = match self.slices() {
            Some(slices) if !self.refresh => capacity.div_ceil(u64::from(slices.max(1))),
            // A renewed item may be in each generation.
            _ => capacity,
        };
        share.max(1)
    }

    /// The window of time; `None` for a window of the last items.
    pub fn window(&self) -> Option<&Window> {
        match &self.span {
            Span::Time(window) => Some(window),
            Span::Last { .. } | Span::LastDifferent => None,
        }
    }

    /// The same window, with another value of `is_volatile`: whether a server deletes the filter once it is empty. A
    /// window of the last items is returned unchanged. For the server module.
    #[doc(hidden)]
    #[must_use]
    pub fn with_volatile(self, is_volatile: bool) -> Self {
        match self.span {
            Span::Time(window) => Windowing { span: Span::Time(window.with_volatile(is_volatile)), ..self },
            Span::Last { .. } | Span::LastDifferent => self,
        }
    }

    /// The newest slice of a filter that is made at the time `now`.
    pub fn first_slice(&self, now: u64) -> u64 {
        self.window().map_or(0, |window| window.first_slice(now))
    }

    /// The parameters of each generation of a filter with `params`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    pub fn of_generation(&self, params: &Params) -> Result<Params, Error> {
        params.validate()?;
        let (is_valid, expected) = match self.span {
            // Without growth, a burst in one slice would be rejected although the filter holds no more than its
            // capacity.
            Span::Time(_) => (params.expansion > 0, "at least 1 with a window"),
            Span::Last { .. } | Span::LastDifferent => (params.expansion == 0, "0 in a filter of the last items"),
        };
        Error::check_range(is_valid, Parameter::Expansion, expected, params.expansion)?;
        // An absent item is looked up in all generations, so their rates add up.
        let error_rate = params.error_rate / f64::from(self.generations(params.capacity));
        let of_generation = Params { error_rate, capacity: self.share(params.capacity), ..*params };
        of_generation.validate()?;
        Ok(of_generation)
    }
}

impl fmt::Display for Windowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.span {
            Span::Time(window) => {
                let by = if window.clock_source() == ClockSource::Manual { " on a manual clock" } else { "" };
                write!(f, "{} seconds{by} in {} slices", window.seconds(), window.slices())?;
            }
            Span::Last { slices } => write!(f, "the last items in {slices} slices")?,
            Span::LastDifferent => return f.write_str("the last different items"),
        }
        f.write_str(if self.refresh { " with refresh" } else { "" })?;
        f.write_str(if self.window().is_some_and(Window::is_volatile) { " volatile" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_printed_in_words() {
        let time = |clock_source, refresh| Windowing::time(86_400, 4, clock_source, refresh).unwrap().to_string();
        assert_eq!(time(ClockSource::System, false), "86400 seconds in 4 slices");
        assert_eq!(time(ClockSource::System, true), "86400 seconds in 4 slices with refresh");
        assert_eq!(time(ClockSource::Manual, false), "86400 seconds on a manual clock in 4 slices");
        assert_eq!(time(ClockSource::Manual, true), "86400 seconds on a manual clock in 4 slices with refresh");
        assert_eq!(Windowing::last(7).unwrap().to_string(), "the last items in 7 slices");
        assert_eq!(Windowing::last_different().to_string(), "the last different items");
    }

    /// For any capacity, the number of generations is the smallest that holds the last `capacity` items, even if the
    /// newest generation has only one item.
    #[test]
    fn generations_are_as_few_as_hold_the_last_items() {
        for (capacity, slices, generations, share) in [(5, 4, 3, 2), (4, 4, 4, 1), (1000, 4, 5, 250), (1, 64, 1, 1)] {
            let last = Windowing::last(slices).unwrap();
            assert_eq!((last.generations(capacity), last.share(capacity)), (generations, share));
        }
        let capacities = (1..200).chain([1000, 1001, 1 << 40, Params::MAX_CAPACITY]);
        for (capacity, slices) in capacities.flat_map(|capacity| (1..=64).map(move |slices| (capacity, slices))) {
            let last = Windowing::last(slices).unwrap();
            let (generations, share) = (u64::from(last.generations(capacity)), last.share(capacity));
            // All but the newest are full.
            let held = |generations: u64| generations.checked_sub(1).map_or(0, |full| full * share + 1);
            assert!(held(generations) >= capacity && held(generations - 1) < capacity, "{capacity} in {slices}");
            assert!(generations <= u64::from(slices) + 1);
            assert_eq!(
                (Windowing::last_different().generations(capacity), Windowing::last_different().share(capacity)),
                (2, capacity)
            );
        }
    }
}
