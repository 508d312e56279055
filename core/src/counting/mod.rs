//! Counters of distinct members (cardinality estimation): exact and listable while small, then estimates of a stated
//! error.
//!
//! # What it guarantees
//! - A counter counts exactly and lists its members up to its exact limit, and up to 16 KiB of members by default.
//! - Beyond the exact limit, up to 10^10 members, the standard error is at most 1.04 times its error rate.
//! - An estimating counter's slots are a function of the set of its members, its error rate and its seed alone: order,
//!   repetition, and whether they came by adding or by merging do not matter.
//! - Every reported standard error is the error of the rounded count: the variance of the estimate plus a twelfth for
//!   rounding. It is at least half a member.
//! - Counters with the same seed merge, whatever their error rates: the largest is that of the result.
//!
//! # Limits
//! Members can be removed only while the counter is exact. Whoever knows the seed can choose members that share a slot;
//! a counter is no defence against those who pick its members in order to be miscounted.
//!
//! # Cost
//! Adding an item computes a hash and marks a slot. Counting is O(1): it needs only the number of marked slots in each
//! segment, and the estimate is kept until a slot is marked. A union reads the slots of each counter once.
//!
//! # Papers
//! P. Flajolet, G. N. Martin, "Probabilistic counting algorithms for data base applications", Journal of Computer and
//! System Sciences 31(2), 1985: bitmaps whose bits sample the hash space more and more thinly. K. J. Lang, "Back to the
//! future: an even more nearly optimal cardinality estimation algorithm", 2017: compressing them. K.-Y. Whang, B. T.
//! Vander-Zanden, H. M. Taylor, "A linear-time probabilistic counting algorithm for database applications", ACM
//! Transactions on Database Systems 15(2), 1990: linear counting.

mod admit;
mod collect;
pub(crate) mod counter;
pub(crate) mod estimate;
pub(crate) mod form;
pub(crate) mod held;
pub(crate) mod layout;
mod live;
pub(crate) mod params;
pub(crate) mod payload;
mod sets;
#[cfg(test)]
mod tests;
pub(crate) mod view;
mod windowed_set;

pub use counter::Counter;
pub use estimate::Estimated;
pub use held::members::record::Member;
pub use params::Params;
pub use sets::intersection::inter_card;
pub use sets::lists::{diff, inter, union};
pub use sets::union::{diff_card, union_card};
pub use view::View;
