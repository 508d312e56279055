//! Pseudo-random numbers that are the same on every platform and in every run, and random variables of several
//! distributions.

use rollcall_core::unstable::hash64;

/// From this expected number on, a normal variable with the same mean and variance replaces a sum. Its skewness, one
/// over the square root of the number, is then 3 %.
const MANY: f64 = 1000.0;

/// The random numbers of a trial.
pub struct Random(rollcall_fuzz::random::Random);

impl Random {
    /// The sequence of numbers for a trial of the measurement `name`.
    pub fn of(name: &str, trial: u64) -> Random {
        Random(rollcall_fuzz::random::Random::new(hash64(name.as_bytes(), trial)))
    }

    /// A number of 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.number()
    }

    /// A uniform number between 0 and 1, both excluded.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// The number of failures before the first success, which has the probability `chance`.
    fn failures(&mut self, chance: f64) -> f64 {
        libm::floor(libm::log(self.unit()) / libm::log1p(-chance))
    }

    /// The number of successes in `trials` trials with the probability `chance`.
    pub fn binomial(&mut self, trials: u64, chance: f64) -> u64 {
        if chance > 0.5 {
            return trials - self.binomial(trials, 1.0 - chance);
        }
        let mean = trials as f64 * chance;
        if mean >= MANY {
            let drawn = mean + self.normal() * libm::sqrt(mean * (1.0 - chance));
            return libm::round(drawn.clamp(0.0, trials as f64)) as u64;
        }
        if chance <= 0.0 {
            return 0;
        }
        let (mut successes, mut tried) = (0, 0.0);
        loop {
            tried += self.failures(chance) + 1.0;
            if tried > trials as f64 {
                return successes;
            }
            successes += 1;
        }
    }

    /// The number of urns with at least one ball, after `balls` balls each fell into a random one of `urns` urns.
    ///
    /// If few balls share an urn or few urns are free, balls or urns are drawn one by one. Otherwise a normal variable
    /// with the exact mean and variance is drawn (N. L. Johnson, S. Kotz, "Urn Models and Their Application", 1977,
    /// section 3.2).
    pub fn occupied(&mut self, urns: u64, balls: u64) -> u64 {
        let (count, thrown) = (urns as f64, balls as f64);
        let free = count * libm::exp(thrown * libm::log1p(-1.0 / count));
        if free < 1e-9 {
            return urns;
        }
        if thrown - (count - free) < MANY {
            // With so few balls in taken urns, most urns are free, so balls are drawn one by one.
            let mut taken = 0;
            for _ in 0..balls {
                taken += u64::from(self.unit() * count >= taken as f64);
            }
            return taken;
        }
        if free >= MANY {
            return self.occupied_by_many(count, thrown);
        }
        // The last few urns are drawn one by one, after the balls that leave twice this number of urns free.
        let first = if count > 4.0 * MANY { libm::floor(count * libm::log(count / (2.0 * MANY))) } else { 0.0 };
        let mut taken = if first > 0.0 { self.occupied_by_many(count, first) } else { 0 };
        let mut left = thrown - first;
        while taken < urns {
            let chance = (urns - taken) as f64 / count;
            left -= if chance < 1.0 { self.failures(chance) + 1.0 } else { 1.0 };
            if left < 0.0 {
                break;
            }
            taken += 1;
        }
        taken
    }

    fn occupied_by_many(&mut self, urns: f64, balls: f64) -> u64 {
        let free = urns * libm::exp(balls * libm::log1p(-1.0 / urns));
        let both_free = urns * (urns - 1.0) * libm::exp(balls * libm::log1p(-2.0 / urns));
        let variance = both_free + free - free * free;
        let drawn = urns - free + self.normal() * libm::sqrt(variance.max(0.0));
        libm::round(drawn.clamp(1.0, urns)) as u64
    }
}
