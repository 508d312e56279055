//! The layout of a file, as constants. Changing any of them makes existing files unreadable.

use crate::persist::value::Kind;

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 8] = *b"RollCall";

/// The version of the format, which follows the first bytes: four bytes, little-endian like all numbers.
pub(super) const VERSION: u32 = 1;

/// The first byte of a record, which says what the record is.
pub(super) mod tag {
    /// Tag of the record that begins a value: kind (1 byte), expiry (8), whether a key follows (1), its length (4), the
    /// key.
    pub(crate) const VALUE: u8 = 1;
    /// Tag of a chunk record: iterator (8), length (4), the bytes.
    pub(crate) const CHUNK: u8 = 2;
    /// Tag of the record that ends a value: its number of chunks (8), the number of their bytes (8).
    pub(crate) const VALUE_END: u8 = 3;
    /// Tag of the last record of a file. The record holds the number of values in the file, in 8 bytes.
    pub(crate) const FILE_END: u8 = 4;
}

/// The largest chunk, in bytes: four times the largest chunk that any version of RedisBloom sends.
pub(super) const MAX_CHUNK_BYTES: usize = 64 << 20;

/// The largest key, in bytes: servers have the same limit.
pub(super) const MAX_KEY_BYTES: usize = 512 << 20;

/// The entry of a value in a file: everything about it except its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the value.
    pub kind: Kind,
    /// The key of the value on a server; `None` for a value that was on no server.
    pub key: Option<Vec<u8>>,
    /// The time at which the value expires, in milliseconds since 1970, at least 1; `None` if it does not expire.
    pub expires_at: Option<u64>,
}

impl Entry {
    /// The entry of a value that was on no server, without key and expiry.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, Kind};
    ///
    /// assert_eq!(Entry::new(Kind::Filter).key, None);
    /// ```
    pub fn new(kind: Kind) -> Self {
        Entry { kind, key: None, expires_at: None }
    }
}
