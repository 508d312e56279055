//! Windows of time, which are divided into slices, for filters and counters.
//!
//! ```text
//! window of 4 slices; the present slice is e:
//!
//!   ... | e-6  e-5 | e-4  e-3  e-2  e-1   e | e+1 ...
//!       expired     not expired             later
//! ```
//!
//! If a window of `seconds` may have up to `n` slices, a slice takes `ceil(seconds / n)` seconds, and the window has as
//! few slices as cover it. Slices are numbered from the Unix epoch. When `e` is the present slice, the slices `e -
//! slices ..= e` have not expired ("are live"). So an item is remembered for at least `seconds`. It expires less than
//! two slices later, or at most one slice later if the length of a slice divides the window.
//!
//! A filter or counter stores the number of its newest slice. The present slice is this slice or, if the clock is
//! later, the clock's.
//!
//! # Papers
//! Slices that expire as a whole are known from age-partitioned Bloom filters, which remember the last `n` items
//! (Shtul, Baquero and Almeida, "Age-Partitioned Bloom Filters", arXiv:2001.03147, 2020), and from time-limited Bloom
//! filters, which remember the items of a span of time (Rodrigues, Shtul, Baquero and Almeida, "Time-limited Bloom
//! Filter", SAC 2023, arXiv:2306.06742). In age-partitioned filters the bits of an item lie in several slices of one
//! filter. In this library each slice of a filter has its own bitmaps, and a counter stores the slice of each member or
//! bit.

use crate::error::{Error, Parameter};

/// The length of a window, and its slices.
///
/// ```
/// use rollcall_core::window::{ClockSource, Window};
///
/// let day = Window::new(86_400, 4, 64, ClockSource::System)?;
/// assert_eq!((day.slice_seconds(), day.first_slice(50_000), day.start_of(2)), (21_600, 2, 43_200));
/// // 33 slices of 2 seconds cover 65 seconds, so the window has no more.
/// assert_eq!(Window::new(65, 64, 64, ClockSource::System)?.slices(), 33);
/// assert!(Window::new(0, 4, 64, ClockSource::System).is_err());
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    seconds: u64,
    slices: u32,
    clock_source: ClockSource,
    is_volatile: bool,
}

/// The clock that moves a window forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// The system clock, in seconds since the Unix epoch.
    System,
    /// The user moves the window forward with `ADVANCE`.
    Manual,
}

/// The time at which a filter or counter is read or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// A time of the system clock, in seconds since the Unix epoch. Without a window, or with a manual clock source,
    /// the time has no effect.
    At(u64),
    /// The window does not move. For values without a window, windows with a manual clock source, and replicas, to
    /// which a primary sends every move.
    Reached,
}

/// How a window has to move before its value is changed at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Move {
    /// No move is needed.
    #[default]
    Stay,
    /// The window moves forward: this slice becomes the newest, and expired data is removed.
    Advance(u64),
    /// All slices are renumbered so that the newest gets this earlier number. This is needed after the clock had jumped
    /// ahead and was set back.
    Rebase(u64),
}

impl Window {
    /// The longest window, in seconds.
    pub const MAX_SECONDS: u64 = 1 << 40;

    /// A window of `seconds` seconds in at most `slices` slices. The length of a slice is rounded up to whole seconds,
    /// so fewer slices may be enough.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `slices` is not from 1 to `most_slices`, or if `seconds` is 0, more than
    /// [`Self::MAX_SECONDS`] or less than `slices`.
    pub fn new(seconds: u64, slices: u32, most_slices: u32, clock_source: ClockSource) -> Result<Self, Error> {
        let is_within = (1..=Self::MAX_SECONDS).contains(&seconds);
        let expected = format_args!("from 1 to {} seconds", Self::MAX_SECONDS);
        Error::check_range(is_within, Parameter::Window, expected, seconds)?;
        // A slice is at least one second long.
        let most = seconds.min(most_slices.into());
        let expected = format_args!("from 1 to {most}");
        Error::check_range((1..=most).contains(&slices.into()), Parameter::Slices, expected, slices)?;
        // At most `slices` slices of this length cover the window, so the cast is lossless.
        let length = seconds.div_ceil(slices.into());
        Ok(Window { seconds, slices: seconds.div_ceil(length) as u32, clock_source, is_volatile: false })
    }

    /// The length of the window, in seconds.
    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    /// The number of slices in the window, without the present slice, which is not complete yet.
    pub fn slices(&self) -> u32 {
        self.slices
    }

    /// The clock source of the window.
    pub fn clock_source(&self) -> ClockSource {
        self.clock_source
    }

