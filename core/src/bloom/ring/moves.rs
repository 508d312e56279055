//! From slice to slice: what dies is dropped.

use super::super::chain::SubFilter;
use super::super::lines::sub_filter::LineSubFilter;
use super::super::sliding::Span;
use super::Ring;
use crate::admission::Terms;
use crate::error::Error;
use crate::size_limit::try_with_capacity;
use crate::window::{Move, Pace};

/// What a filter has forgotten. Freeing the memory of a large one takes a while: it may be sent to another thread.
#[derive(Debug, Default)]
pub struct Forgotten(Vec<LineSubFilter>);

impl Forgotten {
    /// Bytes of the bitmaps that it holds.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let day = Sliding::time(86_400, 4, Pace::Manual, false)?;
    /// let mut filter = BloomFilter::windowed(params, day, 0, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert_eq!(filter.advance(4).num_bytes(), 0);
    /// assert!(filter.advance(5).num_bytes() > 0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_bytes(&self) -> u64 {
        self.0.iter().map(|sub_filter| sub_filter.geometry().num_bytes()).sum()
    }
}

/// The move that a filter made before it changes.
#[derive(Debug)]
pub struct Moved {
    /// Which one.
    pub made: Move,
    /// What was dropped.
    pub forgotten: Forgotten,
}

impl Moved {
    /// No move.
    pub(in crate::bloom) fn not() -> Self {
        Moved { made: Move::Stay, forgotten: Forgotten::default() }
    }
}

impl Ring {
    /// How many slices later than the newest one it is, by this clock.
    #[inline]
    pub(in crate::bloom) fn slices_later(&self, now: u64) -> u64 {
        match &self.sliding.span {
            Span::Time(window) => window.present(self.newest_slice, now) - self.newest_slice,
            Span::Last { .. } | Span::LastDifferent => 0,
        }
    }

    fn due(&self, now: u64) -> Move {
        self.sliding.window().map_or(Move::Stay, |window| window.due(self.newest_slice, now))
    }

    /// Begins all slices up to this one, and drops what dies by that. A slice that has begun changes nothing.
    pub fn advance(&mut self, slice: u64) -> Forgotten {
        let slices_later = slice.saturating_sub(self.newest_slice);
        if slices_later == 0 {
            return Forgotten::default();
        }
        self.newest_slice = slice;
        let (generations, sub_filters) = self.dead(slices_later);
        self.generations.drain(..generations);
        // Those alive are younger than there may be generations, so this fits.
        self.generations.iter_mut().for_each(|one| one.age = one.age.saturating_add(slices_later as u32));
        let dead = self.sub_filters.drain(..sub_filters);
        match try_with_capacity(dead.len()) {
            Ok(mut list) => {
                list.extend(dead);
                Forgotten(list)
            }
            // They are dropped here, then.
            Err(_) => Forgotten::default(),
        }
    }

    /// Renumbers all slices so that the newest is this earlier one. Another changes nothing.
    pub fn rebase(&mut self, slice: u64) {
        if !self.is_of_last() {
            self.newest_slice = self.newest_slice.min(slice);
        }
    }

    /// Lets the clock, or its user, move it on from now on. A filter of the last items goes by neither.
    pub fn set_pace(&mut self, pace: Pace) {
        if let Span::Time(window) = &mut self.sliding.span {
            *window = window.with_pace(pace);
        }
    }

    /// Makes the rebase that is due by this clock. Nothing is forgotten by one.
    pub(in crate::bloom) fn rebase_due(&mut self, now: u64) -> Move {
        let due = self.due(now);
        if let Move::Rebase(slice) = due {
            self.rebase(slice);
            return due;
        }
        Move::Stay
    }

    /// Makes the move that is due by this clock.
    pub fn advance_due(&mut self, now: u64) -> Moved {
        self.make(self.due(now))
    }

    /// Makes the move that is due by this clock, if adding these items would change anything; a rebase with any item.
    pub fn advance_before_adding<'a>(&mut self, items: impl IntoIterator<Item = &'a [u8]>, now: u64) -> Moved {
        let (due, mut items) = (self.due(now), items.into_iter());
        let changes = match due {
            Move::Stay => false,
            // Else a ring whose clock had jumped would stand still as long as only known items come.
            Move::Rebase(_) => items.next().is_some(),
            Move::Advance(_) => {
                // Those that are found where they need not be added again.
                let found_in = if self.sliding.refresh { &[] } else { self.alive(self.slices_later(now)) };
                items.any(|item| !LineSubFilter::look_up(found_in, self.hash(item)))
            }
        };
        if changes { self.make(due) } else { Moved::not() }
    }

    /// Makes the move that is due by this clock, if admitting these items would change anything.
    ///
    /// # Errors
    /// As [`Self::admit`]. Nothing is changed then.
    pub fn advance_before_admitting<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        now: u64,
    ) -> Result<Moved, Error> {
        let due = self.due(now);
        if due == Move::Stay || terms.dry_run {
            return Ok(Moved::not());
        }
        let changes = self.would_change(items, terms, self.slices_later(now))?;
        Ok(if changes { self.make(due) } else { Moved::not() })
    }

    fn make(&mut self, due: Move) -> Moved {
        let forgotten = match due {
            Move::Stay => Forgotten::default(),
            Move::Advance(slice) => self.advance(slice),
            Move::Rebase(slice) => {
                self.rebase(slice);
                Forgotten::default()
            }
        };
        Moved { made: due, forgotten }
    }
}
