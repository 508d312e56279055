//! The chain of a windowed filter: a generation per slice.
//!
//! ```text
//! slices of time:   | e-4 | e-3 | e-2 | e-1 |  e  |      e is the newest, of 4 slices
//! generations:      | S S |     | S   | S S | S   |      S is a sub-filter
//! their age:           4     -     2     1     0
//! ```
//!
//! A generation is a chain of sub-filters. An item is looked up in all live generations and added to the newest, which
//! begins with its first item. As slices pass, the oldest generations are dropped as a whole. An item is hashed once
//! for all generations. A filter without a window has a single generation, with age 0.

use super::store::{Generation, Generations, SubFilters, by_generation};
use super::{Chain, Dropped};
use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::{Placement, SubFilter, num_items};
use crate::error::Error;
use crate::hash::Hash128;
use crate::size_limit::{try_reserve, try_with_capacity};
use crate::window::{ClockSource, Move};

impl<L: Placement> Chain<L> {
    /// Builds a windowed filter from its generations, oldest first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, [`Error::Corrupt`] for a number of sub-filters that
    /// differs from that of the generations, and for a generation with more renewed items than items.
    pub(crate) fn from_generations(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        list: Vec<Generation>,
        sub_filters: Vec<SubFilter<L>>,
    ) -> Result<Self, Error> {
        let of_generation = windowing.of_generation(&params)?;
        let len: u64 = list.iter().map(|one| u64::from(one.len)).sum();
        Error::check_field(len == sub_filters.len() as u64, "number of sub-filters", len, sub_filters.len())?;
        for (generation, sub_filters) in by_generation(&list, &sub_filters) {
            let num_items = num_items(sub_filters);
            let expected = format_args!("at most {num_items}");
            Error::check_field(generation.renewed <= num_items, "renewed items", expected, generation.renewed)?;
        }
        let ring = Generations { params, windowing, of_generation, newest_slice, list };
        Ok(Chain { sub_filters: SubFilters::Many(sub_filters), ring: Some(Box::new(ring)) })
    }

    /// The window, if the filter has one.
    #[inline]
    pub fn windowing(&self) -> Option<&Windowing> {
        self.ring.as_ref().map(|ring| &ring.windowing)
    }

    /// The newest slice that a windowed filter has reached.
    #[inline]
    pub fn newest_slice(&self) -> Option<u64> {
        self.ring.as_ref().map(|ring| ring.newest_slice)
    }

    /// The generations that have items, oldest first; none in a filter without a window.
    pub(crate) fn generations(&self) -> &[Generation] {
        self.ring.as_ref().map_or(&[], |ring| &ring.list)
    }

    /// Each generation of a windowed filter with its sub-filters, oldest first.
    pub(crate) fn by_generation(&self) -> impl Iterator<Item = (&Generation, &[SubFilter<L>])> {
        by_generation(self.generations(), self.sub_filters())
    }

    /// Two numbers: the generations that have expired once `slices_later` more slices have begun, and the sub-filters
    /// of these generations.
    pub(super) fn dead(&self, slices_later: u64) -> (usize, usize) {
        let Some(ring) = &self.ring else { return (0, 0) };
        let most = u64::from(ring.windowing.generations());
        let dead = ring.list.iter().take_while(|one| u64::from(one.age).saturating_add(slices_later) >= most);
        dead.fold((0, 0), |(generations, sub_filters), one| (generations + 1, sub_filters + one.len as usize))
    }

    /// The sub-filters that are live once `slices_later` more slices have begun, oldest first.
    #[inline]
    pub(super) fn live(&self, slices_later: u64) -> &[SubFilter<L>] {
        match slices_later {
            0 => self.sub_filters(),
            _ => &self.sub_filters()[self.dead(slices_later).1..],
        }
    }

    /// The index at which the sub-filters of the newest slice begin.
    #[inline]
    pub(super) fn newest_start(&self) -> usize {
        match &self.ring {
            None => 0,
            Some(ring) => {
                let newest = ring.list.last().filter(|one| one.age == 0).map_or(0, |one| one.len as usize);
                self.sub_filters().len() - newest
            }
        }
    }

    /// The sub-filters of the newest slice.
    #[inline]
    pub(super) fn newest(&self) -> &[SubFilter<L>] {
        &self.sub_filters()[self.newest_start()..]
    }

