//! Sliding windows of filters and counters: the time that a command uses for them, and their options.

use rollcall_core::bloom::Windowing;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::window::{ClockSource, Time, Window};

use crate::args::{Opt, Options, narrow};
use crate::command_error::{CommandError, bad, quoted};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Ctx};
use crate::types::family::Family;

pub(super) const OF_FILTERS: &[Opt] = &[Opt::Window, Opt::Manual, Opt::Slices, Opt::Refresh, Opt::Volatile];
pub(super) const OF_COUNTERS: &[Opt] = &[Opt::Window, Opt::Manual, Opt::Slices, Opt::Volatile];

/// The default number of time slices in a counter's window.
const SLICES_OF_COUNTERS: u32 = 12;

/// The time at which `values` are read: the current time if any window follows the system clock, else 0, which has no
/// effect.
#[inline]
pub(super) fn time_of<'v, T: Value + 'v>(ctx: Ctx, values: impl IntoIterator<Item = &'v T>) -> Time {
    let mut windows = values.into_iter().filter_map(|value| value.window());
    if windows.any(|window| window.clock_source() == ClockSource::System) {
        Time::At(ctx.now_seconds())
    } else {
        Time::At(0)
    }
}

/// The expiry of a key with a `VOLATILE` window, in milliseconds since 1970: 1 ms before its window becomes empty.
/// `None` for other values, and for a replicated command, because the primary sends the expiry.
pub(super) fn expiry_of<T: Value>(ctx: Ctx, value: &T) -> Option<i64> {
    let (window, newest) = value.window().zip(value.newest_slice())?;
    if !window.is_volatile() || must_obey(ctx) {
        return None;
    }
    let empty_ms = i64::try_from(window.empty_at(newest)).ok().and_then(|seconds| seconds.checked_mul(1000));
    Some(empty_ms.unwrap_or(i64::MAX) - 1)
}

/// The window that the options of a counter describe; `None` without `WINDOW`.
pub(super) fn counter_window(options: &Options) -> Result<Option<Window>, CommandError> {
    window(options, SLICES_OF_COUNTERS, |seconds, slices, clock_source| {
        let window = Window::new(seconds, slices, Counter::MAX_SLICES, clock_source)?;
        Ok(window.with_volatile(options.has(Opt::Volatile)))
    })
}

/// The window that the options of a filter describe; `None` without `WINDOW`.
pub(super) fn filter_windowing(options: &Options) -> Result<Option<Windowing>, CommandError> {
    let (refresh, volatile) = (options.has(Opt::Refresh), options.has(Opt::Volatile));
    if options.window.is_some() && (options.has(Opt::NonScaling) || options.expansion == Some(0)) {
        return excluded("WINDOW", "NONSCALING", "a burst within a slice would be rejected");
    }
    window(options, Windowing::default_slices(refresh), |seconds, slices, clock_source| {
        Ok(Windowing::new(seconds, slices, clock_source, refresh)?.with_volatile(volatile))
    })
}

/// The window that `new` makes from seconds, slices and clock source; `None` without `WINDOW`.
fn window<W>(
    options: &Options,
    default_slices: u32,
    new: impl FnOnce(u64, u32, ClockSource) -> Result<W, Error>,
) -> Result<Option<W>, CommandError> {
    let Some(seconds) = options.window else {
        let of_window = [Opt::Manual, Opt::Volatile, Opt::Slices, Opt::Refresh, Opt::Slice];
        let found = of_window.into_iter().find(|&option| options.has(option));
        return found.map_or(Ok(None), |option| bad(format!("option {option} needs option WINDOW")));
    };
    // `VOLATILE` makes the key expire once the value is empty. So it excludes `MANUAL`, with which nobody knows that
    // time, and options that set another expiry.
    if options.has(Opt::Volatile) && options.has(Opt::Manual) {
        return excluded("MANUAL", "VOLATILE", "nobody knows when it will be empty");
    }
    if options.has(Opt::Volatile) && options.expiry.is_some() {
        return excluded("VOLATILE", "EX, PX, EXAT and PXAT", "the key expires once it is empty");
    }
    let slices = options.slices.map_or(default_slices.min(narrow(seconds.max(1))), narrow);
    let clock_source = if options.has(Opt::Manual) { ClockSource::Manual } else { ClockSource::System };
    Ok(Some(new(seconds, slices, clock_source).map_err(|error| options.as_given(error))?))
}

