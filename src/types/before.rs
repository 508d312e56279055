//! Records what a value contributes to the totals for `INFO`, before a command changes the value in place. See
//! [`totals`](super::totals).

use super::family::Family;
use super::totals::{ITEMS, ValueShare};

/// What a value contributed to the totals for `INFO` before a command changed the value in place.
#[must_use]
pub enum Before {
    /// Nothing is recorded, because the command can change only bits and the number of items.
    InPlace,
    Share(ValueShare),
    /// The value is not in a key yet, so the totals do not include it. Only its promotions and growths are counted.
    New(ValueShare),
}

impl Before {
    /// Records what `value` contributes before `additions` items are added to it.
    #[inline(always)]
    pub fn adding<T: Family>(value: &T, additions: usize) -> Self {
        if value.takes_in_place(additions) { Before::InPlace } else { Before::any(value) }
    }

    /// Records what `value` contributes before a change of any kind.
    #[inline(never)]
    pub fn any<T: Family>(value: &T) -> Self {
        Before::Share(value.share())
    }

    /// Records what a new `value` would contribute, before it is filled with items and stored in a key.
    pub fn creating<T: Family>(value: &T) -> Self {
        Before::New(value.share())
    }

    /// Updates the totals after items were added, of which `new` items were new.
    #[inline(always)]
    pub fn added<T: Family>(self, value: &T, new: u64) {
        match self {
            Before::InPlace if T::COUNTS_ITEMS && new > 0 => ITEMS.add(new),
            Before::InPlace => {}
            Before::Share(before) => becomes(&before, value),
            Before::New(before) => before.count_events(&value.share()),
        }
    }

    /// Updates the totals after any change other than an addition.
    pub fn changed<T: Family>(self, value: &T) {
        self.added(value, 0);
    }
}

/// Updates the totals: subtracts the contribution `before` and adds the present contribution of `value`. Not inlined,
/// to keep the code of frequent commands small.
#[inline(never)]
fn becomes<T: Family>(before: &ValueShare, value: &T) {
    before.becomes(&value.share());
}
