//! Parameters derived from the parameters of a filter and the number of one of its sub-filters.

use super::super::params::Params;
use super::sizing::{self, Geometry};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::shared::{Pool, Shared};

/// The parameters and the sizes of a sub-filter.
#[derive(Debug, PartialEq)]
pub struct LineSpec {
    /// The parameters of the chain.
    pub(in crate::bloom) params: Params,
    /// The number of the sub-filter in the chain, from 0 on.
    pub(in crate::bloom) index: u64,
    /// The number of items that the sub-filter is sized for.
    pub(in crate::bloom) capacity: u64,
    /// The false-positive rate that the sub-filter may have when full.
    pub(in crate::bloom) error_rate: f64,
    /// Number of set bits with which the sub-filter is full; `u64::MAX` if the number of items alone decides.
    pub(in crate::bloom) full_bits: u64,
    pub(in crate::bloom) geometry: Geometry,
}

/// Two pools of derived parameters: one for first sub-filters, one for later sub-filters. The pools are separate, since
/// the sub-filters of one long chain can fill a pool.
static SPECS: [Pool<LineSpec>; 2] = [Pool::new(), Pool::new()];

impl LineSpec {
    /// The derived parameters of sub-filter `index` of a chain.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when no such sub-filter can exist.
    pub(in crate::bloom) fn of(params: &Params, index: u64) -> Result<Shared<LineSpec>, Error> {
        let Params { error_rate, capacity, expansion, seed } = *params;
        let numbers = [error_rate.to_bits(), capacity, u64::from(expansion), seed, index];
        SPECS[usize::from(index > 0)].get(
            hash64(bytemuck::cast_slice(&numbers), 0),
            |spec| spec.index == index && spec.params == *params,
            || Self::new(*params, index),
        )
    }

    fn new(params: Params, index: u64) -> Result<LineSpec, Error> {
        let Some(capacity) = sizing::sub_filter_capacity(&params, index) else {
            let got = format!("{} * {}^{index}", params.capacity, params.expansion);
            return Err(Error::out_of_range(Parameter::Capacity, "less than 2^64 for every sub-filter", got));
        };
        let error_rate = sizing::sub_filter_rate(&params, index);
        let geometry = sizing::geometry(error_rate, capacity)?;
        let full_bits = sizing::full_bits(error_rate, &geometry).unwrap_or(u64::MAX);
        Ok(LineSpec { params, index, capacity, error_rate, full_bits, geometry })
    }

    /// The number of bits that an item sets; some may coincide.
    pub(super) fn hashes(&self) -> u32 {
        self.geometry.lines_per_item * self.geometry.probes_per_line
    }
}
