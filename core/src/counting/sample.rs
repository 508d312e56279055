//! Counters as if many members had been added, for plans: adding the members would take too long.

use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::slots::Slots;
use crate::error::Error;
use crate::hash::hash64;

/// An estimating counter like `empty`, as if about `members` random members had been added in its newest slice. Each
/// bit of the bitmap is set with the probability that one of the members sets it; `seed` selects which.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn sample(empty: &Counter, members: u64, seed: u64) -> Result<Counter, Error> {
    let layout = empty.layout();
    let mut slots = Slots::wide(layout, empty.ages())?;
    for segment in 0..layout.num_segments() {
        let probability = -libm::expm1(-layout.share(segment) * members as f64);
        // The cast limits the number to 64 bits.
        let bound = (probability * 2f64.powi(64)) as u64;
        let slots_of = (0..layout.slots()).map(|place| layout.slot_at(segment, place as u16));
        slots_of.filter(|slot| hash64(&slot.to_le_bytes(), seed) < bound).for_each(|slot| slots.mark_wide(slot, 0));
    }
    let held = Held::Estimating(Box::new(slots.formed(|_| Ok(()))?));
    Ok(Counter::holding(*empty.spec, held, empty.ring().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::params::Params;
    use crate::size_limit::Unlimited;
    use crate::window::{ClockSource, Window};

    /// Samples estimate as many members as they were made for, and take the memory of counters to which as many members
    /// were added. The ranges of eight values of each overlap, unless in one case of 6,435.
    #[test]
    fn samples_are_like_counters_whose_members_were_added() {
        const MEMBERS: u64 = 5000;
        for (error_rate, slices) in [(0.01, 0), (0.02, 12), (0.04, 24)] {
            let empty = |seed| {
                let counter = Counter::new(Params { error_rate, seed, ..Params::default() }).unwrap();
                let window = |slices| Window::new(86_400, slices, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
                if slices == 0 { counter } else { counter.with_window(window(slices), 0).unwrap() }
            };
            let real = |seed| {
                let (mut counter, members) = (empty(seed), (0..MEMBERS).map(u64::to_le_bytes));
                members.for_each(|member| _ = counter.mark(member, &Unlimited).unwrap());
                counter
            };
            let samples: Vec<_> = (0..8).map(|seed| sample(&empty(0), MEMBERS, seed).unwrap()).collect();
            let sizes = |counters: &mut dyn Iterator<Item = Counter>| {
                let sizes: Vec<_> = counters.map(|counter| counter.size_bytes()).collect();
                (*sizes.iter().min().unwrap(), *sizes.iter().max().unwrap())
            };
            let (real, sampled) = (sizes(&mut (0..8).map(real)), sizes(&mut samples.iter().cloned()));
            assert!(real.0 <= sampled.1 && sampled.0 <= real.1, "{error_rate} {slices}: {real:?} {sampled:?}");
            let most = 10_000_000_000;
            let largest = sample(&empty(0), most, 1).unwrap();
            for (counter, members) in samples.into_iter().map(|sample| (sample, MEMBERS)).chain([(largest, most)]) {
                // The number of members is random too, with the variance of a Poisson distribution.
                let error = counter.standard_error().hypot((members as f64).sqrt().recip());
                let ratio = counter.estimate() / members as f64;
                assert!((ratio - 1.0).abs() < 4.0 * error, "{error_rate} {slices} {members}: {ratio}");
            }
        }
    }
}
