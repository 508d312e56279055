//! Filters of lines, stored.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version, 0xf1 |
//! | rate | error rate |
//! | number | capacity, items |
//! | number | expansion, 0 = does not scale |
//! | number | seed |
//! | number | sub-filters; then of each: |
//! | number, number | lines, items |
//! | number, number | lines an item, probes a line |
//! | byte | the payload: 0 apart, 1 enclosed, 2 enclosed by gaps (`enclosed.rs`) |
//! | 4 bytes | checksum |
//!
//! Numbers and rates are described in `codec.rs`. The payload is the sub-filters' lines end to end, oldest first, 64 bytes
//! a line. A line is eight words: bit `i` of a line is bit `i % 64` of word `i / 64`. Lines, lines an item and probes a
//! line follow from rate, capacity and expansion. They are stored so that a reader need not know the sizing formulas, and
//! compared with the formulas here.

use super::bitmaps::{Arrives, Begun, LoadingChain};
use super::codec::{Kind, Reader, Writer, expect, stored_parameter};
use super::enclosed::{self, Content, Found};
use super::payload::Payload;
use super::value::{ChunkFormat, Stored};
use crate::bloom::bitmap::{LINE_BITS, Line};
use crate::bloom::chain::SubFilter;
use crate::bloom::lines::sub_filter::LineSubFilter;
use crate::bloom::lines::{LineFilter, sizing};
use crate::bloom::params::Params;
use crate::error::Error;
use crate::hash::checksum_of_numbers;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_with_capacity};

/// Bytes that a sub-filter takes in the header, at least.
const SUB_FILTER_MIN_BYTES: usize = 4;

/// Bytes that it takes mostly.
const SUB_FILTER_BYTES: usize = 8;

/// Bytes of the other fields, mostly.
const OTHER_BYTES: usize = 32;

/// All bits of all sub-filters, end to end.
fn all_bits(filter: &LineFilter) -> Payload<'_> {
    Payload::of_bitmaps(filter.sub_filters(), LineSubFilter::as_bytes)
}

impl Stored for LineFilter {
    type Loading = LoadingFilter;

    fn header(&self) -> Vec<u8> {
        let (params, payload) = (self.params(), all_bits(self));
        let (num_bytes, len) = (payload.len(), self.sub_filters().len());
        let enclosed_bytes = if enclosed::is_enclosed(num_bytes) { num_bytes as usize } else { 0 };
        let mut writer = Writer::new(Kind::Filter, OTHER_BYTES + SUB_FILTER_BYTES * len + enclosed_bytes);
        writer.rate(params.error_rate);
        writer.number(params.capacity);
        writer.number(params.expansion.into());
        writer.number(params.seed);
        writer.number(len as u64);
        for sub_filter in self.sub_filters() {
            let geometry = sub_filter.geometry();
            writer.number(geometry.num_lines);
            writer.number(sub_filter.num_items());
            writer.number(geometry.lines_per_item.into());
            writer.number(geometry.probes_per_line.into());
        }
        let set_bits = self.sub_filters().iter().map(SubFilter::set_bits).sum();
        enclosed::write(&mut writer, payload, Content::Bits(num_bytes * 8), set_bits);
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        let payload = all_bits(self);
        if enclosed::is_enclosed(payload.len()) { payload.up_to(0) } else { payload }
    }

    fn chunk_format(&self) -> ChunkFormat {
        chunk_format(self.params(), self.sub_filters())
    }
}

/// The format, with a fingerprint of seed and sizes. Items may be added while a dump is read, but another sub-filter
/// would no longer fit the header.
fn chunk_format(params: &Params, sub_filters: &[LineSubFilter]) -> ChunkFormat {
    let lines = sub_filters.iter().map(|sub_filter| sub_filter.geometry().num_lines);
    ChunkFormat::Checked { fingerprint: checksum_of_numbers(lines, params.seed) }
}

/// A filter of lines whose bits are arriving.
pub(super) type LoadingFilter = LoadingChain<LineSubFilter>;

impl Arrives for LineSubFilter {
    type Claims = (Params, ChunkFormat);

    fn begin<'a>(header: &'a [u8], limit: &impl SizeLimit) -> Result<Begun<'a, Self>, Error> {
        let mut reader = Reader::new(header, Kind::Filter)?;
        let params = Params {
            error_rate: reader.rate("error_rate")?,
            capacity: reader.number("capacity")?,
            expansion: reader.number_u32("expansion")?,
            seed: reader.number("seed")?,
        };
        params.validate().map_err(stored_parameter)?;
        let count = reader.number_u32("number of sub-filters")?;
        let most = if params.expansion == 0 { 1 } else { LineFilter::MAX_SUB_FILTERS as u32 };
        if !(1..=most).contains(&count) {
            return Err(Error::corrupt("number of sub-filters", format_args!("from 1 to {most}"), count));
        }
        // The count is trusted only once the header is as long as that many entries need.
        let (least_bytes, remaining) = (count as usize * SUB_FILTER_MIN_BYTES, reader.remaining());
        if remaining < least_bytes {
            return Err(Error::corrupt("header length", format_args!("at least {least_bytes} bytes more"), remaining));
        }
        let mut held_bytes = size_of::<LineFilter>() as u64;
        let mut more = |bytes: u64| held_bytes = held_bytes.saturating_add(bytes);
        more(array_bytes::<u8>(limit, header.len() as u64));
        more(array_bytes::<LineSubFilter>(limit, u64::from(count)));
        let mut items = try_with_capacity(count as usize)?;
        let mut num_lines = 0u64;
        for index in 0..u64::from(count) {
            let geometry = sizing::sub_filter_geometry(&params, index).map_err(stored_parameter)?;
            expect("num_lines", geometry.num_lines, reader.number("num_lines")?)?;
            items.push(reader.number("num_items")?);
            expect("lines_per_item", geometry.lines_per_item, reader.number_u32("lines_per_item")?)?;
            expect("probes_per_line", geometry.probes_per_line, reader.number_u32("probes_per_line")?)?;
            more(array_bytes::<Line>(limit, geometry.num_lines));
            num_lines = num_lines.saturating_add(geometry.num_lines);
        }
        limit.check(0, held_bytes)?;
        let enclosed = match enclosed::read(reader, Content::Bits(num_lines.saturating_mul(LINE_BITS.into())))? {
            Found::Enclosed(payload) => Some(payload),
            Found::Apart(reader) => {
                expect("header length", 0, reader.remaining())?;
                None
            }
        };
        let mut sub_filters = try_with_capacity(items.len())?;
        for (index, num_items) in (0..).zip(items) {
            let mut sub_filter = LineSubFilter::of_chain(&params, index, 0, &Unlimited)?;
            sub_filter.set_num_items(num_items)?;
            sub_filters.push(sub_filter);
        }
        let claims = (params, chunk_format(&params, &sub_filters));
        Ok(Begun { claims, sub_filters, enclosed })
    }

    fn chunk_format(&(_, chunk_format): &Self::Claims) -> ChunkFormat {
        chunk_format
    }

    fn chain(&(params, _): &Self::Claims, sub_filters: Vec<Self>) -> Result<LineFilter, Error> {
        LineFilter::from_sub_filters(params, sub_filters)
    }
}
