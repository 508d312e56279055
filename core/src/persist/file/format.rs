//! The layout of a file, in its constants. A change of any of these makes files unreadable.

use crate::persist::value::Kind;

/// What a file begins with.
pub(super) const MAGIC: [u8; 8] = *b"RollCall";

/// The version after it, four bytes, little-endian as all numbers.
pub(super) const VERSION: u32 = 1;

/// The first byte of a record.
pub(super) mod tag {
    /// A value begins: kind (1 byte), expiry (8), whether there is a key (1), its length (4) and the key if so.
    pub(crate) const VALUE: u8 = 1;
    /// A chunk: iterator (8), length (4), the bytes.
    pub(crate) const CHUNK: u8 = 2;
    /// A value ends: its chunks (8), the sum of their bytes (8).
    pub(crate) const VALUE_END: u8 = 3;
    /// The file ends: its values (8). Nothing follows.
    pub(crate) const FILE_END: u8 = 4;
}

/// Largest chunk, bytes: four times what any version of RedisBloom sends.
pub(super) const MAX_CHUNK_BYTES: usize = 64 << 20;

/// Largest key, bytes: what servers take.
pub(super) const MAX_KEY_BYTES: usize = 512 << 20;

/// A value in a file, without its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// The key it had on a server.
    pub key: Option<Vec<u8>>,
    /// When it goes, in milliseconds since 1970; at least 1.
    pub expires_at: Option<u64>,
}

impl Entry {
    /// Of a value that no server had.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, Kind};
    ///
    /// assert_eq!(Entry::of(Kind::Filter).key, None);
    /// ```
    pub fn of(kind: Kind) -> Self {
        Entry { kind, key: None, expires_at: None }
    }
}
