//! Errors of files of values.

use std::{fmt, io};

use super::format::VERSION;
use crate::error;
use crate::persist::value::Kind;

/// An error of a [`Reader`](super::Reader) or a [`Writer`](super::Writer). Those of a file say at which byte.
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
        /// The defect.
        what: String,
    },
    /// The file ends early.
    Ends {
        /// The length of the file.
        at: u64,
        /// The record that is incomplete.
        within: &'static str,
    },
    /// The file has a value of another kind than was asked for.
    OtherKind {
        /// The kind asked for.
        expected: Kind,
        /// The kind that was found.
        got: Kind,
    },
    /// The file does not have exactly one value.
    NotOneValue {
        /// Whether the file has no value.
        is_empty: bool,
    },
    /// A key or a chunk is longer than a file may have.
    TooLong {
        /// The name of the part: `key` or `chunk`.
        what: &'static str,
        /// The length of the part, in bytes.
        len: usize,
        /// The largest length, in bytes.
        most: usize,
    },
    /// A chunk was written or a value ended where none had begun, or a value or the file within another value.
    OutOfOrder,
    /// The chunks give no value, or one that is too large.
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
