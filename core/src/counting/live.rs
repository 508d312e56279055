//! Implements [`Windowed`] for [`Counter`]: all changes of a counter, with or without a window.

use crate::admission::{Admission, Terms};
use crate::counting::counter::Counter;
use crate::counting::held::ring::TagRing;
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::size_limit::SizeLimit;
use crate::window::{Ahead, ClockSource, Mark, Merging, Move, Time, Window};

impl Counter {
    /// Gives access to change the counter at `time`.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    /// Moves the counter to another slice, as `due` says.
    pub(super) fn make(&mut self, due: Move) {
        match due {
            Move::Stay => {}
            Move::Advance(slice) => self.advance(slice),
            Move::Rebase(slice) => self.rebase(slice),
        }
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
        // Other windows number their slices differently; the merge will reject them.
        let numbering =
            |counter: &Counter| counter.window().map(|window| (window.clock_source(), window.slice_seconds()));
        let same = others.iter().filter(|other| numbering(other) == numbering(self));
        let merging = window.merging(self.reached(), same.map(|other| other.reached()), time);
        merging.map_err(|Ahead { slice, present }| Error::incompatible(Parameter::Slice, present, slice))
    }

    #[inline(always)]
    fn add_live(live: &mut Live<'_, Self>, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        // An addition at a given time always makes the due move first: its item is seen later than everything before.
        if live.time != Time::Reached {
            live.move_on();
        }
        let hash = hash64(item, live.value.params().seed);
        let mark = live.value.add_hashed(item, hash, limit)?;
        live.outcome.changed |= mark != Mark::Same;
        Ok(mark == Mark::New)
    }

    fn add_all_live<'a>(
        live: &mut Live<'_, Self>,
        mut items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        if live.time != Time::Reached {
            let Some(first) = items.next() else { return Ok(()) };
            added(live.add(first, limit)?);
        }
        let mut changed = false;
        let result = live.value.add_each(items, limit, |mark| {
            changed |= mark != Mark::Same;
            added(mark == Mark::New);
        });
        live.outcome.changed |= changed;
        result
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let due = live.due();
        // A move back is made even if the limit leaves no room for items. Otherwise a clock that jumped ahead and came
        // back would block admission.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let looked_up = live.value.look_up(items, terms, live.time)?;
        let copy = live.value.admit_looked_up(&looked_up, terms.dry_run, due, limit)?;
        if terms.dry_run {
            return Ok(looked_up.answers());
        }
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
        self.add_hashed(item.as_ref(), hash64(item.as_ref(), self.params().seed), limit)
    }
}
