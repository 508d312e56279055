//! The end of each operation of a sequence, for who times them.

use std::sync::OnceLock;

/// What is called after each operation, if anything is.
pub static AFTER_OPERATION: OnceLock<fn()> = OnceLock::new();

/// An operation is over.
pub(crate) fn is_over() {
    if let Some(after) = AFTER_OPERATION.get() {
        after();
    }
}
