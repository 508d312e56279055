//! The load of a line: the mean number of items at which the line reaches an error rate. The sizes of filters are
//! derived from it.
//!
//! The number of items that picked one line is binomial, and for all but the smallest filters a Poisson variable. Its
//! distribution, not just its mean, decides the error rate (Putze, Sanders and Singler, "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007, section 3). So the error rate of a line is computed here as the mean over this
//! distribution.
//!
//! The load of a line at a rate is *defined* as the result of a bisection, to the last place. It is part of the stored
//! format. **A change of any result of [`FullestLine::exact`] makes stored filters unreadable.** A bisection takes as
//! long as adding a hundred items, and the number of lines, a whole number, rarely depends on the last places. So
//! Newton's method gives bounds that certainly enclose the result. The bounds are narrowed only as far as necessary.

use std::sync::LazyLock;

use super::super::bitmap::LINE_BITS;

/// Largest number of bits that an item sets in a line: seven indices of nine bits fit one 64-bit word. Part of the
/// stored format.
pub(super) const MAX_PROBES_PER_LINE: u32 = 7;

/// The number of probes with which a line takes the most items at an error rate, and bounds of the mean number of these
/// items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullestLine {
    line_rate: f64,
    probes: u32,
    /// The load, approximately: the mean number of items on the line.
    load: f64,
    /// The number that the next step of Newton's method subtracts from the load.
    step: f64,
    /// The largest possible error of `load`.
    around: f64,
}

impl FullestLine {
    /// Returns the best number of probes, and bounds of the load, for lines with an error rate of at most `line_rate`.
    /// The bounds are at most a tenth off.
    pub(super) fn new(line_rate: f64) -> Self {
        Self::guess(line_rate).unwrap_or_else(|| Self::exact(line_rate))
    }

    /// The number of bits that an item sets in the line.
    pub(super) fn probes(&self) -> u32 {
        self.probes
    }

    /// The lower and the upper bound of the load, the mean number of items on the line. Repeated calls of
    /// [`FullestLine::narrow`] make them equal.
    pub(super) fn loads(&self) -> (f64, f64) {
        (self.load - self.around, self.load + self.around)
    }

    /// Brings the bounds of the load nearer to each other, by a step of Newton's method.
    pub(super) fn narrow(&mut self) {
        let next = Self::near(self.line_rate, self.probes, self.load - self.step);
        // Once only rounding errors are left, Newton's method narrows no further.
        let narrower = next.filter(|next| next.around < self.around / 2.0);
        *self = narrower.unwrap_or_else(|| Self::exact(self.line_rate));
    }

    /// Computes the best number of probes, and the load to the last bit, by bisection.
    fn exact(line_rate: f64) -> Self {
        // The best number of probes is near log2(1/rate). Starting there, few other numbers need a bisection.
        let guess = libm::round(-libm::log2(line_rate)).clamp(1.0, f64::from(MAX_PROBES_PER_LINE)) as u32;
        let mut best = (guess, largest_load(LineRate::of(guess), line_rate));
        for probes in (1..=MAX_PROBES_PER_LINE).filter(|&probes| probes != guess) {
            let rate = LineRate::of(probes);
            // The rate grows with the load, so the rate at the best load so far shows whether this number of probes
            // beats it.
            if rate.at(best.1) < line_rate {
                best = (probes, largest_load(rate, line_rate));
            }
        }
        FullestLine { line_rate, probes: best.0, load: best.1, step: 0.0, around: 0.0 }
    }

    /// A first guess, as if every line held the same number of items. Returns `None` if the guess is too inexact to
    /// start from, as for rates near 1. Also returns `None` if rounding may decide which number of probes is best.
    fn guess(line_rate: f64) -> Option<Self> {
        if MORE_PROBES_BELOW.iter().any(|limit| (line_rate - limit).abs() <= UNDECIDED * limit) {
            return None;
        }
        let probes = MORE_PROBES_BELOW.iter().fold(1, |probes, &limit| probes + u32::from(line_rate < limit));
        let share = 1.0 / f64::from(probes);
        let load = -f64::from(LINE_BITS) * share * libm::log1p(-libm::pow(line_rate, share));
        Self::near(line_rate, probes, load)
    }

    /// Computes the bounds of the exact load from a nearby load, by a step of Newton's method. Returns `None` if the
    /// nearby load is too far from the exact one.
    fn near(line_rate: f64, probes: u32, load: f64) -> Option<Self> {
        let (at_load, slope) = LineRate::of(probes).with_slope(load);
        let step = (at_load - line_rate) / slope;
        // Twice the step, since the slope changes on the way. Within a tenth of the load it changes little.
        let around = 2.0 * (step.abs() + ROUNDING / slope);
        (0.0..0.1 * load).contains(&around).then_some(FullestLine { line_rate, probes, load, step, around })
    }
}

/// The error rates at which the best number of probes changes. Below the first rate, a line takes more items with 2
/// probes than with 1; below the second, more with 3 than with 2; and so on up to [`MAX_PROBES_PER_LINE`].
const MORE_PROBES_BELOW: [f64; MAX_PROBES_PER_LINE as usize - 1] =
    [0.381410372724, 0.183452989911, 0.089005353625, 0.042840634685, 0.020309728543, 0.009435787627];

