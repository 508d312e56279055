//! The load of a line: the mean number of items on it at which it reaches a given error rate. The sizes of filters
//! follow from the load.
//!
//! The number of items in a line is nearly Poisson distributed. The error rate of a line is an average over these
//! numbers of items (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007, section 3).
//!
//! The load is *defined* as the result of the bisection in `largest_load`, to the last bit. **A change of any result of
//! [`FullestLine::new`] makes stored filters unreadable.**

use std::sync::LazyLock;

use super::super::bitmap::LINE_BITS;

/// The largest number of bits that an item sets in a line: seven positions of nine bits fit in one 64-bit word. Part of
/// the stored format.
pub(super) const MAX_PROBES_PER_LINE: u32 = 7;

/// How many bits an item has to set in a line so that the line holds the most items at a given error rate, and the mean
/// number of these items (the load).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullestLine {
    /// The number of bits that an item sets in the line.
    pub(super) probes: u32,
    /// The mean number of items on the line.
    pub(super) load: f64,
}

impl FullestLine {
    /// The line that holds the most items at an error rate of at most `line_rate`.
    pub(super) fn new(line_rate: f64) -> Self {
        // The best number of bits per item is near log2(1/rate), so this number is tried first. Few other numbers then
        // need the slow `largest_load`.
        let guess = libm::round(-libm::log2(line_rate)).clamp(1.0, f64::from(MAX_PROBES_PER_LINE)) as u32;
        let mut best = FullestLine { probes: guess, load: largest_load(LineRate::of(guess), line_rate) };
        for probes in (1..=MAX_PROBES_PER_LINE).filter(|&probes| probes != guess) {
            let rate = LineRate::of(probes);
            // The error rate grows with the number of items (the load). So `probes` bits per item allow more items only
            // if their error rate at the best load so far is below `line_rate`.
            if rate.at(best.load) < line_rate {
                best = FullestLine { probes, load: largest_load(rate, line_rate) };
            }
        }
        best
    }
}

/// The largest load at which the line's error rate is at most `line_rate`.
fn largest_load(rate: &LineRate, line_rate: f64) -> f64 {
    // At this load every bit is hit 64 times on average, and the rate is practically 1.
    let (mut fits, mut exceeds) = (0.0, 64.0 * f64::from(LINE_BITS));
    // Bisection until no `f64` lies between both ends takes about 70 rounds. The limit of 200 rounds only makes sure
    // that the loop ends.
    for _ in 0..200 {
        let middle = fits + (exceeds - fits) / 2.0;
        if middle <= fits || middle >= exceeds {
            break;
        }
        if rate.at(middle) <= line_rate {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    fits
}

const NUM_TERMS: usize = MAX_PROBES_PER_LINE as usize + 1;

/// The error rate of a line in which an item sets `probes` bits, as a function of the mean number of items on the line
/// (the load): `sum over j of weights[j] * exp(-load * misses[j])`. [`Self::new`] explains the sum.
pub(super) struct LineRate {
    probes: usize,
    /// By inclusion and exclusion, for each `j`: `(-1)^j * sum over d of P(an item sets d different bits) * C(d, j)`.
    weights: [f64; NUM_TERMS],
    /// For each `j`, the probability that an item sets at least one of `j` given bits: `1 - (1 - j/512)^probes`.
    misses: [f64; NUM_TERMS],
}

/// At index `k`, the error rate of a line in which an item sets `k` bits.
static LINE_RATES: LazyLock<[LineRate; NUM_TERMS]> = LazyLock::new(|| std::array::from_fn(LineRate::new));

impl LineRate {
    /// The error rate of a line in which an item sets `probes` bits. `probes` is at most [`MAX_PROBES_PER_LINE`].
    pub(super) fn of(probes: u32) -> &'static LineRate {
        &LINE_RATES[probes.min(MAX_PROBES_PER_LINE) as usize]
    }

    /// The error rate for items that set `probes` bits, some of which may coincide.
    ///
    /// An absent item is reported as present if all of its `d` distinct bits are 1. By inclusion and exclusion, this
    /// probability is an alternating sum over the subsets of these bits. A subset of `j` bits contributes the
    /// probability that all `j` bits are 0. That is `exp(-load * misses[j])` if the line has `load` items on average,
    /// and `misses[j]` is the probability that an item sets at least one of the `j` bits.
    fn new(probes: usize) -> Self {
        let bits = f64::from(LINE_BITS);
        // `distinct[d]` is the probability that the bits so far have `d` different positions.
        let mut distinct = [0.0; NUM_TERMS];
        distinct[0] = 1.0;
        for _ in 0..probes {
            for d in (0..NUM_TERMS).rev() {
                let fresh = if d == 0 { 0.0 } else { distinct[d - 1] * ((bits - (d - 1) as f64) / bits) };
                distinct[d] = distinct[d] * (d as f64 / bits) + fresh;
            }
        }
        let (mut weights, mut misses) = ([0.0; NUM_TERMS], [0.0; NUM_TERMS]);
        // In round `j`, `subsets[d]` is the binomial coefficient C(d, j). C(d, j + 1) is the sum of C(i, j) over all
        // `i` below `d`.
        let mut subsets = [1.0; NUM_TERMS];
        for j in 0..NUM_TERMS {
            let (mut sum, mut below) = (0.0, 0.0);
            for (distinct, subsets) in distinct.iter().zip(&mut subsets) {
                sum += distinct * *subsets;
                (*subsets, below) = (below, below + *subsets);
            }
            weights[j] = if j % 2 == 0 { sum } else { -sum };
            misses[j] = 1.0 - (0..probes).fold(1.0, |power, _| power * (1.0 - j as f64 / bits));
        }
        LineRate { probes, weights, misses }
    }

    /// The error rate of a line with `load` items on average. The absolute rounding error is about 1e-14.
    pub(super) fn at(&self, load: f64) -> f64 {
        let terms = 0..=self.probes;
        let sum = terms.fold(0.0, |sum, j| sum + self.weights[j] * libm::exp(-load * self.misses[j]));
        // Terms of up to about 35 cancel each other, so rounding may make a tiny sum negative.
        sum.clamp(0.0, 1.0)
    }
}
