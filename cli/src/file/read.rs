//! Reading a file of values.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use rollcall_core::live::Value as Stored;
use rollcall_core::persist::file::{self, Entry, FileError, Kind};
use rollcall_core::size_limit::SizeLimit;

use super::Value;
use crate::failure::Failure;

/// Bytes per read.
const BUFFER_BYTES: usize = 1 << 20;

/// A file being read.
pub struct Reader<R> {
    path: PathBuf,
    file: file::Reader<R>,
}

impl Reader<BufReader<File>> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, or is no file of values.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Reader::new(path, open(path)?)
    }

    /// Opens a file after reading it to its end: all checksums are right. A pipe, which can be read only once, is
    /// copied to a temporary file.
    ///
    /// # Errors
    /// When the file cannot be read or copied, is no file of values, or is damaged.
    pub fn open_verified(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| failure(path, FileError::Io(error));
        let mut opened = open(path)?;
        if !opened.metadata().map_err(cannot)?.is_file() {
            let mut copy = tempfile::tempfile().map_err(cannot)?;
            io::copy(&mut opened, &mut copy).map_err(cannot)?;
            copy.rewind().map_err(cannot)?;
            opened = copy;
        }
        let mut verified = Reader::new(path, opened.try_clone().map_err(cannot)?)?;
        while verified.next_value()?.is_some() {}
        // The cloned handle has the same position as `opened`, which is now at the end.
        opened.rewind().map_err(cannot)?;
        Reader::new(path, opened)
    }

    fn new(path: &Path, opened: File) -> Result<Self, Failure> {
        let file = file::Reader::new(BufReader::with_capacity(BUFFER_BYTES, opened));
        Ok(Reader { path: path.to_owned(), file: file.map_err(|error| failure(path, error))? })
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| failure(path, FileError::Io(error)))
}

impl<R: Read> Reader<R> {
    /// Moves on to the next value, skipping the rest of the current one. `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read.
    pub fn next_value(&mut self) -> Result<Option<Entry>, Failure> {
        self.file.next_value().map_err(|error| failure(&self.path, error))
    }

    /// The next chunk of the current value, with the `SCANDUMP` iterator that goes with it. `None` at the end of the
    /// value.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read.
    pub fn next_chunk(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        self.file.next_chunk().map_err(|error| failure(&self.path, error))
    }

    /// Loads the value of `entry` from its chunks. No chunk of the value may have been read before.
    ///
    /// # Errors
    /// When the file is damaged, when its chunks are no value of this kind, or when the value exceeds `limit`.
    pub fn load(&mut self, entry: &Entry, limit: &impl SizeLimit) -> Result<Value, Failure> {
        match entry.kind {
            Kind::Filter => self.load_as(limit).map(Value::Filter),
            Kind::Counter => self.load_as(limit).map(Value::Counter),
            other => Err(Failure::new(format!("{}: this tool knows no {other}", self.path.display()))),
        }
    }

    fn load_as<T: Stored>(&mut self, limit: &impl SizeLimit) -> Result<T, Failure> {
        self.file.load(limit).map_err(|error| failure(&self.path, error))
    }
}

/// The failure for an error in the file `path`.
fn failure(path: &Path, error: FileError) -> Failure {
    let path = path.display();
    match error {
        FileError::NotAFile => {
            Failure::new(format!("{path} is {error}")).advise("rollcall build and rollcall dump write such files")
        }
        FileError::Newer { .. } => {
            Failure::new(format!("{path}: {error}")).advise("use the rollcall that wrote it, or a newer one")
        }
        FileError::Damaged { .. } => Failure::new(format!("{path}: {error}")).advise("copy or write the file again"),
        FileError::Ends { .. } => {
            Failure::new(format!("{path}: {error}")).advise("it was cut short: copy or write it again")
        }
        FileError::Io(error) => Failure::new(format!("cannot read {path}: {error}")),
        other => Failure::new(format!("{path}: {other}")),
    }
}
