//! Counters and the segments of their bitmaps. Only this file knows the layout of a counter.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::{Layout, SegmentCounts, Segments, standard_error};
use rollcall_core::unstable::hash64;
use rollcall_core::window::Time;

use crate::random::Random;

/// A kind of counter, with parameters and the layout that follows from them.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The parameters that a user asks for.
    pub params: Params,
    layout: Layout,
}

/// Number of members that are added at a time.
const BATCH: u64 = 1024;

impl Kind {
    /// A kind with this error rate. It is exact up to 250 members, as by default.
    pub fn new(error_rate: f64) -> Kind {
        let params = Params { error_rate, ..Params::default() };
        Kind { params, layout: Layout::for_error(error_rate).expect("an error rate in its range") }
    }

    /// Nine bits of a hash of the parameters, so that different kinds nearly always use different trials.
    pub fn number(&self) -> u64 {
        hash64(self.params.error_rate.to_string().as_bytes(), 0) >> 55
    }

    /// An empty counter.
    pub fn counter(&self) -> Counter {
        Counter::new(self.params).expect("parameters in their ranges")
    }

    /// A counter with the members of a trial that have these numbers.
    pub fn filled(&self, trial: u64, numbers: std::ops::Range<u64>) -> Counter {
        let mut counter = self.counter();
        add(&mut counter, trial, numbers);
        counter
    }

    /// The relative standard error that is reported with a reply, which is a whole number, at this number of members.
    pub fn stated(&self, members: f64) -> f64 {
        self.deviation(members).hypot((1.0f64 / 12.0).sqrt()).max(0.5) / members
    }

    /// The standard error of the estimate before it is rounded, in members.
    pub fn deviation(&self, members: f64) -> f64 {
        standard_error(self.layout, members) * members
    }

    /// The mean number of members whose slot another member has taken.
    pub fn collisions(&self, members: u64) -> f64 {
        let members = members as f64;
        let taken = |segment| self.layout.slots() as f64 * -libm::expm1(-self.layout.share(segment) * members);
        members - (0..self.layout.num_segments()).map(taken).sum::<f64>()
    }

    /// The count of a counter with `members` simulated members that a perfect hash spreads. The number of members in
    /// each segment is drawn first, then the number of taken slots in the segment.
    pub fn simulated(&self, members: u64, random: &mut Random) -> u64 {
        let mut set = SegmentCounts::default();
        let (mut left, mut left_share) = (members, 1.0);
        for segment in 0..self.layout.num_segments() {
            let slots = self.layout.slots();
            let share = slots as f64 * self.layout.share(segment);
            // Shares are powers of two, so their differences are exact. The last segment gets all members that are
            // left.
            let here = if share >= left_share { left } else { random.binomial(left, share / left_share) };
            set.add(segment, random.occupied(slots, here));
            left -= here;
            left_share -= share;
        }
        Segments::new(self.layout, &set).estimate().round() as u64
    }
}

/// Adds the members of a trial that have these numbers, as eight bytes each. No other trial has equal members.
pub fn add(counter: &mut Counter, trial: u64, numbers: std::ops::Range<u64>) {
    let mut start = numbers.start;
    while start < numbers.end {
        let end = numbers.end.min(start + BATCH);
        let members: Vec<[u8; 8]> = (start..end).map(|number| (trial << 40 | number).to_le_bytes()).collect();
        counter
            .live(Time::Reached)
            .add_all(members.iter().map(|member| &member[..]), &Unlimited, |_| ())
            .expect("no limit");
        start = end;
    }
}
