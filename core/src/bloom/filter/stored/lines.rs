//! The stored form of filters in the cache-line layout (`lines`): see docs/persistence.md#header-of-a-filter-of-lines
//! and docs/persistence.md#header-of-a-filter-with-a-window.
//!
//! The numbers of lines, of lines per item and of bits per line follow from the parameters. They are stored for readers
//! in other languages, and compared when a header is loaded.

use crate::bloom::filter::changes::MAX_SUB_FILTERS;
use crate::bloom::filter::generations::{Generation, Generations};
use crate::bloom::filter::{BloomFilter, OWN_BYTES};
use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::{Described, Spec, SubFilter, zeroed};
use crate::error::Error;
use crate::hash::checksum;
use crate::live::Value;
use crate::size_limit::{SizeLimit, array_bytes, try_reserve, try_with_capacity};
use crate::stored::ChunkFormat;
use crate::stored::codec::{HeaderKind, HeaderReader, HeaderWriter, expect, stored_parameter};
use crate::stored::inline::{self, Inline};
use crate::window::ClockSource;

/// The kinds of headers of filters in this layout.
pub(super) const KINDS: [HeaderKind; 2] = [HeaderKind::Filter, HeaderKind::WindowedFilter];

const SUB_FILTER_MIN_BYTES: usize = 4;

/// Reads at most `most` sub-filters of a filter with these parameters into `all`. Returns the number of sub-filters,
/// and the number of all their items.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::OutOfMemory`].
fn read_chain(
    reader: &mut HeaderReader<'_>,
    params: &Params,
    most: u32,
    all: &mut Described,
) -> Result<(u32, u64), Error> {
    let count = reader.number_u32("number of sub-filters")?;
    let is_within = (1..=most).contains(&count);
    Error::check_field(is_within, "number of sub-filters", format_args!("from 1 to {most}"), count)?;
    // The stored number of sub-filters is trusted only if the header is long enough for it.
    let (least_bytes, remaining) = (count as usize * SUB_FILTER_MIN_BYTES, reader.rest.len());
    let is_valid = remaining >= least_bytes;
    Error::check_field(is_valid, "header length", format_args!("at least {least_bytes} bytes more"), remaining)?;
    try_reserve(all, count as usize)?;
    let mut all_items = 0u64;
    for index in 0..u64::from(count) {
        let spec = Spec::of_lines(params, index).map_err(stored_parameter)?;
        let geometry = spec.as_lines;
        expect("num_lines", geometry.num_lines, reader.number("num_lines")?)?;
        let num_items = reader.number("num_items")?;
        all_items = all_items.saturating_add(num_items);
        expect("lines_per_item", geometry.lines_per_item, reader.number_u32("lines_per_item")?)?;
        expect("probes_per_line", geometry.probes_per_line, reader.number_u32("probes_per_line")?)?;
        all.push((spec, num_items));
    }
    Ok((count, all_items))
}

/// Reads the parameters of a filter.
///
/// # Errors
/// [`Error::Corrupt`].
fn read_params(reader: &mut HeaderReader<'_>) -> Result<Params, Error> {
    let params = Params {
        error_rate: reader.rate("error_rate")?,
        capacity: reader.number("capacity")?,
        expansion: reader.number_u32("expansion")?,
        seed: reader.number("seed")?,
    };
    params.validate().map_err(stored_parameter)?;
    Ok(params)
}

const BY_HAND: u8 = 1;
const REFRESH: u8 = 2;
const VOLATILE: u8 = 4;

fn read_windowing(reader: &mut HeaderReader<'_>) -> Result<(Windowing, u64), Error> {
    let (seconds, slices, flags) = (reader.number("window")?, reader.number_u32("slices")?, reader.u8("flags")?);
    let most = REFRESH | if flags & BY_HAND == 0 { VOLATILE } else { BY_HAND };
    let is_valid = flags & !most == 0;
    Error::check_field(is_valid, "flags", format_args!("no others than {most:#x}"), format_args!("{flags:#x}"))?;
    let clock_source = if flags & BY_HAND != 0 { ClockSource::Manual } else { ClockSource::System };
    let windowing = Windowing::new(seconds, slices, clock_source, flags & REFRESH != 0).map_err(stored_parameter)?;
    // `Windowing::new` may lower the number of slices, because a slice lasts whole seconds. A valid header has the
    // lowered number.
    expect("slices", windowing.window.slices(), slices)?;
    Ok((windowing.with_volatile(flags & VOLATILE != 0), reader.number("newest slice")?))
}

