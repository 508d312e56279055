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

use roaring::RoaringBitmap;

use crate::counting::counter::{BATCH, Counter, Representation, Shaped, State};
use crate::counting::dated::ring::Ring;
use crate::counting::dated::{Dated, MOST_SLICES, Seen, Touch};
use crate::counting::estimate::Estimated;
use crate::counting::layout::{Layout, Slot};
use crate::counting::listing;
use crate::counting::members::Members;
use crate::counting::params::{Params, Plan};
use crate::counting::slots::{Bitmap, zeroed_words};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::size_limit::{SizeLimit, Unlimited, try_with_capacity};
use crate::window::{Move, Pace, Window};

impl Counter {
    /// The most slices that a window may have.
    pub const MAX_SLICES: u32 = MOST_SLICES;

    /// Bytes that a windowed counter takes whatever it holds.
    pub(super) const WINDOWED_BYTES: u64 = Self::STRUCT_BYTES + Dated::STRUCT_BYTES;

    /// An empty counter of the same parameters with a window that begins in a slice, mostly that of
    /// [`Window::first_slice`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        if window.slices() > MOST_SLICES {
            return Err(Error::out_of_range(Parameter::Slices, "from 1 to 254 of a counter", window.slices()));
        }
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
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The newest slice that it has reached, if it has a window.
    pub fn newest_slice(&self) -> Option<u64> {
        self.ring().map(Ring::newest)
    }

    /// The same, 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.newest_slice().unwrap_or(0)
    }

    /// Whether it asks a clock.
    pub fn asks_clock(&self) -> bool {
        self.window().is_some_and(|window| window.pace() == Pace::Clock)
    }

    /// The present slice at a time, Unix seconds.
    pub fn present_slice(&self, now: u64) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), now))
    }

    /// The oldest slice that is alive at a time, Unix seconds.
    pub fn oldest_alive(&self, now: u64) -> u64 {
        self.window().map_or(0, |window| window.oldest_alive(self.present_slice(now)))
    }

    /// The slice from which on it must be asked for who was seen in the last `seconds`, at least.
    pub fn since(&self, seconds: u64, now: u64) -> u64 {
        self.window().map_or(0, |window| window.since(seconds, self.reached(), now))
    }

    /// What has to be done before it changes at a time, Unix seconds.
    pub fn due(&self, now: u64) -> Move {
        self.window().map_or(Move::Stay, |window| window.due(self.reached(), now))
    }

    /// Does what is [due](Self::due), and tells what that was.
    pub fn advance_due(&mut self, now: u64) -> Move {
        let due = self.due(now);
        match due {
            Move::Stay => {}
            Move::Advance(slice) => drop(self.advance(slice)),
            Move::Rebase(slice) => drop(self.rebase(slice)),
        }
        due
    }

    /// Makes a later slice the newest and drops what dies by that; false, and nothing done, for one that is not later.
    pub fn advance(&mut self, slice: u64) -> bool {
        self.dated_mut().is_some_and(|(dated, plan)| dated.advance(slice, plan))
    }

    /// Gives the newest slice an earlier number, and all others with it; false, and nothing done, for one that is not
    /// earlier.
    pub fn rebase(&mut self, slice: u64) -> bool {
        self.dated_mut().is_some_and(|(dated, _)| dated.rebase(slice))
    }

    /// Hands it to another pace; false, and nothing done, where it has that or no window.
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
    /// # Errors
    /// Those of [`Self::add`].
    pub fn touch(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Touch, Error> {
        let hash = hash64(item, self.params().seed);
        match self.dated_mut() {
            Some((dated, plan)) => dated.touch(item, hash, plan, Self::WINDOWED_BYTES, limit),
            None => Ok(if self.add(item, limit)? { Touch::New } else { Touch::Same }),
        }
    }

    /// As [`Self::add_all`], and tells of each item what [`Self::touch`] would return.
    ///
    /// # Errors
    /// Those of [`Self::add_all`].
    pub fn touch_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut touched: impl FnMut(Touch),
    ) -> Result<(), Error> {
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

    /// As [`Self::advance_due`], if adding these items would change anything.
    pub fn advance_before_adding<'a>(&mut self, items: impl IntoIterator<Item = &'a [u8]>, now: u64) -> Move {
        let would_change = match self.due(now) {
            Move::Stay => false,
            // Whoever is seen is seen later than before.
            Move::Advance(_) => items.into_iter().next().is_some(),
            Move::Rebase(_) => items.into_iter().any(|item| self.age_of(item, self.hash(item)) != Some(0)),
        };
        if would_change { self.advance_due(now) } else { Move::Stay }
    }

    fn hash(&self, item: &[u8]) -> u64 {
        hash64(item, self.params().seed)
    }

    /// How many slices before the newest one an item, or one that shares its slot, was last seen.
    fn age_of(&self, item: &[u8], hash: u64) -> Option<u8> {
        let dated = self.dated()?;
        let slot = self.layout().slot_of(hash);
        let tag = match dated.seen() {
            Seen::Exact(members) => members.tag_of(item, hash),
            Seen::Sparse(positions) => positions.tag(slot.index as u32),
            Seen::Dense(cells) => Some(cells.tag(slot.index)).filter(|&tag| tag != 0),
        };
        tag.map(|tag| dated.ring().ages().age(tag))
    }

    /// How many slices before the newest one `item`, whose hash is `hash`, was last seen, if it is a member that was
    /// seen in `slice` or later. Without a window all were seen in the newest.
    ///
    /// # Errors
    /// Those of [`Self::contains`].
    pub(super) fn age_of_member(&self, item: &[u8], hash: u64, slice: u64) -> Result<Option<u8>, Error> {
        let Some(dated) = self.dated() else { return Ok(self.contains_hashed(item, hash)?.then_some(0)) };
        let most_age = dated.ring().most_age_since(slice);
        match dated.seen() {
            Seen::Exact(members) => {
                let age = members.tag_of(item, hash).map(|tag| dated.ring().ages().age(tag));
                Ok(age.filter(|&age| most_age.is_some_and(|most_age| age <= most_age)))
            }
            // None at all is known for certain.
            _ if !dated.has_any(most_age) => Ok(None),
            _ => Err(self.not_exact()),
        }
    }

    /// The members that a windowed counter has seen in `slice` or later, all members of another, in the order in which
    /// they came. A member that died comes again at the end. That there are none is known of an estimate too.
    ///
    /// # Errors
    /// Those of [`Self::members`].
    pub fn members_since(&self, slice: u64) -> Result<listing::Iter<'_>, Error> {
        let Some(dated) = self.dated() else { return self.members() };
        let (ages, most_age) = (dated.ring().ages(), dated.ring().most_age_since(slice));
        match dated.seen() {
            Seen::Exact(members) => Ok(listing::Iter::dated(members.iter(), ages, most_age)),
            _ if !dated.has_any(most_age) => Ok(listing::Iter::none()),
            _ => Err(self.not_exact()),
        }
    }

    /// Is `item` a member that was seen in `slice` or later?
    ///
    /// # Errors
    /// Those of [`Self::contains`], if any were seen then.
    pub fn contains_since(&self, item: &[u8], slice: u64) -> Result<bool, Error> {
        Ok(self.age_of_member(item, self.hash(item), slice)?.is_some())
    }

    /// A counter without a window of those that it has seen in `slice` or later: the same as one that has seen only them.
    /// If none were, it is exact. Of a counter without a window it is a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn seen_since(&self, slice: u64) -> Result<Counter, Error> {
        let Some(dated) = self.dated() else { return self.try_clone() };
        let (&params, layout, ring) = (self.params(), self.layout(), dated.ring());
        let (ages, most_age) = (ring.ages(), ring.most_age_since(slice));
        if !dated.has_any(most_age) {
            return Counter::with_layout(params, layout);
        }
        let state = match (dated.seen(), most_age) {
            (_, None) => return Counter::with_layout(params, layout),
            (Seen::Exact(held), Some(most_age)) => {
                let mut members = Members::new();
                for (_, member) in held.iter().filter(|&(tag, _)| ages.age(tag) <= most_age) {
                    members.insert(member, hash64(member, params.seed), params.seed)?;
                }
                State::Exact(members)
            }
            (Seen::Sparse(held), Some(most_age)) => {
                let mut positions = RoaringBitmap::new();
                let seen = held.iter().filter(|&(_, tag)| ages.age(tag) <= most_age).map(|(position, _)| position);
                let appended = positions.append(seen);
                debug_assert!(appended.is_ok());
                State::Estimating(Bitmap::from_positions(layout, positions, 0, &Unlimited)?)
            }
            (Seen::Dense(cells), Some(most_age)) => {
                let mut words = zeroed_words(layout)?;
                cells.to_words(ages, most_age, &mut words);
                State::Estimating(Bitmap::from_words(layout, words))
            }
        };
        Ok(Self::from_state(params, layout, 0, state))
    }

    /// The count at a time, Unix seconds. It is made out of what is there, without a counter beside.
    ///
    /// # Errors
    /// None; the signature is that of counts of several counters.
    pub fn count_at(&self, now: u64) -> Result<u64, Error> {
        if self.oldest_alive(now) == self.oldest_alive(0) {
            return Ok(self.count());
        }
        Ok(self.estimated_at(now)?.count())
    }

    /// As [`Self::count_at`], with the standard error.
    ///
    /// # Errors
    /// As there.
    pub fn estimated_at(&self, now: u64) -> Result<Estimated, Error> {
        Ok(self.seen_by(self.oldest_alive(now)))
    }

    /// As [`Self::estimated_at`], of those only that were seen in the last `seconds` at least. Without a window all were.
    ///
    /// # Errors
    /// As there.
    pub fn count_since(&self, seconds: u64, now: u64) -> Result<Estimated, Error> {
        Ok(self.seen_by(self.since(seconds, now)))
    }

    /// How many it has seen in `slice` or later.
    fn seen_by(&self, slice: u64) -> Estimated {
        match self.dated() {
            None => self.estimated(),
            Some(dated) => dated.estimated(self.layout(), dated.ring().most_age_since(slice)),
        }
    }

    /// For every slice that is alive, from the present one back: when it begins, Unix seconds, and how many distinct
    /// members were seen since. None without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn history(&self, now: u64) -> Result<Vec<(i64, u64)>, Error> {
        let Some((dated, window)) = self.dated().zip(self.window()) else { return Ok(Vec::new()) };
        let present = self.present_slice(now);
        let passed = present - self.reached();
        let counts = dated.history(self.layout())?;
        let mut rows = try_with_capacity(counts.len())?;
        for row in 0..counts.len() as u64 {
            // By hand a window begins at slice 0: those before it begin before the epoch.
            let start = (i128::from(present) - i128::from(row)) * i128::from(window.slice_seconds());
            let start = i64::try_from(start).unwrap_or(i64::MAX);
            let count = row.checked_sub(passed).map_or(0.0, |age| counts[age as usize]);
            rows.push((start, libm::round(count) as u64));
        }
        Ok(rows)
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
pub fn at<'a>(counters: &[&'a Counter], now: u64) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.oldest_alive(now))
}

/// As [`at`], with only those that were seen in the last `seconds` at least.
///
/// # Errors
/// Those of [`at`].
pub fn since<'a>(counters: &[&'a Counter], seconds: u64, now: u64) -> Result<Vec<Present<'a>>, Error> {
    as_seen(counters, |counter| counter.since(seconds, now))
}

fn as_seen<'a>(counters: &[&'a Counter], slice: impl Fn(&Counter) -> u64) -> Result<Vec<Present<'a>>, Error> {
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
