//! Errors of reading and writing files of values.

use std::{fmt, io};

use super::format::VERSION;
use crate::error;
use crate::persist::value::Kind;

/// An error of a [`Reader`](super::Reader) or a [`Writer`](super::Writer). Errors about a file's content give the
/// offset.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not begin like a file of values.
    NotAFile,
    /// A later version wrote the file.
    Newer {
        /// The version of the file.
        version: u32,
    },
    /// The file is damaged.
    Damaged {
        /// The offset of the damaged record.
        at: u64,
        /// A description of the damage.
        what: String,
    },
    /// The file ends early.
    Ends {
        /// The length of the file.
        at: u64,
        /// The record that is incomplete.
        within: &'static str,
    },
    /// The value in the file is of another kind than the requested one.
    OtherKind {
        /// The requested kind.
        expected: Kind,
        /// The kind in the file.
        got: Kind,
    },
    /// The file does not have exactly one value.
    NotOneValue {
        /// Whether the file has no value.
        is_empty: bool,
    },
    /// A key or a chunk is longer than the format allows.
    TooLong {
        /// The name of the part: `key` or `chunk`.
        what: &'static str,
        /// The length of the part, in bytes.
        len: usize,
        /// The largest length, in bytes.
        most: usize,
    },
    /// The writer was called out of order. A chunk was written or a value was ended without a value, or a value or the
    /// end of the file came within another value.
    OutOfOrder,
    /// The chunks make no valid value, or one that is too large.
    Value(error::Error),
    /// The file cannot be read or written.
    Io(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotAFile => f.write_str("no file of filters and counters"),
            FileError::Newer { version } => write!(f, "version {version}, and this rollcall reads {VERSION}"),
            FileError::Damaged { at, what } => write!(f, "damaged at byte {at}: {what}"),
            FileError::Ends { at, within } => write!(f, "ends at byte {at}, within {within}"),
            FileError::OtherKind { expected, got } => write!(f, "expected a {expected}, got a {got}"),
            FileError::NotOneValue { is_empty: true } => f.write_str("expected a value, got none"),
            FileError::NotOneValue { is_empty: false } => f.write_str("expected one value, got more"),
            FileError::TooLong { what, len, most } => {
                write!(f, "a {what} of {len} bytes is more than the {most} of a file")
            }
            FileError::OutOfOrder => f.write_str("a record where it does not belong"),
            FileError::Value(error) => error.fmt(f),
            FileError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FileError::Value(error) => Some(error),
            FileError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        FileError::Io(error)
    }
}

impl From<error::Error> for FileError {
    fn from(error: error::Error) -> Self {
        FileError::Value(error)
    }
}
