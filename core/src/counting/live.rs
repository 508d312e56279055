//! Implements [`Windowed`] for [`Counter`]: all changes of a counter, with or without a window.

use crate::admission::{Admission, Terms};
use crate::counting::counter::Counter;
use crate::counting::held::ring::TagRing;
use crate::error::{Error, Parameter};
use crate::hash::table_hash;
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::size_limit::{SizeLimit, try_collect, try_filled, try_with_capacity};
use crate::window::{Ahead, ClockSource, Mark, Merging, Move, Time, Window};

impl Counter {
    /// Gives access to the counter for changes at `time`.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    /// Moves the window as `due` says.
    pub(super) fn make(&mut self, due: Move) {
        match due {
            Move::Stay => {}
            Move::Advance(slice) => self.advance(slice),
            Move::Rebase(slice) => self.rebase(slice),
        }
    }
}

impl Live<'_, Counter> {
    /// Removes members from an exact counter, no matter in which slice they were added. Returns for each item whether
    /// it was removed. If an item occurs several times, only its first occurrence is reported as removed.
    ///
    /// The remaining members keep their order. A merge with a counter that still has a removed member adds the member
    /// again.
    ///
    /// ```
    /// use rollcall_core::counting::Counter;
    /// use rollcall_core::window::Time;
    ///
    /// let mut devices: Counter = ["phone", "laptop"].into_iter().collect();
    /// let removed = devices.live(Time::Reached).remove(["phone", "watch", "phone"].into_iter())?;
    /// assert_eq!((removed, devices.count()), (vec![true, false, false], 1));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates, unless all its members have expired and its exact limit is not 0.
    /// [`Error::OutOfMemory`]. On error the counter is unchanged.
    pub fn remove<'a, I: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a I>,
    ) -> Result<Vec<bool>, Error> {
        let view = self.value.at(self.time);
        drop(view.members()?);
        let items = items.map(AsRef::as_ref).map(|item: &[u8]| (table_hash(item), item));
        let items = try_collect(items.len(), items)?;
        let (mut removed, places) = (try_filled(items.len(), false)?, try_with_capacity(items.len())?);
        let is_member = |&(hash, item): &(u64, &[u8])| matches!(view.age_of(item, hash), Ok(Some(_)));
        if self.value.is_exact() && items.iter().any(is_member) {
            // Expired members are removed first, so that they are not found below.
            self.move_on();
            self.value.remove_hashed(&items, places, &mut removed);
            self.outcome.changed = true;
        }
        Ok(removed)
    }
}

impl Sealed for Counter {}

impl Windowed for Counter {
    type Expired = ();

    fn window(&self) -> Option<&Window> {
        self.window()
    }

    fn newest_slice(&self) -> Option<u64> {
        self.ring().map(TagRing::newest)
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Some((set, _)) = self.windowed_mut() {
            set.ring.window = set.ring.window.with_clock_source(clock_source);
        }
    }

    fn advance(&mut self, slice: u64) {
        if let Some((set, spec)) = self.windowed_mut() {
            set.advance(slice, spec);
        }
    }

    fn rebase(&mut self, slice: u64) {
        if let Some((set, _)) = self.windowed_mut() {
            set.ring.rebase(slice);
        }
    }

    fn renews(&self) -> bool {
        self.window().is_some()
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let Some(window) = self.window() else { return Ok(Merging::default()) };
        // Counters with other windows number their slices differently. They are skipped here, and the merge rejects
        // them later.
        let numbering =
            |counter: &Counter| counter.window().map(|window| (window.clock_source(), window.slice_seconds()));
        let same = others.iter().filter(|other| numbering(other) == numbering(self));
        let merging = window.merging(self.reached(), same.map(|other| other.reached()), time);
        merging.map_err(|Ahead { slice, present }| Error::incompatible(Parameter::Slice, present, slice))
    }

    #[inline(always)]
    fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        self.add_item(item, limit)
    }

    #[inline(always)]
    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut has_changed = false;
        let result = self.add_each(items, limit, |mark| {
            has_changed |= mark != Mark::Same;
            added(mark == Mark::New);
        });
        *changed |= has_changed;
        result
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let due = live.due();
        // If the clock jumped ahead and was set back, the window moves back even if no item is admitted. Otherwise,
        // until the time to which the clock had jumped, no member would expire and make room.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let looked_up = live.value.look_up(items, terms, live.time)?;
        if terms.dry_run {
            return Ok(looked_up.answers());
        }
        let copy = live.value.admit_looked_up(&looked_up, due, limit)?;
        if let Some(admitted) = copy {
            *live.value = admitted;
            live.outcome.before = due;
        } else if looked_up.has_changes() || rebases {
            live.make(due);
        }
        live.outcome.changed |= looked_up.has_changes();
        live.value.renew(&looked_up, limit)?;
        Ok(looked_up.answers())
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        let merging = live.value.merging(others, live.time)?;
        let stored = live.value.ring().copied();
        live.value.make(merging.before);
        match live.value.merge(others, limit) {
            Ok(changed) => {
                live.value.make(merging.after);
                (live.outcome.before, live.outcome.after) = (merging.before, merging.after);
                live.outcome.changed |= changed;
                Ok(changed)
            }
            Err(error) => {
                if let Some(((set, _), stored)) = live.value.windowed_mut().zip(stored) {
                    set.ring = stored;
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
crate::live::short_forms!(Counter);

#[cfg(test)]
impl Counter {
    pub(crate) fn mark(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<Mark, Error> {
        self.add_item(item.as_ref(), limit)
    }
}
