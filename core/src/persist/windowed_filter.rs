//! The stored form of windowed filters.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version, 0xe1 |
//! | rate, number, number, number | error rate, capacity, expansion and seed, as in `bloom.rs` |
//! | number | seconds of the window; 0 = the window is the last items |
//! | number | slices; 0 if the window is the last distinct items |
//! | byte | 1 if its clock is manual, or 4 if its key expires once the filter is empty; plus 2 if items are renewed |
//! | number | the newest slice |
//! | number | number of generations that hold items; then for each generation, oldest first: |
//! | number, number | its age in slices, its items that were renewed later |
//! | - | its sub-filters as in `bloom.rs`, from their number on |
//! | byte | the payload: 0 out of line, 1 inline, 2 inline in Golomb-Rice code (`inline.rs`) |
//! | 4 bytes | checksum |
//!
//! The payload is the lines of all generations end to end, oldest first.

use std::iter::once;

use super::bitmaps::{Begun, LoadingBitmaps, Loads};
use super::bloom::{
    Claimed, begin_header, chunk_format, finish_header, payload_out_of_line, read_params, write_sub_filters,
};
use super::codec::{HeaderKind, HeaderReader, expect, stored_parameter};
use super::payload::Payload;
use super::value::{ChunkFormat, Stored};
use crate::bloom::chain::MAX_SUB_FILTERS;
use crate::bloom::lines::sub_filter::LineSubFilter;
use crate::bloom::params::Params;
use crate::bloom::windowed_filter::{Generation, WindowedFilter, check_generations};
use crate::bloom::windowing::Windowing;
use crate::error::Error;
use crate::size_limit::{SizeLimit, array_bytes, try_to_vec, try_with_capacity};
use crate::window::{ClockSource, Window};

const BY_HAND: u8 = 1;
const REFRESH: u8 = 2;
const VOLATILE: u8 = 4;

impl Stored for WindowedFilter {
    type Loading = LoadingWindowedFilter;
    const KIND: super::value::Kind = super::value::Kind::Filter;

    fn header(&self) -> Vec<u8> {
        let mut writer = begin_header(HeaderKind::WindowedFilter, self.params());
        let windowing = self.windowing();
        let window = windowing.window();
        let is_manual = window.is_some_and(|window| window.clock_source() == ClockSource::Manual);
        let is_volatile = window.is_some_and(Window::is_volatile);
        writer.number(window.map_or(0, Window::seconds));
        writer.number(windowing.slices().map_or(0, u64::from));
        let flag = |flag: u8, is_set| if is_set { flag } else { 0 };
        writer.u8(flag(BY_HAND, is_manual) | flag(REFRESH, windowing.refresh) | flag(VOLATILE, is_volatile));
        writer.number(self.newest_slice());
        writer.number(self.generations().len() as u64);
        for (generation, sub_filters) in self.by_generation() {
            writer.number(generation.age.into());
            writer.number(generation.renewed);
            write_sub_filters(&mut writer, sub_filters);
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
        self.newest_slice()
    }
}

/// The numbers that, together with the seed and the sizes, determine the positions of bits. They change once a slice or
/// a sub-filter begins, and a dump then ends with an error.
fn places(newest_slice: u64, generations: &[Generation]) -> impl Iterator<Item = u64> {
    once(newest_slice).chain(generations.iter().flat_map(|one| [u64::from(one.age), u64::from(one.len)]))
}

/// A partially loaded windowed filter.
pub(super) type LoadingWindowedFilter = LoadingBitmaps<WindowedFilter>;

/// The fields of a header except the sub-filters.
#[derive(Debug, Clone)]
pub struct WindowClaims {
    params: Params,
    windowing: Windowing,
    newest_slice: u64,
    generations: Vec<Generation>,
}

impl Loads for WindowedFilter {
    type SubFilter = LineSubFilter;

    type Claims = WindowClaims;

    fn begin<'a>(header: &'a [u8], limit: &impl SizeLimit) -> Result<Begun<'a, Self>, Error> {
        let mut reader = HeaderReader::new(header, HeaderKind::WindowedFilter)?;
        let params = read_params(&mut reader)?;
        let windowing = read_windowing(&mut reader)?;
        let of_generation = windowing.of_generation(&params).map_err(stored_parameter)?;
        let newest_slice = reader.number("newest slice")?;
        let (count, most) = (reader.number_u32("number of generations")?, windowing.generations(params.capacity));
        Error::check_field(count <= most, "number of generations", format_args!("at most {most}"), count)?;
        let mut generations = try_with_capacity(count as usize)?;
        let filter_bytes = (size_of::<WindowedFilter>() as u64).saturating_add(array_bytes::<Generation>(count.into()));
        let mut claimed = Claimed::of(header, filter_bytes, limit);
        let mut left = MAX_SUB_FILTERS as u32;
        for _ in 0..count {
            let (age, renewed) = (reader.number_u32("age of a generation")?, reader.number("renewed items")?);
            // With an expansion of 0 a generation has a single sub-filter, which does not grow.
            let most = if params.expansion == 0 { 1 } else { left };
            let len = claimed.read_chain(&mut reader, &of_generation, most)?;
            left -= len;
            generations.push(Generation { age, len, renewed });
        }
        check_generations(&params, &windowing, &generations)?;
        let (sub_filters, inline) = claimed.allocate(reader)?;
        let format = chunk_format(&params, places(newest_slice, &generations), &sub_filters);
        // Checks before the payload is loaded everything that does not depend on it.
        WindowedFilter::check_parts(&of_generation, &generations, &sub_filters)?;
        let claims = WindowClaims { params, windowing, newest_slice, generations };
        Ok(Begun { claims, format, sub_filters, inline })
    }

    fn complete(claims: &Self::Claims, sub_filters: Vec<LineSubFilter>) -> Result<Self, Error> {
        let WindowClaims { params, windowing, newest_slice, .. } = *claims;
        WindowedFilter::from_parts(params, windowing, newest_slice, try_to_vec(&claims.generations)?, sub_filters)
    }
}

fn read_windowing(reader: &mut HeaderReader<'_>) -> Result<Windowing, Error> {
    let (seconds, slices, flags) = (reader.number("window")?, reader.number_u32("slices")?, reader.u8("flags")?);
    let refresh = flags & REFRESH != 0;
    let most = match (seconds, flags & BY_HAND) {
        (0, _) => REFRESH,
        (_, 0) => REFRESH | VOLATILE,
        _ => REFRESH | BY_HAND,
    };
    let is_valid = flags & !most == 0;
    Error::check_field(is_valid, "flags", format_args!("no others than {most:#x}"), format_args!("{flags:#x}"))?;
    let clock_source = if flags & BY_HAND != 0 { ClockSource::Manual } else { ClockSource::System };
    let windowing = match seconds {
        0 if refresh => Ok(Windowing::last_different()),
        0 => Windowing::last(slices),
        _ => Windowing::time(seconds, slices, clock_source, refresh),
    };
    let windowing = windowing.map_err(stored_parameter)?.with_volatile(flags & VOLATILE != 0);
    // Windows are always made with the fewest slices that they need.
    expect("slices", windowing.slices().unwrap_or(0), slices)?;
    Ok(windowing)
}
