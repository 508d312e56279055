//! Tests false positive rates that are too low to be measured by look-ups, in filters with three or more lines per
//! item.
//!
//! The rate of a filter is computed from its fill. All bitmaps with the same number of set bits in each line are
//! equally likely. So `u` distinct positions in a line with `f` set bits are all set with the probability `C(512-u,
//! f-u) / C(512, f)`. An absent item is found with the product of these probabilities over its *distinct* lines: lines
//! that coincide count once. The filter's rate is the mean of this product over absent items. The mean over filters
//! with many seeds is compared with the error rate; its standard error comes from the variance between filters.

use rollcall_core::bloom::sizing;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::hash::{Hash128, hash128};

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The line and the position of every bit of an item, computed from the documented layout, independently of the code
/// under test.
fn positions(hash: Hash128, shape: &sizing::Geometry) -> impl Iterator<Item = (usize, u32)> {
    let sizing::Geometry { lines_per_item, probes_per_line, num_lines } = *shape;
    (0..u64::from(lines_per_item)).flat_map(move |i| {
        let pairs = i * (i + 1) / 2 - i;
        let x = hash.lo.wrapping_add(i.wrapping_mul(hash.hi | 1)).wrapping_add(pairs.wrapping_mul(GOLDEN));
        let line = ((u128::from(x) * u128::from(num_lines)) >> 64) as usize;
        let y = x.wrapping_mul(GOLDEN);
        let places = y ^ (y >> 32);
        (0..probes_per_line).map(move |j| (line, (places >> (9 * j)) as u32 & 511))
    })
}

/// `chances[u][f]` is the probability that `u` given positions in a line with `f` set bits are all set.
fn chances(most: usize) -> Vec<[f64; 513]> {
    let mut chances = vec![[1.0; 513]];
    for u in 0..most {
        let mut next = chances[u];
        for (f, chance) in next.iter_mut().enumerate() {
            *chance *= (f as f64 - u as f64).max(0.0) / (512 - u) as f64;
        }
        chances.push(next);
    }
    chances
}

/// The rate of a filter with `capacity` items and this seed, computed from `probes` absent items.
fn rate(error_rate: f64, capacity: u64, seed: u64, probes: u64) -> f64 {
    let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).unwrap();
    let shape = filter.info().geometry.unwrap();
    let mut lines = vec![[false; 512]; shape.num_lines as usize];
    for item in 0..capacity {
        let hash = hash128(&item.to_le_bytes(), seed);
        filter.insert(hash);
        positions(hash, &shape).for_each(|(line, place)| lines[line][place as usize] = true);
    }
    // Checks that `positions` computes the bits of a real filter.
    let fills: Vec<usize> = lines.iter().map(|line| line.iter().filter(|&&is_set| is_set).count()).collect();
    let stored = filter.as_bytes().chunks(64).map(|line| line.iter().map(|byte| byte.count_ones() as usize).sum());
    assert!(fills.iter().copied().eq(stored), "{error_rate} {capacity}");
    let chances = chances((shape.lines_per_item * shape.probes_per_line) as usize);
    let sum: f64 = (1 << 40..(1 << 40) + probes)
        .map(|item: u64| {
            let mut places: Vec<_> = positions(hash128(&item.to_le_bytes(), seed), &shape).collect();
            places.sort_unstable();
            places.dedup();
            places.chunk_by(|a, b| a.0 == b.0).map(|line| chances[line.len()][fills[line[0].0]]).product::<f64>()
        })
        .sum();
    sum / probes as f64
}

/// The mean rate over `filters` seeds, and its standard error.
fn mean_rate(error_rate: f64, capacity: u64, filters: u64, probes: u64) -> (f64, f64) {
    let rates: Vec<f64> = (0..filters).map(|seed| rate(error_rate, capacity, seed, probes)).collect();
    let mean = rates.iter().sum::<f64>() / filters as f64;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (filters - 1) as f64;
    (mean, (variance / filters as f64).sqrt())
}

/// Without the third term in the formula of positions, filters with an error rate of 1e-15 for 60 and 113 items would
/// have 6 and 3 times this rate.
#[test]
fn rates_that_cannot_be_sampled_are_kept() {
    for error_rate in [1e-6, 1e-9, 1e-12, 1e-15] {
        for (capacity, filters) in [(30, 300), (60, 300), (113, 300), (300, 100), (1000, 60), (10_000, 8)] {
            let (mean, se) = mean_rate(error_rate, capacity, filters, 500);
            println!(
                "p={error_rate:e} n={capacity}: {:.3} p, standard error {:.3} p",
                mean / error_rate,
                se / error_rate
            );
            assert!(4.0 * se < 0.4 * error_rate, "{error_rate:e} {capacity}: a standard error of {se:e} shows nothing");
            assert!(mean - 4.0 * se < error_rate, "{error_rate:e} {capacity}: {mean:e}");
        }
    }
}
