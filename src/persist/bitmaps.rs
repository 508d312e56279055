//! The bitmaps of sub-filters while their bytes arrive, in order.

use std::alloc::Layout;

use super::Payload;
use crate::bloom::Filter;
use crate::bloom::classic::ClassicSubFilter;
use crate::error::Error;

/// A sub-filter as its bytes.
pub(super) trait Bitmap: Sized {
    fn as_bytes(&self) -> &[u8];
    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));
    fn try_clone(&self) -> Result<Self, Error>;
}

/// Each method is the sub-filter's own of the same name.
macro_rules! bitmap {
    ($($sub_filter:ty)*) => { $(
        impl Bitmap for $sub_filter {
            fn as_bytes(&self) -> &[u8] {
                self.as_bytes()
            }
            fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
                self.append_bytes(offset, bytes)
            }
            fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
                self.heap_layouts(visit);
            }
            fn try_clone(&self) -> Result<Self, Error> {
                self.try_clone()
            }
        }
    )* };
}
bitmap! { Filter ClassicSubFilter }

/// Sub-filters whose bytes are arriving. Their memory is all there from the start, zeroed.
///
/// Invariant: no bit after the first `received_bytes` bytes of them all is set.
#[derive(Debug)]
pub(super) struct ArrivingBitmaps<S> {
    pub(super) sub_filters: Vec<S>,
    header: Vec<u8>,
    received_bytes: u64,
    total_bytes: u64,
}

impl<S: Bitmap> ArrivingBitmaps<S> {
    /// None of the sub-filters has a bit set.
    pub(super) fn new(header: &[u8], sub_filters: Vec<S>) -> Self {
        let total_bytes = sub_filters.iter().map(|sub_filter| sub_filter.as_bytes().len() as u64).sum();
        ArrivingBitmaps { sub_filters, header: header.to_vec(), received_bytes: 0, total_bytes }
    }

    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(super) fn received(&self) -> Payload<'_> {
        Payload::of_bitmaps(&self.sub_filters, S::as_bytes).up_to(self.received_bytes)
    }

    /// As [`Loading::next_memory`](super::Loading::next_memory).
    pub(super) fn next_memory(&self, len: usize) -> &[u8] {
        let mut position = self.received_bytes;
        for sub_filter in &self.sub_filters {
            let bytes = sub_filter.as_bytes();
            let size = bytes.len() as u64;
            if position < size {
                let rest = &bytes[position as usize..];
                return &rest[..len.min(rest.len())];
            }
            position -= size;
        }
        &[]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
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
            sub_filter.append_bytes(position, now)?;
            self.received_bytes += len as u64;
            bytes = later;
            position = 0;
            if bytes.is_empty() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[S]>(&self.sub_filters));
        self.sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        visit(Layout::for_value(self.header.as_slice()));
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = self.sub_filters.iter().map(Bitmap::try_clone).collect::<Result<_, _>>()?;
        Ok(ArrivingBitmaps { sub_filters, header: self.header.clone(), ..*self })
    }
}
