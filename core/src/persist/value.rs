//! Values that can be stored, and partially loaded values.

use std::alloc::Layout;
use std::fmt;

use super::payload::Payload;
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// Size of the pieces for the digest of a partially loaded value, in bytes. Another size would make another digest.
const DIGEST_PIECE_BYTES: usize = 1 << 20;

/// The kind of a value. There may be more kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A Bloom filter, of any layout, with or without a window.
    Filter,
    /// A counter, with or without a window.
    Counter,
}

impl Kind {
    /// All kinds.
    pub const ALL: &[Kind] = &[Kind::Filter, Kind::Counter];

    /// The byte that represents the kind in a file.
    ///
    /// ```
    /// assert_eq!(rollcall_core::persist::file::Kind::Filter.byte(), b'F');
    /// ```
    pub fn byte(self) -> u8 {
        match self {
            Kind::Filter => b'F',
            Kind::Counter => b'C',
        }
    }

    /// The name of the kind, as users know it.
    ///
    /// ```
    /// assert_eq!(rollcall_core::persist::file::Kind::Counter.name(), "counter");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Kind::Filter => "filter",
            Kind::Counter => "counter",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of the chunks after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFormat {
    /// A piece of payload and its checksum.
    Checked {
        /// A number that changes whenever earlier pieces of the payload would no longer fit later ones.
        fingerprint: u64,
    },
    /// A piece of payload alone: RedisBloom's.
    Plain,
}

/// A value that can be dumped and loaded: a [`Counter`](crate::counting::Counter) or a
/// [`BloomFilter`](crate::bloom::BloomFilter).
///
/// For functions that are generic over both:
///
/// ```
/// use rollcall_core::error::Error;
/// use rollcall_core::persist::{self, Value};
/// use rollcall_core::size_limit::MaxBytes;
///
/// /// A value out of a file with the chunks of its dump, each after its iterator and its length.
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

/// A value that can be stored.
pub trait Stored: Sized + Send + 'static {
    /// The partially loaded value.
    type Loading: Loading<Value = Self>;

    /// The kind of the value in a file.
    const KIND: Kind;

    /// Everything except the payload, and the payload too when it is small. It is less than 64 KiB, so its allocation
    /// is not checked for failure.
    fn header(&self) -> Vec<u8>;

    /// The payload; empty when it is inline in the header.
    fn payload(&self) -> Payload<'_>;

    /// The format of the chunks.
    fn chunk_format(&self) -> ChunkFormat;

    /// The newest slice that the value has reached; 0 for a value without slices. A dump by `SCANDUMP` does not go on
    /// once it is another.
    fn stamp(&self) -> u64 {
        0
    }

    /// Visits bytes that are equal for two values if and only if the values are equal. They cover all that is stored,
    /// in an order that does not depend on the order of insertion.
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.header());
        self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
    }

    /// Overwrites payload with the piece that `SCANDUMP` returned together with the iterator `next`. RedisBloom does so
    /// whatever has come before. It is only for chunks that were acknowledged elsewhere.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where no such chunk fits; nothing is changed then.
    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        Err(Error::corrupt("chunk", "none of a complete value", format_args!("{} bytes up to {next}", chunk.len())))
    }
}

/// A partially loaded value: its payload is appended in order.
pub trait Loading: Sized + Send + 'static {
    /// The type of the complete value.
    type Value: Stored<Loading = Self>;

    /// Reads a header and allocates the memory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the field that is wrong; [`Error::TooLarge`] or [`Error::OutOfMemory`]
    /// before anything was allocated.
    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// The header that the loading began with. It is not kept of a value that was complete from the start.
    fn header(&self) -> &[u8];

    /// The format of the chunks.
    fn chunk_format(&self) -> ChunkFormat;

    /// Payload bytes that have been loaded.
    fn received_bytes(&self) -> u64;

    /// Payload bytes in all. 0 when the payload was inline in the header: then the value is complete from the start.
    fn total_bytes(&self) -> u64;

    /// The payload so far.
    fn received(&self) -> Payload<'_>;

    /// Visits the loaded bytes, like [`Stored::digest`].
    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(self.header());
        self.received().pieces(DIGEST_PIECE_BYTES).for_each(|(_, piece)| visit(&piece));
    }

    /// The memory that the next `len` bytes of the payload will be written to, or the first part of it. Empty where
    /// that is unknown. A caller that pushes many bytes may make it resident first.
    fn next_memory(&self, _len: usize) -> &[u8] {
        &[]
    }

    /// Takes the next bytes of the payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when `bytes` are more than are missing, or when they complete a payload that makes no value.
    /// Nothing was taken then.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Takes the value out once all its payload has been loaded. `self` is of no use afterwards.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes are missing; nothing was taken then.
    fn finish(&mut self) -> Result<Self::Value, Error>;

    /// Takes the value out with zeros for all missing bytes. `None` unless its chunks are RedisBloom's, where a filter
    /// is valid from its header on.
    fn finish_with_zeros(&mut self) -> Option<Self::Value> {
        None
    }

    /// Visits the layout of every allocation held.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// A copy of the partially loaded value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_clone(&self) -> Result<Self, Error>;
}
