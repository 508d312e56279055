//! RedisBloom's rules for the size of a sub-filter, and the checks of an imported one.
//!
//! ```text
//! bits an item = -ln(error rate) / ln(2)^2         hashes = ceil(ln 2 * bits an item)
//!
//! options          bits
//! NOROUND          floor(capacity * bits an item), at least 1, rounded up to a multiple of 64
//! neither          the next power of two, 2^n2; the capacity grows to the number of items that fit
//! ENTRIES_IS_BITS  2^capacity; the capacity becomes the number of items that fit
//! ```
//!
//! A bitmap consists of words of 64 bits. A sub-filter of fewer bits leaves the rest of its word unused.

use super::super::bitmap::LINE_BYTES;
use super::super::params::{Params, check_error_rate};
use crate::error::{Error, Parameter};

/// The growth factor that RedisBloom stores if none is given.
pub const DEFAULT_GROWTH: u32 = 2;

/// The largest number of sub-filters that a loaded RedisBloom-compatible filter may have. RedisBloom halves the error
/// rate for each sub-filter, and an `f64` becomes 0 after at most 1,075 halvings. A lower limit could make stored
/// filters unreadable.
const MAX_LOADED_SUB_FILTERS: u64 = 1200;

/// The error rate of a sub-filter as a multiple of the previous one's, as in RedisBloom.
const TIGHTENING: f64 = 0.5;

/// ln 2 with as many digits as in RedisBloom. At error rates of 2^-k, more digits would give another number of hashes.
#[expect(clippy::approx_constant, reason = "RedisBloom's digits decide, not the nearest double")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Largest number of bits per item. The smallest positive error rate requires 1550.
const MAX_BITS_PER_ITEM: f64 = 1600.0;

/// The largest size of a sub-filter, in bytes. It leaves room for sums of bit positions in 64 bits.
const MAX_BYTES: u64 = 1 << 57;

/// The largest `n2` (base-2 logarithm of the number of bits) that stays within [`MAX_BYTES`].
const MAX_N2: u8 = 60;

/// How a filter in RedisBloom's layout grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The option flags, as RedisBloom stores them.
    pub options: u32,
    /// The growth factor that RedisBloom stores, even if the filter does not scale.
    pub growth: u32,
}

impl Rules {
    /// Sizes are not rounded up to powers of two.
    pub const NOROUND: u32 = 1;
    /// The requested capacity is not a number of items but the base-2 logarithm of the number of bits.
    pub(crate) const ENTRIES_IS_BITS: u32 = 2;
    /// Hashes have 64 bits. Filters of RedisBloom before 2.0 lack this option and have 32-bit hashes.
    pub const FORCE64: u32 = 4;
    /// The filter does not scale.
    pub const NO_SCALING: u32 = 8;
    pub(crate) const ALL_OPTIONS: u32 = 15;

    /// Returns the options and the growth factor of a new filter, and the shape of its first sub-filter. The growth
    /// factor is `params.expansion`. If that is 0, the filter does not scale, and `growth` is only stored.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the first sub-filter would be too large, or if a parameter is out of range.
    pub(in crate::bloom) fn new(params: &Params, growth: u32) -> Result<(Self, Shape), Error> {
        let (scaling, tightening, growth) =
            if params.expansion == 0 { (Rules::NO_SCALING, 1.0, growth) } else { (0, TIGHTENING, params.expansion) };
        let options = Rules::NOROUND | Rules::FORCE64 | scaling;
        Ok((Rules { options, growth }, Shape::new(params.error_rate * tightening, params.capacity, options)?))
    }

    /// Derives the parameters of a filter, which RedisBloom does not store, from its first sub-filter.
    pub(in crate::bloom) fn params(self, first: &Shape) -> Params {
        let (asked, scales) = (first.error_rate / TIGHTENING, self.scales());
        // In a filter that scales, the first sub-filter has half the filter's error rate. If a header gives the first
        // sub-filter a rate of 0.5 or more, doubling would exceed the valid range.
        let error_rate = if scales && asked < 1.0 { asked } else { first.error_rate };
        Params { error_rate, capacity: first.capacity, expansion: if scales { self.growth } else { 0 }, seed: 0 }
    }

