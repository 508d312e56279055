//! Writes the file of values `FILE` under the name `FILE.part`, and renames the finished file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rollcall_core::persist::file::{self, Entry, FileError};
use tempfile::{NamedTempFile, TempPath};

use super::{Reader, Value};
use crate::failure::Failure;

/// Bytes of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A file in progress, which has the name [`part_of`] its final name. It is locked, so that only one process writes it.
/// A file that a killed process left under this name is overwritten, and its first part can be read until then.
pub struct Writer {
    path: PathBuf,
    replace: bool,
    file: file::Writer<BufWriter<NamedTempFile>>,
}

impl Writer {
    /// Creates a file that gets the name `path` when it is finished. An existing file is then replaced if `replace` is
    /// set.
    ///
    /// # Errors
    /// When `path` is `-`, the file exists and `replace` is false, or when no file can be created in the folder.
    pub fn create(path: &Path, replace: bool) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Err(Failure::arguments("no file of values is written to standard output, which - stands for")
                .advise("name a file; ./- is one of this name"));
        }
        if !replace && path.exists() {
            return Err(exists(path));
        }
        // Renaming a file to `path` would replace a device or a folder of this name, so both are rejected.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{} is there and is no file", path.display())).advise("name another file"));
        }
        let (folder, part) = (folder_of(path), part_of(path));
        let cannot =
            |error: io::Error| Failure::new(format!("cannot write to the folder {}: {error}", folder.display()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part);
        let file = file.map_err(cannot)?;
        // The process that held the lock before may have renamed the file.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !is_named(&file, &part) {
            return Err(Failure::new(format!("another process writes {}", part.display())).advise("wait for its end"));
        }
        if file.metadata().map_err(cannot)?.len() > 0 {
            Reader::open(&part)?;
        }
        let temporary = NamedTempFile::from_parts(file, TempPath::try_from_path(part).map_err(cannot)?);
        let file = file::Writer::new(BufWriter::with_capacity(BUFFER_BYTES, temporary));
        Ok(Writer { path: path.to_owned(), replace, file: file.map_err(|error| failure(path, error))? })
    }

    /// Begins a value.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(&mut self, entry: &Entry) -> Result<(), Failure> {
        self.file.begin(entry).map_err(|error| failure(&self.path, error))
    }

    /// Writes a chunk of the current value, with the `SCANDUMP` iterator that goes with it.
    ///
    /// # Errors
    /// When the chunk is larger than 64 MiB, or when the file cannot be written.
    pub fn chunk(&mut self, iterator: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.file.chunk(iterator, bytes).map_err(|error| failure(&self.path, error))
    }

    /// Ends the value.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.file.end().map_err(|error| failure(&self.path, error))
    }

    /// Writes a value from memory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store(&mut self, entry: &Entry, value: &Value) -> Result<(), Failure> {
        let stored = match value {
            Value::Filter(filter) => self.file.store(entry, filter),
            Value::Counter(counter) => self.file.store(entry, counter),
        };
        stored.map_err(|error| failure(&self.path, error))
    }

    /// Completes the file, writes it to the disk durably, and renames it to its final name.
    ///
    /// # Errors
    /// When the file cannot be written or renamed.
    pub fn finish(self) -> Result<(), Failure> {
        let Writer { path, replace, file } = self;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        let out = file.finish().map_err(|error| failure(&path, error))?;
        let temporary = written(out).map_err(cannot)?;
        temporary.as_file().sync_all().map_err(cannot)?;
        let named = if replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        if let Err(error) = named {
            let taken = error.error.kind() == io::ErrorKind::AlreadyExists;
            return Err(if taken { exists(&path) } else { cannot(error.error) });
        }
        // The new name is durable only after the folder has been synced too.
        File::open(folder_of(&path)).and_then(|folder| folder.sync_all()).map_err(cannot)
    }

    /// Whether a value has been begun, has chunks, and has not been ended.
    pub fn is_within_value(&self) -> bool {
        self.file.is_within_value()
    }

    /// Keeps the unfinished file under the name [`part_of`] its path. A [`Reader`] reads it up to the point where it
    /// ends. If no value with chunks has been begun, the file stays as a killed process left it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(self) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(&self.path, &error);
        let is_within_value = self.is_within_value();
        let out = self.file.into_inner();
        let temporary = if is_within_value { written(out).map_err(cannot)? } else { out.into_parts().0 };
        temporary.keep().map_err(|error| cannot(error.error))?;
        Ok(())
    }
}

/// The name of the unfinished file `path`.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Whether an open file has the name `path`.
fn is_named(file: &File, path: &Path) -> bool {
    let inode = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, named) = (file.metadata().map(inode), std::fs::metadata(path).map(inode));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

/// Writes what is buffered, and removes what the file had after that.
fn written(out: BufWriter<NamedTempFile>) -> io::Result<NamedTempFile> {
    let mut temporary = out.into_inner().map_err(|error| error.into_error())?;
    let len = temporary.stream_position()?;
    temporary.as_file().set_len(len)?;
    Ok(temporary)
}

/// The folder of a file; `.` if the path has none.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!("{} exists", path.display())).advise("name another file, or replace it with --force")
}

/// The failure for an error in writing the file `path`.
fn failure(path: &Path, error: FileError) -> Failure {
    match error {
        FileError::Io(error) => cannot_write(path, &error),
        other => Failure::new(format!("{}: {other}", path.display())),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
