//! Writes a file of values under a temporary name, and renames the finished file.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rollcall_core::persist::file::{self, Entry, FileError};
use tempfile::NamedTempFile;

use super::Value;
use crate::failure::Failure;

/// Bytes of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A file in progress, which has a temporary name in the folder of its final name.
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
    /// When the file exists and `replace` is false, or when no file can be created in the folder.
    pub fn create(path: &Path, replace: bool) -> Result<Self, Failure> {
        if !replace && path.exists() {
            return Err(exists(path));
        }
        // Renaming a file to `path` would replace a device or a folder of this name, so both are rejected.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{} is there and is no file", path.display())).advise("name another file"));
        }
        let folder = folder_of(path);
        // The file gets the permissions of an ordinary new file, not the stricter ones of a temporary file.
        let temporary = tempfile::Builder::new()
            .prefix(path.file_name().unwrap_or(OsStr::new("rollcall")))
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| Failure::new(format!("cannot write to the folder {}: {error}", folder.display())))?;
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
        let temporary = out.into_inner().map_err(|error| cannot(error.into_error()))?;
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

    /// Keeps the unfinished file under the name `path`. A [`super::Reader`] reads it up to the point where it ends.
    ///
    /// # Errors
    /// When the file cannot be written or renamed.
    pub fn keep_as(self, path: &Path) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(path, &error);
        let temporary = self.file.into_inner().into_inner().map_err(|error| cannot(error.into_error()))?;
        temporary.persist(path).map_err(|error| cannot(error.error))?;
        Ok(())
    }
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
