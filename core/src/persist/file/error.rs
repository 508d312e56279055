//! Errors of files of values.

use std::{fmt, io};

use super::format::VERSION;
use crate::error;
use crate::persist::value::Kind;

/// An error of a [`Reader`](super::Reader) or a [`Writer`](super::Writer). Those of a file say at which byte.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAFile => f.write_str("no file of filters and counters"),
            Error::Newer { version } => write!(f, "version {version}, and this rollcall reads {VERSION}"),
            Error::Damaged { at, what } => write!(f, "damaged at byte {at}: {what}"),
            Error::Ends { at, within } => write!(f, "ends at byte {at}, within {within}"),
            Error::OtherKind { expected, got } => write!(f, "expected a {expected}, got a {got}"),
            Error::NotOneValue { is_empty: true } => f.write_str("expected a value, got none"),
            Error::NotOneValue { is_empty: false } => f.write_str("expected one value, got more"),
            Error::TooLong { what, len, most } => {
                write!(f, "a {what} of {len} bytes is more than the {most} of a file")
            }
            Error::OutOfOrder => f.write_str("a record where it does not belong"),
            Error::Value(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Value(error) => Some(error),
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<error::Error> for Error {
    fn from(error: error::Error) -> Self {
        Error::Value(error)
    }
}
