//! Filters in RedisBloom's layout: for data imported from RedisBloom, and for filters that will be exported to
//! RedisBloom.
//!
//! The same items in the same order give the same bits, numbers and answers as in RedisBloom. Filters also grow by
//! RedisBloom's rules. A look-up costs a cache miss for each bit of the item. In the cache-line layout, it costs one or
//! two cache misses for all bits together.
//!
//! - [`sizing`]: sizes, and checks of filters from elsewhere
//! - [`ClassicSubFilter`]: one filter of a fixed size
//! - [`ClassicFilter`]: the chain

pub(crate) mod sizing;
pub(crate) mod spec;
mod sub_filter;

use sizing::{NO_SCALING, default_growth};
pub use spec::Rules;
use spec::{Classic, ClassicSubFilter};

use super::chain::Chain;
use super::params::Params;
use super::sub_filter::{Spec, SubFilter};
use crate::error::{Error, Parameter};
use crate::size_limit::SizeLimit;

/// The largest number of sub-filters of a loaded classic filter. RedisBloom halves the error rate for each sub-filter,
/// which is possible 1,074 times. So no filter made by RedisBloom has more sub-filters. The header of a filter with
/// this many sub-filters is shorter than 64 KiB. A smaller limit would make stored filters unreadable.
pub(crate) const MAX_LOADED_SUB_FILTERS: u64 = 1200;

/// A Bloom filter that grows, in RedisBloom's layout and by its rules. Invariants: the shapes of its sub-filters are
/// valid, and its options are known and include `FORCE64` (64-bit hashes).
pub type ClassicFilter = Chain<Classic>;

impl ClassicFilter {
    /// An empty filter with these parameters. The seed of `params` is ignored: RedisBloom has none.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        Self::with_growth(params, default_growth(&params), limit)
    }

    /// An empty filter like [`ClassicFilter::new`], with the growth factor `growth`. RedisBloom stores this number even
    /// for filters that do not scale. For a filter that scales, `growth` must be the expansion.
    ///
    /// # Errors
    /// The errors of [`ClassicFilter::new`].
    pub fn with_growth(params: Params, growth: u32, limit: &impl SizeLimit) -> Result<Self, Error> {
        params.validate()?;
        Self::of_any_range(params, growth, limit)
    }

    /// An empty filter like [`ClassicFilter::with_growth`], with the parameters of a filter that exists elsewhere.
    /// These parameters may lie outside the ranges for new filters.
    ///
    /// # Errors
    /// The errors of [`ClassicFilter::new`]; [`Error::OutOfRange`] only for parameters that no filter can have.
    pub fn of_any_range(params: Params, growth: u32, limit: &impl SizeLimit) -> Result<Self, Error> {
        let is_expansion = params.expansion == 0 || params.expansion == growth;
        Error::check_range(is_expansion, Parameter::Growth, "the expansion of a filter that scales", growth)?;
        Ok(Chain::from_first(SubFilter::from_spec(Spec::first_of(&params, growth)?, 0, limit)?))
    }

    /// Builds a filter from its loaded sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for options, a growth or sub-filters that no filter can have.
    pub fn from_sub_filters(options: u32, growth: u32, sub_filters: Vec<ClassicSubFilter>) -> Result<Self, Error> {
        check_chain(options, growth, sub_filters.len() as u64)?;
        let rules = Rules { options, growth };
        if let Some(other) = sub_filters.iter().find(|sub_filter| sub_filter.rules() != rules) {
            return Err(Error::corrupt("rules", format!("{rules:?}"), format!("{:?}", other.rules())));
        }
        Chain::from_all(sub_filters)
    }

    fn rules(&self) -> Rules {
        self.sub_filters()[0].rules()
    }

    /// The options of the filter, as RedisBloom stores them: [`sizing::NOROUND`] and so on.
    pub fn options(&self) -> u32 {
        self.rules().options
    }

    /// The growth factor that RedisBloom stores, also for filters that do not scale.
    pub fn growth(&self) -> u32 {
        self.rules().growth
    }
}

/// Checks the fields of a stored filter that concern the whole chain.
///
/// # Errors
/// [`Error::Corrupt`] naming the field.
pub(crate) fn check_chain(options: u32, growth: u32, num_sub_filters: u64) -> Result<(), Error> {
    sizing::validate_options(options)?;
    let scales = options & NO_SCALING == 0;
    Error::check_field(!scales || growth > 0, "growth", "at least 1 if the filter scales", growth)?;
    let most = if scales { MAX_LOADED_SUB_FILTERS } else { 1 };
    let is_within = (1..=most).contains(&num_sub_filters);
    Error::check_field(is_within, "number of sub-filters", format_args!("from 1 to {most}"), num_sub_filters)
}

#[cfg(test)]
mod tests;
