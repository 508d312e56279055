//! The sizing of bitmaps: the layout that a new counter gets. Pure functions, with a cache of recent answers.
//!
//! The layout is the smallest one that keeps two bounds. Its standard error is at most 1.025 of the error rate up to
//! the capacity, and at most [`levels_out_at`] up to 10^10 members. Among layouts of equal bytes the one with more tail
//! bits is taken: more tail bits flatten the error for ever, so bytes stop growing with the capacity, at 1 MiB at most.
//! Then the precision is raised as far as that costs at most [`MOST_FOR_PRECISION`].
//!
//! The error does not simply grow with the number of members: it ripples where it levels out. So it is computed on a
//! grid of steps of 5 %, and at the capacity itself. The chosen precision and tail bits are stored with each counter
//! and sent when one is created, so nothing stored depends on the formulas here. The exception is the layout for the
//! default parameters, which must not change: a server need not send them.

use std::cell::Cell;

use crate::counting::estimate::standard_error;
use crate::counting::layout::{Layout, MAX_PRECISION, MAX_TAIL_BITS, MIN_PRECISION, MIN_TAIL_BITS};
use crate::error::{Error, Parameter};

/// The smallest number of members on the grid on which errors are computed: one more than the default exact limit.
const GRID_START: f64 = 251.0;
/// The ratio of neighbouring numbers of members on the grid.
const GRID_STEP: f64 = 1.05;
/// The most members for which an error is stated.
const GRID_END: f64 = 1e10;

/// The standard error that a counter may have up to its capacity, as a multiple of its error rate. Sizes are powers of
/// 2: with a factor of 1, some counters would take twice the bytes for two thirds of the error.
const MOST_OF_RATE: f64 = 1.025;

/// The bytes that a counter may take for more precision, as a multiple of the fewest bytes that suffice. With more
/// precision, counters of different capacities lose less by a merge: a default counter merged with a counter for a
/// million members has an error of 0.96 % at 50,000 members, not 1.79 %. Allocators usually round up by a similar
/// factor anyway.
const MOST_FOR_PRECISION: f64 = 17.0 / 16.0;

/// The largest standard error of a counter for `error_rate` past its capacity, up to 10^10 members.
pub fn levels_out_at(error_rate: f64) -> f64 {
    (2.1 * error_rate).max(0.021)
}

/// The number of points on the grid.
const GRID_LEN: usize = 359;
const GRID: [f64; GRID_LEN] = {
    let mut grid = [GRID_START; GRID_LEN];
    let mut at = 1;
    while at < GRID_LEN {
        grid[at] = grid[at - 1] * GRID_STEP;
        at += 1;
    }
    assert!(grid[GRID_LEN - 1] <= GRID_END && grid[GRID_LEN - 1] * GRID_STEP > GRID_END);
    grid
};