    /// Appends sub-filters to the newest generation.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing is changed then.
    pub(super) fn append(&mut self, more: impl ExactSizeIterator<Item = SubFilter<L>>) -> Result<(), Error> {
        let len = more.len() as u32;
        if len == 0 {
            return Ok(());
        }
        let has_newest = self.generations().last().is_some_and(|one| one.age == 0);
        if let (Some(ring), false) = (&mut self.ring, has_newest) {
            try_reserve(&mut ring.list, 1)?;
        }
        self.sub_filters.append(more)?;
        match &mut self.ring {
            Some(ring) if has_newest => ring.list.last_mut().into_iter().for_each(|newest| newest.len += len),
            Some(ring) => ring.list.push(Generation { age: 0, len, renewed: 0 }),
            None => {}
        }
        Ok(())
    }

    /// Drops the last sub-filters of the newest generation, until the chain has `len` sub-filters.
    pub(super) fn truncate(&mut self, len: usize) {
        let dropped = self.sub_filters().len().saturating_sub(len) as u32;
        if dropped == 0 {
            return;
        }
        match &mut self.ring {
            None => self.sub_filters.truncate(len),
            Some(ring) => {
                ring.list.last_mut().into_iter().for_each(|newest| newest.len -= dropped);
                if let SubFilters::Many(all) = &mut self.sub_filters {
                    all.truncate(len);
                }
            }
        }
    }

    /// Whether adding a known item again renews it.
    #[inline]
    pub(in crate::bloom) fn renews(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.windowing.refresh)
    }

    /// Counts an item as renewed, after it was added to the newest generation. The item is counted as renewed in the
    /// youngest of the older generations that have it.
    pub(super) fn count_renewed(&mut self, hash: Hash128) {
        let mut end = self.newest_start();
        let Some(ring) = &mut self.ring else { return };
        for generation in ring.list.iter_mut().rev().filter(|one| one.age > 0) {
            let sub_filters = &self.sub_filters.as_slice()[..end][end - generation.len as usize..];
            if L::look_up(sub_filters, hash) {
                generation.renewed = (generation.renewed + 1).min(num_items(sub_filters));
                return;
            }
            end -= sub_filters.len();
        }
    }

    /// Begins all slices up to `slice`, and returns the sub-filters that expire by this. If `slice` has begun already,
    /// or without a window, nothing changes.
    pub(in crate::bloom) fn advance(&mut self, slice: u64) -> Dropped<L> {
        let slices_later = slice.saturating_sub(self.newest_slice()?);
        if slices_later == 0 {
            return None;
        }
        let (generations, sub_filters) = self.dead(slices_later);
        let ring = self.ring.as_mut()?;
        ring.newest_slice = slice;
        ring.list.drain(..generations);
        // The age of a live generation is always less than the number of generations that may be live, so the cast is
        // lossless.
        ring.list.iter_mut().for_each(|one| one.age = one.age.saturating_add(slices_later as u32));
        let SubFilters::Many(all) = &mut self.sub_filters else { return None };
        // If memory for the list is lacking, the expired sub-filters are dropped here and not returned.
        let list = try_with_capacity(sub_filters).ok();
        let dead = all.drain(..sub_filters);
        list.map(|mut list| {
            list.extend(dead);
            list
        })
    }

    /// Whether adding an item would change the filter after the move `due`.
    pub(in crate::bloom) fn is_changed_by(&self, item: &[u8], due: Move) -> bool {
        match (due, self.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => {
                self.renews() || !L::look_up(self.live(slice.saturating_sub(newest)), self.hash(item))
            }
            // A known item also causes a move back to an earlier slice. Otherwise a filter whose clock had jumped ahead
            // would keep the later slice as long as only known items are added.
            _ => true,
        }
    }

    /// Renumbers all slices, so that the newest slice gets the earlier number `slice`. If `slice` is later than the
    /// newest slice, nothing changes.
    pub(in crate::bloom) fn rebase(&mut self, slice: u64) {
        if let Some(ring) = &mut self.ring {
            ring.newest_slice = ring.newest_slice.min(slice);
        }
    }

    /// Changes the clock source of the window.
    pub(in crate::bloom) fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Some(ring) = &mut self.ring {
            ring.windowing.window = ring.windowing.window.with_clock_source(clock_source);
        }
    }
}
