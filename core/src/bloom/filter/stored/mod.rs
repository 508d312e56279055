//! The stored form of Bloom filters, and partially loaded filters. Filters in RedisBloom's layout have RedisBloom's
//! format.

use std::alloc::Layout;

use super::BloomFilter;
use crate::bloom::sub_filter::num_bytes;
use crate::error::Error;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_to_vec};
use crate::stored::codec::{HeaderKind, HeaderReader, expect};
use crate::stored::payload::Payload;
use crate::stored::{ChunkFormat, Partial};
use redisbloom::header_bytes;

pub(crate) mod lines;
pub(crate) mod redisbloom;

/// Whether `bytes` are a header in RedisBloom's format. RedisBloom's headers begin with the number of items, which may
/// look like the kind in this library's headers. Such a header is RedisBloom's if it has the right length for
/// RedisBloom's format and does not end with this library's checksum.
pub fn is_redisbloom_header(bytes: &[u8]) -> bool {
    let Some(kind) = HeaderKind::among(lines::KINDS, bytes) else { return true };
    let fits = bytes.get(8..).and_then(<[u8]>::first_chunk).is_some_and(|count| {
        let count = u32::from_le_bytes(*count);
        count > 0 && header_bytes(count) == bytes.len() as u64
    });
    fits && HeaderReader::new(bytes, kind).is_err()
}

/// Whether the header of a dump, of any version, is that of a windowed filter or counter.
pub fn has_window(header: &[u8]) -> bool {
    HeaderKind::among([HeaderKind::WindowedFilter, HeaderKind::WindowedCounter], header).is_some()
}

/// A partially loaded filter. Its bitmaps are allocated, and zeroed, when the header is read. A filter that is set
/// apart has none, and so no memory that the next bytes would fill.
///
/// Invariant: no bit after the first `received_bytes` bytes is set, if all bitmaps are put end to end.
#[derive(Debug)]
pub struct PartialFilter {
    filter: BloomFilter,
    header: Vec<u8>,
    received_bytes: u64,
    total_bytes: u64,
}