/// The layout of a counter that keeps `error_rate` up to `capacity` members. Recent answers are cached: most counters
/// have the default parameters, and computing a layout takes some 200 microseconds.
///
/// # Errors
/// [`Error::OutOfRange`] when no layout of at most 1 MiB keeps the error; never for an error rate of 0.001 or more.
pub fn layout(error_rate: f64, capacity: u64) -> Result<Layout, Error> {
    const KEPT_BITS: u32 = 3;
    type Kept = Cell<Option<(f64, u64, Layout)>>;
    thread_local! {
        static KEPT: [Kept; 1 << KEPT_BITS] = const { [const { Cell::new(None) }; 1 << KEPT_BITS] };
    }
    let mixed = (error_rate.to_bits() ^ capacity.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = (mixed >> (u64::BITS - KEPT_BITS)) as usize;
    KEPT.with(|kept| {
        if let Some((_, _, layout)) = kept[place].get().filter(|&(rate, of, _)| rate == error_rate && of == capacity) {
            return Ok(layout);
        }
        let layout = computed(error_rate, capacity)?;
        kept[place].set(Some((error_rate, capacity, layout)));
        Ok(layout)
    })
}

/// The result of [`layout`], computed without its cache.
fn computed(error_rate: f64, capacity: u64) -> Result<Layout, Error> {
    let pairs =
        (MIN_TAIL_BITS..=MAX_TAIL_BITS).flat_map(|c| (MIN_PRECISION.max(c + 1)..=MAX_PRECISION).map(move |p| (p, c)));
    let mut layouts: Vec<Layout> = pairs.filter_map(|(p, c)| Layout::new(p, c).ok()).collect();
    layouts.sort_unstable_by_key(|layout| (layout.num_bytes(), MAX_TAIL_BITS - layout.tail_bits()));
    let fitting = layouts.into_iter().find(|layout| keeps_to(*layout, error_rate, capacity));
    let expected = "one that a bitmap of 1 MiB reaches";
    let fewest = fitting.ok_or_else(|| Error::out_of_range(Parameter::ErrorRate, expected, error_rate))?;
    let finer = (fewest.precision()..=MAX_PRECISION).map_while(|p| Layout::new(p, fewest.tail_bits()).ok());
    let most = fewest.num_bytes() as f64 * MOST_FOR_PRECISION;
    // A finer bitmap folds to this one, so its error is nowhere larger.
    Ok(finer.take_while(|layout| layout.num_bytes() as f64 <= most).last().unwrap_or(fewest))
}

/// Whether the standard error of a counter with this layout is small enough: about `error_rate` up to `capacity`
/// members, and [`levels_out_at`] beyond.
fn keeps_to(layout: Layout, error_rate: f64, capacity: u64) -> bool {
    let capacity = capacity as f64;
    let keeps = |n: f64| {
        let most = if n <= capacity { MOST_OF_RATE * error_rate } else { levels_out_at(error_rate) };
        standard_error(layout, n) <= most
    };
    // The points at which most layouts fail come first.
    keeps(capacity) && keeps(GRID_END) && GRID.into_iter().rev().all(keeps)
}

/// The largest standard error of a counter with this layout up to `capacity` members, on the grid and at `capacity`.
pub fn largest_error(layout: Layout, capacity: u64) -> f64 {
    let capacity = capacity as f64;
    let up_to = GRID.into_iter().take_while(|&n| n < capacity).chain([capacity]);
    up_to.map(|n| standard_error(layout, n)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a layout: bytes, precision and tail bits.
    type Size = (u64, u32, u32);

    fn size(error_rate: f64, capacity: u64) -> Size {
        let layout = layout(error_rate, capacity).unwrap();
        (layout.num_bytes(), layout.precision(), layout.tail_bits())
    }

    const CAPACITIES: [u64; 9] =
        [1_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

    #[rustfmt::skip]
    const TABLE: [(f64, [Size; 9]); 6] = [
        (0.05, [(896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8), (896, 10, 8)]),
        (0.02, [(992, 11, 8), (1_216, 12, 8), (2_688, 14, 8), (3_328, 12, 10), (3_328, 12, 10), (3_328, 12, 10), (3_328, 12, 10), (3_328, 12, 10), (6_400, 13, 11)]),
        (0.01, [(3_712, 13, 10), (3_712, 13, 10), (4_608, 14, 10), (6_528, 15, 10), (12_288, 14, 12), (12_288, 14, 12), (12_288, 14, 12), (12_288, 14, 12), (23_552, 15, 13)]),
        (0.005, [(6_528, 15, 10), (6_528, 15, 10), (6_528, 15, 10), (10_496, 16, 10), (34_816, 18, 10), (45_056, 16, 14), (45_056, 16, 14), (45_056, 16, 14), (86_016, 17, 15)]),
        (0.002, [(18_560, 17, 10), (18_560, 17, 10), (33_792, 17, 13), (34_816, 18, 10), (67_456, 19, 10), (263_808, 21, 10), (311_296, 19, 17), (311_296, 19, 17), (311_296, 19, 17)]),
        (0.001, [(67_456, 19, 10), (67_456, 19, 10), (67_456, 19, 10), (67_456, 19, 10), (132_864, 20, 10), (525_824, 22, 10), (1_048_576, 20, 19), (1_048_576, 20, 19), (1_048_576, 20, 19)]),
    ];

    #[test]
    fn sizes_are_pinned() {
        // The expected sizes are from a separate program.
        for (error_rate, sizes) in TABLE {
            assert_eq!(CAPACITIES.map(|capacity| size(error_rate, capacity)), sizes, "{error_rate}");
        }
    }

    #[test]
    fn the_ends_of_the_ranges_have_a_size() {
        assert_eq!(size(0.25, 1), (896, 10, 8));
        assert_eq!(size(0.25, 10_000_000_000), (896, 10, 8));
        assert_eq!(size(0.001, 1), (67_456, 19, 10));
        // No capacity needs more bytes than 10^10 members do.
        let most =
            (0..=332u32).map(|step| size(0.001, (libm::exp2(f64::from(step) / 10.0) as u64).min(10_000_000_000)));
        assert_eq!(most.max(), Some((1 << 20, 20, 19)));
    }

    #[test]
    fn errors_are_kept_to_between_the_steps_of_the_grid() {
        // Ripples are wider than a step: ten points per step find no larger error, except for rounding of the last
        // digits.
        for (error_rate, sizes) in TABLE {
            for (capacity, (_, precision, tail_bits)) in CAPACITIES.into_iter().zip(sizes) {
                let layout = Layout::new(precision, tail_bits).unwrap();
                let mut n = GRID_START;
                while n <= GRID_END {
                    let most = if n <= capacity as f64 { MOST_OF_RATE * error_rate } else { levels_out_at(error_rate) };
                    let error = standard_error(layout, n);
                    assert!(error <= most * 1.002, "{layout:?}: {error} at {n}, sized for {error_rate} to {capacity}");
                    n *= 1.005;
                }
            }
        }
    }

    #[test]
    fn smaller_layouts_do_not_keep_to_the_error() {
        for (error_rate, sizes) in TABLE {
            for (capacity, (bytes, precision, tail_bits)) in CAPACITIES.into_iter().zip(sizes) {
                // The layout of fewest bytes with these tail bits that keeps the error has at most a sixteenth fewer
                // bytes.
                let of_tail = (MIN_PRECISION..=precision).filter_map(|p| Layout::new(p, tail_bits).ok());
                let fewest =
                    of_tail.filter(|layout| keeps_to(*layout, error_rate, capacity)).map(|layout| layout.num_bytes());
                let fewest = fewest.min().unwrap();
                assert!(fewest <= bytes && 16 * bytes <= 17 * fewest, "{fewest}");
                let finer = Layout::new(precision + 1, tail_bits);
                assert!(!finer.is_ok_and(|finer| 16 * finer.num_bytes() <= 17 * fewest));
                for c in MIN_TAIL_BITS..=MAX_TAIL_BITS {
                    for other in (c + 1..=MAX_PRECISION).filter_map(|p| Layout::new(p, c).ok()) {
                        let is_better = other.num_bytes() < fewest || (other.num_bytes() == fewest && c > tail_bits);
                        assert!(!is_better || !keeps_to(other, error_rate, capacity), "{other:?} for {error_rate}");
                    }
                }
            }
        }
    }

    #[test]
    fn of_equal_bytes_more_tail_bits_are_taken() {
        // Each case has an error rate and a capacity for which two layouts share the fewest bytes, as a separate
        // program found.
        for (error_rate, capacity, bytes, pairs) in
            [(0.019_18, 41_500, 3_328, [(14, 9), (12, 10)]), (0.002_44, 6_000_000, 188_416, [(20, 15), (19, 16)])]
        {
            for (precision, tail_bits) in pairs {
                let layout = Layout::new(precision, tail_bits).unwrap();
                assert!(layout.num_bytes() == bytes && keeps_to(layout, error_rate, capacity), "{layout:?}");
            }
            let (precision, tail_bits) = pairs[1];
            assert_eq!(size(error_rate, capacity), (bytes, precision, tail_bits));
        }
    }

    /// With 256 slots in a segment, the standard error is not monotonic: it varies by some ten-thousandths of its
    /// value.
    #[test]
    fn errors_before_the_capacity_matter_too() {
        let (layout, capacity) = (Layout::new(9, 8).unwrap(), 71_787_271);
        let at_capacity = standard_error(layout, capacity as f64);
        let grid = std::iter::successors(Some(251.0), |n| Some(n * 1.05)).take_while(|&n| n < capacity as f64);
        let most = grid.map(|n| standard_error(layout, n)).max_by(f64::total_cmp).unwrap();
        assert!(at_capacity < 0.040_571 && most > 0.040_571, "{at_capacity} {most}");
        assert!((largest_error(layout, capacity) / most - 1.0).abs() < 1e-12);
        let [below, above] = [0.040_571, 0.040_573].map(|error| error / MOST_OF_RATE);
        assert!(!keeps_to(layout, below, capacity) && keeps_to(layout, above, capacity));
        // Below the grid only the capacity itself is a point.
        assert_eq!(largest_error(layout, 100), standard_error(layout, 100.0));
        assert!(!keeps_to(Layout::new(11, 10).unwrap(), 0.005, 250));
    }

    #[test]
    fn a_folded_pair_has_its_own_error() {
        // Two counters of 2 %, of (14, 8) and (12, 10), make one of (12, 8).
        let [one, other] = [50_000, 1_000_000].map(|capacity| layout(0.02, capacity).unwrap());
        let common = one.common(other);
        assert_eq!((common.precision(), common.tail_bits()), (12, 8));
        assert_eq!(format!("{:.3}", largest_error(common, 50_000)), "0.040");
        assert!(largest_error(one, 50_000) <= 0.02 && largest_error(other, 1_000_000) <= 0.0205);
        // A counter with the default capacity loses nothing by a merge with one for a million members.
        let [one, other] = [50_000, 1_000_000].map(|capacity| layout(0.01, capacity).unwrap());
        assert_eq!(one.common(other), one);
    }

    #[test]
    fn what_is_kept_is_what_was_worked_out() {
        for round in 0..2 {
            for (error_rate, sizes) in TABLE {
                assert_eq!(size(error_rate, 50_000), sizes[2], "round {round}");
            }
        }
    }

    #[test]
    fn unreachable_error_is_rejected() {
        for error_rate in [0.0, -1.0, f64::NAN, 1e-5] {
            let rejected = layout(error_rate, 1000);
            assert!(matches!(rejected, Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
        }
    }
}
