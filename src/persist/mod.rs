//! How values are stored: one format for RDB files, `DUMP` payloads, dumps by `SCANDUMP` and rewritten AOFs.
//!
//! A stored value is a **header**, which tells everything about it but its bits or members, and a **payload**,
//! those bits or members end to end, cut into pieces.
//!
//! | way out | header | payload |
//! |---|---|---|
//! | RDB, DUMP | one string | number of payload bytes and its checksum (unsigned both); then pieces of at most [`RDB_PIECE_BYTES`], each a string followed by its checksum (unsigned) |
//! | SCANDUMP, AOF | chunk 1 | chunks of at most [`CHUNK_MAX_BYTES`]: a piece, then its checksum in 8 bytes |
//!
//! Numbers are little-endian. Both headers begin with four letters of magic and a version byte, and end with
//! the XXH3-64 of all before ([`crate::hash::checksum`] at position 0). A piece's checksum is taken under its
//! position in the payload plus the value's [`Stored::shape`], so a piece of another value, of an older shape
//! of the same value, or in the wrong place does not pass.
//!
//! Filters in RedisBloom's layout are stored like this too, but `SCANDUMP` gives them in RedisBloom's own format, and
//! `LOADCHUNK` takes that ([`redisbloom`]): header and chunks without a checksum.
//!
//! A piece never spans two bitmaps. A value whose payload has not fully arrived (`LOADCHUNK`) is stored like
//! any other, with the payload bytes it has.
//!
//! Loading trusts nothing: lengths are compared before anything is allocated, what follows from the parameters
//! is computed again and compared, and what is wrong is named ([`Error::Corrupt`]). The byte tables of the two
//! headers stand in [`bloom`] and [`counting`].

mod bitmaps;
pub mod bloom;
pub mod classic;
mod codec;
pub mod counting;
mod payload;
pub mod redisbloom;

use std::alloc::Layout;

use crate::error::Error;
use crate::hash::checksum;
use crate::limit::SizeLimit;

pub use payload::Payload;

/// Version byte that both headers are written with. Changing a header's layout means a new number.
pub const ENCODING_CURRENT: u8 = 1;

/// The oldest version byte that can still be read.
pub const ENCODING_OLDEST_READABLE: u8 = 1;

/// Largest chunk of `SCANDUMP` and of a rewritten AOF, checksum included, bytes: what the server's thread copies in
/// about 2 ms. Loading takes chunks of any size.
pub const CHUNK_MAX_BYTES: usize = 1 << 20;

/// Largest piece of payload in an RDB value, bytes: the server compresses and copies strings whole, so this
/// bounds what saving or loading needs on top of the value.
pub const RDB_PIECE_BYTES: usize = 1 << 20;

/// Bytes of the checksum at the end of a header or chunk.
const CHECKSUM_BYTES: usize = 8;

/// Most bytes of payload in a chunk with a checksum.
const CHUNK_PAYLOAD_BYTES: usize = CHUNK_MAX_BYTES - CHECKSUM_BYTES;

/// A value that can be stored.
pub trait Stored: Sized + Send + 'static {
    /// The value while its payload arrives.
    type Loading: Loading<Value = Self>;

    /// Everything but the payload.
    fn header(&self) -> Vec<u8>;

    /// The payload.
    fn payload(&self) -> Payload<'_>;

    /// A number that changes whenever earlier pieces of the payload would no longer fit later ones.
    fn shape(&self) -> u64;

    /// What `SCANDUMP` gives for `iterator`, which is 0 at the start: the next iterator and a chunk; 0 and nothing at
    /// the end.
    fn scandump(&self, iterator: u64) -> (u64, Vec<u8>) {
        match iterator.checked_sub(1) {
            None => (1, self.header()),
            Some(position) => match chunk_at(&self.payload(), self.shape(), position) {
                Some(chunk) => (iterator.saturating_add(chunk_payload_bytes(chunk.len())), chunk),
                None => (0, Vec::new()),
            },
        }
    }

    /// Writes the piece of payload that `SCANDUMP` gave together with the iterator `next` over what stands there, as
    /// RedisBloom does whatever has come before: only for chunks that were acknowledged elsewhere.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where no such chunk fits; nothing is changed then.
    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        Err(Error::corrupt("chunk", "none of a complete value", format_args!("{} bytes up to {next}", chunk.len())))
    }
}

/// How the chunks after a header come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFormat {
    /// A piece of payload and its checksum.
    Checked,
    /// A piece of payload alone: RedisBloom's.
    Plain,
}

/// A value whose payload is arriving, in order.
pub trait Loading: Sized + Send + 'static {
    /// What it becomes.
    type Value: Stored<Loading = Self>;

    /// Reads a header and sets the memory aside.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the field that is wrong; [`Error::TooLarge`] or [`Error::OutOfMemory`]
    /// before anything was allocated.
    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// The header it began with.
    fn header(&self) -> &[u8];

    /// As [`Stored::shape`].
    fn shape(&self) -> u64;

    /// Payload bytes that have arrived.
    fn received_bytes(&self) -> u64;

    /// Payload bytes there will be.
    fn total_bytes(&self) -> u64;

    /// The payload so far.
    fn received(&self) -> Payload<'_>;

    /// The memory that the next `len` bytes of the payload will be written to, or the first part of it, where that is
    /// known: whoever pushes many bytes may make it resident first.
    fn next_memory(&self, _len: usize) -> &[u8] {
        &[]
    }

    /// How its chunks come.
    fn chunk_format(&self) -> ChunkFormat {
        ChunkFormat::Checked
    }

    /// Takes the next bytes of the payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they are more than are missing, or when they are the last and all together make no
    /// value; nothing was taken then.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Takes the value out, once all has arrived; nothing useful is left behind.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes are missing; nothing was taken then.
    fn finish(&mut self) -> Result<Self::Value, Error>;

    /// Takes the value out with zeros for all that is missing; `None` unless its chunks are RedisBloom's, where a filter
    /// is one from its header on.
    fn finish_with_zeros(&mut self) -> Option<Self::Value> {
        None
    }

    /// Visits the layout of every allocation held.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_clone(&self) -> Result<Self, Error>;
}

