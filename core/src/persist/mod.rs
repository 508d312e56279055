//! Values as bytes. [`load`] reads the chunks that `SCANDUMP` returns, and [`dump`] makes the chunks that `LOADCHUNK`
//! takes. [`to_bytes`] and [`from_bytes`] convert one value to and from a single byte string, which is a
//! [file](mod@file).
//!
//! # The format
//! One format serves RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs. The repository's
//! `docs/persistence.md` describes it for readers in other languages.
//!
//! A stored value is a **header** and a **payload**. The payload is the bits or members end to end, cut into pieces
//! that never span two bitmaps. The header has everything else.
//!
//! | output | header | payload | module |
//! |---|---|---|---|
//! | RDB, DUMP | a string | unless inline: its length, then pieces, each with a checksum | `rdb.rs` |
//! | SCANDUMP, AOF | chunk 1 | unless inline, chunks: a piece, then its checksum | `chunks.rs` |
//!
//! A header begins with a byte for its kind and version, and ends with a checksum (`codec.rs`). A small payload is
//! inline in the header (`inline.rs`), and then the value is only a header. `bloom.rs`, `windowed_filter.rs` and
//! `counting.rs` describe the fields of the headers.
//!
//! Classic filters are stored as RedisBloom stores them (`redisbloom.rs`): their header has neither kind nor checksum,
//! and their chunks have no checksum. `filter.rs` distinguishes the two formats. In RDB, a partially loaded classic
//! filter is RedisBloom's header within this module's own format.
//!
//! Files (`file/`) contain dumps of any number of values, between checksums of their own.
//!
//! Loading trusts no input. Lengths are checked before anything is allocated. Fields that follow from the parameters
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
