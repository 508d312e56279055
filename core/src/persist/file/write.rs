//! Writing a file of values.

use std::io::Write;

use xxhash_rust::xxh3::Xxh3;

use super::error::FileError;
use super::format::{Entry, MAGIC, MAX_CHUNK_BYTES, MAX_KEY_BYTES, VERSION, tag};
use crate::live::Value;
use crate::persist::chunks;

/// A writer of a file of values.
pub struct Writer<W> {
    out: W,
    sum: Box<Xxh3>,
    num_values: u64,
    /// The numbers of chunks and bytes that were written for the current value; `None` between values.
    open: Option<(u64, u64)>,
}

impl<W: Write> Writer<W> {
    /// Begins a file in `out`.
    ///
    /// ```
    /// use rollcall_core::persist::file::Writer;
    ///
    /// let empty = Writer::new(Vec::new())?.finish()?;
    /// assert!(empty.starts_with(b"RollCall"));
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn new(out: W) -> Result<Self, FileError> {
        let mut writer = Writer { out, sum: Box::new(Xxh3::new()), num_values: 0, open: None };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    /// Begins a value.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, Kind, Writer};
    ///
    /// let mut file = Writer::new(Vec::new())?;
    /// file.begin(&Entry::new(Kind::Filter))?;
    /// // A chunk that `BF.SCANDUMP` returned, with its iterator.
    /// file.chunk(1, b"header")?;
    /// file.end()?;
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OutOfOrder`] if the previous value was not ended, [`FileError::TooLong`] for a key that is too
    /// long, [`FileError::Io`].
    pub fn begin(&mut self, entry: &Entry) -> Result<(), FileError> {
        if self.open.is_some() {
            return Err(FileError::OutOfOrder);
        }
        let (kind, expires_at) = ([entry.kind.byte()], entry.expires_at.unwrap_or(0).to_le_bytes());
        if let Some(key) = &entry.key {
            let len = length(key.len(), MAX_KEY_BYTES, "key")?;
            self.record(tag::VALUE, &[&kind, &expires_at, &[1], &len, key])?;
        } else {
            self.record(tag::VALUE, &[&kind, &expires_at, &[0]])?;
        }
        self.open = Some((0, 0));
        Ok(())
    }

    /// Writes a chunk of the current value, with the iterator that `SCANDUMP` returned with it.
    ///
    /// ```
    /// use rollcall_core::persist::file::{FileError, Writer};
    ///
    /// let mut file = Writer::new(Vec::new())?;
    /// assert!(matches!(file.chunk(1, b"of no value"), Err(FileError::OutOfOrder)));
    /// # Ok::<(), FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OutOfOrder`] if no value was begun, [`FileError::TooLong`] for a chunk larger than 64 MiB,
    /// [`FileError::Io`].
    pub fn chunk(&mut self, iterator: u64, bytes: &[u8]) -> Result<(), FileError> {
        let (chunks, sum_bytes) = self.open.ok_or(FileError::OutOfOrder)?;
        let len = length(bytes.len(), MAX_CHUNK_BYTES, "chunk")?;
        self.record(tag::CHUNK, &[&iterator.to_le_bytes(), &len, bytes])?;
        self.open = Some((chunks + 1, sum_bytes + bytes.len() as u64));
        Ok(())
    }

    /// Ends the current value.
    ///
    /// ```
    /// use rollcall_core::persist::file::{FileError, Writer};
    ///
    /// let mut file = Writer::new(Vec::new())?;
    /// assert!(matches!(file.end(), Err(FileError::OutOfOrder)));
    /// # Ok::<(), FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OutOfOrder`] if no value was begun, [`FileError::Io`].
    pub fn end(&mut self) -> Result<(), FileError> {
        let (chunks, bytes) = self.open.take().ok_or(FileError::OutOfOrder)?;
        self.num_values += 1;
        self.record(tag::VALUE_END, &[&chunks.to_le_bytes(), &bytes.to_le_bytes()])
    }

    /// Writes a whole value: its entry, then each chunk with the iterator that `SCANDUMP` returned.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, Kind, Writer};
    ///
    /// let dump = [(1, b"header".to_vec()), (4096, b"bits".to_vec())];
    /// let mut file = Writer::new(Vec::new())?;
    /// file.value(&Entry::new(Kind::Filter), dump)?;
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Self::begin`] and [`Self::chunk`].
    pub fn value<C: AsRef<[u8]>>(
        &mut self,
        entry: &Entry,
        chunks: impl IntoIterator<Item = (u64, C)>,
    ) -> Result<(), FileError> {
        self.begin(entry)?;
        for (iterator, chunk) in chunks {
            self.chunk(iterator, chunk.as_ref())?;
        }
        self.end()
    }

    /// Writes a whole value that is in memory, as the chunks of its dump.
    ///
    /// ```
    /// use rollcall_core::counting::{Counter, Params};
    /// use rollcall_core::persist::file::{Entry, Kind, Writer};
    ///
    /// let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut file = Writer::new(Vec::new())?;
    /// file.store(&Entry::new(Kind::Counter), &Counter::new(params)?)?;
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OtherKind`] if `value` is not of the kind of `entry`, and the errors of [`Self::value`].
    pub fn store<T: Value>(&mut self, entry: &Entry, value: &T) -> Result<(), FileError> {
        if entry.kind != T::KIND {
            return Err(FileError::OtherKind { expected: entry.kind, got: Some(T::KIND) });
        }
        self.value(entry, chunks::dump(value))
    }

    /// Ends the file. Flushes and returns the underlying writer.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Reader, Writer};
    ///
    /// let empty = Writer::new(Vec::new())?.finish()?;
    /// assert_eq!(Reader::new(&empty[..])?.next_value()?, None);
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError::OutOfOrder`] if a value was not ended, [`FileError::Io`].
    pub fn finish(mut self) -> Result<W, FileError> {
        if self.open.is_some() {
            return Err(FileError::OutOfOrder);
        }
        self.record(tag::FILE_END, &[&self.num_values.to_le_bytes()])?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Whether the writer is between the first chunk of a value and the end of this value.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, Kind, Writer};
    ///
    /// let mut file = Writer::new(Vec::new())?;
    /// file.begin(&Entry::new(Kind::Filter))?;
    /// assert!(!file.is_within_value());
    /// file.chunk(1, b"header")?;
    /// assert!(file.is_within_value());
    /// # Ok::<(), rollcall_core::persist::file::FileError>(())
    /// ```
    #[doc(hidden)]
    pub fn is_within_value(&self) -> bool {
        self.open.is_some_and(|(chunks, _)| chunks > 0)
    }

