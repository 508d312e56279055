//! The sizes and the error rates of filters in the cache-line layout.
//!
//! A filter is an array of lines of 512 bits. Each item selects `b` of them and sets `g` bits in each.
//!
//! **A change of any result here makes stored filters unreadable.** The platform's `exp` and `ln` may differ in the
//! last bit, so this file calls the crate `libm`. The order of operations must not change either.

use std::cell::Cell;

use super::super::bitmap::{LINE_BITS, LINE_BYTES};
use super::super::params::{Params, check_error_rate};
use super::load::{FullestLine, LineRate};
use crate::error::{Error, Parameter};

/// The inverse of the smallest false-positive rate that a line may have. For lower rates, one more line per item takes
/// less memory than more bits in each line. Part of the stored format.
const RAREST_LINE_ERROR: f64 = 200.0;

/// The factor by which the number of lines is raised. Without it, half of the filters would exceed their error rate at
/// capacity by chance. Part of the stored format.
const MARGIN: f64 = 1.005;

/// The fraction of a filter's error rate that its first sub-filter may have. Part of the stored format.
const FIRST_SHARE: f64 = 0.9;

/// The fraction of a filter's error rate that all sub-filters after the first may have together. Part of the stored
/// format.
const LATER_SHARE: f64 = 0.1;

/// Up to this error rate, a filter is full when its number of items reaches its capacity. A filter with a higher rate
/// mistakes many new items for known ones and does not count them, so its number of set bits decides too. Part of the
/// stored format.
const COUNT_SERVES_UP_TO: f64 = 0.02;

/// The shape of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The number of lines in which an item has bits (`b`).
    pub lines_per_item: u32,
    /// The number of bits that an item has in each of its lines (`g`), at most 7. Two of these bits may coincide.
    pub probes_per_line: u32,
    /// The number of lines (`L`), at least one.
    pub num_lines: u64,
}

impl Geometry {
    /// The number of bits in all lines. It does not overflow for a result of [`geometry`].
    ///
    /// ```
    /// # use rollcall_core::bloom::sizing;
    /// let geometry = sizing::geometry(0.01, 1_000_000)?;
    /// assert_eq!(geometry.num_bits(), geometry.num_lines * 512);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_bits(&self) -> u64 {
        self.num_lines * u64::from(LINE_BITS)
    }

    /// The number of bytes in all lines.
    ///
    /// ```
    /// # use rollcall_core::bloom::sizing;
    /// let geometry = sizing::geometry(0.01, 1_000_000)?;
    /// assert_eq!(geometry.num_bytes(), geometry.num_lines * 64);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_bytes(&self) -> u64 {
        self.num_lines * LINE_BYTES
    }
}

/// The smallest shape with a false-positive rate of at most `error_rate` for up to `capacity` items.
///
/// ```
/// # use rollcall_core::bloom::sizing;
/// // A million items at 1 %, in 1.2 MiB.
/// let geometry = sizing::geometry(0.01, 1_000_000)?;
/// assert!((1_200_000..1_300_000).contains(&geometry.num_bytes()));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for an `error_rate` outside (0, 1), for a `capacity` of 0, and if the filter would have 2^64
/// bits or more.
pub fn geometry(error_rate: f64, capacity: u64) -> Result<Geometry, Error> {
    check_error_rate(error_rate)?;
    Error::check_range(capacity != 0, Parameter::Capacity, "at least 1", capacity)?;
    let (lines_per_item, FullestLine { probes: probes_per_line, load }) = rated_shape(error_rate);
    let bits_per_item = f64::from(LINE_BITS) * f64::from(lines_per_item) / load;
    let num_lines = libm::ceil(MARGIN * capacity as f64 * bits_per_item / f64::from(LINE_BITS));
    // A line has 2^9 bits, so fewer than 2^55 lines have fewer than 2^64 bits.
    let is_within = (1.0..(1u64 << 55) as f64).contains(&num_lines);
    let expected = "of an addressable size at this error rate";
    Error::check_range(is_within, Parameter::Capacity, expected, capacity)?;
    Ok(Geometry { lines_per_item, probes_per_line, num_lines: num_lines as u64 })
}

