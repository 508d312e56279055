//! Bloom filters: sets that answer whether an item may be in them, and cannot list their items.
//!
//! For every item that was added, a filter answers that it may be there: there are no false negatives. Of the items
//! that were not added, it errs for at most `error_rate` while it holds no more than its capacity. A filter that scales
//! grows before that. No item can be removed.
//!
//! It takes about `log2(1/error_rate) / ln 2` bits an item (Bloom, "Space/Time Trade-offs in Hash Coding with Allowable
//! Errors", 1970) and 1 to 5 % on top. The reason is that the bits of an item lie in a few cache lines of 64 bytes, not
//! all over the bitmap (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007). An item
//! costs one cache miss at error rates down to 0.005, two down to 0.000025, and so on. Filters that scale are chains
//! (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007).
//!
//! Whoever knows the seed can make items that collide; a secret seed is the remedy.
//!
//! A second layout of bits, RedisBloom's, is for its data ([`BitLayout::Classic`]). It has no seed, and each bit of an
//! item costs a cache miss. Its sizes and its growth are RedisBloom's, so it keeps the error rate only approximately.

pub(crate) mod bitmap;
pub(crate) mod build;
pub(crate) mod chain;
pub(crate) mod classic;
mod collect;
pub(crate) mod filter;
pub(crate) mod lines;
mod live;
pub(crate) mod params;
mod windowed;
pub(crate) mod windowed_filter;
pub(crate) mod windowing;

pub use filter::{BloomFilter, SubFilterInfo};
pub use params::{BitLayout, Params};
pub use windowed::Present;
pub use windowed_filter::Expired;
pub use windowing::{Span, Windowing};

/// Size and false-positive rate of a filter in lines, computed before it is made.
pub mod sizing {
    pub use super::lines::sizing::{
        Geometry, estimate_items, false_positive_rate, geometry, sub_filter_capacity, sub_filter_geometry,
    };
}
