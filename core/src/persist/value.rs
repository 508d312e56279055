//! Filters and counters as values that can be stored, and loaded chunk by chunk.

use std::alloc::Layout;

use super::payload::Payload;
use crate::bloom::filter::BloomFilter;
use crate::error::{Error, named};
use crate::size_limit::SizeLimit;

/// The bytes of a partially loaded value enter its digest in pieces of this size. Another size would change the digest.
const DIGEST_PIECE_BYTES: usize = 1 << 20;

named! {
    /// The kind of a stored value. More kinds may be added.
    ///
    /// ```
    /// assert_eq!(rollcall_core::persist::file::Kind::Counter.name(), "counter");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Kind {
        /// A Bloom filter, of any layout, with or without a window.
        Filter = "filter",
        /// A counter, with or without a window.
        Counter = "counter",
    }
}

impl Kind {
    /// All kinds.
    #[doc(hidden)]
    pub const ALL: &[Kind] = &[Kind::Filter, Kind::Counter];

    /// The byte that represents the kind in a file.
    ///
    /// ```
    /// assert_eq!(rollcall_core::persist::file::Kind::Filter.byte(), b'F');
    /// ```
    #[doc(hidden)]
    pub fn byte(self) -> u8 {
        match self {
            Kind::Filter => b'F',
            Kind::Counter => b'C',
        }
    }
}

/// The format of the chunks of a dump: with or without checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFormat {
    /// A chunk is a piece of payload and its checksum.
    Checked {
        /// The seed of the checksums. A change of the value that makes earlier chunks of a dump unusable changes the
        /// seed too, so these chunks are rejected.
        fingerprint: u64,
    },
    /// A piece of payload without a checksum, as in RedisBloom's format.
    Plain,
}

/// A value that can be dumped and loaded: a [`Counter`](crate::counting::Counter) or a
/// [`BloomFilter`].
///
/// The trait is for functions that are generic over both types:
///
/// ```
/// use rollcall_core::error::Error;
/// use rollcall_core::persist::{self, Value};
/// use rollcall_core::size_limit::MaxBytes;
///
/// /// Reads a value from a file that has the chunks of its dump, each after its iterator and its length.
/// fn read<T: Value>(mut file: &[u8]) -> Result<T, Error> {
///     let chunks = std::iter::from_fn(|| {
///         let (next, rest) = file.split_first_chunk()?;
///         let (len, rest) = rest.split_first_chunk()?;
///         let (chunk, rest) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
///         file = rest;
///         Some((u64::from_le_bytes(*next), chunk))
///     });
///     persist::load(chunks, &MaxBytes(1 << 30))
/// }
///
/// assert!(matches!(read::<rollcall_core::counting::Counter>(b""), Err(Error::Corrupt { .. })));
/// ```
pub trait Value: Stored {}

impl<T: Stored> Value for T {}

/// A value that can be stored, either as a header and a payload or as the chunks of a dump. A server may save it on one
/// thread while another thread reads it.
pub trait Stored: Sized + Send + Sync + 'static {
    /// The type of a partially loaded value.
    type Partial: Partial<Value = Self>;

    /// The kind of the value: filter or counter.
    const KIND: Kind;

    /// The value that a filter of RedisBloom's data type is; `None` for counters, since RedisBloom has none.
    fn from_classic(_filter: BloomFilter) -> Option<Self> {
        None
    }

    /// All fields of the value, and its payload if this is small. A header has less than 64 KiB, so a failed allocation
    /// is not handled.
    fn header(&self) -> Vec<u8>;

    /// The part of the payload outside the header; empty if the header contains the payload.
    fn payload(&self) -> Payload<'_>;

    /// The format of the chunks of a dump: with or without checksums.
    fn chunk_format(&self) -> ChunkFormat;

    /// The number of the newest slice; 0 without a window. If it changes during a dump by `SCANDUMP`, the dump ends
    /// with an error.
    fn stamp(&self) -> u64 {
        0
    }

    /// Calls `visit` with bytes that are equal for two values if and only if the values are equal. They do not depend
    /// on the order in which items were added.
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.header());
        self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
    }

    /// Overwrites a part of the payload with a chunk and its `SCANDUMP` iterator `next`. Replicas need this, because a
    /// primary with RedisBloom accepts and replicates chunks for a complete filter, in any order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the value has no place for this chunk. On error nothing is changed.
    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        Err(no_chunk(next, chunk))
    }
}

/// The error for a chunk that is sent to a complete value.
pub(super) fn no_chunk(next: u64, chunk: &[u8]) -> Error {
    Error::corrupt("chunk", "none of a complete value", format_args!("{} bytes up to {next}", chunk.len()))
}

/// A partially loaded value, to which the bytes of its payload are appended in order.
pub trait Partial: Sized + Send + Sync + 'static {
    /// The type of the complete value.
    type Value: Stored<Partial = Self>;

    /// Reads a header and allocates the memory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the wrong field. [`Error::TooLarge`] and [`Error::OutOfMemory`] are returned before
    /// anything is allocated.
    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// The header of a value whose payload is loaded in chunks. Empty if the value needs no chunks, because its header
    /// contained all of it.
    fn header(&self) -> &[u8];

    /// The format of the chunks of a dump: with or without checksums.
    fn chunk_format(&self) -> ChunkFormat;

    /// The number of payload bytes that have been loaded.
    fn received_bytes(&self) -> u64;

    /// The number of payload bytes outside the header; 0 if the header contains the payload.
    fn total_bytes(&self) -> u64;

    /// The part of the payload that has been loaded.
    fn received(&self) -> Payload<'_>;

    /// Calls `visit` with the loaded bytes, as [`Stored::digest`] does.
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(self.header());
        self.received().pieces(DIGEST_PIECE_BYTES).for_each(|(_, piece)| visit(&piece));
    }

    /// The memory to which the next `len` payload bytes will be written, or its first part; empty if unknown. A caller
    /// may ask the kernel for these pages.
    fn next_memory(&self, _len: usize) -> &[u8] {
        &[]
    }

    /// Appends the next bytes of the payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` are too many, or if the complete payload is not valid. On error nothing is
    /// appended.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Takes zeros for all missing bytes. Only filters in RedisBloom's format, which are valid as soon as their header
    /// is read, allow this; other values stay as they are.
    fn fill_with_zeros(&mut self) {}

    /// The value, when the whole payload has been loaded.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if bytes are missing.
    fn finish(self) -> Result<Self::Value, Error>;

    /// Calls `visit` with the size and alignment of every heap allocation of the partially loaded value.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// Copies the partially loaded value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_clone(&self) -> Result<Self, Error>;
}
