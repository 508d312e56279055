//! Changes of filters and counters, all through [`Live`].
//!
//! The caller gives the time of each change. If this time is in a later slice than the newest, the change first moves
//! the window to that slice. A call that changes nothing does not move the window, except back to the clock's slice
//! after the clock was set back.
//!
//! ```
//! use rollcall_core::bloom::{BloomFilter, Params, Windowing};
//! use rollcall_core::size_limit::Unlimited;
//! use rollcall_core::window::{Move, ClockSource, Time};
//!
//! let day = Windowing::new(86_400, 4, ClockSource::System, false)?;
//! let (now, later) = (1_800_000_000, 1_800_000_000 + 2 * 86_400);
//! let mut sent = BloomFilter::windowed(Params::default(), day, day.window.first_slice(now), &Unlimited)?;
//! assert!(sent.live(Time::At(now)).add("ann", &Unlimited)?);
//! assert!(sent.at(Time::At(now + 86_399)).may_contain("ann"));
//! assert!(!sent.at(Time::At(later)).may_contain("ann"));
//!
//! let mut live = sent.live(Time::At(later));
//! live.add("ben", &Unlimited)?;
//! let outcome = live.finish();
//! assert_eq!((outcome.before, outcome.changed), (Move::Advance(later / 21_600), true));
//! # Ok::<(), rollcall_core::error::Error>(())
//! ```

use std::alloc::Layout;

use crate::admission::{Admission, Room, Terms};
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, Unlimited, try_collect, try_collect_ok};
use crate::stored::payload::{Apart, Payload};
use crate::stored::{ChunkFormat, Kind, Partial, Source, no_chunk};
use crate::window::{ClockSource, Mark, Merging, Move, Time, Window};

/// A handle to change a filter or a counter at a given time.
#[derive(Debug)]
#[must_use]
pub struct Live<'v, T: Value> {
    pub(crate) value: &'v mut T,
    pub(crate) time: Time,
    pub(crate) outcome: Outcome<T::Expired>,
}

/// The outcome of changes through a [`Live`]. A replica has to make the move `before`, the changes and the move
/// `after`, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome<F> {
    /// How the window moved before the changes.
    pub before: Move,
    /// Whether anything changed besides the window.
    pub changed: bool,
    /// How the window moved after the changes. Only a merge may move it then, by a [`Move::Rebase`].
    pub after: Move,
    /// The data that expired when the window moved. Freeing it may take long.
    pub expired: F,
}

