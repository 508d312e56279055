//! Sizing, estimate and error of the tapered bitmap. Pure functions.
//!
//! One segment alone is linear counting: K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, "A linear-time
//! probabilistic counting algorithm for database applications", ACM TODS 15(2), 1990, section 3. Several
//! segments of different density are combined by maximum likelihood, with the members taken as Poisson:
//! then the slots are independent, a slot with share `a` of the hash space stays free with probability
//! `exp(-a n)`, and the likelihood of the free slots seen has a single maximum.
//!
//! Exponentials and logarithms are `libm`'s, not the platform's: the size of a stored bitmap follows from
//! them and must be the same on every machine.

use crate::counting::layout::{Layout, MAX_PRECISION, MAX_TAIL_SEGMENTS, MIN_PRECISION, SegmentCounts};
use crate::error::Error;

/// What is answered when every slot is taken, which no real set comes near: the estimate when half a
/// slot of a last segment were free, `2^34 ln 2048`.
pub const MAX_ESTIMATE: f64 = 130_989_903_151.0;

/// Newton steps at most; 3 or 4 are usual, and bisection alone would be done in fewer.
const MAX_STEPS: usize = 64;

/// Slots of equal share, as the estimate sees them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segment {
    /// Share of the hash space that each slot has.
    pub share: f64,
    /// Number of slots.
    pub slots: f64,
    /// How many of them are free.
    pub zero: f64,
}

/// The segments of one bitmap.
#[derive(Debug, Clone, Copy)]
pub struct Segments {
    list: [Segment; MAX_TAIL_SEGMENTS + 1],
    len: usize,
}

impl Segments {
    /// The segments of a bitmap of which `set` slots are taken.
    pub fn new(layout: Layout, set: &SegmentCounts) -> Self {
        Self::beyond(layout, &SegmentCounts::default(), set)
    }

    /// The segments as a set sees them that comes on top of another: the slots that `base` left free,
    /// and which of those are still free in `union`.
    pub fn beyond(layout: Layout, base: &SegmentCounts, union: &SegmentCounts) -> Self {
        let mut list = [Segment::default(); MAX_TAIL_SEGMENTS + 1];
        let len = layout.num_segments();
        for (i, segment) in list.iter_mut().enumerate().take(len) {
            let slots = layout.slots(i);
            *segment = Segment {
                share: layout.share(i),
                slots: slots.saturating_sub(base.get(i)) as f64,
                zero: slots.saturating_sub(union.get(i)) as f64,
            };
        }
        Segments { list, len }
    }

    fn as_slice(&self) -> &[Segment] {
        &self.list[..self.len]
    }

    /// The maximum-likelihood number of members: the `n` that solves
    /// `sum share * ((slots - zero) / (exp(share n) - 1) - zero) = 0`; 0 when no slot is taken, at most
    /// [`MAX_ESTIMATE`].
    pub fn estimate(&self) -> f64 {
        // The left sum S(n) falls from infinity to 0, so there is one root of S(n) = free, looked for as
        // the root of ln S - ln free over x = ln n, which is nearly a straight line. Newton's steps are kept
        // inside a bracket that every evaluation narrows; whatever the counts are, this ends.
        let free: f64 = self.as_slice().iter().map(|s| s.share * s.zero).sum();
        if self.as_slice().iter().all(|s| s.zero >= s.slots) {
            return 0.0;
        }
        if free <= 0.0 {
            return MAX_ESTIMATE;
        }
        let ln_free = libm::log(free);
        let (mut low, mut high) = (libm::log(0.25), libm::log(MAX_ESTIMATE));
        let mut x = libm::log(self.first_guess()).clamp(low, high);
        for _ in 0..MAX_STEPS {
            let n = libm::exp(x);
            let (mut sum, mut slope) = (0.0, 0.0);
            for s in self.as_slice().iter().filter(|s| s.zero < s.slots) {
                let t = s.share * n;
                let odds = 1.0 / libm::expm1(t);
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
            // Not a number when the sum underflowed: far right of the root.
            if !(low..=high).contains(&next) {
                next = (low + high) / 2.0;
            }
            let step = (next - x).abs();
            x = next;
            if step < 1e-9 {
                break;
            }
        }
        libm::exp(x).min(MAX_ESTIMATE)
    }

    /// Linear counting on the densest segment that has a tenth of its slots free.
    fn first_guess(&self) -> f64 {
        let taken: f64 = self.as_slice().iter().map(|s| s.slots - s.zero).sum();
        self.as_slice()
            .iter()
            .find(|s| s.zero >= 0.1 * s.slots && s.zero < s.slots)
            .map_or(taken, |s| -libm::log(s.zero / s.slots) / s.share)
    }

    /// The standard error of [`Self::estimate`], in members, when `n` members came to these segments:
    /// `sqrt(1/I - n)` with the Fisher information `I = sum slots share^2 / (exp(share n) - 1)`.
    /// The likelihood takes the number of members as Poisson, which adds a variance of `n`; it is
    /// known that there were `n`, so that comes off again. Infinite when no slot is left to show anything.
    pub fn standard_error(&self, n: f64) -> f64 {
        if n <= 0.0 {
            return 0.0;
        }
        // 1/I - n = (1 - n I) / I, and 1 - n I is summed term by term as what falls on none of these slots
        // plus slots * share * (1 - t / (exp(t) - 1)): the difference of two near numbers would lose every digit.
        let (mut information, mut shared, mut hidden) = (0.0, 0.0, 0.0);
        for s in self.as_slice() {
            let t = s.share * n;
            let exp_minus_1 = libm::expm1(t);
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

/// The relative standard error of a counter of this layout that holds `n` members; 0 for none.
pub fn standard_error(layout: Layout, n: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    Segments::new(layout, &SegmentCounts::default()).standard_error(n) / n
}

/// The smallest precision whose standard error is at most `error_rate` up to `capacity` members.
///
/// The error grows with the members (but for ripples of 0.001 % where it levels out at 2.03 %), so it
/// is looked at in `capacity` alone. Over the valid parameters the answer is at most 30.
///
/// # Errors
/// [`Error::OutOfRange`] when no precision will do.
pub fn precision(error_rate: f64, capacity: u64) -> Result<Layout, Error> {
    for precision in MIN_PRECISION..=MAX_PRECISION {
        let layout = Layout::new(precision)?;
        if standard_error(layout, capacity as f64) <= error_rate {
            return Ok(layout);
        }
    }
    Err(Error::out_of_range("error_rate", "one that a bitmap of 2^32 slots reaches", error_rate))
}
