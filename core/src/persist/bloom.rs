//! Filters of lines, stored.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `RCBF` |
//! | 4 | 1 | version |
//! | 5 | 3 | 0 |
//! | 8 | 8 | seed |
//! | 16 | 8 | error rate, f64 |
//! | 24 | 8 | capacity, items |
//! | 32 | 4 | expansion, 0 = does not scale |
//! | 36 | 4 | number of sub-filters |
//! | 40 | 24 each | sub-filter: lines (8), items (8), lines an item (4), probes a line (4) |
//! | end-8 | 8 | checksum |
//!
//! The payload is the sub-filters' lines end to end, oldest first, 64 bytes a line. A line is eight words: bit `i` of a
//! line is bit `i % 64` of word `i / 64`. Lines, lines an item and probes a line follow from rate, capacity and
//! expansion. They are stored so that a reader need not know the sizing formulas, and compared with the formulas here.

use super::bitmaps::{Arrives, LoadingChain};
use super::codec::{Reader, Writer, expect, stored_parameter};
use super::payload::Payload;
use super::value::{ChunkFormat, Stored};
use crate::bloom::bitmap::Line;
use crate::bloom::chain::SubFilter;
use crate::bloom::lines::sub_filter::LineSubFilter;
use crate::bloom::lines::{LineFilter, sizing};
use crate::bloom::params::Params;
use crate::error::Error;
use crate::hash::checksum_of_numbers;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_with_capacity};

/// Magic at the start of a header of a filter of lines. Part of the stored format.
pub(crate) const MAGIC: [u8; 4] = *b"RCBF";

/// Bytes a sub-filter takes in the header.
const SUB_FILTER_BYTES: usize = 24;

impl Stored for LineFilter {
    type Loading = LoadingFilter;

    fn header(&self) -> Vec<u8> {
        let params = self.params();
        let mut writer = Writer::new(MAGIC, 40 + SUB_FILTER_BYTES * self.sub_filters().len());
        writer.u8(0);
        writer.u16(0);
        writer.u64(params.seed);
        writer.f64(params.error_rate);
        writer.u64(params.capacity);
        writer.u32(params.expansion);
        writer.u32(self.sub_filters().len() as u32);
        for sub_filter in self.sub_filters() {
            let geometry = sub_filter.geometry();
            writer.u64(geometry.num_lines);
            writer.u64(sub_filter.num_items());
            writer.u32(geometry.lines_per_item);
            writer.u32(geometry.probes_per_line);
        }
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        Payload::of_bitmaps(self.sub_filters(), LineSubFilter::as_bytes)
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

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<(Self::Claims, Vec<Self>), Error> {
        let mut reader = Reader::new(header, MAGIC)?;
        expect("reserved byte", 0, reader.u8("reserved byte")?)?;
        expect("reserved bytes", 0, reader.u16("reserved bytes")?)?;
        let params = Params {
            seed: reader.u64("seed")?,
            error_rate: reader.f64("error_rate")?,
            capacity: reader.u64("capacity")?,
            expansion: reader.u32("expansion")?,
        };
        params.validate().map_err(stored_parameter)?;
        let count = reader.u32("number of sub-filters")?;
        let most = if params.expansion == 0 { 1 } else { LineFilter::MAX_SUB_FILTERS as u32 };
        if !(1..=most).contains(&count) {
            return Err(Error::corrupt("number of sub-filters", format_args!("from 1 to {most}"), count));
        }
        // The count is trusted only once the header is as long as that many entries need.
        expect("header length", u64::from(count) * SUB_FILTER_BYTES as u64, reader.remaining() as u64)?;
        let mut held_bytes = size_of::<LineFilter>() as u64;
        let mut more = |bytes: u64| held_bytes = held_bytes.saturating_add(bytes);
        more(array_bytes::<u8>(limit, header.len() as u64));
        more(array_bytes::<LineSubFilter>(limit, u64::from(count)));
        let mut items = try_with_capacity(count as usize)?;
        for index in 0..u64::from(count) {
            let geometry = sizing::sub_filter_geometry(&params, index).map_err(stored_parameter)?;
            expect("num_lines", geometry.num_lines, reader.u64("num_lines")?)?;
            items.push(reader.u64("num_items")?);
            expect("lines_per_item", geometry.lines_per_item, reader.u32("lines_per_item")?)?;
            expect("probes_per_line", geometry.probes_per_line, reader.u32("probes_per_line")?)?;
            more(array_bytes::<Line>(limit, geometry.num_lines));
        }
        limit.check(0, held_bytes)?;
        let mut sub_filters = try_with_capacity(items.len())?;
        for (index, num_items) in (0..).zip(items) {
            let capacity = sizing::sub_filter_capacity(&params, index).unwrap_or(params.capacity);
            let rate = sizing::sub_filter_rate(&params, index);
            let mut sub_filter = LineSubFilter::new(rate, capacity, 0, &Unlimited)?;
            sub_filter.set_num_items(num_items)?;
            sub_filters.push(sub_filter);
        }
        let chunk_format = chunk_format(&params, &sub_filters);
        Ok(((params, chunk_format), sub_filters))
    }

    fn chunk_format(&(_, chunk_format): &Self::Claims) -> ChunkFormat {
        chunk_format
    }

    fn chain(&(params, _): &Self::Claims, sub_filters: Vec<Self>) -> Result<LineFilter, Error> {
        LineFilter::from_sub_filters(params, sub_filters)
    }
}
