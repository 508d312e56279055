//! What is derived from the rules of a classic filter and the shape of one of its sub-filters.

use std::ops::Range;

use super::super::params::Params;
use super::super::sub_filter::{Spec, SubFilter};
use super::sizing::{FORCE64, NO_SCALING, NOROUND, Shape, TIGHTENING};
use crate::error::Error;
use crate::hash::{Hash128, hash64};
use crate::shared::{Pool, Shared};
use crate::size_limit::SizeLimit;

/// The rules by which a classic filter grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The options, as RedisBloom stores them.
    pub options: u32,
    /// The growth factor that RedisBloom stores, also for filters that do not scale.
    pub growth: u32,
}

/// RedisBloom's layout of one sub-filter.
#[derive(Debug, PartialEq)]
pub struct Classic {
    pub(super) rules: Rules,
    pub(super) shape: Shape,
    pub(super) modulus: Modulus,
}

/// A filter of a fixed size in RedisBloom's layout.
pub type ClassicSubFilter = SubFilter<Classic>;

/// Two pools of derived parameters: one for first sub-filters, one for later sub-filters. The pools are separate, since
/// the sub-filters of one long chain can fill a pool.
static SPECS: [Pool<Spec<Classic>>; 2] = [Pool::new(), Pool::new()];

impl Spec<Classic> {
    /// The derived parameters of a sub-filter with this shape.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape.
    pub(super) fn of_shape(rules: Rules, is_first: bool, shape: Shape) -> Result<Shared<Self>, Error> {
        let Shape { capacity, error_rate, bits_per_item, hashes, num_bytes, n2 } = shape;
        let numbers = [
            u64::from(rules.options) << 32 | u64::from(rules.growth),
            u64::from(hashes) << 32 | u64::from(n2),
            capacity,
            error_rate.to_bits(),
            bits_per_item.to_bits(),
            num_bytes,
        ];
        SPECS[usize::from(!is_first)].get(
            hash64(bytemuck::cast_slice(&numbers), 0),
            |spec| spec.own.rules == rules && spec.own.shape == shape,
            || {
                shape.validate()?;
                let (params, num_bits) = (params_of(rules, &shape), shape.num_positions());
                let own = Classic { rules, shape, modulus: Modulus::new(num_bits) };
                Ok(Spec { params, capacity, error_rate, hashes, num_bits, num_bytes, full_bits: u64::MAX, own })
            },
        )
    }

    /// The derived parameters of the first sub-filter of a chain with these parameters and this growth. RedisBloom
    /// stores a growth even for filters that do not scale.
    pub(super) fn first_of(params: &Params, growth: u32) -> Result<Shared<Self>, Error> {
        let (scaling, tightening) = if params.expansion == 0 { (NO_SCALING, 1.0) } else { (0, TIGHTENING) };
        let options = NOROUND | FORCE64 | scaling;
        let shape = Shape::new(params.error_rate * tightening, params.capacity, options)?;
        // The parameters are derived from the shape, as when a filter is loaded. For a subnormal rate they may differ
        // from the parameters asked for, because half of such a rate may be rounded.
        Self::of_shape(Rules { options, growth }, true, shape)
    }
}

impl ClassicSubFilter {
    /// An empty sub-filter. `limit` is asked whether a value of `held_bytes` may grow by the new sub-filter.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(
        rules: Rules,
        is_first: bool,
        shape: Shape,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        Self::from_spec(Spec::of_shape(rules, is_first, shape)?, held_bytes, limit)
    }

    /// The shape of the sub-filter.
    pub fn shape(&self) -> &Shape {
        &self.spec.own.shape
    }

    /// The rules of the chain.
    pub(super) fn rules(&self) -> Rules {
        self.spec.own.rules
    }

    /// Overwrites the bitmap with `bytes` from byte `offset` on. If this clears a bit of an item, the filter loses the
    /// item.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end; nothing is changed then.
    pub(crate) fn overwrite_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bitmap.overwrite_bytes(offset, bytes, self.spec.num_bytes as usize)
    }
}

/// The parameters of a filter with this first sub-filter.
fn params_of(Rules { options, growth }: Rules, first: &Shape) -> Params {
    let does_not_scale = options & NO_SCALING != 0;
    let asked = first.error_rate / TIGHTENING;
    // RedisBloom accepts only rates below 1. But a header from elsewhere may have a first rate of 0.5 or more, which
    // would lead to a rate of 1 or more.
    let error_rate = if does_not_scale || asked >= 1.0 { first.error_rate } else { asked };
    Params { error_rate, capacity: first.capacity, expansion: if does_not_scale { 0 } else { growth }, seed: 0 }
}

/// Reduces numbers modulo the number of positions of a sub-filter, by multiplications, since a division takes several
/// times as long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Modulus {
    positions: u64,
    /// `2^64 / positions`, or up to 1 less.
    reciprocal: u64,
}

impl Modulus {
    fn new(positions: u64) -> Self {
        // Every valid shape has at least one position; `max` keeps the division defined.
        let positions = positions.max(1);
        Modulus { positions, reciprocal: u64::MAX / positions }
    }

    /// `x` modulo the number of positions.
    #[inline(always)]
    fn of(self, x: u64) -> u64 {
        // Before rounding, the quotient is less than 1 below `x / positions`. So it is right or 1 too small.
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x - quotient * self.positions;
        if rest >= self.positions { rest - self.positions } else { rest }
    }

    /// The positions of the item's bits with the indices `which`.
    #[inline(always)]
    pub(super) fn positions(self, hash: Hash128, which: Range<u32>) -> impl Iterator<Item = usize> {
        which.map(move |i| self.of(hash.lo.wrapping_add(u64::from(i).wrapping_mul(hash.hi))) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_remainders(
            lo: u64, hi: u64, positions in prop_oneof![1u64..100, 1u64.., (0u32..64).prop_map(|n| 1 << n)],
        ) {
            let modulus = Modulus::new(positions);
            for (i, position) in modulus.positions(Hash128 { lo, hi }, 0..50).enumerate() {
                let expected = lo.wrapping_add(hi.wrapping_mul(i as u64)) % positions;
                prop_assert_eq!(position as u64, expected);
            }
            let last_multiple = u64::MAX - u64::MAX % positions;
            for x in [0, positions - 1, positions, last_multiple - 1, last_multiple, u64::MAX] {
                prop_assert_eq!(modulus.of(x), x % positions);
            }
        }
    }
}
