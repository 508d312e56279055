//! Files of values on disk, in the library's [`file`](rollcall_core::persist::file) format. This module adds paths,
//! temporary files and the tool's error messages.
//!
//! A writer uses a temporary file `FILE.part`, which gets its name at the end. If the writer is dropped before the end,
//! the file is deleted:
//!
//! ```ignore
//! let mut file = file::Writer::create(path, replace)?;
//! file.begin(&Entry { kind: Kind::Filter, key: Some(b"seen".into()), expires_at: Some(unix_ms) })?;
//! file.chunk(iterator, &bytes)?;                  // once for each reply of SCANDUMP but the last, which is (0, "")
//! file.end()?;
//! file.store(&Entry::new(Kind::Counter), &Value::Counter(counter))?;         // the same in one call
//! file.finish()?;                                 // number of values, fsync, rename
//! ```
//!
//! Reading:
//!
//! ```ignore
//! let mut file = file::Reader::open(path)?;
//! while let Some(entry) = file.next_value()? {
//!     while let Some((iterator, bytes)) = file.next_chunk()? { /* LOADCHUNK key iterator bytes */ }
//! }                                               // None: the end of a complete file
//! ```
//!
//! [`Reader::load`] loads the value of an entry into memory instead. All errors name the file and the offset of the
//! byte.

mod read;
mod value;
mod write;

pub use read::Reader;
pub use rollcall_core::persist::file::{Entry, Kind};
pub use value::Value;
pub use write::{Writer, part_of};

#[cfg(test)]
mod tests;
