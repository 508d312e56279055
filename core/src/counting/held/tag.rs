//! The data that a counter keeps with each member or slot: nothing, or the slice in which it was last seen.
//!
//! In a counter without a window, tags take no bytes. The containers of members and of slots are generic over [`Tag`],
//! so code that does not depend on time is written once.

use std::fmt::Debug;
use std::slice;

use crate::counting::held::ring::Ages;
use crate::error::Error;
use crate::window::Mark;

/// The tag of a member or slot: `()` without a window, else one byte that names a slice.
pub(crate) trait Tag: Copy + Default + Eq + Debug + 'static {
    /// Bytes that the tag takes in a record.
    const BYTES: usize;
    /// What is needed to compute the age of a tag: above all, the newest slice of the window.
    type Ages: Copy + Debug;

    /// The age of the oldest live slice; 0 without a window.
    fn most_age(ages: Self::Ages) -> u8;

    /// The number of slices from the tag's slice to the newest one; 0 without a window.
    fn age(self, ages: Self::Ages) -> u8;

    /// The tag of the slice with this age; `None` if that slice has expired.
    fn of_age(age: u8, ages: Self::Ages) -> Option<Self>;

    /// The bytes of the tag, as they are stored.
    fn as_bytes(&self) -> &[u8];

    /// Splits a record into its tag and the rest; `None` if the record is too short.
    fn split(record: &[u8]) -> Option<(Self, &[u8])>;

    /// Replaces `before`, the tag of a member or slot, by this tag, if this tag is younger.
    #[inline(always)]
    fn renew(self, before: &mut Self, ages: Self::Ages) -> Mark {
        if *before == self || before.age(ages) <= self.age(ages) {
            return Mark::Same;
        }
        *before = self;
        Mark::Renewed
    }

    /// The same as [`Self::renew`], for the tag at the front of `record`.
    fn renew_in(self, record: &mut [u8], ages: Self::Ages) -> Mark;

    /// Checks that the tag is the tag of a live slice.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    fn check(self, ages: Self::Ages) -> Result<(), Error>;
}

impl Tag for () {
    const BYTES: usize = 0;
    type Ages = ();

    #[inline(always)]
    fn most_age((): ()) -> u8 {
        0
    }

    #[inline(always)]
    fn age(self, (): ()) -> u8 {
        0
    }

    #[inline(always)]
    fn of_age(_: u8, (): ()) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    #[inline(always)]
    fn split(record: &[u8]) -> Option<(Self, &[u8])> {
        Some(((), record))
    }

    #[inline(always)]
    fn renew_in(self, _: &mut [u8], (): ()) -> Mark {
        Mark::Same
    }

    #[inline(always)]
    fn check(self, (): ()) -> Result<(), Error> {
        Ok(())
    }
}

impl Tag for u8 {
    const BYTES: usize = 1;
    type Ages = Ages;

    #[inline(always)]
    fn most_age(ages: Ages) -> u8 {
        ages.most_age
    }

    #[inline(always)]
    fn age(self, ages: Ages) -> u8 {
        ages.age(self)
    }

    #[inline(always)]
    fn of_age(age: u8, ages: Ages) -> Option<u8> {
        (age <= ages.most_age).then(|| ages.tag(age))
    }

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        slice::from_ref(self)
    }

    #[inline(always)]
    fn split(record: &[u8]) -> Option<(Self, &[u8])> {
        record.split_first().map(|(&tag, rest)| (tag, rest))
    }

    #[inline(always)]
    fn renew_in(self, record: &mut [u8], ages: Ages) -> Mark {
        record.first_mut().map_or(Mark::Same, |before| self.renew(before, ages))
    }

    fn check(self, ages: Ages) -> Result<(), Error> {
        Error::check_field(ages.is_live(self), "tag", "that of a living slice", self)
    }
}
