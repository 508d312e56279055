//! Windowed counters: members count by when they were last seen.
//!
//! ```
//! use rollcall_core::counting::{Counter, Params};
//! use rollcall_core::size_limit::Unlimited;
//! use rollcall_core::window::{Pace, Window};
//!
//! // The last day, by the hour.
//! let window = Window::new(86_400, 24, 254, Pace::Clock)?;
//! let exact_bytes = Params::DEFAULT_EXACT_BYTES;
//! let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes, seed: 0 };
//! let noon = 1_000_000 * 86_400 + 12 * 3600;
//! let mut visitors = Counter::new(params)?.with_window(window, window.first_slice(noon))?;
//! visitors.add(b"ann", &Unlimited)?;
//! // Two hours later.
//! visitors.advance_due(noon + 7200);
//! visitors.add(b"ben", &Unlimited)?;
//! assert_eq!(visitors.count(), 2);
//! assert_eq!(visitors.seen_since(visitors.since(3600, noon + 7200))?.count(), 1);
//! # Ok::<(), rollcall_core::error::Error>(())
//! ```
//!
//! No clock is asked here: the time is passed in. Reads change nothing and skip what is dead. Before a change the counter
//! is [moved on](Counter::advance_due). What has no time goes by the newest slice that was reached.

use std::ops::Deref;

use crate::counting::counter::{BATCH, Counter, Representation, Shaped, State};
use crate::counting::dated::ring::{self, Ring};
use crate::counting::dated::{Dated, MOST_SLICES, Seen, Touch};
use crate::counting::layout::{Layout, Slot};
use crate::counting::params::{Params, Plan};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::{Move, Pace, Window};

impl Counter {
    /// The most slices that a window may have.
    pub const MAX_SLICES: u32 = MOST_SLICES;

    /// Bytes that a windowed counter takes whatever it holds.
    pub(super) const WINDOWED_BYTES: u64 = Self::STRUCT_BYTES + Dated::STRUCT_BYTES;

