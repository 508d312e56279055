//! What the stored forms of filters and counters share: the codec of headers, payloads, and partially loaded values.

pub(crate) mod codec;
pub(crate) mod inline;
pub(crate) mod payload;

use std::alloc::Layout;

use payload::Payload;

use crate::error::{Error, named};
use crate::size_limit::SizeLimit;
use crate::wire::StillLoading;

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

/// The error for a chunk that is sent to a complete value.
pub(crate) fn no_chunk(next: u64, chunk: &[u8]) -> Error {
    Error::corrupt("chunk", "none of a complete value", format_args!("{} bytes up to {next}", chunk.len()))
}

/// A partially loaded value, to which the bytes of its payload are appended in order.
pub trait Partial: Sized + Send + Sync + 'static {
    /// The type of the complete value.
    type Value: Send;

    /// Reads a header and allocates the memory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the wrong field. [`Error::TooLarge`] and [`Error::OutOfMemory`] are returned before
    /// anything is allocated.
    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// Gives up the memory for the payload if [`push`](Self::push) has to store no bytes, because the value is only
    /// merged and its payload lies elsewhere. It must come before any `push`. Returns whether it does.
    fn set_apart(&mut self) -> bool {
        false
    }

    /// The header of a value whose payload is loaded in chunks. Empty if the value needs no chunks, because its header
    /// contained all of it.
    fn header(&self) -> &[u8];

    /// The format of the chunks of a dump: with or without checksums.
    fn chunk_format(&self) -> ChunkFormat;

    /// The number of payload bytes that have been loaded.
    fn received_bytes(&self) -> u64;

    /// How much of the payload has been loaded.
    fn progress(&self) -> StillLoading {
        StillLoading { received_bytes: self.received_bytes(), total_bytes: self.total_bytes() }
    }

    /// Whether the whole payload has been loaded.
    fn is_complete(&self) -> bool {
        self.received_bytes() == self.total_bytes()
    }

    /// The number of payload bytes outside the header; 0 if the header contains the payload.
    fn total_bytes(&self) -> u64;

    /// The part of the payload that has been loaded.
    fn received(&self) -> Payload<'_>;

    /// Calls `visit` with the loaded bytes, as [`Value::digest`](crate::live::Value::digest) does.
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

/// The destination of a value that is saved in RDB format.
pub trait Sink {
    /// Writes an unsigned number.
    fn unsigned(&mut self, value: u64);

    /// Writes a double.
    fn double(&mut self, value: f64);

    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}

/// The source of a value that is loaded from RDB format. Errors name the field.
pub trait Source {
    /// The bytes of a string.
    type Bytes: AsRef<[u8]>;

    /// Reads an unsigned number.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the next element is not an unsigned number.
    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error>;

    /// Reads a double.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the next element is not a double.
    fn double(&mut self, field: &'static str) -> Result<f64, Error>;

    /// Reads a string.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the next element is not a string.
    fn string(&mut self, field: &'static str) -> Result<Self::Bytes, Error>;
}
