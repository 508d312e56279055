//! RedisBloom's own formats, to import and export its data.
//!
//! **Chunks.** `SCANDUMP` returns the header with iterator 1, then the bytes of the sub-filters in pieces. No piece has
//! bytes of two sub-filters. RedisBloom sends pieces of at most 16 MiB, and also loads smaller ones. Each piece has the
//! iterator 1 + the position of its end. The header has no checksum:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | number of items in all sub-filters |
//! | 8 | 4 | number of sub-filters |
//! | 12 | 4 | options: 1 NOROUND, 2 ENTRIES_IS_BITS, 4 FORCE64, 8 NO_SCALING |
//! | 16 | 4 | growth |
//! | 20 | 53 each | sub-filter: bytes, bits, items, error rate and bits an item (f64), hashes (4), capacity, n2 (1) |
//!
//! Fields of a sub-filter have 8 bytes unless noted. If `n2` is not 0, the sub-filter has `2^n2` bits.
//!
//! **RDB.** The fields of a value are listed in docs/persistence.md#classic-filters.
//!
//! Filters of releases before 2.0 have 32-bit hashes and are rejected. They have the encoding version 0 or 1, or lack
//! the option FORCE64.

use crate::bits;
use crate::bloom::classic::sizing::{DEFAULT_GROWTH, Rules, Shape, validate_options};
use crate::bloom::filter::{BloomFilter, OWN_BYTES};
use crate::bloom::sub_filter::{Described, Spec, SubFilter, zeroed};
use crate::error::Error;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_reserve, try_with_capacity};
use crate::stored::codec::{HeaderReader, HeaderWriter, expect};
use crate::stored::{Sink, Source};

/// The newest encoding version of RedisBloom's RDB values that can be read.
pub const RDB_ENCODING_NEWEST: u32 = 4;

/// The first encoding version whose values have options; older values have 32-bit hashes.
const RDB_ENCODING_OPTIONS: u32 = 2;

/// The first encoding version whose values have a growth factor.
const RDB_ENCODING_GROWTH: u32 = 4;

/// The length of RedisBloom's header before its sub-filters, in bytes.
const HEADER_BYTES: u64 = 20;

/// The bytes of a sub-filter in the header.
const SUB_FILTER_BYTES: u64 = 53;

/// The sub-filters of a RedisBloom-compatible filter, each with its shape.
fn shapes(filter: &BloomFilter) -> impl Iterator<Item = (&SubFilter, &Shape)> {
    filter.chain().iter().filter_map(|one| Some((one, &one.classic()?.shape)))
}

fn rules(filter: &BloomFilter) -> Rules {
    let first = filter.chain().first().and_then(SubFilter::classic);
    first.map_or(Rules { options: 0, growth: 0 }, |classic| classic.rules)
}

pub(in crate::bloom::filter) fn header(filter: &BloomFilter) -> Vec<u8> {
    let Rules { options, growth } = rules(filter);
    let mut writer = HeaderWriter::plain();
    writer.u64(filter.num_items());
    writer.u32(filter.chain().len() as u32);
    writer.u32(options);
    writer.u32(growth);
    for (sub_filter, shape) in shapes(filter) {
        writer.u64(shape.num_bytes);
        writer.u64(shape.num_bits());
        writer.u64(sub_filter.num_items);
        writer.f64(shape.error_rate);
        writer.f64(shape.bits_per_item);
        writer.u32(shape.hashes);
        writer.u64(shape.capacity);
        writer.u8(shape.n2);
    }
    writer.bytes
}

/// Overwrites a part of the payload, as RedisBloom's `LOADCHUNK` does with every chunk after the header, in any order.
/// `chunk` ends at position `next - 1`, and must lie within one sub-filter.
///
/// # Errors
/// [`Error::Corrupt`] if the filter has no place for this chunk. On error nothing is changed.
pub(in crate::bloom::filter) fn overwrite(filter: &mut BloomFilter, next: u64, chunk: &[u8]) -> Result<(), Error> {
    let position = next.checked_sub(1).and_then(|end| end.checked_sub(chunk.len() as u64));
    match position.and_then(|position| filter.place_of(position)) {
        Some((index, offset)) => filter.chain_mut()[index].overwrite_bytes(offset, chunk),
        None => Err(Error::corrupt("iterator", "one that ends a chunk", next)),
    }
}

