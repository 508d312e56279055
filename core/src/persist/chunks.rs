//! Dumps: a header, then the payload in chunks, for `SCANDUMP`, `LOADCHUNK` and rewritten AOFs.
//!
//! `SCANDUMP` returns each chunk with its iterator: 1 + the position in the payload at the end of the chunk
//! (docs/persistence.md#chunks). A small value has only a header, which contains the payload.
//!
//! When a new slice of a window begins, expired bytes are removed, and all later bytes get other positions. A dump must
//! then start again. So the iterators of a windowed value also have a stamp, which stands for the newest slice:
//!
//! | bits | what |
//! |---|---|
//! | 0 .. 43 | 1 + the position |
//! | 43 .. 53 | the stamp; 0 for a value without a window |
//!
//! All higher bits are 0, since some clients keep integers in doubles, which are exact up to 53 bits.

use std::borrow::Cow;

use crate::error::{Error, Limit};
use crate::hash::checksum;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::stored::payload::Payload;
use crate::stored::{ChunkFormat, Partial};

/// The largest chunk that `SCANDUMP` and a rewritten AOF have, in bytes. The server's main thread copies 1 MiB in about
/// 2 ms. Chunks of any size can be loaded.
pub(crate) const CHUNK_MAX_BYTES: usize = 1 << 20;

/// The length of the checksum at the end of a chunk, in bytes.
const CHECKSUM_BYTES: usize = 8;

/// The number of low bits of a `SCANDUMP` iterator, which have the position in the payload, up to 8 TiB.
const POSITION_BITS: u32 = 43;

/// The number of different stamps. A stamp, the high bits of a `SCANDUMP` iterator, shows whether the newest slice has
/// changed during a dump. Stamps repeat after this number of slices. If a dump pauses that long, only the checksum of
/// its next chunk shows that it must start again.
const STAMPS: u64 = (1 << (f64::MANTISSA_DIGITS - POSITION_BITS)) - 1;

/// The high bits of a `SCANDUMP` iterator, which encode the newest slice of the value .
fn stamp_bits(stamp: u64) -> u64 {
    if stamp == 0 { 0 } else { (1 + stamp % STAMPS) << POSITION_BITS }
}

/// A `SCANDUMP` iterator without the bits for the newest slice: 1 + the position in the payload.
pub fn unstamped(iterator: u64) -> u64 {
    iterator & ((1 << POSITION_BITS) - 1)
}

/// Whether `SCANDUMP` returns this iterator with a header.
pub fn is_header(iterator: u64) -> bool {
    unstamped(iterator) == 1
}

/// The checksum of a piece of payload, seeded with its position and the fingerprint of the value. A piece of another
/// value, of an older state or at a wrong position is rejected.
pub fn piece_checksum(piece: &[u8], position: u64, fingerprint: u64) -> u64 {
    checksum(piece, position.wrapping_add(fingerprint))
}

/// The largest number of payload bytes in a chunk.
fn max_piece(format: ChunkFormat) -> usize {
    CHUNK_MAX_BYTES - if format == ChunkFormat::Plain { 0 } else { CHECKSUM_BYTES }
}

/// The chunk of a dump with this piece of payload, and the number that `SCANDUMP` returns with it (its iterator).
///
/// # Errors
/// [`Error::OutOfMemory`].
fn chunk_of(piece: Cow<'_, [u8]>, position: u64, format: ChunkFormat) -> Result<(u64, Cow<'_, [u8]>), Error> {
    let next = position.saturating_add(piece.len() as u64).saturating_add(1);
    let ChunkFormat::Checked { fingerprint } = format else { return Ok((next, piece)) };
    let mut chunk = try_with_capacity(piece.len() + CHECKSUM_BYTES)?;
    chunk.extend_from_slice(&piece);
    chunk.extend_from_slice(&piece_checksum(&piece, position, fingerprint).to_le_bytes());
    Ok((next, Cow::Owned(chunk)))
}

/// The reply of `SCANDUMP` to `iterator`: the next iterator and a chunk. The first iterator is 0. The last reply is 0
/// and an empty chunk.
///
/// # Errors
/// [`Error::Stale`] if a slice has begun since the call that returned `iterator`, [`Error::OutOfMemory`], and
/// [`Error::TooLarge`] for a windowed value of more than 8 TiB.
pub fn scandump<T: Value>(value: &T, iterator: u64) -> Result<(u64, Cow<'_, [u8]>), Error> {
    let stamp = stamp_bits(value.newest_slice().unwrap_or(0));
    if iterator == 0 {
        return Ok((1 | stamp, Cow::Owned(value.header())));
    }
    let position = match unstamped(iterator) {
        _ if stamp == 0 => iterator - 1,
        own if own | stamp == iterator => own.saturating_sub(1),
        _ => return Err(Error::Stale { iterator }),
    };
    let format = value.chunk_format();
    let piece = value.payload().piece(position, max_piece(format));
    if piece.is_empty() {
        return Ok((0, piece));
    }
    let (next, chunk) = chunk_of(piece, position, format)?;
    if stamp != 0 && next != unstamped(next) {
        return Err(Error::TooLarge { needed_bytes: next, limit_bytes: 1 << POSITION_BITS, limit: Limit::Value });
    }
    Ok((next | stamp, chunk))
}