/// The number of set bits at which a filter with this error rate is full; `None` if the number of items alone decides,
/// as it does at rates up to 0.02.
///
/// A filter with a high rate mistakes many new items for known ones, and does not count them. At a rate of 0.5, a
/// filter with as many counted items as its capacity would report 69 % of absent items as present. The set bits show
/// how many items the filter really holds.
///
/// The result is the expected number of set bits when the filter reaches its error rate.
///
/// **Part of the stored format**: replicas and loaded filters must grow at the same item.
pub fn full_bits(error_rate: f64, geometry: &Geometry) -> Option<u64> {
    if error_rate <= COUNT_SERVES_UP_TO {
        return None;
    }
    let (_, FullestLine { load, .. }) = rated_shape(error_rate);
    let share = -libm::expm1(load * geometry.num_lines as f64 * ln_free_after_pick(geometry));
    Some((share * geometry.num_bits() as f64) as u64)
}

/// What follows from an error rate alone: the number of lines per item, and how each is filled.
type RatedShape = (u32, FullestLine);

/// Recent results are cached, because a server may load a million filters of one rate.
fn rated_shape(error_rate: f64) -> RatedShape {
    const CACHED_BITS: u32 = 7;
    thread_local! {
        static CACHED: [Cell<Option<(f64, RatedShape)>>; 1 << CACHED_BITS] =
            const { [const { Cell::new(None) }; 1 << CACHED_BITS] };
    }
    let place = (error_rate.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - CACHED_BITS)) as usize;
    CACHED.with(|cached| match cached[place].get() {
        Some((rate, shape)) if rate == error_rate => shape,
        _ => {
            let lines_per_item = lines_per_item(error_rate);
            let line_rate = libm::pow(error_rate, 1.0 / f64::from(lines_per_item));
            let shape = (lines_per_item, FullestLine::new(line_rate));
            cached[place].set(Some((error_rate, shape)));
            shape
        }
    })
}

/// The smallest number of lines per item with which the error rate of each line is at least 1/[`RAREST_LINE_ERROR`].
/// The result is at most 141.
fn lines_per_item(error_rate: f64) -> u32 {
    // `-ln(p)` instead of `ln(1/p)`, since 1/p is infinite for subnormal p. Without `- 1e-9`, rounding could add a line
    // if p is exactly the `b`-th power of 1/200.
    let lines = libm::ceil(-libm::log(error_rate) / libm::log(RAREST_LINE_ERROR) - 1e-9);
    if lines < 1.0 { 1 } else { lines as u32 }
}

/// The mean false-positive rate of filters that hold `num_items` items. At an error rate of 0.01, the rates of single
/// filters have a standard deviation of 5.4 % of this mean at 1,000 items, and of 0.17 % at a million.
///
/// ```
/// # use rollcall_core::bloom::sizing;
/// let geometry = sizing::geometry(0.01, 1_000_000)?;
/// // Filled twice as far as it is sized for, it errs for one item in eight.
/// assert!((0.10..0.15).contains(&sizing::false_positive_rate(&geometry, 2e6)));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
pub fn false_positive_rate(geometry: &Geometry, num_items: f64) -> f64 {
    // Rounding would give a small positive rate.
    if num_items <= 0.0 {
        return 0.0;
    }
    let lines_per_item = f64::from(geometry.lines_per_item);
    let load = num_items * lines_per_item / geometry.num_lines as f64;
    libm::pow(LineRate::of(geometry.probes_per_line).at(load), lines_per_item)
}

