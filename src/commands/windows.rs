//! Windows, the same for both families: their options, the clock, and how a value is moved on.
//!
//! The clock is read once a command, and only where a value goes by it. What must be obeyed never looks at it: the
//! primary has sent each move before the change that it belongs to. Reads skip what is dead, and change nothing.

use std::cmp::Ordering;
use std::ffi::CStr;

use rollcall_core::bloom::{BloomFilter, Forgotten, Sliding, Span};
use rollcall_core::counting::Counter;
use rollcall_core::error::{Error, Parameter};
use rollcall_core::window::{Merging, Move, Pace, Window};

use super::effects::word;
use super::keyspace::{refusal_of, value_mut};
use crate::args::{self, Opt, Options};
use crate::refusal::{Noun, Refusal, quoted};
use crate::reply::{self, Field, InfoLine};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, ArgOrOwned, Args, Closed, Ctx, Mode};
use crate::server::metrics::{COUNTER_ADVANCES, FILTER_ADVANCES, Metric};
use crate::server::reclaim;
use crate::types::before::Before;
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// The options of a filter's window.
pub(super) const OF_FILTERS: &[Opt] = &[Opt::Window, Opt::Manual, Opt::Slices, Opt::Refresh, Opt::Last];
/// The options of a counter's window.
pub(super) const OF_COUNTERS: &[Opt] = &[Opt::Window, Opt::Manual, Opt::Slices];

/// The slices of a counter that was not told how many.
const SLICES_OF_COUNTERS: u32 = 12;

/// A family whose values may have windows.
pub(super) trait Windowed: Family {
    /// Whose commands move a value on.
    const PREFIX: Prefix;
    /// How often windows have moved on.
    const ADVANCES: &'static Metric;

    /// The window, if it is one of time.
    fn window(&self) -> Option<Window>;
    fn newest_slice(&self) -> Option<u64>;
    fn advance(&mut self, slice: u64);
    fn rebase(&mut self, slice: u64);
    /// Makes the move that is due at a time, and tells which.
    fn advance_due(&mut self, now: u64) -> Move;
    fn set_pace(&mut self, pace: Pace);
}

impl Windowed for BloomFilter {
    /// Only filters of lines have windows.
    const PREFIX: Prefix = Prefix::Rf;
    const ADVANCES: &'static Metric = &FILTER_ADVANCES;

    fn window(&self) -> Option<Window> {
        self.sliding().and_then(Sliding::window).copied()
    }

    fn newest_slice(&self) -> Option<u64> {
        self.newest_slice()
    }

    fn advance(&mut self, slice: u64) {
        dispose(self.advance(slice));
    }

    fn rebase(&mut self, slice: u64) {
        self.rebase(slice);
    }

    fn advance_due(&mut self, now: u64) -> Move {
        let moved = self.advance_due(now);
        dispose(moved.forgotten);
        moved.made
    }

    fn set_pace(&mut self, pace: Pace) {
        self.set_pace(pace);
    }
}

impl Windowed for Counter {
    const PREFIX: Prefix = Prefix::Lc;
    const ADVANCES: &'static Metric = &COUNTER_ADVANCES;

    fn window(&self) -> Option<Window> {
        self.window().copied()
    }

    fn newest_slice(&self) -> Option<u64> {
        self.newest_slice()
    }

    fn advance(&mut self, slice: u64) {
        self.advance(slice);
    }

    fn rebase(&mut self, slice: u64) {
        self.rebase(slice);
    }

    fn advance_due(&mut self, now: u64) -> Move {
        self.advance_due(now)
    }

    fn set_pace(&mut self, pace: Pace) {
        self.set_pace(pace);
    }
}

/// Frees what a filter forgot, in the background if it is much.
pub(super) fn dispose(forgotten: Forgotten) {
    match forgotten.num_bytes() {
        0 => {}
        bytes => reclaim::dispose(Box::new(forgotten), bytes as usize),
    }
}

/// The server's clock, in Unix seconds.
pub(super) fn now(ctx: Ctx) -> u64 {
    u64::try_from(ctx.now_ms()).unwrap_or(0) / 1000
}

/// The time by which a value is read: what does not ask a clock goes by no time.
#[inline]
pub(super) fn time_of(ctx: Ctx, asks_clock: bool) -> u64 {
    if asks_clock { now(ctx) } else { 0 }
}

