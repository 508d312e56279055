//! The items that inputs choose from.

use std::collections::BTreeSet;

use rollcall_fuzz::input::{ITEMS, item};

/// Fuzz targets treat two numbers as two items. "299" once was both the number 299 and the hex digits of item 665.
#[test]
fn items_are_distinct() {
    assert_eq!((0..ITEMS).map(item).collect::<BTreeSet<_>>().len(), ITEMS);
}
