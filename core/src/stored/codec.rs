//! A checked reader and a writer for headers of stored values. Every function that reads a field takes its name, and
//! every error has the name.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | high half: the kind of value; low half: the version |
//! | any | fields, each a byte, a number or a rate |
//! | 4 | the low half of the XXH3-64 of all bytes before, seeded with 0 |
//!
//! A **number** is written in as few LEB128 bytes as possible: groups of 7 bits, the lowest group first. The high bit
//! of a byte is set except in the last byte. A **rate** that is the double nearest to `m / 10^e` is written as a byte
//! `e` from 1 to 9 and a number `m` below 2^28. The smallest possible `e` is chosen: 0.01 takes 2 bytes. Any other rate
//! is written as a byte 0 and the 8 bytes of the double.

use crate::error::Error;
use crate::hash::checksum;

/// The oldest version of headers that can still be read.
const OLDEST_VERSION: u8 = 1;

/// The length of the checksum at the end of a header, in bytes. A checksum of 8 bytes would double the size of a small
/// value.
const CHECKSUM_BYTES: usize = 4;

/// The memory that is reserved for a header at first, in bytes. Most headers take less.
const ROOM_BYTES: usize = 512;

/// The largest exponent `e` of a rate that is stored in the short form `m / 10^e`.
const MAX_DIGITS: u8 = 9;

/// A rate has the short form `m / 10^e` only if `m` is below this number.
const MANTISSA_END: u64 = 1 << 28;

/// The first byte of a header: the kind of value, and the version in which headers of this kind are written. Any change
/// of the fields needs a new version number, up to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    /// A counter.
    Counter = 0xc1,
    /// A windowed counter.
    WindowedCounter = 0xd1,
    /// A windowed filter in the cache-line layout.
    WindowedFilter = 0xe1,
    /// A filter in the cache-line layout.
    Filter = 0xf1,
}

impl HeaderKind {
    /// The one of these kinds of which `header` is, in any version.
    pub(crate) fn among(kinds: [Self; 2], header: &[u8]) -> Option<Self> {
        let first = *header.first()?;
        kinds.into_iter().find(|&kind| kind as u8 >> 4 == first >> 4)
    }
}

/// The checksum at the end of a header.
fn header_checksum(body: &[u8]) -> u32 {
    checksum(body, 0) as u32
}

/// The exponent `e` and the mantissa `m` of a rate that equals `m / 10^e`; `None` if the rate has no such short form.
fn short_rate(rate: f64) -> Option<(u8, u64)> {
    (1..=MAX_DIGITS).find_map(|digits| {
        let mantissa = libm::round(rate * power_of_ten(digits));
        let fits = mantissa >= 1.0 && mantissa < MANTISSA_END as f64;
        (fits && (mantissa / power_of_ten(digits)).to_bits() == rate.to_bits()).then_some((digits, mantissa as u64))
    })
}

/// 10^exponent, exactly: 10^9 has fewer than 53 bits.
fn power_of_ten(exponent: u8) -> f64 {
    10u64.pow(exponent.into()) as f64
}

/// Writes a header, field by field.
pub(crate) struct HeaderWriter {
    /// The bytes written so far.
    pub(crate) bytes: Vec<u8>,
}

impl HeaderWriter {
    /// Begins a header with its kind and version.
    pub(crate) fn new(kind: HeaderKind) -> Self {
        let mut writer = Self::plain();
        writer.u8(kind as u8);
        writer
    }

