//! Errors of reading and writing files of values.

use std::io;

use super::format::VERSION;
use crate::error;
use crate::stored::Kind;

/// An error of a [`Reader`](super::Reader) or a [`Writer`](super::Writer).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not begin like a file of values.
    #[error("no file of filters and counters")]
    NotAFile,
    /// A later version of this library wrote the file.
    #[error("version {version}, and this rollcall reads {VERSION}")]
    Newer {
        /// The format version of the file.
        version: u32,
    },
    /// The file is damaged.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// The offset of the damaged record.
        at: u64,
        /// A description of the damage.
        what: String,
    },
    /// The file ends in the middle of a record.
    #[error("ends at byte {at}, within {within}")]
    Ends {
        /// The length of the file.
        at: u64,
        /// The kind of the record that is incomplete.
        within: &'static str,
    },
    /// The value is a counter where a filter was requested, or the reverse, or not one of this library's.
    #[error("expected a {expected}, got a {}", got.map_or("value of another type", Kind::name))]
    OtherKind {
        /// The requested kind.
        expected: Kind,
        /// The kind of the value; `None` for another data type in a `DUMP` payload.
        got: Option<Kind>,
    },
    /// The file does not have exactly one value.
    #[error("expected {}", if *is_empty { "a value, got none" } else { "one value, got more" })]
    NotOneValue {
        /// Whether the file has no value. If false, it has more than one.
        is_empty: bool,
    },
    /// A key or a chunk is longer than the format allows.
    #[error("a {what} of {len} bytes is more than the {most} of a file")]
    TooLong {
        /// The kind of the part: `key` or `chunk`.
        what: &'static str,
        /// The length of the part, in bytes.
        len: usize,
        /// The largest length, in bytes.
        most: usize,
    },
    /// The methods of the writer were called in a wrong order. For example, a chunk was written before a value was
    /// begun.
    #[error("a record where it does not belong")]
    OutOfOrder,
    /// The chunks do not describe a valid filter or counter, or it is too large.
    #[error("{0}")]
    Value(#[from] error::Error),
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}