    /// The same window with another clock source.
    #[must_use]
    pub(crate) fn with_clock_source(self, clock_source: ClockSource) -> Self {
        let is_volatile = self.is_volatile && clock_source == ClockSource::System;
        Window { clock_source, is_volatile, ..self }
    }

    /// Whether the server deletes a key with this window when everything in it has expired. The server module calls
    /// this method.
    #[doc(hidden)]
    pub fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// The same window, with another value of [`Self::is_volatile`]. A window with a manual clock source is never
    /// volatile, since the time of expiry is unknown. The server module calls this method.
    #[doc(hidden)]
    #[must_use]
    pub fn with_volatile(self, is_volatile: bool) -> Self {
        Window { is_volatile: is_volatile && self.clock_source == ClockSource::System, ..self }
    }

    /// The Unix time at which everything has expired, if `newest` is the newest slice and nothing is added. The server
    /// module calls this method.
    #[doc(hidden)]
    pub fn empty_at(&self, newest: u64) -> u64 {
        self.start_of(newest.saturating_add(self.slices.into()).saturating_add(1))
    }

    /// The length of a slice, in seconds.
    #[doc(hidden)]
    pub fn slice_seconds(&self) -> u64 {
        self.seconds.div_ceil(self.slices.into())
    }

    /// The slice that contains the time `unix_seconds`.
    fn slice_of(&self, unix_seconds: u64) -> u64 {
        unix_seconds / self.slice_seconds()
    }

    /// The Unix time, in seconds, at which a slice begins.
    #[doc(hidden)]
    pub fn start_of(&self, slice: u64) -> u64 {
        slice.saturating_mul(self.slice_seconds())
    }

    /// The newest slice of a filter or counter that is made at the time `now`.
    pub fn first_slice(&self, now: u64) -> u64 {
        self.clock(Time::At(now)).unwrap_or(0)
    }

    /// The present second, when `present` is the present slice. Without a clock, or after it has jumped, it is the last
    /// second of this slice.
    pub(crate) fn now(&self, present: u64, time: Time) -> i128 {
        match (self.clock(time), time) {
            // Clocks differ a little, so the newest slice may be one slice ahead of the clock.
            (Some(clock), Time::At(now)) if present <= clock.saturating_add(1) => now.into(),
            _ => (i128::from(present) + 1) * i128::from(self.slice_seconds()) - 1,
        }
    }

    /// The slice of the system clock; `None` with a manual clock source or without a time.
    fn clock(&self, time: Time) -> Option<u64> {
        match (self.clock_source, time) {
            (ClockSource::System, Time::At(now)) => Some(self.slice_of(now)),
            _ => None,
        }
    }

    /// The newest slice at `time`: `newest`, or the clock's slice if that is later.
    pub(crate) fn present(&self, newest: u64, time: Time) -> u64 {
        self.clock(time).map_or(newest, |clock| newest.max(clock))
    }

    /// The oldest slice that has not expired when `present` is the present slice. A window of `n` slices reaches `n`
    /// slices before the present one. Slices before the Unix epoch have negative numbers.
    pub(crate) fn oldest_live(&self, present: u64) -> i128 {
        i128::from(present) - i128::from(self.slices)
    }

    /// The oldest of the slices that cover the last `seconds`. Slices before the Unix epoch have negative numbers.
    pub(crate) fn since(&self, seconds: u64, newest: u64, time: Time) -> i128 {
        let present = self.present(newest, time);
        let since = (self.now(present, time) - i128::from(seconds)).div_euclid(self.slice_seconds().into());
        since.max(self.oldest_live(present))
    }

    /// The error of a call that needs a window.
    pub(crate) fn none() -> Error {
        Error::incompatible(Parameter::Window, "a window of time", "none")
    }

    /// The window of a value, if the last `seconds` are a part of it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `seconds` is 0 or exceeds the window, and [`Error::Incompatible`] without a window.
    pub(crate) fn of_span(window: Option<&Self>, seconds: u64) -> Result<&Self, Error> {
        let Some(window) = window else { return Err(Self::none()) };
        let is_within = (1..=window.seconds()).contains(&seconds);
        Error::check_range(is_within, Parameter::Seconds, "from 1 to the length of the window", seconds)?;
        Ok(window)
    }

    /// How a window with the newest slice `newest` must move before a change at `time`.
    #[inline]
    pub(crate) fn due(&self, newest: u64, time: Time) -> Move {
        match self.clock(time) {
            Some(clock) if clock > newest => Move::Advance(clock),
            // Clocks differ a little, so the newest slice may be one slice ahead of the clock.
            Some(clock) if newest > clock.saturating_add(1) => Move::Rebase(clock),
            _ => Move::Stay,
        }
    }

