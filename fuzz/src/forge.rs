//! Damages stored values and corrects their checksums afterwards, so that only the checks of single fields can find the
//! damage.

use rollcall_core::error::Error;
use rollcall_core::unstable::checksum;
use rollcall_core::unstable::persist::rdb::Source;
use rollcall_core::unstable::persist::{ChunkFormat, Partial, is_redisbloom_header, piece_checksum};

use crate::fields::Field;
use crate::input::Input;

/// Number of bytes of the checksum at the end of a header in Rollcall's format.
const HEADER_CHECKSUM_BYTES: usize = 4;

/// Changes, inserts, removes or copies bytes at one position.
pub fn change(input: &mut Input<'_>, bytes: &mut Vec<u8>) {
    let at = usize::from(input.u16()) % (bytes.len() + 1);
    let end = (at + usize::from(input.byte() % 16)).min(bytes.len());
    match input.choice(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = input.byte();
            }
        }
        2 => drop(bytes.drain(at..end)),
        3 => {
            let len = usize::from(input.byte() % 16);
            bytes.splice(at..at, input.bytes(len).iter().copied());
        }
        // A number in the encoding of Rollcall's headers.
        4 => drop(bytes.splice(at..end, number(input.number()))),
        // A number in the encoding of RedisBloom's headers.
        5 => drop(bytes.splice(at..(at + 8).min(bytes.len()), input.number().to_le_bytes())),
        _ => {
            let copied = bytes[at..end].to_vec();
            let to = usize::from(input.u16()) % (bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
    }
}

/// A number as a varint: seven bits per byte, the lowest first.
fn number(mut rest: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Corrects the checksum of a header.
pub fn seal_header(header: &mut [u8]) {
    if let Some((body, sum)) = header.split_last_chunk_mut::<HEADER_CHECKSUM_BYTES>() {
        *sum = (checksum(body, 0) as u32).to_le_bytes();
    }
}

/// Changes a header at up to three positions. Mostly, the checksum of a header in Rollcall's format is corrected
/// afterwards.
pub fn change_header(input: &mut Input<'_>, header: &mut Vec<u8>) {
    let is_ours = !is_redisbloom_header(header);
    let sum_bytes = if is_ours { HEADER_CHECKSUM_BYTES.min(header.len()) } else { 0 };
    let sum = header.split_off(header.len() - sum_bytes);
    for _ in 0..input.choice(4) {
        change(input, header);
    }
    header.extend(sum);
    if is_ours && input.byte() < 240 {
        seal_header(header);
    }
}

/// A chunk with the bytes `piece` of a payload, for a value that has already received `position` bytes.
pub fn chunk(format: ChunkFormat, position: u64, piece: &[u8]) -> Vec<u8> {
    let mut chunk = piece.to_vec();
    if let ChunkFormat::Checked { fingerprint } = format {
        chunk.extend(piece_checksum(piece, position, fingerprint).to_le_bytes());
    }
    chunk
}

/// Corrects the checksums of an RDB value in Rollcall's format, except the checksum of the header. `loading` was begun
/// with the same header.
pub fn seal_fields<L: Partial>(fields: &mut [Field], loading: &L) {
    let [Field::String(header), rest @ ..] = fields else { return };
    let fingerprint = match loading.chunk_format() {
        ChunkFormat::Checked { fingerprint } => fingerprint,
        ChunkFormat::Plain => checksum(header, 0),
    };
    let [Field::Unsigned(len), Field::Unsigned(sum), pieces @ ..] = rest else { return };
    *sum = piece_checksum(&len.to_le_bytes(), *len, fingerprint);
    let mut position = 0;
    for pair in pieces.as_chunks_mut::<2>().0 {
        if let [Field::Unsigned(sum), Field::String(piece)] = pair {
            *sum = piece_checksum(piece, position, fingerprint);
            position += piece.len() as u64;
        }
    }
}

/// Changes, inserts or removes primitives of an RDB value at one position.
pub fn change_fields(input: &mut Input<'_>, fields: &mut Vec<Field>) {
    let at = usize::from(input.byte()) % (fields.len() + 1);
    match input.choice(4) {
        0 => fields.truncate(at),
        1 => {
            let copied = fields.get(at).cloned();
            fields.splice(at..at, copied);
        }
        2 => fields.insert(at, Field::Unsigned(input.number())),
        _ => match fields.get_mut(at) {
            Some(Field::Unsigned(value)) => *value = input.number(),
            Some(Field::Double(value)) => *value = input.rate(),
            Some(Field::String(bytes)) => change(input, bytes),
            None => {}
        },
    }
}

/// An RDB value whose primitives are read from the input itself. Each primitive has the type that the reader asks for.
pub struct Raw<'i, 'a>(pub &'i mut Input<'a>);

impl Raw<'_, '_> {
    fn more(&self, field: &'static str) -> Result<(), Error> {
        if self.0.is_empty() { Err(Error::corrupt(field, "more", "the end")) } else { Ok(()) }
    }
}

impl<'a> Source for Raw<'_, 'a> {
    type Bytes = &'a [u8];

    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        self.more(field)?;
        Ok(self.0.number())
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        self.more(field)?;
        Ok(self.0.rate())
    }

    fn string(&mut self, field: &'static str) -> Result<&'a [u8], Error> {
        self.more(field)?;
        let len = usize::from(self.0.u16()) % 4096;
        Ok(self.0.bytes(len))
    }
}
