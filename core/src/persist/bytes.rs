//! A filter or counter as a byte string: a file with only this value, or a `DUMP` payload.

use super::dump_payload;
use super::file::{Entry, FileError, MAGIC, Writer, read_one};
use crate::error;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::stored::payload::Payload;

/// The largest number of bytes besides the payload, per MiB of payload (rounded up).
const AROUND_BYTES: usize = 256;

/// Converts a value to the bytes of a [file](mod@super::file) that has only this value. `rollcall build` writes the
/// same format.
///
/// # Errors
/// [`Error::OutOfMemory`](error::Error::OutOfMemory).
pub fn to_bytes<T: Value>(value: &T) -> Result<Vec<u8>, error::Error> {
    let payload_bytes = usize::try_from(value.payload().len()).unwrap_or(usize::MAX);
    let around_bytes = (payload_bytes >> 20).saturating_add(1).saturating_mul(AROUND_BYTES);
    let bytes = try_with_capacity(payload_bytes.saturating_add(around_bytes))?;
    let written = Writer::new(bytes).and_then(|mut writer| {
        writer.store(&Entry::new(T::KIND), value)?;
        writer.finish()
    });
    written.map_err(|error| match error {
        FileError::Value(error) => error,
        // No other error is expected: writing to a `Vec` cannot fail, and no chunk of a dump is too large for a file.
        other => error::Error::corrupt("file", "what a list takes", other),
    })
}

/// Loads the only value of a [file](mod@super::file), whose key and expiry are ignored, or the value that a server's
/// `DUMP` returned, whatever its RDB version.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
/// use rollcall_core::persist::{self, file};
/// use rollcall_core::size_limit::MaxBytes;
///
/// let error = persist::from_bytes::<BloomFilter>(b"something else", &MaxBytes(1 << 20));
/// assert!(matches!(error, Err(file::FileError::NotAFile)));
/// ```
///
/// # Errors
/// A [`FileError`] says why the bytes are neither a file nor a payload with one value of this type.
pub fn from_bytes<T: Value>(bytes: &[u8], limit: &impl SizeLimit) -> Result<T, FileError> {
    parse(bytes, None, limit)
}

/// Like [`from_bytes`]. With `apart`, the bits of a filter may stay in `bytes`: it then gets the payload.
///
/// # Errors
/// Those of [`from_bytes`].
pub fn parse<'a, T: Value>(
    bytes: &'a [u8],
    apart: Option<&mut Payload<'a>>,
    limit: &impl SizeLimit,
) -> Result<T, FileError> {
    if bytes.starts_with(&MAGIC) { read_one(bytes, limit) } else { dump_payload::load(bytes, apart, limit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::{BitLayout, BloomFilter, Params};
    use crate::size_limit::Unlimited;

    #[test]
    fn room_is_made_for_all_bytes_before_the_first_is_written() {
        for items in [0, 10, 5000, 3_000_000] {
            let params = Params { capacity: items.max(1), ..Params::default() };
            let filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
            let bytes = to_bytes(&filter).unwrap();
            // A `Vec` that had to grow would have twice the room.
            let spare = (bytes.capacity() - bytes.len()) as u64;
            assert!(spare <= 256 * (1 + (filter.size_bytes() >> 20)), "{items}: {spare} bytes");
            assert!(from_bytes::<BloomFilter>(&bytes, &Unlimited).unwrap() == filter);
        }
    }
}
