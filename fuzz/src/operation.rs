//! A hook that is called after each operation of a sequence, so that the caller can measure its time.

use std::sync::OnceLock;

/// The function to call after each operation, if one is set.
pub static AFTER_OPERATION: OnceLock<fn()> = OnceLock::new();

/// Reports that an operation has ended.
pub(crate) fn is_over() {
    if let Some(after) = AFTER_OPERATION.get() {
        after();
    }
}
