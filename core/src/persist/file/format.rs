//! Constants of the file format. Changing any of them makes existing files unreadable.

use crate::stored::Kind;

/// The first bytes of a file.
pub(in crate::persist) const MAGIC: [u8; 8] = *b"RollCall";

/// The version of the format, which follows [`MAGIC`] in four bytes. All numbers are little-endian.
pub(super) const VERSION: u32 = 1;

/// The first byte of each record says what the record contains.
pub(super) mod tag {
    /// Begins a value, followed by its kind (1 byte), expiry (8), whether there is a key (1), length of the key (4),
    /// the key.
    pub(crate) const VALUE: u8 = 1;
    /// Begins a chunk, followed by its iterator (8 bytes), its length (4), its bytes.
    pub(crate) const CHUNK: u8 = 2;
    /// Ends a value, followed by the number of its chunks (8 bytes), and of their bytes (8).
    pub(crate) const VALUE_END: u8 = 3;
    /// Begins the last record of a file, followed by the number of values in the file (8 bytes).
    pub(crate) const FILE_END: u8 = 4;
}

/// In bytes: four times the largest chunk that any version of RedisBloom sends.
pub(super) const MAX_CHUNK_BYTES: usize = 64 << 20;

/// The largest key, in bytes, as in a server.
pub(super) const MAX_KEY_BYTES: usize = 512 << 20;

/// What a file has about a filter or counter besides its chunks.
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
    /// An entry without key and expiry, for a value that was on no server.
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
