//! The server's API behind safe types. Nothing here knows of filters or counters.

pub mod alloc;
pub mod ffi;
pub mod reclaim;
pub mod version;
