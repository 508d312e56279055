//! Values as bytes: [`load`] reads what `SCANDUMP` returns, and [`dump`] makes what `LOADCHUNK` takes. [`to_bytes`] and
//! [`from_bytes`] are one value as one string of bytes, the same as a [file](mod@file) of it.
//!
//! # The format
//! One format serves RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs. The repository's
//! `docs/persistence.md` describes it for readers in other languages.
//!
//! A stored value is a **header** and a **payload**. The header has everything but the bits or members. The payload is
//! these bits or members end to end, cut into pieces that never span two bitmaps.
//!
//! | output | header | payload | module |
//! |---|---|---|---|
//! | RDB, DUMP | a string | unless inline: its length, then pieces, each with a checksum | `rdb.rs` |
//! | SCANDUMP, AOF | chunk 1 | unless inline, chunks: a piece, then its checksum | `chunks.rs` |
//!
//! A header begins with a byte for its kind and version, and ends with a checksum (`codec.rs`). It has a small payload
//! inline (`inline.rs`): such a value is its header. The fields of the headers stand in `bloom.rs`,
//! `windowed_filter.rs` and `counting.rs`.
//!
//! Classic filters are stored as RedisBloom stores them (`redisbloom.rs`): their header has neither kind nor checksum,
//! and their chunks have no checksum. `filter.rs` distinguishes the two formats. In RDB, a partially loaded classic
//! filter has our format around RedisBloom's header.
//!
//! Files (`file/`) have dumps of any number of values, between checksums of their own.
//!
//! Loading trusts nothing. Lengths are compared before anything is allocated. Fields that follow from the parameters
//! are computed again and compared. Errors name the wrong field ([`Error::Corrupt`](crate::error::Error::Corrupt)).

mod bitmaps;
pub(crate) mod bloom;
pub(crate) mod chunks;
mod codec;
pub(crate) mod counting;
pub mod file;
pub(crate) mod filter;
mod golomb_rice;
mod inline;
pub(crate) mod payload;
pub(crate) mod rdb;
pub(crate) mod redisbloom;
pub(crate) mod value;
mod windowed_filter;

pub use chunks::{dump, load, unstamped};
pub use file::{from_bytes, to_bytes};
pub use filter::has_window;
pub use value::Value;
