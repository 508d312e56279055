//! Reading a file of values. Every part of it is checked before it is used.

use std::fmt::Display;
use std::io::{self, Read};

use xxhash_rust::xxh3::Xxh3;

use super::error::FileError;
use super::format::{Entry, MAGIC, MAX_CHUNK_BYTES, MAX_KEY_BYTES, VERSION, tag};
use crate::live::Value;
use crate::persist::chunks;
use crate::size_limit::SizeLimit;
use crate::stored::Kind;

/// A reader of a file of values.
pub struct Reader<R> {
    input: R,
    /// The number of bytes read so far.
    position: u64,
    sum: Box<Xxh3>,
    num_values: u64,
    /// The value whose chunks are being read; `None` between values.
    open: Option<Open>,
}

/// How much of a value has been read.
#[derive(Clone, Copy)]
struct Open {
    kind: Kind,
    chunks: u64,
    bytes: u64,
}

impl<R: Read> Reader<R> {
    /// Begins reading a file. `input` should be buffered, because many small pieces are read.
    ///
    /// ```
    /// use rollcall_core::persist::file::{FileError, Reader};
    ///
    /// assert!(matches!(Reader::new(&b"something else"[..]), Err(FileError::NotAFile)));
    /// ```
    ///
    /// # Errors
    /// [`FileError::NotAFile`], [`FileError::Newer`], [`FileError::Io`].
    pub fn new(input: R) -> Result<Self, FileError> {
        let mut reader = Reader { input, position: 0, sum: Box::new(Xxh3::new()), num_values: 0, open: None };
        match reader.array("the beginning") {
            Ok(MAGIC) => {}
            Ok(_) | Err(FileError::Ends { .. }) => return Err(FileError::NotAFile),
            Err(error) => return Err(error),
        }
        match u32::from_le_bytes(reader.array("the version")?) {
            VERSION => Ok(reader),
            version => Err(FileError::Newer { version }),
        }
    }

    /// Skips the rest of the previous value. Returns the kind, key and expiry of the next value; `None` at the end of
    /// the file.
    ///
    /// ```
    /// use rollcall_core::counting::{Counter, Params};
    /// use rollcall_core::persist::{self, file};
    ///
    /// let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let bytes = persist::to_bytes(&Counter::new(params)?)?;
    /// let mut file = file::Reader::new(&bytes[..])?;
    /// assert_eq!(file.next_value()?, Some(file::Entry::new(file::Kind::Counter)));
    /// assert_eq!(file.next_value()?, None);
    /// # Ok::<(), file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::Damaged`], [`FileError::Ends`], [`FileError::Io`].
    pub fn next_value(&mut self) -> Result<Option<Entry>, FileError> {
        self.skip()?;
        let start = self.position;
        match self.array("a record")? {
            [tag::VALUE] => {
                let entry = self.entry(start)?;
                self.check_sum(start)?;
                self.open = Some(Open { kind: entry.kind, chunks: 0, bytes: 0 });
                Ok(Some(entry))
            }
            [tag::FILE_END] => {
                let num_values = u64::from_le_bytes(self.array("the number of values")?);
                self.check_sum(start)?;
                check_count(start, "values", self.num_values, num_values)?;
                let more = io::copy(&mut self.input.by_ref().take(1), &mut io::sink())?;
                check(more == 0, self.position, "bytes after the end")?;
                Ok(None)
            }
            [other] => Err(damaged(start, format_args!("a record of kind {other} where a value or the end should be"))),
        }
    }

