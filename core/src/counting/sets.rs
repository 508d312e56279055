//! Questions over several counters.

pub(super) mod intersection;
mod merge_windows;
pub(super) mod union;
