//! Writing a file of values.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::Xxh3;

use super::format::{Entry, MAGIC, MAX_CHUNK_BYTES, MAX_KEY_BYTES, VERSION, tag};
use crate::failure::Failure;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A file being written, under a temporary name beside its own.
pub struct Writer {
    path: PathBuf,
    replace: bool,
    out: BufWriter<NamedTempFile>,
    sum: Box<Xxh3>,
    num_values: u64,
    /// Chunks and bytes of the value that was begun.
    open: Option<(u64, u64)>,
}

impl Writer {
    /// Begins a file that will be `path`. One that exists is replaced at the end, if `replace`.
    ///
    /// # Errors
    /// When there is such a file and `replace` is false, or none can be written there.
    pub fn create(path: &Path, replace: bool) -> Result<Self, Failure> {
        if !replace && path.exists() {
            return Err(exists(path));
        }
        let folder = folder_of(path);
        // The file gets the rights that any other would, not those of a temporary one.
        let temporary = tempfile::Builder::new()
            .prefix(path.file_name().unwrap_or(OsStr::new("rollcall")))
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| Failure::of(format!("cannot write to the folder {}: {error}", folder.display())))?;
        let mut writer = Writer {
            path: path.to_owned(),
            replace,
            out: BufWriter::with_capacity(BUFFER_BYTES, temporary),
            sum: Box::new(Xxh3::new()),
            num_values: 0,
            open: None,
        };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    /// Begins a value.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(&mut self, entry: &Entry) -> Result<(), Failure> {
        debug_assert!(self.open.is_none(), "a value is begun before the last one ended");
        self.put(&[tag::VALUE, entry.kind.byte()])?;
        self.put(&entry.expires_at.unwrap_or(0).to_le_bytes())?;
        match &entry.key {
            None => self.put(&[0])?,
            Some(key) => {
                let len = self.length(key.len(), MAX_KEY_BYTES, "key")?;
                self.put(&[1])?;
                self.put(&len)?;
                self.put(key)?;
            }
        }
        self.open = Some((0, 0));
        self.put_sum()
    }

    /// Writes a chunk of the value that was begun, with the iterator that came with it.
    ///
    /// # Errors
    /// When it is larger than 64 MiB, or the file cannot be written.
    pub fn chunk(&mut self, iterator: u64, bytes: &[u8]) -> Result<(), Failure> {
        let len = self.length(bytes.len(), MAX_CHUNK_BYTES, "chunk")?;
        self.put(&[tag::CHUNK])?;
        self.put(&iterator.to_le_bytes())?;
        self.put(&len)?;
        self.put(bytes)?;
        debug_assert!(self.open.is_some(), "a chunk belongs to a value");
        if let Some((chunks, sum_bytes)) = &mut self.open {
            *chunks += 1;
            *sum_bytes += bytes.len() as u64;
        }
        self.put_sum()
    }

    /// Ends the value.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end(&mut self) -> Result<(), Failure> {
        let (chunks, bytes) = self.open.take().unwrap_or_default();
        self.put(&[tag::VALUE_END])?;
        self.put(&chunks.to_le_bytes())?;
        self.put(&bytes.to_le_bytes())?;
        self.num_values += 1;
        self.put_sum()
    }

    /// Writes a whole value: its entry, and its chunks, each after its iterator.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn value<C: AsRef<[u8]>>(
        &mut self,
        entry: &Entry,
        chunks: impl IntoIterator<Item = (u64, C)>,
    ) -> Result<(), Failure> {
        self.begin(entry)?;
        for (iterator, chunk) in chunks {
            self.chunk(iterator, chunk.as_ref())?;
        }
        self.end()
    }

    /// Ends the file, makes it durable, and gives it its name.
    ///
    /// # Errors
    /// When it cannot be written or named.
    pub fn finish(mut self) -> Result<(), Failure> {
        debug_assert!(self.open.is_none(), "the last value did not end");
        self.put(&[tag::FILE_END])?;
        self.put(&self.num_values.to_le_bytes())?;
        self.put_sum()?;
        let Writer { path, replace, out, .. } = self;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        let temporary = out.into_inner().map_err(|error| cannot(error.into_error()))?;
        temporary.as_file().sync_all().map_err(cannot)?;
        let named = if replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        if let Err(error) = named {
            let taken = error.error.kind() == io::ErrorKind::AlreadyExists;
            return Err(if taken { exists(&path) } else { cannot(error.error) });
        }
        // The name is durable only when its folder is.
        File::open(folder_of(&path)).and_then(|folder| folder.sync_all()).map_err(cannot)
    }

    /// Whether a value was begun and has chunks.
    pub fn is_within_value(&self) -> bool {
        self.open.is_some_and(|(chunks, _)| chunks > 0)
    }

    /// Keeps what was written so far as `path`, which [`super::Reader`] reads up to where it ends.
    ///
    /// # Errors
    /// When it cannot be written or named.
    pub fn keep_as(self, path: &Path) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(path, &error);
        let temporary = self.out.into_inner().map_err(|error| cannot(error.into_error()))?;
        temporary.persist(path).map_err(|error| cannot(error.error))?;
        Ok(())
    }

    fn length(&self, len: usize, most: usize, what: &str) -> Result<[u8; 4], Failure> {
        let written = u32::try_from(len).ok().filter(|_| len <= most);
        written.map(u32::to_le_bytes).ok_or_else(|| {
            Failure::of(format!("{}: a {what} of {len} bytes is more than the {most} of a file", self.path.display()))
        })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.sum.update(bytes);
        self.out.write_all(bytes).map_err(|error| cannot_write(&self.path, &error))
    }

    /// Ends a record with the checksum of all before.
    fn put_sum(&mut self) -> Result<(), Failure> {
        let sum = self.sum.digest();
        self.put(&sum.to_le_bytes())
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Failure {
    Failure::of(format!("{} exists", path.display())).advise("name another file, or replace it with --force")
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::of(format!("cannot write {}: {error}", path.display()))
}