/// Reads a header. Returns the filter with zeroed bitmaps. The total size is checked before anything is allocated.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::OutOfMemory`], and the errors of the size limit.
pub(in crate::bloom::filter) fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<BloomFilter, Error> {
    let described = decode_header(header)?;
    // A single sub-filter is stored in the filter itself.
    let own_bytes = if described.len() == 1 { OWN_BYTES - size_of::<SubFilter>() as u64 } else { OWN_BYTES };
    let held_bytes = own_bytes + array_bytes::<u8>(header.len() as u64);
    limit.check(0, described.iter().fold(held_bytes, |sum, (spec, _)| sum.saturating_add(spec.sub_filter_bytes())))?;
    BloomFilter::from_sub_filters(zeroed(described)?)
}

/// The length of a header, in bytes.
pub(in crate::bloom::filter) fn header_bytes(num_sub_filters: u32) -> u64 {
    HEADER_BYTES + SUB_FILTER_BYTES * u64::from(num_sub_filters)
}

/// Reads a header. Checks the options and the growth factor, and the shape and the number of items of each sub-filter.
fn decode_header(bytes: &[u8]) -> Result<Described, Error> {
    let mut reader = HeaderReader::plain(bytes);
    let total_items = reader.u64("size")?;
    let count = reader.u32("nfilters")?;
    let options = reader.u32("options")?;
    let growth = reader.u32("growth")?;
    // The number of sub-filters is trusted only if the header has the right length for it.
    expect("header length", header_bytes(count), bytes.len() as u64)?;
    let count = if ends_without_bits(bytes) { count.saturating_sub(1) } else { count };
    let rules = Rules { options, growth: growth_of(options, growth) };
    rules.validate(u64::from(count))?;
    let mut described = Described::new();
    try_reserve(&mut described, count as usize)?;
    // Each sub-filter may claim up to 2^60 items, so the sum may exceed 64 bits.
    let mut claimed_items = 0u64;
    for _ in 0..count {
        let (num_bytes, num_bits, num_items) = (reader.u64("bytes")?, reader.u64("bits")?, reader.u64("size")?);
        let shape = Shape {
            num_bytes,
            error_rate: reader.f64("error_rate")?,
            bits_per_item: reader.f64("bits_per_item")?,
            hashes: reader.u32("hashes")?,
            capacity: reader.u64("capacity")?,
            n2: reader.u8("n2")?,
        };
        let is_valid = num_bytes.checked_mul(8) == Some(num_bits);
        Error::check_field(is_valid, "bits", format_args!("8 times {num_bytes} bytes"), num_bits)?;
        let spec = Spec::of_shape(rules, described.is_empty(), shape)?;
        spec.check_items(num_items)?;
        claimed_items = claimed_items.saturating_add(num_items);
        described.push((spec, num_items));
    }
    expect("size", claimed_items, total_items)?;
    Ok(described)
}

/// Whether a header ends with a sub-filter without bits, whose entry is all zeros. RedisBloom appends one if the growth
/// is 0, or if the error rate cannot be halved again. It never adds an item there, so this library omits the
/// sub-filter.
fn ends_without_bits(header: &[u8]) -> bool {
    header.len() as u64 > HEADER_BYTES + SUB_FILTER_BYTES
        && header.iter().rev().take(SUB_FILTER_BYTES as usize).all(|&byte| byte == 0)
}

/// The growth factor of a filter whose header has the growth `noted`. RedisBloom keeps only the lower 32 bits of the
/// requested growth, which may be 0 even for a filter that scales. Such a filter gets [`DEFAULT_GROWTH`].
fn growth_of(options: u32, noted: u32) -> u32 {
    if noted == 0 && options & Rules::NO_SCALING == 0 { DEFAULT_GROWTH } else { noted }
}

/// Writes a filter as an RDB value in RedisBloom's format.
pub fn save_rdb(filter: &BloomFilter, sink: &mut impl Sink) {
    let Rules { options, growth } = rules(filter);
    sink.unsigned(filter.num_items());
    sink.unsigned(filter.chain().len() as u64);
    sink.unsigned(u64::from(options));
    sink.unsigned(u64::from(growth));
    for (sub_filter, shape) in shapes(filter) {
        sink.unsigned(shape.capacity);
        sink.double(shape.error_rate);
        sink.unsigned(u64::from(shape.hashes));
        sink.double(shape.bits_per_item);
        sink.unsigned(shape.num_bits());
        sink.unsigned(u64::from(shape.n2));
        sink.string(sub_filter.as_bytes());
        sink.unsigned(sub_filter.num_items);
    }
}