    /// An empty counter of the same parameters with a window that begins in a slice, mostly that of
    /// [`Window::first_slice`].
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// let visitors = Counter::new(params)?.with_window(day, day.first_slice(noon))?;
    /// assert_eq!(visitors.newest_slice(), Some(500_000));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], or more slots than one that follows from a
    /// capacity and an error rate; [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        ring::check(&window, self.layout())?;
        Self::with_ring(*self.params(), self.layout(), Ring::new(window, slice))
    }

    /// An empty windowed counter.
    pub(super) fn with_ring(params: Params, layout: Layout, ring: Ring) -> Result<Self, Error> {
        params.validate()?;
        let dated = Dated::with_ring(ring, &Plan { params, layout })?;
        Ok(Self::from_state(params, layout, 0, State::Windowed(Box::new(dated))))
    }

    pub(super) fn ring(&self) -> Option<&Ring> {
        self.dated().map(Dated::ring)
    }

    /// Its window, if it has one.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.window(), Some(&day));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The newest slice that it has reached, if it has a window.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.newest_slice(), Some(500_000));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn newest_slice(&self) -> Option<u64> {
        self.ring().map(Ring::newest)
    }

    /// The same, 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.newest_slice().unwrap_or(0)
    }

    /// Whether it asks a clock.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert!(visitors.asks_clock());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn asks_clock(&self) -> bool {
        self.window().is_some_and(|window| window.pace() == Pace::Clock)
    }

    /// The present slice at a time, Unix seconds.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.present_slice(noon + 3600), 500_001);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn present_slice(&self, now: u64) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), now))
    }

    /// The oldest slice that is alive at a time, Unix seconds. Those before the epoch have numbers below 0.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.oldest_alive(noon), 500_000 - 24);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn oldest_alive(&self, now: u64) -> i128 {
        self.window().map_or(0, |window| window.oldest_alive(self.present_slice(now)))
    }

    /// The slice from which on it must be asked for who was seen in the last `seconds`, at least. Those before the epoch have
    /// numbers below 0.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.since(3600, noon), 499_999);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn since(&self, seconds: u64, now: u64) -> i128 {
        self.window().map_or(0, |window| window.since(seconds, self.reached(), now))
    }

    /// What has to be done before it changes at a time, Unix seconds.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Move, Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.due(noon + 3600), Move::Advance(500_001));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn due(&self, now: u64) -> Move {
        self.window().map_or(Move::Stay, |window| window.due(self.reached(), now))
    }

    /// Does what is [due](Self::due), and tells what that was.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Move, Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.advance_due(noon + 3600), Move::Advance(500_001));
    /// assert_eq!(visitors.advance_due(noon + 3600), Move::Stay);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance_due(&mut self, now: u64) -> Move {
        let due = self.due(now);
        self.make(due);
        due
    }

    /// Moves it on.
    pub(super) fn make(&mut self, due: Move) {
        match due {
            Move::Stay => {}
            Move::Advance(slice) => drop(self.advance(slice)),
            Move::Rebase(slice) => drop(self.rebase(slice)),
        }
    }

    /// Makes a later slice the newest and drops what dies by that; false, and nothing done, for one that is not later.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// visitors.add(b"ann", &Unlimited)?;
    /// assert!(visitors.advance(500_024) && visitors.count() == 1);
    /// assert!(visitors.advance(500_025) && visitors.count() == 0);
    /// assert!(!visitors.advance(500_025));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance(&mut self, slice: u64) -> bool {
        self.dated_mut().is_some_and(|(dated, plan)| dated.advance(slice, plan))
    }

    /// Gives the newest slice an earlier number, and all others with it; false, and nothing done, for one that is not
    /// earlier.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// // The clock was a year ahead.
    /// visitors.advance(508_760);
    /// visitors.add(b"ann", &Unlimited)?;
    /// assert!(visitors.rebase(500_000));
    /// assert_eq!(visitors.count_at(noon)?, 1);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn rebase(&mut self, slice: u64) -> bool {
        self.dated_mut().is_some_and(|(dated, _)| dated.rebase(slice))
    }

    /// Hands it to another pace; false, and nothing done, where it has that or no window.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert!(visitors.set_pace(Pace::Manual));
    /// assert!(!visitors.asks_clock());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn set_pace(&mut self, pace: Pace) -> bool {
        let Some(&window) = self.window().filter(|window| window.pace() != pace) else { return false };
        if let Some((dated, _)) = self.dated_mut() {
            dated.set_window(window.with_pace(pace));
        }
        true
    }

    /// As [`Self::add`], and tells a known item that is now known to have been seen later from one that changed nothing.
    /// Only a windowed counter has such. It is in its newest slice that the item was seen.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params, Touch};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.touch(b"ann", &Unlimited)?, Touch::New);
    /// assert_eq!(visitors.touch(b"ann", &Unlimited)?, Touch::Same);
    /// visitors.advance(500_001);
    /// assert_eq!(visitors.touch(b"ann", &Unlimited)?, Touch::Renewed);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn touch(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<Touch, Error> {
        let item = item.as_ref();
        let hash = hash64(item, self.params().seed);
        match self.dated_mut() {
            Some((dated, plan)) => dated.touch(item, hash, plan, Self::WINDOWED_BYTES, limit),
            None => Ok(if self.add(item, limit)? { Touch::New } else { Touch::Same }),
        }
    }

    /// As [`Self::add_all`], and tells of each item what [`Self::touch`] would return.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params, Touch};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// let (names, mut told) = ([&b"ann"[..], b"ann"], Vec::new());
    /// visitors.touch_all(names, &Unlimited, |touch| told.push(touch))?;
    /// assert_eq!(told, [Touch::New, Touch::Same]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::add_all`].
    pub fn touch_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        limit: &impl SizeLimit,
        mut touched: impl FnMut(Touch),
    ) -> Result<(), Error> {
        let items = items.into_iter().map(AsRef::as_ref);
        if self.dated().is_none() {
            return self.add_all(items, limit, |is_new| touched(if is_new { Touch::New } else { Touch::Same }));
        }
        self.touch_all_windowed(items, limit, touched)
    }

    /// As [`Self::touch_all`], of a windowed counter.
    pub(super) fn touch_all_windowed<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut touched: impl FnMut(Touch),
    ) -> Result<(), Error> {
        let mut items = items.into_iter();
        while self.representation() != Representation::Dense {
            match items.next() {
                Some(item) => touched(self.touch(item, limit)?),
                None => return Ok(()),
            }
        }
        self.touch_all_dense(items, touched);
        Ok(())
    }

    /// The batch path of a windowed counter.
    fn touch_all_dense<'a>(&mut self, mut items: impl Iterator<Item = &'a [u8]>, mut touched: impl FnMut(Touch)) {
        let Some((dated, &Plan { params, layout })) = self.dated_mut() else { return };
        let Some((cells, tag)) = dated.cells_mut() else { return };
        let mut changed = false;
        let mut slots = [Slot { index: 0, segment: 0 }; BATCH];
        loop {
            let mut len = 0;
            for (slot, item) in slots.iter_mut().zip(items.by_ref()) {
                *slot = layout.slot_of(hash64(item, params.seed));
                cells.prefetch(*slot);
                len += 1;
            }
            for &slot in &slots[..len] {
                let touch = Touch::over(cells.replace(slot, tag), tag);
                changed |= touch == Touch::New;
                touched(touch);
            }
            if len < BATCH {
                break;
            }
        }
        if changed {
            dated.forget_estimate();
        }
    }

    /// As [`Self::advance_due`], if adding these items would change anything; a rebase with any item.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::window::{Move, Pace, Window};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
    /// # let noon = 1_800_000_000;
    /// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
    /// assert_eq!(visitors.advance_before_adding([""; 0], noon + 3600), Move::Stay);
    /// assert_eq!(visitors.advance_before_adding([&b"ann"[..]], noon + 3600), Move::Advance(500_001));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance_before_adding<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        now: u64,
    ) -> Move {
        let items = items.into_iter().map(AsRef::as_ref);
        let would_change = match self.due(now) {
            Move::Stay => false,
            // After an advance, whoever is seen is seen later than before. After a jump of the clock the counter would stand
            // still as long as only known items come.
            Move::Advance(_) | Move::Rebase(_) => items.into_iter().next().is_some(),
        };
        if would_change { self.advance_due(now) } else { Move::Stay }
    }

    /// Whether it holds slots, of which none was seen in `slice` or later. Then no item is a member, which slots alone do
    /// not tell. That takes a pass over all of them.
    ///
    /// # Errors
    /// [`Error::NotExact`] when some were.
    pub(super) fn is_all_dead(&self, slice: i128) -> Result<bool, Error> {
        match self.dated() {
            Some(dated) if !matches!(dated.seen(), Seen::Exact(_)) => {
                if dated.has_any(dated.ring().most_age_since(slice)) { Err(self.not_exact()) } else { Ok(true) }
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
        let Some(dated) = self.dated() else { return Ok(self.contains_hashed(item, hash)?.then_some(0)) };
        let most_age = dated.ring().most_age_since(slice);
        match dated.seen() {
            Seen::Exact(members) => {
                let age = members.tag_of(item, hash).map(|tag| dated.ring().ages().age(tag));
                Ok(age.filter(|&age| most_age.is_some_and(|most_age| age <= most_age)))
            }
            _ => self.is_all_dead(slice).map(|_| None),
        }
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
/// ```
/// # use rollcall_core::counting;
/// # use rollcall_core::counting::{Counter, Params};
/// # use rollcall_core::size_limit::Unlimited;
/// # use rollcall_core::window::{Pace, Window};
/// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
/// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
/// # let noon = 1_800_000_000;
/// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
/// visitors.add(b"ann", &Unlimited)?;
/// let other = Counter::new(params)?.with_window(day, 500_000)?;
/// let later = counting::at(&[&visitors, &other], noon + 2 * 86_400)?;
/// assert_eq!(counting::count_union(&[&later[0], &later[1]])?, 0);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Incompatible`] for counters with and without windows, or with slices of different lengths;
/// [`Error::OutOfMemory`].
pub fn at<'a>(counters: &[&'a Counter], now: u64) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.oldest_alive(now))
}

