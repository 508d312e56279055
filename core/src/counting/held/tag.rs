//! The tag that a counter keeps with each member: nothing, or the slice in which the member was last added. The
//! container of members is generic over [`Tag`], so code that does not depend on time is written once.

use std::fmt::Debug;
use std::slice;

use crate::counting::held::ring::Ages;
use crate::error::Error;
use crate::window::Mark;

/// The tag of a member: `()` without a window, otherwise one byte.
pub(crate) trait Tag: Copy + Default + Eq + Debug + 'static {
    /// The bytes that the slice tag takes in front of an encoded member.
    const BYTES: usize;

    fn as_bytes(&self) -> &[u8];

    /// Splits the bytes of a member into the slice tag and the rest; `None` if there are too few bytes.
    fn split(record: &[u8]) -> Option<(Self, &[u8])>;

    /// The number that stands for this tag in a slot of a bitmap. Without a window it is 1.
    #[inline(always)]
    fn of_slot(self) -> u8 {
        self.as_bytes().first().copied().unwrap_or(Ages::PLAIN.newest)
    }

    /// The number of slices from the slice of the tag to the newest slice; 0 without a window.
    #[inline(always)]
    fn age(self, ages: Ages) -> u8 {
        ages.age(self.of_slot())
    }

    /// The tag of the slice with this age; `None` if that slice has expired.
    #[inline(always)]
    fn of_age(age: u8, ages: Ages) -> Option<Self> {
        let tag = (age <= ages.most_age).then(|| ages.tag(age))?;
        Self::split(&[tag]).map(|(tag, _)| tag)
    }

    /// Replaces the tag at the front of `record` by this tag, if this tag stands for a later slice.
    #[inline(always)]
    fn renew_in(self, record: &mut [u8], ages: Ages) -> Mark {
        match record.first_mut() {
            Some(own) if Self::BYTES > 0 => ages.renew(own, self.of_slot()),
            _ => Mark::Same,
        }
    }

    /// Checks that the slice of the tag has not expired.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    fn check(self, ages: Ages) -> Result<(), Error> {
        ages.check(self.of_slot())
    }
}

impl Tag for () {
    const BYTES: usize = 0;

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    #[inline(always)]
    fn split(record: &[u8]) -> Option<(Self, &[u8])> {
        Some(((), record))
    }
}

impl Tag for u8 {
    const BYTES: usize = 1;

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        slice::from_ref(self)
    }

    #[inline(always)]
    fn split(record: &[u8]) -> Option<(Self, &[u8])> {
        record.split_first().map(|(&tag, rest)| (tag, rest))
    }
}
