//! Converts values to and from bytes and files, in the format of the command-line tool.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::persist::file::{self, Entry, FileError, Writer};

use crate::arguments::Limit;
use crate::errors::{raised, raised_of_file};
use crate::guarded::Guarded;
use crate::items::with_bytes;

/// What `pickle` stores: the function `from_bytes` of the class, and its arguments, which are the bytes and
/// `max_bytes`.
pub(crate) type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Option<u64>));

/// Bytes per read or write.
const BUFFER_BYTES: usize = 1 << 20;

pub(crate) fn to_bytes<'py, T: Value + Sync>(py: Python<'py>, value: &Guarded<T>) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = value.read_long(py, persist::to_bytes).map_err(|error| raised(py, error))?;
    // Unlike `PyBytes::new`, this raises `MemoryError` if memory for the second copy is short.
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(&bytes);
        Ok(())
    })
}

pub(crate) fn from_bytes<T: Value>(data: &Bound<'_, PyAny>, limit: Limit) -> PyResult<T> {
    let py = data.py();
    let read = with_bytes(data, |bytes| py.detach(|| persist::from_bytes(bytes, &limit)))?;
    read.map_err(|error| raised_of_file(py, error, None))
}

/// Writes a file under a temporary name, and renames it to `path` when it is complete and on the disk.
pub(crate) fn save<T: Value + Sync>(py: Python<'_>, value: &Guarded<T>, path: &Path) -> PyResult<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = value.read_long(py, |value| -> Result<(), FileError> {
        // The file gets the permissions of an ordinary new file, not the stricter ones of a temporary file. It is
        // opened and written as a plain `File`, because errors of a `NamedTempFile` lack the system's number, by which
        // Python picks the exception.
        let (part, name) = tempfile::Builder::new()
            .prefix(path.file_name().unwrap_or(OsStr::new("rollcall")))
            .suffix(".part")
            .make_in(folder, |name| File::create_new(name))?
            .into_parts();
        let mut writer = Writer::new(BufWriter::with_capacity(BUFFER_BYTES, part))?;
        writer.store(&Entry::new(T::KIND), value)?;
        let part = writer.finish()?.into_inner().map_err(|error| error.into_error())?;
        part.sync_all()?;
        name.persist(path).map_err(|error| error.error)?;
        // The new name is durable only after the folder has been synced too.
        Ok(File::open(folder)?.sync_all()?)
    });
    written.map_err(|error| raised_of_file(py, error, Some(path)))
}

pub(crate) fn load<T: Value>(py: Python<'_>, path: &Path, limit: Limit) -> PyResult<T> {
    let read = py.detach(|| file::read_one(BufReader::with_capacity(BUFFER_BYTES, File::open(path)?), &limit));
    read.map_err(|error| raised_of_file(py, error, Some(path)))
}
