//! Samples of values, kept in memory for a week. The last minutes have all samples; earlier times have fewer.

use std::collections::VecDeque;

/// One resolution of the history: the least number of seconds between two samples, and the number of samples kept.
struct Tier {
    step: u64,
    kept: usize,
}

/// The tiers, the finest one first. With a poll every 5 seconds, the tiers reach back 10 minutes, an hour, a day, and a
/// week.
///
/// Each step is a multiple of the one before it; otherwise a tier would have to wait longer than its own step. The
/// numbers of samples are powers of two because a queue allocates memory for powers of two.
const TIERS: [Tier; 4] = [
    Tier { step: 0, kept: 128 },
    Tier { step: 30, kept: 128 },
    Tier { step: 360, kept: 256 },
    Tier { step: 2520, kept: 256 },
];

/// The largest number of samples in a history.
#[cfg(test)]
const MOST: usize = 128 + 128 + 256 + 256;

/// The values at one moment. Unknown values are NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<const N: usize> {
    /// The time in Unix seconds.
    pub at: u64,
    /// Whether samples are missing between the previous sample and this sample.
    pub is_after_gap: bool,
    pub values: [f64; N],
}

/// Samples in order of time, bounded in number.
///
/// A sample that a full tier drops moves to the next tier. That tier keeps it if at least one step has passed since its
/// last sample, and otherwise discards it. So each curve has true values at the moments that remain.
#[derive(Debug, Clone)]
pub struct Ring<const N: usize> {
    tiers: [VecDeque<Sample<N>>; TIERS.len()],
    /// For each tier, whether samples are missing before the next sample that it keeps.
    gaps: [bool; TIERS.len()],
}

impl<const N: usize> Ring<N> {
    pub fn new() -> Self {
        Ring { tiers: std::array::from_fn(|_| VecDeque::new()), gaps: [false; TIERS.len()] }
    }

    /// Adds a sample. A time before the last sample means that the clock was set back, so the history starts again.
    pub fn push(&mut self, at: u64, values: [f64; N]) {
        if self.last().is_some_and(|last| at < last.at) {
            *self = Ring::new();
        }
        let mut moved = Sample { at, is_after_gap: false, values };
        for ((tier, samples), gap) in TIERS.iter().zip(&mut self.tiers).zip(&mut self.gaps) {
            moved.is_after_gap |= std::mem::take(gap);
            if samples.back().is_some_and(|last| moved.at < last.at + tier.step) {
                *gap = moved.is_after_gap;
                return;
            }
            let oldest = if samples.len() < tier.kept { None } else { samples.pop_front() };
            samples.push_back(moved);
            match oldest {
                Some(oldest) => moved = oldest,
                None => return,
            }
        }
    }

    /// Records a gap: from now until the next sample, values are unknown.
    pub fn interrupt(&mut self) {
        self.gaps[0] |= !self.tiers[0].is_empty();
    }

    /// The latest sample.
    pub fn last(&self) -> Option<&Sample<N>> {
        self.tiers[0].back()
    }

    /// The samples from `from` on, in order of time.
    pub fn since(&self, from: u64) -> impl Iterator<Item = &Sample<N>> {
        self.tiers.iter().rev().flatten().filter(move |sample| sample.at >= from)
    }
}

/// The number of points in a trend. Each point is written as one digit.
const TREND_DIGITS: u64 = 24;
/// The longest period that a trend covers, in seconds.
const TREND_SECONDS: u64 = 3600;

/// The shortest period, in seconds, from which growth is computed.
const LEAST_SECONDS: u64 = 30;

/// The first value of the samples over the last hour, or since the first sample if that is more recent.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The values as digits in base 36: `0` is the least value of the period, and `z` the largest.
    pub digits: String,
    pub growth: f64,
    pub seconds: u64,
}

