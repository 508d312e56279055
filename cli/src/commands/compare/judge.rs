//! Judges whether chance alone explains the differences between many counters and their sets.
//!
//! Each difference is divided by the standard error that its counter reports. The quotients should have a mean of 0 and
//! a mean square of 1. Two bounds are checked; by chance, correct counters exceed each of them once in ten thousand
//! cases:
//!
//! - for the sum `T` of the `n` quotients, Bernstein's inequality: `2 exp(-T^2 / (2 (n + b |T| / 3)))`, where `b` is
//!   the largest `1 / error`, the change of a quotient by one member;
//! - for the sum of the squared quotients, a chi-square distribution. Its variance is that of counters with few
//!   collisions: `2 + 1 / error^2` for each, with the standard error in members. Its quantile is by Wilson and Hilferty
//!   (1931).

use serde::Serialize;

use crate::numbers::{decimal, signed};
use crate::table::{noun, table};

/// The chance that correct counters exceed one bound.
const LEVEL: f64 = 1e-4;

/// The one-sided quantile of the normal distribution for [`LEVEL`].
const LEVEL_QUANTILE: f64 = 3.719;

/// The shares of a normal distribution within 1, 2 and 3 standard deviations.
const NORMAL_SHARES: [f64; 3] = [0.6827, 0.9545, 0.9973];

/// The levels of the quantiles that are printed.
const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// Number of bars of the histogram: half a standard error each, from -4 to 4. Values beyond are in the outermost bars.
const BARS: usize = 16;

/// Length of the longest bar in characters.
const BAR_WIDTH: usize = 40;

/// Statistics of the differences between counters and their sets where either is an estimate, in standard errors.
#[derive(Debug, Serialize)]
pub struct Counters {
    number: usize,
    mean: f64,
    /// The root of the mean square of the differences; 1 if the stated errors are right.
    spread: f64,
    quantiles: Vec<f64>,
    /// The shares of the differences within 1, 2 and 3 standard errors.
    within: [f64; 3],
    histogram: Vec<usize>,
    pub judged: Judged,
}

/// The verdict on the differences.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "snake_case", tag = "judged")]
pub enum Judged {
    AsChance,
    BeyondChance { what: String },
}

impl Counters {
    /// Computes the statistics. Each pair is a difference in standard errors, and this standard error in members.
    /// Returns `None` without any pairs.
    pub fn from_differences(differences: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let (mut errors, members): (Vec<f64>, Vec<f64>) = differences.unzip();
        if errors.is_empty() {
            return None;
        }
        let number = errors.len() as f64;
        let (sum, squares) = errors.iter().fold((0.0, 0.0), |(sum, squares), e| (sum + e, squares + e * e));
        let judged = judge(sum, squares, &members);
        errors.sort_by(f64::total_cmp);
        let quantiles = QUANTILES.map(|part| errors[((number - 1.0) * part).round() as usize]).to_vec();
        let within = [1.0, 2.0, 3.0].map(|most| errors.iter().filter(|e| e.abs() <= most).count() as f64 / number);
        let mut histogram = vec![0; BARS];
        for error in &errors {
            let at = ((error + 4.0) * 2.0).floor().clamp(0.0, (BARS - 1) as f64);
            histogram[at as usize] += 1;
        }
        let spread = (squares / number).sqrt();
        Some(Counters { number: errors.len(), mean: sum / number, spread, quantiles, within, histogram, judged })
    }

    /// The statistics and the verdict as text.
    pub fn text(&self) -> String {
        let mut shares = vec![["within", ">share", ">normal"].map(str::to_owned).to_vec()];
        for (at, (share, normal)) in self.within.iter().zip(NORMAL_SHARES).enumerate() {
            let errors = format!("{} standard error{}", at + 1, if at == 0 { "" } else { "s" });
            shares.push(vec![errors, format!("{:.2} %", share * 100.0), format!("{:.2} %", normal * 100.0)]);
        }
        let mut quantiles = vec![["quantile", ">difference, standard errors"].map(str::to_owned).to_vec()];
        for (part, value) in QUANTILES.iter().zip(&self.quantiles) {
            quantiles.push(vec![format!("{:.0} %", part * 100.0), signed(*value)]);
        }
        let longest = self.histogram.iter().copied().max().unwrap_or(0).max(1);
        let mut bars = vec![["standard errors", ">estimates", ""].map(str::to_owned).to_vec()];
        for (at, &number) in self.histogram.iter().enumerate() {
            let from = at as f64 / 2.0 - 4.0;
            let name = match at {
                0 => "below -3.5".to_owned(),
                _ if at == BARS - 1 => "from +3.5".to_owned(),
                _ => format!("{from:+.1} to {:+.1}", from + 0.5),
            };
            let bar = "#".repeat((number * BAR_WIDTH).div_ceil(longest));
            bars.push(vec![name, number.to_string(), bar]);
        }
        let verdict = match &self.judged {
            Judged::AsChance => "no more than chance",
            Judged::BeyondChance { what } => what,
        };
        format!(
            "{}; differences in standard errors: mean {}, spread {}; {verdict}\n\n{}\n\n{}\n\n{}",
            noun(self.number, "estimate"),
            signed(self.mean),
            decimal(self.spread),
            table(&shares),
            table(&quantiles),
            table(&bars)
        )
    }
}

