//! From slice to slice: what dies is dropped.

use super::super::chain::SubFilter;
use super::super::lines::sub_filter::LineSubFilter;
use super::super::sliding::Span;
use super::{Generation, Ring};
use crate::error::Error;
use crate::size_limit::{try_to_vec, try_with_capacity};
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

/// A move that was made, and can be taken back while nothing else has changed.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) moved: Moved,
    /// The newest slice before it.
    newest_slice: u64,
    /// The generations before an advance; none else, as no other move changes them.
    generations: Vec<Generation>,
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

    pub(super) fn due(&self, now: u64) -> Move {
        self.sliding.window().map_or(Move::Stay, |window| window.due(self.newest_slice, now))
    }

    /// Begins all slices up to this one, and drops what dies by that. A slice that has begun changes nothing.
    pub fn advance(&mut self, slice: u64) -> Forgotten {
        // Without memory for the list they are dropped here.
        let list = self.list_of_dead(slice).ok();
        self.advance_into(slice, list)
    }

    /// A list with room for the sub-filters that die once this slice is the newest.
    fn list_of_dead(&self, slice: u64) -> Result<Vec<LineSubFilter>, Error> {
        try_with_capacity(self.dead(slice.saturating_sub(self.newest_slice)).1)
    }

    /// As [`Self::advance`]. What dies is put into the list.
    fn advance_into(&mut self, slice: u64, list: Option<Vec<LineSubFilter>>) -> Forgotten {
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
        list.map_or_else(Forgotten::default, |mut list| {
            list.extend(dead);
            Forgotten(list)
        })
    }

    /// Makes a move that can be [taken back](Self::take_back).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]. Nothing is changed then.
    pub(super) fn try_move(&mut self, due: Move) -> Result<Tried, Error> {
        let (newest_slice, mut generations) = (self.newest_slice, Vec::new());
        let moved = match due {
            Move::Advance(slice) => {
                generations = try_to_vec(&self.generations)?;
                let list = self.list_of_dead(slice)?;
                Moved { made: due, forgotten: self.advance_into(slice, Some(list)) }
            }
            Move::Stay | Move::Rebase(_) => self.make(due),
        };
        Ok(Tried { moved, newest_slice, generations })
    }

    /// Takes a move back.
    pub(super) fn take_back(&mut self, tried: Tried) {
        self.newest_slice = tried.newest_slice;
        if let Move::Advance(_) = tried.moved.made {
            self.generations = tried.generations;
            // They were in this list before, so there is room.
            self.sub_filters.splice(..0, tried.moved.forgotten.0);
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

    pub(super) fn make(&mut self, due: Move) -> Moved {
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