    pub(in crate::bloom) fn scales(self) -> bool {
        self.options & Rules::NO_SCALING == 0
    }

    /// # Errors
    /// [`Error::Corrupt`] names the invalid field.
    pub(crate) fn validate(self, num_sub_filters: u64) -> Result<(), Error> {
        validate_options(self.options)?;
        let is_valid = !self.scales() || self.growth > 0;
        Error::check_field(is_valid, "growth", "at least 1 if the filter scales", self.growth)?;
        let most = if self.scales() { MAX_LOADED_SUB_FILTERS } else { 1 };
        let is_within = (1..=most).contains(&num_sub_filters);
        Error::check_field(is_within, "number of sub-filters", format_args!("from 1 to {most}"), num_sub_filters)
    }
}

/// The size and the error rate of a sub-filter, as RedisBloom stores them.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Shape {
    /// The number of items that the sub-filter is sized for (RedisBloom's `entries`).
    pub capacity: u64,
    /// The false-positive rate that the sub-filter may have when full.
    pub error_rate: f64,
    /// Bits per item (RedisBloom's `bpe`).
    pub bits_per_item: f64,
    /// The number of bits that an item sets; some may coincide.
    pub hashes: u32,
    /// Bytes of the bitmap.
    pub num_bytes: u64,
    /// If `n2` is not 0, the sub-filter has `2^n2` bits. Otherwise it has [`Shape::num_bits`] bits.
    pub n2: u8,
}

impl Shape {
    /// The shape that RedisBloom computes for a sub-filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the sub-filter would be too large, or if a parameter is out of range.
    pub fn new(error_rate: f64, capacity: u64, options: u32) -> Result<Self, Error> {
        check_error_rate(error_rate)?;
        let too_large =
            || Error::out_of_range(Parameter::Capacity, "of an addressable size at this error rate", capacity);
        Error::check_range(capacity != 0, Parameter::Capacity, "at least 1", capacity)?;
        let bits_per_item = bits_per_item(error_rate);
        let (num_bits, n2, capacity) = if options & Rules::ENTRIES_IS_BITS != 0 {
            let n2 = u8::try_from(capacity).ok().filter(|&n2| n2 <= MAX_N2).ok_or_else(too_large)?;
            let num_bits = 1u64 << n2;
            (num_bits, n2, (num_bits as f64 / bits_per_item) as u64)
        } else {
            let wanted = capacity as f64 * bits_per_item;
            // `wanted` is never NaN, so the comparison is reliable.
            if wanted > (MAX_BYTES * 8) as f64 {
                return Err(too_large());
            }
            if options & Rules::NOROUND != 0 {
                ((wanted as u64).max(1), 0, capacity)
            } else {
                let n2 = (wanted as u64).max(1).ilog2() as u8 + 1;
                let num_bits = 1u64 << n2;
                let more = ((num_bits as f64 - wanted) / bits_per_item) as u64;
                (num_bits, n2, capacity.checked_add(more).ok_or_else(too_large)?)
            }
        };
        let num_bytes = num_bits.div_ceil(64) * 8;
        if num_bytes > MAX_BYTES || capacity == 0 {
            return Err(too_large());
        }
        Ok(Shape { capacity, error_rate, bits_per_item, hashes: hashes(bits_per_item) as u32, num_bytes, n2 })
    }

    /// The shape of the sub-filter that RedisBloom would append next.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the sub-filter would be too large.
    pub fn next(&self, growth: u32, options: u32) -> Result<Self, Error> {
        let capacity = self.capacity.checked_mul(u64::from(growth)).ok_or_else(|| {
            let got = format!("{} * {growth}", self.capacity);
            Error::out_of_range(Parameter::Capacity, "less than 2^64 for every sub-filter", got)
        })?;
        Shape::new(self.error_rate * TIGHTENING, capacity, options)
    }

    /// The number of bits of the bitmap.
    pub fn num_bits(&self) -> u64 {
        self.num_bytes * 8
    }

    pub(crate) fn num_lines(&self) -> u64 {
        self.num_bytes.div_ceil(LINE_BYTES)
    }

    /// The number of bits that items can set: bit positions are remainders modulo this number.
    pub fn num_positions(&self) -> u64 {
        if self.n2 > 0 { 1 << self.n2 } else { self.num_bits() }
    }

