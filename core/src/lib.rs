//! Rollcall: counters of distinct members and Bloom filters, as a Redis/Valkey module and as a Rust library.
//!
//! - [`counting`]: a [`Counter`](counting::Counter) is exact and lists its members while it is small, and estimates
//!   within a stated error beyond.
//! - [`bloom`]: a [`ScalableFilter`](bloom::ScalableFilter) tells whether an item may have been added, or certainly
//!   was not.
//! - [`persist`]: both as bytes; what a server gives by `SCANDUMP` is read by [`persist::load`].
//!
//! The server glue is behind the feature `module`, which is on by default because it makes the module. An application
//! depends on the crate with `default-features = false` and gets the core alone.
//!
//! ```
//! use rollcall::bloom::{Params, ScalableFilter};
//! use rollcall::limit::Unlimited;
//!
//! let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
//! let mut filter = ScalableFilter::new(params, &Unlimited)?;
//! assert!(filter.add(b"ann", &Unlimited)?);
//! assert!(filter.may_contain(b"ann"));
//! # Ok::<(), rollcall::error::Error>(())
//! ```
//!
//! The repository's `docs/library.md` has more; `docs/design.md` explains the layouts and names the papers.

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

/// The examples of docs/library.md, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
pub struct LibraryPage;
