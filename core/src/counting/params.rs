//! The parameters of a counter, and the layout derived from them. Counters with the same parameters share one copy.

use crate::counting::layout::Layout;
use crate::counting::sizing;
use crate::error::{Error, Parameter, named};
use crate::hash::hash64;
use crate::shared::{Pool, Shared};

named! {
    /// The representation in which a counter stores its set. A counter is promoted from exact to sparse to dense, never
    /// back. Only a windowed counter becomes exact again, when all its members have expired.
    ///
    /// ```
    /// assert_eq!(rollcall_core::counting::Representation::Sparse.name(), "sparse");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Representation {
        /// The members themselves.
        Exact = "exact",
        /// The positions of the set bits.
        Sparse = "sparse",
        /// A bitmap.
        Dense = "dense",
    }
}

/// The limits of an exact counter: the number of its members, and the sum of their lengths in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) members: u32,
    pub(super) bytes: u32,
}

impl Room {
    /// The most bytes of an arena within these limits. The length of a member takes one byte, or up to three for a
    /// member of 128 bytes or more.
    pub(super) fn arena_bytes(self) -> u64 {
        let bytes = u64::from(self.bytes);
        bytes + u64::from(self.members) + 2 * (bytes / 128).min(u64::from(self.members))
    }
}

/// The parameters that a user chooses for a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The number of members up to which the standard error is at most 1.025 times `error_rate`; `1..=10^10`.
    pub capacity: u64,
    /// The relative standard error up to `capacity`; `0.001..=0.25`.
    pub error_rate: f64,
    /// The number of members up to which the counter is exact and lists them; `0..=65536`. With 0 the counter is never
    /// exact.
    pub exact_limit: u32,
    /// The bytes that all listed members may take together; `1..=2^20`. A counter with more bytes of members estimates.
    pub exact_bytes: u32,
    /// The seed of the hash. Only counters with the same seed can be merged.
    pub seed: u64,
}

/// The parameters of a counter that the server creates when an item is added to a key without a reservation.
impl Default for Params {
    fn default() -> Self {
        let exact_bytes = Self::DEFAULT_EXACT_BYTES;
        Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes, seed: 0 }
    }
}

impl Params {
    /// Largest capacity.
    pub const MAX_CAPACITY: u64 = 10_000_000_000;
    /// Smallest error rate.
    pub const MIN_ERROR_RATE: f64 = 0.001;
    /// Largest error rate.
    pub const MAX_ERROR_RATE: f64 = 0.25;
    /// Largest exact limit.
    pub const MAX_EXACT_LIMIT: u32 = 65_536;
    /// The default limit of exact bytes, which suits most members: 250 members of 65 bytes.
    pub const DEFAULT_EXACT_BYTES: u32 = 16 << 10;
    /// Largest limit of exact bytes.
    pub const MAX_EXACT_BYTES: u32 = 1 << 20;

    /// Checks every parameter against its range.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// assert!(params.validate().is_ok());
    /// assert!(Params { error_rate: 0.5, ..params }.validate().is_err());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] naming the first parameter that is outside its range.
    pub fn validate(&self) -> Result<(), Error> {
        let is_within = (1..=Self::MAX_CAPACITY).contains(&self.capacity);
        Error::check_range(is_within, Parameter::Capacity, "between 1 and 10000000000", self.capacity)?;
        // NaN is within no range.
        let is_within = (Self::MIN_ERROR_RATE..=Self::MAX_ERROR_RATE).contains(&self.error_rate);
        Error::check_range(is_within, Parameter::ErrorRate, "between 0.001 and 0.25", self.error_rate)?;
        let is_within = self.exact_limit <= Self::MAX_EXACT_LIMIT;
        Error::check_range(is_within, Parameter::ExactLimit, "between 0 and 65536", self.exact_limit)?;
        let is_within = (1..=Self::MAX_EXACT_BYTES).contains(&self.exact_bytes);
        Error::check_range(is_within, Parameter::ExactBytes, "between 1 and 1048576", self.exact_bytes)
    }

    /// The limits of the members while the counter is exact.
    pub(super) fn room(&self) -> Room {
        Room { members: self.exact_limit, bytes: self.exact_bytes }
    }

    /// The layout of the bitmap of a new counter with these parameters.
    ///
    /// # Errors
    /// The errors of [`Self::validate`].
    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        self.validate()?;
        sizing::layout(self.error_rate, self.capacity)
    }
}

/// The parameters of a counter with the layout of its bitmap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spec {
    pub(super) params: Params,
    /// The layout derived from `params` when the counter was made, or, after a merge, a coarser layout. It is stored
    /// and never computed again.
    pub(super) layout: Layout,
}

/// The pool of all specs: counters with equal parameters and layout share one copy.
static SPECS: Pool<Spec> = Pool::new();

impl Spec {
    /// This spec, in memory that all counters with an equal spec share.
    pub(super) fn shared(self) -> Shared<Spec> {
        self.shared_in(&SPECS)
    }

    fn shared_in(self, pool: &Pool<Spec>) -> Shared<Spec> {
        let Spec { params: Params { capacity, error_rate, exact_limit, exact_bytes, seed }, layout } = self;
        let numbers = [
            capacity,
            error_rate.to_bits(),
            u64::from(exact_limit) << u32::BITS | u64::from(exact_bytes),
            seed,
            u64::from(layout.precision()) << u32::BITS | u64::from(layout.tail_bits()),
        ];
        let hash = hash64(bytemuck::cast_slice(&numbers), 0);
        let made = pool.get(hash, |other| *other == self, || Ok::<_, std::convert::Infallible>(self));
        match made {
            Ok(spec) => spec,
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_made_alike_share_a_spec() {
        let params = Params { capacity: 77_777, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 7 };
        let layout = params.layout().unwrap();
        // A pool of its own, since the global one may be full of the specs of other tests.
        let pool = Pool::new();
        let shared = |params, layout| Spec { params, layout }.shared_in(&pool);
        let ours = shared(params, layout);
        assert!(std::ptr::eq(&*ours, &*shared(params, layout)));
        let others = [
            (Params { capacity: 77_778, ..params }, layout),
            (Params { error_rate: 0.02, ..params }, layout),
            (Params { exact_limit: 251, ..params }, layout),
            (Params { exact_bytes: 16 << 11, ..params }, layout),
            (Params { seed: 8, ..params }, layout),
            (params, Layout::new(13, 9).unwrap()),
            (params, Layout::new(14, 9).unwrap()),
        ];
        for (params, layout) in others {
            assert!(!std::ptr::eq(&*ours, &*shared(params, layout)));
            assert_eq!(*shared(params, layout), Spec { params, layout });
        }
    }
}
