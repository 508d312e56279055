//! The members or the bitmap of a windowed counter, with the slice in which each member was last added.
//!
//! The bitmap of an estimating counter has, instead of bits, the slice in which each slot was last marked. A new
//! counter with only the members added since a certain slice would have the same slots marked as are marked here since
//! that slice. So the same estimator counts every span of time that ends now.
//!
//! When a new slice begins, everything that expires is removed at once.

use crate::counting::estimate::{Estimated, Segments};
use crate::counting::held::Held;
use crate::counting::held::ring::TagRing;
use crate::counting::layout::SegmentCounts;
use crate::counting::params::Spec;
use crate::error::Error;
use crate::size_limit::{try_filled, try_with_capacity};

#[derive(Debug)]
pub(super) struct WindowedSet {
    pub(super) ring: TagRing,
    pub(super) held: Held<u8>,
}

impl WindowedSet {
    pub(super) const STRUCT_BYTES: u64 = size_of::<WindowedSet>() as u64;

    /// Makes `slice` the newest slice, if it is later, and removes the members that expire in this slice.
    pub(super) fn advance(&mut self, slice: u64, spec: &Spec) {
        let Some(passed @ 1..) = slice.checked_sub(self.ring.newest()) else { return };
        let (ages, most_age) = (self.ring.ages(), self.ring.most_age());
        self.ring.set_newest(slice);
        let left = u8::try_from(passed).ok().and_then(|passed| most_age.checked_sub(passed));
        let is_empty = left.is_none_or(|left| {
            let is_kept = |tag| ages.age(tag) <= left;
            match &mut self.held {
                Held::Exact(members) => {
                    members.retain(is_kept);
                    members.len() == 0
                }
                Held::Estimating(slots) => {
                    slots.expire(left, self.ring.ages());
                    slots.counts().total() == 0
                }
            }
        });
        if is_empty {
            // A set that has become empty is exact again, unless the counter is never exact.
            self.held = Held::none(spec, self.ring.ages());
        }
    }

    /// Estimates the numbers of members that were added in the newest slice, in the two newest slices, and so on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn history(&self) -> Result<Vec<Estimated>, Error> {
        let (ages, most_age) = (self.ring.ages(), usize::from(self.ring.most_age()));
        let mut history = try_with_capacity(most_age + 1)?;
        let mut of_age = try_filled(most_age + 1, SegmentCounts::default())?;
        let mut count = |segment, tag, number| of_age[usize::from(ages.age(tag)).min(most_age)].add(segment, number);
        match &self.held {
            // Members of an exact set are all counted in segment 0, because only the total is used.
            Held::Exact(members) => members.iter().for_each(|(tag, _)| count(0, tag, 1)),
            Held::Estimating(slots) => slots.tally(&mut count),
        }
        let mut since = SegmentCounts::default();
        for counts in &of_age {
            since.add_all(counts);
            history.push(match &self.held {
                Held::Exact(_) => Estimated::exact(since.total() as usize),
                Held::Estimating(slots) => Segments::new(slots.layout(), &since).estimated(),
            });
        }
        Ok(history)
    }
}
