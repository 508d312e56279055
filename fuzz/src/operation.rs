//! A hook that is called after each operation of a sequence, so that the caller can measure its time.

use std::sync::OnceLock;

use crate::input::Input;

/// The function to call after each operation, if one is set.
pub static AFTER_OPERATION: OnceLock<fn()> = OnceLock::new();

/// The largest number of operations that one input runs.
const MOST_STEPS: usize = 16;

/// Runs operations until the input ends.
pub(crate) fn run(input: &mut Input<'_>, mut step: impl FnMut(&mut Input<'_>)) {
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            return;
        }
        step(input);
        if let Some(after) = AFTER_OPERATION.get() {
            after();
        }
    }
}