/// The time at which a value changes; `None` where it asks no clock, or the command must be obeyed.
#[inline]
pub(super) fn time_of_change(ctx: Ctx, asks_clock: bool) -> Option<u64> {
    (asks_clock && !must_obey(ctx)).then(|| now(ctx))
}

/// A move that was replicated, and whose event is still to be sent.
#[must_use]
pub(super) struct Announced(Option<&'static CStr>);

impl Announced {
    /// No move.
    pub(super) const NOTHING: Self = Announced(None);

    /// Sends the event, when the command uses the value no more: whoever listens may delete the key.
    pub(super) fn notify(self, ctx: Ctx, key: Closed<'_>) {
        if let Some(event) = self.0 {
            ctx.changed(key, event);
        }
    }
}

/// Replicates the move that a value has made before it changes.
pub(super) fn announce_move<T: Windowed>(ctx: Ctx, key: Arg<'_>, made: Move) -> Announced {
    let (slice, rebases) = match made {
        Move::Stay => return Announced::NOTHING,
        Move::Advance(slice) => (slice, false),
        Move::Rebase(slice) => (slice, true),
    };
    T::ADVANCES.count();
    let mut arguments = vec![ArgOrOwned::Arg(key), word(ctx, slice.to_string())];
    if rebases {
        arguments.push(word(ctx, "REBASE"));
    }
    ctx.replicate(T::PREFIX.name(Verb::Advance).text(), &arguments, Args::none());
    Announced(Some(T::prefix_of_events().event(Verb::Advance)))
}

/// Renumbers a new value as a merge does in the end.
pub(super) fn rebase<T: Windowed>(value: &mut T, after: Move) {
    if let Move::Rebase(slice) = after {
        value.rebase(slice);
    }
}

/// What a client's merge into a key has changed.
pub(super) struct Merged {
    /// Whose merge goes out; `None` where the union is what was there.
    pub(super) changed: Option<Prefix>,
    pub(super) merging: Merging,
}

/// Replicates a merge between the moves that it made, in the order in which they were made, and sends the events.
pub(super) fn announce_merged<T: Windowed>(ctx: Ctx, args: Args<'_>, key: Closed<'_>, merged: &Merged) {
    let Merged { changed, merging: Merging { before, after } } = *merged;
    let before = announce_move::<T>(ctx, key.name(), before);
    if let Some(prefix) = changed {
        ctx.replicate_under(prefix.name(Verb::Merge), args);
    }
    let after = announce_move::<T>(ctx, key.name(), after);
    before.notify(ctx, key);
    if changed.is_some() {
        ctx.changed(key, T::prefix_of_events().event(Verb::Merge));
    }
    after.notify(ctx, key);
}

/// A number of slices as the core takes it, which refuses what is too large.
fn narrow(slices: u64) -> u32 {
    u32::try_from(slices).unwrap_or(u32::MAX)
}

/// The pace that options give.
fn pace_of(given: &args::Window) -> Pace {
    if given.manual { Pace::Manual } else { Pace::Clock }
}

/// The error, about the number of slices that was given and not about what 32 bits hold of it.
fn refused<T: Family>(error: Error, given: &args::Window) -> Refusal {
    refusal_of::<T>(match (error, given.slices) {
        (Error::OutOfRange { parameter: Parameter::Slices, expected, .. }, Some(slices)) => {
            Error::OutOfRange { parameter: Parameter::Slices, expected, got: slices.to_string() }
        }
        (error, _) => error,
    })
}

/// The window of a counter that options ask for.
pub(super) fn of_counter(options: &Options) -> Result<Option<Window>, Refusal> {
    let given = &options.window;
    let Some(seconds) = given.seconds else {
        return needs_window(given, "option WINDOW").map(|()| None);
    };
    let slices = given.slices.map_or(SLICES_OF_COUNTERS.min(narrow(seconds.max(1))), narrow);
    let window = Window::new(seconds, slices, Counter::MAX_SLICES, pace_of(given));
    window.map(Some).map_err(|error| refused::<Counter>(error, given))
}

/// How far back a filter reaches by its options.
pub(super) fn of_filter(options: &Options) -> Result<Option<Sliding>, Refusal> {
    let given = &options.window;
    let default_slices = Sliding::default_slices(given.refresh);
    let sliding = match (given.seconds, given.last) {
        (None, false) => return needs_window(given, "option WINDOW or LAST").map(|()| None),
        (Some(_), true) => return Err(excluded("WINDOW", "LAST", "give a time, or LAST for the last items")),
        (None, true) if given.manual => {
            return Err(excluded("LAST", "MANUAL", "it goes by items, not by slices of time"));
        }
        (None, true) if options.non_scaling || options.expansion.is_some() => {
            let why = "it begins a slice where others grow";
            return Err(excluded("LAST", "EXPANSION and NONSCALING", why));
        }
        (Some(_), false) if options.non_scaling || options.expansion == Some(0) => {
            return Err(excluded("WINDOW", "NONSCALING", "a burst within a slice would be refused"));
        }
        (None, true) if given.refresh && given.slices.is_some() => {
            return Err(excluded("SLICES", "LAST REFRESH", "it keeps twice as many items, whatever came how often"));
        }
        (None, true) if given.refresh => Ok(Sliding::last_different()),
        (None, true) => Sliding::last(given.slices.map_or(default_slices, narrow)),
        (Some(seconds), false) => {
            let slices = given.slices.map_or(default_slices.min(narrow(seconds.max(1))), narrow);
            Sliding::time(seconds, slices, pace_of(given), given.refresh)
        }
    };
    sliding.map(Some).map_err(|error| refused::<BloomFilter>(error, given))
}

fn excluded(option: &str, other: &str, why: &str) -> Refusal {
    Refusal::Argument(format!("option {option} does not go with {other}: {why}"))
}

/// Checks that no option is given that only a window has.
fn needs_window(given: &args::Window, needed: &str) -> Result<(), Refusal> {
    let alone = [
        ("MANUAL", given.manual),
        ("SLICES", given.slices.is_some()),
        ("REFRESH", given.refresh),
        ("SLICE", given.slice.is_some()),
    ];
    match alone.iter().find(|(_, is_given)| *is_given) {
        Some((word, _)) => Err(Refusal::Argument(format!("option {word} needs {needed}"))),
        None => Ok(()),
    }
}

/// The options that make the same window elsewhere, at the same slice.
pub(super) fn words(ctx: Ctx, window: &Window, refresh: bool, slice: u64) -> Vec<ArgOrOwned<'static>> {
    let mut words = vec![word(ctx, "WINDOW"), word(ctx, window.seconds().to_string())];
    if window.pace() == Pace::Manual {
        words.push(word(ctx, "MANUAL"));
    }
    words.extend(words_of_slices(ctx, window.slices(), refresh));
    words.extend([word(ctx, "SLICE"), word(ctx, slice.to_string())]);
    words
}