    /// How the destination's window must move before or after a merge. It must move only if the clock was set back.
    /// `newest` is the destination's newest slice; `sources` has that of each source. A replicated merge
    /// ([`Time::Reached`]) accepts any source, because the primary has accepted it.
    ///
    /// # Errors
    /// [`Ahead`] if the merge would make items of the destination expire early.
    pub(crate) fn merging(
        &self,
        newest: u64,
        sources: impl IntoIterator<Item = u64>,
        time: Time,
    ) -> Result<Merging, Ahead> {
        let (mut least, mut most) = (newest, 0);
        for slice in sources {
            (least, most) = (least.min(slice), most.max(slice));
        }
        let (due, stays) = (self.due(newest, time), Merging::default());
        let (present, moves) = match due {
            Move::Rebase(clock) => {
                let all_are_ahead = least > clock.saturating_add(1);
                if all_are_ahead && newest.max(most) - least <= 1 {
                    return Ok(Merging { after: due, ..stays });
                }
                (clock, Merging { before: due, ..stays })
            }
            Move::Stay | Move::Advance(_) => (self.present(newest, time), stays),
        };
        let is_decided = time == Time::Reached;
        if most > present.saturating_add(1) && !is_decided { Err(Ahead { slice: most, present }) } else { Ok(moves) }
    }
}

/// How the window of a merge's destination must move, if the clock was set back. A filter or counter is ahead if its
/// newest slice is more than one slice after the clock's. The server module uses this type.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merging {
    /// Before the merge: back to the clock's slice if the destination is ahead, except in the case of `after`.
    pub before: Move,
    /// After the merge: back to the clock's slice if the destination and all sources are ahead, and their newest slices
    /// differ by at most one.
    pub after: Move,
}

/// The error of a merge: a source's newest slice is more than one slice after the destination's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The newest slice of the source.
    pub(crate) slice: u64,
    /// The newest slice of the destination after the merge.
    pub(crate) present: u64,
}

