//! The set of a windowed counter, with the slice in which each member was last seen.
//!
//! A plain linear counter has a bit for each slot: marked or not. Here a slot has the slice in which it was last
//! marked. The slots marked since a slice are, bit for bit, the bitmap of a counter that saw only that span. So the
//! same estimator counts every span that ends now.
//!
//! The set holds nothing older than the window. When a new slice is reached, everything that expires is dropped at
//! once.

use std::alloc;

use crate::counting::estimate::{Estimated, Segments};
use crate::counting::held::bitmap::{self, Bitmap, Slots, slot_at};
use crate::counting::held::cells::{Cells, TagCells};
use crate::counting::held::ring::TagRing;
use crate::counting::held::{Adding, Held};
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::params::Spec;
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_filled, try_with_capacity};
use crate::window::Mark;

/// A merge gathers slots in cells if more than one in this number is marked in the source: it is faster then than to
/// insert each position into a list. Free to change: nothing stored depends on it.
const GATHERED_FROM: u64 = 512;

/// The set of a windowed counter, with its window.
#[derive(Debug)]
pub(super) struct WindowedSet {
    pub(super) ring: TagRing,
    pub(super) held: Held<u8>,
}

impl WindowedSet {
    /// Bytes of the struct itself.
    pub(super) const STRUCT_BYTES: u64 = size_of::<WindowedSet>() as u64;

    /// Makes a windowed set.
    pub(super) fn new(ring: TagRing, held: Held<u8>) -> Self {
        WindowedSet { ring, held }
    }

    /// Makes a later slice the newest and drops what expires. A slice that is not later has no effect.
    pub(super) fn advance(&mut self, slice: u64, spec: &Spec) {
        let Some(passed @ 1..) = slice.checked_sub(self.ring.newest()) else { return };
        let (ages, most_age) = (self.ring.ages(), self.ring.most_age());
        self.ring.set_newest(slice);
        let left = u8::try_from(passed).ok().and_then(|passed| most_age.checked_sub(passed));
        let is_empty = left.is_none_or(|left| {
            let is_kept = |tag| ages.age(tag) <= left;
            match &mut self.held {
                Held::Exact(members) => {
                    members.retain(spec.params.seed, is_kept);
                    members.len() == 0
                }
                Held::Estimating(bitmap) => {
                    bitmap.drop_estimate();
                    match bitmap.slots_mut() {
                        Slots::Sparse(positions) => positions.retain(is_kept),
                        Slots::Dense(cells) => cells.free_dead(spec.layout, ages, left),
                    }
                    bitmap.set_bits() == 0
                }
            }
        });
        if is_empty {
            // An empty set is exact again, unless the counter is never exact.
            self.held = Held::none(spec);
        }
    }

    /// The number of members seen at most `most_age` slices before the newest slice, with its standard error; 0 for
    /// `None`.
    pub(super) fn estimated(&self, most_age: Option<u8>) -> Estimated {
        let (ages, Some(most_age)) = (self.ring.ages(), most_age) else { return Estimated::exact(0) };
        match &self.held {
            Held::Exact(members) => {
                Estimated::exact(members.iter().filter(|&(tag, _)| ages.age(tag) <= most_age).count())
            }
            // The whole window is asked for, and nothing is older, so the cached estimate holds.
            Held::Estimating(bitmap) if most_age == self.ring.most_age() => {
                Estimated::of(bitmap.layout(), bitmap.estimate())
            }
            Held::Estimating(bitmap) => {
                let segments = Segments::new(bitmap.layout(), &self.counts_within(bitmap, most_age));
                segments.reported(segments.estimate())
            }
        }
    }

    fn counts_within(&self, bitmap: &Bitmap<u8>, most_age: u8) -> SegmentCounts {
        let (ages, layout) = (self.ring.ages(), bitmap.layout());
        match bitmap.slots() {
            Slots::Sparse(positions) => {
                let mut counts = SegmentCounts::default();
                let live = positions.iter().filter(|&(_, tag)| ages.age(tag) <= most_age);
                live.for_each(|(position, _)| counts.increment(layout.segment_of(position.into())));
                counts
            }
            Slots::Dense(cells) => cells.counts_within(layout, ages, most_age),
        }
    }

    /// Whether any member was seen at most `most_age` slices before the newest slice; false for `None`.
    pub(super) fn has_any(&self, most_age: Option<u8>) -> bool {
        let (ages, Some(most_age)) = (self.ring.ages(), most_age) else { return false };
        match &self.held {
            Held::Exact(members) => members.iter().any(|(tag, _)| ages.age(tag) <= most_age),
            Held::Estimating(bitmap) => match bitmap.slots() {
                Slots::Sparse(positions) => positions.iter().any(|(_, tag)| ages.age(tag) <= most_age),
                Slots::Dense(cells) => cells.has_any(ages, most_age),
            },
        }
    }

