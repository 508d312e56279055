//! Windowed counters: members count by when they were last seen.
//!
//! No clock is asked here: the time is passed in. Reads change nothing and skip what is dead. What has no time goes by
//! the newest slice that was reached.

use std::ops::Deref;

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::held::Held;
use crate::counting::held::ring::{self, MOST_SLICES, Ring};
use crate::counting::layout::Layout;
use crate::counting::params::{Params, Plan};
use crate::counting::windowed_set::WindowedSet;
use crate::error::{Error, Parameter};
use crate::size_limit::try_with_capacity;
use crate::window::{Time, Window};

impl Counter {
    /// The most slices that a window may have.
    pub const MAX_SLICES: u32 = MOST_SLICES;

    /// An empty counter of the same parameters with a window that begins in a slice, mostly that of
    /// [`Window::first_slice`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], or more slots than one that follows from a
    /// capacity and an error rate; [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        ring::check(&window)?;
        Self::with_ring(*self.params(), self.layout(), Ring::new(window, slice))
    }

    /// An empty windowed counter.
    pub(super) fn with_ring(params: Params, layout: Layout, ring: Ring) -> Result<Self, Error> {
        params.validate()?;
        let set = WindowedSet::new(ring, Held::none(&Plan { params, layout }));
        Ok(Self::with_contents(params, layout, Contents::Windowed(Box::new(set))))
    }

    pub(super) fn ring(&self) -> Option<&Ring> {
        self.windowed().map(WindowedSet::ring)
    }

    /// Its window, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The newest slice that it has reached, 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.ring().map_or(0, Ring::newest)
    }

    /// The present slice at a time.
    pub fn present_slice(&self, time: Time) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), time))
    }

    /// The oldest slice that is alive at a time. Those before the epoch have numbers below 0.
    pub fn oldest_alive(&self, time: Time) -> i128 {
        self.window().map_or(0, |window| window.oldest_alive(self.present_slice(time)))
    }

    /// The slice from which on it must be asked for who was seen in the last `seconds`, at least. Those before the epoch have
    /// numbers below 0.
    pub fn since(&self, seconds: u64, time: Time) -> i128 {
        self.window().map_or(0, |window| window.since(seconds, self.reached(), time))
    }

    /// Whether it holds slots, of which none was seen in `slice` or later. Then no item is a member, which slots alone do
    /// not tell. That takes a pass over all of them.
    ///
    /// # Errors
    /// [`Error::NotExact`] when some were.
    pub(super) fn is_all_dead(&self, slice: i128) -> Result<bool, Error> {
        match self.windowed() {
            Some(set) if set.held().members().is_none() => {
                if set.has_any(set.ring().most_age_since(slice)) {
                    Err(self.not_exact())
                } else {
                    Ok(true)
                }
            }
            _ => Ok(false),
        }
    }

    /// How many slices before the newest one `item`, whose hash is `hash`, was last seen, if it is a member that was
    /// seen in `slice` or later. Without a window all were seen in the newest.
    ///
    /// # Errors
    /// Those of [`Self::contains`].
    pub(super) fn age_of_member(&self, item: &[u8], hash: u64, slice: i128) -> Result<Option<u8>, Error> {
        let Some(set) = self.windowed() else { return Ok(self.contains_hashed(item, hash)?.then_some(0)) };
        let Some(members) = set.held().members() else { return self.is_all_dead(slice).map(|_| None) };
        let age = members.tag_of(item, hash).map(|tag| set.ring().ages().age(tag));
        Ok(age.filter(|&age| set.ring().most_age_since(slice).is_some_and(|most_age| age <= most_age)))
    }
}

/// A counter as it is at a time: itself, or one made of what is alive.
#[derive(Debug)]
pub enum Present<'a> {
    /// Itself.
    Held(&'a Counter),
    /// What is alive.
    Made(Box<Counter>),
}

impl Deref for Present<'_> {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        match self {
            Present::Held(counter) => counter,
            Present::Made(counter) => counter,
        }
    }
}

/// Counters as they are at a time, Unix seconds, each by its own present slice, to be asked about together.
///
/// # Errors
/// [`Error::Incompatible`] for counters with and without windows, or with slices of different lengths;
/// [`Error::OutOfMemory`].
pub fn at<'a>(counters: &[&'a Counter], time: Time) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.oldest_alive(time))
}

/// As [`at`], with only those that were seen in the last `seconds` at least.
///
/// # Errors
/// Those of [`at`].
pub fn since<'a>(counters: &[&'a Counter], seconds: u64, time: Time) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.since(seconds, time))
}

fn as_seen<'a>(counters: &[&'a Counter], slice: impl Fn(&Counter) -> i128) -> Result<Vec<Present<'a>>, Error> {
    check_windows(counters)?;
    let mut seen = try_with_capacity(counters.len())?;
    for &counter in counters {
        let slice = slice(counter);
        // One by itself needs no other form while nothing that it holds is dead.
        let is_whole = counters.len() == 1 && slice <= counter.oldest_alive(Time::Reached);
        seen.push(if counter.window().is_none() || is_whole {
            Present::Held(counter)
        } else {
            Present::Made(Box::new(counter.seen_since(slice)?))
        });
    }
    Ok(seen)
}

/// Have some of these counters windows?
pub(super) fn have_windows(counters: &[&Counter]) -> bool {
    counters.iter().any(|counter| counter.window().is_some())
}

/// Calls `ask` with the counters as they are by their own newest slices, without windows.
pub(super) fn with_plain<T>(
    counters: &[&Counter],
    ask: impl FnOnce(&[&Counter]) -> Result<T, Error>,
) -> Result<T, Error> {
    check_windows(counters)?;
    let mut seen = try_with_capacity(counters.len())?;
    for counter in counters {
        seen.push(counter.seen_since(counter.oldest_alive(Time::Reached))?);
    }
    let mut all = try_with_capacity(counters.len())?;
    all.extend(seen.iter());
    ask(&all)
}

/// Checks that all have windows of slices of one length, or none has.
pub(super) fn check_windows(counters: &[&Counter]) -> Result<(), Error> {
    let lengths = counters.iter().map(|counter| counter.window().map(Window::slice_seconds));
    let in_words =
        |length: Option<u64>| length.map_or("no window".to_owned(), |length| format!("slices of {length} s"));
    match lengths.clone().zip(lengths.skip(1)).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(Error::incompatible(Parameter::Window, in_words(ours), in_words(theirs))),
        None => Ok(()),
    }
}