/// Rejects `VOLATILE` in a client's `RESERVE`: after the key has expired, an `ADD` would create it without its window.
pub(super) fn check_reservation(ctx: Ctx, options: &Options) -> Result<(), CommandError> {
    if options.has(Opt::Volatile) && !must_obey(ctx) {
        let why =
            "option VOLATILE goes with INSERT and ADMIT: once the key has expired, ADD would make one without a window";
        return bad(why);
    }
    Ok(())
}

fn excluded<T>(option: &str, other: &str, why: &str) -> Result<T, CommandError> {
    bad(format!("option {option} does not go with {other}: {why}"))
}

/// Option words with which a replica creates the same window, at the slice `slice`.
pub(super) fn words(window: &Window, refresh: bool, slice: u64) -> String {
    let manual = if window.clock_source() == ClockSource::Manual { "MANUAL" } else { "" };
    let refresh = if refresh { "REFRESH" } else { "" };
    let volatile = if window.is_volatile() { "VOLATILE" } else { "" };
    format!("WINDOW {} {manual} SLICES {} {refresh} {volatile} SLICE {slice}", window.seconds(), window.slices())
}

/// Checks that the window options of an `INSERT` or `ADMIT` are those of the key that exists. How a key forgets must
/// not differ from what a caller asks for without an error. Options that were not given are not compared, and neither
/// is `MANUAL`, which `ADVANCE CLOCK` may have ended.
pub(super) fn check_given<T: Value>(value: &T, given: &Options) -> Result<(), CommandError> {
    let Some(seconds) = given.window else { return Ok(()) };
    // A new window has as few slices as cover it.
    let covering = |slices: u64| seconds.div_ceil(seconds.div_ceil(slices));
    let (has, option) = match value.window() {
        None => (format!("no window, not WINDOW {seconds}"), "WINDOW"),
        Some(window) => match (window.seconds(), u64::from(window.slices()), given.slices) {
            (has, ..) if has != seconds => (format!("WINDOW {has}, not {seconds}"), "WINDOW"),
            (_, has, Some(slices)) if has != covering(slices) => (format!("SLICES {has}, not {slices}"), "SLICES"),
            _ if given.has(Opt::Refresh) && !value.renews() => ("a window without REFRESH".to_owned(), "REFRESH"),
            _ if given.has(Opt::Volatile) && !window.is_volatile() => {
                let why = "the key is not VOLATILE: leave VOLATILE out, or delete the key";
                return bad(why);
            }
            _ => return Ok(()),
        },
    };
    bad(format!("the key has {has}: put the window in the key's name, or leave {option} out"))
}

/// Checks the `since` of an option `SINCE`. `instead` says what to give for a value without a window.
///
/// # Errors
/// [`CommandError::Argument`] if there is no window, or if it is shorter.
pub(super) fn check_since<T: Family>(
    value: &T,
    key: Arg<'_>,
    since: Option<u64>,
    instead: &str,
) -> Result<(), CommandError> {
    let Some(seconds) = since else { return Ok(()) };
    let most = value.window().ok_or_else(|| no_window(value, key, instead))?.seconds();
    if (1..=most).contains(&seconds) {
        return Ok(());
    }
    let key = quoted(key.bytes());
    let why = format!("bad seconds for {key}: expected from 1 to {most}, its window, got {seconds}");
    bad(why)
}

/// The error for a command or an option that needs a window, if the value under `key` has none. `instead` says what
/// would be right.
pub(super) fn no_window<T: Family>(_: &T, key: Arg<'_>, instead: &str) -> CommandError {
    CommandError::Argument(format!("the {} {} has no window of time: {instead}", T::KIND, quoted(key.bytes())))
}

/// What is right instead of a `SINCE` in a command on one key without a window.
pub(super) const NO_SINCE: &str = "leave SINCE out";