    /// Estimates for each age: the members seen in the newest slice, in the two newest slices, and so on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn history(&self) -> Result<Vec<Estimated>, Error> {
        let (ages, most_age) = (self.ring.ages(), usize::from(self.ring.most_age()));
        let mut history = try_with_capacity(most_age + 1)?;
        let mut of_age = try_filled(most_age + 1, SegmentCounts::default())?;
        let mut count = |segment, tag, count| of_age[usize::from(ages.age(tag)).min(most_age)].add(segment, count);
        match &self.held {
            // All exact members count as one segment.
            Held::Exact(members) => members.iter().for_each(|(tag, _)| count(0, tag, 1)),
            Held::Estimating(bitmap) => match bitmap.slots() {
                Slots::Sparse(positions) => positions
                    .iter()
                    .for_each(|(position, tag)| count(bitmap.layout().segment_of(position.into()), tag, 1)),
                Slots::Dense(cells) => cells.for_each_count(bitmap.layout(), &mut count),
            },
        }
        let mut since = SegmentCounts::default();
        for counts in &of_age {
            since.add_all(counts);
            history.push(match &self.held {
                Held::Exact(_) => Estimated::exact(since.total() as usize),
                Held::Estimating(bitmap) => {
                    let segments = Segments::new(bitmap.layout(), &since);
                    segments.reported(segments.estimate())
                }
            });
        }
        Ok(history)
    }

    /// The same set as a bitmap of slots, folded to the layout `to`. A slot that gets several tags keeps the youngest.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`].
    pub(super) fn as_slots(
        &self,
        spec: &Spec,
        to: Layout,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let adding = Adding { spec, ages: self.ring.ages(), held_bytes, limit };
        let bitmap = self.held.as_slots(None, to, adding)?;
        let mut slots = Self::new(self.ring, Held::Estimating(Box::new(bitmap)));
        if let Some(own) = self.held.bitmap() {
            slots.merge_slots(self, own, 0, held_bytes, limit)?;
        }
        Ok(slots)
    }

    /// Adds the members of `other`, whose newest slice is `behind` slices older, each in the slice in which it was
    /// seen. Returns whether the set changed. If `other` has slots, the set must have slots too.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]; on error some members may have been added.
    pub(super) fn merge(
        &mut self,
        other: &WindowedSet,
        behind: u64,
        spec: &Spec,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        let ages = self.ring.ages();
        match &other.held {
            Held::Exact(members) => {
                let mut changed = false;
                for (hash, tag, member) in members.hashed(spec.params.seed) {
                    if let Some(tag) = self.tag_of(other, tag, behind) {
                        let adding = Adding { spec, ages, held_bytes, limit };
                        changed |= self.held.add(member, hash, tag, adding)? != Mark::Same;
                    }
                }
                Ok(changed)
            }
            Held::Estimating(slots) => self.merge_slots(other, slots, behind, held_bytes, limit),
        }
    }

    fn merge_slots(
        &mut self,
        other: &WindowedSet,
        from: &Bitmap<u8>,
        behind: u64,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        let (ages, to) = (self.ring.ages(), self.held.bitmap().map_or(from.layout(), Bitmap::layout));
        if let (Some(behind), Slots::Dense(theirs)) = (u8::try_from(behind).ok(), from.slots())
            && let Held::Estimating(bitmap) = &mut self.held
            && from.layout() == to
            && let Slots::Dense(cells) = bitmap.slots_mut()
            && let Some(changed) = cells.merge(to, ages, theirs, other.ring.ages(), behind)
        {
            bitmap.drop_estimate();
            return Ok(changed);
        }
        if let Some(own) = self.held.bitmap()
            && matches!(own.slots(), Slots::Sparse(_))
            && GATHERED_FROM * from.set_bits() > to.num_bits()
        {
            let before = own.set_bits();
            let mut cells = TagCells::new(to, ages)?;
            own.for_each(&mut |index, tag| _ = cells.mark(slot_at(to, index), tag, ages));
            let mut all = Self::new(self.ring, Held::Estimating(Box::new(Bitmap::dense(to, cells))));
            let changed = all.merge_slots(other, from, behind, held_bytes, limit)?;
            if changed && let Held::Estimating(all) = all.held {
                let (held_bytes, len) = (held_bytes + Bitmap::<u8>::STRUCT_BYTES, all.set_bits());
                if len > before {
                    let [before, after] = [before, len].map(|len| bitmap::heap_bytes::<u8>(to, len, ages));
                    limit.check(held_bytes + before, after.saturating_sub(before))?;
                }
                self.held = Held::Estimating(Box::new(all.sparse_if_few(ages)?));
            }
            return Ok(changed);
        }
        let (mut changed, mut result) = (false, Ok(()));
        from.for_each(&mut |index, tag| {
            let (Some(tag), true) = (self.tag_of(other, tag, behind), result.is_ok()) else { return };
            let Held::Estimating(bitmap) = &mut self.held else { return };
            let index = if from.layout() == to { index } else { from.layout().fold(index, to) };
            let held_bytes = held_bytes + Bitmap::<u8>::STRUCT_BYTES;
            match bitmap.mark(slot_at(to, index), tag, ages, held_bytes, limit) {
                Ok(mark) => changed |= mark != Mark::Same,
                Err(error) => result = Err(error),
            }
        });
        result.map(|()| changed)
    }

    /// Converts a tag of `other` to a tag of this set; `None` if its slice has expired here.
    fn tag_of(&self, other: &WindowedSet, tag: u8, behind: u64) -> Option<u8> {
        let (ages, age) = (self.ring.ages(), behind.saturating_add(other.ring.ages().age(tag).into()));
        (age <= ages.most_age.into()).then(|| ages.tag(age as u8))
    }

    /// Calls `visit` with the layout of each heap allocation, including the box of this struct.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        visit(alloc::Layout::new::<WindowedSet>());
        self.held.heap_layouts(visit);
    }

    /// Passes the buffer of members or cells to `mover` and keeps the buffer that it returns.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        self.held.relocate(mover);
    }

    /// A copy of the set.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        Ok(Self::new(self.ring, self.held.try_clone(seed)?))
    }
}
