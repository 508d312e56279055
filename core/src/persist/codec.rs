//! A checked reader and a writer of little-endian fields. Every read names its field, so that every error does.

use crate::error::Error;
use crate::hash::checksum;

/// Version byte that both headers are written with. Changing a header's layout means a new number.
pub(super) const ENCODING_CURRENT: u8 = 1;

/// The oldest version byte that can still be read.
pub(super) const ENCODING_OLDEST_READABLE: u8 = 1;

/// Bytes of the checksum at the end of a header or chunk.
pub(super) const CHECKSUM_BYTES: usize = 8;

/// Writes a header.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Begins with magic and version, and has room for `len` bytes and a checksum.
    pub(super) fn new(magic: [u8; 4], len: usize) -> Self {
        let mut writer = Self::plain(len + CHECKSUM_BYTES);
        writer.0.extend_from_slice(&magic);
        writer.u8(ENCODING_CURRENT);
        writer
    }

    /// Begins with nothing, for a header without magic and checksum, and has room for `len` bytes.
    pub(super) fn plain(len: usize) -> Self {
        Writer(Vec::with_capacity(len))
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Ends here.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Ends with the checksum.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0, 0);
        self.u64(sum);
        self.0
    }
}

/// Reads a header.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks length, magic, checksum and version, in this order. So a foreign value is reported as foreign, not as
    /// damaged.
    pub(super) fn new(bytes: &'a [u8], magic: [u8; 4]) -> Result<Self, Error> {
        let Some((body, sum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err(Error::corrupt("header length", "at least 13 bytes", bytes.len()));
        };
        let Some((found, rest)) = body.split_first_chunk::<4>() else {
            return Err(Error::corrupt("header length", "at least 13 bytes", bytes.len()));
        };
        if *found != magic {
            return Err(Error::corrupt("magic", magic.escape_ascii(), found.escape_ascii()));
        }
        let (sum, expected) = (u64::from_le_bytes(*sum), checksum(body, 0));
        if sum != expected {
            return Err(Error::corrupt(
                "header checksum",
                format_args!("{expected:#018x}"),
                format_args!("{sum:#018x}"),
            ));
        }
        let mut reader = Reader(rest);
        let version = reader.u8("version")?;
        if !(ENCODING_OLDEST_READABLE..=ENCODING_CURRENT).contains(&version) {
            return Err(Error::corrupt(
                "version",
                format_args!("{ENCODING_OLDEST_READABLE} to {ENCODING_CURRENT}"),
                version,
            ));
        }
        Ok(reader)
    }

    /// Reads fields that have neither magic nor checksum.
    pub(super) fn plain(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        let Some((bytes, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(Error::corrupt(field, format_args!("{N} bytes"), format_args!("{} left", self.0.len())));
        };
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, Error> {
        Ok(self.take::<1>(field)?[0])
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.take(field)?))
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.take(field)?))
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.take(field)?))
    }

    pub(super) fn f64(&mut self, field: &'static str) -> Result<f64, Error> {
        Ok(f64::from_bits(self.u64(field)?))
    }

    /// Bytes not read yet.
    pub(super) fn remaining(&self) -> usize {
        self.0.len()
    }
}

/// Turns an error of a parameter's range into one of a stored field.
pub(super) fn stored_parameter(error: Error) -> Error {
    match error {
        Error::OutOfRange { parameter, expected, got } => {
            Error::Corrupt { field: parameter.name(), expected: expected.to_owned(), got }
        }
        other => other,
    }
}

/// Compares a stored field with what follows from the others.
pub(super) fn expect<T: PartialEq + std::fmt::Display>(field: &'static str, expected: T, got: T) -> Result<(), Error> {
    if expected != got { Err(Error::corrupt(field, expected, got)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back() {
        let mut writer = Writer::new(*b"TEST", 28);
        writer.u8(1);
        writer.u16(2);
        writer.u32(3);
        writer.u64(4);
        writer.f64(0.5);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes, *b"TEST").unwrap();
        assert_eq!(reader.u8("a").unwrap(), 1);
        assert_eq!(reader.u16("b").unwrap(), 2);
        assert_eq!(reader.u32("c").unwrap(), 3);
        assert_eq!(reader.u64("d").unwrap(), 4);
        assert_eq!(reader.f64("e").unwrap(), 0.5);
        assert_eq!(reader.remaining(), 0);
        assert!(matches!(reader.u8("f"), Err(Error::Corrupt { field: "f", .. })));
    }

    #[test]
    fn damage_is_named() {
        let bytes = Writer::new(*b"TEST", 5).finish();
        assert!(matches!(Reader::new(&bytes, *b"ELSE").unwrap_err(), Error::Corrupt { field: "magic", .. }));
        assert!(matches!(
            Reader::new(&bytes[..11], *b"TEST").unwrap_err(),
            Error::Corrupt { field: "header length", .. }
        ));
        for at in 4..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(matches!(
                Reader::new(&bad, *b"TEST").unwrap_err(),
                Error::Corrupt { field: "header checksum", .. }
            ));
        }
    }
}