/// What [filters](crate::bloom::BloomFilter) and [counters](crate::counting::Counter) can do: changes, windows of time,
/// being stored, and what a server asks about memory. No type of another crate can implement the trait. A server may
/// save a value on one thread while another thread reads it.
///
/// ```
/// use rollcall_core::counting::{Counter, Params};
/// use rollcall_core::live::Value;
/// use rollcall_core::size_limit::Unlimited;
/// use rollcall_core::window::{ClockSource, Time, Window};
///
/// // With a manual clock source, the user moves the window on.
/// let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::Manual)?;
/// let mut visitors = Counter::new(Params::default())?.with_window(window, 7)?;
/// visitors.live(Time::Reached).add("ann", &Unlimited)?;
/// visitors.advance(11);
/// assert_eq!((visitors.newest_slice(), visitors.count()), (Some(11), 1));
/// visitors.advance(12);
/// assert_eq!(visitors.count(), 0);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// The trait is for functions that are generic over both types:
///
/// ```
/// use rollcall_core::error::Error;
/// use rollcall_core::live::Value;
/// use rollcall_core::persist;
/// use rollcall_core::size_limit::MaxBytes;
///
/// /// Reads a value from a file that has the chunks of its dump, each after its iterator and its length.
/// fn read<T: Value>(mut file: &[u8]) -> Result<T, Error> {
///     let chunks = std::iter::from_fn(|| {
///         let (next, rest) = file.split_first_chunk()?;
///         let (len, rest) = rest.split_first_chunk()?;
///         let (chunk, rest) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
///         file = rest;
///         Some((u64::from_le_bytes(*next), chunk))
///     });
///     persist::load(chunks, &MaxBytes(1 << 30))
/// }
///
/// assert!(matches!(read::<rollcall_core::counting::Counter>(b""), Err(Error::Corrupt { .. })));
/// ```
pub trait Value: Sized + Send + Sync + sealed::Sealed + 'static {
    /// The type of a partially loaded value.
    #[doc(hidden)]
    type Partial: Partial<Value = Self>;

    /// The kind of the value: filter or counter.
    #[doc(hidden)]
    const KIND: Kind;

    /// The data that expires when the window moves.
    type Expired: Default;

    /// The window of time, if the value has one.
    fn window(&self) -> Option<&Window>;

    /// The number of the newest slice, if there is a window.
    fn newest_slice(&self) -> Option<u64>;

    /// The slice that is the newest at `time`, if there is a window. The server module calls this method.
    #[doc(hidden)]
    fn present_slice(&self, time: Time) -> Option<u64> {
        self.window().zip(self.newest_slice()).map(|(window, newest)| window.present(newest, time))
    }

    /// Changes the clock source of the window. The server module calls this method.
    #[doc(hidden)]
    fn set_clock_source(&mut self, clock_source: ClockSource);

    /// Moves the window forward until `slice` is the newest slice. Does nothing if the newest slice is not earlier.
    fn advance(&mut self, slice: u64) -> Self::Expired;

    /// Lowers the numbers of all slices by the same amount, so that the newest slice gets the number `slice`. This is
    /// needed after the clock was set back. [`Self::make`] calls this method.
    #[doc(hidden)]
    fn rebase(&mut self, slice: u64);

    /// Moves the window as `due` says. The server module calls this method.
    #[doc(hidden)]
    fn make(&mut self, due: Move) -> Self::Expired {
        match due {
            Move::Stay => {}
            Move::Advance(slice) => return self.advance(slice),
            Move::Rebase(slice) => self.rebase(slice),
        }
        Self::Expired::default()
    }

    /// Whether adding an item again makes it expire later. The server module calls this method.
    #[doc(hidden)]
    fn renews(&self) -> bool;

    /// How the window must move before and after merging `others` at `time`. The server module calls this method.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] or [`Error::Incompatible`] if the merge would make items expire early.
    #[doc(hidden)]
    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error>;

    /// Checks that a merge accepts the parameters of `other`. The server module calls this method.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the parameter that differs.
    #[doc(hidden)]
    fn check_mergeable(&self, other: &Self) -> Result<(), Error>;

    /// Whether adding `item` would change the value, after its window has moved as `due` says.
    #[doc(hidden)]
    fn is_changed_by(&self, _item: &[u8], _due: Move) -> bool {
        true
    }

    /// Adds an item in the newest slice.
    ///
    /// # Errors
    /// Those of [`Live::add`]. On error the item is not added.
    #[doc(hidden)]
    fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error>;

    /// Adds items in the newest slice. Calls `added` for each with whether it was new, and sets `changed` if the value
    /// changes.
    ///
    /// # Errors
    /// Those of [`Live::add_all`].
    #[doc(hidden)]
    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        added: impl FnMut(bool),
    ) -> Result<(), Error>;

    /// The number of items for each age in slices, when the window has moved forward by `slices_later` slices. Without
    /// a window there is one element.
    #[doc(hidden)]
    fn by_age(&self, slices_later: u64) -> Result<Vec<u64>, Error>;

    /// The age in slices of an item that has not expired.
    #[doc(hidden)]
    fn age_of(&self, item: &[u8]) -> Option<u64>;

    /// The number of new items for which there are bits: [`u64::MAX`], except for a filter that does not scale.
    #[doc(hidden)]
    fn fits(&self) -> u64 {
        u64::MAX
    }

    /// Implements [`Live::admit`]. Returns the number of distinct new items too.
    #[doc(hidden)]
    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error>;

    /// Implements [`Live::merge`]. If a payload is empty, the value itself has it.
    #[doc(hidden)]
    fn merge_live<'a>(
        live: &mut Live<'_, Self>,
        others: Vec<Apart<'a, &'a Self>>,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error>;

    /// Calls `visit` with the size and alignment of every heap allocation that the value owns. The server module calls
    /// this method.
    #[doc(hidden)]
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// The bytes of the value, computed in constant time. Memory that several values may share is left out. The server
    /// module calls this method.
    #[doc(hidden)]
    fn num_bytes(&self) -> u64;

    /// Lets `mover` move the large buffer `index`. Returns false if there is no such buffer. The server module calls
    /// this method.
    ///
    /// # Panics
    /// If `mover` returns another number of elements than it was given.
    #[doc(hidden)]
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool;

    /// All fields of the value, and its payload if this is small. A header has less than 64 KiB, so a failed allocation
    /// is not handled.
    #[doc(hidden)]
    fn header(&self) -> Vec<u8>;

    /// The part of the payload outside the header; empty if the header contains the payload.
    #[doc(hidden)]
    fn payload(&self) -> Payload<'_>;

    /// The format of the chunks of a dump: with or without checksums.
    #[doc(hidden)]
    fn chunk_format(&self) -> ChunkFormat;

    /// Calls `visit` with bytes that are equal for two values if and only if the values are equal. They do not depend
    /// on the order in which items were added.
    #[doc(hidden)]
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.header());
        self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
    }

    /// Overwrites a part of the payload with a chunk and its `SCANDUMP` iterator `next`. Replicas need this, because a
    /// primary with RedisBloom accepts and replicates chunks for a complete filter, in any order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the value has no place for this chunk. On error nothing is changed.
    #[doc(hidden)]
    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        Err(no_chunk(next, chunk))
    }

    /// Loads what RedisBloom stores in RDB files; `None` for counters, which it does not have.
    #[doc(hidden)]
    fn load_classic(_: &mut impl Source, _encoding: u32, _: &impl SizeLimit) -> Option<Result<Self, Error>> {
        None
    }
}

