//! The set of a counter: first the members themselves; after the promotion to an estimate, only the slots of their
//! hashes.

pub(crate) mod bitmap;
pub(super) mod cells;
pub(super) mod members;
pub(super) mod positions;
pub(super) mod ring;
pub(super) mod tag;
pub(super) mod words;

use std::alloc;

use crate::counting::estimate::{Estimated, Segments};
use crate::counting::held::bitmap::{Bitmap, SlotTag, Slots, slot_at};
use crate::counting::held::cells::Cells;
use crate::counting::held::members::Members;
use crate::counting::params::{Representation, Spec};
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::Mark;

/// A set of members, each with its tag. It is promoted from exact to estimating, and is exact again once empty.
#[derive(Debug)]
pub(super) enum Held<T: SlotTag = ()> {
    /// The members themselves.
    Exact(Members<T>),
    /// The slots of the members. Boxed, so that exact counters stay small.
    Estimating(Box<Bitmap<T>>),
}

/// A set whose members are added to another.
pub(super) struct Merged<'a, T: SlotTag> {
    pub(super) held: &'a Held<T>,
    pub(super) ages: T::Ages,
    /// The number of slices from the newest slice of this set to that of the other, at most 255: then all has expired.
    pub(super) behind: u8,
}

/// The context of an addition: everything except the item and its tag.
pub(super) struct Adding<'a, T: SlotTag, L> {
    pub(super) spec: &'a Spec,
    pub(super) ages: T::Ages,
    /// Bytes that the counter takes without this set.
    pub(super) held_bytes: u64,
    pub(super) limit: &'a L,
}

impl<T: SlotTag, L> Clone for Adding<'_, T, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: SlotTag, L> Copy for Adding<'_, T, L> {}

impl<T: SlotTag> Held<T> {
    /// Makes an empty set; allocates only a few bytes.
    pub(super) fn none(spec: &Spec) -> Self {
        if spec.params.exact_limit > 0 {
            Held::Exact(Members::new())
        } else {
            Held::Estimating(Box::new(Bitmap::new(spec.layout)))
        }
    }

    /// Reads a set from a payload in this representation. Where it can, the function moves the bytes out of `payload`
    /// and does not copy them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the wrong field, and [`Error::OutOfMemory`].
    pub(super) fn from_payload(
        representation: Representation,
        payload: &mut Vec<u8>,
        spec: &Spec,
        ages: T::Ages,
    ) -> Result<Self, Error> {
        let Spec { params, layout } = *spec;
        let bitmap = match representation {
            Representation::Exact => {
                return Ok(Held::Exact(Members::from_bytes(payload, params.room(), params.seed, ages)?));
            }
            Representation::Sparse => Bitmap::from_ascending(layout, positions::read(payload, layout, ages)?, ages)?,
            Representation::Dense => {
                Bitmap::from_stored_cells(layout, T::Cells::from_payload(payload, layout, ages)?, ages)?
            }
        };
        Ok(Held::Estimating(Box::new(bitmap)))
    }

    /// The representation in which the set is stored.
    pub(super) fn representation(&self) -> Representation {
        match self {
            Held::Exact(_) => Representation::Exact,
            Held::Estimating(bitmap) if bitmap.is_stored_sparse() => Representation::Sparse,
            Held::Estimating(_) => Representation::Dense,
        }
    }

    /// Whether the set has a cell for each slot.
    #[inline]
    pub(super) fn is_dense(&self) -> bool {
        matches!(self, Held::Estimating(bitmap) if matches!(bitmap.slots(), Slots::Dense(_)))
    }

    /// The members; `None` once the counter estimates.
    pub(super) fn members(&self) -> Option<&Members<T>> {
        match self {
            Held::Exact(members) => Some(members),
            Held::Estimating(_) => None,
        }
    }

    /// The slots; `None` while the counter is exact.
    pub(super) fn bitmap(&self) -> Option<&Bitmap<T>> {
        match self {
            Held::Exact(_) => None,
            Held::Estimating(bitmap) => Some(bitmap),
        }
    }

    /// The number of members: exact, or the most likely one.
    pub(super) fn estimate(&self) -> f64 {
        match self {
            Held::Exact(members) => members.len() as f64,
            Held::Estimating(bitmap) => bitmap.estimate(),
        }
    }

