//! Counters of distinct members (cardinality estimation): exact and listable while small, then estimates with a known
//! standard error.
//!
//! # What it guarantees
//! - A counter counts exactly and lists its members until they exceed its exact limit, or take more than 16 KiB by
//!   default.
//! - Beyond the exact limit, up to 10^10 members, the standard error is at most 1.04 times its error rate, plus half a
//!   member for rounding.
//! - The bitmap of an estimating counter depends only on the set of its members, its error rate and its seed. It does
//!   not matter in which order and how often members were added, or whether by a merge.
//! - Counters with the same seed can be merged even if their error rates differ. The result has the largest error rate
//!   of those that estimate; a destination never takes a smaller one.
//!
//! # Limits
//! Members can be removed only while the counter is exact. Anyone who knows the seed can choose members that set the
//! same bit, which makes the count wrong.
//!
//! # Cost
//! Adding an item computes a hash and sets a bit. Counting is O(1): it needs only the number of set bits in each
//! segment of the bitmap. The estimate is cached until another bit is set. A union reads the bitmap of each counter
//! once.
//!
//! # Papers
//! P. Flajolet, G. N. Martin, "Probabilistic counting algorithms for data base applications", Journal of Computer and
//! System Sciences 31(2), 1985: bitmaps in which later bits take smaller and smaller fractions of all hashes. K. J.
//! Lang, "Back to the future: an even more nearly optimal cardinality estimation algorithm", 2017: compression of these
//! bitmaps. K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, "A linear-time probabilistic counting algorithm for
//! database applications", ACM Transactions on Database Systems 15(2), 1990: linear counting.

pub(crate) mod counter;
pub(crate) mod estimate;
pub(crate) mod held;
pub(crate) mod layout;
pub(crate) mod params;
pub(crate) mod payload;
pub(crate) mod sample;
mod sets;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
mod value;
pub(crate) mod view;

pub use counter::Counter;
pub use estimate::Estimated;
pub use held::members::record::Member;
pub use params::Params;
pub use sets::intersection::inter_card;
pub use sets::lists::{diff, inter, union};
pub use sets::union::{diff_card, union_card};
pub use view::View;
