//! The load of a line: the mean number of items on a line at which it reaches a given error rate. The sizes of filters
//! are derived from the load.
//!
//! The number of items that have bits in one line has a binomial distribution. In all but the smallest filters it is
//! nearly a Poisson distribution. This distribution, not just its mean, decides the error rate (Putze, Sanders and
//! Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007, section 3). So the error rate of a line is
//! computed here as the mean over this distribution.
//!
//! The load of a line at a rate is *defined* as the result of a bisection, to the last bit. It is part of the stored
//! format. **A change of any result of [`FullestLine::new`] makes stored filters unreadable.**

use std::sync::LazyLock;

use super::super::bitmap::LINE_BITS;

/// The largest number of bits that an item sets in a line. Seven positions of nine bits each fit in one 64-bit word.
/// Part of the stored format.
pub(super) const MAX_PROBES_PER_LINE: u32 = 7;

/// How a line can hold the most items at a given error rate: the best number of bits per item, and the largest mean
/// number of items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullestLine {
    /// The number of bits that an item sets in the line.
    pub(super) probes: u32,
    /// The mean number of items on the line.
    pub(super) load: f64,
}

impl FullestLine {
    /// Finds the number of bits per item with which a line can hold the most items, if its error rate must be at most
    /// `line_rate`.
    pub(super) fn new(line_rate: f64) -> Self {
        // The best number of bits is near log2(1/rate), so its load is computed first. Most other numbers of bits can
        // then be ruled out without a bisection for their own load.
        let guess = libm::round(-libm::log2(line_rate)).clamp(1.0, f64::from(MAX_PROBES_PER_LINE)) as u32;
        let mut best = FullestLine { probes: guess, load: largest_load(LineRate::of(guess), line_rate) };
        for probes in (1..=MAX_PROBES_PER_LINE).filter(|&probes| probes != guess) {
            let rate = LineRate::of(probes);
            // The error rate grows with the load. So this number of bits is better only if its rate at the best load so
            // far is below the wanted rate.
            if rate.at(best.load) < line_rate {
                best = FullestLine { probes, load: largest_load(rate, line_rate) };
            }
        }
        best
    }
}

/// The largest load at which the line's error rate is at most `line_rate`. The bisection ends at neighbouring `f64`s.
fn largest_load(rate: &LineRate, line_rate: f64) -> f64 {
    // If every bit is hit 64 times on average, a bit is 0 with probability e^-64. The rate at this load exceeds even
    // the largest rate below 1.
    let (mut fits, mut exceeds) = (0.0, 64.0 * f64::from(LINE_BITS));
    // The range of possible loads, 2^15 wide at first, is halved until no `f64` lies between its ends. That takes about
    // 70 rounds, as the result is over 0.5. The limit of 200 rounds ends the loop even if the rates are wrong.
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

/// The error rate of a line as a function of its load, if an item sets `probes` bits: `sum over j of weights[j] *
/// exp(-load * misses[j])`, for `j` from 0 to `probes`. [`LineRate::new`] derives the formula.
pub(super) struct LineRate {
    probes: usize,
    /// The weight of term `j` in the sum for the error rate: `(-1)^j * sum over d of P(d of the probes are distinct) *
    /// C(d, j)`.
    weights: [f64; NUM_TERMS],
    /// For each `j`, the probability that an item sets at least one of `j` given bits: `1 - (1 - j/512)^probes`.
    misses: [f64; NUM_TERMS],
}

/// At index `k`, the formula for the error rate of a line in which an item sets `k` bits.
static LINE_RATES: LazyLock<[LineRate; NUM_TERMS]> = LazyLock::new(|| std::array::from_fn(LineRate::new));

impl LineRate {
    /// The error rate of a line in which an item sets `probes` bits, at most [`MAX_PROBES_PER_LINE`].
    pub(super) fn of(probes: u32) -> &'static LineRate {
        &LINE_RATES[probes.min(MAX_PROBES_PER_LINE) as usize]
    }

    /// Computes `weights` and `misses` for items that set `probes` bits, of which some may coincide.
    ///
    /// An absent item is reported as present if none of its `d` distinct bits is 0. By inclusion and exclusion, the
    /// probability of this is an alternating sum over all subsets of the `d` bits. The term of a subset of `j` bits is
    /// the probability that all of them are 0. One item sets at least one of them with probability `misses[j]`. So for
    /// a Poisson number of items with mean `load`, the term is `exp(-load * misses[j])`.
    fn new(probes: usize) -> Self {
        let bits = f64::from(LINE_BITS);
        // `distinct[d]` is the probability that the bits so far fell on `d` different positions.
        let mut distinct = [0.0; NUM_TERMS];
        distinct[0] = 1.0;
        for _ in 0..probes {
            for d in (0..NUM_TERMS).rev() {
                let fresh = if d == 0 { 0.0 } else { distinct[d - 1] * ((bits - (d - 1) as f64) / bits) };
                distinct[d] = distinct[d] * (d as f64 / bits) + fresh;
            }
        }
        let (mut weights, mut misses) = ([0.0; NUM_TERMS], [0.0; NUM_TERMS]);
        // `subsets[d]` is the binomial coefficient C(d, j). It is built up from `j` to `j + 1` by the hockey-stick
        // identity.
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

    /// The error rate at this load. Its absolute error is about 1e-14.
    pub(super) fn at(&self, load: f64) -> f64 {
        let terms = 0..=self.probes;
        let sum = terms.fold(0.0, |sum, j| sum + self.weights[j] * libm::exp(-load * self.misses[j]));
        // The largest terms are about 35, so a result below 1e-14 is only a rounding error and may be negative.
        sum.clamp(0.0, 1.0)
    }
}
