//! The set of a counter: its members, or, once the counter estimates, a bitmap in which each member has set the bit
//! that its hash selects. With a window, each member and each set bit has a tag: the slice in which it was last added.
//!
//! A new counter with only the members added since a certain slice would have the same bits set as have tags of that
//! slice or a later one here. So the same estimator counts every span of time that ends now.

pub(crate) mod cells;
pub(super) mod members;
pub(crate) mod ring;
pub(crate) mod slots;

use std::alloc;

use crate::counting::estimate::{Estimated, Segments};
use crate::counting::held::members::Members;
use crate::counting::held::ring::{Ages, own_bytes};
use crate::counting::held::slots::Slots;
use crate::counting::layout::SegmentCounts;
use crate::counting::params::Spec;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_filled, try_with_capacity};
use crate::window::Mark;

/// A set of members. An exact set that exceeds its limits becomes an estimating set. A set that has become empty is
/// exact again. In all methods, `ages` is that of the counter's window.
#[derive(Debug)]
pub(super) enum Held {
    Exact(Members),
    /// The bitmap in which each member has set a bit ("slot"), boxed so that exact counters stay small.
    Estimating(Box<Slots>),
}

impl Held {
    /// Makes an empty set. It allocates only a few bytes.
    pub(super) fn none(spec: &Spec, ages: Ages) -> Self {
        if spec.params.exact_limit > 0 {
            Held::Exact(Members::new(ages))
        } else {
            Held::Estimating(Box::new(Slots::new(spec.layout, ages)))
        }
    }

    pub(super) fn members(&self) -> Option<&Members> {
        if let Held::Exact(members) = self { Some(members) } else { None }
    }

    pub(super) fn slots(&self) -> Option<&Slots> {
        if let Held::Estimating(slots) = self { Some(slots) } else { None }
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
                Estimated::exact(members.iter().filter(|&(tag, _)| ages.age(tag) <= most_age).count())
            }
            Held::Estimating(slots) if is_whole => {
                Segments::new(slots.layout, &SegmentCounts::default()).reported(slots.estimate())
            }
            Held::Estimating(slots) => Segments::new(slots.layout, &slots.counts_within(most_age)).estimated(),
        }
    }

    /// Estimates the numbers of members that were added in the newest slice, in the two newest slices, and so on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn history(&self, ages: Ages) -> Result<Vec<Estimated>, Error> {
        let most_age = usize::from(ages.most_age);
        let mut history = try_with_capacity(most_age + 1)?;
        let mut of_age = try_filled(most_age + 1, SegmentCounts::default())?;
        let mut count = |segment, tag, number| of_age[usize::from(ages.age(tag)).min(most_age)].add(segment, number);
        match self {
            // Members of an exact set are all counted in segment 0, because only the total is used.
            Held::Exact(members) => members.iter().for_each(|(tag, _)| count(0, tag, 1)),
            Held::Estimating(slots) => slots.tally(&mut count),
        }
        let mut since = SegmentCounts::default();
        for counts in &of_age {
            since.add_all(counts);
            history.push(match self {
                Held::Exact(_) => Estimated::exact(since.total() as usize),
                Held::Estimating(slots) => Segments::new(slots.layout, &since).estimated(),
            });
        }
        Ok(history)
    }

    /// Whether any member was last added at most `most_age` slices ago. `None` selects no members.
    pub(super) fn has_any(&self, ages: Ages, most_age: Option<u8>) -> bool {
        let Some(most_age) = most_age else { return false };
        match self {
            Held::Exact(members) => members.iter().any(|(tag, _)| ages.age(tag) <= most_age),
            // No slot has to be read if the caller asks for all slices that have not expired.
            Held::Estimating(slots) if most_age == ages.most_age => slots.counts.total() > 0,
            Held::Estimating(slots) => slots.has_any(most_age),
        }
    }

    /// Adds an item in the slice of `tag`. The result is [`Mark::New`] if the item was no member of an exact set, or if
    /// its bit was not set in a bitmap.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    // This method is inlined, because its result is large and returning it from a call would take long.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        item: &[u8],
        (tag, ages): (u8, Ages),
        spec: &Spec,
        limit: &impl SizeLimit,
    ) -> Result<Mark, Error> {
        match self {
            Held::Exact(members) => match members.add(item, (tag, ages), spec.params.room(), limit)? {
                Some(mark) => Ok(mark),
                None => self.begin_estimating(item, (tag, ages), spec, limit),
            },
            Held::Estimating(slots) => slots.mark(slots.layout.slot_of(hash64(item, spec.params.seed)), tag, limit),
        }
    }

    /// Makes the bitmap for the members of an exact set and for one more member, `item`.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    #[cold]
    fn begin_estimating(
        &mut self,
        item: &[u8],
        (tag, ages): (u8, Ages),
        Spec { params, layout }: &Spec,
        limit: &impl SizeLimit,
    ) -> Result<Mark, Error> {
        let Held::Exact(members) = self else { return Ok(Mark::Same) };
        limit.check(own_bytes(ages.has_tags()), Slots::STRUCT_BYTES)?;
        let mut slots = Slots::new(*layout, ages);
        for (hash, tag) in members.hashed(params.seed).chain([(hash64(item, params.seed), tag)]) {
            slots.mark(layout.slot_of(hash), tag, limit)?;
        }
        // With a window, members expire, so their present number is not a lower bound for later.
        if !ages.has_tags() {
            slots.raise_lower_bound(members.len() as u32 + 1);
        }
        *self = Held::Estimating(Box::new(slots));
        Ok(Mark::New)
    }

    /// Removes all members that were last added more than `most_age` slices before the newest slice; `None` removes all
    /// members. `before` is the [`Ages`] up to now, and `after` becomes the one of the set.
    pub(super) fn expire(&mut self, most_age: Option<u8>, before: Ages, after: Ages, spec: &Spec) {
        let is_empty = most_age.is_none_or(|most_age| match self {
            Held::Exact(members) => {
                members.retain(|tag| before.age(tag) <= most_age);
                members.len() == 0
            }
            Held::Estimating(slots) => {
                slots.expire(most_age, after);
                slots.counts.total() == 0
            }
        });
        if is_empty {
            // A set that has become empty is exact again, unless the counter is never exact.
            *self = Held::none(spec, after);
        }
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
