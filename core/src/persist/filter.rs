//! The stored form of Bloom filters: RedisBloom's format for classic filters, this module's own formats for the others.

use std::alloc::Layout;

use super::bloom::{LoadingFilter, kind_of};
use super::codec::{HeaderKind, HeaderReader};
use super::payload::Payload;
use super::redisbloom::{LoadingClassic, header_bytes};
use super::value::{ChunkFormat, Loading, Stored};
use crate::bloom::filter::{BloomFilter, EitherChain, either as chain};
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// Whether `bytes` are a header of RedisBloom's format, not of this module's own. A header of our own begins with its
/// kind. RedisBloom's begins with a number of items, which may look like a kind. In that case, the header is
/// RedisBloom's if its length is right for RedisBloom's format and our own checksum is wrong.
pub fn is_redisbloom_header(bytes: &[u8]) -> bool {
    let Some(kind) = kind_of(bytes) else { return true };
    let fits = bytes.get(8..).and_then(<[u8]>::first_chunk).is_some_and(|count| {
        let count = u32::from_le_bytes(*count);
        count > 0 && header_bytes(count) == bytes.len() as u64
    });
    fits && HeaderReader::new(bytes, kind).is_err()
}

/// Whether a header, the first chunk of a dump, belongs to a windowed filter or counter, of any version.
pub fn has_window(header: &[u8]) -> bool {
    let begins = |kind: HeaderKind| header.first().is_some_and(|&first| kind.begins_with(first));
    begins(HeaderKind::WindowedFilter) || begins(HeaderKind::WindowedCounter)
}

impl Stored for BloomFilter {
    type Loading = LoadingBloomFilter;
    const KIND: super::value::Kind = super::value::Kind::Filter;

    fn header(&self) -> Vec<u8> {
        chain!(&self.chain, filter => filter.header())
    }

    fn payload(&self) -> Payload<'_> {
        chain!(&self.chain, filter => filter.payload())
    }

    fn chunk_format(&self) -> ChunkFormat {
        chain!(&self.chain, filter => filter.chunk_format())
    }

    fn stamp(&self) -> u64 {
        chain!(&self.chain, filter => filter.stamp())
    }

    fn overwrite(&mut self, next: u64, chunk: &[u8]) -> Result<(), Error> {
        chain!(&mut self.chain, filter => filter.overwrite(next, chunk))
    }
}

/// A partially loaded filter of any layout, with or without a window.
#[derive(Debug)]
pub enum LoadingBloomFilter {
    /// A filter in the cache-line layout, with or without a window.
    Lines(LoadingFilter),
    /// A filter in RedisBloom's layout.
    Classic(LoadingClassic),
}

/// Calls a method of the partially loaded filter, whatever its layout.
macro_rules! either {
    ($self:expr, $loading:ident => $call:expr) => {
        match $self {
            LoadingBloomFilter::Lines($loading) => $call,
            LoadingBloomFilter::Classic($loading) => $call,
        }
    };
}

impl Loading for LoadingBloomFilter {
    type Value = BloomFilter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        if is_redisbloom_header(header) {
            LoadingClassic::begin(header, limit).map(LoadingBloomFilter::Classic)
        } else {
            LoadingFilter::begin(header, limit).map(LoadingBloomFilter::Lines)
        }
    }

    fn header(&self) -> &[u8] {
        either!(self, loading => loading.header())
    }

    fn received_bytes(&self) -> u64 {
        either!(self, loading => loading.received_bytes())
    }

    fn total_bytes(&self) -> u64 {
        either!(self, loading => loading.total_bytes())
    }

    fn received(&self) -> Payload<'_> {
        either!(self, loading => loading.received())
    }

    fn next_memory(&self, len: usize) -> &[u8] {
        either!(self, loading => loading.next_memory(len))
    }

    fn chunk_format(&self) -> ChunkFormat {
        either!(self, loading => loading.chunk_format())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        either!(self, loading => loading.push(bytes))
    }

    fn finish(&mut self) -> Result<BloomFilter, Error> {
        Ok(either!(self, loading => loading.finish()?.into()))
    }

    fn finish_with_zeros(&mut self) -> Option<BloomFilter> {
        either!(self, loading => loading.finish_with_zeros().map(BloomFilter::from))
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        either!(self, loading => loading.heap_layouts(visit));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            LoadingBloomFilter::Lines(loading) => LoadingBloomFilter::Lines(loading.try_clone()?),
            LoadingBloomFilter::Classic(loading) => LoadingBloomFilter::Classic(loading.try_clone()?),
        })
    }
}
