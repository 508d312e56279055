//! Values in RDB files and `DUMP` payloads. [`Sink`] and [`Source`] stand for the server,
//! so that tests need none.
//!
//! A value in this library's own format is its header and, unless the payload is inline, the number of payload bytes,
//! the checksum of that number, and pieces with their checksums (docs/persistence.md#where-header-and-payload-go). The
//! number has a checksum, because a damaged number could make a complete value look incomplete.
//!
//! Complete filters in RedisBloom's layout are stored as RedisBloom stores them.

use super::chunks::{check_piece, piece_checksum};
use crate::bits;
use crate::error::Error;
use crate::hash::checksum;
use crate::live::Value;
use crate::size_limit::SizeLimit;
use crate::stored::codec::expect;
use crate::stored::payload::Payload;
use crate::stored::{ChunkFormat, Partial, Sink, Source};

/// The version number that the server stores with this module's RDB values. It changes only if the sequence of numbers
/// and strings changes. Headers have their own version.
pub const ENCODING: u32 = 1;

/// The largest piece of payload, in bytes. The server compresses and copies whole strings, so this limits the memory
/// that saving and loading need.
pub const PIECE_BYTES: usize = 1 << 20;

/// Writes a complete value to `sink`.
pub fn save<T: Value>(value: &T, sink: &mut impl Sink) {
    let (header, payload) = (value.header(), value.payload());
    if payload.is_empty() {
        return sink.string(&header);
    }
    save_parts(&header, payload, value.chunk_format(), sink);
}

/// Writes a partially loaded value to `sink`.
pub fn save_partial<L: Partial>(partial: &L, sink: &mut impl Sink) {
    save_parts(partial.header(), partial.received(), partial.chunk_format(), sink);
}

/// The seed of the checksums of the payload's pieces. A value in RedisBloom's format has no seed, so a hash of its
/// header serves as one.
fn fingerprint_of(format: ChunkFormat, header: &[u8]) -> u64 {
    match format {
        ChunkFormat::Checked { fingerprint } => fingerprint,
        ChunkFormat::Plain => checksum(header, 0),
    }
}

/// The checksum of the number of payload bytes.
fn length_checksum(payload_bytes: u64, fingerprint: u64) -> u64 {
    piece_checksum(&payload_bytes.to_le_bytes(), payload_bytes, fingerprint)
}

/// Writes a header, then the loaded part of the payload, which is all of it for a complete value.
fn save_parts(header: &[u8], payload: Payload<'_>, format: ChunkFormat, sink: &mut impl Sink) {
    let (payload_bytes, fingerprint) = (payload.len(), fingerprint_of(format, header));
    sink.string(header);
    sink.unsigned(payload_bytes);
    sink.unsigned(length_checksum(payload_bytes, fingerprint));
    for (position, piece) in payload.pieces(PIECE_BYTES) {
        sink.unsigned(piece_checksum(&piece, position, fingerprint));
        sink.string(&piece);
    }
}

/// Reads a complete or partially loaded value.
///
/// # Errors
/// [`Error::Corrupt`] names the wrong field. Also [`Error::TooLarge`] and [`Error::OutOfMemory`].
pub fn load<L: Partial>(source: &mut impl Source, limit: &impl SizeLimit) -> Result<L, Error> {
    load_apart(source, limit, None::<fn(_) -> _>)
}

/// Like [`load`]. With `keep`, a payload may stay apart: `keep` then gets its pieces.
pub(super) fn load_apart<L: Partial, S: Source>(
    source: &mut S,
    limit: &impl SizeLimit,
    keep: Option<impl FnMut(S::Bytes) -> Result<(), Error>>,
) -> Result<L, Error> {
    let header = source.string("header")?;
    let mut partial = L::begin(header.as_ref(), limit)?;
    if partial.total_bytes() == 0 {
        return Ok(partial);
    }
    let fingerprint = fingerprint_of(partial.chunk_format(), header.as_ref());
    let stored_bytes = source.unsigned("payload length")?;
    let sum = source.unsigned("payload length checksum")?;
    expect("payload length checksum", length_checksum(stored_bytes, fingerprint), sum)?;
    let most = partial.total_bytes();
    Error::check_field(stored_bytes <= most, "payload length", format_args!("at most {most}"), stored_bytes)?;
    let mut keep = keep.filter(|_| partial.set_apart());
    while partial.received_bytes() < stored_bytes {
        let (sum, string) = (source.unsigned("payload checksum")?, source.string("payload")?);
        let (piece, position) = (string.as_ref(), partial.received_bytes());
        let missing = stored_bytes - position;
        let is_within = (1..=missing).contains(&(piece.len() as u64));
        Error::check_field(is_within, "payload piece", format_args!("1 to {missing} bytes"), piece.len())?;
        check_piece(piece, position, fingerprint, sum)?;
        if keep.is_none() && bits::fills_every_page(piece) {
            limit.will_fill(partial.next_memory(piece.len()));
        }
        partial.push(piece)?;
        keep.as_mut().map_or(Ok(()), |keep| keep(string))?;
    }
    Ok(partial)
}