/// As [`words`], of any filter that forgets.
pub(super) fn sliding_words(ctx: Ctx, sliding: &Sliding, slice: u64) -> Vec<ArgOrOwned<'static>> {
    match &sliding.span {
        Span::Time(window) => words(ctx, window, sliding.refresh, slice),
        Span::Last { slices } => {
            let mut words = vec![word(ctx, "LAST")];
            words.extend(words_of_slices(ctx, *slices, sliding.refresh));
            words
        }
        Span::LastDifferent => vec![word(ctx, "LAST"), word(ctx, "REFRESH")],
    }
}

fn words_of_slices(ctx: Ctx, slices: u32, refresh: bool) -> Vec<ArgOrOwned<'static>> {
    let mut words = vec![word(ctx, "SLICES"), word(ctx, slices.to_string())];
    if refresh {
        words.push(word(ctx, "REFRESH"));
    }
    words
}

/// The lines that windows add to an INFO reply: all null without one.
pub(super) fn info_lines<T: Windowed>(value: &T, now: u64) -> [InfoLine; 4] {
    let window = value.window();
    let number = |number: Option<u64>| number.map_or(Field::Null, Field::Integer);
    let present = window.zip(value.newest_slice()).map(|(window, newest)| window.present(newest, now));
    let pace = window.map_or(Field::Null, |window| {
        Field::Text(match window.pace() {
            Pace::Clock => "clock",
            Pace::Manual => "manual",
        })
    });
    [
        ("Window", "WINDOW", number(window.map(|window| window.seconds()))),
        ("Slices", "SLICES", number(window.map(|window| window.slices().into()))),
        ("Slice", "SLICE", number(present)),
        ("Pace", "PACE", pace),
    ]
}

