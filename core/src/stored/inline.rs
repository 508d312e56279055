//! Small payloads of filters, up to 4 KiB, are stored inline, as a part of the header. The filter is then stored as a
//! header alone.
//!
//! The last field of a header has the payload, or says that it is elsewhere:
//!
//! | byte | what follows |
//! |---|---|
//! | 0 | the payload is stored outside the header, in chunks or pieces |
//! | 1 | the payload, in the same form as outside the header |
//! | 2 | the number of set bits, and their positions in Golomb-Rice code (`golomb_rice.rs`) |
//!
//! A bitmap with more than a quarter of its bits set is written as it is: Golomb-Rice code would save less than a
//! fifth.

use std::borrow::Cow;
use std::mem::take;

use bitvec::prelude::Lsb0;
use bitvec::view::BitView;

use super::codec::{HeaderReader, HeaderWriter, expect};
use crate::bits;
use crate::error::Error;
use crate::golomb_rice;
use crate::size_limit::try_filled;

/// The largest payload that is written into a header, in bytes. It may be changed, up to [`READ_MAX_BYTES`].
const WRITTEN_MAX_BYTES: u64 = 4096;

/// The largest payload that is decoded from Golomb-Rice code, in bytes: a few bytes of code may decode to a large
/// payload.
const READ_MAX_BYTES: u64 = 1 << 20;

pub(crate) const OUT_OF_LINE: u8 = 0;
pub(crate) const AS_IT_IS: u8 = 1;
const GOLOMB_RICE: u8 = 2;

/// A payload, if its header contains it.
pub(crate) type Inline<'a> = Option<Cow<'a, [u8]>>;

/// Whether a payload of this size is written into its header.
pub(crate) fn is_inline(payload_bytes: u64) -> bool {
    payload_bytes <= WRITTEN_MAX_BYTES
}

/// Writes the last field of a header: the payload as it is or in Golomb-Rice code, or a byte that says that the payload
/// is stored outside the header. The `bitmaps` have `num_bits` bits, of which `set_bits` are set.
pub(crate) fn write<'a>(
    writer: &mut HeaderWriter,
    bitmaps: impl Iterator<Item = &'a [u8]> + Clone,
    num_bits: u64,
    set_bits: u64,
) {
    if !is_inline(bitmaps.clone().map(|bitmap| bitmap.len() as u64).sum()) {
        return writer.u8(OUT_OF_LINE);
    }
    let mut bytes = Vec::new();
    bitmaps.for_each(|bitmap| bytes.extend_from_slice(bitmap));
    if set_bits <= num_bits / 4 {
        writer.u8(GOLOMB_RICE);
        writer.number(set_bits);
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        golomb_rice::encode(bits::ones_of(words), set_bits, num_bits, &mut writer.bytes);
    } else {
        writer.u8(AS_IT_IS);
        writer.bytes.extend_from_slice(&bytes);
    }
}

/// Reads the last field of a header: the payload, which is a bitmap of `num_bits` bits. Returns `None` if the payload
/// is stored outside the header.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::OutOfMemory`].
pub(crate) fn read<'a>(reader: &mut HeaderReader<'a>, num_bits: u64) -> Result<Inline<'a>, Error> {
    Ok(Some(match reader.u8("payload form")? {
        OUT_OF_LINE => return Ok(None),
        AS_IT_IS => {
            let bytes = take(&mut reader.rest);
            expect("payload length", num_bits / 8, bytes.len() as u64)?;
            Cow::Borrowed(bytes)
        }
        GOLOMB_RICE => {
            let set_bits = reader.number("set bits")?;
            let num_bytes = num_bits / 8;
            let expected = format_args!("at most {READ_MAX_BYTES} bytes in Golomb-Rice code");
            Error::check_field(num_bytes <= READ_MAX_BYTES, "payload length", expected, num_bytes)?;
            let mut bytes = try_filled(num_bytes as usize, 0u8)?;
            let bits = bytes.view_bits_mut::<Lsb0>();
            golomb_rice::decode(take(&mut reader.rest), set_bits, num_bits, |one| bits.set(one as usize, true))?;
            Cow::Owned(bytes)
        }
        form => return Err(Error::corrupt("payload form", format_args!("at most {GOLOMB_RICE}"), form)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_length_that_would_be_right() {
        let rejected = |bytes: &[u8]| read(&mut HeaderReader::plain(bytes), 128).map(|_| ()).unwrap_err();
        assert_eq!(rejected(&[AS_IT_IS, 1, 2, 3]), Error::corrupt("payload length", 16, 3));
        assert_eq!(rejected(&[3]), Error::corrupt("payload form", "at most 2", 3));
    }

    #[test]
    fn an_inline_payload_of_zeros_is_bounded() {
        let zeros = |num_bytes| read(&mut HeaderReader::plain(&[GOLOMB_RICE, 0]), 8 * num_bytes);
        assert_eq!(zeros(READ_MAX_BYTES), Ok(Some(Cow::Owned(vec![0; READ_MAX_BYTES as usize]))));
        let expected = "at most 1048576 bytes in Golomb-Rice code";
        assert_eq!(zeros(READ_MAX_BYTES + 1), Err(Error::corrupt("payload length", expected, READ_MAX_BYTES + 1)));
        assert!(is_inline(WRITTEN_MAX_BYTES) && !is_inline(WRITTEN_MAX_BYTES + 1));
    }
}
