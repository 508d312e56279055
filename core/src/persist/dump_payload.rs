//! `DUMP` payloads, read without a server.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | the type of the value: 7 for the value of a module |
//! | 9 | 0x81, and the module id, big-endian: nine characters of six bits (the data type), ten bits (the encoding) |
//! | any | fields, each an opcode and a number (opcode 2), a double (4) or a string (5) |
//! | 1 | 0: the end of the fields |
//! | 2 | the RDB version of the server |
//! | 8 | the CRC-64 of all bytes before |
//!
//! The RDB version is not checked. It differs between servers that write the same fields; what decides is the encoding
//! version of the data type.

use std::borrow::Cow;

use crc_fast::CrcAlgorithm::Crc64Redis;

use super::file::FileError;
use super::rdb;
use crate::error::Error;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_zeroed};
use crate::stored::codec::{HeaderReader, expect};
use crate::stored::payload::Payload;
use crate::stored::{Kind, Partial, Source};
use crate::wire::{TYPE_OF_CLASSIC, TYPE_OF_COUNTERS, TYPE_OF_LINES};

/// The type of a module's value.
const MODULE_VALUE: u8 = 7;

/// The opcodes of fields.
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// The two high bits of the first byte of a length. With both bits set, a string has another form instead.
const OTHER_FORMS: u8 = 3;
/// A string that spells a number has 1, 2 or 4 bytes: the number, with the lowest byte first.
const INT_8: u8 = 0xc0;
const INT_16: u8 = 0xc1;
const INT_32: u8 = 0xc2;
/// A compressed string: its compressed length, its length, and the compressed bytes.
const LZF: u8 = 0xc3;

/// The most bytes that one compressed byte stands for: three bytes repeat at most 264.
const LZF_MOST: u64 = 88;

/// The characters of the names of data types. The position of a character is its number in a module id.
const NAME_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Reads a complete value. With `apart`, it gets the payload of a filter in the layout `lines`, and the filter has no
/// bits.
///
/// # Errors
/// [`FileError::NotAFile`] if the bytes are no `DUMP` payload, [`FileError::OtherKind`] and [`FileError::Value`].
pub(super) fn load<'a, T: Value>(
    bytes: &'a [u8],
    apart: Option<&mut Payload<'a>>,
    limit: &impl SizeLimit,
) -> Result<T, FileError> {
    let (value, sum) = bytes.split_last_chunk().ok_or(FileError::NotAFile)?;
    let (sum, own) = (u64::from_le_bytes(*sum), crc_fast::checksum(Crc64Redis, value));
    // Only a module's value is worth naming what is damaged: other bytes are more likely no payload at all.
    if sum != own && value.first() != Some(&MODULE_VALUE) {
        return Err(FileError::NotAFile);
    }
    let expected = format_args!("{own:#018x}");
    Error::check_field(sum == own, "CRC-64", expected, format_args!("{sum:#018x}"))?;
    let (value, _rdb_version) = value.split_last_chunk::<2>().ok_or(FileError::NotAFile)?;
    let other = |got| FileError::OtherKind { expected: T::KIND, got };
    let reader = HeaderReader::plain(value.strip_prefix(&[MODULE_VALUE]).ok_or_else(|| other(None))?);
    let mut fields = Fields { reader, limit };
    let id = fields.length("module id")?;
    // Six bits of the id are a character of the name of the data type.
    let name: [u8; 9] = std::array::from_fn(|index| NAME_CHARACTERS[(id >> (58 - 6 * index) & 0x3f) as usize]);
    let encoding = (id & 0x3ff) as u32;
    let value = match (str::from_utf8(&name).unwrap_or_default(), T::KIND) {
        (TYPE_OF_LINES, Kind::Filter) | (TYPE_OF_COUNTERS, Kind::Counter) => {
            expect("encoding version", rdb::ENCODING, encoding)?;
            let partial: T::Partial =
                rdb::load_apart(&mut fields, limit, apart.map(|payload| |piece| payload.push(piece)))?;
            let got = format_args!("one that is {}", partial.progress());
            Error::check_field(partial.is_complete(), "value", "a complete one", got)?;
            partial.finish()?
        }
        (TYPE_OF_CLASSIC, Kind::Filter) => {
            T::load_classic(&mut fields, encoding, limit).ok_or_else(|| other(None))??
        }
        (TYPE_OF_LINES | TYPE_OF_CLASSIC, _) => return Err(other(Some(Kind::Filter))),
        (TYPE_OF_COUNTERS, _) => return Err(other(Some(Kind::Counter))),
        _ => return Err(other(None)),
    };
    fields.opcode(END, "end")?;
    expect("length after the end", 0, fields.reader.rest.len())?;
    Ok(value)
}

