//! The stored form of filters in the cache-line layout (`lines`): blocked Bloom filters with blocks of 64 bytes.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version: 0xf1, or 0xe1 with a window |
//! | rate | error rate |
//! | number | capacity, items |
//! | number | expansion, 0 = does not scale |
//! | number | seed |
//! | number, number | with a window: its seconds and its slices |
//! | byte | with a window: 1 if its clock is manual, or 4 if its key expires once it is empty; plus 2 if items are renewed |
//! | number | with a window: the newest slice |
//! | number | with a window: number of generations that hold items; then for each generation, oldest first: |
//! | number, number | with a window: its age in slices, its items that were renewed later |
//! | number | number of sub-filters; then for each sub-filter: |
//! | number, number | lines, items |
//! | number, number | lines per item, probes per line |
//! | byte | the payload: 0 out of line, 1 inline, 2 inline in Golomb-Rice code (`inline.rs`) |
//! | 4 bytes | checksum |
//!
//! Numbers and rates are described in `codec.rs`. The payload is the lines of all sub-filters end to end, oldest
//! sub-filter first, 64 bytes a line. A line is eight words: bit `i` of a line is bit `i % 64` of word `i / 64`. The
//! numbers of lines, of lines per item and of probes per line follow from rate, capacity and expansion. They are stored
//! so that a reader need not know the sizing formulas; here they are compared with the formulas.

use std::borrow::Cow;

use super::bitmaps::{Begun, LoadingBitmaps, Loads};
use super::codec::{HeaderKind, HeaderReader, HeaderWriter, expect, stored_parameter};
use super::inline::{self, Content};
use super::payload::Payload;
use super::value::{ChunkFormat, Stored};
use crate::bloom::bitmap::{LINE_BITS, Line};
use crate::bloom::chain;
use crate::bloom::lines::sub_filter::LineSubFilter;
use crate::bloom::lines::{LineFilter, sizing};
use crate::bloom::params::Params;
use crate::bloom::sub_filter::SubFilter;
use crate::bloom::windowing::{Generation, Generations, Windowing, check_generations};
use crate::error::Error;
use crate::hash::checksum_of_numbers;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_reserve, try_to_vec, try_with_capacity};
use crate::window::ClockSource;

/// The least bytes that a sub-filter takes in the header.
const SUB_FILTER_MIN_BYTES: usize = 4;

/// The payload of a filter: the bits of its sub-filters, end to end.
fn all_bits(sub_filters: &[LineSubFilter]) -> Payload<'_> {
    Payload::of_bitmaps(sub_filters, LineSubFilter::as_bytes)
}

/// The number of bits in all sub-filters together.
fn num_bits(sub_filters: &[LineSubFilter]) -> u64 {
    sub_filters.iter().map(SubFilter::num_bits).sum()
}

/// The payload outside the header; empty if it is inline.
fn payload_out_of_line(sub_filters: &[LineSubFilter]) -> Payload<'_> {
    inline::out_of_line(all_bits(sub_filters))
}

/// Begins a header with the parameters.
fn begin_header(kind: HeaderKind, params: &Params) -> HeaderWriter {
    let mut writer = HeaderWriter::new(kind);
    writer.rate(params.error_rate);
    writer.number(params.capacity);
    writer.number(params.expansion.into());
    writer.number(params.seed);
    writer
}

/// Ends a header with the payload, or with the byte that says that the payload is out of line.
fn finish_header(mut writer: HeaderWriter, sub_filters: &[LineSubFilter]) -> Vec<u8> {
    let set_bits = sub_filters.iter().map(SubFilter::set_bits).sum();
    inline::write(&mut writer, all_bits(sub_filters), Content::Bits(num_bits(sub_filters)), set_bits);
    writer.finish()
}

