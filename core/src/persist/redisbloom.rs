//! RedisBloom's own formats, to bring its data in and back.
//!
//! **Chunks.** `SCANDUMP` gives the header with iterator 1, then the sub-filters' bytes end to end in pieces of at
//! most 16 MiB that never span two sub-filters, each with 1 + the position after it; the end is 0 and nothing.
//! The header has no magic, version or checksum:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | items in all |
//! | 8 | 4 | number of sub-filters |
//! | 12 | 4 | options: 1 NOROUND, 2 ENTRIES_IS_BITS, 4 FORCE64, 8 NO_SCALING |
//! | 16 | 4 | growth |
//! | 20 | 53 each | sub-filter: bytes (8), bits (8), items (8), error rate (8, f64), bits an item (8, f64), hashes (4), capacity (8), n2 (1) |
//!
//! **RDB.** A value of type `MBbloom--` and encoding version 0 to 4 is, in the server's own unsigned numbers, doubles
//! and strings: items in all, number of sub-filters, options (from version 2 on), growth (from 4 on, before it was 2);
//! then of each sub-filter capacity, error rate, hashes, bits an item, bits and n2 (from 1 on), bytes as a string, items.
//!
//! Filters of releases before 2.0 (versions 0 and 1, or no FORCE64) have 32-bit hashes and are refused.

use super::Stored;
use super::bloom::MAGIC;
use super::classic::Claims;
use super::codec::{Reader, expect};
use crate::bloom::classic::sizing::{DEFAULT_GROWTH, NO_SCALING, Shape, validate_options};
use crate::bloom::classic::{ClassicSubFilter, check_chain};
use crate::bloom::{ClassicFilter, Line};
use crate::error::Error;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_with_capacity};

/// Highest encoding version of RedisBloom's RDB values that is known.
pub const RDB_ENCODING_NEWEST: u32 = 4;

/// The first encoding version whose values have options; those before have 32-bit hashes.
const RDB_ENCODING_OPTIONS: u32 = 2;

/// The first encoding version whose values have a growth.
const RDB_ENCODING_GROWTH: u32 = 4;

/// Largest piece that RedisBloom cuts, bytes. Ours are cut alike, so that the dumps of both are the same.
const CHUNK_BYTES: usize = 16 << 20;

/// Bytes of the header before its sub-filters.
const HEADER_BYTES: u64 = 20;

/// Bytes a sub-filter takes in the header.
const SUB_FILTER_BYTES: u64 = 53;

/// What RedisBloom appends where it can make no sub-filter.
const WITHOUT_BITS: Shape = Shape { capacity: 0, error_rate: 0.0, bits_per_item: 0.0, hashes: 0, num_bytes: 0, n2: 0 };

/// The header that `SCANDUMP 0` of RedisBloom gives.
pub fn header(filter: &ClassicFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&filter.num_items().to_le_bytes());
    bytes.extend_from_slice(&(filter.sub_filters().len() as u32).to_le_bytes());
    bytes.extend_from_slice(&filter.options().to_le_bytes());
    bytes.extend_from_slice(&filter.growth().to_le_bytes());
    for sub_filter in filter.sub_filters() {
        let shape = sub_filter.shape();
        bytes.extend_from_slice(&shape.num_bytes.to_le_bytes());
        bytes.extend_from_slice(&shape.num_bits().to_le_bytes());
        bytes.extend_from_slice(&sub_filter.num_items().to_le_bytes());
        bytes.extend_from_slice(&shape.error_rate.to_bits().to_le_bytes());
        bytes.extend_from_slice(&shape.bits_per_item.to_bits().to_le_bytes());
        bytes.extend_from_slice(&shape.hashes.to_le_bytes());
        bytes.extend_from_slice(&shape.capacity.to_le_bytes());
        bytes.push(shape.n2);
    }
    bytes
}

/// What `SCANDUMP` of RedisBloom gives for `iterator`: the next iterator and a chunk.
pub fn scandump(filter: &ClassicFilter, iterator: u64) -> (u64, Vec<u8>) {
    let Some(position) = iterator.checked_sub(1) else { return (1, header(filter)) };
    let payload = filter.payload();
    let piece = payload.piece(position, CHUNK_BYTES);
    if piece.is_empty() { (0, Vec::new()) } else { (iterator + piece.len() as u64, piece.to_vec()) }
}

