//! The data that sub-filters of either layout hold.

use super::super::bitmap::{Line, LineBitmap};
use crate::error::Error;
use crate::shared::Shared;
use crate::size_limit::{SizeLimit, array_bytes};

/// The bits of a sub-filter, the number of items that they represent, and the parameters shared with equal sub-filters.
///
/// Invariant: `num_items` is at most the number of bits that an item can set, since each counted item sets at least
/// one. So the sum over all sub-filters that fit in memory does not overflow.
#[derive(Debug, PartialEq)]
pub struct Store<P> {
    pub(in crate::bloom) bitmap: LineBitmap,
    pub(in crate::bloom) num_items: u64,
    pub(in crate::bloom) spec: Shared<P>,
}

impl<P> Store<P> {
    /// An empty store of `num_lines` lines. `limit` is asked whether a value of `held_bytes` may grow by the store.
    ///
    /// # Errors
    /// An error of `limit`, [`Error::OutOfMemory`].
    pub(in crate::bloom) fn new(
        spec: Shared<P>,
        num_lines: u64,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        limit.check(held_bytes, Self::bytes_for(num_lines))?;
        Ok(Store { spec, num_items: 0, bitmap: LineBitmap::zeroed(num_lines)? })
    }

    /// Bytes of a [`Store`] with `num_lines` lines, without its shared parameters.
    pub(in crate::bloom) fn bytes_for(num_lines: u64) -> u64 {
        array_bytes::<Line>(num_lines).saturating_add(size_of::<Self>() as u64)
    }

    /// A copy of the store.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        Ok(Store { spec: self.spec.clone(), num_items: self.num_items, bitmap: self.bitmap.try_clone()? })
    }
}
