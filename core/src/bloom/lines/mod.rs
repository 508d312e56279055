//! Cache-line blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
//! 2007). A block is a cache line of 512 bits. All bits of an item are in one line, or at low error rates in a few
//! lines.

mod line;
mod load;
pub(in crate::bloom) mod probe;
pub(in crate::bloom) mod screen;
pub(crate) mod sizing;
pub(crate) mod spec;
mod sub_filter;

use self::spec::Lines;
use super::chain::{Chain, Generation};
use super::params::{Params, Windowing};
use super::sub_filter::{Spec, SubFilter};
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// A cache-line blocked Bloom filter that grows. Invariant: without a window, the sizes of sub-filter `i` follow from
/// the parameters of the filter and from `i`.
pub type LineFilter = Chain<Lines>;

impl LineFilter {
    /// An empty filter with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        params.validate()?;
        let beside = size_of::<Self>() - size_of::<SubFilter<Lines>>();
        Ok(Chain::from_first(SubFilter::from_spec(Spec::of_lines(&params, 0)?, beside as u64, limit)?))
    }

    /// An empty windowed filter whose newest slice is `newest_slice`. `limit` is asked for the bytes of all generations
    /// at once.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`.
    pub(in crate::bloom) fn windowed(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let of_generation = windowing.of_generation(&params)?;
        let bytes =
            Spec::of_lines(&of_generation, 0)?.sub_filter_bytes().saturating_add(size_of::<Generation>() as u64);
        let filter = Chain::from_generations(params, windowing, newest_slice, Vec::new(), Vec::new())?;
        limit.check(filter.size_bytes(), bytes.saturating_mul(windowing.generations().into()))?;
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