/// As [`at`], with only those that were seen in the last `seconds` at least.
///
/// ```
/// # use rollcall_core::counting;
/// # use rollcall_core::counting::{Counter, Params};
/// # use rollcall_core::size_limit::Unlimited;
/// # use rollcall_core::window::{Pace, Window};
/// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
/// # let day = Window::new(86_400, 24, Counter::MAX_SLICES, Pace::Clock)?;
/// # let noon = 1_800_000_000;
/// # let mut visitors = Counter::new(params)?.with_window(day, 500_000)?;
/// visitors.add(b"ann", &Unlimited)?;
/// let other = Counter::new(params)?.with_window(day, 500_000)?;
/// let both = counting::since(&[&visitors, &other], 3600, noon)?;
/// assert_eq!(counting::count_union(&[&both[0], &both[1]])?, 1);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// Those of [`at`].
pub fn since<'a>(counters: &[&'a Counter], seconds: u64, now: u64) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.since(seconds, now))
}

fn as_seen<'a>(counters: &[&'a Counter], slice: impl Fn(&Counter) -> i128) -> Result<Vec<Present<'a>>, Error> {
    check_windows(counters)?;
    let mut seen = try_with_capacity(counters.len())?;
    for &counter in counters {
        let slice = slice(counter);
        // One by itself needs no other form while nothing that it holds is dead.
        let is_whole = counters.len() == 1 && slice <= counter.oldest_alive(0);
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
        seen.push(counter.seen_since(counter.oldest_alive(0))?);
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

#[cfg(test)]
mod tests;