    /// Begins a header without kind, version and checksum.
    pub(crate) fn plain() -> Self {
        HeaderWriter { bytes: Vec::with_capacity(ROOM_BYTES) }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    pub(crate) fn number(&mut self, value: u64) {
        let mut rest = value;
        while rest >= 0x80 {
            self.u8(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.u8(rest as u8);
    }

    pub(crate) fn rate(&mut self, rate: f64) {
        if let Some((digits, mantissa)) = short_rate(rate) {
            self.u8(digits);
            self.number(mantissa);
        } else {
            self.u8(0);
            self.f64(rate);
        }
    }

    /// Appends the checksum and returns the header.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.u32(header_checksum(&self.bytes));
        self.bytes
    }
}

/// Reads a header, field by field.
#[derive(Debug)]
pub(crate) struct HeaderReader<'a> {
    /// The bytes that are still unread.
    pub(crate) rest: &'a [u8],
}

impl<'a> HeaderReader<'a> {
    /// Checks length, kind, checksum and version of a header, in this order. So a value of another kind is not reported
    /// as damaged.
    pub(crate) fn new(bytes: &'a [u8], kind: HeaderKind) -> Result<Self, Error> {
        let parts = bytes.split_last_chunk::<CHECKSUM_BYTES>();
        let Some((body, sum, (&first, rest))) = parts.and_then(|(body, sum)| Some((body, sum, body.split_first()?)))
        else {
            return Err(Error::corrupt("header length", "at least 5 bytes", bytes.len()));
        };
        let right = kind as u8;
        let expected = format_args!("{right:#04x}");
        Error::check_field(first >> 4 == right >> 4, "kind", expected, format_args!("{first:#04x}"))?;
        let (sum, own) = (u32::from_le_bytes(*sum), header_checksum(body));
        let expected = format_args!("{own:#010x}");
        Error::check_field(sum == own, "header checksum", expected, format_args!("{sum:#010x}"))?;
        let (version, newest) = (first & 0xf, right & 0xf);
        let is_within = (OLDEST_VERSION..=newest).contains(&version);
        Error::check_field(is_within, "version", format_args!("{OLDEST_VERSION} to {newest}"), version)?;
        Ok(HeaderReader { rest })
    }

    /// Begins reading bytes that have no kind, version and checksum.
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        HeaderReader { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, len: u64, field: &'static str) -> Result<&'a [u8], Error> {
        let taken = usize::try_from(len).ok().and_then(|len| self.rest.split_off(..len));
        let left = self.rest.len();
        taken.ok_or_else(|| Error::corrupt(field, format_args!("{len} bytes"), format_args!("{left} left")))
    }

    pub(crate) fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        Ok(*self.bytes(N as u64, field)?.first_chunk().unwrap_or(&[0; N]))
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Error> {
        Ok(self.take::<1>(field)?[0])
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.take(field)?))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.take(field)?))
    }

    pub(crate) fn f64(&mut self, field: &'static str) -> Result<f64, Error> {
        Ok(f64::from_bits(self.u64(field)?))
    }

    /// Reads a number of at most 64 bits.
    pub(crate) fn number(&mut self, field: &'static str) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8(field)?;
            let group = u64::from(byte & 0x7f);
            if group << shift >> shift != group || (byte == 0 && shift > 0) {
                break;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::corrupt(field, "a number of 64 bits in as few bytes as can be", "a longer one"))
    }

    /// Reads a number of at most 32 bits.
    pub(crate) fn number_u32(&mut self, field: &'static str) -> Result<u32, Error> {
        let value = self.number(field)?;
        u32::try_from(value).map_err(|_| Error::corrupt(field, "less than 2^32", value))
    }

    /// Reads a rate. The caller checks whether the rate is in its range.
    pub(crate) fn rate(&mut self, field: &'static str) -> Result<f64, Error> {
        let digits = self.u8(field)?;
        let (rate, written) = match digits {
            0 => (self.f64(field)?, None),
            1..=MAX_DIGITS => {
                let mantissa = self.number(field)?;
                (mantissa as f64 / power_of_ten(digits), Some((digits, mantissa)))
            }
            _ => return Err(Error::corrupt(field, "0 to 9 digits", digits)),
        };
        Error::check_field(short_rate(rate) == written, field, "its shortest form", "another")?;
        Ok(rate)
    }
}

/// Converts an error about the range of a parameter into an error about a stored field.
pub(crate) fn stored_parameter(error: Error) -> Error {
    match error {
        Error::OutOfRange { parameter, expected, got } => Error::Corrupt { field: parameter.name(), expected, got },
        other => other,
    }
}

