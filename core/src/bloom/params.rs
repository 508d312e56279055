//! The parameters of a filter.

use std::fmt::Display;

use crate::error::{Error, Parameter, named};

named! {
    /// The layout of a filter: where in the bitmap an item's bits are.
    ///
    /// ```
    /// assert_eq!(rollcall_core::bloom::BitLayout::Lines.name(), "lines");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BitLayout {
        /// The cache-line layout: the bits of an item lie in a few cache lines. It is Rollcall's own layout, and the
        /// faster one.
        Lines = "lines",
        /// RedisBloom's layout: the bits of an item lie anywhere in the bitmap. It is for imported data, and for
        /// filters that will be exported.
        Classic = "classic",
    }
}

/// The parameters that a filter is made with and stored with. Two filters with equal parameters, and equal items in
/// equal order, are equal in every bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The false-positive rate: the largest share of absent items that the filter may report as present.
    pub error_rate: f64,
    /// The number of items that the first sub-filter is sized for.
    pub capacity: u64,
    /// The size of each further sub-filter as a multiple of the one before; 0 for a filter that does not scale.
    pub expansion: u32,
    /// Seed of the hash.
    pub seed: u64,
}

/// The parameters of a filter that a server makes when an item is added to a key that does not exist.
impl Default for Params {
    fn default() -> Self {
        Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 }
    }
}

impl Params {
    /// The largest capacity, in items.
    pub const MAX_CAPACITY: u64 = 1 << 40;

    /// The largest expansion.
    pub const MAX_EXPANSION: u32 = 32768;

    /// Checks that every parameter is in its range.
    ///
    /// ```
    /// use rollcall_core::bloom::Params;
    ///
    /// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// assert!(params.validate().is_ok());
    /// assert!(Params { error_rate: 1.0, ..params }.validate().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] names the first parameter that is not in its range.
    pub fn validate(&self) -> Result<(), Error> {
        check_error_rate(self.error_rate)?;
        let is_within = (1..=Self::MAX_CAPACITY).contains(&self.capacity);
        Error::check_range(is_within, Parameter::Capacity, "from 1 to 1099511627776", self.capacity)?;
        if self.expansion <= Self::MAX_EXPANSION { Ok(()) } else { Err(expansion_error(self.expansion)) }
    }

    /// Checks that filters with these parameters and with `theirs` can be merged.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs.
    pub(super) fn check_equal(&self, theirs: &Params) -> Result<(), Error> {
        Error::check_same(Parameter::Capacity, self.capacity, theirs.capacity)?;
        Error::check_same(Parameter::ErrorRate, self.error_rate, theirs.error_rate)?;
        Error::check_same(Parameter::Expansion, self.expansion, theirs.expansion)?;
        Error::check_same(Parameter::Seed, self.seed, theirs.seed)
    }
}

/// The error for an expansion above [`Params::MAX_EXPANSION`]. The parameter has any numeric type, since a client may
/// ask for a number that no `u32` holds.
pub fn expansion_error(expansion: impl Display) -> Error {
    Error::out_of_range(Parameter::Expansion, "from 0 to 32768", expansion)
}

/// Rejects a rate that is not strictly between 0 and 1, and NaN.
pub(super) fn check_error_rate(error_rate: f64) -> Result<(), Error> {
    let is_within = error_rate > 0.0 && error_rate < 1.0;
    Error::check_range(is_within, Parameter::ErrorRate, "more than 0 and less than 1", error_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_printed_by_name() {
        assert_eq!([BitLayout::Lines, BitLayout::Classic].map(|layout| layout.to_string()), ["lines", "classic"]);
    }
}
