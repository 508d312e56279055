//! Values that can be stored, and partially loaded values.

use std::alloc::Layout;

use super::payload::Payload;
use crate::error::{Error, named};
use crate::size_limit::SizeLimit;

/// The size of the pieces in the digest of a partially loaded value, in bytes. Changing it changes the digest.
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

/// The format of the chunks after a header: with or without checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFormat {
    /// A piece of payload and its checksum.
    Checked {
        /// A number that changes whenever pieces that were read earlier would no longer fit later pieces.
        fingerprint: u64,
    },
    /// A piece of payload alone, as in RedisBloom's format.
    Plain,
}

/// A value that can be dumped and loaded: a [`Counter`](crate::counting::Counter) or a
/// [`BloomFilter`](crate::bloom::BloomFilter).
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

/// A value that can be stored, as a header and a payload or as the chunks of a dump. A server may save it on one thread
/// while another thread reads it.
pub trait Stored: Sized + Send + Sync + 'static {
    /// The type of the partially loaded value.
    type Partial: Partial<Value = Self>;

    /// The kind of the value in a file.
    const KIND: Kind;

    /// The header: all fields of the value, and also a small payload. A header is less than 64 KiB, so a failure of its
    /// allocation is not handled.
    fn header(&self) -> Vec<u8>;

    /// The payload outside the header. It is empty if the payload is inline in the header.
    fn payload(&self) -> Payload<'_>;

    /// The format of the chunks.
    fn chunk_format(&self) -> ChunkFormat;

    /// The newest slice that the value has reached; 0 for a value without slices. A dump by `SCANDUMP` ends with an
    /// error once this number changes.
    fn stamp(&self) -> u64 {
        0
    }

    /// Visits bytes that are equal for two values if and only if the values are equal. They cover everything that is
    /// stored, and do not depend on the order of insertion.
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.header());
        self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
    }

    /// Overwrites a part of the payload with the piece that `SCANDUMP` returned together with the iterator `next`.
    /// RedisBloom does the same, in any order of chunks. This method is only for chunks that another server has already
    /// accepted.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when no such chunk fits; on error nothing is changed.
    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        Err(no_chunk(next, chunk))
    }
}

/// The error for a chunk of a complete value.
pub(super) fn no_chunk(next: u64, chunk: &[u8]) -> Error {
    Error::corrupt("chunk", "none of a complete value", format_args!("{} bytes up to {next}", chunk.len()))
}

/// A partially loaded value, to which the bytes of its payload are appended in order. Saved like [`Stored`].
pub trait Partial: Sized + Send + Sync + 'static {
    /// The type of the complete value.
    type Value: Stored<Partial = Self>;

    /// Reads a header and allocates the memory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the field that is wrong; [`Error::TooLarge`] or [`Error::OutOfMemory`]
    /// before anything was allocated.
    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// The header with which loading began. It is empty if the value was complete from the start.
    fn header(&self) -> &[u8];

    /// The format of the chunks.
    fn chunk_format(&self) -> ChunkFormat;

    /// The number of payload bytes that have been loaded.
    fn received_bytes(&self) -> u64;

    /// The number of bytes in the whole payload outside the header. It is 0 if the payload is inline; the value is then
    /// complete from the start.
    fn total_bytes(&self) -> u64;

    /// The part of the payload that has been loaded.
    fn received(&self) -> Payload<'_>;

    /// Visits the loaded bytes, like [`Stored::digest`].
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(self.header());
        self.received().pieces(DIGEST_PIECE_BYTES).for_each(|(_, piece)| visit(&piece));
    }

    /// The memory to which the next `len` payload bytes will be written, or the first part of it; empty if unknown. A
    /// caller that pushes many bytes may first make this memory resident.
    fn next_memory(&self, _len: usize) -> &[u8] {
        &[]
    }

    /// Appends the next bytes of the payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when more `bytes` are passed than are missing, or when the payload is then complete but not
    /// valid. On error nothing is appended.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Takes the value out once the whole payload has been loaded. `self` must not be used afterwards.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes are missing; on error nothing is taken out.
    fn finish(&mut self) -> Result<Self::Value, Error>;

    /// Takes the value out, with zeros for all missing bytes. This is possible only for filters in RedisBloom's format,
    /// which are valid as soon as their header is read. For other values the result is `None`.
    fn finish_with_zeros(&mut self) -> Option<Self::Value> {
        None
    }

    /// Visits the layout of every heap allocation that the partially loaded value holds.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// A copy of the partially loaded value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_clone(&self) -> Result<Self, Error>;
}
