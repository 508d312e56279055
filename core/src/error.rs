//! What can go wrong in the core.
//!
//! Every variant carries what was expected and what was found, as values. The texts that clients
//! match on are the server glue's business; `Display` here is for library users and logs.

use std::fmt;

/// An error of the core. Nothing was changed when one is returned, unless the function says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A parameter lies outside its range.
    OutOfRange {
        /// Name of the parameter, as users know it (`capacity`, `error_rate`, ...).
        field: &'static str,
        /// The range, in words.
        expected: &'static str,
        /// The value given.
        got: String,
    },
    /// The value would take more bytes than its [`SizeLimit`](crate::size_limit::SizeLimit) allows.
    TooLarge {
        /// Bytes the whole value would take.
        needed_bytes: u64,
        /// Bytes it may take.
        limit_bytes: u64,
        /// Name of the limit that refused it.
        limit: &'static str,
    },
    /// The allocator had no memory left.
    OutOfMemory {
        /// Bytes asked for.
        needed_bytes: u64,
    },
    /// A filter that does not scale holds as many items as it was made for.
    Full {
        /// Its capacity, in items.
        capacity: u64,
    },
    /// Two values cannot be merged because they differ in a parameter.
    Incompatible {
        /// Name of the parameter.
        field: &'static str,
        /// Its value in the destination.
        ours: String,
        /// Its value in the source.
        theirs: String,
    },
    /// A merged filter would answer wrongly more often than it was asked to.
    RateExceeded {
        /// The false-positive rate it would have.
        would_be: f64,
        /// The rate asked for.
        asked: f64,
    },
    /// Members were asked of a counter that holds an estimate.
    NotExact,
    /// Stored or received bytes do not describe a value.
    Corrupt {
        /// Name of the field that is wrong.
        field: &'static str,
        /// What it should have been.
        expected: String,
        /// What it was.
        got: String,
    },
}

impl Error {
    /// Shorthand for [`Error::OutOfRange`].
    pub fn out_of_range(field: &'static str, expected: &'static str, got: impl fmt::Display) -> Self {
        Error::OutOfRange { field, expected, got: got.to_string() }
    }

    /// Shorthand for [`Error::Incompatible`].
    pub fn incompatible(field: &'static str, ours: impl fmt::Display, theirs: impl fmt::Display) -> Self {
        Error::Incompatible { field, ours: ours.to_string(), theirs: theirs.to_string() }
    }

    /// Shorthand for [`Error::Corrupt`].
    pub fn corrupt(field: &'static str, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Error::Corrupt { field, expected: expected.to_string(), got: got.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfRange { field, expected, got } => write!(f, "{field} must be {expected}, got {got}"),
            Error::TooLarge { needed_bytes, limit_bytes, limit } => {
                write!(f, "{needed_bytes} bytes needed, more than {limit} ({limit_bytes})")
            }
            Error::OutOfMemory { needed_bytes } => write!(f, "no memory for {needed_bytes} bytes"),
            Error::Full { capacity } => write!(f, "the filter holds its {capacity} items and does not scale"),
            Error::Incompatible { field, ours, theirs } => {
                write!(f, "{field} differs: destination has {ours}, source has {theirs}")
            }
            Error::RateExceeded { would_be, asked } => {
                write!(f, "the merged filter would have a false-positive rate of {would_be}, above {asked}")
            }
            Error::NotExact => write!(f, "the counter holds an estimate, not its members"),
            Error::Corrupt { field, expected, got } => write!(f, "{field}: expected {expected}, got {got}"),
        }
    }
}

impl std::error::Error for Error {}
