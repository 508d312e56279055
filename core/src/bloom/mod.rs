//! Bloom filters: sets that forget what is in them but not whether.
//!
//! A filter answers for every item that was added that it may be there; there are no false
//! negatives, whatever happens. For an item that was not added it may err, for at most `error_rate`
//! of them while it holds no more than it was made for, and a filter that scales grows before that.
//! It cannot list its items, nor drop one.
//!
//! It costs about `log2(1/error_rate) / ln 2` bits an item (Bloom, "Space/Time Trade-offs in Hash
//! Coding with Allowable Errors", 1970) and 1 to 5 % on top, since the bits of an item lie in one,
//! two or a few cache lines of 64 bytes instead of all over the bitmap (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", 2007): one cache miss for error rates down to
//! 0.005, two down to 0.000025, and so on. Filters that scale are chains (Almeida, Baquero, Preguiça
//! and Hutchison, "Scalable Bloom Filters", 2007).
//!
//! Whoever knows the seed can make items that collide; a secret seed is the remedy.
//!
//! There is a second layout of bits, RedisBloom's, for its data ([`BitLayout::Classic`]). All of the above but the number
//! of cache misses holds for it as well.

pub(crate) mod bitmap;
pub(crate) mod chain;
pub(crate) mod classic;
pub(crate) mod filter;
pub(crate) mod lines;
pub(crate) mod params;

pub use filter::{BitLayout, BloomFilter, SubFilterInfo};
pub use params::Params;

/// What a filter of lines takes, and how often it errs, before there is one.
pub mod sizing {
    pub use super::lines::sizing::{
        Geometry, estimate_items, false_positive_rate, geometry, sub_filter_capacity, sub_filter_geometry,
    };
}
