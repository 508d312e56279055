//! Files of values: dumps of filters and counters, streamed in and out. docs/persistence.md has the byte table.
//!
//! A file has any number of values. Each has an [`Entry`] (kind, and for one from a server its key and expiry) and the
//! chunks of its dump, as `SCANDUMP` gives them. Every record ends with the checksum of the file so far. So a chunk that
//! [`Reader`] hands out is intact, and so is all before it; only what follows may still be damaged or missing.
//!
//! Writing, to a temporary file that gets its name at the end (dropped before that, it goes away):
//!
//! ```ignore
//! let mut file = file::Writer::create(path, replace)?;
//! file.begin(&Entry { kind: Kind::Filter, key: Some(b"seen".into()), expires_at: Some(unix_ms) })?;
//! file.chunk(iterator, &bytes)?;                  // once for each reply of SCANDUMP but the last, which is (0, "")
//! file.end()?;
//! file.value(&Entry::of(Kind::Counter), persist::dump(&counter))?;         // the same in one call
//! file.finish()?;                                 // number of values, fsync, rename
//! ```
//!
//! Reading:
//!
//! ```ignore
//! let mut file = file::Reader::open(path)?;
//! while let Some(entry) = file.next_value()? {
//!     while let Some((iterator, bytes)) = file.next_chunk()? { /* LOADCHUNK key iterator bytes */ }
//! }                                               // None: the end was there, and right
//! ```
//!
//! [`Reader::load`] makes the value of an entry in memory instead. [`Reader::skip`] passes over it, checking it. All errors
//! name the file and the byte.

mod format;
mod read;
mod value;
mod write;

pub use format::{Entry, Kind};
pub use read::Reader;
pub use value::Value;
pub use write::Writer;

#[cfg(test)]
mod tests;
