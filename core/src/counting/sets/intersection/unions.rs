//! Intersections of any number of sets by inclusion and exclusion: the sum of the sizes of all unions, with a plus for
//! an odd number of sets and a minus for an even number.
//!
//! A slot is a bit of the bitmap, and is marked if the bit is set. The variance of the sum is computed as if the number
//! of members had a Poisson distribution. Then slots are independent, and their variances are added. The true number of
//! members is fixed, so the variance of the Poisson distribution is subtracted at the end.
//!
//! The sizes are estimates, so they may contradict each other: for example, a union may seem smaller than one of its
//! sets. A variance computed from such sizes could be far too large or too small. So it is computed from the nearest
//! sizes that are possible ([`sets_near`]).

use crate::counting::estimate::{self, Segments, doubled};
use crate::error::Error;
use crate::size_limit::{try_collect, try_with_capacity};

/// The largest number of estimating counters in an intersection. All exact counters together count as one. Each
/// additional counter doubles the number of unions: there are 255 for 8 counters.
pub(super) const MAX_INTERSECTED: usize = 8;

/// An estimate of the number of members that all sets share, with its variance. The variance is infinite if it cannot
/// be computed.
pub(super) struct Common {
    pub(super) estimate: f64,
    pub(super) variance: f64,
}

/// This number of members replaces 0. With 0, the Fisher information would be infinite.
const NONE: f64 = 1e-9;

/// Estimates the number of members that all sets share, from all unions of the sets. Bit `i` of a union's index says
/// whether set `i` is included. The empty union is first, and set 0 is the smallest.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn of_unions(unions: &[Segments]) -> Result<Common, Error> {
    let members = try_collect(unions.len(), unions.iter().map(Segments::estimate))?;
    let estimate: f64 = members.iter().enumerate().skip(1).map(|(marks, members)| sign(marks) * members).sum();
    let smallest = members.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
    let variance = variance(unions, members)?;
    Ok(Common { estimate: estimate.clamp(0.0, smallest), variance })
}

/// The sign of a union in the alternating sum: plus for an odd number of sets, minus for an even number.
fn sign(marks: usize) -> f64 {
    if marks.count_ones() % 2 == 1 { 1.0 } else { -1.0 }
}

/// The variance of the estimated size of the intersection, which is the signed sum of the sizes of `unions`. `members`
/// has the estimated size of each union.
fn variance(unions: &[Segments], mut members: Vec<f64>) -> Result<f64, Error> {
    let all = unions.len() - 1;
    let in_all = sets_near(&mut members);
    let information = unions.iter().zip(&members).map(|(union, &members)| union.information(members));
    let information = try_collect(unions.len(), information)?;

    let (mut chances, mut moves) = (try_with_capacity(unions.len())?, try_with_capacity(unions.len())?);
    let (segments, mut variance) = (unions[0].as_slice(), 0.0);
    let mut last = segments.last().map_or(0.0, |last| last.share);
    // For each union, the probabilities that a slot of a segment is free, and that it is marked. The last segment is
    // first.
    let mut of_slot = try_collect(unions.len(), members.iter().map(|n| estimate::chances(last * n)))?;
    for slots in segments.iter().rev() {
        if slots.share > last {
            last = slots.share;
            of_slot.iter_mut().for_each(|chances| *chances = doubled(*chances));
        }
        chances.clear();
        chances.extend(of_slot.iter().rev().map(|(free, _)| free));
        add_subsets(&mut chances, -1.0);
        // For each union, `moves` has by how much one more free slot in the union's bitmap lowers the estimated size of
        // the intersection. `mean` is the average by which a slot of the segment lowers this size.
        moves.clear();
        moves.push(0.0);
        moves.extend((1..=all).map(|marks| sign(marks) * slots.share / (of_slot[marks].1 * information[marks])));
        let mean: f64 = (1..=all).map(|marks| moves[marks] * of_slot[marks].0).sum();
        add_subsets(&mut moves, 1.0);
        let squares = chances.iter().enumerate().map(|(taken, chance)| {
            let moved = moves[all ^ taken] - mean;
            chance.max(0.0) * moved * moved
        });
        variance += slots.slots * squares.sum::<f64>();
    }
    Ok(if variance.is_nan() { f64::INFINITY } else { (variance - in_all).max(0.0) })
}

/// Adjusts the estimated sizes of unions, so that sets with such unions can exist. Returns the number of members that
/// all sets share.
///
/// A region is all members that are in certain sets and in no others, as in a Venn diagram. Because the sizes of the
/// unions have errors, the number of members that they give for a region may be negative; it is then set to 0. The
/// positive numbers of similar regions are then scaled down, so that the sum stays the same. Regions are similar if
/// they belong to the same number of sets, and the smallest of these sets is the same.
fn sets_near(unions: &mut [f64]) -> f64 {
    let all = unions.len() - 1;
    let total = unions[all];
    // Bit `i` of an index stands for set `i`. After `reverse`, each index has the union of the sets whose bit is 0. All
    // members minus this union are the members that are only in sets whose bit is 1.
    unions.reverse();
    unions.iter_mut().for_each(|members| *members = total - *members);
    add_subsets(unions, -1.0);

    let group = |marks: usize| (marks.trailing_zeros() as usize, marks.count_ones() as usize);
    let mut sums = [[(0.0, 0.0); MAX_INTERSECTED + 1]; MAX_INTERSECTED];
    for (marks, members) in unions.iter().enumerate().skip(1) {
        let (smallest, sets) = group(marks);
        let (sum, positive) = &mut sums[smallest][sets];
        *sum += members;
        *positive += members.max(0.0);
    }
    for (marks, members) in unions.iter_mut().enumerate().skip(1) {
        let (smallest, sets) = group(marks);
        let (sum, positive) = sums[smallest][sets];
        *members = if *members > 0.0 && sum > 0.0 { *members * (sum / positive) } else { 0.0 };
    }

    let in_all = unions[all];
    add_subsets(unions, 1.0);
    let total = unions[all];
    unions.iter_mut().for_each(|members| *members = (total - *members).max(NONE));
    unions.reverse();
    in_all
}

/// An index selects sets: bit `n` stands for set `n`. Adds to the number at each index the numbers for all smaller
/// selections of the same sets. With `factor` -1 instead of 1, it undoes this.
fn add_subsets(numbers: &mut [f64], factor: f64) {
    for set in 0..numbers.len().trailing_zeros() {
        for marks in (0..numbers.len()).filter(|marks| marks >> set & 1 == 1) {
            numbers[marks] += factor * numbers[marks ^ 1 << set];
        }
    }
}
