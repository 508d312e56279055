//! Estimates the number of members, with its standard error, from how many bits ("slots") are set in each segment of
//! the bitmap (`layout.rs`).
//!
//! One segment alone is linear counting (Whang and others, section 3; see [papers](crate::counting#papers)). Several
//! segments are combined by maximum likelihood (docs/formulas.md#estimate), under the assumption that the number of
//! members `n` has a Poisson distribution. Then the slots are independent, and a slot for the fraction `a` of all
//! hashes stays free with probability `exp(-a n)`.
//!
//! Exponentials and logarithms come from `libm`, not from the platform, because replies must be the same on every
//! machine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counting::layout::{Layout, MAX_SEGMENTS, SegmentCounts};

/// The largest estimate, `2^34 ln 2048`. A bitmap without a free slot would have no finite estimate, so it gets this
/// one. With this number of members, a bitmap with segments of 2^10 slots has one free slot on average.
pub(crate) const MAX_ESTIMATE: f64 = 130_989_956_760.0;

/// The largest number of steps of Newton's method. 3 or 4 steps are usual. Even bisection alone would need fewer steps
/// than this number.
const MAX_STEPS: usize = 64;

/// The estimated number of members of a counter, a union, a difference or an intersection, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// The estimated number of members; the exact number if all counters are exact.
    pub estimate: f64,
    /// The standard error of [`Self::count`], in members: 0 while all counters are exact, otherwise at least 0.5.
    pub standard_error: f64,
}

/// The standard error of a difference or an intersection is computed for `v + UNSEEN` members, where `v` is the number
/// of members whose bits no other member has set. If `v` has a Poisson distribution, its mean is within
/// `v ± 2 sqrt(v + UNSEEN)` with a probability of at least 91 %; if `UNSEEN` were 1, of 87 %.
const UNSEEN: f64 = 1.5;

/// An additional variance for differences and intersections, because their estimates rise in steps of more than 1. With
/// `UNEVEN`, the true number is within two standard errors with a probability of at least 88 %; without it, of 85 %.
pub(super) const UNEVEN: f64 = 0.25;

/// The part of the variance of a difference or an intersection that [`UNSEEN`] adds. `shown` is the probability that no
/// other member has set the bit of a member.
///
/// If no other member has set the bits of `v` members, the estimate is `v / shown`. Its variance is
/// `v (1 - shown) / shown^2`. The result is this variance with [`UNSEEN`] in place of `v`.
pub(super) fn unseen_variance(shown: f64) -> f64 {
    UNSEEN * (1.0 - shown) / (shown * shown)
}

/// The variance that rounding adds.
const ROUNDING: f64 = 1.0 / 12.0;

/// The standard error of a number after rounding; `error` is its standard error before. The result is at least a half,
/// so that two standard errors reach the next whole number.
pub(super) fn error_of_whole(error: f64) -> f64 {
    // `max` would ignore NaN and return 0.5.
    if error.is_nan() {
        return f64::INFINITY;
    }
    libm::sqrt(error * error + ROUNDING).max(0.5)
}

impl Estimated {
    pub(super) fn exact(members: usize) -> Self {
        Estimated { estimate: members as f64, standard_error: 0.0 }
    }

    /// `estimate` itself, not rounded, with the standard error of [`Self::count`], which is rounded. `variance` is the
    /// variance of `estimate`.
    pub(super) fn rounded(estimate: f64, variance: f64) -> Self {
        Estimated { estimate, standard_error: error_of_whole(libm::sqrt(variance)) }
    }

    /// The estimated number of members, rounded.
    pub fn count(&self) -> u64 {
        libm::round(self.estimate) as u64
    }

    /// The standard error divided by [`Self::count`]; 0 for a count of 0.
    ///
    /// ```
    /// use rollcall_core::counting::Estimated;
    ///
    /// assert_eq!(Estimated { estimate: 1000.4, standard_error: 5.0 }.relative_error(), 0.005);
    /// assert_eq!(Estimated { estimate: 0.4, standard_error: 5.0 }.relative_error(), 0.0);
    /// ```
    pub fn relative_error(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.standard_error / self.count() as f64 }
    }
}