/// What `LOADCHUNK` of RedisBloom does with a chunk after the header, in any order: the bytes that end before
/// `next - 1` are those of `chunk` then. A chunk lies in one sub-filter.
///
/// # Errors
/// [`Error::Corrupt`] when it does not; nothing is changed then.
pub(super) fn overwrite(filter: &mut ClassicFilter, next: u64, chunk: &[u8]) -> Result<(), Error> {
    let refused = || Error::corrupt("iterator", "one that ends a chunk", next);
    let len = chunk.len() as u64;
    let mut position = next.checked_sub(1).and_then(|end| end.checked_sub(len)).ok_or_else(refused)?;
    for sub_filter in filter.sub_filters_mut() {
        let num_bytes = sub_filter.shape().num_bytes;
        if position < num_bytes {
            return sub_filter.overwrite_bytes(position, chunk);
        }
        position -= num_bytes;
    }
    Err(refused())
}

/// The whole dump of a filter as RedisBloom's `SCANDUMP` gives it, and its `LOADCHUNK` takes it.
pub fn dump(filter: &ClassicFilter) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let mut iterator = 0;
    std::iter::from_fn(move || {
        let (next, chunk) = scandump(filter, iterator);
        iterator = next;
        (next != 0).then_some((next, chunk))
    })
}

/// Length of a header of so many sub-filters.
fn header_bytes(num_sub_filters: u32) -> u64 {
    HEADER_BYTES + SUB_FILTER_BYTES * u64::from(num_sub_filters)
}

/// Whether these bytes are to be read as a header of RedisBloom and not as one of ours. They are if they have not our
/// magic; if they have, it may be the count of items of a header whose length is RedisBloom's and whose checksum is not ours.
pub fn is_header(bytes: &[u8]) -> bool {
    if !bytes.starts_with(&MAGIC) {
        return true;
    }
    let fits = bytes.get(8..).and_then(<[u8]>::first_chunk).is_some_and(|count| {
        let count = u32::from_le_bytes(*count);
        count > 0 && header_bytes(count) == bytes.len() as u64
    });
    fits && Reader::new(bytes, MAGIC).is_err()
}

/// Reads a header and checks it.
pub(super) fn decode_header(bytes: &[u8]) -> Result<Claims, Error> {
    let mut reader = Reader::plain(bytes);
    let total_items = reader.u64("size")?;
    let count = reader.u32("nfilters")?;
    let options = reader.u32("options")?;
    let growth = reader.u32("growth")?;
    // The count is believed only once the header has that many entries, and those are bounded by its length.
    expect("header length", header_bytes(count), bytes.len() as u64)?;
    let count = if ends_without_bits(bytes) { count.saturating_sub(1) } else { count };
    let mut claims = Claims::with_capacity(options, growth_of(options, growth), count)?;
    for _ in 0..count {
        let num_bytes = reader.u64("bytes")?;
        let num_bits = reader.u64("bits")?;
        let num_items = reader.u64("size")?;
        let error_rate = reader.f64("error_rate")?;
        let bits_per_item = reader.f64("bits_per_item")?;
        let hashes = reader.u32("hashes")?;
        let shape = Shape {
            num_bytes,
            error_rate,
            bits_per_item,
            hashes,
            capacity: reader.u64("capacity")?,
            n2: reader.u8("n2")?,
        };
        if num_bytes.checked_mul(8) != Some(num_bits) {
            return Err(Error::corrupt("bits", format_args!("8 times {num_bytes} bytes"), num_bits));
        }
        claims.push(shape, num_items)?;
    }
    expect("size", claims.total_items(), total_items)?;
    Ok(claims)
}

/// Whether a header ends with a sub-filter of no bits, which is all zeros. RedisBloom appends one where it can make no
/// other (a growth of 0, a rate that can be halved no more), and takes every item for known from then on: nothing is
/// ever in it. It is left out here.
fn ends_without_bits(header: &[u8]) -> bool {
    header.len() as u64 > HEADER_BYTES + SUB_FILTER_BYTES
        && header.iter().rev().take(SUB_FILTER_BYTES as usize).all(|&byte| byte == 0)
}

/// The growth of a filter that notes this one. RedisBloom keeps the lower 32 bits of what it is asked for and may so
/// note 0 for a filter that scales; that one gets the growth that nobody's wish makes 2.
fn growth_of(options: u32, noted: u32) -> u32 {
    if noted == 0 && options & NO_SCALING == 0 { DEFAULT_GROWTH } else { noted }
}

/// The primitives of a server's RDB value, each read in turn. Errors name the field.
pub trait RdbSource {
    /// An unsigned number.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there is none.
    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error>;

