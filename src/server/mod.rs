//! Safe types around the server's API. Nothing in this directory knows of filters or counters.

pub mod alloc;
pub mod api;
pub mod facts;
pub mod ffi;
pub mod metrics;
pub mod pages;
pub mod reclaim;
pub mod slot_import;
pub mod threads;
pub mod version;
