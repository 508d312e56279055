//! Reading a file of values. Nothing in it is believed before it was checked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::format::{Entry, Kind, MAGIC, MAX_CHUNK_BYTES, MAX_KEY_BYTES, VERSION, tag};
use crate::failure::Failure;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// A file being read.
pub struct Reader<R> {
    path: PathBuf,
    input: R,
    /// Bytes read.
    position: u64,
    sum: Box<Xxh3>,
    num_values: u64,
    /// Chunks and bytes of the value whose chunks are being read.
    open: Option<(u64, u64)>,
}

impl Reader<BufReader<File>> {
    /// Opens a file and reads its beginning.
    ///
    /// # Errors
    /// When it cannot be read, or is no such file.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        Reader::new(path, BufReader::with_capacity(BUFFER_BYTES, file))
    }
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of `input`, which errors call `path`.
    ///
    /// # Errors
    /// When it cannot be read, or begins otherwise.
    pub fn new(path: &Path, input: R) -> Result<Self, Failure> {
        let sum = Box::new(Xxh3::new());
        let mut reader = Reader { path: path.to_owned(), input, position: 0, sum, num_values: 0, open: None };
        if reader.array::<{ MAGIC.len() }>("the beginning").ok() != Some(MAGIC) {
            return Err(Failure::of(format!("{} is no file of filters and counters", path.display()))
                .advise("rollcall build and rollcall dump write such files"));
        }
        match u32::from_le_bytes(reader.array("the version")?) {
            VERSION => Ok(reader),
            newer => {
                Err(Failure::of(format!("{}: version {newer}, and this rollcall reads {VERSION}", path.display()))
                    .advise("use the rollcall that wrote it, or a newer one"))
            }
        }
    }

    /// The next value; what is left of the one before is passed over. `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read.
    pub fn next_value(&mut self) -> Result<Option<Entry>, Failure> {
        self.skip()?;
        let start = self.position;
        match self.byte("a record")? {
            tag::VALUE => {
                let entry = self.entry(start)?;
                self.check_sum(start)?;
                self.open = Some((0, 0));
                Ok(Some(entry))
            }
            tag::FILE_END => {
                let num_values = u64::from_le_bytes(self.array("the number of values")?);
                self.check_sum(start)?;
                self.expect(start, "values", self.num_values, num_values)?;
                let mut rest = [0];
                match self.fill(&mut rest) {
                    Ok(0) => Ok(None),
                    Ok(_) => Err(self.damaged(self.position, "bytes after the end")),
                    Err(error) => Err(cannot_read(&self.path, &error)),
                }
            }
            other => {
                Err(self.damaged(start, format_args!("a record of kind {other} where a value or the end should be")))
            }
        }
    }

    /// The next chunk of the value, with its iterator. `None` at its end.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read.
    pub fn next_chunk(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let Some((chunks, sum_bytes)) = self.open else { return Ok(None) };
        let start = self.position;
        match self.byte("a record")? {
            tag::CHUNK => {
                let iterator = u64::from_le_bytes(self.array("an iterator")?);
                let chunk = self.bytes(start, MAX_CHUNK_BYTES, "chunk")?;
                self.check_sum(start)?;
                self.open = Some((chunks + 1, sum_bytes + chunk.len() as u64));
                Ok(Some((iterator, chunk)))
            }
            tag::VALUE_END => {
                let (own_chunks, own_bytes) = (self.array("the number of chunks")?, self.array("the sum of bytes")?);
                self.check_sum(start)?;
                self.expect(start, "chunks", chunks, u64::from_le_bytes(own_chunks))?;
                self.expect(start, "bytes of chunks", sum_bytes, u64::from_le_bytes(own_bytes))?;
                self.open = None;
                self.num_values += 1;
                Ok(None)
            }
            other => Err(self.damaged(start, format_args!("a record of kind {other} where a chunk should be"))),
        }
    }

    /// Passes over the rest of the value, checking it.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read.
    pub fn skip(&mut self) -> Result<(), Failure> {
        while self.next_chunk()?.is_some() {}
        Ok(())
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn entry(&mut self, start: u64) -> Result<Entry, Failure> {
        let kind = self.byte("a kind")?;
        let kind = Kind::ALL
            .into_iter()
            .find(|known| known.byte() == kind)
            .ok_or_else(|| self.damaged(start, format_args!("a value of unknown kind {kind}")))?;
        let expires_at = u64::from_le_bytes(self.array("an expiry")?);
        let key = match self.byte("a key")? {
            0 => None,
            1 => Some(self.bytes(start, MAX_KEY_BYTES, "key")?),
            other => return Err(self.damaged(start, format_args!("{other} where 1 or 0 tells of a key"))),
        };
        Ok(Entry { kind, key, expires_at: (expires_at > 0).then_some(expires_at) })
    }

    /// Bytes after their length.
    fn bytes(&mut self, start: u64, most: usize, what: &str) -> Result<Vec<u8>, Failure> {
        let len = u32::from_le_bytes(self.array("a length")?) as usize;
        if len > most {
            return Err(self.damaged(start, format_args!("a {what} of {len} bytes, more than {most}")));
        }
        // The list grows with what arrives: a length that lies allocates no more than the file has.
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(len as u64).read_to_end(&mut bytes);
        read.map_err(|error| cannot_read(&self.path, &error))?;
        self.took(&bytes);
        if bytes.len() < len { Err(self.ends_in(what)) } else { Ok(bytes) }
    }

    fn byte(&mut self, what: &str) -> Result<u8, Failure> {
        let [byte] = self.array(what)?;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        let len = self.fill(&mut bytes).map_err(|error| cannot_read(&self.path, &error))?;
        self.took(&bytes[..len]);
        if len < N { Err(self.ends_in(what)) } else { Ok(bytes) }
    }

    /// Reads as many bytes as there are, up to all.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while len < bytes.len() {
            match self.input.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(len)
    }

    fn took(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.position += bytes.len() as u64;
    }

    /// Compares the checksum that ends the record from `start` on.
    fn check_sum(&mut self, start: u64) -> Result<(), Failure> {
        let expected = self.sum.digest();
        match u64::from_le_bytes(self.array("a checksum")?) {
            own if own == expected => Ok(()),
            _ => Err(self.damaged(start, "a checksum that does not fit")),
        }
    }

    fn expect(&self, start: u64, what: &str, counted: u64, stored: u64) -> Result<(), Failure> {
        if counted == stored {
            return Ok(());
        }
        Err(self.damaged(start, format_args!("{stored} {what} where {counted} came")))
    }

    fn damaged(&self, at: u64, what: impl std::fmt::Display) -> Failure {
        Failure::of(format!("{}: damaged at byte {at}: {what}", self.path.display()))
            .advise("copy or write the file again")
    }

    fn ends_in(&self, what: &str) -> Failure {
        Failure::of(format!("{}: ends at byte {}, within {what}", self.path.display(), self.position))
            .advise("it was cut short: copy or write it again")
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::of(format!("cannot read {}: {error}", path.display()))
}