/// The probabilities that a slot of the bitmap stays free, and that it is marked, if it gets `mean` members on average.
pub(super) fn chances(mean: f64) -> (f64, f64) {
    (libm::exp(-mean), -libm::expm1(-mean))
}

/// Converts the result of [`chances`] to that for twice the `mean`. A slot gets twice as many members as a slot of the
/// next segment, so one call of `chances` serves all segments.
pub(super) fn doubled((free, taken): (f64, f64)) -> (f64, f64) {
    let taken = taken * (2.0 - taken);
    // If `taken` is near 1, `1.0 - taken` would lose digits.
    (if taken < 0.5 { 1.0 - taken } else { free * free }, taken)
}

/// One segment of the bitmap: how many slots (bits) it has, how many of them are free, and the share of members per
/// slot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Segment {
    /// The fraction of all hashes that each slot of the segment gets.
    pub share: f64,
    /// The number of slots.
    pub slots: f64,
    /// The number of free slots.
    pub zero: f64,
}

/// The segments of the bitmap of one counter.
#[derive(Debug, Clone, Copy)]
pub struct Segments {
    list: [Segment; MAX_SEGMENTS],
    len: usize,
}

impl Segments {
    /// Makes the segments from the number of set bits in each.
    pub fn new(layout: Layout, set: &SegmentCounts) -> Self {
        let mut list = [Segment::default(); MAX_SEGMENTS];
        let len = layout.num_segments();
        for (i, segment) in list.iter_mut().enumerate().take(len) {
            // All numbers are below 2^32, and a `u32` is converted to a double faster than a `u64`.
            let (slots, free) = (layout.slots() as u32, layout.slots().saturating_sub(set.get(i)) as u32);
            *segment = Segment { share: layout.share(i), slots: slots.into(), zero: free.into() };
        }
        Segments { list, len }
    }

    pub(super) fn as_slice(&self) -> &[Segment] {
        &self.list[..self.len]
    }

    /// The segments, from the last to the first, each with `exp(share n) - 1`.
    ///
    /// From the last segment to the first, [`share`](Segment::share) stays the same or doubles at each step. So a
    /// single exponential is computed, and then `exp(2t) - 1 = (exp(t) - 1) (exp(t) + 1)` is used.
    fn with_exp(&self, n: f64) -> impl Iterator<Item = (&Segment, f64)> {
        let last = self.as_slice().last().map_or(0.0, |last| last.share);
        let (mut share, mut exp_minus_1) = (last, libm::expm1(last * n));
        self.as_slice().iter().rev().map(move |s| {
            if s.share > share {
                (share, exp_minus_1) = (s.share, exp_minus_1 * (exp_minus_1 + 2.0));
            }
            (s, exp_minus_1)
        })
    }

    /// The fraction of all hashes that the free slots of the bitmap get together.
    pub fn free_share(&self) -> f64 {
        self.as_slice().iter().map(|s| s.share * s.zero).sum()
    }