    /// Checks a stored or received shape. Another release of RedisBloom may compute other shapes than [`Shape::new`],
    /// so only fields that affect the filter's answers are checked.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the invalid field.
    pub fn validate(&self) -> Result<(), Error> {
        Error::check_field(self.capacity != 0, "capacity", "at least 1", 0)?;
        let expected = "more than 0 and less than 1";
        Error::check_field(check_error_rate(self.error_rate).is_ok(), "error_rate", expected, self.error_rate)?;
        let is_within = self.bits_per_item > 0.0 && self.bits_per_item <= MAX_BITS_PER_ITEM;
        let expected = format_args!("more than 0 and at most {MAX_BITS_PER_ITEM}");
        Error::check_field(is_within, "bits_per_item", expected, self.bits_per_item)?;
        let expected = hashes(self.bits_per_item);
        Error::check_field(f64::from(self.hashes) == expected, "hashes", expected, self.hashes)?;
        Error::check_field(self.n2 <= MAX_N2, "n2", format_args!("at most {MAX_N2}"), self.n2)?;
        let is_within = (1..=MAX_BYTES).contains(&self.num_bytes);
        Error::check_field(is_within, "num_bytes", format_args!("from 1 to {MAX_BYTES}"), self.num_bytes)?;
        if self.n2 > 0 {
            let num_bytes = (1u64 << self.n2).div_ceil(64) * 8;
            let expected = format_args!("{num_bytes} for n2 {}", self.n2);
            Error::check_field(self.num_bytes == num_bytes, "num_bytes", expected, self.num_bytes)?;
        }
        Ok(())
    }
}

fn bits_per_item(error_rate: f64) -> f64 {
    // RedisBloom uses the platform's logarithm. The one in the crate `libm` may differ in the last bit.
    -error_rate.ln() / LN_2_SQUARED
}

/// The number of hashes that gives the lowest false-positive rate.
fn hashes(bits_per_item: f64) -> f64 {
    libm::ceil(LN_2 * bits_per_item)
}

