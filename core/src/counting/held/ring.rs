//! Tags: each member or slot of a windowed counter has a small number, its tag, which stands for the slice in which it
//! was last added.
//!
//! Slice numbers grow for ever, but a tag has only a byte or half a byte. So tags are used again: with 15 tags, slices
//! 0 to 14 have the tags 1 to 15, and slice 15 has the tag 1 again. When slice 15 begins, slice 0 has expired, because
//! a window has fewer slices than there are tags. In general the tag is `1 + (slice - offset) mod modulus`; 0 marks a
//! free slot.
//!
//! The age of a tag is the number of slices from its slice to the newest slice.
//!
//! A counter without a window has the single tag 1, with the age 0.

use crate::error::{Error, Parameter};
use crate::window::{Mark, Window};

/// The largest number of slices of a window whose tags fit in half a byte.
const MOST_SLICES_OF_HALVES: u32 = HALVES - 1;
/// The number of different tags that fit in half a byte: 1 to 15, since 0 is not a tag.
const HALVES: u32 = 15;
/// The number of different tags that fit in a whole byte: 1 to 255, since 0 is not a tag.
const WHOLES: u32 = 255;

/// The largest number of slices that a counter's window may have.
pub(in crate::counting) const MOST_SLICES: u32 = WHOLES - 1;

/// The size of the struct `Counter`. Allocators have a size class of 48 bytes.
pub(in crate::counting) const COUNTER_BYTES: u64 = 48;

/// The bytes of a counter's structs, without its members or its bitmap.
pub(in crate::counting) fn own_bytes(has_window: bool) -> u64 {
    COUNTER_BYTES + if has_window { size_of::<TagRing>() as u64 } else { 0 }
}

/// Checks that a window has at most [`MOST_SLICES`] slices.
///
/// # Errors
/// [`Error::OutOfRange`].
pub(in crate::counting) fn check(window: &Window) -> Result<(), Error> {
    let expected = format_args!("from 1 to {MOST_SLICES}");
    Error::check_range(window.slices() <= MOST_SLICES, Parameter::Slices, expected, window.slices())
}

/// Converts tags to ages, and ages to tags. A tag is a small number that stands for a slice; an age is counted in
/// slices back from the newest slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ages {
    /// The tag of the newest slice, 1 to `modulus`.
    pub(in crate::counting) newest: u8,
    /// The number of different slice tags: 1 without a window, otherwise 15 or 255. It is also the mask of the bits of
    /// a tag.
    pub(in crate::counting) modulus: u8,
    /// The age of the oldest slice that has not expired.
    pub(in crate::counting) most_age: u8,
}

impl Ages {
    /// The value for a counter without a window, whose only tag is 1, with the age 0.
    pub(in crate::counting) const PLAIN: Self = Ages { newest: 1, modulus: 1, most_age: 0 };

    /// Whether members and slots have tags, as they do in a windowed counter.
    #[inline(always)]
    pub(in crate::counting) fn has_tags(self) -> bool {
        self.modulus > 1
    }

    /// The number of bytes of a member's tag: 0 without a window, otherwise 1.
    pub(in crate::counting) fn tag_bytes(self) -> usize {
        usize::from(self.has_tags())
    }

    /// The number of bits in a cell of a bitmap: 1, 4 or 8. The cell of a slot has the slice tag of the slot, or 0 if
    /// the slot is free.
    #[inline(always)]
    pub(in crate::counting) fn cell_bits(self) -> usize {
        match self.modulus.into() {
            WHOLES => 8,
            HALVES => 4,
            _ => 1,
        }
    }

    /// The age of `tag`: the number of slices from its slice to the newest slice.
    #[inline(always)]
    pub(in crate::counting) fn age(self, tag: u8) -> u8 {
        // Tags restart from 1 after the largest tag. So a tag above that of the newest slice is from before the
        // restart.
        let around = if tag > self.newest { self.modulus } else { 0 };
        self.newest.wrapping_sub(tag).wrapping_add(around)
    }

    /// The tag of the slice with this age. `age` must be less than the number of tags.
    #[inline]
    pub(in crate::counting) fn tag(self, age: u8) -> u8 {
        let around = if age >= self.newest { self.modulus } else { 0 };
        self.newest.wrapping_sub(age).wrapping_add(around)
    }

    /// Whether `tag` is not 0 and its age is at most `most_age`.
    #[inline(always)]
    pub(in crate::counting) fn is_within(self, tag: u8, most_age: u8) -> bool {
        (tag != 0) & (self.age(tag) <= most_age)
    }

    /// Replaces `own`, the tag of a member or slot of the bitmap, by `tag`, if `tag` stands for a later slice.
    #[inline(always)]
    pub(in crate::counting) fn renew(self, own: &mut u8, tag: u8) -> Mark {
        if *own == tag || self.age(*own) <= self.age(tag) {
            return Mark::Same;
        }
        *own = tag;
        Mark::Renewed
    }

    /// Checks that `tag` is the tag of a slice that has not expired.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(in crate::counting) fn check(self, tag: u8) -> Result<(), Error> {
        let is_live = (1..=self.modulus).contains(&tag) && self.age(tag) <= self.most_age;
        Error::check_field(is_live, "tag", "that of a living slice", tag)
    }
}

