//! Cache-line blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
//! 2007). A block is a cache line of 512 bits. An item has all its bits in one line, or in a few at low error rates.

mod chained;
mod line;
mod load;
pub(in crate::bloom) mod probe;
pub(in crate::bloom) mod screen;
pub(crate) mod sizing;
mod spec;
pub(crate) mod sub_filter;

use self::sub_filter::LineSubFilter;
use super::chain::{Chain, MAX_SUB_FILTERS};
use super::params::Params;
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// A cache-line blocked Bloom filter that grows. Invariant: the sizes of sub-filter `i` are derived from the parameters
/// of the filter and `i`.
pub type LineFilter = Chain<LineSubFilter>;

impl LineFilter {
    /// An empty filter with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        params.validate()?;
        Ok(Chain::of(LineSubFilter::of_chain(&params, 0, 0, limit)?))
    }

    /// Builds a filter from its loaded sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, [`Error::Corrupt`] for sub-filters
    /// that no filter of these parameters can have.
    pub fn from_sub_filters(params: Params, sub_filters: Vec<LineSubFilter>) -> Result<Self, Error> {
        params.validate()?;
        let is_within = (1..=MAX_SUB_FILTERS).contains(&sub_filters.len());
        Error::check_field(is_within, "sub_filters", "from 1 to 1024", sub_filters.len())?;
        for (index, sub_filter) in sub_filters.iter().enumerate() {
            sub_filter.check_place(&params, index as u64)?;
        }
        Chain::of_all(sub_filters)
    }
}

#[cfg(test)]
mod tests;