/// # Errors
/// [`Error::Corrupt`] for unknown flags, and for filters of RedisBloom before 2.0, which have 32-bit hashes.
pub(crate) fn validate_options(options: u32) -> Result<(), Error> {
    let all = Rules::ALL_OPTIONS;
    Error::check_field(options & !all == 0, "options", format_args!("at most {all}"), options)?;
    let got = "a filter of RedisBloom 1.x with 32-bit hashes, which cannot be brought in";
    Error::check_field(options & Rules::FORCE64 != 0, "options", "64-bit hashes", got)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `BF.RESERVE` in RedisBloom 2.8.2: error rate (after halving), capacity, bits per item, hashes, bytes.
    #[rustfmt::skip]
    const SHAPES: [(f64, u64, f64, u32, u64); 15] = [
        (0.01, 100, 9.585058377367446, 7, 120),
        (0.005, 100, 11.027753418256411, 8, 144),
        (0.0005, 1000, 15.820282606940136, 11, 1984),
        (0.000125, 4000, 18.705672688718064, 13, 9360),
        (0.25, 1, 2.8853900817779294, 3, 8),
        (0.5, 1000, 1.4426950408889647, 2, 184),
        // With all digits of ln 2, the result would be 2 hashes.
        (0.500_000_000_000_000_1, 1000, 1.4426950408889643, 1, 184),
        (0.9, 1, 0.21929410911295547, 1, 8),
        (0.999_999, 10, 2.0813700217506453e-06, 1, 8),
        (0.15, 1000, 3.9486066897873044, 3, 496),
        (1e-6, 123_457, 28.75517513210234, 20, 443_760),
        (0.005, 1 << 40, 11.027753418256411, 8, 1_515_642_888_960),
        (5e-101, 3, 480.6956139092614, 334, 184),
        (1.25e-301, 12, 1442.086841727784, 1000, 2168),
        (5e-324, 3, 1549.454473914748, 1075, 584),
    ];

    #[test]
    fn shapes_are_those_of_redisbloom() {
        for (error_rate, capacity, bits_per_item, hashes, num_bytes) in SHAPES {
            let expected = Shape { capacity, error_rate, bits_per_item, hashes, num_bytes, n2: 0 };
            assert_eq!(Shape::new(error_rate, capacity, Rules::NOROUND | Rules::FORCE64), Ok(expected));
            assert_eq!(expected.validate(), Ok(()));
        }
    }

    /// Expected values are from RedisBloom 2.8.2, with option flags that none of its commands sets.
    #[test]
    fn powers_of_two_are_those_of_redisbloom() {
        let grown = |options, capacity| {
            let shape = Shape { capacity, ..Shape::new(0.005, 7, Rules::ENTRIES_IS_BITS).unwrap() };
            shape.next(2, options).map(|next| (next.capacity, next.n2, next.num_bytes, next.hashes))
        };
        assert_eq!(grown(Rules::FORCE64, 92), Ok((328, 12, 512, 9)));
        assert_eq!(grown(Rules::FORCE64 | Rules::NOROUND, 92), Ok((184, 0, 288, 9)));
        assert_eq!(grown(Rules::FORCE64, 1), Ok((2, 5, 8, 9)));
        for (capacity, expected) in
            [(2, (1, 4, 8, 9)), (3, (5, 6, 8, 9)), (4, (20, 8, 32, 9)), (5, (82, 10, 128, 9)), (6, (328, 12, 512, 9))]
        {
            assert_eq!(grown(Rules::FORCE64 | Rules::ENTRIES_IS_BITS, capacity), Ok(expected));
            assert_eq!(grown(Rules::FORCE64 | Rules::ENTRIES_IS_BITS | Rules::NOROUND, capacity), Ok(expected));
        }
        assert!(matches!(
            grown(Rules::FORCE64 | Rules::ENTRIES_IS_BITS, 92),
            Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })
        ));
    }

    #[test]
    fn growth_ends_in_an_error_where_numbers_end() {
        let shape = Shape::new(0.01, 1 << 40, Rules::NOROUND).unwrap();
        assert!(matches!(
            shape.next(1 << 30, Rules::NOROUND),
            Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })
        ));
        assert!(matches!(shape.next(0, Rules::NOROUND), Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
        let shape = Shape { error_rate: f64::from_bits(1), ..shape };
        assert!(matches!(
            shape.next(2, Rules::NOROUND),
            Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })
        ));
        for options in [0, Rules::NOROUND] {
            assert!(matches!(
                Shape::new(0.01, u64::MAX, options),
                Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })
            ));
        }
        // At a rate near 1, an item takes a tiny fraction of a bit. A size rounded up to a power of two then has room
        // for 10^19 more items.
        assert!(matches!(
            Shape::new(1.0 - f64::EPSILON / 2.0, u64::MAX, 0),
            Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })
        ));
    }

    #[test]
    fn fields_of_a_shape_are_checked_at_their_ends() {
        let good = Shape::new(0.01, 100, Rules::NOROUND).unwrap();
        let field = |shape: Shape| match shape.validate() {
            Ok(()) => "none",
            Err(Error::Corrupt { field, .. }) => field,
            Err(other) => panic!("{other}"),
        };
        let bits = |bits_per_item, hashes| field(Shape { bits_per_item, hashes, ..good });
        assert_eq!([bits(0.0, 0), bits(-0.0, 0), bits(f64::NAN, 0), bits(1600.1, 1110)], ["bits_per_item"; 4]);
        assert_eq!([bits(f64::from_bits(1), 1), bits(1600.0, 1110)], ["none"; 2]);
        assert_eq!([bits(f64::from_bits(1), 0), bits(1600.0, 1109), bits(1600.0, 1111)], ["hashes"; 3]);
        let of_n2 = |n2, num_bytes| field(Shape { n2, num_bytes, ..good });
        assert_eq!([of_n2(60, 1 << 57), of_n2(1, 8), of_n2(7, 16), of_n2(0, 1 << 57), of_n2(0, 1)], ["none"; 5]);
        assert_eq!([of_n2(61, 1 << 58), of_n2(64, 1), of_n2(255, 1)], ["n2"; 3]);
        assert_eq!(
            [of_n2(60, 1 << 56), of_n2(1, 1), of_n2(7, 24), of_n2(0, 0), of_n2(0, (1 << 57) + 1)],
            ["num_bytes"; 5]
        );
    }
}