/// The fields of a value that are still unread.
struct Fields<'a, 'l, L> {
    reader: HeaderReader<'a>,
    limit: &'l L,
}

impl<'a, L: SizeLimit> Fields<'a, '_, L> {
    /// Reads a length, which a server also writes for numbers: 6, 14, 32 or 64 bits.
    fn length(&mut self, field: &'static str) -> Result<u64, Error> {
        let first = self.reader.u8(field)?;
        match (first >> 6, first & 0x3f) {
            (0, low) => Ok(low.into()),
            (1, high) => Ok(u64::from(high) << 8 | u64::from(self.reader.u8(field)?)),
            (2, 0) => Ok(u32::from_be_bytes(self.reader.take(field)?).into()),
            (2, 1) => Ok(u64::from_be_bytes(self.reader.take(field)?)),
            _ => Err(Error::corrupt(field, "a number", format_args!("{first:#04x}"))),
        }
    }

    fn opcode(&mut self, expected: u64, field: &'static str) -> Result<(), Error> {
        let opcode = self.length(field)?;
        Error::check_field(opcode == expected, field, format_args!("opcode {expected}"), opcode)
    }

    /// Reads a compressed string. Its claimed length is checked before that memory is allocated.
    fn compressed(&mut self, field: &'static str) -> Result<Vec<u8>, Error> {
        let (compressed_bytes, len) = (self.length(field)?, self.length(field)?);
        let compressed = self.reader.bytes(compressed_bytes, field)?;
        let most = compressed_bytes.saturating_mul(LZF_MOST);
        Error::check_field(len <= most, field, format_args!("at most {most} bytes"), len)?;
        self.limit.check(0, len)?;
        let mut string = try_zeroed(len as usize)?;
        match lzf_rust::decompress(compressed, &mut string) {
            Ok(written) if written == string.len() => Ok(string.into_vec()),
            _ => Err(Error::corrupt(field, format_args!("{len} compressed bytes"), "others")),
        }
    }
}

impl<'a, L: SizeLimit> Source for Fields<'a, '_, L> {
    type Bytes = Cow<'a, [u8]>;

    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        self.opcode(UNSIGNED, field)?;
        self.length(field)
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        self.opcode(DOUBLE, field)?;
        Ok(f64::from_le_bytes(self.reader.take(field)?))
    }

    fn string(&mut self, field: &'static str) -> Result<Cow<'a, [u8]>, Error> {
        self.opcode(STRING, field)?;
        let Some(&form) = self.reader.rest.first().filter(|&first| first >> 6 == OTHER_FORMS) else {
            let len = self.length(field)?;
            return Ok(Cow::Borrowed(self.reader.bytes(len, field)?));
        };
        self.reader.u8(field)?;
        let number = match form {
            INT_8 => i8::from_le_bytes(self.reader.take(field)?).into(),
            INT_16 => i16::from_le_bytes(self.reader.take(field)?).into(),
            INT_32 => i32::from_le_bytes(self.reader.take(field)?),
            LZF => return Ok(Cow::Owned(self.compressed(field)?)),
            _ => return Err(Error::corrupt(field, "a string", format_args!("{form:#04x}"))),
        };
        Ok(Cow::Owned(number.to_string().into_bytes()))
    }
}
