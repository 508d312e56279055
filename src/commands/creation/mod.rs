//! The parameters of new values, from options and the configuration, and as options for replicas and the AOF.

pub(super) mod counters;
pub(super) mod filters;