impl<'v, T: Value> Live<'v, T> {
    /// A handle to change `value` at `time`. The server module calls this function.
    #[doc(hidden)]
    #[inline]
    pub fn new(value: &'v mut T, time: Time) -> Self {
        Live { value, time, outcome: Outcome::default() }
    }

    /// How the window must move before the next change.
    #[inline]
    pub(crate) fn due(&self) -> Move {
        let window = self.value.window().zip(self.value.newest_slice());
        window.map_or(Move::Stay, |(window, newest)| window.due(newest, self.time))
    }

    /// Moves the window to the slice of the given time, even if nothing else changes. The server module calls this
    /// method.
    #[doc(hidden)]
    pub fn move_on(&mut self) {
        self.make(self.due());
    }

    /// Moves the window as `due` says, and records this in the outcome.
    pub(crate) fn make(&mut self, due: Move) {
        if due != Move::Stay {
            (self.outcome.expired, self.outcome.before) = (self.value.make(due), due);
        }
    }

    /// Adds an item, and returns whether it was new. To a filter, an item is not new if the filter may contain it.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`], or [`Error::Full`] for a filter that does not scale. On error the
    /// item is not added.
    // Inlined, so that parts of the outcome that the caller does not use are not computed.
    #[inline(always)]
    pub fn add(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<bool, Error> {
        let (item, due) = (item.as_ref(), self.due());
        if due != Move::Stay {
            // An item that changes nothing does not move the window.
            if !self.value.is_changed_by(item, due) {
                return Ok(false);
            }
            self.make(due);
        }
        let mark = self.value.add_item(item, limit)?;
        self.outcome.changed |= mark != Mark::Same;
        Ok(mark == Mark::New)
    }

    /// Adds items in order, as [`Self::add`] does, and calls `added` with whether each was new. This is faster than
    /// single calls. Up to a few hundred items are taken from the iterator before the first is added.
    ///
    /// # Errors
    /// The errors of [`Self::add`]. The items before the rejected item are added, and `added` was called for each.
    pub fn add_all<'a, I: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a I>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut items = items.into_iter().map(AsRef::as_ref);
        while self.due() != Move::Stay {
            let Some(item) = items.next() else { return Ok(()) };
            added(self.add(item, limit)?);
        }
        self.value.add_items(items, limit, &mut self.outcome.changed, added)
    }