/// Judges the sum of the differences and the sum of their squares; `members` are the standard errors in members.
fn judge(sum: f64, squares: f64, members: &[f64]) -> Judged {
    let number = members.len() as f64;
    let step = members.iter().map(|error| 1.0 / error).fold(0.0, f64::max);
    let chance = 2.0 * (-sum * sum / (2.0 * (number + step * sum.abs() / 3.0))).exp();
    if chance < LEVEL {
        let side = if sum > 0.0 { "more" } else { "less" };
        return Judged::BeyondChance {
            what: format!(
                "the counters count {side} than their sets, by {} standard errors on average",
                signed(sum / number)
            ),
        };
    }
    let variance: f64 = members.iter().map(|error| 2.0 + 1.0 / (error * error)).sum();
    let freedom = 2.0 * number * number / variance;
    let ninth = 2.0 / (9.0 * freedom);
    // With standard errors far below a member the quantile is too small: one collision makes a difference of a member.
    let most = (number * (1.0 - ninth + LEVEL_QUANTILE * ninth.sqrt()).powi(3)).max(step * step);
    if squares > most {
        return Judged::BeyondChance {
            what: format!(
                "the differences are {} times as large as the stated errors; chance makes them {} times at most",
                decimal((squares / number).sqrt()),
                decimal((most / number).sqrt())
            ),
        };
    }
    Judged::AsChance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(errors: &[f64]) -> Counters {
        Counters::from_differences(errors.iter().map(|&errors| (errors, 100.0))).expect("counters")
    }

    /// Returns `number` pseudo-random differences, normally distributed with mean `shift` and standard deviation
    /// `spread`. Each is a sum of twelve uniform numbers.
    fn normal(number: usize, spread: f64, shift: f64) -> Vec<f64> {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        };
        (0..number).map(|_| (0..12).map(|_| uniform()).sum::<f64>().mul_add(spread, shift - 6.0 * spread)).collect()
    }

    #[test]
    fn differences_pass_if_chance_explains_them() {
        let judged = |errors: &[f64]| counters(errors).judged == Judged::AsChance;
        for number in [1, 10, 1000] {
            assert!(judged(&normal(number, 1.0, 0.0)), "{number}");
        }
        // A mean of 0.2 of 1,000 differences is 6.3 standard errors of the mean. A spread of 1.15 exceeds 1 by 7
        // standard errors.
        assert!(!judged(&normal(1000, 1.0, 0.2)));
        assert!(!judged(&normal(1000, 1.0, -0.2)));
        assert!(!judged(&normal(1000, 1.15, 0.0)));
        assert!(!judged(&[6.0]));
    }

    #[test]
    fn a_counter_with_few_collisions_may_be_off_by_one() {
        // Hash collisions hide two members of this counter. That happens by chance to one such counter in two
        // hundred.
        let counters = Counters::from_differences([(-6.0, 0.316)].into_iter()).expect("a counter");
        assert_eq!(counters.judged, Judged::AsChance);
        // A regression test: an exact counter of 3 members was off by more than chance from a HyperLogLog that counts 3
        // too, whose standard error is 0.024 members.
        for (members, is_chance) in [(0.0, true), (1.0, true), (-1.0, true), (2.0, false)] {
            let counters = Counters::from_differences([(members / 0.024, 0.024)].into_iter()).expect("a counter");
            assert_eq!(counters.judged == Judged::AsChance, is_chance, "{members}");
        }
    }

    #[test]
    fn histogram_and_quantiles_cover_all_counters() {
        let counters = counters(&[-9.0, -0.2, 0.2, 1.5, 3.9]);
        assert_eq!(counters.histogram.iter().sum::<usize>(), 5);
        assert_eq!((counters.histogram[0], counters.histogram[15]), (1, 1));
        assert_eq!(counters.within, [0.4, 0.6, 0.6]);
        assert_eq!(counters.quantiles[0], -9.0);
        assert_eq!(counters.quantiles[6], 3.9);
        assert!(Counters::from_differences([].into_iter()).is_none());
    }
}
