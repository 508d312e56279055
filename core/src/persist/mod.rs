//! Values as bytes: what `SCANDUMP` gives is [`load`]ed, and [`dump`] gives what `LOADCHUNK` takes.
//!
//! # The format
//! There is one for RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs. The repository's
//! `docs/persistence.md` has it for readers of other languages.
//!
//! A stored value is a **header**, which tells everything about it but its bits or members, and a **payload**,
//! those bits or members end to end, cut into pieces that never span two bitmaps.
//!
//! | way out | header | payload | room |
//! |---|---|---|---|
//! | RDB, DUMP | a string | its length, then pieces, each with a checksum | `rdb.rs` |
//! | SCANDUMP, AOF | chunk 1 | chunks: a piece, then its checksum | `chunks.rs` |
//!
//! Numbers are little-endian. A header begins with four letters of magic and a version byte, and ends with the XXH3-64 of
//! all before, seeded with 0. The byte tables of the two headers stand in `bloom.rs` and `counting.rs`.
//!
//! Filters of RedisBloom's layout are stored as RedisBloom stores them, everywhere (`redisbloom.rs`): their header has no
//! magic, and their chunks no checksum. `filter.rs` tells the two apart. One that is still arriving is a value of ours with
//! that header.
//!
//! Loading trusts nothing: lengths are compared before anything is allocated, what follows from the parameters
//! is computed again and compared, and what is wrong is named ([`Error::Corrupt`](crate::error::Error::Corrupt)).

mod bitmaps;
pub(crate) mod bloom;
pub(crate) mod chunks;
mod codec;
pub(crate) mod counting;
pub(crate) mod filter;
pub(crate) mod payload;
pub(crate) mod rdb;
pub(crate) mod redisbloom;
pub(crate) mod value;

pub use chunks::{dump, load};
pub use value::Value;