/// The number of items at which a filter is most likely to have `set_bits` bits set.
///
/// The formula is that of Swamidass and Baldi, "Mathematical Correction for Fingerprint Similarity Measures to Improve
/// Chemical Retrieval", 2007, section 2, adapted to lines: see `docs/formulas.md`. If all bits are set, the result is
/// the same as if one bit were 0.
///
/// ```
/// # use rollcall_core::{bloom::sizing, unstable};
/// let geometry = sizing::geometry(0.01, 1_000_000)?;
/// let half = geometry.num_bits() / 2;
/// assert!((1.0e6..1.2e6).contains(&unstable::bloom::estimate_items(&geometry, half)));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
pub fn estimate_items(geometry: &Geometry, set_bits: u64) -> f64 {
    let num_bits = geometry.num_bits();
    let free_bits = num_bits.saturating_sub(set_bits).max(1);
    if free_bits == num_bits {
        return 0.0;
    }
    libm::log(free_bits as f64 / num_bits as f64) / (f64::from(geometry.lines_per_item) * ln_free_after_pick(geometry))
}

/// The logarithm of the probability that a given bit stays 0 when an item sets bits in one line. The item picks the
/// line of the given bit with probability `1/num_lines`, and then sets this bit with probability `hit`.
fn ln_free_after_pick(geometry: &Geometry) -> f64 {
    let bit_free_after_probe = 1.0 - 1.0 / f64::from(LINE_BITS);
    let hit = 1.0 - (0..geometry.probes_per_line).fold(1.0, |power, _| power * bit_free_after_probe);
    libm::log1p(-hit / geometry.num_lines as f64)
}

/// The error rate of the sub-filter with this index. The rates of all sub-filters sum to at most the filter's rate
/// (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007, section 3). The series `1/(i*(i+1))`
/// falls more slowly than the paper's rates, so late sub-filters take fewer bits per item.
pub(in crate::bloom) fn sub_filter_rate(params: &Params, index: u64) -> f64 {
    if params.expansion == 0 {
        params.error_rate
    } else if index == 0 {
        FIRST_SHARE * params.error_rate
    } else {
        let index = index as f64;
        LATER_SHARE * params.error_rate / (index * (index + 1.0))
    }
}

/// The sum of the error rates of this sub-filter and all later ones ([`sub_filter_rate`]). The sum of `1/(i*(i+1))`
/// over all `i` from `index` on is `1/index`.
pub(in crate::bloom) fn rate_from(params: &Params, index: u64) -> f64 {
    match (params.expansion, index) {
        (_, 0) => params.error_rate,
        (0, _) => 0.0,
        _ => LATER_SHARE * params.error_rate / index as f64,
    }
}

/// The size of the sub-filter with this index.
///
/// ```
/// use rollcall_core::bloom::{Params, sizing};
///
/// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
/// // What a filter takes once it has grown twice.
/// let bytes: u64 = (0..3).map(|i| Ok(sizing::sub_filter_geometry(&params, i)?.num_bytes())).sum::<Result<_, _>>()?;
/// assert!((13_000..15_000).contains(&bytes));
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] if the capacity or the error rate of this sub-filter is out of range.
pub fn sub_filter_geometry(params: &Params, index: u64) -> Result<Geometry, Error> {
    let capacity = sub_filter_capacity(params, index)
        .ok_or_else(|| Error::out_of_range(Parameter::Capacity, "within 2^40 for every sub-filter", "more"))?;
    geometry(sub_filter_rate(params, index), capacity)
}

