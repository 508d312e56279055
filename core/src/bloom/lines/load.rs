//! The load of a line: the mean number of items at which the line reaches an error rate. The sizes of filters are
//! derived from it.
//!
//! The number of items that picked one line is binomial, and for all but the smallest filters a Poisson variable. Its
//! distribution, not just its mean, decides the error rate (Putze, Sanders and Singler, "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007, section 3). So the error rate of a line is computed here as the mean over this
//! distribution.
//!
//! The load of a line at a rate is *defined* as the result of a bisection, to the last bit. It is part of the stored
//! format. **A change of any result of [`FullestLine::new`] makes stored filters unreadable.**

use std::sync::LazyLock;

use super::super::bitmap::LINE_BITS;

/// Largest number of bits that an item sets in a line: seven indices of nine bits fit one 64-bit word. Part of the
/// stored format.
pub(super) const MAX_PROBES_PER_LINE: u32 = 7;

/// The number of probes with which a line takes the most items at an error rate, and the mean number of these items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullestLine {
    /// The number of bits that an item sets in the line.
    pub(super) probes: u32,
    /// The load: the mean number of items on the line.
    pub(super) load: f64,
}

impl FullestLine {
    /// Returns the best number of probes, and the load to the last bit, for lines with an error rate of at most
    /// `line_rate`.
    pub(super) fn new(line_rate: f64) -> Self {
        // The best number of probes is near log2(1/rate). Starting there, few other numbers need a bisection.
        let guess = libm::round(-libm::log2(line_rate)).clamp(1.0, f64::from(MAX_PROBES_PER_LINE)) as u32;
        let mut best = FullestLine { probes: guess, load: largest_load(LineRate::of(guess), line_rate) };
        for probes in (1..=MAX_PROBES_PER_LINE).filter(|&probes| probes != guess) {
            let rate = LineRate::of(probes);
            // The rate grows with the load. So this number of probes is better only if its rate at the best load so far
            // is below the wanted rate.
            if rate.at(best.load) < line_rate {
                best = FullestLine { probes, load: largest_load(rate, line_rate) };
            }
        }
        best
    }
}

/// The largest load at which `rate` is at most `line_rate`, by bisection down to neighbouring `f64`s.
fn largest_load(rate: &LineRate, line_rate: f64) -> f64 {
    // If every bit is hit 64 times on average, a bit is free with chance e^-64. The rate at this load exceeds even the
    // largest rate below 1.
    let (mut fits, mut exceeds) = (0.0, 64.0 * f64::from(LINE_BITS));
    // A range of 2^15 is halved until its ends are neighbouring numbers: about 70 rounds for the loads that occur (over
    // 0.5). The fixed number of rounds ends the loop even if the formula gave wrong numbers.
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

/// The error rate of a line as a function of its load, for one number of probes:
/// `sum over j of weights[j] * exp(-load * misses[j])`.
pub(super) struct LineRate {
    probes: usize,
    /// The weight of term `j`: `(-1)^j * sum over d of P(d of the probes are distinct) * C(d, j)`.
    weights: [f64; NUM_TERMS],
    /// The chance that an item sets at least one of `j` given bits, `1 - (1 - j/512)^probes`.
    misses: [f64; NUM_TERMS],
}

/// The error rate of a line for each number of probes, from 0 on.
static LINE_RATES: LazyLock<[LineRate; NUM_TERMS]> = LazyLock::new(|| std::array::from_fn(LineRate::new));

impl LineRate {
    /// The error rate of a line for `probes` probes, at most [`MAX_PROBES_PER_LINE`].
    pub(super) fn of(probes: u32) -> &'static LineRate {
        &LINE_RATES[probes.min(MAX_PROBES_PER_LINE) as usize]
    }

    /// Computes the weights and the misses for `probes` probes.
    ///
    /// An absent item is found if none of its `d` distinct bits is free. By inclusion and exclusion, the chance to find
    /// an absent item is the alternating sum over the `j`-subsets of the chance that all `j` are free. A Poisson number
    /// of items of mean `load` leaves `j` given bits free with chance `exp(-load * misses[j])`.
    fn new(probes: usize) -> Self {
        let bits = f64::from(LINE_BITS);
        // distinct[d]: chance that the probes so far fell on d different bits.
        let mut distinct = [0.0; NUM_TERMS];
        distinct[0] = 1.0;
        for _ in 0..probes {
            for d in (0..NUM_TERMS).rev() {
                let fresh = if d == 0 { 0.0 } else { distinct[d - 1] * ((bits - (d - 1) as f64) / bits) };
                distinct[d] = distinct[d] * (d as f64 / bits) + fresh;
            }
        }
        let (mut weights, mut misses) = ([0.0; NUM_TERMS], [0.0; NUM_TERMS]);
        // subsets[d]: C(d, j), built up from j to j + 1 by the hockey-stick rule.
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

    /// The error rate at this load. The absolute error is about 1e-14.
    pub(super) fn at(&self, load: f64) -> f64 {
        let terms = 0..=self.probes;
        let sum = terms.fold(0.0, |sum, j| sum + self.weights[j] * libm::exp(-load * self.misses[j]));
        // The largest terms are about 35, so a result below 1e-14 is only a rounding error and may be negative.
        sum.clamp(0.0, 1.0)
    }
}
