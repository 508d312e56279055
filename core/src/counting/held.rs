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

use crate::counting::held::bitmap::{Bitmap, SlotTag, Slots};
use crate::counting::held::cells::Cells;
use crate::counting::held::members::Members;
use crate::counting::layout::Layout;
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
        let Spec { params, layout } = *spec;
        let Held::Exact(members) = self else { return self.add(item, hash, tag, adding) };
        if members.has_room_for(item, params.room()) {
            let held_bytes = held_bytes + members.heap_bytes();
            members.insert_if(item, hash, params.seed, tag, |more_bytes| limit.check(held_bytes, more_bytes))?;
        } else {
            // With a window the count at the promotion is no lower bound: members expire.
            let lower_bound = if T::BYTES == 0 { members.len() as u32 + 1 } else { 0 };
            let bitmap = self.as_slots(Some((hash, tag)), layout, adding)?;
            *self = Held::Estimating(Box::new(bitmap.with_lower_bound(lower_bound)));
        }
        Ok(Mark::New)
    }

    /// A bitmap of `layout` with the slots of all members of an exact set, and with the slot of `more`, a hash and its
    /// tag. For an estimating set the bitmap is empty.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`].
    pub(super) fn as_slots(
        &self,
        more: Option<(u64, T)>,
        layout: Layout,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<Bitmap<T>, Error> {
        let Adding { spec, ages, held_bytes, limit } = adding;
        let Some(members) = self.members() else { return Ok(Bitmap::new(layout)) };
        let mut slots: Vec<(u32, T)> = try_with_capacity(members.len() + 1)?;
        let hashed = members.hashed(spec.params.seed).map(|(hash, tag, _)| (hash, tag));
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
        Bitmap::from_ascending(layout, slots.iter().copied(), ages)
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
