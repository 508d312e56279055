//! Reads the parameters of new values from options. Writes them as options for replicas and the AOF.

pub(super) mod counters;
pub(super) mod filters;
