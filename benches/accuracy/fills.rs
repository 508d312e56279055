//! The rate of a filter in the layout `lines`, computed from its bits. Only this file knows the positions of an item's
//! bits.
//!
//! An absent item has `g` bits in each of its lines. In a line whose share of set bits is `fill`, all of them are set
//! with the probability `fill^g`, because the positions are nearly random. The rate is the mean of the product of these
//! probabilities over random choices of the lines. So rates can be computed that are too low to be measured by
//! look-ups.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::bloom::sizing::{self, Geometry};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::{Hash128, hash128};

use crate::random::Random;

/// Number of bytes of a line.
const LINE: usize = 64;

/// The number of an item's line (a block of 64 bytes). An item has several lines; `index` selects one of them.
fn line(hash: Hash128, index: u32, num_lines: u64) -> usize {
    let index = u64::from(index);
    let pairs = index * index.saturating_sub(1) / 2;
    let x = hash.lo.wrapping_add(index.wrapping_mul(hash.hi | 1));
    let x = x.wrapping_add(pairs.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    ((u128::from(x) * u128::from(num_lines)) >> 64) as usize
}

/// The fill of one sub-filter.
struct Fill {
    geometry: Geometry,
    /// For each line, the probability that all bits of an absent item are set in it.
    chances: Vec<f64>,
}

impl Fill {
    fn new(geometry: Geometry, bytes: &[u8]) -> Fill {
        let chance = |line: &[u8]| {
            let set: u32 = line.iter().map(|byte| byte.count_ones()).sum();
            (f64::from(set) / (8 * LINE) as f64).powi(geometry.probes_per_line as i32)
        };
        Fill { geometry, chances: bytes.chunks(LINE).map(chance).collect() }
    }

    fn chance(&self, hash: Hash128) -> f64 {
        let lines = 0..self.geometry.lines_per_item;
        lines.map(|index| self.chances[line(hash, index, self.geometry.num_lines)]).product()
    }
}

/// The fills of all sub-filters of a filter in the layout `lines`.
pub struct Fills(Vec<Fill>);

impl From<&SubFilter> for Fills {
    fn from(filter: &SubFilter) -> Fills {
        Fills(vec![Fill::new(filter.info().geometry.unwrap(), filter.as_bytes())])
    }
}

impl From<&BloomFilter> for Fills {
    fn from(filter: &BloomFilter) -> Fills {
        Fills(filter.chain().iter().map(|one| Fill::new(one.info().geometry.unwrap(), one.as_bytes())).collect())
    }
}

impl Fills {
    /// The false positive rate. It is exact for a single sub-filter with one line per item, and otherwise the mean over
    /// `places` random items.
    pub fn rate(&self, places: u64, random: &mut Random) -> f64 {
        if let [only] = &self.0[..]
            && only.geometry.lines_per_item == 1
        {
            return only.chances.iter().sum::<f64>() / only.chances.len() as f64;
        }
        let found = |hash| {
            // Computes 1 - product of (1 - chance) without the rounding errors that tiny chances would cause.
            self.0.iter().fold(0.0, |found, fill| found + (1.0 - found) * fill.chance(hash))
        };
        (0..places).map(|_| found(Hash128 { lo: random.bits(), hi: random.bits() })).sum::<f64>() / places as f64
    }
}

/// Checks that bits are set in the lines that [`line`] computes, and in no others.
pub fn check_lines() {
    for (error_rate, capacity) in [(0.01, 1_000), (0.001, 1_000), (1e-6, 300), (1e-9, 30), (1e-15, 1_000)] {
        let geometry = sizing::geometry(error_rate, capacity).expect("a rate and a capacity in their ranges");
        for item in 0..200u64 {
            let hash = hash128(&item.to_le_bytes(), 0);
            let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).expect("memory");
            filter.insert(hash);
            let mut expected: Vec<usize> =
                (0..geometry.lines_per_item).map(|index| line(hash, index, geometry.num_lines)).collect();
            expected.sort_unstable();
            expected.dedup();
            let lines = filter.as_bytes().chunks(LINE).enumerate();
            let set: Vec<usize> =
                lines.filter(|(_, line)| line.iter().any(|&byte| byte != 0)).map(|(at, _)| at).collect();
            assert_eq!(set, expected, "benches/accuracy/fills.rs does not know where lines are, at rate {error_rate}");
        }
    }
}
