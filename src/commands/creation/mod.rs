//! The parameters of new values: read from options and defaults, and written as words for replicas and the AOF.

pub(super) mod counters;
pub(super) mod filters;