/// What a window is moved on to.
enum To {
    Slice(u64),
    Rebased(u64),
    Clock,
}

fn read_target(noun: Noun, args: Args<'_>) -> Result<To, Refusal> {
    let is = |at: usize, word: &[u8]| args.get(at).bytes().eq_ignore_ascii_case(word);
    match args.len() {
        3 if is(2, b"CLOCK") => Ok(To::Clock),
        3 => Ok(To::Slice(args::count(noun, Parameter::Slice, args.get(2))?)),
        4 if is(3, b"REBASE") => Ok(To::Rebased(args::count(noun, Parameter::Slice, args.get(2))?)),
        4 => Err(Refusal::Argument(format!("unknown option {}: expected none", quoted(args.get(3).bytes())))),
        _ => Err(Refusal::Arity),
    }
}

/// `ADVANCE key slice | CLOCK`, and from a primary `ADVANCE key slice REBASE`.
pub(super) fn advance<T: Windowed>(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let to = read_target(T::NOUN, args)?;
    let mut key = ctx.open(args.get(1), Mode::Write);
    let (changed, due) = if must_obey(ctx) {
        match value_mut::<T>(&mut key) {
            Ok(Some(value)) => (obey(value, &to), Move::Stay),
            // It may have been deleted, or not have arrived yet.
            Ok(None) | Err(Refusal::StillLoading { .. }) => (false, Move::Stay),
            Err(refusal) => return Err(refusal),
        }
    } else {
        let value = value_mut::<T>(&mut key)?.ok_or(Refusal::NotFound)?;
        check(ctx, value, &to)?;
        (obey(value, &to), if let To::Clock = to { go_by_clock(ctx, value) } else { Move::Stay })
    };
    if changed {
        ctx.replicate_under(T::PREFIX.name(Verb::Advance), args);
    }
    let moved = announce_move::<T>(ctx, args.get(1), due);
    let key = key.close();
    // One event for both.
    if changed {
        ctx.changed(key, T::prefix_of_events().event(Verb::Advance));
    } else {
        moved.notify(ctx, key);
    }
    reply::ok(ctx);
    Ok(())
}

/// Makes the move that is due by the clock, which frees what is forgotten by it, and tells which.
fn go_by_clock<T: Windowed>(ctx: Ctx, value: &mut T) -> Move {
    let before = Before::any(value);
    let made = value.advance_due(now(ctx));
    before.changed(value);
    made
}

/// Moves a value; false where that changes nothing.
fn obey<T: Windowed>(value: &mut T, to: &To) -> bool {
    let (window, newest) = (value.window(), value.newest_slice());
    if window.is_none() {
        return false;
    }
    let before = Before::any(value);
    match *to {
        To::Slice(slice) => value.advance(slice),
        To::Rebased(slice) => value.rebase(slice),
        To::Clock => value.set_pace(Pace::Clock),
    }
    before.changed(value);
    let has_moved = newest != value.newest_slice();
    T::ADVANCES.add(has_moved.into());
    has_moved || window != value.window()
}

/// Checks a move that a client asks for.
fn check<T: Windowed>(ctx: Ctx, value: &T, to: &To) -> Result<(), Refusal> {
    let (Some(window), Some(newest)) = (value.window(), value.newest_slice()) else {
        return Err(no_window::<T>());
    };
    let refuse =
        |expected: String, got: u64| Err(Refusal::Argument(format!("bad slice: expected {expected}, got {got}")));
    match *to {
        To::Clock => Ok(()),
        To::Rebased(_) => Err(Refusal::Argument("option REBASE is for replicas and the AOF".to_owned())),
        To::Slice(slice) => {
            let present = window.present(newest, time_of(ctx, window.pace() == Pace::Clock));
            match slice.cmp(&present) {
                Ordering::Less => refuse(format!("at least {present}, which the window has reached"), slice),
                Ordering::Greater if window.pace() == Pace::Clock => {
                    refuse(format!("at most {present}, that of the clock by which the window goes"), slice)
                }
                _ => Ok(()),
            }
        }
    }
}

/// The refusal of what only a value with a window of time has.
pub(super) fn no_window<T: Family>() -> Refusal {
    Refusal::Argument(format!("the {} has no window of time", T::NOUN.word()))
}