/// Writes the sub-filters of a chain: their number, then the fields of each.
fn write_sub_filters(writer: &mut HeaderWriter, sub_filters: &[LineSubFilter]) {
    writer.number(sub_filters.len() as u64);
    for sub_filter in sub_filters {
        let geometry = sub_filter.geometry();
        writer.number(geometry.num_lines);
        writer.number(sub_filter.num_items());
        writer.number(geometry.lines_per_item.into());
        writer.number(geometry.probes_per_line.into());
    }
}

/// Zeroed sub-filters, and the payload if it is inline in the header.
type Allocated<'a> = (Vec<LineSubFilter>, Option<Cow<'a, [u8]>>);

/// The sub-filters that a header describes. Memory is allocated only after the header's fields are checked.
struct Claimed<'l, L> {
    limit: &'l L,
    /// For each sub-filter: the parameters of its chain, its index in the chain, and its number of items.
    sub_filters: Vec<(Params, u64, u64)>,
    num_lines: u64,
    held_bytes: u64,
}

impl<'l, L: SizeLimit> Claimed<'l, L> {
    /// Starts with no sub-filters. `filter_bytes` is the size of the filter's struct.
    fn of(header: &[u8], filter_bytes: u64, limit: &'l L) -> Self {
        let held_bytes = filter_bytes.saturating_add(array_bytes::<u8>(header.len() as u64));
        Claimed { limit, sub_filters: Vec::new(), num_lines: 0, held_bytes }
    }

    /// Reads the sub-filters of a chain with these parameters; `most` is the largest number allowed. Returns their
    /// number, and that of their items.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::OutOfMemory`].
    fn read_chain(&mut self, reader: &mut HeaderReader<'_>, params: &Params, most: u32) -> Result<(u32, u64), Error> {
        let count = reader.number_u32("number of sub-filters")?;
        let is_within = (1..=most).contains(&count);
        Error::check_field(is_within, "number of sub-filters", format_args!("from 1 to {most}"), count)?;
        // The number is trusted only if the header is long enough for that many sub-filters.
        let (least_bytes, remaining) = (count as usize * SUB_FILTER_MIN_BYTES, reader.remaining());
        let is_valid = remaining >= least_bytes;
        Error::check_field(is_valid, "header length", format_args!("at least {least_bytes} bytes more"), remaining)?;
        self.hold(array_bytes::<LineSubFilter>(u64::from(count)));
        try_reserve(&mut self.sub_filters, count as usize)?;
        let mut all_items = 0u64;
        for index in 0..u64::from(count) {
            let geometry = sizing::sub_filter_geometry(params, index).map_err(stored_parameter)?;
            expect("num_lines", geometry.num_lines, reader.number("num_lines")?)?;
            let num_items = reader.number("num_items")?;
            all_items = all_items.saturating_add(num_items);
            self.sub_filters.push((*params, index, num_items));
            expect("lines_per_item", geometry.lines_per_item, reader.number_u32("lines_per_item")?)?;
            expect("probes_per_line", geometry.probes_per_line, reader.number_u32("probes_per_line")?)?;
            self.hold(array_bytes::<Line>(geometry.num_lines));
            self.num_lines = self.num_lines.saturating_add(geometry.num_lines);
        }
        Ok((count, all_items))
    }

    fn hold(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
    }

    /// Checks the total size, reads the payload if it is inline, and allocates the sub-filters.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::OutOfMemory`], and the errors of the limit.
    fn allocate<'a>(self, mut reader: HeaderReader<'a>) -> Result<Allocated<'a>, Error> {
        self.limit.check(0, self.held_bytes)?;
        let num_bits = self.num_lines.saturating_mul(LINE_BITS.into());
        let inline = inline::read(&mut reader, Content::Bits(num_bits))?;
        expect("header length", 0, reader.remaining())?;
        let mut sub_filters = try_with_capacity(self.sub_filters.len())?;
        for (params, index, num_items) in self.sub_filters {
            let mut sub_filter = LineSubFilter::of_chain(&params, index, 0, &Unlimited)?;
            sub_filter.set_num_items(num_items)?;
            sub_filters.push(sub_filter);
        }
        Ok((sub_filters, inline))
    }
}