/// The checksum of a piece of a value of this shape.
pub fn piece_checksum(piece: &[u8], position: u64, shape: u64) -> u64 {
    checksum(piece, position.wrapping_add(shape))
}

/// A chunk of `SCANDUMP`: the piece at `position`, then its checksum. `None` at the end of the payload.
pub fn chunk_at(payload: &Payload<'_>, shape: u64, position: u64) -> Option<Vec<u8>> {
    let piece = payload.piece(position, CHUNK_PAYLOAD_BYTES);
    (!piece.is_empty()).then(|| chunk(&piece, shape, position))
}

/// The piece at `position`, then its checksum.
fn chunk(piece: &[u8], shape: u64, position: u64) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(piece.len() + CHECKSUM_BYTES);
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(&piece_checksum(piece, position, shape).to_le_bytes());
    chunk
}

/// Payload bytes in a chunk of `chunk_bytes` bytes.
pub fn chunk_payload_bytes(chunk_bytes: usize) -> u64 {
    chunk_bytes.saturating_sub(CHECKSUM_BYTES) as u64
}

/// The checksum of the number of payload bytes in an RDB value: a number changed on the way would otherwise make
/// a complete value an incomplete one.
pub fn length_checksum(payload_bytes: u64, shape: u64) -> u64 {
    piece_checksum(&payload_bytes.to_le_bytes(), payload_bytes, shape)
}

/// Takes the chunk that `SCANDUMP` gave together with the iterator `next` (1 + the position after the chunk).
///
/// # Errors
/// [`Error::Corrupt`] when it is not the chunk that comes next, or is damaged; nothing was taken then.
pub fn push_chunk<L: Loading>(loading: &mut L, next: u64, chunk: &[u8]) -> Result<(), Error> {
    let (piece, sum) = match loading.chunk_format() {
        ChunkFormat::Plain => (chunk, None),
        ChunkFormat::Checked => match chunk.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((piece, sum)) => (piece, Some(u64::from_le_bytes(*sum))),
            None => return Err(Error::corrupt("chunk length", "more than 8 bytes", chunk.len())),
        },
    };
    let position = loading.received_bytes();
    let expected_next = position.checked_add(piece.len() as u64).and_then(|end| end.checked_add(1));
    if piece.is_empty() || expected_next != Some(next) {
        return Err(Error::corrupt(
            "iterator",
            format_args!("{} for a chunk of {} bytes", expected_next.unwrap_or(0), chunk.len()),
            next,
        ));
    }
    if let Some(sum) = sum {
        check_piece(loading, piece, sum)?;
    }
    loading.push(piece)
}

/// Compares the checksum of the piece that comes next.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn check_piece<L: Loading>(loading: &L, piece: &[u8], sum: u64) -> Result<(), Error> {
    let expected = piece_checksum(piece, loading.received_bytes(), loading.shape());
    if expected != sum {
        let position = loading.received_bytes();
        return Err(Error::corrupt(
            "payload checksum",
            format_args!("{expected:#018x} at byte {position}"),
            format_args!("{sum:#018x}"),
        ));
    }
    Ok(())
}

/// What has arrived of a value, as the chunks that it takes to load that again: for a rewritten AOF.
pub fn dump_loading<L: Loading>(loading: &L) -> impl Iterator<Item = (u64, Vec<u8>)> {
    chunks(loading.header().to_vec(), loading.received(), loading.shape(), loading.chunk_format())
}

/// The whole dump of a value: its header with iterator 1, then its chunks, each with the iterator after it.
pub fn dump<T: Stored>(value: &T) -> impl Iterator<Item = (u64, Vec<u8>)> {
    chunks(value.header(), value.payload(), value.shape(), ChunkFormat::Checked)
}

/// A header and all chunks after it.
fn chunks(
    header: Vec<u8>,
    payload: Payload<'_>,
    shape: u64,
    format: ChunkFormat,
) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let max_bytes = match format {
        ChunkFormat::Checked => CHUNK_PAYLOAD_BYTES,
        ChunkFormat::Plain => CHUNK_MAX_BYTES,
    };
    let chunks = payload.pieces(max_bytes).map(move |(position, piece)| {
        let next = position + piece.len() as u64 + 1;
        match format {
            ChunkFormat::Checked => (next, chunk(&piece, shape, position)),
            ChunkFormat::Plain => (next, piece.into_owned()),
        }
    });
    std::iter::once((1, header)).chain(chunks)
}

/// The value whose dump these chunks are, as `SCANDUMP` gave them: each with the iterator that came with it.
/// This is how an application takes a filter out of a server and asks it questions in its own process.
///
/// # Errors
/// [`Error::Corrupt`] naming what is wrong; [`Error::TooLarge`] and [`Error::OutOfMemory`].
pub fn load<T: Stored, C: AsRef<[u8]>>(
    chunks: impl IntoIterator<Item = (u64, C)>,
    limit: &impl SizeLimit,
) -> Result<T, Error> {
    let mut chunks = chunks.into_iter();
    let Some((_, header)) = chunks.next() else {
        return Err(Error::corrupt("dump", "a header", "nothing"));
    };
    let mut loading = T::Loading::begin(header.as_ref(), limit)?;
    for (next, chunk) in chunks {
        push_chunk(&mut loading, next, chunk.as_ref())?;
    }
    loading.finish()
}
