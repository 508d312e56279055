//! The fuzz targets, one per file.

pub(crate) mod chunks;
pub(crate) mod counters;
pub(crate) mod filters;
pub(crate) mod payloads;
pub(crate) mod rdb;
pub(crate) mod redisbloom;
