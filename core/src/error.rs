//! Errors of this library.
//!
//! The texts of `Display` are for users of the library and for logs. The server module has its own texts for many
//! errors, because clients match on them.

use std::fmt::Display;

/// Declares an enum whose variants have names for users, which `name` and `Display` give. The server module uses this
/// macro too.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* pub enum $Named:ident { $($(#[$what:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        pub enum $Named {
            $($(#[$what])* $variant,)+
        }

        impl $Named {
            /// The name of the variant for users, which `Display` writes too.
            #[doc(hidden)]
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
    /// A parameter of a filter, a counter, a window or a query.
    ///
    /// ```
    /// assert_eq!(rollcall_core::error::Parameter::ErrorRate.name(), "error rate");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Parameter {
        /// The number of items or members that a filter or counter is sized for.
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
        /// The number of bytes that the members of an exact counter may take together.
        ExactBytes = "exact bytes",
        /// Seed of the hash.
        Seed = "seed",
        /// The number of counters in a query.
        Counters = "number of counters",
        /// The length of a window, in seconds.
        Window = "window",
        /// The span of time that a query covers, back from now, in seconds.
        Seconds = "seconds",
        /// The number of slices of a window.
        Slices = "slices",
        /// The number of a slice.
        Slice = "slice",
    }
}

/// The limit that a size of a filter or counter exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The limit on the size of one filter or counter.
    Value,
    /// The free memory.
    Memory,
}

/// An error of this library. A function that returns an error has changed nothing, unless its documentation says
/// otherwise.
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
    /// The filter or counter would exceed its [`SizeLimit`](crate::size_limit::SizeLimit).
    #[error("{needed_bytes} bytes needed, more than the limit of {limit_bytes}")]
    TooLarge {
        /// With [`Limit::Value`], the bytes that the whole filter or counter would take. With [`Limit::Memory`], the
        /// bytes by which it would grow.
        needed_bytes: u64,
        /// The bytes that the filter or counter may take.
        limit_bytes: u64,
        /// The limit that was exceeded.
        limit: Limit,
    },
    /// An allocation failed.
    #[error("no memory for {needed_bytes} bytes")]
    OutOfMemory {
        /// The number of bytes that could not be allocated.
        needed_bytes: u64,
    },
    /// A filter that does not scale is full.
    #[error("the filter for {capacity} items is full and does not scale")]
    Full {
        /// The capacity of the filter, in items.
        capacity: u64,
    },
    /// Two filters or counters cannot be merged because they differ in a parameter.
    #[error("{parameter} differs: destination has {ours}, source has {theirs}")]
    Incompatible {
        /// The parameter in which they differ.
        parameter: Parameter,
        /// The parameter's value in the destination.
        ours: String,
        /// The parameter's value in the source.
        theirs: String,
    },
    /// The false-positive rate of the merged filter would be above the rate that the filter was made with.
    #[error("the merged filter would have a false-positive rate of {would_be}, above {asked}")]
    RateExceeded {
        /// The false-positive rate that the merged filter would have.
        would_be: f64,
        /// The false-positive rate that the filter was made with.
        asked: f64,
    },
    /// A slice has begun since the dump (`SCANDUMP`) began, so the dump must start again with iterator 0.
    #[error("a slice has begun since the dump did: start again with iterator 0, got {iterator}")]
    Stale {
        /// The iterator at which the dump was to continue.
        iterator: u64,
    },
    /// Members were requested from a counter that only estimates their number.
    #[error("the counter had more than {exact_limit} members or {exact_bytes} bytes of them: it holds an estimate")]
    NotExact {
        /// The number of members up to which the counter is exact.
        exact_limit: u32,
        /// The number of bytes that the members of an exact counter may take together.
        exact_bytes: u32,
    },
    /// New members would turn an exact counter into an estimating counter.
    #[error(
        "{members} members of {bytes} bytes are more than the {exact_limit} members of {exact_bytes} bytes up to which \
         the counter is exact"
    )]
    PastExact {
        /// The number of members up to which the counter is exact.
        exact_limit: u32,
        /// The number of bytes that the members of the exact counter may take together.
        exact_bytes: u32,
        /// The number of members after the change.
        members: u64,
        /// The bytes that the members would take together after the change.
        bytes: u64,
    },
    /// Bytes that were loaded or received do not describe a filter or counter.
    #[error("{field}: expected {expected}, got {got}")]
    Corrupt {
        /// The name of the field that is wrong.
        field: &'static str,
        /// The value that was expected.
        expected: String,
        /// The value that was found.
        got: String,
    },
}

impl Error {
    /// Shorthand for [`Error::OutOfRange`].
    pub(crate) fn out_of_range(parameter: Parameter, expected: impl Display, got: impl Display) -> Self {
        Error::OutOfRange { parameter, expected: expected.to_string(), got: got.to_string() }
    }

    /// Shorthand for [`Error::Incompatible`].
    pub(crate) fn incompatible(parameter: Parameter, ours: impl Display, theirs: impl Display) -> Self {
        Error::Incompatible { parameter, ours: ours.to_string(), theirs: theirs.to_string() }
    }

    /// Returns [`Error::OutOfRange`] if `is_in_range` is false.
    #[inline(always)]
    pub(crate) fn check_range(
        is_in_range: bool,
        parameter: Parameter,
        expected: impl Display,
        got: impl Display,
    ) -> Result<(), Self> {
        if is_in_range { Ok(()) } else { Err(Self::out_of_range(parameter, expected, got)) }
    }

    /// Returns [`Error::Corrupt`] if `is_valid` is false.
    #[inline(always)]
    pub(crate) fn check_field(
        is_valid: bool,
        field: &'static str,
        expected: impl Display,
        got: impl Display,
    ) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(Self::corrupt(field, expected, got)) }
    }

    /// Returns [`Error::Incompatible`] unless both values are equal.
    pub(crate) fn check_same<T: PartialEq + Display>(parameter: Parameter, ours: T, theirs: T) -> Result<(), Self> {
        if ours == theirs { Ok(()) } else { Err(Self::incompatible(parameter, ours, theirs)) }
    }

    /// Makes an [`Error::Corrupt`]. The command-line tool and the server module call this function.
    ///
    /// ```
    /// let error = rollcall_core::error::Error::corrupt("file", "at least 8 bytes", 3);
    /// assert_eq!(error.to_string(), "file: expected at least 8 bytes, got 3");
    /// ```
    #[doc(hidden)]
    pub fn corrupt(field: &'static str, expected: impl Display, got: impl Display) -> Self {
        Error::Corrupt { field, expected: expected.to_string(), got: got.to_string() }
    }
}
