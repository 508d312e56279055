//! Simulates how many slots of each segment a set of random members takes. Members are not hashed, so 10^11 members
//! cost as much as 1,000. The estimate of a counter depends only on these numbers.
//!
//! The members per segment have a multinomial distribution, which is drawn as one binomial after the other. Within a
//! segment each member takes a random slot. If `j` of `C` slots are taken, the number of members until the next slot is
//! taken has a geometric distribution. This chain is exact. It is used for small segments, few members and the last
//! free slots. In other cases the number of taken slots is drawn from a normal distribution, with the mean and the
//! variance given by N. L. Johnson and S. Kotz, "Urn Models and Their Application", 1977, section 3.2.

use rollcall_core::unstable::counting::estimate::Segments;
use rollcall_core::unstable::counting::layout::{Layout, SegmentCounts};

/// The largest number of slots for which each taken slot is drawn individually.
const FEW_SLOTS: f64 = 1024.0;

/// Variances and expected numbers above this value are large enough for a normal distribution.
const MANY: f64 = 300.0;

/// Random variables of several distributions.
pub struct Random(rollcall_fuzz::random::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(rollcall_fuzz::random::Random::new(seed))
    }

    /// A number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// The number of trials until one succeeds, if each succeeds with this probability.
    fn geometric(&mut self, chance: f64) -> f64 {
        if chance >= 1.0 { 1.0 } else { (self.uniform().ln() / (-chance).ln_1p()).ceil().max(1.0) }
    }

    /// The number of successes in `trials` trials with this probability.
    pub fn binomial(&mut self, trials: f64, chance: f64) -> f64 {
        if chance > 0.5 {
            return trials - self.binomial(trials, 1.0 - chance);
        }
        let (mean, variance) = (trials * chance, trials * chance * (1.0 - chance));
        if variance > MANY {
            return (mean + variance.sqrt() * self.normal()).round().clamp(0.0, trials);
        }
        if chance <= 0.0 {
            return 0.0;
        }
        // Draws the gaps between successes.
        let (mut successes, mut at) = (0.0, self.geometric(chance));
        while at <= trials {
            successes += 1.0;
            at += self.geometric(chance);
        }
        successes
    }

    /// The number of taken slots after `members` members each chose one of `slots` slots.
    fn taken(&mut self, slots: f64, members: f64) -> f64 {
        let full = 2.0 * slots;
        if members > full {
            // The last free slots take by far the most members to fill, so these slots are drawn one by one.
            let taken = self.taken(slots, full);
            return self.taken_further(slots, taken, members - full);
        }
        // The probability that one given slot stays free, and that two do: (1 - 1/C)^n and (1 - 2/C)^n.
        let [free, two_free] = [1.0, 2.0].map(|n: f64| (members * (-n / slots).ln_1p()).exp());
        let found_taken = members - slots * (1.0 - free);
        if slots <= FEW_SLOTS || found_taken < MANY {
            return self.taken_further(slots, 0.0, members);
        }
        let variance = slots * free + slots * (slots - 1.0) * two_free - (slots * free).powi(2);
        (slots * (1.0 - free) + variance.sqrt() * self.normal()).round().clamp(1.0, slots.min(members))
    }

    /// The number of taken slots after `members` further members, drawn exactly, if `taken` slots were taken before.
    fn taken_further(&mut self, slots: f64, mut taken: f64, mut members: f64) -> f64 {
        // The probability that any slot stays free is below 10^-9.
        if slots * (-members / slots).exp() < 1e-9 {
            return slots;
        }
        while taken < slots {
            members -= self.geometric(1.0 - taken / slots);
            if members < 0.0 {
                break;
            }
            taken += 1.0;
        }
        taken
    }
}

/// The numbers of taken slots in each segment after `members` random members.
pub fn occupied(layout: Layout, members: f64, random: &mut Random) -> SegmentCounts {
    let mut counts = SegmentCounts::default();
    let (mut left, mut share_left) = (members, 1.0);
    for segment in 0..layout.num_segments() {
        let slots = layout.slots() as f64;
        let share = slots * layout.share(segment);
        let own = if share >= share_left { left } else { random.binomial(left, share / share_left) };
        left -= own;
        share_left -= share;
        counts.add(segment, random.taken(slots, own) as u64);
    }
    counts
}

/// The relative errors of estimates of counters with this layout and this number of random members.
pub fn relative_errors(layout: Layout, members: f64, trials: u64, random: &mut Random) -> Vec<f64> {
    let error = |_| Segments::new(layout, &occupied(layout, members, random)).estimate() / members - 1.0;
    (0..trials).map(error).collect()
}
