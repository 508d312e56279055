//! A cache-line blocked Bloom filter of a fixed size.

use super::super::bitmap::Line;
use super::super::params::Params;
use super::super::sub_filter::Store;
use super::probe::ItemShape;
use super::sizing::Geometry;
use super::spec::LineSpec;
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// A cache-line blocked Bloom filter of a fixed size. It takes hashes instead of items.
///
/// Invariant: the bitmap has the number of lines that the derived parameters (`LineSpec`) give.
#[derive(Debug, PartialEq)]
pub struct LineSubFilter(pub(super) Store<LineSpec>);

impl LineSubFilter {
    /// An empty filter with a false-positive rate of at most `error_rate` up to `capacity` items. `limit` is asked
    /// whether a value of `held_bytes` may grow by the new filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, an error of `limit`, and [`Error::OutOfMemory`]
    /// when the allocation fails.
    pub fn new(error_rate: f64, capacity: u64, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        Self::of_chain(&Params { error_rate, capacity, expansion: 0, seed: 0 }, 0, held_bytes, limit)
    }

    /// An empty filter that is sub-filter `index` of a chain with these parameters.
    ///
    /// # Errors
    /// The errors of [`LineSubFilter::new`].
    pub(crate) fn of_chain(
        params: &Params,
        index: u64,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let spec = LineSpec::of(params, index)?;
        let num_lines = spec.geometry.num_lines;
        Ok(LineSubFilter(Store::new(spec, num_lines, held_bytes, limit)?))
    }

    /// Bytes of the first sub-filter of a chain with these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when no such sub-filter can exist.
    pub(in crate::bloom) fn bytes_for(params: &Params) -> Result<u64, Error> {
        Ok(Store::<LineSpec>::bytes_for(LineSpec::of(params, 0)?.geometry.num_lines))
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> ItemShape {
        (self.0.spec.geometry.lines_per_item, self.0.spec.geometry.probes_per_line)
    }

    /// The numbers of lines, of lines per item and of bits per line.
    #[inline]
    pub fn geometry(&self) -> Geometry {
        self.0.spec.geometry
    }

    #[inline]
    pub(super) fn lines(&self) -> &[Line] {
        self.0.bitmap.lines()
    }
}

#[cfg(test)]
mod tests;
