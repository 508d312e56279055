//! The set of a counter. At first it holds the members themselves. After the promotion to an estimate, it holds only
//! the slots of their hashes.

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
use crate::heap::Mover;
use crate::size_limit::SizeLimit;
use crate::window::Mark;

/// A set of members, each with its tag. An exact set that exceeds its limits becomes an estimating one. A set that is
/// empty again is exact again.
#[derive(Debug)]
pub(super) enum Held<T: Tag = ()> {
    /// The members themselves.
    Exact(Members<T>),
    /// The slots of the members. Boxed, so that exact counters stay small.
    Estimating(Box<Slots>),
}

impl<T: Tag> Held<T> {
    /// Makes an empty set; allocates only a few bytes.
    pub(super) fn none(spec: &Spec, ages: Ages) -> Self {
        if spec.params.exact_limit > 0 {
            Held::Exact(Members::new())
        } else {
            Held::Estimating(Box::new(Slots::new(spec.layout, ages)))
        }
    }

    /// The members; `None` once the counter estimates.
    pub(super) fn members(&self) -> Option<&Members<T>> {
        match self {
            Held::Exact(members) => Some(members),
            Held::Estimating(_) => None,
        }
    }

    /// The slots; `None` while the counter is exact.
    pub(super) fn slots(&self) -> Option<&Slots> {
        match self {
            Held::Exact(_) => None,
            Held::Estimating(slots) => Some(slots),
        }
    }

    /// The number of members: the exact number, or the most likely one.
    pub(super) fn estimate(&self) -> f64 {
        match self {
            Held::Exact(members) => members.len() as f64,
            Held::Estimating(slots) => slots.estimate(),
        }
    }

    /// The number of members seen at most `most_age` slices before the newest slice, with its standard error; 0 if
    /// `most_age` is `None`.
    pub(super) fn estimated(&self, ages: Ages, most_age: Option<u8>) -> Estimated {
        let Some(most_age) = most_age else { return Estimated::exact(0) };
        // If all live slices are asked for, the cached estimate is the answer: the set holds nothing older.
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

    /// Whether any member was seen at most `most_age` slices before the newest slice; false if `most_age` is `None`.
    pub(super) fn has_any(&self, ages: Ages, most_age: Option<u8>) -> bool {
        let Some(most_age) = most_age else { return false };
        match self {
            Held::Exact(members) => members.iter().any(|(tag, _)| tag.age(ages) <= most_age),
            Held::Estimating(slots) => slots.counts_within(most_age).total() > 0,
        }
    }

    /// Adds an item, whose hash is `hash`.
    ///
    /// # Errors
    /// The errors of the limit, and [`Error::OutOfMemory`]; on error the set is unchanged.
    // Inlined: the result has room for an error, so it is large, and returning it from a call would take long.
    #[inline(always)]
    pub(super) fn add(&mut self, item: &[u8], hash: u64, adding: Adding<'_, T, impl SizeLimit>) -> Result<Mark, Error> {
        match self {
            Held::Exact(members) => match members.renew(item, hash, adding.tag, adding.ages) {
                Some(mark) => Ok(mark),
                None => self.add_absent(item, hash, adding),
            },
            Held::Estimating(slots) => slots.mark(slots.layout().slot_of(hash), adding),
        }
    }

    /// The same as [`Self::add`], for an `item` of which the caller knows that an exact set does not have it.
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
        let Held::Exact(members) = self else { return self.add(item, hash, adding) };
        let mut coded = CODED;
        let new = members.record_of(item, &mut coded);
        if members.has_room_for(new.counted_bytes, params.room()) {
            let held_bytes = held_bytes + members.heap_bytes();
            members.insert_if(&new, hash, params.seed, tag, |more_bytes| limit.check(held_bytes, more_bytes))?;
        } else {
            let slots = slots_of(members, hash, adding)?;
            *self = Held::Estimating(Box::new(slots));
        }
        Ok(Mark::New)
    }

    /// Reserves memory for several `more` members in an exact set of one member, see [`Members::reserve`]. Returns
    /// whether it did.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize, adding: Adding<'_, T, impl SizeLimit>) -> bool {
        let Adding { spec: Spec { params, .. }, held_bytes, limit, .. } = adding;
        match self {
            Held::Exact(members) if more > 1 => {
                let held_bytes = held_bytes + members.heap_bytes();
                members.reserve(more, params.room(), params.seed, |more_bytes| limit.allows(held_bytes, more_bytes))
            }
            _ => false,
        }
    }

    /// Frees the reserved memory that was not needed.
    pub(super) fn trim(&mut self, seed: u64) {
        if let Held::Exact(members) = self {
            members.trim(seed);
        }
    }

    /// Removes the members among `items`, each with its hash, and sets `removed` for the first occurrence of each
    /// removed member. `places` has room for all items. An estimating set is left unchanged.
    pub(super) fn remove(
        &mut self,
        items: &[(u64, &[u8])],
        mut places: Vec<(usize, usize)>,
        removed: &mut [bool],
        seed: u64,
    ) {
        let Held::Exact(members) = self else { return };
        let place = |(at, &(hash, item)): (usize, &(u64, &[u8]))| Some((members.offset_of(item, hash)?, at));
        places.extend(items.iter().enumerate().filter_map(place));
        places.sort_unstable();
        places.dedup_by_key(|&mut (offset, _)| offset);
        places.iter().for_each(|&(_, at)| removed[at] = true);
        members.remove(places.iter().map(|&(offset, _)| offset), seed);
    }

    /// The number of marked slots; 0 while exact.
    pub(super) fn set_bits(&self) -> u64 {
        self.slots().map_or(0, |slots| slots.counts().total())
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match self {
            Held::Exact(members) => members.heap_layouts(visit),
            Held::Estimating(slots) => {
                visit(alloc::Layout::new::<Slots>());
                slots.heap_layouts(visit);
            }
        }
    }

    /// Bytes of all heap allocations.
    pub(super) fn num_bytes(&self) -> u64 {
        match self {
            Held::Exact(members) => members.heap_bytes(),
            Held::Estimating(slots) => Slots::STRUCT_BYTES + slots.num_bytes(),
        }
    }

    /// Passes the buffer of members or cells to `mover`, and keeps the buffer that `mover` returns.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        match self {
            Held::Exact(members) => members.relocate(mover),
            Held::Estimating(slots) => slots.relocate(mover),
        }
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            Held::Exact(members) => Held::Exact(members.try_clone()?),
            Held::Estimating(slots) => Held::Estimating(Box::new(slots.try_clone()?)),
        })
    }
}

/// The slots of the members of an exact set, and of one more member with this hash.
///
/// # Errors
/// The errors of the limit, and [`Error::OutOfMemory`].
fn slots_of<T: Tag>(members: &Members<T>, hash: u64, adding: Adding<'_, T, impl SizeLimit>) -> Result<Slots, Error> {
    let Adding { spec: Spec { params, layout }, tag, ages, held_bytes, limit } = adding;
    limit.check(held_bytes, Slots::STRUCT_BYTES)?;
    let mut slots = Slots::new(*layout, ages);
    let hashed = members.hashed(params.seed).map(|(hash, tag, _)| (hash, tag));
    for (hash, tag) in hashed.chain([(hash, tag)]) {
        slots.mark(layout.slot_of(hash), Adding { tag, ..adding })?;
    }
    // With a window, the present number of members is not a lower bound for later, because members expire.
    if T::BYTES == 0 {
        slots.set_lower_bound(members.len() as u32 + 1);
    }
    Ok(slots)
}