/// Reads the parameters of a filter in the cache-line layout.
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

fn write_window(writer: &mut HeaderWriter, windowing: &Windowing, newest_slice: u64) {
    let Windowing { window, refresh } = windowing;
    writer.number(window.seconds());
    writer.number(window.slices().into());
    let flag = |flag: u8, is_set| if is_set { flag } else { 0 };
    let is_manual = window.clock_source() == ClockSource::Manual;
    writer.u8(flag(BY_HAND, is_manual) | flag(REFRESH, *refresh) | flag(VOLATILE, window.is_volatile()));
    writer.number(newest_slice);
}

fn read_windowing(reader: &mut HeaderReader<'_>) -> Result<Windowing, Error> {
    let (seconds, slices, flags) = (reader.number("window")?, reader.number_u32("slices")?, reader.u8("flags")?);
    let most = REFRESH | if flags & BY_HAND == 0 { VOLATILE } else { BY_HAND };
    let is_valid = flags & !most == 0;
    Error::check_field(is_valid, "flags", format_args!("no others than {most:#x}"), format_args!("{flags:#x}"))?;
    let clock_source = if flags & BY_HAND != 0 { ClockSource::Manual } else { ClockSource::System };
    let windowing = Windowing::new(seconds, slices, clock_source, flags & REFRESH != 0).map_err(stored_parameter)?;
    // Windows are always made with the fewest slices that they need.
    expect("slices", windowing.window.slices(), slices)?;
    Ok(windowing.with_volatile(flags & VOLATILE != 0))
}

/// The numbers that, together with the seed and the sizes, determine the positions of bits in a windowed filter. They
/// change once a slice or a sub-filter begins, and a dump then ends with an error.
fn places(newest_slice: Option<u64>, generations: &[Generation]) -> impl Iterator<Item = u64> {
    newest_slice.into_iter().chain(generations.iter().flat_map(|one| [u64::from(one.age), u64::from(one.len)]))
}

impl Stored for LineFilter {
    type Loading = LoadingFilter;
    const KIND: super::value::Kind = super::value::Kind::Filter;

    fn header(&self) -> Vec<u8> {
        let mut writer;
        if let (Some(windowing), Some(newest_slice)) = (self.windowing(), self.newest_slice()) {
            writer = begin_header(HeaderKind::WindowedFilter, self.params());
            write_window(&mut writer, windowing, newest_slice);
            writer.number(self.generations().len() as u64);
            for (generation, sub_filters) in self.by_generation() {
                writer.number(generation.age.into());
                writer.number(generation.renewed);
                write_sub_filters(&mut writer, sub_filters);
            }
        } else {
            writer = begin_header(HeaderKind::Filter, self.params());
            write_sub_filters(&mut writer, self.sub_filters());
        }
        finish_header(writer, self.sub_filters())
    }

    fn payload(&self) -> Payload<'_> {
        payload_out_of_line(self.sub_filters())
    }

    fn chunk_format(&self) -> ChunkFormat {
        chunk_format(self.params(), places(self.newest_slice(), self.generations()), self.sub_filters())
    }

    fn stamp(&self) -> u64 {
        self.newest_slice().unwrap_or(0)
    }
}

/// The format of the chunks. Its fingerprint covers the seed, the sizes, and `places`: all other numbers that determine
/// the positions of bits. Items may be added while a dump is read. A new sub-filter changes the fingerprint, since it
/// would not fit the header.
fn chunk_format(params: &Params, places: impl IntoIterator<Item = u64>, sub_filters: &[LineSubFilter]) -> ChunkFormat {
    let lines = sub_filters.iter().map(|sub_filter| sub_filter.geometry().num_lines);
    ChunkFormat::Checked { fingerprint: checksum_of_numbers(places.into_iter().chain(lines), params.seed) }
}