pub(in crate::bloom::filter) fn header(filter: &BloomFilter) -> Vec<u8> {
    let window = filter.windowing().zip(filter.newest_slice());
    let mut writer = HeaderWriter::new(if window.is_some() { HeaderKind::WindowedFilter } else { HeaderKind::Filter });
    let Params { error_rate, capacity, expansion, seed } = *filter.params();
    writer.rate(error_rate);
    writer.number(capacity);
    writer.number(expansion.into());
    writer.number(seed);
    if let Some((windowing, newest_slice)) = window {
        let Windowing { window, refresh } = windowing;
        writer.number(window.seconds());
        writer.number(window.slices().into());
        let flag = |flag: u8, is_set| if is_set { flag } else { 0 };
        let is_manual = window.clock_source() == ClockSource::Manual;
        writer.u8(flag(BY_HAND, is_manual) | flag(REFRESH, *refresh) | flag(VOLATILE, window.is_volatile()));
        writer.number(newest_slice);
        writer.number(filter.generations().len() as u64);
    }
    for (generation, sub_filters) in filter.by_generation() {
        if window.is_some() {
            writer.number(generation.age.into());
            writer.number(generation.renewed);
        }
        writer.number(generation.len.into());
        for sub_filter in sub_filters {
            let geometry = sub_filter.spec.as_lines;
            writer.number(geometry.num_lines);
            writer.number(sub_filter.num_items);
            writer.number(geometry.lines_per_item.into());
            writer.number(geometry.probes_per_line.into());
        }
    }
    let num_bits = filter.chain().iter().map(|sub_filter| sub_filter.spec.num_bits).sum();
    let set_bits = filter.chain().iter().map(|one| one.set_bits).sum();
    inline::write(&mut writer, filter.bitmaps(), num_bits, set_bits);
    writer.finish()
}

/// The format of the chunks of a dump. The fingerprint seeds their checksums, so that chunks are accepted only with a
/// matching header. It covers what determines the positions of bits: the seed, the sizes of the sub-filters, and the
/// slices that have items.
pub(in crate::bloom::filter) fn chunk_format(filter: &BloomFilter) -> ChunkFormat {
    let generations = filter.generations().iter().flat_map(|one| [u64::from(one.age), u64::from(one.len)]);
    let lines = filter.chain().iter().map(|sub_filter| sub_filter.spec.as_lines.num_lines);
    let numbers: Vec<u64> = filter.newest_slice().into_iter().chain(generations).chain(lines).collect();
    ChunkFormat::Checked { fingerprint: checksum(bytemuck::cast_slice(&numbers), filter.params().seed) }
}

/// Reads a header. Returns the filter with zeroed bitmaps, and the payload if the header contains it. Memory is
/// allocated only after all fields and the size are checked.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::OutOfMemory`], and the errors of the size limit.
pub(super) fn begin<'a>(header: &'a [u8], limit: &impl SizeLimit) -> Result<(BloomFilter, Inline<'a>), Error> {
    let kind = HeaderKind::among(KINDS, header).unwrap_or(HeaderKind::Filter);
    let mut reader = HeaderReader::new(header, kind)?;
    let params = read_params(&mut reader)?;
    let (mut described, mut window) = (Described::new(), None);
    let mut held_bytes = OWN_BYTES + array_bytes::<u8>(header.len() as u64);
    if kind == HeaderKind::WindowedFilter {
        let (windowing, newest_slice) = read_windowing(&mut reader)?;
        let generations = read_generations(&mut reader, &params, &windowing, &mut described)?;
        held_bytes += size_of::<Generations>() as u64 + array_bytes::<Generation>(generations.len() as u64);
        window = Some((windowing, newest_slice, generations));
    } else {
        let most = if params.expansion == 0 { 1 } else { MAX_SUB_FILTERS as u32 };
        read_chain(&mut reader, &params, most, &mut described)?;
        if described.len() == 1 {
            // A single sub-filter is stored in the filter itself, so `OWN_BYTES` includes it.
            held_bytes -= size_of::<SubFilter>() as u64;
        }
    }
    limit.check(0, described.iter().fold(held_bytes, |sum, (spec, _)| sum.saturating_add(spec.sub_filter_bytes())))?;
    let num_bits = described.iter().fold(0u64, |sum, (spec, _)| sum.saturating_add(spec.num_bits));
    let inline = inline::read(&mut reader, num_bits)?;
    expect("header length", 0, reader.rest.len())?;
    let sub_filters = zeroed(described)?;
    let filter = match window {
        Some((windowing, newest_slice, generations)) => {
            BloomFilter::from_generations(params, windowing, newest_slice, generations, sub_filters)?
        }
        None => BloomFilter::from_sub_filters(sub_filters)?,
    };
    Ok((filter, inline))
}

/// Reads the generations of a windowed filter (its slices that have items), and their sub-filters into `described`.
fn read_generations(
    reader: &mut HeaderReader<'_>,
    params: &Params,
    windowing: &Windowing,
    described: &mut Described,
) -> Result<Vec<Generation>, Error> {
    let of_generation = windowing.of_generation(params).map_err(stored_parameter)?;
    let (count, most) = (reader.number_u32("number of generations")?, windowing.generations());
    Error::check_field(count <= most, "number of generations", format_args!("at most {most}"), count)?;
    let (mut generations, mut end) = (try_with_capacity(count as usize)?, most);
    for _ in 0..count {
        let (age, renewed) = (reader.number_u32("age of a generation")?, reader.number("renewed items")?);
        // The oldest generation is first.
        Error::check_field(age < end, "age of a generation", format_args!("less than {end}"), age)?;
        end = age;
        let left = (MAX_SUB_FILTERS - described.len()) as u32;
        let (len, num_items) = read_chain(reader, &of_generation, left, described)?;
        Error::check_field(renewed <= num_items, "renewed items", format_args!("at most {num_items}"), renewed)?;
        generations.push(Generation { age, len, renewed });
    }
    Ok(generations)
}
