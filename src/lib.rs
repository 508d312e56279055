//! Rollcall: counters of distinct members and Bloom filters, as a Redis/Valkey module and as a Rust library.

#[cfg(target_endian = "big")]
compile_error!("rollcall stores its bitmaps as little-endian words and has not been ported to big-endian machines");

pub mod bits;
pub mod bloom;
pub mod counting;
pub mod error;
pub mod hash;
pub mod limit;
pub mod persist;
#[cfg(feature = "module")]
mod redis;