/// A partially loaded filter in the cache-line layout, with or without a window.
pub(super) type LoadingFilter = LoadingBitmaps<LineFilter>;

/// The fields of a header except the sub-filters.
#[derive(Debug, Clone)]
pub struct LineClaims {
    params: Params,
    window: Option<WindowClaims>,
}

/// The fields of a header that only windowed filters have.
#[derive(Debug, Clone)]
struct WindowClaims {
    windowing: Windowing,
    newest_slice: u64,
    generations: Vec<Generation>,
}

impl WindowClaims {
    /// Reads the window and the generations, with their sub-filters.
    fn read<L: SizeLimit>(
        reader: &mut HeaderReader<'_>,
        params: &Params,
        claimed: &mut Claimed<'_, L>,
    ) -> Result<Self, Error> {
        let windowing = read_windowing(reader)?;
        let of_generation = windowing.of_generation(params).map_err(stored_parameter)?;
        let newest_slice = reader.number("newest slice")?;
        let (count, most) = (reader.number_u32("number of generations")?, windowing.generations());
        Error::check_field(count <= most, "number of generations", format_args!("at most {most}"), count)?;
        let mut generations = try_with_capacity(count as usize)?;
        claimed.hold(size_of::<Generations>() as u64 + array_bytes::<Generation>(count.into()));
        let mut left = chain::MAX_SUB_FILTERS as u32;
        for _ in 0..count {
            let (age, renewed) = (reader.number_u32("age of a generation")?, reader.number("renewed items")?);
            let (len, num_items) = claimed.read_chain(reader, &of_generation, left)?;
            Error::check_field(renewed <= num_items, "renewed items", format_args!("at most {num_items}"), renewed)?;
            left -= len;
            generations.push(Generation { age, len, renewed });
        }
        check_generations(&windowing, &generations)?;
        Ok(WindowClaims { windowing, newest_slice, generations })
    }
}

impl Loads for LineFilter {
    type SubFilter = LineSubFilter;

    type Claims = LineClaims;

    fn begin<'a>(header: &'a [u8], limit: &impl SizeLimit) -> Result<Begun<'a, Self>, Error> {
        let kind = kind_of(header).unwrap_or(HeaderKind::Filter);
        let mut reader = HeaderReader::new(header, kind)?;
        let params = read_params(&mut reader)?;
        let mut claimed = Claimed::of(header, size_of::<LineFilter>() as u64, limit);
        let window = if kind == HeaderKind::WindowedFilter {
            Some(WindowClaims::read(&mut reader, &params, &mut claimed)?)
        } else {
            let most = if params.expansion == 0 { 1 } else { chain::MAX_SUB_FILTERS as u32 };
            claimed.read_chain(&mut reader, &params, most)?;
            None
        };
        let (sub_filters, inline) = claimed.allocate(reader)?;
        let format = match &window {
            Some(WindowClaims { newest_slice, generations, .. }) => {
                chunk_format(&params, places(Some(*newest_slice), generations), &sub_filters)
            }
            None => chunk_format(&params, [], &sub_filters),
        };
        Ok(Begun { claims: LineClaims { params, window }, format, sub_filters, inline })
    }

    fn complete(claims: &LineClaims, sub_filters: Vec<LineSubFilter>) -> Result<Self, Error> {
        match &claims.window {
            Some(WindowClaims { windowing, newest_slice, generations }) => {
                let generations = try_to_vec(generations)?;
                LineFilter::from_generations(claims.params, *windowing, *newest_slice, generations, sub_filters)
            }
            None => LineFilter::of_all(sub_filters),
        }
    }
}

/// The kind of filter whose headers begin like `bytes`; `None` if they begin like no header of our own.
pub(super) fn kind_of(bytes: &[u8]) -> Option<HeaderKind> {
    let first = *bytes.first()?;
    [HeaderKind::Filter, HeaderKind::WindowedFilter].into_iter().find(|kind| kind.begins_with(first))
}
