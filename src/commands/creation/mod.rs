//! Reads the parameters of new values from options and the configuration. Writes parameters as options for replicas and
//! the AOF.

pub(super) mod counters;
pub(super) mod filters;
