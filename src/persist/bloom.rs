//! A chain of line filters, stored.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `RCBF` |
//! | 4 | 1 | version |
//! | 5 | 1 | layout: 0 = lines |
//! | 6 | 2 | 0 |
//! | 8 | 8 | seed |
//! | 16 | 8 | error rate, f64 |
//! | 24 | 8 | capacity, items |
//! | 32 | 4 | expansion, 0 = does not scale |
//! | 36 | 4 | number of sub-filters |
//! | 40 | 24 each | sub-filter: lines (8), items (8), lines an item (4), probes a line (4) |
//! | end-8 | 8 | checksum |
//!
//! The payload is the sub-filters' lines end to end, oldest first, 64 bytes a line: eight words, bit `i` of a
//! line is bit `i % 64` of word `i / 64`. Lines, lines an item and probes a line follow from rate, capacity and
//! expansion; they are stored so that a reader need not know the sizing formulas, and compared with them here.

use std::alloc::Layout;
use std::borrow::Cow;

use super::codec::{Reader, Writer, expect, stored_parameter};
use super::{Loading, Payload, Stored};
use crate::bloom::{Filter, Params, ScalableFilter, math};
use crate::error::Error;
use crate::hash::checksum;
use crate::limit::{SizeLimit, Unlimited};

/// How a header of a filter begins.
pub const MAGIC: [u8; 4] = *b"RCBF";

/// Layout byte of line filters.
const LAYOUT_LINES: u8 = 0;

/// Bytes a sub-filter takes in the header.
const SUB_FILTER_BYTES: usize = 24;

impl Stored for ScalableFilter {
    type Loading = LoadingFilter;

    fn header(&self) -> Vec<u8> {
        let params = self.params();
        let mut writer = Writer::new(MAGIC);
        writer.u8(LAYOUT_LINES);
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
        Payload::new(self.sub_filters().iter().map(|sub_filter| Cow::Borrowed(sub_filter.as_bytes())).collect())
    }

    fn shape(&self) -> u64 {
        shape(self.params(), self.sub_filters())
    }
}

/// A filter whose bits are arriving. Its memory is all there from the start, zeroed.
#[derive(Debug)]
pub struct LoadingFilter {
    params: Params,
    sub_filters: Vec<Filter>,
    header: Vec<u8>,
    received_bytes: u64,
    total_bytes: u64,
}

/// As [`Stored::shape`]. Items may be added while a dump is read; another sub-filter would move what comes after.
fn shape(params: &Params, sub_filters: &[Filter]) -> u64 {
    let lines: Vec<u8> =
        sub_filters.iter().flat_map(|sub_filter| sub_filter.geometry().num_lines.to_le_bytes()).collect();
    checksum(&lines, params.seed)
}

impl Loading for LoadingFilter {
    type Value = ScalableFilter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let mut reader = Reader::new(header, MAGIC)?;
        expect("layout", LAYOUT_LINES, reader.u8("layout")?)?;
        expect("reserved bytes", 0, reader.u16("reserved bytes")?)?;
        let params = Params {
            seed: reader.u64("seed")?,
            error_rate: reader.f64("error_rate")?,
            capacity: reader.u64("capacity")?,
            expansion: reader.u32("expansion")?,
        };
        params.validate().map_err(stored_parameter)?;
        let count = reader.u32("number of sub-filters")?;
        if count == 0 || (count > 1 && params.expansion == 0) {
            return Err(Error::corrupt("number of sub-filters", "1, or more if the filter scales", count));
        }
        // The count is believed only once the header has that many entries, and those are bounded by its length.
        expect("header length", u64::from(count) * SUB_FILTER_BYTES as u64, reader.remaining() as u64)?;
        let mut items = Vec::with_capacity(count as usize);
        let mut total_bytes = 0u64;
        let mut total_items = 0u64;
        for index in 0..count {
            let geometry = math::sub_filter_geometry(&params, u64::from(index)).map_err(stored_parameter)?;
            expect("num_lines", geometry.num_lines, reader.u64("num_lines")?)?;
            let num_items = reader.u64("num_items")?;
            expect("lines_per_item", geometry.lines_per_item, reader.u32("lines_per_item")?)?;
            expect("probes_per_line", geometry.probes_per_line, reader.u32("probes_per_line")?)?;
            let sum =
                |a: u64, b: u64| a.checked_add(b).ok_or_else(|| Error::corrupt("num_items", "a sum below 2^64", b));
            total_items = sum(total_items, num_items)?;
            total_bytes = sum(total_bytes, geometry.num_lines.saturating_mul(64))?;
            items.push(num_items);
        }
        limit.check(0, total_bytes)?;
        let mut sub_filters = Vec::with_capacity(items.len());
        for (index, num_items) in items.into_iter().enumerate() {
            let index = index as u64;
            let capacity = math::sub_filter_capacity(&params, index).unwrap_or(params.capacity);
            let rate = math::sub_filter_rate(&params, index);
            let mut sub_filter = Filter::new(rate, capacity, 0, &Unlimited)?;
            sub_filter.set_num_items(num_items);
            sub_filters.push(sub_filter);
        }
        Ok(LoadingFilter { params, sub_filters, header: header.to_vec(), received_bytes: 0, total_bytes })
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn shape(&self) -> u64 {
        shape(&self.params, &self.sub_filters)
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        let mut left = self.received_bytes;
        let mut parts = Vec::new();
        for sub_filter in &self.sub_filters {
            let bytes = sub_filter.as_bytes();
            let len = left.min(bytes.len() as u64);
            parts.push(Cow::Borrowed(&bytes[..len as usize]));
            left -= len;
        }
        Payload::new(parts)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes;
        if bytes.len() as u64 > missing {
            return Err(Error::corrupt("payload length", format_args!("at most {missing} bytes more"), bytes.len()));
        }
        let mut bytes = bytes;
        let mut position = self.received_bytes;
        for sub_filter in &mut self.sub_filters {
            let size = sub_filter.as_bytes().len() as u64;
            if position >= size {
                position -= size;
                continue;
            }
            let len = bytes.len().min((size - position) as usize);
            let (now, later) = bytes.split_at(len);
            sub_filter.write_bytes(position, now)?;
            self.received_bytes += len as u64;
            bytes = later;
            position = 0;
            if bytes.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ScalableFilter, Error> {
        expect("payload length", self.total_bytes, self.received_bytes)?;
        ScalableFilter::from_sub_filters(self.params, std::mem::take(&mut self.sub_filters))
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[Filter]>(&self.sub_filters));
        self.sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        visit(Layout::for_value(self.header.as_slice()));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = self.sub_filters.iter().map(Filter::try_clone).collect::<Result<_, _>>()?;
        Ok(LoadingFilter { sub_filters, header: self.header.clone(), ..*self })
    }
}