    /// Adds the items that `terms` admit, in order, and returns the outcome of each. Known items are added again if
    /// this makes them expire later. A counter must stay exact: above its exact limit, the call fails.
    ///
    /// ```
    /// use rollcall_core::admission::{Admission, Terms};
    /// use rollcall_core::counting::Counter;
    /// use rollcall_core::size_limit::Unlimited;
    /// use rollcall_core::window::Time;
    ///
    /// let mut contacts: Counter = ["ann"].into_iter().collect();
    /// let terms = Terms { limit: 2, all: false, dry_run: false };
    /// let admitted = contacts.live(Time::Reached).admit(["ann", "ben", "cy"].into_iter(), terms, &Unlimited)?;
    /// assert_eq!(admitted, [Admission::Known, Admission::Admitted, Admission::Rejected]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Self::add`], and [`Error::PastExact`] and [`Error::NotExact`] for counters. On error nothing is
    /// changed.
    pub fn admit<'a, I: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a I>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        T::admit_live(self, items.map(AsRef::as_ref), terms, limit).map(|(reported, _)| reported)
    }

    /// Does the same as [`Self::admit`], and returns also the room that the call leaves, or, as a dry run, would leave.
    /// `time` is the present time for the room.
    ///
    /// ```
    /// use rollcall_core::admission::{Room, Terms};
    /// use rollcall_core::counting::Counter;
    /// use rollcall_core::size_limit::Unlimited;
    /// use rollcall_core::window::{ClockSource, Time, Window};
    ///
    /// let minute = Window::new(60, 6, Counter::MAX_SLICES, ClockSource::System)?;
    /// let mut seats = Counter::new(Default::default())?.with_window(minute, 0)?;
    /// let (terms, now) = (Terms { limit: 2, all: false, dry_run: false }, Time::At(5));
    /// let (_, room) = seats.live(now).admit_with_room(["ann", "ben", "cy"].into_iter(), terms, now, &Unlimited)?;
    /// // Ann and Ben leave after the slices 0 to 6, at second 70.
    /// assert_eq!(room, Room { items: 0, retry_after: Some(65) });
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Self::admit`].
    pub fn admit_with_room<'a, I: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a I> + Clone,
        terms: Terms,
        time: Time,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, Room), Error> {
        let (reported, new) = T::admit_live(self, items.clone().map(AsRef::as_ref), terms, limit)?;
        let (value, moved) = (&*self.value, self.value.window().zip(self.value.newest_slice()));
        let (slices_later, present) = match moved.map(|(window, newest)| (window.due(newest, time), newest)) {
            None => (0, 0),
            Some((Move::Stay, newest)) => (0, newest),
            Some((Move::Advance(slice), newest)) => (slice - newest, slice),
            Some((Move::Rebase(slice), _)) => (0, slice),
        };
        let (mut by_age, mut fits) = (value.by_age(slices_later)?, value.fits());
        if terms.dry_run {
            let admitted = reported.iter().filter(|&&one| one == Admission::Admitted).count() as u64;
            (by_age[0], fits) = (by_age[0].saturating_add(admitted), fits.saturating_sub(admitted));
        }
        let (mut known, is_refused) = (Vec::new(), terms.all && reported.contains(&Admission::Rejected));
        if is_refused || terms.dry_run && value.renews() {
            let is_known = |(item, &one): (&'a I, &Admission)| (one == Admission::Known).then(|| item.as_ref());
            known = try_collect(reported.len(), items.zip(&reported).filter_map(is_known))?;
            known.sort_unstable();
            known.dedup();
            // A dry run would add these items again, and so make them as young as the new ones. A call that was refused
            // needs them whenever it is repeated, so they count as if they stayed.
            for age in known.iter().filter_map(|item| value.age_of(item)) {
                if let Some(of_age) = by_age.get_mut(age.saturating_add(slices_later) as usize) {
                    *of_age = of_age.saturating_sub(1);
                    by_age[0] = by_age[0].saturating_add(1);
                }
            }
        }
        let items = new + if is_refused { known.len() } else { 0 };
        let window = value.window().filter(|window| window.clock_source() == ClockSource::System);
        let window = window.map(|window| (window, present, time));
        Ok((reported, terms.room(&by_age, fits, new, items, window)))
    }

    /// Adds everything that `others` hold, slice by slice if they have windows. Returns whether anything changed.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if `others` have other parameters. [`Error::OutOfRange`] or [`Error::Incompatible`] if
    /// their newest slice is so far ahead of the clock that a merge would make items of this value expire early.
    /// [`Error::RateExceeded`] for filters. Also the errors of [`Self::add`]. On error nothing is changed.
    pub fn merge(&mut self, others: &[&T], limit: &impl SizeLimit) -> Result<bool, Error> {
        T::merge_live(self, try_collect(others.len(), others.iter().map(|&other| (other, Payload::default())))?, limit)
    }

    /// Does what [`Self::merge`] does. The payload of each value may lie apart. The server module calls this method.
    ///
    /// # Errors
    /// Those of [`Self::merge`].
    #[doc(hidden)]
    pub fn merge_apart(&mut self, others: &[Apart<T>], limit: &impl SizeLimit) -> Result<bool, Error> {
        let others = others.iter().map(|(other, payload)| payload.borrowed().map(|payload| (other, payload)));
        T::merge_live(self, try_collect_ok(others.len(), others)?, limit)
    }

    /// The value with all changes made so far. The server module calls this method.
    #[doc(hidden)]
    pub fn value(&self) -> &T {
        self.value
    }

    /// The outcome of all changes. After an error, it has the changes that were made before.
    pub fn finish(self) -> Outcome<T::Expired> {
        self.outcome
    }
}

/// Other crates cannot name this trait, and so cannot implement traits that require it.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The number of items that [`Extend`] takes from an iterator at a time.
pub(crate) const BLOCK: usize = 1024;

/// Adds items without a size limit. It panics if [`Live::add`] would return an error.
impl<T: Value, I: AsRef<[u8]>> Extend<I> for Live<'_, T> {
    fn extend<L: IntoIterator<Item = I>>(&mut self, items: L) {
        let mut items = items.into_iter();
        loop {
            let block: Vec<I> = items.by_ref().take(BLOCK).collect();
            if block.is_empty() {
                return;
            }
            self.add_all(&block, &Unlimited, |_| {}).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
