//! What a windowed counter has seen, with the slices in which it did.
//!
//! A plain linear counter has a bit for each slot: touched or not. Here a slot has the slice in which it was last
//! touched. The slots touched in a slice or later are, bit for bit, the bitmap of a counter that saw only that span. So
//! every span that ends now has a count, by the same estimator.
//!
//! Small ones have the members themselves with their slices, then few slots with theirs ([`positions`]), then a cell for
//! each slot ([`cells`]). Nothing here is older than the window at the newest slice that was reached: what dies when
//! that moves on is dropped then.

pub(super) mod cells;
pub(super) mod members;
pub(super) mod positions;
pub(super) mod ring;
mod seen;

use std::alloc;

use cells::DatedCells;
use members::DatedMembers;
use positions::RECORD_BYTES;
pub(super) use ring::MOST_SLICES;
use ring::Ring;
pub(super) use seen::{Seen, bytes_of_slots};
use seen::{dense_bytes, renew, sparse_fits};

use crate::counting::estimate::{Estimated, KeptEstimate, Segments};
use crate::counting::layout::{Layout, SegmentCounts, Slot};
use crate::counting::params::Plan;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::{Touch, Window};

/// What was seen in a window.
#[derive(Debug)]
pub(super) struct Dated {
    ring: Ring,
    seen: Seen,
    /// Of the whole window as of the newest slice; none when it has changed since.
    estimate: KeptEstimate,
}

impl Dated {
    /// Bytes of the struct itself.
    pub(super) const STRUCT_BYTES: u64 = size_of::<Dated>() as u64;

