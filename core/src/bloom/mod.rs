//! Bloom filters: sets that answer whether an item may be in them, and cannot list their items.
//!
//! A filter has no false negatives: for every added item it answers that the item may be there. For other items, it
//! gives this answer with a probability of at most `error_rate`, while it holds no more items than its capacity. A
//! filter that scales grows before it exceeds its capacity. No item can be removed.
//!
//! A filter takes about `log2(1/error_rate) / ln 2` bits per item (Bloom, "Space/Time Trade-offs in Hash Coding with
//! Allowable Errors", 1970), plus 1 to 5 %. The reason for the addition is the layout [`BitLayout::Lines`]: the bits of
//! an item lie in a few cache lines, not all over the bitmap (Putze, Sanders and Singler, "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007). At an error rate of 0.01, adding or finding an item costs one cache miss.
//! Each division of the rate by 200 adds one. Filters that scale are lists of sub-filters (Almeida, Baquero, Preguiça
//! and Hutchison, "Scalable Bloom Filters", 2007).
//!
//! An attacker who knows the seed can make items that set the same bits as other items; a secret seed prevents that.
//!
//! A second layout, [`BitLayout::Classic`], is RedisBloom's. It is for data that come from RedisBloom or go to it. It
//! has no seed, and each bit of an item costs a cache miss. Its sizes and its growth follow RedisBloom's rules, which
//! keep the error rate only approximately.

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

/// Sizes and false-positive rates of filters in the cache-line layout, computed without making a filter.
pub mod sizing {
    pub use super::lines::sizing::{Geometry, false_positive_rate, geometry, sub_filter_geometry};
}
