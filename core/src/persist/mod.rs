//! How values are stored: one format for RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs.
//!
//! A stored value is a **header**, which tells everything about it but its bits or members, and a **payload**,
//! those bits or members end to end, cut into pieces that never span two bitmaps.
//!
//! | way out | header | payload | room |
//! |---|---|---|---|
//! | RDB, DUMP | a string | its length, then pieces, each with a checksum | [`rdb`] |
//! | SCANDUMP, AOF | chunk 1 | chunks: a piece, then its checksum | [`dump`] |
//!
//! Numbers are little-endian. A header begins with four letters of magic and a version byte, and ends with the XXH3-64 of
//! all before ([`crate::hash::checksum`] at position 0). The byte tables of the two headers stand in [`bloom`] and
//! [`counting`].
//!
//! Filters of RedisBloom's layout are stored as RedisBloom stores them, everywhere ([`redisbloom`]): their header has no
//! magic, and their chunks no checksum. [`filter`] tells the two apart. One that is still arriving is a value of ours with that header.
//!
//! Loading trusts nothing: lengths are compared before anything is allocated, what follows from the parameters
//! is computed again and compared, and what is wrong is named ([`Error::Corrupt`](crate::error::Error::Corrupt)).

mod bitmaps;
pub mod bloom;
mod chunks;
mod codec;
pub mod counting;
pub mod filter;
mod payload;
pub mod rdb;
pub mod redisbloom;
mod value;

pub use chunks::{CHUNK_MAX_BYTES, dump, dump_loading, load, piece_checksum, push_chunk, scandump};
pub use payload::Payload;
pub use value::{ChunkFormat, Loading, Stored};

/// Version byte that both headers are written with. Changing a header's layout means a new number.
pub const ENCODING_CURRENT: u8 = 1;

/// The oldest version byte that can still be read.
pub const ENCODING_OLDEST_READABLE: u8 = 1;
