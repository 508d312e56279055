//! The parameters of a counter, and the layout of its bitmap, which is derived from them. Counters with the same
//! parameters share one copy.

use std::convert::Infallible;
use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::counting::layout::{Layout, MAX_SEGMENT_BITS};
use crate::error::{Error, Parameter};
use crate::hash::table_hash;
use crate::shared::{Pool, Shared};

/// The largest length, in bytes, of a text that members begin with, such as `user:`, and that a counter keeps only
/// once.
pub(super) const MOST_PREFIX: usize = 32;

/// The limits of an exact counter: the largest number of members, and the largest number of bytes that they may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) members: u32,
    pub(super) bytes: u32,
}

impl Room {
    /// The limits of the largest exact counter.
    pub(super) const ANY: Self = Room { members: Params::MAX_EXACT_LIMIT, bytes: Params::MAX_EXACT_BYTES };

    /// The largest number of bytes that encoded members take within these limits, without slice tags. A member has a
    /// header of one byte, or of three if its text has 128 bytes or more. In a set of numbers, a member takes up to
    /// eight bytes.
    pub(super) fn arena_bytes(self) -> u64 {
        let (bytes, members) = (u64::from(self.bytes), u64::from(self.members));
        let records = bytes + members + 2 * (bytes / 128).min(members);
        3 + MOST_PREFIX as u64 + records.max(8 * members.min(bytes))
    }
}

/// The parameters that a user chooses for a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The relative standard error; `0.0025..=0.25`. The error is at most 1.04 times this rate up to 10^10 members.
    pub error_rate: f64,
    /// The number of members up to which the counter is exact and lists them; `0..=65536`. With 0 the counter is never
    /// exact.
    pub exact_limit: u32,
    /// The bytes that the members of an exact counter may take together; `1..=2^20`. If they take more, the counter
    /// estimates. A UUID takes 16 bytes, and a decimal number below 2^63 takes 1 to 8 bytes. Text of 8 to 64
    /// hexadecimal digits, if their number is even, takes half as many bytes. Any other member takes its length.
    pub exact_bytes: u32,
    /// The seed of the hash. Only counters with the same seed can be merged.
    pub seed: u64,
}

/// The parameters of a counter that the server creates when an item is added to a key that does not exist.
impl Default for Params {
    fn default() -> Self {
        let exact_bytes = Self::DEFAULT_EXACT_BYTES;
        Params { error_rate: 0.01, exact_limit: 250, exact_bytes, seed: 0 }
    }
}

impl Params {
    /// Smallest error rate.
    pub const MIN_ERROR_RATE: f64 = 0.0025;
    /// Largest error rate.
    pub const MAX_ERROR_RATE: f64 = 0.25;
    /// Largest exact limit.
    pub const MAX_EXACT_LIMIT: u32 = 65_536;
    /// The default of `exact_bytes`. It is enough for 250 members of 65 bytes each.
    pub const DEFAULT_EXACT_BYTES: u32 = 16 << 10;
    /// The largest value of `exact_bytes`.
    pub const MAX_EXACT_BYTES: u32 = 1 << 20;

    /// Checks that every parameter is in its range.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// assert!(params.validate().is_ok());
    /// assert!(Params { error_rate: 0.5, ..params }.validate().is_err());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] names the first parameter that is outside its range.
    pub fn validate(&self) -> Result<(), Error> {
        // The checks reject NaN, which is outside every range.
        check_within(Parameter::ErrorRate, self.error_rate, Self::MIN_ERROR_RATE..=Self::MAX_ERROR_RATE)?;
        check_within(Parameter::ExactLimit, self.exact_limit, 0..=Self::MAX_EXACT_LIMIT)?;
        check_within(Parameter::ExactBytes, self.exact_bytes, 1..=Self::MAX_EXACT_BYTES)
    }

    pub(super) fn room(&self) -> Room {
        Room { members: self.exact_limit, bytes: self.exact_bytes }
    }

    /// The layout of the bitmap of a counter with these parameters.
    ///
    /// # Errors
    /// The errors of [`Self::validate`].
    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        self.validate()?;
        Ok(Layout::for_error(self.error_rate).unwrap_or(Layout::new(MAX_SEGMENT_BITS)))
    }
}

fn check_within<T: PartialOrd + Display>(parameter: Parameter, got: T, range: RangeInclusive<T>) -> Result<(), Error> {
    let expected = format_args!("between {} and {}", range.start(), range.end());
    Error::check_range(range.contains(&got), parameter, expected, &got)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spec {
    pub(super) params: Params,
    /// The layout for the error rate, computed only once.
    pub(super) layout: Layout,
}

/// The cache through which counters with equal parameters share one [`Spec`].
pub(super) static SPECS: Pool<Spec> = Pool::new();

impl Spec {
    /// The parameters with the layout that is derived from them.
    ///
    /// # Errors
    /// The errors of [`Params::validate`].
    pub(super) fn new(params: Params) -> Result<Self, Error> {
        Ok(Spec { params, layout: params.layout()? })
    }

    /// Moves this value into memory that all counters of `pool` with equal parameters share.
    pub(super) fn shared_in(self, pool: &Pool<Spec>) -> Shared<Spec> {
        let Spec { params: Params { error_rate, exact_limit, exact_bytes, seed }, .. } = self;
        let numbers = [error_rate.to_bits(), u64::from(exact_limit) << u32::BITS | u64::from(exact_bytes), seed];
        let hash = table_hash(bytemuck::cast_slice(&numbers));
        pool.get(hash, |other| *other == self, || Ok(self)).unwrap_or_else(|never: Infallible| match never {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_made_alike_share_a_spec() {
        let params = Params { error_rate: 0.0101, exact_limit: 250, exact_bytes: 16 << 10, seed: 7 };
        // The test has a separate pool, since other tests may fill the global pool.
        let pool = Pool::new();
        let shared = |params| Spec::new(params).unwrap().shared_in(&pool);
        let ours = shared(params);
        assert!(std::ptr::eq(&*ours, &*shared(params)));
        let others = [
            Params { error_rate: 0.0102, ..params },
            Params { error_rate: 0.02, ..params },
            Params { exact_limit: 251, ..params },
            Params { exact_bytes: 16 << 11, ..params },
            Params { seed: 8, ..params },
        ];
        for params in others {
            assert!(!std::ptr::eq(&*ours, &*shared(params)));
            assert_eq!(*shared(params), Spec::new(params).unwrap());
        }
    }
}