    /// The number of members seen at most `most_age` slices before the newest slice, with its standard error; 0 for
    /// `None`.
    pub(super) fn estimated(&self, ages: T::Ages, most_age: Option<u8>) -> Estimated {
        let Some(most_age) = most_age else { return Estimated::exact(0) };
        // Nothing is older than the window, and its estimate is cached.
        let is_whole = most_age == T::most_age(ages);
        match self {
            Held::Exact(members) if is_whole => Estimated::exact(members.len()),
            Held::Exact(members) => {
                Estimated::exact(members.iter().filter(|(tag, _)| tag.age(ages) <= most_age).count())
            }
            Held::Estimating(bitmap) if is_whole => Estimated::of(bitmap.layout(), bitmap.estimate()),
            Held::Estimating(bitmap) => {
                Segments::new(bitmap.layout(), &bitmap.counts_within(ages, most_age)).estimated()
            }
        }
    }

    /// Whether any member was seen at most `most_age` slices before the newest slice; false for `None`.
    pub(super) fn has_any(&self, ages: T::Ages, most_age: Option<u8>) -> bool {
        let Some(most_age) = most_age else { return false };
        match self {
            Held::Exact(members) => members.iter().any(|(tag, _)| tag.age(ages) <= most_age),
            Held::Estimating(bitmap) => bitmap.has_any(ages, most_age),
        }
    }

    /// Adds an item, whose hash is `hash`, with a tag.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`]; on error the set is unchanged.
    // Inlined, since the result is large and most of it is the error.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        item: &[u8],
        hash: u64,
        tag: T,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<Mark, Error> {
        match self {
            Held::Exact(members) => match members.renew(item, hash, tag, adding.ages) {
                Some(mark) => Ok(mark),
                None => self.add_absent(item, hash, tag, adding),
            },
            Held::Estimating(bitmap) => {
                let Adding { ages, held_bytes, limit, .. } = adding;
                bitmap.mark(bitmap.layout().slot_of(hash), tag, ages, held_bytes + Bitmap::<T>::STRUCT_BYTES, limit)
            }
        }
    }

