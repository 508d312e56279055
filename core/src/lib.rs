//! Rollcall's core: counters of distinct members and Bloom filters. The Redis and Valkey module of the same name is
//! built on this library.
//!
//! - [`counting`]: a [`Counter`](counting::Counter) counts distinct members. It is exact and lists its members while it
//!   is small. Later it estimates their number with a known standard error.
//! - [`bloom`]: a [`BloomFilter`](bloom::BloomFilter) answers whether an item may have been added, or certainly was
//!   not.
//! - [`admission`]: new items are added only while a filter or counter holds fewer items than a limit.
//! - [`live`]: changes of a filter or counter; with a window, at a given time.
//! - [`persist`]: filters and counters as bytes, to store or to send. [`persist::load`] reads the replies of a server
//!   to `SCANDUMP`.
//! - [`size_limit`]: how many bytes a filter or counter may take.
//! - [`set_table_key`]: protects a program against items that strangers choose.
//! - [`unstable`]: the interfaces that the server module is built on. **They may change in any release.**
//!
//! ```
//! use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
//! use rollcall_core::size_limit::Unlimited;
//! use rollcall_core::window::Time;
//!
//! let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
//! let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
//! assert!(filter.live(Time::Reached).add(b"ann", &Unlimited)?);
//! assert!(filter.may_contain(b"ann"));
//! # Ok::<(), rollcall_core::error::Error>(())
//! ```
//!
//! The repository's `docs/library.md` has more; `docs/design.md` explains the layouts and names the papers.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

#[cfg(target_endian = "big")]
compile_error!("rollcall stores its bitmaps as little-endian words and has not been ported to big-endian machines");

pub mod admission;
pub(crate) mod bits;
pub mod bloom;
pub mod counting;
pub mod error;
pub(crate) mod golomb_rice;
pub(crate) mod hash;
pub(crate) mod heap;
pub(crate) mod info;
pub mod live;
pub(crate) mod marks;
pub(crate) mod parallel;
pub mod persist;
pub(crate) mod shared;
pub mod size_limit;
pub(crate) mod stored;
pub mod unstable;
pub mod window;
pub(crate) mod wire;

pub use hash::set_table_key;

/// The examples of the crate's front page and of a page of the documents, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/library.md")]
pub struct Pages;
