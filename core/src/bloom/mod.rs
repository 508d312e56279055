//! Bloom filters: sets that answer whether an item may be in them, and cannot list their items.
//!
//! A filter has no false negatives: every added item is reported as present. Other items are falsely reported with a
//! probability of at most `error_rate`, while the filter holds no more items than its capacity. A filter that scales
//! grows before it exceeds its capacity. No item can be removed.
//!
//! A filter takes about `log2(1/error_rate) / ln 2` bits per item (Bloom, "Space/Time Trade-offs in Hash Coding with
//! Allowable Errors", 1970). The layout [`BitLayout::Lines`] adds 1 to 5 %, because an item's bits lie in a few cache
//! lines (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007). At an error rate of
//! 0.01, adding or finding an item costs one cache miss; each division of the rate by 200 adds one. Filters that scale
//! are lists of sub-filters (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007).
//!
//! An attacker who knows the seed can make items that set the same bits as other items, so keep it secret.
//!
//! [`BitLayout::Classic`] is RedisBloom's layout, for data that come from RedisBloom or go to it. It has no seed, each
//! bit of an item costs a cache miss, and its error rate is kept only approximately.

pub(crate) mod bitmap;
pub(crate) mod classic;
pub(crate) mod filter;
pub(crate) mod lines;
mod look_up;
pub(crate) mod params;
pub(crate) mod sub_filter;

pub use filter::{BloomFilter, Expired, Present};
pub use params::{BitLayout, Params, Windowing};
pub use sub_filter::SubFilterInfo;

/// Sizes and false-positive rates of filters in the cache-line layout.
pub mod sizing {
    pub use super::lines::sizing::{Geometry, false_positive_rate, geometry, sub_filter_geometry};
}