/// The trend of the first value in `ring`; `None` while the samples cover too short a period.
pub fn trend<const N: usize>(ring: &Ring<N>) -> Option<Trend> {
    let to = ring.last()?.at;
    let seen: Vec<(u64, f64)> = ring
        .since(to.saturating_sub(TREND_SECONDS))
        .map(|sample| (sample.at, sample.values[0]))
        .filter(|(_, value)| value.is_finite())
        .collect();
    let (&(from, first), &(_, last)) = (seen.first()?, seen.last()?);
    let seconds = to - from;
    if seconds < LEAST_SECONDS {
        return None;
    }
    let least = seen.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let most = seen.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let digit = |step: u64| {
        let until = from + seconds * step / (TREND_DIGITS - 1);
        let after = seen.partition_point(|(at, _)| *at <= until);
        let value = seen[after.saturating_sub(1)].1;
        let share = if most > least { (value - least) / (most - least) } else { 0.5 };
        char::from_digit((share * 35.0).round() as u32, 36).unwrap_or('0')
    };
    Some(Trend { digits: (0..TREND_DIGITS).map(digit).collect(), growth: last - first, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times<const N: usize>(ring: &Ring<N>) -> Vec<u64> {
        ring.since(0).map(|sample| sample.at).collect()
    }

    #[test]
    fn a_week_fits_and_recent_samples_are_complete() {
        let mut ring = Ring::<1>::new();
        let end = 8 * 86_400;
        for at in (0..=end).step_by(5) {
            ring.push(at, [at as f64]);
            assert!(ring.since(0).count() <= MOST);
        }
        let kept = times(&ring);
        assert!(kept.is_sorted() && kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(kept.last(), Some(&end));
        // All samples of the last 10 minutes are kept. Older samples are at most one step of their tier apart.
        assert_eq!(ring.since(end - 127 * 5).count(), 128);
        for (age, step, finer) in [(600, 5, 0), (3600, 30, 5), (86_400, 360, 30), (7 * 86_400, 2520, 360)] {
            let stretch: Vec<u64> = ring.since(end - age).map(|sample| sample.at).collect();
            assert!(stretch[0] <= end - age + step, "{age}: {}", end - stretch[0]);
            // Where two tiers meet, samples may be further apart by one step of the finer tier.
            assert!(stretch.windows(2).all(|pair| pair[1] - pair[0] <= step + finer), "{age}");
        }
        assert!(ring.since(0).all(|sample| sample.values == [sample.at as f64] && !sample.is_after_gap));
    }

    #[test]
    fn samples_that_are_far_apart_are_all_kept() {
        let mut ring = Ring::<1>::new();
        (0..MOST as u64).for_each(|look| ring.push(look * 3600, [0.0]));
        assert_eq!(ring.since(0).count(), MOST);
        (MOST as u64..2000).for_each(|look| ring.push(look * 3600, [0.0]));
        assert_eq!(ring.since(0).count(), MOST);
    }

    #[test]
    fn a_gap_stays_when_its_sample_is_dropped() {
        let mut ring = Ring::<1>::new();
        ring.interrupt();
        for at in 0..200 {
            ring.push(at, [0.0]);
        }
        assert!(ring.since(0).all(|sample| !sample.is_after_gap), "nothing was seen before the first");
        ring.interrupt();
        ring.interrupt();
        for at in 1000..200_000 {
            ring.push(at, [0.0]);
            let gaps: Vec<u64> = ring.since(0).filter(|sample| sample.is_after_gap).map(|sample| sample.at).collect();
            // A gap does not show while the sample after it waits to move on to the next tier. Afterwards it shows
            // once.
            assert!(gaps.len() <= 1, "{gaps:?}");
            assert!(gaps.iter().all(|gap| (1000..1000 + 2520).contains(gap)), "{gaps:?}");
        }
        assert_eq!(ring.since(0).filter(|sample| sample.is_after_gap).count(), 1);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let mut ring = Ring::<2>::new();
        ring.push(1000, [1.0, f64::NAN]);
        ring.push(1000, [2.0, 3.0]);
        assert_eq!(times(&ring), [1000, 1000]);
        ring.push(500, [4.0, 5.0]);
        assert_eq!(times(&ring), [500]);
    }

    #[test]
    fn a_trend_is_the_last_hour() {
        let mut ring = Ring::<1>::new();
        assert_eq!(trend(&ring), None);
        ring.push(0, [900.0]);
        ring.push(29, [900.0]);
        assert_eq!(trend(&ring), None, "too short");
        for at in (30..=7200).step_by(30) {
            ring.push(at, [if at < 3600 { 900.0 } else { at as f64 }]);
        }
        let hour = trend(&ring).expect("a trend");
        assert_eq!((hour.growth, hour.seconds, hour.digits.len()), (3600.0, 3600, 24));
        assert!(hour.digits.starts_with('0') && hour.digits.ends_with('z') && hour.digits.chars().is_sorted());
        let mut flat = Ring::<1>::new();
        (0..10).for_each(|look| flat.push(look * 10, [if look == 4 { f64::NAN } else { 7.0 }]));
        let flat = trend(&flat).expect("a trend");
        assert_eq!((flat.growth, flat.seconds), (0.0, 90));
        assert!(flat.digits.chars().all(|digit| digit == 'i'), "{}", flat.digits);
    }
}
