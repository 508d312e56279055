//! The parameters of new values: parsed from options, completed from the configuration, and written as options for
//! replicas and the AOF.

pub(super) mod counters;
pub(super) mod filters;
