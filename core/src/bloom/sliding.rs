//! How far back a filter that forgets reaches.

use std::fmt;

use super::params::Params;
use crate::error::{Error, Parameter};
use crate::window::{Pace, Window};

/// How far back a filter that forgets reaches, and what renews an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sliding {
    /// How far it reaches.
    pub span: Span,
    /// Whether an item that is added again is remembered from then on. Else it is remembered from when it was new.
    pub refresh: bool,
}

/// How far back a filter that forgets reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A time.
    Time(Window),
    /// The newest items, as many as its capacity says, whenever they came.
    Last {
        /// How many generations hold these. One more is kept.
        slices: u32,
    },
}

impl Sliding {
    /// The most slices of a filter.
    pub const MAX_SLICES: u32 = 64;

    /// The slices of a filter that was not told how many.
    ///
    /// ```
    /// assert_eq!(rollcall_core::bloom::Sliding::default_slices(false), 4);
    /// ```
    pub const fn default_slices(refresh: bool) -> u32 {
        // With refresh, each generation may have to hold all items.
        if refresh { 2 } else { 4 }
    }

    /// That of a time.
    ///
    /// ```
    /// # use rollcall_core::bloom::Sliding;
    /// # use rollcall_core::window::Pace;
    /// let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// assert_eq!(day.slices(), 4);
    /// assert!(Sliding::time(3, 4, Pace::Clock, false).is_err());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for no slice or too many, no second, too many or fewer than slices.
    pub fn time(seconds: u64, slices: u32, pace: Pace, refresh: bool) -> Result<Self, Error> {
        Ok(Sliding { span: Span::Time(Window::new(seconds, slices, Self::MAX_SLICES, pace)?), refresh })
    }

    /// That of the last items.
    ///
    /// ```
    /// # use rollcall_core::bloom::Sliding;
    /// let last = Sliding::last(4, false)?;
    /// assert!(last.window().is_none());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for no slice or too many.
    pub fn last(slices: u32, refresh: bool) -> Result<Self, Error> {
        if !(1..=Self::MAX_SLICES).contains(&slices) {
            return Err(Error::out_of_range(Parameter::Slices, "from 1 to 64", slices));
        }
        Ok(Sliding { span: Span::Last { slices }, refresh })
    }

    /// The slices that it is cut into. One more is alive.
    ///
    /// ```
    /// # use rollcall_core::bloom::Sliding;
    /// assert_eq!(Sliding::last(4, false)?.slices(), 4);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn slices(&self) -> u32 {
        match &self.span {
            Span::Time(window) => window.slices(),
            Span::Last { slices } => *slices,
        }
    }

    /// The window, where it is one of time.
    ///
    /// ```
    /// # use rollcall_core::bloom::Sliding;
    /// # use rollcall_core::window::Pace;
    /// let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// assert_eq!(day.window().map(|window| window.slice_seconds()), Some(21_600));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn window(&self) -> Option<&Window> {
        match &self.span {
            Span::Time(window) => Some(window),
            Span::Last { .. } => None,
        }
    }

    /// The parameters of each generation of a filter that is made with `params`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    pub(crate) fn of_generation(&self, params: &Params) -> Result<Params, Error> {
        params.validate()?;
        match self.span {
            // A burst would be refused while the filter holds no more than its capacity.
            Span::Time(_) if params.expansion == 0 => {
                return Err(Error::out_of_range(Parameter::Expansion, "at least 1 with a window", 0));
            }
            Span::Last { .. } if params.expansion != 0 => {
                let expected = "0 in a filter of the last items";
                return Err(Error::out_of_range(Parameter::Expansion, expected, params.expansion));
            }
            _ => {}
        }
        // An absent item is asked of all generations. One that is renewed may be in each.
        let (slices, alive) = (u64::from(self.slices()), f64::from(self.slices() + 1));
        let capacity = if self.refresh { params.capacity } else { params.capacity.div_ceil(slices) };
        let of_generation = Params { error_rate: params.error_rate / alive, capacity, ..*params };
        of_generation.validate()?;
        Ok(of_generation)
    }
}

impl fmt::Display for Sliding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.span {
            Span::Time(window) => {
                let by = if window.pace() == Pace::Manual { " by hand" } else { "" };
                write!(f, "{} seconds{by} in {} slices", window.seconds(), window.slices())?;
            }
            Span::Last { slices } => write!(f, "the last items in {slices} slices")?,
        }
        f.write_str(if self.refresh { " with refresh" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_printed_in_words() {
        let time = |pace, refresh| Sliding::time(86_400, 4, pace, refresh).unwrap().to_string();
        assert_eq!(time(Pace::Clock, false), "86400 seconds in 4 slices");
        assert_eq!(time(Pace::Clock, true), "86400 seconds in 4 slices with refresh");
        assert_eq!(time(Pace::Manual, false), "86400 seconds by hand in 4 slices");
        assert_eq!(time(Pace::Manual, true), "86400 seconds by hand in 4 slices with refresh");
        let last = |refresh| Sliding::last(7, refresh).unwrap().to_string();
        assert_eq!([false, true].map(last), ["the last items in 7 slices", "the last items in 7 slices with refresh"]);
    }
}
