//! Intersections of any number of sets by inclusion and exclusion: estimates of all unions, each with its sign.
//!
//! The slots of one share of the hash space are alike and, with members taken as Poisson, independent. A slot moves the
//! sum by what it moves each union, and that depends on which sets have taken it. So the variance is a sum of squares
//! over those patterns; that the number of members is known takes it off again, as in [`estimate`](crate::counting::estimate).
//!
//! Each union errs for itself, so the estimates may be those of no sets at all, and the sum of 255 of them with their signs
//! would make next to any variance of that. So it is that of sets which are near ([`sets_near`]).

use crate::counting::estimate::Segments;
use crate::error::Error;
use crate::size_limit::try_with_capacity;

/// The most estimating counters in an intersection; exact ones count as one together. Each one more doubles the number
/// of unions: 255 at 8.
pub(super) const MAX_INTERSECTED: usize = 8;

/// The number of members that all sets share, as some bitmaps estimate it, with its variance; infinite where they say
/// nothing.
pub(super) struct Common {
    pub(super) estimate: f64,
    pub(super) variance: f64,
}

/// A number of members that represents zero: of 0 the information is infinite.
const NONE: f64 = 1e-9;

/// Estimates the number of members that all sets share from all unions. Unions are indexed by the marks of their sets:
/// the empty union is first, and the smallest set has the first mark.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn of_unions(unions: &[Segments]) -> Result<Common, Error> {
    let mut members = try_with_capacity(unions.len())?;
    members.extend(unions.iter().map(Segments::estimate));
    let estimate: f64 = members.iter().enumerate().skip(1).map(|(marks, members)| sign(marks) * members).sum();
    let smallest = members.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
    let variance = variance(unions, members)?;
    Ok(Common { estimate: estimate.clamp(0.0, smallest), variance })
}

/// The sign of a union: plus for an odd number of sets, minus for an even one.
fn sign(marks: usize) -> f64 {
    if marks.count_ones() % 2 == 1 { 1.0 } else { -1.0 }
}

/// The variance of the signed sum of these unions, with `n` members each.
fn variance(unions: &[Segments], mut members: Vec<f64>) -> Result<f64, Error> {
    let all = unions.len() - 1;
    let in_all = sets_near(&mut members);
    let mut information = try_with_capacity(unions.len())?;
    information.extend(unions.iter().zip(&members).map(|(union, &members)| union.information(members)));

    let (mut chances, mut moves) = (try_with_capacity(unions.len())?, try_with_capacity(unions.len())?);
    let mut variance = 0.0;
    for slots in unions[0].as_slice() {
        let free = |marks: usize| libm::exp(-slots.share * members[marks]);
        chances.clear();
        chances.extend((0..=all).map(|marks| free(all ^ marks)));
        subtract_subsets(&mut chances);
        // The decrease of a union's estimate with a free slot, and its average decrease.
        moves.clear();
        moves.push(0.0);
        moves.extend((1..=all).map(|marks| {
            let taken = -libm::expm1(-slots.share * members[marks]);
            sign(marks) * slots.share / (taken * information[marks])
        }));
        let mean: f64 = (1..=all).map(|marks| moves[marks] * free(marks)).sum();
        add_subsets(&mut moves);
        let squares = chances.iter().enumerate().map(|(taken, chance)| {
            let moved = moves[all ^ taken] - mean;
            chance.max(0.0) * moved * moved
        });
        variance += slots.slots * squares.sum::<f64>();
    }
    // Not a number where a union has no slot free that would say anything.
    Ok(if variance.is_nan() { f64::INFINITY } else { (variance - in_all).max(0.0) })
}

/// Adjusts the sizes of unions to the nearest ones that sets can have, and returns the number of members that all
/// share.
///
/// Of how many members just some sets have, numbers below 0 come out as well as above, where there are none. Without the
/// one half of these there would be too many members in several sets, and too large a variance. So the rest is made less,
/// until there are as many as before in all of those that are in as many sets, and of which one set is the smallest: what
/// a small set has is known better than what others have.
fn sets_near(unions: &mut [f64]) -> f64 {
    let all = unions.len() - 1;
    let total = unions[all];
    // Members that only one set has: all except those of the union of the others.
    unions.reverse();
    unions.iter_mut().for_each(|members| *members = total - *members);
    subtract_subsets(unions);

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
    add_subsets(unions);
    let total = unions[all];
    unions.iter_mut().for_each(|members| *members = (total - *members).max(NONE));
    unions.reverse();
    in_all
}

/// Replaces each number by the sum of the numbers of its subsets, itself included.
fn add_subsets(numbers: &mut [f64]) {
    for_each_subset(numbers, |number, subset| number + subset);
}

/// Undoes [`add_subsets`].
fn subtract_subsets(numbers: &mut [f64]) {
    for_each_subset(numbers, |number, subset| number - subset);
}

/// Joins each number, set by set, with that of the marks without the set.
fn for_each_subset(numbers: &mut [f64], join: impl Fn(f64, f64) -> f64) {
    for set in 0..numbers.len().trailing_zeros() {
        for marks in (0..numbers.len()).filter(|marks| marks >> set & 1 == 1) {
            numbers[marks] = join(numbers[marks], numbers[marks ^ 1 << set]);
        }
    }
}