/// A window, its newest slice, and which slice has which tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagRing {
    pub(crate) window: Window,
    pub(in crate::counting) newest: u64,
    /// The number of the first slice that has the tag 1. Tags repeat every `modulus` slices, so this number is below
    /// `modulus`.
    pub(in crate::counting) offset: u8,
    /// The conversion from slice tags to ages. It is kept, because computing it from the other fields takes a division.
    pub(in crate::counting) ages: Ages,
}

impl TagRing {
    /// Gives slice 0 the tag 1, slice 1 the tag 2, and so on. The newest slice has the number `newest`.
    pub(in crate::counting) fn new(window: Window, newest: u64) -> Self {
        let mut ring = TagRing { window, newest, offset: 0, ages: Ages::PLAIN };
        ring.set_newest(newest);
        ring
    }

    /// Gives slice number `offset` the tag 1, the next slice the tag 2, and so on. The newest slice has the number
    /// `newest`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] unless `offset` is less than the number of tags.
    pub(crate) fn with_offset(window: Window, newest: u64, offset: u8) -> Result<Self, Error> {
        let mut ring = TagRing { offset, ..TagRing::new(window, newest) };
        let modulus = ring.modulus();
        Error::check_field(u32::from(offset) < modulus, "offset", format_args!("below {modulus}"), offset)?;
        ring.set_newest(newest);
        Ok(ring)
    }

    pub(in crate::counting) fn set_newest(&mut self, slice: u64) {
        let modulus = self.modulus();
        let newest = (slice % u64::from(modulus)) as u32;
        let place = (newest + modulus - u32::from(self.offset)) % modulus;
        self.newest = slice;
        // The cast is lossless, since a window has at most 254 slices.
        let most_age = self.window.slices() as u8;
        self.ages = Ages { newest: place as u8 + 1, modulus: modulus as u8, most_age };
    }

    /// The number of different slice tags.
    #[inline]
    pub(in crate::counting) fn modulus(&self) -> u32 {
        if self.window.slices() <= MOST_SLICES_OF_HALVES { HALVES } else { WHOLES }
    }

    /// The age of `slice` in slices, but at most the age of the oldest slice that has not expired; `None` if `slice` is
    /// after the newest slice.
    pub(in crate::counting) fn most_age_since(&self, slice: i128) -> Option<u8> {
        let age = i128::from(self.newest).saturating_sub(slice);
        (age >= 0).then(|| age.min(self.ages.most_age.into()) as u8)
    }

    /// After the clock was set back: lowers the numbers of all slices, that of the newest to `slice`. Each slice keeps
    /// its tag, because the offset is lowered too.
    pub(in crate::counting) fn rebase(&mut self, slice: u64) {
        let modulus = u64::from(self.modulus());
        let back = self.newest.saturating_sub(slice) % modulus;
        self.offset = ((u64::from(self.offset) + modulus - back) % modulus) as u8;
        self.set_newest(self.newest.min(slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::ClockSource;

    #[test]
    fn living_slices_have_tags_of_their_own() {
        for (slices, modulus) in [(1, 15), (14, 15), (15, 255), (254, 255)] {
            let window = Window::new(10 * u64::from(slices), slices, MOST_SLICES, ClockSource::System).unwrap();
            for newest in (0..600).chain([u64::MAX / 1000]) {
                let mut ring = TagRing::new(window, newest);
                assert_eq!(ring.modulus(), modulus);
                let ages = ring.ages;
                assert_eq!(u64::from(ages.newest), 1 + newest % u64::from(modulus));
                for age in 0..modulus as u8 {
                    let tag = ages.tag(age);
                    assert_eq!((ages.age(tag), ages.check(tag).is_ok()), (age, u32::from(age) <= slices));
                    assert_eq!(ages.is_within(tag, ages.most_age), u32::from(age) <= slices);
                }
                assert!(ages.check(0).is_err() && !ages.is_within(0, ages.most_age));
                assert_eq!((ages.cell_bits(), u32::from(ages.most_age)), (if modulus == 15 { 4 } else { 8 }, slices));
                // When a slice begins, every tag becomes one slice older.
                let later = TagRing::new(window, newest + 1).ages;
                assert_eq!(later.age(ages.newest), 1);
                ring.rebase(newest / 3);
                assert_eq!((ring.ages, ring.newest), (ages, newest / 3));
                assert_eq!(ring.most_age_since(i128::from(newest / 3) + 1), None);
            }
        }
    }

    #[test]
    fn windows_have_as_many_slices_as_there_may_be() {
        let with = |slices| check(&Window::new(254 * 255, slices, 1000, ClockSource::System).unwrap());
        assert_eq!(with(254), Ok(()));
        assert_eq!(with(255), Err(Error::out_of_range(Parameter::Slices, "from 1 to 254", 255)));
    }

    #[test]
    fn a_span_goes_no_further_back_than_the_window() {
        let window = Window::new(1000, 4, MOST_SLICES, ClockSource::System).unwrap();
        let of = |newest, slice| TagRing::new(window, newest).most_age_since(slice);
        assert_eq!([100, 99, 96, 95, 1].map(|slice| of(100, slice)), [0, 1, 4, 4, 4].map(Some));
        assert_eq!((of(100, 101), of(u64::MAX, 1)), (None, Some(4)));
        assert_eq!((of(u64::MAX, i128::MIN), of(0, i128::MAX)), (Some(4), None));
        // Slices before the Unix epoch have negative numbers and are treated like all others.
        assert_eq!([-4, -3, -2, -1, 0, 1].map(|slice| of(1, slice)), [4, 4, 3, 2, 1, 0].map(Some));
    }
}