/// The capacity of the sub-filter with this index: `capacity * expansion^index`. `None` if it overflows, or if the
/// filter does not scale and `index` is not 0.
///
/// ```
/// use rollcall_core::bloom::Params;
/// use rollcall_core::unstable::bloom::sub_filter_capacity;
///
/// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
/// assert_eq!(sub_filter_capacity(&params, 3), Some(8000));
/// ```
pub fn sub_filter_capacity(params: &Params, index: u64) -> Option<u64> {
    match (params.expansion, index) {
        (_, 0) | (1, _) => Some(params.capacity),
        (0, _) => None,
        (expansion, _) => u64::from(expansion)
            .checked_pow(u32::try_from(index).ok()?)
            .and_then(|times| params.capacity.checked_mul(times)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::MAX_PROBES_PER_LINE;
    use super::*;

    /// An error rate, `b`, `g`, the bits per item, and the numbers of lines for 1, 10^3, 10^8 and 2^40 items. They were
    /// computed with 220-bit arithmetic. For 2^40 items at 1e-9 and 1e-300, `f64` is off by 1 and 3 lines, and the
    /// table has the numbers of `f64`.
    type Row = (f64, u32, u32, f64, [u64; 4]);

    #[rustfmt::skip]
    const SHAPES: [Row; 19] = [
        (0.9999,  1, 1, 0.10857362047581166, [1, 1, 21312, 234325875]),
        (0.9,     1, 1, 0.43429448190325176, [1, 1, 85248, 937303500]),
        (0.5,     1, 1, std::f64::consts::LOG2_E, [1, 3, 283186, 3113654830]),
        (0.25,    1, 2, 2.8894667165440726,  [1, 6, 567171, 6236107938]),
        (0.1,     1, 3, 4.835775807683219,   [1, 10, 949210, 10436673220]),
        (0.05,    1, 4, 6.3187955356268475,  [1, 13, 1240311, 13637357639]),
        (0.02,    1, 6, 8.349855386145569,   [1, 17, 1638986, 18020833795]),
        (0.01,    1, 6, 9.917988143251375,   [1, 20, 1946793, 21405210946]),
        (0.005,   1, 7, 11.535659826811987,  [1, 23, 2264324, 24896504052]),
        (0.001,   2, 5, 14.627070435238275,  [1, 29, 2871134, 31568451551]),
        (1e-4,    2, 6, 19.83597628650275,   [1, 39, 3893586, 42810421891]),
        (2.5e-5,  2, 7, 23.071319653623974,  [1, 46, 4528648, 49793008103]),
        (1e-5,    3, 5, 24.534683137244084,  [1, 49, 4815890, 52951270001]),
        (1e-6,    3, 6, 29.753964429754124,  [1, 59, 5840378, 64215632837]),
        (1e-9,    4, 7, 45.0057787477629,    [1, 89, 8834143, 97132419797]),
        (1e-12,   6, 6, 59.50792885950825,   [1, 117, 11680756, 128431265673]),
        (1e-15,   7, 7, 74.69690506660615,   [1, 147, 14662186, 161212434098]),
        (1e-30,  14, 7, 149.3938101332123,   [1, 294, 29324371, 322424868196]),
        (1e-300, 131, 7, 1503.122904805993,  [3, 2951, 295046586, 3244071518304]),
    ];

    fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
        Params { error_rate, capacity, expansion, seed: 0 }
    }

    /// The number of bits per item without [`MARGIN`], for a filter so large that rounding does not matter.
    fn bits_per_item(error_rate: f64) -> f64 {
        geometry(error_rate, 1 << 40).unwrap().num_bits() as f64 / (1u64 << 40) as f64 / 1.005
    }

    #[test]
    fn shapes_are_pinned() {
        for (error_rate, b, g, c, lines) in SHAPES {
            for (capacity, num_lines) in [1, 1000, 100_000_000, 1 << 40].into_iter().zip(lines) {
                let expected = Geometry { lines_per_item: b, probes_per_line: g, num_lines };
                assert_eq!(geometry(error_rate, capacity), Ok(expected), "{error_rate} {capacity}");
            }
            assert!((bits_per_item(error_rate) / c - 1.0).abs() < 1e-8, "{error_rate}");
        }
    }

    /// An error rate, and the set bits of full filters for 1, 10^3, 10^8 and 2^40 items, computed with 60 decimal
    /// digits. The last number of the table is that of `f64`, which is 1 off.
    #[rustfmt::skip]
    const FULL: [(f64, [u64; 4]); 8] = [
        (0.9999, [511, 511, 10_910_652, 119_962_850_515]),
        (0.9,    [460, 460, 39_282_278, 431_909_452_800]),
        (0.5,    [256, 768, 72_495_616, 797_095_636_480]),
        (0.3,    [280, 1400, 138_711_634, 1_525_150_392_235]),
        (0.1,    [236, 2363, 224_338_612, 2_466_628_863_090]),
        (0.05,   [240, 3115, 297_221_358, 3_267_981_945_079]),
        (0.021,  [233, 3949, 375_625_710, 4_130_045_950_423]),
        (0.020_000_000_1, [262, 4447, 428_681_078, 4_713_396_237_828]),
    ];

    #[test]
    fn bits_of_full_filters_are_pinned() {
        for (error_rate, expected) in FULL {
            for (capacity, full) in [1, 1000, 100_000_000, 1 << 40].into_iter().zip(expected) {
                let shape = geometry(error_rate, capacity).unwrap();
                assert_eq!(full_bits(error_rate, &shape), Some(full), "{error_rate} {capacity}");
                // In filters of few lines, rounding to whole bits makes a visible difference.
                let rate = false_positive_rate(&shape, estimate_items(&shape, full));
                let rounding = 8.0 / full as f64;
                assert!((rate / error_rate - 1.0).abs() <= rounding, "{error_rate} {capacity}: {rate}");
                assert!(estimate_items(&shape, full + 1) > capacity as f64, "{error_rate} {capacity}");
            }
        }
        for error_rate in [0.02, 0.01, 1e-9, f64::from_bits(1)] {
            assert_eq!(full_bits(error_rate, &geometry(error_rate, 1000).unwrap()), None);
        }
    }

    /// A filter counts fewer items than it holds, because it takes some new items for known ones.
    #[test]
    fn false_positives_leave_few_items_uncounted() {
        let (capacity, step) = (1_000_000.0, 100.0);
        let shape = geometry(COUNT_SERVES_UP_TO, 1_000_000).unwrap();
        let (mut items, mut counted) = (0.0, 0.0);
        while counted < capacity {
            counted += step * (1.0 - false_positive_rate(&shape, items + step / 2.0));
            items += step;
        }
        assert!(items > 1.0035 * capacity && items < 1.004 * capacity, "{items}");
        assert!(false_positive_rate(&shape, items) < COUNT_SERVES_UP_TO);
    }

    #[test]
    fn full_filters_keep_their_rate() {
        for exponent in 1..=600 {
            let error_rate = libm::pow(10.0, -f64::from(exponent) / 20.0);
            let shape = geometry(error_rate, 10_000_000).unwrap();
            let rate = false_positive_rate(&shape, 10_000_000.0);
            // The margin lowers the rate by 0.2 % for each bit of an item, up to 25 % in all at 1e-30.
            assert!(rate < error_rate && rate > error_rate * 0.7, "{error_rate}: {rate}");
        }
    }

    #[test]
    fn line_rates_match_known_sums() {
        // If an item sets one bit per line, the error rate of a line is 1 - exp(-load/512).
        for load in [0.0, 0.5, 50.0, 355.0] {
            let exact = -libm::expm1(-load / 512.0);
            assert!((LineRate::of(1).at(load) - exact).abs() < 1e-15, "{load}");
        }
        // Two bits of an item coincide with probability 1/512.
        let (load, m1, m2) = (100.0, 1.0 - libm::pow(511.0 / 512.0, 2.0), 1.0 - libm::pow(510.0 / 512.0, 2.0));
        let one = 1.0 - libm::exp(-load * m1);
        let two = 1.0 - 2.0 * libm::exp(-load * m1) + libm::exp(-load * m2);
        assert!((LineRate::of(2).at(load) - (one / 512.0 + two * 511.0 / 512.0)).abs() < 1e-14);
        for probes in 1..=MAX_PROBES_PER_LINE {
            assert!(LineRate::of(probes).at(0.0) < 1e-14);
            assert!((LineRate::of(probes).at(1e6) - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn extreme_parameters_give_a_shape_or_an_error() {
        let smallest = f64::from_bits(1);
        let largest = 1.0 - f64::EPSILON / 2.0;
        for error_rate in [smallest, f64::MIN_POSITIVE, 1e-300, 0.5, 0.999_999, largest] {
            for capacity in [1, 100, Params::MAX_CAPACITY] {
                let shape = geometry(error_rate, capacity).unwrap();
                assert!(shape.num_lines >= 1 && (1..=141).contains(&shape.lines_per_item), "{error_rate} {capacity}");
                assert!((1..=MAX_PROBES_PER_LINE).contains(&shape.probes_per_line));
                assert!(shape.num_bytes() <= i64::MAX as u64);
                for set_bits in [0, 1, shape.num_bits() - 1, shape.num_bits(), u64::MAX] {
                    assert!(estimate_items(&shape, set_bits).is_finite());
                }
                for num_items in [0.0, 1.0, u64::MAX as f64] {
                    assert!((0.0..=1.0).contains(&false_positive_rate(&shape, num_items)));
                }
            }
            assert!(matches!(
                geometry(error_rate, 1 << 62),
                Ok(_) | Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })
            ));
        }
        assert!(matches!(geometry(0.01, u64::MAX), Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
        assert!(matches!(geometry(0.01, 0), Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
        for error_rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(geometry(error_rate, 10), Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
        }
    }

    #[test]
    fn rates_of_sub_filters_sum_to_less_than_asked() {
        for error_rate in [0.5, 0.01, 1e-9] {
            let chain = params(error_rate, 1, 1);
            let sum: f64 = (0..100_000).map(|i| sub_filter_rate(&chain, i)).sum();
            assert!(sum < error_rate && sum > 0.9999 * error_rate);
            assert_eq!(sub_filter_rate(&params(error_rate, 1, 0), 0), error_rate);
        }
    }

    #[test]
    fn capacities_of_sub_filters_do_not_overflow() {
        assert_eq!(sub_filter_capacity(&params(0.1, 100, 0), 0), Some(100));
        assert_eq!(sub_filter_capacity(&params(0.1, 100, 0), 1), None);
        assert_eq!(sub_filter_capacity(&params(0.1, 100, 1), u64::MAX), Some(100));
        assert_eq!(sub_filter_capacity(&params(0.1, 100, 3), 4), Some(8100));
        assert_eq!(sub_filter_capacity(&params(0.1, 1, 2), 63), Some(1 << 63));
        assert_eq!(sub_filter_capacity(&params(0.1, 1, 2), 64), None);
        assert_eq!(sub_filter_capacity(&params(0.1, 2, 2), 63), None);
        assert_eq!(sub_filter_capacity(&params(0.1, 1, 2), u64::MAX), None);
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        for (error_rate, capacity) in [(0.01, 3u64), (0.01, 1000), (0.001, 100_000), (1e-9, 5000)] {
            let shape = geometry(error_rate, capacity).unwrap();
            let hit = 1.0 - libm::pow(511.0 / 512.0, f64::from(shape.probes_per_line));
            let picks = capacity as f64 * f64::from(shape.lines_per_item);
            let fill = 1.0 - libm::pow(1.0 - hit / shape.num_lines as f64, picks);
            let set_bits = libm::round(fill * shape.num_bits() as f64) as u64;
            // Rounding by half a bit changes the estimate by less than half an item.
            assert!((estimate_items(&shape, set_bits) - capacity as f64).abs() < 0.5, "{error_rate} {capacity}");
        }
        let shape = geometry(0.01, 1000).unwrap();
        assert_eq!(estimate_items(&shape, 0), 0.0);
        assert!(estimate_items(&shape, shape.num_bits()) > 5000.0);
    }

    #[test]
    fn rates_from_a_sub_filter_on_add_up() {
        for error_rate in [0.5, 0.01, 1e-9] {
            let (chain, fixed) = (params(error_rate, 1, 2), params(error_rate, 1, 0));
            assert_eq!([rate_from(&chain, 0), rate_from(&fixed, 0)], [error_rate; 2]);
            assert_eq!([rate_from(&fixed, 1), rate_from(&fixed, u64::MAX)], [0.0; 2]);
            for index in 0..2000 {
                let sum = sub_filter_rate(&chain, index) + rate_from(&chain, index + 1);
                assert!((rate_from(&chain, index) / sum - 1.0).abs() < 1e-12, "{error_rate} {index}");
            }
        }
    }
}
