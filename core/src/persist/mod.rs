//! Filters and counters ("values") as bytes. [`load`] reads the chunks that `SCANDUMP` returns, and [`dump`] makes the
//! chunks that `LOADCHUNK` takes. [`to_bytes`] converts a value to a single byte string, which is a [file](mod@file).
//! [`from_bytes`] reads such a string, and what a server's `DUMP` returns.
//!
//! # A value in any store
//! Without the module, a value can be stored as bytes in any store that has a version (or ETag) for each entry. Several
//! writers can then merge their counters or filters into it. See the repository's `docs/without-the-module.md`.
//!
//! ```
//! use rollcall_core::counting::Counter;
//! use rollcall_core::persist::{self, file::FileError};
//! use rollcall_core::size_limit::MaxBytes;
//! use rollcall_core::window::Time;
//!
//! const LIMIT: MaxBytes = MaxBytes(16 << 20);
//!
//! /// Adds `collected` to the stored counter. `write_if_unchanged` writes only if the version is still the one that
//! /// `read` returned, and returns whether it did.
//! fn merge(
//!     collected: &Counter,
//!     mut read: impl FnMut() -> (u64, Option<Vec<u8>>),
//!     mut write_if_unchanged: impl FnMut(u64, Vec<u8>) -> bool,
//! ) -> Result<(), FileError> {
//!     loop {
//!         let (version, bytes) = read();
//!         let merged = match bytes {
//!             Some(bytes) => {
//!                 let mut stored: Counter = persist::from_bytes(&bytes, &LIMIT)?;
//!                 stored.live(Time::Reached).merge(&[collected], &LIMIT)?;
//!                 stored
//!             }
//!             None => collected.clone(),
//!         };
//!         if write_if_unchanged(version, persist::to_bytes(&merged)?) {
//!             return Ok(());
//!         }
//!     }
//! }
//! # use std::cell::RefCell;
//! # // At the first attempt, another writer is faster.
//! # let rival: Counter = ["cem"].into_iter().collect();
//! # let store = RefCell::new((0, None));
//! # let mut times = 0;
//! # merge(&["ann", "ben"].into_iter().collect(), || store.borrow().clone(), |version, bytes| {
//! #     times += 1;
//! #     if times == 1 {
//! #         *store.borrow_mut() = (1, Some(persist::to_bytes(&rival).unwrap()));
//! #     }
//! #     let is_unchanged = store.borrow().0 == version;
//! #     if is_unchanged {
//! #         *store.borrow_mut() = (version + 1, Some(bytes));
//! #     }
//! #     is_unchanged
//! # })?;
//! # let stored: Counter = persist::from_bytes(store.borrow().1.as_ref().unwrap(), &LIMIT)?;
//! # assert_eq!((stored.count(), times), (3, 2));
//! # Ok::<(), FileError>(())
//! ```
//!
//! # The format
//! RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs use one format. The repository's
//! `docs/persistence.md` describes it for readers in other languages.
//!
//! A stored value is a **header** and a **payload**. The payload has all bits or all members, cut into pieces. No piece
//! has bits of two bitmaps. The header has everything else.
//!
//! | output | header | payload | module |
//! |---|---|---|---|
//! | RDB, DUMP | a string | its length, then pieces, each with a checksum | `rdb.rs`, `dump_payload.rs` |
//! | SCANDUMP, AOF | chunk 1 | further chunks, each a piece and its checksum | `chunks.rs` |
//!
//! A header begins with a byte for its kind and version, and ends with a checksum (`stored/codec.rs`). A small payload
//! is a part of the header (`stored/inline.rs`). `bloom/filter/stored/lines.rs` and `counting/stored.rs` write and read
//! the fields of the headers.
//!
//! RedisBloom-compatible filters are stored as RedisBloom stores them (`bloom/filter/stored/redisbloom.rs`), without
//! kind and checksums. A partially loaded RedisBloom-compatible filter is stored in RDB files as `rdb.rs` describes,
//! with RedisBloom's header.
//!
//! Files (`file/`) contain dumps of any number of values, and checksums of their own.
//!
//! Loading trusts no input. Lengths are checked before anything is allocated. Fields that follow from the parameters
//! are computed again and compared. Errors name the wrong field ([`Error::Corrupt`](crate::error::Error::Corrupt)).

pub(crate) mod bytes;
pub(crate) mod chunks;
mod dump_payload;
pub mod file;
pub(crate) mod rdb;

#[cfg(test)]
mod tests;

pub use bytes::{from_bytes, to_bytes};
pub use chunks::{dump, load};
