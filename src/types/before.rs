//! Records of values before a change in place, so that the [`totals`](super::totals) stay right.

use super::family::Family;
use super::totals::{ITEMS, ValueShare};

/// A value's share of the totals, recorded before a command changes the value in place.
#[must_use]
pub enum Before {
    /// The command can change only bits and the number of items, so no share is recorded.
    InPlace,
    Share(ValueShare),
    /// The value is in no key yet, so the totals do not include it. Its events are counted all the same.
    New(ValueShare),
}

impl Before {
    /// Records `value` before `additions` items are added.
    #[inline(always)]
    pub fn adding<T: Family>(value: &T, additions: usize) -> Self {
        if value.takes_in_place(additions) { Before::InPlace } else { Before::any(value) }
    }

    /// Records `value` before a change of any kind.
    #[inline(never)]
    pub fn any<T: Family>(value: &T) -> Self {
        Before::Share(value.share())
    }

    /// Records a new `value` that is stored in a key only after it is filled.
    pub fn creating<T: Family>(value: &T) -> Self {
        Before::New(value.share())
    }

    /// Updates the totals after `new` items were added.
    #[inline(always)]
    pub fn added<T: Family>(self, value: &T, new: u64) {
        match self {
            Before::InPlace if T::COUNTS_ITEMS && new > 0 => ITEMS.add(new),
            Before::InPlace => {}
            Before::Share(before) => becomes(&before, value),
            Before::New(before) => before.count_events(&value.share()),
        }
    }

    /// Updates the totals after a change.
    pub fn changed<T: Family>(self, value: &T) {
        self.added(value, 0);
    }
}

/// The update of the totals, out of line so that the hot path stays small.
#[inline(never)]
fn becomes<T: Family>(before: &ValueShare, value: &T) {
    before.becomes(&value.share());
}
