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
//! - [`sizing`]: sizing and error formulas
//! - [`Line`]: where the bits of an item are
//! - [`LineSubFilter`]: one filter of a fixed size
//! - [`LineFilter`]: the chain
//! - [`classic`]: the same in RedisBloom's layout, for its data
//! - [`BloomFilter`]: a chain in either layout; what the server uses

mod bitmap;
mod chain;
pub mod classic;
mod filter;
pub mod lines;
mod params;

pub use bitmap::Line;
pub use chain::{Chain, SubFilter};
pub use classic::ClassicFilter;
pub use filter::{BitLayout, BloomFilter, SubFilterInfo};
pub use lines::LineFilter;
pub use lines::sizing::{self, Geometry};
pub use lines::sub_filter::LineSubFilter;
pub use params::Params;