/// Reads a filter from an RDB value in RedisBloom's format.
///
/// # Errors
/// [`Error::Corrupt`] names the wrong field. [`Error::TooLarge`] and [`Error::OutOfMemory`] are returned before the
/// memory of a sub-filter is allocated.
pub fn load_rdb(source: &mut impl Source, encoding_version: u32, limit: &impl SizeLimit) -> Result<BloomFilter, Error> {
    let is_valid = encoding_version <= RDB_ENCODING_NEWEST;
    Error::check_field(is_valid, "encoding version", format_args!("at most {RDB_ENCODING_NEWEST}"), encoding_version)?;
    if encoding_version < RDB_ENCODING_OPTIONS {
        validate_options(0)?;
    }
    let total_items = source.unsigned("size")?;
    let count = source.unsigned("nfilters")?;
    let options = unsigned_32(source, "options")?;
    let growth = if encoding_version < RDB_ENCODING_GROWTH { DEFAULT_GROWTH } else { unsigned_32(source, "growth")? };
    let rules = Rules { options, growth: growth_of(options, growth) };
    rules.validate(count)?;
    let mut sub_filters = try_with_capacity(count as usize)?;
    let mut held_bytes = OWN_BYTES;
    // Each sub-filter is allocated after its fields have been read, so a wrong number of sub-filters causes no large
    // allocation.
    for index in 0..count {
        let Some(sub_filter) = load_rdb_sub_filter(source, rules, index == 0, held_bytes, limit)? else {
            // RedisBloom never adds items to a last sub-filter without bits, so it is left out.
            expect("sub-filter without bits", count - 1, index)?;
            break;
        };
        held_bytes = held_bytes.saturating_add(sub_filter.spec.sub_filter_bytes());
        sub_filters.push(sub_filter);
    }
    let filter = BloomFilter::from_sub_filters(sub_filters)?;
    expect("size", filter.num_items(), total_items)?;
    Ok(filter)
}

/// Reads a sub-filter; `None` for a sub-filter without bits.
fn load_rdb_sub_filter(
    source: &mut impl Source,
    rules: Rules,
    is_first: bool,
    held_bytes: u64,
    limit: &impl SizeLimit,
) -> Result<Option<SubFilter>, Error> {
    let capacity = source.unsigned("capacity")?;
    let error_rate = source.double("error_rate")?;
    let hashes = unsigned_32(source, "hashes")?;
    let bits_per_item = source.double("bits_per_item")?;
    let num_bits = source.unsigned("bits")?;
    let n2 = source.unsigned("n2")?;
    let n2 = u8::try_from(n2).map_err(|_| Error::corrupt("n2", "below 2^8", n2))?;
    Error::check_field(num_bits % 8 == 0, "bits", "a multiple of 8", num_bits)?;
    let shape = Shape { capacity, error_rate, bits_per_item, hashes, num_bytes: num_bits / 8, n2 };
    // When RedisBloom fails to make a sub-filter, it appends an empty one.
    if shape == Shape::default() {
        expect("data length", 0, source.string("data")?.as_ref().len())?;
        expect("size", 0, source.unsigned("size")?)?;
        return Ok(None);
    }
    let spec = Spec::of_shape(rules, is_first, shape)?;
    limit.check(held_bytes, spec.sub_filter_bytes())?;
    // Memory for the bitmap is allocated only after the bytes have been read.
    let data = source.string("data")?;
    let bytes = data.as_ref();
    expect("data length", shape.num_bytes, bytes.len() as u64)?;
    let mut sub_filter = SubFilter::from_spec(spec, 0, &Unlimited)?;
    if bits::fills_every_page(bytes) {
        limit.will_fill(sub_filter.as_bytes());
    }
    sub_filter.append_bytes(0, bytes)?;
    sub_filter.set_num_items(source.unsigned("size")?)?;
    Ok(Some(sub_filter))
}

fn unsigned_32(source: &mut impl Source, field: &'static str) -> Result<u32, Error> {
    let value = source.unsigned(field)?;
    u32::try_from(value).map_err(|_| Error::corrupt(field, "below 2^32", value))
}