impl Partial for PartialFilter {
    type Value = BloomFilter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let (filter, inline) = if is_redisbloom_header(header) {
            (redisbloom::begin(header, limit)?, None)
        } else {
            lines::begin(header, limit)?
        };
        let total_bytes = num_bytes(filter.chain());
        let header = try_to_vec(if inline.is_some() { b"" } else { header })?;
        let mut partial = PartialFilter { filter, header, received_bytes: 0, total_bytes };
        if let Some(payload) = inline {
            partial.push(&payload)?;
            expect("payload length", partial.total_bytes, partial.received_bytes)?;
            (partial.received_bytes, partial.total_bytes) = (0, 0);
        }
        Ok(partial)
    }

    fn set_apart(&mut self) -> bool {
        self.filter.chain_mut().iter_mut().for_each(|one| one.lines = Box::default());
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn chunk_format(&self) -> ChunkFormat {
        self.filter.chunk_format()
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        Payload::of_parts(self.filter.bitmaps()).up_to(self.received_bytes)
    }

    fn next_memory(&self, len: usize) -> &[u8] {
        let Some((index, offset)) = self.filter.place_of(self.received_bytes) else { return &[] };
        let rest = &self.filter.chain()[index].as_bytes()[offset as usize..];
        &rest[..len.min(rest.len())]
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes;
        let is_valid = bytes.len() as u64 <= missing;
        Error::check_field(is_valid, "payload length", format_args!("at most {missing} bytes more"), bytes.len())?;
        while !bytes.is_empty()
            && let Some((index, offset)) = self.filter.place_of(self.received_bytes)
        {
            let sub_filter = &mut self.filter.chain_mut()[index];
            let left = (sub_filter.spec.num_bytes - offset) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(left));
            sub_filter.append_bytes(offset, now)?;
            self.received_bytes += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    fn fill_with_zeros(&mut self) {
        if self.chunk_format() == ChunkFormat::Plain {
            self.received_bytes = self.total_bytes;
        }
    }

    fn finish(self) -> Result<BloomFilter, Error> {
        expect("payload length", self.total_bytes, self.received_bytes)?;
        Ok(self.filter)
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.filter.heap_layouts(visit);
        visit(Layout::for_value(self.header.as_slice()));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        Ok(PartialFilter { filter: self.filter.try_clone()?, header: try_to_vec(&self.header)?, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::params::{BitLayout, Params, Windowing};
    use crate::size_limit::{MaxBytes, Unlimited};
    use crate::stored::payload::Apart;
    use crate::window::{ClockSource, Time};

    fn filter(layout: BitLayout, items: u32) -> BloomFilter {
        let params = Params { error_rate: 0.01, capacity: 100, expansion: 1, seed: 0 };
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        filter.live(Time::Reached).extend((0..items).map(u32::to_le_bytes));
        filter
    }

    #[test]
    fn pieces_of_any_length_go_on_where_the_last_ended() {
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            let filter = filter(layout, 5000);
            let payload: Vec<u8> =
                filter.payload().pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect();
            for len in [7, 500, payload.len()] {
                let mut partial = PartialFilter::begin(&filter.header(), &Unlimited).unwrap();
                for (piece, pushed) in payload.chunks(len).zip(1..) {
                    partial.push(piece).unwrap();
                    let received = payload.len().min(pushed * len) as u64;
                    assert_eq!(partial.received_bytes, received, "{layout}");
                    assert!(received == payload.len() as u64 || !partial.next_memory(5).is_empty());
                }
                assert!(partial.push(&[0]).is_err() && partial.next_memory(1).is_empty());
                assert_eq!(partial.chunk_format() == ChunkFormat::Plain, layout == BitLayout::Classic);
                assert!(partial.finish().unwrap() == filter);
            }
        }
    }

    /// A filter whose bits lie elsewhere, in pieces of `len` bytes, of which every second is copied.
    fn apart<'a>(filter: &BloomFilter, payload: &'a [u8], len: usize) -> Apart<'a, BloomFilter> {
        let (mut partial, mut pieces) =
            (PartialFilter::begin(&filter.header(), &Unlimited).unwrap(), Payload::default());
        assert!(partial.set_apart());
        for (piece, is_copied) in payload.chunks(len).zip([true, false].into_iter().cycle()) {
            partial.push(piece).unwrap();
            pieces.push(if is_copied { piece.to_vec().into() } else { piece.into() }).unwrap();
        }
        (partial.finish().unwrap(), pieces)
    }

    #[test]
    fn filters_with_bits_out_of_line_are_merged_alike() {
        let windowing = Windowing::new(100, 4, ClockSource::Manual, true).unwrap();
        let params = Params { error_rate: 0.01, capacity: 3000, expansion: 1, seed: 0 };
        let windowed = |slices: std::ops::Range<u64>| {
            let mut filter = BloomFilter::windowed(params, windowing, slices.start, &Unlimited).unwrap();
            for slice in slices {
                filter.advance(slice);
                filter.live(Time::Reached).extend((slice * 900..slice * 900 + 2000).map(u64::to_le_bytes));
            }
            filter
        };
        let scaling = |layout| [100, 5000, 3000].map(|items| filter(layout, items));
        let windowed = [windowed(5..8), windowed(3..7), windowed(6..9)];
        for [own, one, other] in [scaling(BitLayout::Lines), scaling(BitLayout::Classic), windowed] {
            let mut merged = own.clone();
            assert!(merged.live(Time::Reached).merge(&[&one, &other], &Unlimited).unwrap());
            let bytes = [&one, &other].map(|filter| filter.bitmaps().collect::<Vec<_>>().concat());
            for len in [7, 500, 4096, 10_000, bytes[0].len()] {
                let others = [apart(&one, &bytes[0], len), apart(&other, &bytes[1], len)];
                let mut united = own.clone();
                assert!(united.live(Time::Reached).merge_apart(&others, &Unlimited).unwrap());
                assert!(united == merged, "{len}");
                // The union has all bits already.
                assert!(!united.live(Time::Reached).merge_apart(&others, &Unlimited).unwrap() && united == merged);
            }
        }
    }

    /// A filter contains its only sub-filter, whose bytes must not be counted twice.
    #[test]
    fn loading_needs_the_bytes_of_the_filter_and_its_header() {
        for items in [0, 90] {
            let filter = filter(BitLayout::Lines, items);
            let header = filter.header();
            let needed = filter.size_bytes() + header.len() as u64;
            assert!(PartialFilter::begin(&header, &MaxBytes(needed)).is_ok());
            assert!(PartialFilter::begin(&header, &MaxBytes(needed - 1)).is_err());
        }
    }
}