    /// The maximum-likelihood number of members: 0 if all slots of the bitmap are free, and at most 1.3 * 10^11.
    ///
    /// The number is the `n` that solves this equation, with the sum over all segments and the fields of `Segment`:
    ///
    /// `sum share * ((slots - zero) / (exp(share n) - 1) - zero) = 0`.
    pub fn estimate(&self) -> f64 {
        // The search is for the root of S(n) = free, where S(n) = sum share * (slots - zero) / (exp(share n) - 1) and
        // free = sum share * zero, with the fields of `Segment`. S falls from infinity to 0, so there is a single root.
        // The logarithm of S is nearly a straight line in x = ln n, so Newton's method takes few steps. Every step
        // narrows a bracket around the root, so the search ends for any input.
        let free = self.free_share();
        if self.as_slice().iter().all(|s| s.zero >= s.slots) {
            return 0.0;
        }
        if free <= 0.0 {
            return MAX_ESTIMATE;
        }
        let ln_free = libm::log(free);
        let (mut low, mut high) = (libm::log(0.25), libm::log(MAX_ESTIMATE));
        let mut x = libm::log(self.first_guess()).clamp(low, high);
        let mut step = f64::INFINITY;
        for _ in 0..MAX_STEPS {
            let n = libm::exp(x);
            let (mut sum, mut slope) = (0.0, 0.0);
            for (s, exp_minus_1) in self.with_exp(n).filter(|(s, _)| s.zero < s.slots) {
                let t = s.share * n;
                let odds = 1.0 / exp_minus_1;
                let term = s.share * (s.slots - s.zero) * odds;
                sum += term;
                slope -= term * t * (1.0 + odds);
            }
            let excess = libm::log(sum) - ln_free;
            if excess > 0.0 {
                low = x;
            } else {
                high = x;
            }
            let mut next = x - excess * sum / slope;
            // The bracket is bisected if Newton's step leaves it or is not a number (`sum` may have underflowed to 0).
            // It is also bisected if the step is more than half as long as the previous step. Otherwise the steps could
            // alternate around the root for ever.
            if !(low..=high).contains(&next) || (next - x).abs() > step / 2.0 {
                next = (low + high) / 2.0;
            }
            step = (next - x).abs();
            x = next;
            if step < 1e-9 {
                break;
            }
        }
        libm::exp(x).min(MAX_ESTIMATE)
    }

    /// A first estimate, by linear counting in the first segment of the bitmap in which at least a tenth of the slots
    /// is free.
    fn first_guess(&self) -> f64 {
        let taken: f64 = self.as_slice().iter().map(|s| s.slots - s.zero).sum();
        self.as_slice()
            .iter()
            .find(|s| s.zero >= 0.1 * s.slots && s.zero < s.slots)
            .map_or(taken, |s| -libm::log(s.zero / s.slots) / s.share)
    }

    /// `estimate` with its standard error, which is 0 for an `estimate` of 0.
    pub(super) fn reported(&self, estimate: f64) -> Estimated {
        if estimate <= 0.0 {
            return Estimated::exact(0);
        }
        let error = self.standard_error(estimate);
        Estimated::rounded(estimate, error * error)
    }

    /// The maximum-likelihood number of members, with its standard error.
    pub(super) fn estimated(&self) -> Estimated {
        self.reported(self.estimate())
    }

    /// The Fisher information about `n`, the mean of a Poisson number of members. Summed over all segments, it is
    /// `sum slots share^2 / (exp(share n) - 1)`.
    pub(super) fn information(&self, n: f64) -> f64 {
        self.with_exp(n).map(|(s, exp_minus_1)| s.slots * s.share * s.share / exp_minus_1).sum()
    }

    /// The standard error, in members, of [`Self::estimate`] for `n` members. It is infinite for numbers far above
    /// 1.3 * 10^11.
    ///
    /// It is `sqrt(1/I - n)`, where `I` is the Fisher information. For a random number of members, with a Poisson
    /// distribution of mean `n`, the variance would be `1/I`. The true number is fixed, so `n`, the variance of the
    /// random number, is subtracted.
    pub fn standard_error(&self, n: f64) -> f64 {
        if n <= 0.0 {
            return 0.0;
        }
        // The square of the standard error, 1/I - n, is (1 - n I) / I, where I is the Fisher information. 1 and n I are
        // nearly equal, so a subtraction would lose every digit. Their difference is the sum of these terms: the
        // fraction of all hashes that fall in no segment of `self`, and for each segment
        // `slots * share * (1 - t / (exp(t) - 1))`, where t is `share * n`.
        let (mut information, mut shared, mut hidden) = (0.0, 0.0, 0.0);
        for (s, exp_minus_1) in self.with_exp(n) {
            let t = s.share * n;
            information += s.slots * s.share * s.share / exp_minus_1;
            shared += s.slots * s.share;
            hidden += s.slots * s.share * if t < 1e-5 { t / 2.0 - t * t / 12.0 } else { 1.0 - t / exp_minus_1 };
        }
        if information <= 0.0 {
            return f64::INFINITY;
        }
        libm::sqrt(((1.0 - shared).max(0.0) + hidden) / information)
    }
}

