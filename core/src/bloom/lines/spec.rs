//! What is derived from the parameters of a filter in the cache-line layout for one of its sub-filters.

use super::super::params::Params;
use super::super::sub_filter::{Spec, SubFilter};
use super::probe::ItemShape;
use super::sizing::{self, Geometry};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::shared::{Pool, Shared};
use crate::size_limit::SizeLimit;

/// The cache-line layout of one sub-filter. All bits of an item are in one line, or at low error rates in a few lines.
#[derive(Debug, PartialEq)]
pub struct Lines {
    /// The number of the sub-filter in its chain, from 0 on.
    index: u64,
    geometry: Geometry,
}

/// A cache-line blocked Bloom filter of a fixed size.
pub type LineSubFilter = SubFilter<Lines>;

/// Two pools of derived parameters: one for first sub-filters, one for later sub-filters. The pools are separate, since
/// the sub-filters of one long chain can fill a pool.
static SPECS: [Pool<Spec<Lines>>; 2] = [Pool::new(), Pool::new()];

impl Spec<Lines> {
    /// The derived parameters of sub-filter `index` of a chain.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when no such sub-filter can exist.
    pub(crate) fn of_lines(params: &Params, index: u64) -> Result<Shared<Self>, Error> {
        let Params { error_rate, capacity, expansion, seed } = *params;
        let numbers = [error_rate.to_bits(), capacity, u64::from(expansion), seed, index];
        SPECS[usize::from(index > 0)].get(
            hash64(bytemuck::cast_slice(&numbers), 0),
            |spec| spec.own.index == index && spec.params == *params,
            || Self::new(*params, index),
        )
    }

    fn new(params: Params, index: u64) -> Result<Self, Error> {
        let Some(capacity) = sizing::sub_filter_capacity(&params, index) else {
            let got = format!("{} * {}^{index}", params.capacity, params.expansion);
            return Err(Error::out_of_range(Parameter::Capacity, "less than 2^64 for every sub-filter", got));
        };
        let error_rate = sizing::sub_filter_rate(&params, index);
        let geometry = sizing::geometry(error_rate, capacity)?;
        Ok(Spec {
            params,
            capacity,
            error_rate,
            hashes: geometry.lines_per_item * geometry.probes_per_line,
            num_bits: geometry.num_bits(),
            num_bytes: geometry.num_bytes(),
            full_bits: sizing::full_bits(error_rate, &geometry).unwrap_or(u64::MAX),
            own: Lines { index, geometry },
        })
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> ItemShape {
        (self.own.geometry.lines_per_item, self.own.geometry.probes_per_line)
    }

    /// The numbers of lines, of lines per item and of bits per line.
    #[inline]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.own.geometry
    }
}

impl LineSubFilter {
    /// An empty filter with a false-positive rate of at most `error_rate` up to `capacity` items. `limit` is asked
    /// whether a value of `held_bytes` may grow by the new filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, an error of `limit`, and [`Error::OutOfMemory`]
    /// when the allocation fails.
    pub fn new(error_rate: f64, capacity: u64, held_bytes: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let params = Params { error_rate, capacity, expansion: 0, seed: 0 };
        Self::from_spec(Spec::of_lines(&params, 0)?, held_bytes, limit)
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> ItemShape {
        self.spec.shape()
    }

    /// The numbers of lines, of lines per item and of bits per line.
    #[inline]
    pub fn geometry(&self) -> Geometry {
        *self.spec.geometry()
    }
}