/// The relative distance from the rates in [`MORE_PROBES_BELOW`] within which rounding may decide the number of probes.
const UNDECIDED: f64 = 1e-6;

/// A hundred times the absolute error of [`LineRate::at`]. Rounding cannot change the order of two rates that differ by
/// more than this.
const ROUNDING: f64 = 1e-12;

/// The largest load at which `rate` is at most `line_rate`, by bisection down to neighbouring `f64`s.
fn largest_load(rate: &LineRate, line_rate: f64) -> f64 {
    // At 64 expected hits a bit, a bit is free with chance e^-64. That load is too much even for the largest rate below
    // 1.
    let (mut fits, mut exceeds) = (0.0, 64.0 * f64::from(LINE_BITS));
    // Halves a range of 2^15 until it is one last place wide: about 70 rounds for the loads that occur (over 0.5). The
    // bound ends the loop whatever the formula gives.
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
        // The terms reach about 35, so a rate below 1e-14 is rounding and may come out negative.
        sum.clamp(0.0, 1.0)
    }

    /// The error rate at this load, and its derivative by the load.
    fn with_slope(&self, load: f64) -> (f64, f64) {
        (0..=self.probes).fold((0.0, 0.0), |(sum, slope), j| {
            let term = self.weights[j] * libm::exp(-load * self.misses[j]);
            (sum + term, slope - self.misses[j] * term)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::sub_filter_rate;
    use super::*;
    use crate::bloom::params::Params;

    /// The bounds of the load enclose the result of the bisection, for the rates of chains and for rates of every
    /// magnitude.
    #[test]
    fn bounds_hold_what_bisections_end_at() {
        let chains = [0.5, 0.1, 0.01, 1e-4].into_iter().flat_map(|error_rate| {
            let params = Params { error_rate, capacity: 1, expansion: 1, seed: 0 };
            (0..300).map(move |index| sub_filter_rate(&params, index))
        });
        let line_rate_of = |rate: f64| libm::pow(rate, 1.0 / libm::ceil(-libm::log(rate) / libm::log(200.0)).max(1.0));
        let spread = (1..2000).map(|i| libm::exp(-f64::from(i) * 0.00265));
        let mut bisections = 0;
        for line_rate in chains.map(line_rate_of).chain(spread) {
            let (exact, mut line) = (FullestLine::exact(line_rate), FullestLine::new(line_rate));
            bisections += u32::from(line == exact);
            let mut narrowed = 0;
            while line != exact {
                let (low, high) = line.loads();
                assert!(line.probes == exact.probes && low < exact.load && exact.load < high, "{line_rate}");
                line.narrow();
                narrowed += 1;
            }
            assert!(narrowed <= 6, "{line_rate}");
        }
        // There are 3199 rates.
        assert!(bisections < 20, "{bisections}");
    }

    /// Bisection computes the load near the rates 0 and 1, and where two numbers of probes are equally good.
    #[test]
    fn where_bounds_are_not_certain_bisections_are_asked() {
        for (probes, limit) in (1..).zip(MORE_PROBES_BELOW) {
            let better = |rate| {
                let [fewer, more] = [probes, probes + 1].map(|probes| largest_load(LineRate::of(probes), rate));
                if fewer > more { probes } else { probes + 1 }
            };
            assert_eq!([better(limit * (1.0 - 1e-9)), better(limit * (1.0 + 1e-9))], [probes + 1, probes]);
            for rate in [limit * (1.0 - 9e-7), limit, limit * (1.0 + 9e-7)] {
                assert_eq!(FullestLine::new(rate), FullestLine::exact(rate), "{rate}");
            }
            for rate in [limit * (1.0 - 2e-6), limit * (1.0 + 2e-6)] {
                assert_eq!(FullestLine::new(rate).probes, FullestLine::exact(rate).probes, "{rate}");
            }
        }
        for rate in [f64::from_bits(1), 1e-300, 1e-15, 1.0 - f64::EPSILON / 2.0, 1.0 - 1e-13] {
            assert_eq!(FullestLine::new(rate), FullestLine::exact(rate), "{rate}");
        }
    }

    /// Bounds that are computed from a load near the result enclose the result, even at distances within rounding. They
    /// are about as narrow as the distance allows.
    #[test]
    fn bounds_are_as_wide_as_they_have_to_be() {
        for line_rate in [0.3, 0.1, 0.06, 0.03, 0.015, 0.005] {
            let exact = FullestLine::exact(line_rate);
            let rate = LineRate::of(exact.probes);
            let slope = (rate.at(1.001 * exact.load) - rate.at(0.999 * exact.load)) / (0.002 * exact.load);
            for k in 0..=80 {
                // At this distance from the result, the rate differs by 1e-16 to 1e-6.
                let distance = libm::pow(10.0, -15.0 + f64::from(k) * 0.125) * 0.1 / slope;
                for load in [exact.load - distance, exact.load + distance] {
                    let Some(near) = FullestLine::near(line_rate, exact.probes, load) else {
                        assert!(distance > 0.02 * load, "{line_rate} {k}");
                        continue;
                    };
                    let (low, high) = near.loads();
                    assert!(low < exact.load && exact.load < high, "{line_rate} {k}");
                    assert!(high - low < 4.5 * distance + 5.0 * ROUNDING / slope, "{line_rate} {k}");
                }
            }
        }
    }
}