/// The standard error of a counter with this layout and `n` members, divided by `n`; 0 if `n` is 0.
pub fn standard_error(layout: Layout, n: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    Segments::new(layout, &SegmentCounts::default()).standard_error(n) / n
}

/// A cached estimate. Threads that compute it at the same time get the same number, so no memory order is needed.
#[derive(Debug)]
pub(super) struct KeptEstimate(AtomicU64);

impl KeptEstimate {
    /// The value for "not computed yet". An estimate is never NaN.
    const NONE: f64 = f64::NAN;

    pub(super) const fn none() -> Self {
        KeptEstimate(AtomicU64::new(Self::NONE.to_bits()))
    }

    pub(super) fn get_or(&self, work_out: impl FnOnce() -> f64) -> f64 {
        let kept = f64::from_bits(self.0.load(Ordering::Relaxed));
        if !kept.is_nan() {
            return kept;
        }
        let estimate = work_out();
        self.0.store(estimate.to_bits(), Ordering::Relaxed);
        estimate
    }

    pub(super) fn clear(&mut self) {
        *self.0.get_mut() = Self::NONE.to_bits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::layout::{LARGEST_ERRORS, MAX_SEGMENT_BITS, MIN_SEGMENT_BITS};
    use proptest::prelude::*;

    fn layouts() -> impl Iterator<Item = Layout> {
        (MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS).map(Layout::new)
    }

    /// The table from which layouts are chosen has the largest error of each layout. These errors equal the theoretical
    /// ones.
    #[test]
    fn half_a_member_is_the_least_error() {
        assert_eq!([0.1, 0.4].map(error_of_whole), [0.5, 0.5]);
        assert!(error_of_whole(0.5) > 0.57 && error_of_whole(0.5) < 0.58);
        assert!(error_of_whole(100.0) < 100.001);
        assert_eq!(error_of_whole(f64::NAN), f64::INFINITY);
    }

    #[test]
    fn the_largest_error_of_each_layout_is_in_the_table() {
        for (layout, stated) in layouts().zip(LARGEST_ERRORS) {
            let members =
                std::iter::successors(Some(251.0), |n| Some(n * 1.02)).take_while(|&n| n < 1e10).chain([1e10]);
            let largest = members.map(|n| standard_error(layout, n)).fold(0.0, f64::max);
            let digits = libm::pow(10.0, libm::ceil(-libm::log10(largest)) + 3.0);
            assert_eq!(libm::ceil(largest * digits) / digits, stated, "{layout:?}: {largest}");
        }
    }

    #[test]
    fn standard_errors_are_as_documented() {
        // Each row has a number of members, and the relative errors in percent for segments of 2^8, 2^10, 2^12, 2^14
        // and 2^16 slots.
        let table = [
            (1e3, ["3.03", "1.34", "0.65", "0.32", "0.16"]),
            (5e4, ["4.03", "1.98", "0.91", "0.37", "0.17"]),
            (1e6, ["4.06", "2.03", "1.01", "0.50", "0.23"]),
            (1e9, ["4.06", "2.03", "1.01", "0.51", "0.25"]),
            (1e10, ["4.14", "2.07", "1.04", "0.52", "0.26"]),
        ];
        for (n, errors) in table {
            let found = [8, 10, 12, 14, 16].map(|c| format!("{:.2}", 100.0 * standard_error(Layout::new(c), n)));
            assert_eq!(found, errors, "{n} members");
        }
    }

    #[test]
    fn folding_never_lowers_the_error() {
        for (coarser, layout) in layouts().zip(layouts().skip(1)) {
            for n in (0..=66).map(|step| libm::exp2(f64::from(step) / 2.0)) {
                let errors = [coarser, layout].map(|layout| standard_error(layout, n));
                assert!(errors[0] >= errors[1] * (1.0 - 1e-9), "{layout:?} to {coarser:?} at {n}: {errors:?}");
            }
        }
    }

    /// An empty bitmap in which all slots get the same part of the hash space.
    fn one_segment(share: f64, slots: f64) -> Segments {
        Segments { list: [Segment { share, slots, zero: slots }; MAX_SEGMENTS], len: 1 }
    }

    #[test]
    fn standard_errors_of_few_members_have_all_their_digits() {
        // This is the formula of Whang et al. again, m (e^t - t - 1), by the series of e^t. Computing the difference
        // would lose most digits.
        let slots = 2f64.powi(34);
        for n in [1.37, 1000.0, 150_000.0, 1e6] {
            let t = n / slots;
            let variance = slots * t * t * (1.0 / 2.0 + t / 6.0 + t * t / 24.0 + t * t * t / 120.0);
            let found = one_segment(1.0 / slots, slots).standard_error(n);
            assert!((found / variance.sqrt() - 1.0).abs() < 1e-9, "{found} for {n}");
        }
    }

    #[test]
    fn standard_errors_on_a_part_of_the_hash_space_are_those_of_the_formula() {
        // This computes 1/I - n directly. Most members here have hashes outside all slots of the bitmap, so it is not a
        // difference of close numbers.
        for (share, slots, n) in [(1.0 / 1024.0, 256.0, 700.0), (1.0 / 4096.0, 1024.0, 90.0), (0.001, 300.0, 1.0)] {
            let information = slots * share * share / libm::expm1(share * n);
            let found = one_segment(share, slots).standard_error(n);
            assert!((found / libm::sqrt(1.0 / information - n) - 1.0).abs() < 1e-9, "{found} for {n}");
        }
    }

    /// The probability of each number of visible members, if each of `members` is visible with probability `shown`.
    fn binomial(members: u32, shown: f64) -> Vec<f64> {
        let mut chances = vec![1.0];
        for _ in 0..members {
            let but_last = chances.iter().copied().chain([0.0]).map(|chance| chance * (1.0 - shown));
            let but_first = std::iter::once(0.0).chain(chances.iter().copied()).map(|chance| chance * shown);
            chances = but_last.zip(but_first).map(|(not, with)| not + with).collect();
        }
        chances
    }

    /// The probability that the number `members` is within two standard errors of its estimate, if each member is
    /// visible with probability `shown`.
    fn covered(members: u32, shown: f64) -> f64 {
        let reported = |seen: usize| {
            let estimate = seen as f64 / shown;
            Estimated::rounded(estimate, estimate * (1.0 - shown) / shown + unseen_variance(shown) + UNEVEN)
        };
        let is_covered = |reported: Estimated| {
            f64::from(reported.count().abs_diff(members.into()) as u32) <= 2.0 * reported.standard_error
        };
        let chances = binomial(members, shown).into_iter().enumerate();
        chances.filter(|&(seen, _)| is_covered(reported(seen))).map(|(_, chance)| chance).sum()
    }

    #[test]
    fn two_errors_cover_any_number_of_members_that_show_themselves_by_chance() {
        for members in (0..24).chain([40, 80]) {
            for shown in (1..400).map(|step| f64::from(step) / 400.0).chain([0.999, 1.0]) {
                let covered = covered(members, shown);
                assert!(covered >= 0.88, "{members} of which {shown} show themselves: {covered}");
            }
        }
    }

    #[test]
    fn two_errors_cover_any_count() {
        // The number of members whose slot of the bitmap is already taken has a Poisson distribution. Its variance is
        // the variance of the estimate.
        for precision in [9, 11, 14, 17] {
            let slots = f64::from(1u32 << precision);
            let segments = one_segment(1.0 / slots, slots);
            for members in 1..3 * libm::sqrt(slots) as u32 {
                let n = f64::from(members);
                let collisions = slots * (libm::expm1(-n / slots) + n / slots);
                let (mut chance, mut covered) = (libm::exp(-collisions), 0.0);
                // The probability of more collisions is one in a million.
                for collided in 0..members.min((collisions + 5.0 * libm::sqrt(collisions)) as u32 + 10) {
                    let taken = f64::from(members - collided);
                    let reported = segments.reported(-slots * libm::log1p(-taken / slots));
                    let off = reported.count().abs_diff(members.into()) as f64;
                    covered += if off <= 2.0 * reported.standard_error { chance } else { 0.0 };
                    chance *= collisions / f64::from(collided + 1);
                }
                assert!(covered >= 0.88, "{members} in {slots} slots: {covered}");
            }
        }
    }

    #[test]
    fn errors_are_those_of_whole_numbers() {
        let reported = |estimate: f64, error: f64| Estimated::rounded(estimate, error * error).standard_error;
        assert_eq!([0.0, 0.1, 0.4].map(|error| reported(300.0, error)), [0.5; 3]);
        for error in [0.42, 1.0, 37.0] {
            assert!((reported(300.0, error).powi(2) - error * error - 1.0 / 12.0).abs() < 1e-9);
        }
        assert_eq!(reported(300.0, f64::INFINITY), f64::INFINITY);
        let segments = one_segment(1.0 / 1024.0, 1024.0);
        assert_eq!(segments.reported(0.0), Estimated::exact(0));
        assert_eq!(segments.reported(300.0).standard_error, error_of_whole(segments.standard_error(300.0)));
    }

    /// One exponential is computed, and squared from segment to segment. No digits are lost that matter.
    #[test]
    fn squares_replace_exponentials() {
        let close = |found: f64, exact: f64| (found / exact - 1.0).abs() < 1e-12 || !(1e-200..1e200).contains(&exact);
        for (layout, n) in layouts().flat_map(|layout| [1e-9, 1.0, 300.0, 1e6, 1e10, MAX_ESTIMATE].map(|n| (layout, n)))
        {
            let segments = Segments::new(layout, &SegmentCounts::default());
            let mut last = layout.share(layout.num_segments() - 1);
            let mut of_slot = chances(last * n);
            for (s, exp_minus_1) in segments.with_exp(n) {
                if s.share > last {
                    (last, of_slot) = (s.share, doubled(of_slot));
                }
                let found = [exp_minus_1, of_slot.0, of_slot.1];
                let exact = [libm::expm1(s.share * n), libm::exp(-s.share * n), -libm::expm1(-s.share * n)];
                assert!(found.into_iter().zip(exact).all(|(found, exact)| close(found, exact)), "{found:?}, {exact:?}");
            }
        }
    }

    #[test]
    fn empty_and_full_bitmaps_have_finite_estimates() {
        for layout in layouts() {
            assert_eq!(Segments::new(layout, &SegmentCounts::default()).estimate(), 0.0);
            let mut full = SegmentCounts::default();
            (0..layout.num_segments()).for_each(|segment| full.add(segment, layout.slots()));
            assert_eq!(Segments::new(layout, &full).estimate(), MAX_ESTIMATE);
            assert_eq!(Segments::new(layout, &full).free_share(), 0.0);
        }
        assert_eq!(standard_error(Layout::new(8), 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn estimate_of_any_counts_is_the_root(
            layout in (MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS).prop_map(Layout::new),
            fill in proptest::collection::vec(0.0f64..=1.0, MAX_SEGMENTS),
        ) {
            // No set of members leads to these numbers of set bits. Forged bitmaps may have them.
            let mut segments = Segments::new(layout, &SegmentCounts::default());
            for (segment, fill) in segments.list.iter_mut().zip(fill) {
                segment.zero = libm::floor(segment.slots * fill);
            }
            let estimate = segments.estimate();
            prop_assert!((0.0..=MAX_ESTIMATE).contains(&estimate));
            let excess = |n: f64| -> f64 {
                let term = |s: &Segment| s.share * ((s.slots - s.zero) / libm::expm1(s.share * n) - s.zero);
                segments.as_slice().iter().map(term).sum()
            };
            // The search ends at a distance from the root of at most 2 % of the smallest standard error (0.09 %).
            prop_assert!(excess(estimate * (1.0 - 1e-5)) >= 0.0 || estimate == 0.0);
            prop_assert!(excess(estimate * (1.0 + 1e-5)) <= 0.0 || estimate == MAX_ESTIMATE);
        }
    }
}
