//! What commands note when they change a value in place, so that the [`totals`](super::totals) stay right.

use super::family::Family;
use super::totals::{Share, items_become};

/// What a value held before a command that changes it in place.
#[must_use]
pub enum Before {
    /// Nothing but the number of items can change.
    Items(u64),
    Share(Share),
}

impl Before {
    /// Before so many items are added.
    #[inline]
    pub fn adding<T: Family>(value: &T, additions: usize) -> Self {
        match value.items_in_place(additions) {
            Some(items) => Before::Items(items),
            None => Before::any(value),
        }
    }

    /// Before any change.
    pub fn any<T: Family>(value: &T) -> Self {
        Before::Share(value.share())
    }

    /// Notes what the value holds now.
    #[inline]
    pub fn becomes<T: Family>(self, value: &T) {
        match self {
            Before::Items(before) => items_become(before, value.num_items()),
            Before::Share(before) => before.becomes(&value.share()),
        }
    }
}
