//! Counters of distinct members (cardinality estimation): exact and listable while small, then estimates of a stated
//! error.
//!
//! # What it guarantees
//! - A counter counts exactly and lists its members up to its exact limit, and up to 16 KiB of members by default.
//! - Beyond the exact limit, up to its capacity, the standard error is at most 1.025 times its error rate. Past its
//!   capacity a counter never saturates: up to 10^10 members the standard error is at most 2.1 times the error rate,
//!   or 2.1 % if the error rate is below 0.01.
//! - An estimating counter's bits are a function of the set of its members and of its layout and
//!   seed alone: order, repetition, and whether they came by adding or by merging do not matter.
//! - Every reported standard error is the error of the rounded count: the variance of the estimate plus a twelfth for
//!   rounding. It is at least half a member.
//! - Counters with the same seed merge, whatever their capacities, in the finest layout to which all their bits fold.
//! - No parameters lead to a bitmap of more than 1 MiB.
//!
//! # Limits
//! Members cannot be removed. Whoever knows the seed can choose members that share a slot; a counter
//! is no defence against those who pick its members in order to be miscounted.
//!
//! # Cost
//! Adding an item computes a hash and sets a bit. Counting is O(1): it needs only the number of set bits in each
//! segment, and the estimate is kept until a bit changes. A union reads every bitmap once.
//!
//! # Papers
//! K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, "A linear-time probabilistic counting algorithm for
//! database applications", ACM Transactions on Database Systems 15(2), 1990: linear counting. C. Estan,
//! G. Varghese, M. Fisk, "Bitmap algorithms for counting active flows on high-speed links", IEEE/ACM
//! Transactions on Networking 14(5), 2006: bitmaps whose parts sample the hash space more and more thinly.

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
pub(crate) mod sizing;
#[cfg(test)]
mod tests;
pub(crate) mod view;
mod windowed_set;

pub use counter::Counter;
pub use estimate::Estimated;
pub use params::{Params, Representation};
pub use sets::intersection::inter_card;
pub use sets::lists::{diff, inter, union};
pub use sets::union::{diff_card, union_card};
pub use view::View;
