//! Errors of the core.
//!
//! Every variant has the expected and the found value. Clients match on texts that the server module writes; the texts
//! of `Display` here are for library users and logs.

use std::fmt;

/// Declares an enum in which each variant has a name for users. `name` returns the name, and `Display` writes it. The
/// server module uses this macro too.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* pub enum $Named:ident { $($(#[$what:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        pub enum $Named {
            $($(#[$what])* $variant,)+
        }

        impl $Named {
            /// The name for users.
            pub fn name(self) -> &'static str {
                match self {
                    $($Named::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $Named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// A parameter of a value.
    ///
    /// ```
    /// assert_eq!(rollcall_core::error::Parameter::ErrorRate.name(), "error rate");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Parameter {
        /// The number of items or members that the value is sized for.
        Capacity = "capacity",
        /// The rate of false positives of a filter, or the relative error of a counter.
        ErrorRate = "error rate",
        /// The size of each further sub-filter as a multiple of the previous one.
        Expansion = "expansion",
        /// The number of sub-filters of a filter.
        SubFilters = "number of sub-filters",
        /// The layout of a filter: where in the bitmap an item's bits are.
        Layout = "layout",
        /// The sizes of a sub-filter in RedisBloom's layout.
        Shape = "shape",
        /// The number of members up to which a counter is exact.
        ExactLimit = "exact limit",
        /// The limit of an exact counter on the sum of the lengths of its members, in bytes.
        ExactBytes = "exact bytes",
        /// Seed of the hash.
        Seed = "seed",
        /// The number of counters in one query.
        Counters = "number of counters",
        /// The length of a window, in seconds.
        Window = "window",
        /// The span of a query, in seconds.
        Seconds = "seconds",
        /// The number of slices of a window.
        Slices = "slices",
        /// The number of a slice.
        Slice = "slice",
        /// The name of a partitioned value: the common prefix of the keys of its parts.
        Name = "name",
        /// The number of parts of a partitioned value.
        Parts = "number of parts",
        /// The index of a part of a partitioned value.
        Part = "part",
    }
}

/// The limit that a size exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The largest size of one value.
    Value,
    /// The memory that is still free.
    Memory,
}

/// An error of the core. A function that returns one has changed nothing, unless its documentation says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its range.
    #[error("{parameter} must be {expected}, got {got}")]
    OutOfRange {
        /// The parameter that is out of range.
        parameter: Parameter,
        /// The valid range, as text.
        expected: String,
        /// The given value, as text.
        got: String,
    },
    /// The value would take more bytes than its [`SizeLimit`](crate::size_limit::SizeLimit) allows.
    #[error("{needed_bytes} bytes needed, more than the limit of {limit_bytes}")]
    TooLarge {
        /// Bytes that the whole value would take. If free memory is the limit, only the bytes by which the value would
        /// grow.
        needed_bytes: u64,
        /// Bytes that the value may take.
        limit_bytes: u64,
        /// The limit that was exceeded.
        limit: Limit,
    },
    /// An allocation failed.
    #[error("no memory for {needed_bytes} bytes")]
    OutOfMemory {
        /// Bytes that could not be allocated.
        needed_bytes: u64,
    },
    /// A filter that does not scale is full: it has reached its capacity, or the number of set bits that it was sized
    /// for.
    #[error("the filter for {capacity} items is full and does not scale")]
    Full {
        /// The capacity of the filter, in items.
        capacity: u64,
    },
    /// Two values cannot be merged because they differ in a parameter.
    #[error("{parameter} differs: destination has {ours}, source has {theirs}")]
    Incompatible {
        /// The parameter in which the two values differ.
        parameter: Parameter,
        /// The parameter's value in the destination.
        ours: String,
        /// The parameter's value in the source.
        theirs: String,
    },
    /// A merge would give a filter whose false-positive rate is above the rate that it was made with.
    #[error("the merged filter would have a false-positive rate of {would_be}, above {asked}")]
    RateExceeded {
        /// The false-positive rate that the merged filter would have.
        would_be: f64,
        /// The false-positive rate that the filter was made with.
        asked: f64,
    },
    /// A slice has begun while a dump was read, so the dump must start again with iterator 0.
    #[error("a slice has begun since the dump did: start again with iterator 0, got {iterator}")]
    Stale {
        /// The iterator at which the dump was to continue.
        iterator: u64,
    },
    /// Members were requested from a counter that holds an estimate.
    #[error("the counter had more than {exact_limit} members or {exact_bytes} bytes of them: it holds an estimate")]
    NotExact {
        /// The number of members up to which the counter lists them.
        exact_limit: u32,
        /// Bytes that the listed members may take together.
        exact_bytes: u32,
    },
    /// New members would make an exact counter an estimate.
    #[error(
        "{members} members of {bytes} bytes are more than the {exact_limit} members of {exact_bytes} bytes up to which \
         the counter is exact"
    )]
    PastExact {
        /// The number of members up to which the counter is exact.
        exact_limit: u32,
        /// The limit of an exact counter on the sum of the lengths of its members, in bytes.
        exact_bytes: u32,
        /// The number of members after the change.
        members: u64,
        /// The sum of the lengths of the members after the change, in bytes.
        bytes: u64,
    },
    /// Stored or received bytes do not describe a value.
    #[error("{field}: expected {expected}, got {got}")]
    Corrupt {
        /// The name of the wrong field.
        field: &'static str,
        /// The value that was expected.
        expected: String,
        /// The value that was found.
        got: String,
    },
}

impl Error {
    /// Shorthand for [`Error::OutOfRange`].
    pub(crate) fn out_of_range(parameter: Parameter, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Error::OutOfRange { parameter, expected: expected.to_string(), got: got.to_string() }
    }

    /// Shorthand for [`Error::Incompatible`].
    pub(crate) fn incompatible(parameter: Parameter, ours: impl fmt::Display, theirs: impl fmt::Display) -> Self {
        Error::Incompatible { parameter, ours: ours.to_string(), theirs: theirs.to_string() }
    }

    /// [`Error::OutOfRange`], unless the parameter is in its range.
    #[inline(always)]
    pub(crate) fn check_range(
        is_in_range: bool,
        parameter: Parameter,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Result<(), Self> {
        if is_in_range { Ok(()) } else { Err(Self::out_of_range(parameter, expected, got)) }
    }

    /// [`Error::Corrupt`], unless the field has a valid value.
    #[inline(always)]
    pub(crate) fn check_field(
        is_valid: bool,
        field: &'static str,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(Self::corrupt(field, expected, got)) }
    }

    /// [`Error::Incompatible`], unless both values are equal.
    pub(crate) fn check_same<T: PartialEq + fmt::Display>(
        parameter: Parameter,
        ours: T,
        theirs: T,
    ) -> Result<(), Self> {
        if ours == theirs { Ok(()) } else { Err(Self::incompatible(parameter, ours, theirs)) }
    }

    /// Shorthand for [`Error::Corrupt`]. For the tool and the server module.
    ///
    /// ```
    /// let error = rollcall_core::error::Error::corrupt("file", "at least 8 bytes", 3);
    /// assert_eq!(error.to_string(), "file: expected at least 8 bytes, got 3");
    /// ```
    #[doc(hidden)]
    pub fn corrupt(field: &'static str, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Error::Corrupt { field, expected: expected.to_string(), got: got.to_string() }
    }
}