    /// The same as [`Self::add`], for an `item` that is known to be no member of an exact counter.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    #[inline]
    pub(super) fn add_absent(
        &mut self,
        item: &[u8],
        hash: u64,
        tag: T,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<Mark, Error> {
        let Adding { spec, held_bytes, limit, .. } = adding;
        let params = &spec.params;
        let Held::Exact(members) = self else { return self.add(item, hash, tag, adding) };
        if members.has_room_for(item, params.room()) {
            let held_bytes = held_bytes + members.heap_bytes();
            members.insert_if(item, hash, params.seed, tag, |more_bytes| limit.check(held_bytes, more_bytes))?;
        } else {
            self.promote(Some((hash, tag)), adding)?;
        }
        Ok(Mark::New)
    }

    /// Promotes an exact set to an estimate of its members and of `more`, a hash and its tag.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`]; on error the set is unchanged.
    fn promote(&mut self, more: Option<(u64, T)>, adding: Adding<'_, T, impl SizeLimit>) -> Result<(), Error> {
        let Adding { spec: &Spec { params, layout }, ages, held_bytes, limit } = adding;
        let Held::Exact(members) = self else { return Ok(()) };
        // With a window the number of members is no lower bound: they expire.
        let lower_bound = if T::BYTES == 0 { (members.len() + more.iter().len()) as u32 } else { 0 };
        let mut slots: Vec<(u32, T)> = try_with_capacity(members.len() + 1)?;
        let hashed = members.hashed(params.seed).map(|(hash, tag, _)| (hash, tag));
        slots.extend(hashed.chain(more).map(|(hash, tag)| (layout.slot_of(hash).index as u32, tag)));
        slots.sort_unstable_by_key(|&(position, _)| position);
        // A slot shared by several members gets the youngest of their tags.
        slots.dedup_by(|(again, tag), (position, before)| {
            let is_same = again == position;
            if is_same {
                tag.renew(before, ages);
            }
            is_same
        });
        let bytes = Bitmap::<T>::STRUCT_BYTES + bitmap::heap_bytes::<T>(layout, slots.len() as u64, ages);
        limit.check(held_bytes, bytes)?;
        let mut bitmap = Bitmap::from_ascending(layout, slots.iter().copied(), ages)?;
        bitmap.raise_lower_bound(lower_bound);
        *self = Held::Estimating(Box::new(bitmap));
        Ok(())
    }

    /// Adds the members of other sets, each in the slice in which it was seen. Returns whether the set changed. The
    /// lower bound of an estimate becomes at least `lower_bound`.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`]; on error some members may have been added. A set with a
    /// cell for each slot has no errors.
    pub(super) fn merge(
        &mut self,
        sources: &[Merged<'_, T>],
        lower_bound: u32,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<bool, Error> {
        let Adding { spec, ages, held_bytes, limit } = adding;
        let mut changed = false;
        // Only slots can take slots.
        if self.members().is_some() && sources.iter().any(|source| source.held.set_bits() > 0) {
            self.promote(None, adding)?;
            changed = true;
        }
        let before = self.num_bytes();
        let mut left: u64 = sources.iter().map(|source| source.held.most_slots()).sum();
        let (mut is_prepared, mut is_counted) = (false, true);
        for &Merged { held, ages: theirs, behind } in sources {
            let tag_of = |tag: T| T::of_age(tag.age(theirs).saturating_add(behind), ages);
            // Asked where a source begins, and where exact members have just become slots.
            if let Held::Estimating(own) = self {
                is_prepared |= own.make_dense_for(left, ages)?;
            }
            match (held, &mut *self) {
                (Held::Exact(members), own) => {
                    for (hash, tag, member) in members.hashed(spec.params.seed) {
                        let Some(tag) = tag_of(tag) else { continue };
                        let was_exact = own.members().is_some();
                        changed |= own.add(member, hash, tag, adding)? != Mark::Same;
                        if let (true, Held::Estimating(slots)) = (was_exact, &mut *own) {
                            is_prepared |= slots.make_dense_for(left, ages)?;
                        }
                    }
                }
                (Held::Estimating(slots), Held::Estimating(own)) => {
                    let held_bytes = held_bytes + Bitmap::<T>::STRUCT_BYTES;
                    let mut result = Ok(());
                    match own.merge_cells(slots, theirs, behind, ages) {
                        Some(is_renewed) => (changed, is_counted) = (changed | is_renewed, false),
                        None => slots.for_each_folded(spec.layout, &mut |index, tag| {
                            let (Some(tag), Ok(())) = (tag_of(tag), &result) else { return };
                            let mark = own.mark(slot_at(spec.layout, index), tag, ages, held_bytes, limit);
                            result = mark.map(|mark| changed |= mark != Mark::Same);
                        }),
                    }
                    result?;
                }
                (Held::Estimating(_), Held::Exact(_)) => {}
            }
            left -= held.most_slots();
        }
        if let Held::Estimating(bitmap) = self {
            changed |= !is_counted && bitmap.count(ages);
            changed |= bitmap.raise_lower_bound(lower_bound);
            if is_prepared {
                bitmap.make_sparse_if_few(ages)?;
                match self.num_bytes().saturating_sub(before) {
                    0 => {}
                    more => limit.check(held_bytes + before, more)?,
                }
            }
        }
        Ok(changed)
    }

    /// The most slots that the members of the set mark.
    pub(super) fn most_slots(&self) -> u64 {
        self.members().map_or(self.set_bits(), |members| members.len() as u64)
    }

    /// The number of marked slots; 0 while exact.
    pub(super) fn set_bits(&self) -> u64 {
        self.bitmap().map_or(0, Bitmap::set_bits)
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match self {
            Held::Exact(members) => members.heap_layouts(visit),
            Held::Estimating(bitmap) => {
                visit(alloc::Layout::new::<Bitmap<T>>());
                bitmap.heap_layouts(visit);
            }
        }
    }

    /// Bytes of all heap allocations; for a sparse set an upper bound.
    pub(super) fn num_bytes(&self) -> u64 {
        match self {
            Held::Exact(members) => members.heap_bytes(),
            Held::Estimating(bitmap) => Bitmap::<T>::STRUCT_BYTES + bitmap.num_bytes(),
        }
    }

    /// Passes the buffer of members or cells to `mover`, and keeps the buffer that it returns.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        match self {
            Held::Exact(members) => members.relocate(mover),
            Held::Estimating(bitmap) => bitmap.relocate(mover),
        }
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        Ok(match self {
            Held::Exact(members) => Held::Exact(members.try_clone(seed)?),
            Held::Estimating(bitmap) => Held::Estimating(Box::new(bitmap.try_clone()?)),
        })
    }
}
