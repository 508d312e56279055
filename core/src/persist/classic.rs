//! Filters in RedisBloom's layout, stored in our format: the table stands in [`bloom`](super::bloom). The one validator
//! of such filters is here, for this format and for RedisBloom's own.

use std::alloc::Layout;

use super::bitmaps::ArrivingBitmaps;
use super::bloom::MAGIC;
use super::codec::{Reader, Writer, expect};
use super::{ChunkFormat, Loading, Payload, Stored, redisbloom};
use crate::bloom::classic::sizing::Shape;
use crate::bloom::classic::{ClassicSubFilter, check_chain, params_of};
use crate::bloom::{ClassicFilter, Line};
use crate::error::Error;
use crate::hash::checksum_of_numbers;
use crate::size_limit::{SizeLimit, Unlimited, array_bytes, try_with_capacity};

/// Layout byte of classic filters.
pub(super) const LAYOUT_CLASSIC: u8 = 1;

/// Bytes a sub-filter takes in the header.
const SUB_FILTER_BYTES: usize = 48;

impl Stored for ClassicFilter {
    type Loading = LoadingClassic;

    fn header(&self) -> Vec<u8> {
        let params = self.params();
        let mut writer = Writer::new(MAGIC);
        writer.u8(LAYOUT_CLASSIC);
        writer.u16(self.options() as u16);
        writer.u64(params.seed);
        writer.f64(params.error_rate);
        writer.u64(params.capacity);
        writer.u32(self.growth());
        writer.u32(self.sub_filters().len() as u32);
        for sub_filter in self.sub_filters() {
            let shape = sub_filter.shape();
            writer.u64(shape.num_bytes);
            writer.u64(sub_filter.num_items());
            writer.u64(shape.capacity);
            writer.f64(shape.error_rate);
            writer.f64(shape.bits_per_item);
            writer.u32(shape.hashes);
            writer.u8(shape.n2);
            writer.u8(0);
            writer.u16(0);
        }
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        Payload::of_bitmaps(self.sub_filters(), ClassicSubFilter::as_bytes)
    }

    fn shape(&self) -> u64 {
        shape(self.sub_filters())
    }

    fn scandump(&self, iterator: u64) -> (u64, Vec<u8>) {
        redisbloom::scandump(self, iterator)
    }

    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        redisbloom::overwrite(self, next, chunk)
    }
}

/// As [`Stored::shape`]. Items may be added while a dump is read; another sub-filter would move what comes after.
fn shape(sub_filters: &[ClassicSubFilter]) -> u64 {
    let sizes = sub_filters.iter().map(|sub_filter| sub_filter.shape().num_bytes);
    checksum_of_numbers(sizes, u64::from(LAYOUT_CLASSIC))
}

/// What a header claims of a filter: nothing of it is believed yet.
#[derive(Debug)]
pub(super) struct Claims {
    pub(super) options: u32,
    pub(super) growth: u32,
    pub(super) sub_filters: Vec<(Shape, u64)>,
}

impl Claims {
    /// No sub-filter yet, of `count` that a filter of these options can have.
    pub(super) fn with_capacity(options: u32, growth: u32, count: u32) -> Result<Self, Error> {
        check_chain(options, growth, u64::from(count))?;
        Ok(Claims { options, growth, sub_filters: try_with_capacity(count as usize)? })
    }

    /// Adds a sub-filter, checked as far as it can be without its bits.
    pub(super) fn push(&mut self, shape: Shape, num_items: u64) -> Result<(), Error> {
        shape.validate()?;
        shape.validate_items(num_items)?;
        self.sub_filters.push((shape, num_items));
        Ok(())
    }

    /// Items in all.
    pub(super) fn total_items(&self) -> u64 {
        // Up to 2^60 a sub-filter of as many bits, so the sum may pass 64 bits, but never in memory.
        self.sub_filters.iter().fold(0, |sum, (_, num_items)| sum.saturating_add(*num_items))
    }

    /// Checks the size of the whole, then sets the memory aside.
    fn allocate(&self, header: &[u8], limit: &impl SizeLimit) -> Result<Vec<ClassicSubFilter>, Error> {
        let lists = array_bytes::<u8>(limit, header.len() as u64)
            .saturating_add(array_bytes::<ClassicSubFilter>(limit, self.sub_filters.len() as u64));
        let bitmaps = self.sub_filters.iter().map(|(shape, _)| array_bytes::<Line>(limit, shape.num_lines()));
        limit.check(size_of::<ClassicFilter>() as u64, bitmaps.fold(lists, u64::saturating_add))?;
        let mut sub_filters = try_with_capacity(self.sub_filters.len())?;
        for &(shape, num_items) in &self.sub_filters {
            let mut sub_filter = ClassicSubFilter::new(shape, 0, &Unlimited)?;
            sub_filter.set_num_items(num_items)?;
            sub_filters.push(sub_filter);
        }
        Ok(sub_filters)
    }
}