/// The effect of adding an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Mark {
    /// The item was new.
    New,
    /// The item was known. It is now marked with the newest slice, and expires later.
    Renewed,
    /// Nothing changed.
    Same,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(seconds: u64, slices: u32) -> Window {
        Window::new(seconds, slices, 64, ClockSource::System).unwrap()
    }

    #[test]
    fn ranges_are_checked() {
        for (seconds, slices) in [(0, 1), (Window::MAX_SECONDS + 1, 1), (10, 0), (100, 65), (3, 4), (u64::MAX, 4)] {
            assert!(Window::new(seconds, slices, 64, ClockSource::System).is_err(), "{seconds} in {slices}");
        }
        let error = Window::new(100, 8, 7, ClockSource::System).map_err(|error| error.to_string());
        assert_eq!(error, Err("slices must be from 1 to 7, got 8".to_owned()));
        for (seconds, slices, length) in [(1, 1, 1), (86_400, 24, 3600), (10, 4, 3), (Window::MAX_SECONDS, 64, 1 << 34)]
        {
            assert_eq!((window(seconds, slices).slice_seconds(), window(seconds, slices).slices()), (length, slices));
        }
    }

    #[test]
    fn a_window_shorter_than_its_slices_is_an_error_of_the_slices() {
        let error = Window::new(10, 12, 64, ClockSource::System).map_err(|error| error.to_string());
        assert_eq!(error, Err("slices must be from 1 to 10, got 12".to_owned()));
    }

    #[test]
    fn slices_are_numbered_from_the_epoch() {
        let day = window(86_400, 24);
        assert_eq!((day.slice_of(0), day.slice_of(3599), day.slice_of(3600)), (0, 0, 1));
        assert_eq!((day.start_of(1), day.oldest_live(30), day.oldest_live(3)), (3600, 6, -21));
        assert_eq!((day.first_slice(7200), day.with_clock_source(ClockSource::Manual).first_slice(7200)), (2, 0));
    }

    #[test]
    fn on_a_manual_clock_the_present_moment_is_the_last_second() {
        let day = window(86_400, 24).with_clock_source(ClockSource::Manual);
        for newest in [30, 1 << 63, u64::MAX] {
            for (seconds, slices) in [(1, 0), (3599, 0), (3600, 1), (7199, 1), (7200, 2), (86_400, 24), (u64::MAX, 24)]
            {
                assert_eq!(day.since(seconds, newest, Time::Reached), i128::from(newest) - slices);
                // A clock that is behind gives the same result.
                assert_eq!(
                    day.with_clock_source(ClockSource::System).since(seconds, newest, Time::At(0)),
                    i128::from(newest) - slices
                );
            }
        }
    }

    #[test]
    fn a_clock_that_jumps_is_distinguished_from_one_that_is_a_little_ahead() {
        let day = window(86_400, 24);
        let at = |slice: u64| Time::At(slice * 3600 + 1800);
        assert_eq!(day.due(10, at(10)), Move::Stay);
        assert_eq!(day.due(10, at(11)), Move::Advance(11));
        assert_eq!(day.due(10, at(9)), Move::Stay);
        assert_eq!(day.due(10, at(8)), Move::Rebase(8));
        assert_eq!(day.due(10, at(1000)), Move::Advance(1000));
        assert_eq!(day.with_clock_source(ClockSource::Manual).due(10, at(1000)), Move::Stay);
        assert_eq!((day.present(10, at(8)), day.present(10, at(12))), (10, 12));
    }

    #[test]
    fn merges_renumber_no_source_and_expire_nothing_early() {
        let day = window(86_400, 24);
        let now = Time::At(10 * 3600 + 1800);
        let (stays, back) = (Merging::default(), Move::Rebase(10));
        let (before, after) = (Merging { before: back, ..stays }, Merging { after: back, ..stays });
        let ahead = |slice| Err(Ahead { slice, present: 10 });
        for (newest, sources, expected) in [
            (3, &[][..], Ok(stays)),
            (3, &[0, 11], Ok(stays)),
            (3, &[12], ahead(12)),
            // The newest slice is only one slice ahead of the clock.
            (11, &[12, 3], Ok(stays)),
            (11, &[13], Err(Ahead { slice: 13, present: 11 })),
            (12, &[], Ok(after)),
            (12, &[11], Ok(before)),
            (12, &[12], Ok(after)),
            (12, &[13, 12], Ok(after)),
            (13, &[12], Ok(after)),
            (13, &[12, 14], ahead(14)),
            (14, &[12], ahead(12)),
            (14, &[14, 11], ahead(14)),
            (1000, &[0, 10, 11], Ok(before)),
            (u64::MAX, &[u64::MAX, u64::MAX - 1], Ok(after)),
        ] {
            assert_eq!(day.merging(newest, sources.iter().copied(), now), expected, "{newest} {sources:?}");
        }
        let by_hand = day.with_clock_source(ClockSource::Manual);
        assert_eq!(by_hand.merging(1000, [1, 1001], now), Ok(stays));
        assert_eq!(by_hand.merging(1000, [1002], now), Err(Ahead { slice: 1002, present: 1000 }));
        // A replica repeats the merge of its primary without a check.
        assert_eq!(day.merging(3, [1000], Time::Reached), Ok(stays));
    }

    proptest! {
        /// The slices cover the window, and one slice fewer would not.
        #[test]
        fn a_window_is_covered_by_as_few_slices_as_its_length_needs(
            asked in 1u32..=254, more in prop_oneof![0u64..600, 0..=Window::MAX_SECONDS - 254],
        ) {
            let seconds = u64::from(asked) + more;
            let window = Window::new(seconds, asked, 254, ClockSource::System).unwrap();
            let (length, slices) = (window.slice_seconds(), u64::from(window.slices()));
            prop_assert_eq!(length, seconds.div_ceil(asked.into()));
            prop_assert!(slices * length >= seconds && (slices - 1) * length < seconds && slices <= asked.into());
            prop_assert_eq!(Window::new(seconds, window.slices(), 254, ClockSource::System), Ok(window));
            // From the first second of a slice to the last second of the last slice in which it has not expired.
            let longest = (slices + 1) * length;
            prop_assert!(longest >= seconds && longest - seconds < 2 * length);
            prop_assert!(seconds % length != 0 || longest - seconds == length);
        }

        /// The slices cover the requested span, and at most one slice more, but never more than the window.
        #[test]
        fn slices_cover_the_requested_span(
            slices in 1u32..=64, more in 0u64..100_000, now in prop_oneof![0u64..200_000, 0u64..1 << 40],
            part in 0.0..=1.0f64, ahead in 0u64..2,
        ) {
            let window = window(u64::from(slices) + more, slices);
            let newest = window.slice_of(now) + ahead;
            let seconds = ((window.seconds() as f64 * part) as u64).max(1);
            let since = window.since(seconds, newest, Time::At(now));
            let present = window.present(newest, Time::At(now));
            prop_assert!(since <= present.into() && since >= window.oldest_live(present));
            let (start_of, begin) =
                (|slice| slice * i128::from(window.slice_seconds()), i128::from(now) - i128::from(seconds));
            prop_assert!(start_of(since) <= begin || since == window.oldest_live(present));
            prop_assert!(since == window.oldest_live(present) || start_of(since + 1) > begin);
            let oldest = window.oldest_live(window.slice_of(now));
            prop_assert!(i128::from(window.slice_of(now.saturating_sub(window.seconds()))) >= oldest);
        }
    }
}