    /// A double.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there is none.
    fn double(&mut self, field: &'static str) -> Result<f64, Error>;

    /// A string, given to `read`, so that nobody needs to copy it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there is none, and what `read` returns.
    fn string(&mut self, field: &'static str, read: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;
}

/// Reads a filter from the RDB value that RedisBloom wrote.
///
/// # Errors
/// [`Error::Corrupt`] naming the field that is wrong; [`Error::TooLarge`] and [`Error::OutOfMemory`], before the
/// memory of a sub-filter is set aside.
pub fn decode_rdb(
    source: &mut impl RdbSource,
    encoding_version: u32,
    limit: &(impl SizeLimit + ?Sized),
) -> Result<ClassicFilter, Error> {
    if encoding_version > RDB_ENCODING_NEWEST {
        return Err(Error::corrupt(
            "encoding version",
            format_args!("at most {RDB_ENCODING_NEWEST}"),
            encoding_version,
        ));
    }
    if encoding_version < RDB_ENCODING_OPTIONS {
        validate_options(0)?;
    }
    let total_items = source.unsigned("size")?;
    let count = source.unsigned("nfilters")?;
    let options = unsigned_32(source, "options")?;
    let growth = if encoding_version < RDB_ENCODING_GROWTH { DEFAULT_GROWTH } else { unsigned_32(source, "growth")? };
    let growth = growth_of(options, growth);
    check_chain(options, growth, count)?;
    let mut sub_filters = try_with_capacity(count as usize)?;
    let mut held_bytes = size_of::<ClassicFilter>() as u64 + array_bytes::<ClassicSubFilter>(limit, count);
    // However many the value claims, it has to bring the fields of each before it takes memory.
    for index in 0..count {
        let Some(sub_filter) = decode_rdb_sub_filter(source, held_bytes, limit)? else {
            // Left out, as in a header: see `ends_without_bits`.
            expect("sub-filter without bits", count - 1, index)?;
            break;
        };
        sub_filter.heap_layouts(&mut |layout| held_bytes += limit.allocation_bytes(layout));
        sub_filters.push(sub_filter);
    }
    let filter = ClassicFilter::from_sub_filters(options, growth, sub_filters)?;
    expect("size", filter.num_items(), total_items)?;
    Ok(filter)
}

/// `None` for one without bits.
fn decode_rdb_sub_filter(
    source: &mut impl RdbSource,
    held_bytes: u64,
    limit: &(impl SizeLimit + ?Sized),
) -> Result<Option<ClassicSubFilter>, Error> {
    let capacity = source.unsigned("capacity")?;
    let error_rate = source.double("error_rate")?;
    let hashes = unsigned_32(source, "hashes")?;
    let bits_per_item = source.double("bits_per_item")?;
    let num_bits = source.unsigned("bits")?;
    let n2 = source.unsigned("n2")?;
    let n2 = u8::try_from(n2).map_err(|_| Error::corrupt("n2", "below 2^8", n2))?;
    if num_bits % 8 != 0 {
        return Err(Error::corrupt("bits", "a multiple of 8", num_bits));
    }
    let shape = Shape { capacity, error_rate, bits_per_item, hashes, num_bytes: num_bits / 8, n2 };
    if shape == WITHOUT_BITS {
        source.string("data", &mut |bytes| expect("data length", 0, bytes.len()))?;
        expect("size", 0, source.unsigned("size")?)?;
        return Ok(None);
    }
    shape.validate()?;
    limit.check(held_bytes, array_bytes::<Line>(limit, shape.num_lines()))?;
    let mut sub_filter = None;
    source.string("data", &mut |bytes| {
        // Memory is set aside only once as many bytes are there.
        expect("data length", shape.num_bytes, bytes.len() as u64)?;
        let mut filled = ClassicSubFilter::new(shape, 0, &Unlimited)?;
        filled.append_bytes(0, bytes)?;
        sub_filter = Some(filled);
        Ok(())
    })?;
    let mut sub_filter = sub_filter.ok_or_else(|| Error::corrupt("data", "a string", "none"))?;
    sub_filter.set_num_items(source.unsigned("size")?)?;
    Ok(Some(sub_filter))
}

fn unsigned_32(source: &mut impl RdbSource, field: &'static str) -> Result<u32, Error> {
    let value = source.unsigned(field)?;
    u32::try_from(value).map_err(|_| Error::corrupt(field, "below 2^32", value))
}