    /// Returns the underlying writer without finishing the file. A [`Reader`](super::Reader) can read what has been
    /// written.
    ///
    /// ```
    /// use rollcall_core::persist::file::{Entry, FileError, Kind, Reader, Writer};
    ///
    /// let mut file = Writer::new(Vec::new())?;
    /// file.begin(&Entry::new(Kind::Filter))?;
    /// let half = file.into_inner();
    /// let mut file = Reader::new(&half[..])?;
    /// assert!(file.next_value()?.is_some());
    /// assert!(matches!(file.next_chunk(), Err(FileError::Ends { .. })));
    /// # Ok::<(), FileError>(())
    /// ```
    #[doc(hidden)]
    pub fn into_inner(self) -> W {
        self.out
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.sum.update(bytes);
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes a record of these parts. It ends with the checksum of the file so far.
    fn record(&mut self, tag: u8, parts: &[&[u8]]) -> Result<(), FileError> {
        self.put(&[tag])?;
        parts.iter().try_for_each(|part| self.put(part))?;
        let sum = self.sum.digest();
        self.put(&sum.to_le_bytes())
    }
}

fn length(len: usize, most: usize, what: &'static str) -> Result<[u8; 4], FileError> {
    let written = u32::try_from(len).ok().filter(|_| len <= most);
    written.map(u32::to_le_bytes).ok_or(FileError::TooLong { what, len, most })
}