/// Checks that a stored field has the value that follows from the other fields.
#[inline(always)]
pub(crate) fn expect<T: PartialEq + std::fmt::Display>(field: &'static str, expected: T, got: T) -> Result<(), Error> {
    Error::check_field(expected == got, field, expected, got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_reads_back() {
        let mut writer = HeaderWriter::new(HeaderKind::Filter);
        writer.u8(1);
        writer.u32(3);
        writer.u64(4);
        writer.f64(0.5);
        let bytes = writer.finish();
        assert_eq!((bytes[0], bytes.len()), (0xf1, 1 + 21 + 4));
        let mut reader = HeaderReader::new(&bytes, HeaderKind::Filter).unwrap();
        assert_eq!(reader.u8("a").unwrap(), 1);
        assert_eq!(reader.u32("c").unwrap(), 3);
        assert_eq!(reader.u64("d").unwrap(), 4);
        assert_eq!(reader.f64("e").unwrap(), 0.5);
        assert_eq!(reader.rest.len(), 0);
        assert!(matches!(reader.u8("f"), Err(Error::Corrupt { field: "f", .. })));
    }

    #[test]
    fn damage_is_named() {
        let bytes = HeaderWriter::new(HeaderKind::Counter).finish();
        let rejected = |bytes: &[u8], kind| match HeaderReader::new(bytes, kind) {
            Err(Error::Corrupt { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(rejected(&bytes, HeaderKind::Filter), "kind");
        assert_eq!(rejected(&bytes[..4], HeaderKind::Counter), "header length");
        for at in 1..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(rejected(&bad, HeaderKind::Counter), "header checksum");
        }
        for first in [0xc0, 0xc2, 0xcf] {
            let mut other = vec![first];
            other.extend(header_checksum(&other).to_le_bytes());
            assert_eq!(rejected(&other, HeaderKind::Counter), "version");
        }
    }

    fn number(value: u64) -> Vec<u8> {
        let mut writer = HeaderWriter::plain();
        writer.number(value);
        writer.bytes
    }

    fn rate(value: f64) -> Vec<u8> {
        let mut writer = HeaderWriter::plain();
        writer.rate(value);
        writer.bytes
    }

    #[test]
    fn numbers_and_rates_are_pinned() {
        for (value, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[128, 1]), (50_000, &[0xd0, 0x86, 3])] {
            assert_eq!(number(value), bytes);
        }
        assert_eq!(number(u64::MAX).len(), 10);
        for (value, bytes) in [(0.01, &[2, 1][..]), (0.25, &[2, 25]), (0.001, &[3, 1]), (0.5, &[1, 5])] {
            assert_eq!(rate(value), bytes);
        }
        for value in [1.0 / 3.0, f64::NAN, f64::INFINITY, -0.5, -0.0, 5e-324, 1e300, 0.1 + 0.2] {
            assert_eq!(rate(value), [&[0][..], &value.to_bits().to_le_bytes()].concat());
        }
    }

    #[test]
    fn longer_forms_are_rejected() {
        for bytes in
            [&[0x80, 0][..], &[0xff; 11], &[0x80], &[], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
        {
            assert!(HeaderReader::plain(bytes).number("n").is_err(), "{bytes:?}");
        }
        let plain = [&[0][..], &0.01f64.to_bits().to_le_bytes()].concat();
        for bytes in [&[3, 10][..], &[10, 1], &plain, &[9, 0x80, 0x80, 0x80, 0x80, 1], &[255, 1]] {
            assert!(HeaderReader::plain(bytes).rate("r").is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_and_rates_read_back(
            value: u64,
            shift in 0u32..64,
            bits: u64,
            digits in 1u8..=12,
            mantissa in 0u64..1 << 30,
        ) {
            let value = value >> shift;
            prop_assert_eq!(HeaderReader::plain(&number(value)).number("n").unwrap(), value);
            for expected in [f64::from_bits(bits), mantissa as f64 / power_of_ten(digits)] {
                let read = HeaderReader::plain(&rate(expected)).rate("r").unwrap();
                prop_assert_eq!(read.to_bits(), expected.to_bits());
            }
        }
    }
}
