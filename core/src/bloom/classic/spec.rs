//! Parameters derived from the rules of a classic filter and the shape of one of its sub-filters.

use std::ops::Range;

use super::super::params::Params;
use super::sizing::{NO_SCALING, Shape, TIGHTENING};
use crate::error::Error;
use crate::hash::{Hash128, hash64};
use crate::shared::{Pool, Shared};

/// The rules by which a classic filter grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The options, as RedisBloom stores them.
    pub options: u32,
    /// The growth factor that RedisBloom stores, also for filters that do not scale.
    pub growth: u32,
}

/// The growth rules and the derived sizes of a sub-filter.
#[derive(Debug, PartialEq)]
pub struct ClassicSpec {
    pub(in crate::bloom) rules: Rules,
    pub(in crate::bloom) shape: Shape,
    /// The parameters of a chain that starts with this sub-filter.
    pub(in crate::bloom) params: Params,
    pub(in crate::bloom) modulus: Modulus,
}

/// Two pools of derived parameters: one for first sub-filters, one for later sub-filters. The pools are separate, since
/// the sub-filters of one long chain can fill a pool.
static SPECS: [Pool<ClassicSpec>; 2] = [Pool::new(), Pool::new()];

impl ClassicSpec {
    /// The derived parameters of a sub-filter with this shape.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an inconsistent shape.
    pub(in crate::bloom) fn of(rules: Rules, is_first: bool, shape: Shape) -> Result<Shared<ClassicSpec>, Error> {
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
            |spec| spec.rules == rules && spec.shape == shape,
            || {
                shape.validate()?;
                let params = params_of(rules, &shape);
                Ok(ClassicSpec { rules, shape, params, modulus: Modulus::new(shape.num_positions()) })
            },
        )
    }
}

/// The parameters of a filter with this first sub-filter.
fn params_of(Rules { options, growth }: Rules, first: &Shape) -> Params {
    let does_not_scale = options & NO_SCALING != 0;
    let asked = first.error_rate / TIGHTENING;
    // RedisBloom accepts only rates below 1, but a header may claim a first rate of 0.5 or more.
    let error_rate = if does_not_scale || asked >= 1.0 { first.error_rate } else { asked };
    Params { error_rate, capacity: first.capacity, expansion: if does_not_scale { 0 } else { growth }, seed: 0 }
}

/// Reduces numbers modulo the number of positions of a sub-filter, by multiplication: a division takes several times as
/// long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::bloom) struct Modulus {
    positions: u64,
    /// At most 1 less than `2^64 / positions`.
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