    /// Nothing seen yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn with_ring(ring: Ring, plan: &Plan) -> Result<Self, Error> {
        Ok(Dated { ring, seen: Seen::none(plan)?, estimate: KeptEstimate::none() })
    }

    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Notes an item, of which `hash` is the hash, as seen in the newest slice. `held_bytes` is what the counter takes beside.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; nothing was changed then.
    #[inline]
    pub(super) fn touch(
        &mut self,
        item: &[u8],
        hash: u64,
        plan: &Plan,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Touch, Error> {
        match self.touch_known(item, hash, plan.layout) {
            Some(touch) => Ok(touch),
            None => self.touch_unknown(item, hash, plan, held_bytes, limit),
        }
    }

    /// As [`Self::touch`], where it takes no memory: of a known member, and of a counter with all slots.
    #[inline]
    fn touch_known(&mut self, item: &[u8], hash: u64, layout: Layout) -> Option<Touch> {
        let tag = self.ring.ages().newest;
        match &mut self.seen {
            Seen::Exact(members) => {
                let before = members.tag_mut(item, hash)?;
                Some(Touch::over(std::mem::replace(before, tag), tag))
            }
            Seen::Sparse(_) => None,
            Seen::Dense(cells) => {
                let touch = Touch::over(cells.replace(layout.slot_of(hash), tag), tag);
                if touch == Touch::New {
                    self.estimate.forget();
                }
                Some(touch)
            }
        }
    }

    /// As [`Self::touch`], of what [`Self::touch_known`] left.
    pub(super) fn touch_unknown(
        &mut self,
        item: &[u8],
        hash: u64,
        plan: &Plan,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Touch, Error> {
        let tag = self.ring.ages().newest;
        match &self.seen {
            Seen::Exact(_) => self.add_member(item, hash, tag, plan, held_bytes, limit),
            _ => self.touch_slot(plan.layout.slot_of(hash), tag, plan.layout, held_bytes, limit),
        }
    }

    /// As [`Self::touch`], in a slice of some age.
    ///
    /// # Errors
    /// As there.
    pub(super) fn touch_at(
        &mut self,
        item: &[u8],
        hash: u64,
        age: u8,
        plan: &Plan,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Touch, Error> {
        let ages = self.ring.ages();
        let tag = ages.tag(age);
        match &mut self.seen {
            Seen::Exact(members) => match members.tag_mut(item, hash) {
                Some(before) => Ok(renew(before, tag, ages)),
                None => self.add_member(item, hash, tag, plan, held_bytes, limit),
            },
            _ => self.touch_slot(plan.layout.slot_of(hash), tag, plan.layout, held_bytes, limit),
        }
    }

    /// Adds an item that is no member of an exact counter yet.
    #[inline(never)]
    fn add_member(
        &mut self,
        item: &[u8],
        hash: u64,
        tag: u8,
        plan: &Plan,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Touch, Error> {
        let Plan { params, layout } = plan;
        let Seen::Exact(members) = &mut self.seen else { return Ok(Touch::Same) };
        if members.has_room_for(item, params.room()) {
            limit.check(held_bytes + members.heap_bytes(), DatedMembers::bytes_for(item))?;
            members.insert(item, hash, params.seed, tag)?;
            return Ok(Touch::New);
        }
        let mut slots = self.slots_of_members(plan, held_bytes, limit)?;
        slots.note(layout.slot_of(hash), tag, *layout, &self.ring)?;
        self.seen = slots;
        self.estimate.forget();
        Ok(Touch::New)
    }

    /// Its exact members as slots, with room for one more.
    fn slots_of_members(&self, plan: &Plan, held_bytes: u64, limit: &impl SizeLimit) -> Result<Seen, Error> {
        let Seen::Exact(members) = &self.seen else { return Seen::none(plan) };
        let len = members.len() as u64 + 1;
        limit.check(held_bytes, bytes_of_slots(plan.layout, &self.ring, len))?;
        let mut slots = Seen::of_slots(plan.layout, &self.ring, len)?;
        for (tag, member) in members.iter() {
            let slot = plan.layout.slot_of(hash64(member, plan.params.seed));
            slots.note(slot, tag, plan.layout, &self.ring)?;
        }
        Ok(slots)
    }

    /// Notes a slot of a counter that holds slots.
    fn touch_slot(
        &mut self,
        slot: Slot,
        tag: u8,
        layout: Layout,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Touch, Error> {
        if let Seen::Sparse(positions) = &mut self.seen
            && positions.tag_mut(slot.index as u32).is_none()
        {
            let len = positions.len();
            let held = if sparse_fits(layout, &self.ring, len + 1) { positions::heap_bytes(layout, len) } else { 0 };
            limit.check(held_bytes + held, bytes_of_slots(layout, &self.ring, len + 1) - held)?;
        }
        let touch = self.seen.note(slot, tag, layout, &self.ring)?;
        if touch == Touch::New {
            self.estimate.forget();
        }
        Ok(touch)
    }

    /// The cells, when dense, and the tag of the newest slice. Whoever touches a free one has to
    /// [forget](Self::forget_estimate) the estimate.
    #[inline]
    pub(super) fn cells_mut(&mut self) -> Option<(&mut DatedCells, u8)> {
        let tag = self.ring.ages().tag(0);
        match &mut self.seen {
            Seen::Dense(cells) => Some((cells, tag)),
            _ => None,
        }
    }

    pub(super) fn forget_estimate(&mut self) {
        self.estimate.forget();
    }

    /// Makes a later slice the newest and drops what dies by that; false, and nothing done, for one that is not later.
    pub(super) fn advance(&mut self, slice: u64, plan: &Plan) -> bool {
        let Some(passed @ 1..) = slice.checked_sub(self.ring.newest()) else { return false };
        let (ages, most_age) = (self.ring.ages(), self.ring.most_age());
        self.ring.set_newest(slice);
        self.estimate.forget();
        match u8::try_from(passed).ok().and_then(|passed| most_age.checked_sub(passed)) {
            None => self.clear(plan),
            Some(left) => {
                let is_kept = |tag| ages.age(tag) <= left;
                let is_empty = match &mut self.seen {
                    Seen::Exact(members) => {
                        members.retain(plan.params.seed, is_kept);
                        members.len() == 0
                    }
                    Seen::Sparse(positions) => {
                        positions.retain(is_kept);
                        positions.len() == 0
                    }
                    Seen::Dense(cells) => {
                        cells.free_dead(plan.layout, ages, left);
                        cells.counts().total() == 0
                    }
                };
                if is_empty {
                    self.clear(plan);
                }
            }
        }
        true
    }

    /// Forgets all. It is exact again where it may be.
    fn clear(&mut self, plan: &Plan) {
        // Lists need memory. Without it what there is serves, all of it free.
        match Seen::none(plan) {
            Ok(none) => self.seen = none,
            Err(_) => match &mut self.seen {
                Seen::Exact(members) => members.retain(plan.params.seed, |_| false),
                Seen::Sparse(positions) => positions.retain(|_| false),
                Seen::Dense(cells) => cells.clear(),
            },
        }
        self.estimate.forget();
    }

    /// Gives the newest slice an earlier number, and all others with it; false, and nothing done, for a later one.
    pub(super) fn rebase(&mut self, slice: u64) -> bool {
        let is_earlier = slice < self.ring.newest();
        self.ring.rebase(slice);
        is_earlier
    }

    /// Takes a rebase back: `ring` is what it was before.
    pub(super) fn undo_rebase(&mut self, ring: Ring) {
        self.ring = ring;
    }

    /// What moves it on is another thing now.
    pub(super) fn set_window(&mut self, window: Window) {
        self.ring.window = window;
    }

    /// The estimate of the whole window as of the newest slice.
    pub(super) fn estimate(&self, layout: Layout) -> f64 {
        match &self.seen {
            Seen::Exact(members) => members.len() as f64,
            _ => self.estimate.get_or(|| Segments::new(layout, &self.counts(layout)).estimate()),
        }
    }

    fn counts(&self, layout: Layout) -> SegmentCounts {
        match &self.seen {
            Seen::Exact(_) => SegmentCounts::default(),
            Seen::Sparse(positions) => positions.counts(layout, |_| true),
            Seen::Dense(cells) => *cells.counts(),
        }
    }

    /// The number of members seen at most so many slices before the newest, with its standard error; none were without a
    /// number.
    pub(super) fn estimated(&self, layout: Layout, most_age: Option<u8>) -> Estimated {
        let ages = self.ring.ages();
        let Some(most_age) = most_age else { return Estimated::exact(0) };
        let counts = match &self.seen {
            Seen::Exact(members) => {
                return Estimated::exact(members.iter().filter(|&(tag, _)| ages.age(tag) <= most_age).count());
            }
            // Nothing is older than the window.
            _ if most_age == self.ring.most_age() => return self.estimated_whole(layout),
            Seen::Sparse(positions) => positions.counts(layout, |tag| ages.age(tag) <= most_age),
            Seen::Dense(cells) => cells.counts_within(layout, ages, most_age),
        };
        let segments = Segments::new(layout, &counts);
        segments.told(segments.estimate())
    }

    fn estimated_whole(&self, layout: Layout) -> Estimated {
        Estimated::of(layout, self.estimate(layout))
    }

    /// Was anything seen at most so many slices before the newest? Nothing was without a number.
    pub(super) fn has_any(&self, most_age: Option<u8>) -> bool {
        let (ages, Some(most_age)) = (self.ring.ages(), most_age) else { return false };
        match &self.seen {
            Seen::Exact(members) => members.iter().any(|(tag, _)| ages.age(tag) <= most_age),
            Seen::Sparse(positions) => positions.iter().any(|(_, tag)| ages.age(tag) <= most_age),
            Seen::Dense(cells) => cells.has_any(ages, most_age),
        }
    }

    /// Slots that were touched; 0 while exact.
    pub(super) fn set_bits(&self, layout: Layout) -> u64 {
        match &self.seen {
            Seen::Exact(_) => 0,
            Seen::Sparse(positions) => positions.len(),
            Seen::Dense(_) => self.counts(layout).total(),
        }
    }

    /// The number of members seen in the newest slice, in that and the one before, and so on: a number for each age.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn history(&self, layout: Layout) -> Result<Vec<f64>, Error> {
        let (ages, most_age) = (self.ring.ages(), usize::from(self.ring.most_age()));
        let mut history = try_with_capacity(most_age + 1)?;
        let mut of_age = try_with_capacity(most_age + 1)?;
        of_age.resize(most_age + 1, SegmentCounts::default());
        let mut note = |segment, tag, count| of_age[usize::from(ages.age(tag)).min(most_age)].add(segment, count);
        match &self.seen {
            // All in one segment.
            Seen::Exact(members) => members.iter().for_each(|(tag, _)| note(0, tag, 1)),
            Seen::Sparse(positions) => {
                positions.iter().for_each(|(position, tag)| note(layout.segment_of(position.into()), tag, 1));
            }
            Seen::Dense(cells) => cells.for_each_count(layout, &mut note),
        }
        let mut since = SegmentCounts::default();
        for counts in &of_age {
            (0..layout.num_segments()).for_each(|segment| since.add(segment, counts.get(segment)));
            history.push(match &self.seen {
                Seen::Exact(_) => since.total() as f64,
                _ => Segments::new(layout, &since).estimate(),
            });
        }
        Ok(history)
    }

    /// Calls `visit` with each slot of a counter that holds slots, and its age, ascending.
    pub(super) fn for_each_slot(&self, visit: &mut dyn FnMut(u64, u8)) {
        let ages = self.ring.ages();
        match &self.seen {
            Seen::Exact(_) => {}
            Seen::Sparse(positions) => {
                positions.iter().for_each(|(position, tag)| visit(position.into(), ages.age(tag)));
            }
            Seen::Dense(cells) => cells.for_each(&mut |index, tag| visit(index, ages.age(tag))),
        }
    }

    /// The same, of slots in a layout that its own folds to: of slots that fall together the youngest stays.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`].
    pub(super) fn as_slots(
        &self,
        from: &Plan,
        to: Layout,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let plan = Plan { layout: to, ..*from };
        let seen = match &self.seen {
            Seen::Exact(_) => self.slots_of_members(&plan, held_bytes, limit)?,
            _ => Seen::of_slots(to, &self.ring, 0)?,
        };
        let mut slots = Dated { ring: self.ring, seen, estimate: KeptEstimate::none() };
        slots.note_slots(self, from.layout, to, 0, held_bytes, limit)?;
        Ok(slots)
    }

    /// Notes the slots of another, each in its slice, which is `behind` slices older by its newest. True when that
    /// changed anything.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; some may be noted then.
    pub(super) fn note_slots(
        &mut self,
        other: &Dated,
        from: Layout,
        to: Layout,
        behind: u64,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        let (ages, most_age) = (self.ring.ages(), u64::from(self.ring.most_age()));
        let (mut changed, mut failed) = (false, None);
        other.for_each_slot(&mut |index, age| {
            let age = behind.saturating_add(age.into());
            if age > most_age || failed.is_some() {
                return;
            }
            let index = if from == to { index } else { from.fold(index, to) };
            let slot = Slot { index, segment: to.segment_of(index) };
            match self.touch_slot(slot, ages.tag(age as u8), to, held_bytes, limit) {
                Ok(touch) => changed |= touch != Touch::Same,
                Err(error) => failed = Some(error),
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(changed),
        }
    }

    /// What was stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming what is wrong, [`Error::OutOfMemory`].
    pub(super) fn from_exact(ring: Ring, plan: &Plan, payload: &[u8]) -> Result<Self, Error> {
        let (room, seed) = (plan.params.room(), plan.params.seed);
        let members = DatedMembers::from_bytes(payload, room, seed, ring.ages(), ring.most_age())?;
        Ok(Dated { ring, seen: Seen::Exact(members), estimate: KeptEstimate::none() })
    }

    /// As [`Self::from_exact`], of positions. They become cells where they are too many.
    ///
    /// # Errors
    /// As there.
    pub(super) fn from_sparse(ring: Ring, plan: &Plan, payload: &[u8]) -> Result<Self, Error> {
        let seen = Seen::of_slots(plan.layout, &ring, (payload.len() / RECORD_BYTES) as u64)?;
        let mut dated = Dated { ring, seen, estimate: KeptEstimate::none() };
        positions::for_each_record(payload, plan.layout, ring.ages(), ring.most_age(), |slot, tag| {
            dated.seen.note(slot, tag, plan.layout, &ring).map(|_| ())
        })?;
        Ok(dated)
    }

    /// As [`Self::from_exact`], of cells, as many as the layout has slots. The payload is taken if it is right.
    ///
    /// # Errors
    /// As there.
    pub(super) fn from_dense(ring: Ring, plan: &Plan, payload: &mut Vec<u8>) -> Result<Self, Error> {
        let cells = DatedCells::from_bytes(payload, plan.layout, ring.has_halves(), ring.ages(), ring.most_age())?;
        Ok(Dated { ring, seen: Seen::Dense(cells), estimate: KeptEstimate::none() })
    }

    /// Calls `visit` with the layout of each heap allocation, its own among them.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        visit(alloc::Layout::new::<Dated>());
        match &self.seen {
            Seen::Exact(members) => members.heap_layouts(visit),
            Seen::Sparse(positions) => positions.heap_layouts(visit),
            Seen::Dense(cells) => visit(cells.heap_layout()),
        }
    }

    /// Bytes of all heap allocations besides its own struct; when sparse, the most that they may be.
    pub(super) fn num_bytes(&self, layout: Layout) -> u64 {
        match &self.seen {
            Seen::Exact(members) => members.heap_bytes(),
            Seen::Sparse(positions) => positions::heap_bytes(layout, positions.len()),
            Seen::Dense(_) => dense_bytes(layout, &self.ring),
        }
    }

    /// Hands the arena or the cells over and takes them back, wherever they lie then.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        match &mut self.seen {
            Seen::Exact(members) => members.relocate(mover),
            Seen::Sparse(_) => {}
            Seen::Dense(cells) => cells.relocate(|bytes| mover.relocate(bytes)),
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        let seen = match &self.seen {
            Seen::Exact(members) => Seen::Exact(members.try_clone(seed)?),
            Seen::Sparse(positions) => Seen::Sparse(positions.try_clone()?),
            Seen::Dense(cells) => Seen::Dense(cells.try_clone()?),
        };
        Ok(Dated { ring: self.ring, seen, estimate: self.estimate.clone() })
    }
}
