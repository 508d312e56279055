//! Estimates for two sets by maximum likelihood: how many members are only in the first set, only in the second, and in
//! both.
//!
//! A slot is a bit of the bitmap, and is marked if the bit is set. It has one of four patterns: free, marked only in
//! the first set, only in the second, or in both. If the number of members is Poisson, the likelihood of all slots is
//! the product of the probabilities of their patterns. The likelihood is maximised by Fisher's scoring: Newton's steps
//! with the expected information instead of the observed one.

use crate::counting::estimate::{Segments, chances, doubled};

/// The largest number of steps of the search. 3 to 5 steps are usual, and 10 to 20 if one of the numbers is nearly 0.
const MAX_STEPS: usize = 100;

/// The search ends when a step changes no number by more than this fraction. It is far below the standard errors.
const TOLERANCE: f64 = 1e-7;

/// This number of members replaces 0. With 0, a slot could have the probability 0 of being marked, which has no
/// logarithm.
const NONE: f64 = 1e-9;

#[cfg(test)]
thread_local! {
    pub(super) static EVALUATIONS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Numbers of members: only in the first set, only in the second set, and in both.
pub(super) type PairCounts = [f64; 3];

/// How many slots of one segment are marked in only one of two bitmaps, or in both.
#[derive(Clone, Copy)]
struct SlotPatterns {
    share: f64,
    /// The number of slots in the segment.
    number: f64,
    /// The numbers of slots that are marked only in the first bitmap, only in the second, and in both.
    seen: [f64; 3],
}

/// For each segment, how many slots are marked in neither of two bitmaps, in only one, or in both.
pub(super) struct Pair {
    slots: Vec<SlotPatterns>,
    /// The fraction of all hashes that fall in slots marked in neither bitmap.
    free: f64,
}

/// The likelihood of given numbers of members, with its derivatives.
struct Likelihood {
    log: f64,
    score: PairCounts,
    information: [[f64; 3]; 3],
}

impl Pair {
    pub(super) fn new(first: &Segments, second: &Segments, union: &Segments) -> Self {
        let all = first.as_slice().iter().zip(second.as_slice()).zip(union.as_slice());
        let slots = all.map(|((first, second), union)| {
            let (alone, other) = (second.zero - union.zero, first.zero - union.zero);
            let both = union.slots - union.zero - alone - other;
            SlotPatterns { share: union.share, number: union.slots, seen: [alone, other, both] }
        });
        Pair { slots: slots.collect(), free: union.free_share() }
    }

    /// The most likely [numbers of members](PairCounts), and the variance of each. The search begins at `start`. The
    /// result is `None` if the search fails because hardly any slot of the bitmap is free.
    pub(super) fn most_likely(&self, start: PairCounts) -> Option<(PairCounts, PairCounts)> {
        let mut members = start.map(|n| n.max(NONE));
        let mut here = self.likelihood(members);
        for _ in 0..MAX_STEPS {
            let step = here.step(members)?;
            let (next, there) = self.climb(members, step, here.log)?;
            let is_there = next.iter().zip(&members).all(|(next, n)| (next - n).abs() <= TOLERANCE * n + NONE);
            (members, here) = (next, there);
            if is_there {
                return Some((members, here.variances(members)?));
            }
        }
        None
    }

    /// The variance of each estimated number if `members` are the true numbers; `None` if it cannot be computed.
    pub(super) fn variances(&self, members: PairCounts) -> Option<PairCounts> {
        let members = members.map(|n| n.max(NONE));
        self.likelihood(members).variances(members)
    }

    /// Takes a step from `members`, shortened until the likelihood rises. Returns the new numbers with their
    /// likelihood; `None` if no shortened step helps.
    fn climb(&self, members: PairCounts, step: PairCounts, log: f64) -> Option<(PairCounts, Likelihood)> {
        let mut part = 1.0;
        for _ in 0..40 {
            // No number falls by more than nine tenths, so all numbers stay positive.
            let next = std::array::from_fn(|i| (members[i] + part * step[i]).max(members[i] / 10.0).max(NONE));
            let there = self.likelihood(next);
            if there.log >= log - 1e-12 * log.abs() {
                return Some((next, there));
            }
            part /= 2.0;
        }
        None
    }

    fn likelihood(&self, [x, y, z]: PairCounts) -> Likelihood {
        #[cfg(test)]
        EVALUATIONS.set(EVALUATIONS.get() + 1);
        // Both sets together have `x + y + z` members. A slot that gets the fraction `share` of all hashes is free in
        // both sets with the probability `exp(-share (x + y + z))`. `self.free` is the sum of the shares of all these
        // slots.
        let log = -self.free * (x + y + z);
        let mut all = Likelihood { log, score: [-self.free; 3], information: [[0.0; 3]; 3] };
        let mut last = self.slots.last().map_or(0.0, |last| last.share);
        let mut of_slot = [x, y, z].map(|n| chances(last * n));
        for slots in self.slots.iter().rev() {
            let a = slots.share;
            if a > last {
                (last, of_slot) = (a, of_slot.map(doubled));
            }
            let [(free_x, taken_x), (free_y, taken_y), (free_z, taken_z)] = of_slot;
            let free_all = free_x * free_y * free_z;
            let (alone_x, alone_y) = (free_y * free_z * taken_x, free_x * free_z * taken_y);
            let of_free = slots.number * a * a * free_all;
            all.information.iter_mut().flatten().for_each(|sum| *sum += of_free);
            let patterns = [
                (alone_x, [free_all, -alone_x, -alone_x]),
                (alone_y, [-alone_y, free_all, -alone_y]),
                (taken_z + free_z * taken_x * taken_y, [alone_y, alone_x, free_z * (1.0 - taken_x * taken_y)]),
            ];
            for ((chance, slope), seen) in patterns.into_iter().zip(slots.seen) {
                // A probability too small for a double is raised, because 0 has no logarithm. No slot of a real bitmap
                // is so improbable.
                let chance = chance.max(f64::MIN_POSITIVE);
                if seen > 0.0 {
                    all.log += seen * libm::log(chance);
                }
                let (of_score, of_information) = (seen * a / chance, slots.number * a * a / chance);
                for i in 0..3 {
                    all.score[i] += of_score * slope[i];
                    for j in 0..3 {
                        all.information[i][j] += of_information * (slope[i] * slope[j]);
                    }
                }
            }
        }
        all
    }
}

impl Likelihood {
    /// The inverse of the information is the variance for a Poisson number of members. The true number is fixed, so the
    /// variance of the Poisson number is subtracted.
    fn variances(&self, members: PairCounts) -> Option<PairCounts> {
        let inverse = inverse(&self.information)?;
        let variances: PairCounts = std::array::from_fn(|i| (inverse[i][i] - members[i]).max(0.0));
        variances.iter().all(|variance| variance.is_finite()).then_some(variances)
    }

    /// Newton's step from `members` to more likely numbers; `None` if there is none. No number falls by more than nine
    /// tenths. If this limit shortens the step of a number, the other steps are computed again.
    fn step(&self, members: PairCounts) -> Option<PairCounts> {
        let mut given = [None; 3];
        loop {
            let step = self.step_with(given)?;
            let before = given;
            for i in 0..3 {
                if given[i].is_none() && members[i] + step[i] < members[i] / 10.0 {
                    given[i] = Some((members[i] / 10.0).max(NONE) - members[i]);
                }
            }
            if given == before {
                return Some(step);
            }
        }
    }

    /// Newton's step, in which the components that are in `given` are fixed.
    fn step_with(&self, given: [Option<f64>; 3]) -> Option<PairCounts> {
        let mut information = self.information;
        let mut score = self.score;
        for i in 0..3 {
            let Some(part) = given[i] else { continue };
            for j in 0..3 {
                score[j] -= self.information[j][i] * part;
                (information[i][j], information[j][i]) = (0.0, 0.0);
            }
            information[i][i] = 1.0;
        }
        let step = inverse(&information)?.map(|row| row.iter().zip(&score).map(|(i, s)| i * s).sum::<f64>());
        Some(std::array::from_fn(|i| given[i].unwrap_or(step[i])))
    }
}

fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cofactor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * cofactor(0, j)).sum();
    let inverse = std::array::from_fn(|i| std::array::from_fn(|j| cofactor(j, i) / determinant));
    (determinant > 0.0 && determinant.is_finite()).then_some(inverse)
}
