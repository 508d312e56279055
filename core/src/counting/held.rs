//! The set of a counter: its members, or, once the counter estimates, a bitmap in which each member has set the bit
//! that its hash selects.

pub(super) mod adding;
pub(crate) mod cells;
pub(super) mod members;
pub(crate) mod ring;
pub(crate) mod slots;
pub(super) mod tag;

use std::alloc;

use crate::counting::estimate::{Estimated, Segments};
use crate::counting::held::adding::Adding;
use crate::counting::held::members::Members;
use crate::counting::held::members::record::CODED;
use crate::counting::held::ring::Ages;
use crate::counting::held::slots::Slots;
use crate::counting::held::tag::Tag;
use crate::counting::params::Spec;
use crate::error::Error;
use crate::hash::{hash64, table_hash};
use crate::heap::Mover;
use crate::size_limit::SizeLimit;
use crate::window::Mark;

/// A set of members, each with its tag: the slice in which it was last added. An exact set that exceeds its limits
/// becomes an estimating set. A set that has become empty is exact again.
#[derive(Debug)]
pub(super) enum Held<T: Tag = ()> {
    Exact(Members<T>),
    /// The bitmap in which each member has set a bit ("slot"), boxed so that exact counters stay small.
    Estimating(Box<Slots>),
}

impl<T: Tag> Held<T> {
    /// Makes an empty set. It allocates only a few bytes.
    pub(super) fn none(spec: &Spec, ages: Ages) -> Self {
        if spec.params.exact_limit > 0 {
            Held::Exact(Members::new())
        } else {
            Held::Estimating(Box::new(Slots::new(spec.layout, ages)))
        }
    }

    pub(super) fn members(&self) -> Option<&Members<T>> {
        match self {
            Held::Exact(members) => Some(members),
            Held::Estimating(_) => None,
        }
    }

    pub(super) fn slots(&self) -> Option<&Slots> {
        match self {
            Held::Exact(_) => None,
            Held::Estimating(slots) => Some(slots),
        }
    }

    /// The exact number of members, or the most likely number.
    pub(super) fn estimate(&self) -> f64 {
        match self {
            Held::Exact(members) => members.len() as f64,
            Held::Estimating(slots) => slots.estimate(),
        }
    }

    /// The number of members that were last added at most `most_age` slices ago, with its standard error. `None`
    /// selects no members.
    pub(super) fn estimated(&self, ages: Ages, most_age: Option<u8>) -> Estimated {
        let Some(most_age) = most_age else { return Estimated::exact(0) };
        // No expired members are left in the set. So the largest age selects all members, and the cached estimate can
        // be used.
        let is_whole = most_age == ages.most_age;
        match self {
            Held::Exact(members) if is_whole => Estimated::exact(members.len()),
            Held::Exact(members) => {
                Estimated::exact(members.iter().filter(|(tag, _)| tag.age(ages) <= most_age).count())
            }
            Held::Estimating(slots) if is_whole => Estimated::of(slots.layout(), slots.estimate()),
            Held::Estimating(slots) => Segments::new(slots.layout(), &slots.counts_within(most_age)).estimated(),
        }
    }

