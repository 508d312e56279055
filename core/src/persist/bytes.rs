//! A filter or counter as a byte string: a file with only this value.

use std::io::Read;

use super::error::FileError;
use super::format::Entry;
use super::read::Reader;
use super::write::Writer;
use crate::error;
use crate::persist::value::Value;
use crate::size_limit::{SizeLimit, try_with_capacity};

/// The largest number of bytes besides the payload, per MiB of payload (rounded up).
const AROUND_BYTES: usize = 256;

/// Converts a value to the bytes of a [file](super) that has only this value. `rollcall build` writes the same format.
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

/// Loads the only value of a [file](super). Its key and its expiry are ignored.
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
/// A [`FileError`] says why the bytes are not a file with one value of this type.
pub fn from_bytes<T: Value>(bytes: &[u8], limit: &impl SizeLimit) -> Result<T, FileError> {
    read_one(bytes, limit)
}

/// Like [`from_bytes`], for any reader. Besides the value, at most one chunk of the file is in memory.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
/// use rollcall_core::persist::file;
/// use rollcall_core::size_limit::MaxBytes;
///
/// let error = file::read_one::<BloomFilter>(std::io::empty(), &MaxBytes(1 << 20));
/// assert!(matches!(error, Err(file::FileError::NotAFile)));
/// ```
///
/// # Errors
/// The errors of [`from_bytes`], and [`FileError::Io`].
pub fn read_one<T: Value>(input: impl Read, limit: &impl SizeLimit) -> Result<T, FileError> {
    let mut reader = Reader::new(input)?;
    if reader.next_value()?.is_none() {
        return Err(FileError::NotOneValue { is_empty: true });
    }
    let value = reader.load(limit)?;
    match reader.next_value()? {
        None => Ok(value),
        Some(_) => Err(FileError::NotOneValue { is_empty: false }),
    }
}