/// `header`, then `payload` in chunks of at most [`CHUNK_MAX_BYTES`], each with its iterator.
fn chunks<'a>(
    header: Cow<'a, [u8]>,
    payload: Payload<'a>,
    format: ChunkFormat,
) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
    let pieces = payload.pieces(max_piece(format));
    let chunks = pieces.map(move |(position, piece)| chunk_of(piece, position, format));
    std::iter::once((1, header)).chain(chunks.map(|chunk| chunk.unwrap_or_else(|error| panic!("{error}"))))
}

/// The whole dump of a value: its header with iterator 1, then chunks of at most 1 MiB, each with its iterator.
///
/// # Panics
/// If memory for a chunk cannot be allocated.
pub fn dump<T: Value>(value: &T) -> impl Iterator<Item = (u64, Cow<'_, [u8]>)> {
    chunks(Cow::Owned(value.header()), value.payload(), value.chunk_format())
}

/// The dump of a partially loaded value: its header, then the loaded part of its payload.
///
/// # Panics
/// If memory for a chunk cannot be allocated.
pub fn dump_partial<L: Partial>(partial: &L) -> impl Iterator<Item = (u64, Cow<'_, [u8]>)> {
    chunks(Cow::Borrowed(partial.header()), partial.received(), partial.chunk_format())
}

/// Appends a chunk to a partially loaded value. `next` is the iterator that `SCANDUMP` returned with the chunk.
///
/// # Errors
/// [`Error::Corrupt`] if the chunk is not the next chunk or is damaged. On error nothing is appended.
pub fn push_chunk<L: Partial>(partial: &mut L, next: u64, chunk: &[u8]) -> Result<(), Error> {
    let position = partial.received_bytes();
    let (own_next, piece, sum) = match partial.chunk_format() {
        ChunkFormat::Plain => (next, chunk, None),
        ChunkFormat::Checked { fingerprint } => match chunk.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((piece, sum)) => (unstamped(next), piece, Some((fingerprint, u64::from_le_bytes(*sum)))),
            None => return Err(Error::corrupt("chunk length", "more than 8 bytes", chunk.len())),
        },
    };
    let expected_next = position.checked_add(piece.len() as u64).and_then(|end| end.checked_add(1));
    let is_next = !piece.is_empty() && expected_next == Some(own_next);
    let expected = format_args!("{} for a chunk of {} bytes", expected_next.unwrap_or(0), chunk.len());
    Error::check_field(is_next, "iterator", expected, next)?;
    if let Some((fingerprint, sum)) = sum {
        check_piece(piece, position, fingerprint, sum)?;
    }
    partial.push(piece)
}

/// Checks a piece of payload against the checksum `sum`.
///
/// # Errors
/// [`Error::Corrupt`] if the checksum differs.
pub(super) fn check_piece(piece: &[u8], position: u64, fingerprint: u64, sum: u64) -> Result<(), Error> {
    let own = piece_checksum(piece, position, fingerprint);
    let expected = format_args!("{own:#018x} at byte {position}");
    Error::check_field(own == sum, "payload checksum", expected, format_args!("{sum:#018x}"))
}

/// Loads a value from the chunks of its dump, each with the iterator that `SCANDUMP` returned with it. So an
/// application can read a filter from a server and query it in its own process.
///
/// Damaged chunks are rejected, except for RedisBloom-compatible filters: their chunks have no checksums, so only the
/// order and the sizes are checked.
///
/// ```
/// use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
/// use rollcall_core::error::Error;
/// use rollcall_core::persist;
/// use rollcall_core::size_limit::{MaxBytes, Unlimited};
///
/// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
/// let filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
/// let mut chunks: Vec<_> = persist::dump(&filter).collect();
/// let copy: BloomFilter = persist::load(chunks.clone(), &MaxBytes(1 << 20))?;
/// assert!(copy == filter);
///
/// chunks[0].1.to_mut()[7] ^= 1;
/// let damaged = persist::load::<BloomFilter, _>(chunks, &MaxBytes(1 << 20));
/// assert!(matches!(damaged, Err(Error::Corrupt { .. })));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::Corrupt`] names the wrong field. Other errors are [`Error::TooLarge`] and [`Error::OutOfMemory`].
pub fn load<T: Value, C: AsRef<[u8]>>(
    chunks: impl IntoIterator<Item = (u64, C)>,
    limit: &impl SizeLimit,
) -> Result<T, Error> {
    let mut chunks = chunks.into_iter();
    let (_, header) = chunks.next().ok_or_else(|| Error::corrupt("dump", "a header", "nothing"))?;
    let mut partial = T::Partial::begin(header.as_ref(), limit)?;
    for (next, chunk) in chunks {
        push_chunk(&mut partial, next, chunk.as_ref())?;
    }
    partial.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a value without a window has the high bits 0. A double holds every iterator exactly.
    #[test]
    fn every_stamp_but_0_shows_in_iterators_that_doubles_hold() {
        assert_eq!(stamp_bits(0), 0);
        for stamp in [1, 2, STAMPS - 1, STAMPS, STAMPS + 1, 2 * STAMPS, u64::MAX] {
            let bits = stamp_bits(stamp);
            assert!(bits != 0 && unstamped(bits) == 0 && bits < 1 << f64::MANTISSA_DIGITS, "{stamp}: {bits}");
            assert_ne!(bits, stamp_bits(stamp - 1));
        }
    }
}