    /// Whether any member was last added at most `most_age` slices ago. `None` selects no members.
    pub(super) fn has_any(&self, ages: Ages, most_age: Option<u8>) -> bool {
        let Some(most_age) = most_age else { return false };
        match self {
            Held::Exact(members) => members.iter().any(|(tag, _)| tag.age(ages) <= most_age),
            // No slot has to be read if the caller asks for all slices that have not expired.
            Held::Estimating(slots) if most_age == ages.most_age => slots.counts().total() > 0,
            Held::Estimating(slots) => slots.has_any(most_age),
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// The errors of the size limit, and [`Error::OutOfMemory`]. On error the set is unchanged.
    // This method is inlined, because its result is large and returning it from a call would take long.
    #[inline(always)]
    pub(super) fn add(&mut self, item: &[u8], adding: Adding<'_, T, impl SizeLimit>) -> Result<Mark, Error> {
        match self {
            Held::Exact(members) => {
                let hash = table_hash(item);
                match members.renew(item, hash, adding.tag, adding.ages) {
                    Some(mark) => Ok(mark),
                    None => self.add_absent(item, hash, adding),
                }
            }
            Held::Estimating(slots) => {
                slots.mark(slots.layout().slot_of(hash64(item, adding.spec.params.seed)), adding)
            }
        }
    }

    /// Does the same as [`Self::add`], for an item whose [`table_hash`] is `hash`. If the set is exact, `item` must not
    /// be a member yet.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    #[inline]
    pub(super) fn add_absent(
        &mut self,
        item: &[u8],
        hash: u64,
        adding: Adding<'_, T, impl SizeLimit>,
    ) -> Result<Mark, Error> {
        let Adding { spec, tag, held_bytes, limit, .. } = adding;
        let params = &spec.params;
        let Held::Exact(members) = self else { return self.add(item, adding) };
        let mut coded = CODED;
        let new = members.record_of(item, &mut coded);
        if members.has_room_for(new.counted_bytes, params.room()) {
            let held_bytes = held_bytes + members.heap_bytes();
            members.insert_if(&new, hash, tag, |more_bytes| limit.check(held_bytes, more_bytes))?;
        } else {
            let slots = slots_of(members, item, adding)?;
            *self = Held::Estimating(Box::new(slots));
        }
        Ok(Mark::New)
    }

    /// Reserves memory for `more` members, if the set is exact and `more` is at least 2. The set must have exactly one
    /// member, whose length is assumed for the new members. Returns whether it reserved any memory.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize, adding: Adding<'_, T, impl SizeLimit>) -> bool {
        let Adding { spec: Spec { params, .. }, held_bytes, limit, .. } = adding;
        match self {
            Held::Exact(members) if more > 1 => {
                let held_bytes = held_bytes + members.heap_bytes();
                members.reserve(more, params.room(), |more_bytes| limit.allows(held_bytes, more_bytes))
            }
            _ => false,
        }
    }

    /// Frees the reserved memory that was not needed.
    pub(super) fn trim(&mut self) {
        if let Held::Exact(members) = self {
            members.trim();
        }
    }

    /// Removes those of `items` that are members, and sets `removed` for each; if an item is repeated, only for the
    /// first occurrence. An estimating set is left unchanged. `places` is an empty list with room for all items, so
    /// that nothing is allocated here.
    pub(super) fn remove(&mut self, items: &[(u64, &[u8])], mut places: Vec<(usize, usize)>, removed: &mut [bool]) {
        let Held::Exact(members) = self else { return };
        let place = |(at, &(hash, item)): (usize, &(u64, &[u8]))| Some((members.offset_of(item, hash)?, at));
        places.extend(items.iter().enumerate().filter_map(place));
        places.sort_unstable();
        places.dedup_by_key(|&mut (offset, _)| offset);
        places.iter().for_each(|&(_, at)| removed[at] = true);
        members.remove(places.iter().map(|&(offset, _)| offset));
    }

    /// The number of set bits in the bitmap; 0 while the counter is exact and has no bitmap.
    pub(super) fn set_bits(&self) -> u64 {
        self.slots().map_or(0, |slots| slots.counts().total())
    }

    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match self {
            Held::Exact(members) => members.heap_layouts(visit),
            Held::Estimating(slots) => {
                visit(alloc::Layout::new::<Slots>());
                slots.heap_layouts(visit);
            }
        }
    }

    /// The total size of all heap allocations, in bytes.
    pub(super) fn num_bytes(&self) -> u64 {
        match self {
            Held::Exact(members) => members.heap_bytes(),
            Held::Estimating(slots) => Slots::STRUCT_BYTES + slots.num_bytes(),
        }
    }

    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        match self {
            Held::Exact(members) => members.relocate(mover),
            Held::Estimating(slots) => slots.relocate(mover),
        }
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            Held::Exact(members) => Held::Exact(members.try_clone()?),
            Held::Estimating(slots) => Held::Estimating(Box::new(slots.try_clone()?)),
        })
    }
}

/// Makes the bitmap for the members of an exact set and for one more member, `item`.
///
/// # Errors
/// The errors of the size limit, and [`Error::OutOfMemory`].
fn slots_of<T: Tag>(members: &Members<T>, item: &[u8], adding: Adding<'_, T, impl SizeLimit>) -> Result<Slots, Error> {
    let Adding { spec: Spec { params, layout }, tag, ages, held_bytes, limit } = adding;
    limit.check(held_bytes, Slots::STRUCT_BYTES)?;
    let mut slots = Slots::new(*layout, ages);
    let hashed = members.hashed(params.seed).map(|(hash, tag, _)| (hash, tag));
    for (hash, tag) in hashed.chain([(hash64(item, params.seed), tag)]) {
        slots.mark(layout.slot_of(hash), Adding { tag, ..adding })?;
    }
    // With a window, members expire, so their present number is not a lower bound for later.
    if T::BYTES == 0 {
        slots.raise_lower_bound(members.len() as u32 + 1);
    }
    Ok(slots)
}