/// A classic filter whose bits are arriving. Its memory is all there from the start, zeroed.
#[derive(Debug)]
pub struct LoadingClassic {
    options: u32,
    growth: u32,
    chunk_format: ChunkFormat,
    arriving: ArrivingBitmaps<ClassicSubFilter>,
}

fn decode(header: &[u8]) -> Result<Claims, Error> {
    let mut reader = Reader::new(header, MAGIC)?;
    expect("layout", LAYOUT_CLASSIC, reader.u8("layout")?)?;
    let options = u32::from(reader.u16("options")?);
    expect("seed", 0, reader.u64("seed")?)?;
    let error_rate = reader.f64("error_rate")?;
    let capacity = reader.u64("capacity")?;
    let growth = reader.u32("growth")?;
    let count = reader.u32("number of sub-filters")?;
    // The count is believed only once the header has that many entries, and those are bounded by its length.
    expect("header length", u64::from(count) * SUB_FILTER_BYTES as u64, reader.remaining() as u64)?;
    let mut claims = Claims::with_capacity(options, growth, count)?;
    for _ in 0..count {
        let num_bytes = reader.u64("num_bytes")?;
        let num_items = reader.u64("num_items")?;
        let shape = Shape {
            num_bytes,
            capacity: reader.u64("capacity")?,
            error_rate: reader.f64("error_rate")?,
            bits_per_item: reader.f64("bits_per_item")?,
            hashes: reader.u32("hashes")?,
            n2: reader.u8("n2")?,
        };
        expect("reserved bytes", 0, reader.u8("reserved bytes")?)?;
        expect("reserved bytes", 0, reader.u16("reserved bytes")?)?;
        claims.push(shape, num_items)?;
    }
    if let Some((first, _)) = claims.sub_filters.first() {
        let params = params_of(options, growth, first);
        expect("error_rate", params.error_rate, error_rate)?;
        expect("capacity", params.capacity, capacity)?;
    }
    Ok(claims)
}

impl LoadingClassic {
    /// The filter as it stands.
    fn take(&mut self) -> Result<ClassicFilter, Error> {
        ClassicFilter::from_sub_filters(self.options, self.growth, std::mem::take(&mut self.arriving.sub_filters))
    }
}

impl Loading for LoadingClassic {
    type Value = ClassicFilter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let (claims, chunk_format) = if redisbloom::is_header(header) {
            (redisbloom::decode_header(header)?, ChunkFormat::Plain)
        } else {
            (decode(header)?, ChunkFormat::Checked)
        };
        let sub_filters = claims.allocate(header, limit)?;
        let shape = shape(&sub_filters);
        let arriving = ArrivingBitmaps::new(header, sub_filters, shape)?;
        Ok(LoadingClassic { options: claims.options, growth: claims.growth, chunk_format, arriving })
    }

    fn header(&self) -> &[u8] {
        self.arriving.header()
    }

    fn shape(&self) -> u64 {
        self.arriving.shape()
    }

    fn received_bytes(&self) -> u64 {
        self.arriving.received_bytes()
    }

    fn total_bytes(&self) -> u64 {
        self.arriving.total_bytes()
    }

    fn received(&self) -> Payload<'_> {
        self.arriving.received()
    }

    fn chunk_format(&self) -> ChunkFormat {
        self.chunk_format
    }

    fn next_memory(&self, len: usize) -> &[u8] {
        self.arriving.next_memory(len)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.arriving.push(bytes)
    }

    fn finish(&mut self) -> Result<ClassicFilter, Error> {
        expect("payload length", self.total_bytes(), self.received_bytes())?;
        self.take()
    }

    fn finish_with_zeros(&mut self) -> Option<ClassicFilter> {
        if self.chunk_format == ChunkFormat::Plain { self.take().ok() } else { None }
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.arriving.heap_layouts(visit);
    }

    fn try_clone(&self) -> Result<Self, Error> {
        Ok(LoadingClassic { arriving: self.arriving.try_clone()?, ..*self })
    }
}
