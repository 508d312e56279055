//! Files with dumps of filters and counters, as the command-line tool writes and reads them. The repository's
//! `docs/persistence.md` describes the format. [`to_bytes`](super::to_bytes) makes a file with a single value.
//!
//! A file has any number of values. Each value has an [`Entry`] and the chunks of its dump, as `SCANDUMP` returns them.
//! Every record ends with the checksum of the file so far. So a chunk that [`Reader`] returns is intact, and so is
//! everything before it.
//!
//! ```
//! use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
//! use rollcall_core::persist::file::{Entry, FileError, Kind, Reader, Writer};
//! use rollcall_core::size_limit::{MaxBytes, Unlimited};
//! use rollcall_core::window::Time;
//!
//! # fn main() -> Result<(), FileError> {
//! let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
//! let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited)?;
//! filter.live(Time::Reached).add(b"ann", &Unlimited)?;
//!
//! let mut file = Writer::new(Vec::new())?;
//! file.store(&Entry { key: Some(b"seen".to_vec()), ..Entry::new(Kind::Filter) }, &filter)?;
//! let bytes = file.finish()?;
//!
//! let mut file = Reader::new(&bytes[..])?;
//! let entry = file.next_value()?;
//! assert_eq!(entry.and_then(|entry| entry.key).as_deref(), Some(&b"seen"[..]));
//! let copy: BloomFilter = file.load(&MaxBytes(1 << 20))?;
//! assert!(copy == filter);
//! // The file has a valid end.
//! assert_eq!(file.next_value()?, None);
//! # Ok(())
//! # }
//! ```
//!
//! [`Writer::chunk`] and [`Reader::next_chunk`] are for values that are never in memory as a whole. [`Reader::skip`]
//! skips a value, but checks it. To write a file on disk, wrap it in a [`BufWriter`](std::io::BufWriter), and sync and
//! rename it afterwards.

mod error;
mod format;
mod read;
mod write;

pub use crate::stored::Kind;
pub use error::FileError;
pub use format::Entry;
pub(super) use format::MAGIC;
pub use read::{Reader, read_one};
pub use write::Writer;

#[cfg(test)]
mod tests;