    /// The next chunk of the current value, with its `SCANDUMP` iterator; `None` at the end of the value.
    ///
    /// ```
    /// use rollcall_core::counting::{Counter, Params};
    /// use rollcall_core::persist::{self, file};
    ///
    /// let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let bytes = persist::to_bytes(&Counter::new(params)?)?;
    /// let mut file = file::Reader::new(&bytes[..])?;
    /// file.next_value()?;
    /// // The header has the iterator 1. The payload of an empty counter is inline in the header.
    /// assert_eq!(file.next_chunk()?.map(|(iterator, _)| iterator), Some(1));
    /// assert_eq!(file.next_chunk()?, None);
    /// # Ok::<(), file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::Damaged`], [`FileError::Ends`], [`FileError::Io`].
    pub fn next_chunk(&mut self) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        let Some(open) = self.open else { return Ok(None) };
        let start = self.position;
        match self.array("a record")? {
            [tag::CHUNK] => {
                let iterator = u64::from_le_bytes(self.array("an iterator")?);
                let chunk = self.bytes(start, MAX_CHUNK_BYTES, "chunk")?;
                self.check_sum(start)?;
                self.open = Some(Open { chunks: open.chunks + 1, bytes: open.bytes + chunk.len() as u64, ..open });
                Ok(Some((iterator, chunk)))
            }
            [tag::VALUE_END] => {
                let (own_chunks, own_bytes) = (self.array("the number of chunks")?, self.array("the sum of bytes")?);
                self.check_sum(start)?;
                check_count(start, "chunks", open.chunks, u64::from_le_bytes(own_chunks))?;
                check_count(start, "bytes of chunks", open.bytes, u64::from_le_bytes(own_bytes))?;
                self.open = None;
                self.num_values += 1;
                Ok(None)
            }
            [other] => Err(damaged(start, format_args!("a record of kind {other} where a chunk should be"))),
        }
    }

    /// Skips the rest of the current value, but checks it.
    ///
    /// ```
    /// use rollcall_core::counting::{Counter, Params};
    /// use rollcall_core::persist::{self, file};
    ///
    /// let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let bytes = persist::to_bytes(&Counter::new(params)?)?;
    /// let mut file = file::Reader::new(&bytes[..])?;
    /// file.next_value()?;
    /// file.skip()?;
    /// assert_eq!(file.next_chunk()?, None);
    /// # Ok::<(), file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::Damaged`], [`FileError::Ends`], [`FileError::Io`].
    pub fn skip(&mut self) -> Result<(), FileError> {
        while self.next_chunk()?.is_some() {}
        Ok(())
    }

    /// Loads the current value, of which no chunk has been read yet.
    ///
    /// ```
    /// use rollcall_core::counting::{Counter, Params};
    /// use rollcall_core::persist::{self, file};
    /// use rollcall_core::size_limit::MaxBytes;
    ///
    /// let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let bytes = persist::to_bytes(&Counter::new(params)?)?;
    /// let mut file = file::Reader::new(&bytes[..])?;
    /// file.next_value()?;
    /// let counter: Counter = file.load(&MaxBytes(1 << 20))?;
    /// assert_eq!(counter.params(), &params);
    /// # Ok::<(), file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OtherKind`] if the value is of another kind. [`FileError::Value`] if the chunks are not a valid
    /// value, or exceed `limit`. Also the errors of [`Self::next_chunk`].
    pub fn load<T: Value>(&mut self, limit: &impl SizeLimit) -> Result<T, FileError> {
        if let Some(Open { kind, .. }) = self.open
            && kind != T::KIND
        {
            return Err(FileError::OtherKind { expected: T::KIND, got: Some(kind) });
        }
        let mut failure = None;
        let chunks = std::iter::from_fn(|| self.next_chunk().map_err(|error| failure = Some(error)).ok().flatten());
        let loaded = chunks::load(chunks, limit);
        failure.map_or_else(|| Ok(loaded?), Err)
    }

    fn entry(&mut self, start: u64) -> Result<Entry, FileError> {
        let [kind] = self.array("a kind")?;
        let known = [Kind::Filter, Kind::Counter].into_iter().find(|known| known.byte() == kind);
        let kind = known.ok_or_else(|| damaged(start, format_args!("a value of unknown kind {kind}")))?;
        let expires_at = u64::from_le_bytes(self.array("an expiry")?);
        let key = match self.array("a key")? {
            [0] => None,
            [1] => Some(self.bytes(start, MAX_KEY_BYTES, "key")?),
            [other] => return Err(damaged(start, format_args!("{other} where 1 or 0 reports a key"))),
        };
        Ok(Entry { kind, key, expires_at: (expires_at > 0).then_some(expires_at) })
    }

    /// Reads a length, at most `most`, and then as many bytes.
    fn bytes(&mut self, start: u64, most: usize, what: &'static str) -> Result<Vec<u8>, FileError> {
        let len = u32::from_le_bytes(self.array("a length")?) as usize;
        check(len <= most, start, format_args!("a {what} of {len} bytes, more than {most}"))?;
        self.take(len, what)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FileError> {
        Ok(*self.take(N, what)?.first_chunk().unwrap_or(&[0; N]))
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<Vec<u8>, FileError> {
        // The buffer grows while bytes are read, so a forged length causes no large allocation.
        let mut bytes = Vec::new();
        self.input.by_ref().take(len as u64).read_to_end(&mut bytes)?;
        self.sum.update(&bytes);
        self.position += bytes.len() as u64;
        if bytes.len() < len { Err(FileError::Ends { at: self.position, within: what }) } else { Ok(bytes) }
    }

    /// Checks the checksum at the end of the record that begins at byte `start`.
    fn check_sum(&mut self, start: u64) -> Result<(), FileError> {
        let sum = self.sum.digest();
        check(u64::from_le_bytes(self.array("a checksum")?) == sum, start, "a checksum that does not fit")
    }
}

/// Checks a condition on the record that begins at byte `at`.
fn check(is_valid: bool, at: u64, what: impl Display) -> Result<(), FileError> {
    if is_valid { Ok(()) } else { Err(damaged(at, what)) }
}

/// Checks a number that follows the records that it counts.
fn check_count(start: u64, what: &str, counted: u64, stored: u64) -> Result<(), FileError> {
    check(counted == stored, start, format_args!("{stored} {what} where {counted} came"))
}

fn damaged(at: u64, what: impl Display) -> FileError {
    FileError::Damaged { at, what: what.to_string() }
}

/// Like [`from_bytes`](super::super::from_bytes) of a file, for any reader. Besides the value, at most one chunk of the
/// file is in memory.
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
/// A [`FileError`] says why the bytes are not a file with one value of this type.
pub fn read_one<T: Value>(input: impl Read, limit: &impl SizeLimit) -> Result<T, FileError> {
    let mut reader = Reader::new(input)?;
    reader.next_value()?.ok_or(FileError::NotOneValue { is_empty: true })?;
    let value = reader.load(limit)?;
    reader.next_value()?.map_or(Ok(value), |_| Err(FileError::NotOneValue { is_empty: false }))
}
