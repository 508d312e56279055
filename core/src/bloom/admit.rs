//! Letting items into a filter of either layout.

use super::filter::{BloomFilter, EitherChain};
use crate::admission::{Admission, Terms};
use crate::error::Error;
use crate::size_limit::SizeLimit;

impl BloomFilter {
    /// Adds those items that `terms` admit, in order, and tells of each what became of it.
    ///
    /// All memory is allocated before the first bit is set. A filter that does not scale refuses what it has no room for.
    /// A dry run tells the same, but for an item that only other items of the call would make known.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// use rollcall_core::admission::{Admission, Terms};
    ///
    /// # let params = Params { error_rate: 0.001, capacity: 500, expansion: 2, seed: 0 };
    /// let mut contacts = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
    /// let terms = Terms { limit: 2, all: false, dry_run: false };
    /// let list = ["ann", "ben", "ann", "eve"];
    /// let told = contacts.admit(list.iter().map(|name| name.as_bytes()), terms, &Unlimited)?;
    /// assert_eq!(told, [Admission::Admitted, Admission::Admitted, Admission::Known, Admission::Refused]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// What keeps the filter from growing ([`Error::TooLarge`], [`Error::OutOfRange`]), [`Error::OutOfMemory`]. Nothing
    /// is changed then.
    pub fn admit<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a T>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let items = items.map(AsRef::as_ref);
        match &mut self.chain {
            EitherChain::Lines(filter) => filter.admit(items, terms, limit),
            EitherChain::Classic(filter) => filter.admit(items, terms, limit),
            EitherChain::Windowed(ring) => ring.admit(items, terms, None, limit).map(|(told, _)| told),
        }
    }
}

#[cfg(test)]
mod tests;
