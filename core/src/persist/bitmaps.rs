//! The bitmaps of sub-filters while their bytes arrive, in order.

use std::alloc::Layout;

use super::Payload;
use crate::bloom::SubFilter;
use crate::error::Error;
use crate::size_limit::{try_to_vec, try_with_capacity};

/// A sub-filter as its bytes.
pub(super) trait Bitmap: Sized {
    fn as_bytes(&self) -> &[u8];
    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));
    fn try_clone(&self) -> Result<Self, Error>;
}

impl<S: SubFilter> Bitmap for S {
    fn as_bytes(&self) -> &[u8] {
        SubFilter::as_bytes(self)
    }

    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        SubFilter::append_bytes(self, offset, bytes)
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        SubFilter::heap_layouts(self, visit);
    }

    fn try_clone(&self) -> Result<Self, Error> {
        SubFilter::try_clone(self)
    }
}

/// Sub-filters whose bytes are arriving. Their memory is all there from the start, zeroed.
///
/// Invariants: the first `complete` sub-filters have all their bytes; no bit after the first `received_bytes` bytes of
/// them all is set.
#[derive(Debug)]
pub(super) struct ArrivingBitmaps<S> {
    pub(super) sub_filters: Vec<S>,
    header: Vec<u8>,
    complete: usize,
    /// Bytes of the first `complete` sub-filters.
    complete_bytes: u64,
    received_bytes: u64,
    total_bytes: u64,
}

impl<S: Bitmap> ArrivingBitmaps<S> {
    /// None of the sub-filters has a bit set.
    pub(super) fn new(header: &[u8], sub_filters: Vec<S>) -> Result<Self, Error> {
        let header = try_to_vec(header)?;
        let total_bytes = sub_filters.iter().map(|sub_filter| sub_filter.as_bytes().len() as u64).sum();
        let (complete, complete_bytes, received_bytes) = (0, 0, 0);
        Ok(ArrivingBitmaps { sub_filters, header, complete, complete_bytes, received_bytes, total_bytes })
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
        let Some(sub_filter) = self.sub_filters.get(self.complete) else { return &[] };
        let rest = &sub_filter.as_bytes()[(self.received_bytes - self.complete_bytes) as usize..];
        &rest[..len.min(rest.len())]
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes;
        if bytes.len() as u64 > missing {
            return Err(Error::corrupt("payload length", format_args!("at most {missing} bytes more"), bytes.len()));
        }
        while let Some(sub_filter) = self.sub_filters.get_mut(self.complete)
            && !bytes.is_empty()
        {
            let size = sub_filter.as_bytes().len() as u64;
            let position = self.received_bytes - self.complete_bytes;
            let (now, later) = bytes.split_at(bytes.len().min((size - position) as usize));
            sub_filter.append_bytes(position, now)?;
            self.received_bytes += now.len() as u64;
            if self.received_bytes - self.complete_bytes == size {
                self.complete += 1;
                self.complete_bytes += size;
            }
            bytes = later;
        }
        Ok(())
    }

    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[S]>(&self.sub_filters));
        self.sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        visit(Layout::for_value(self.header.as_slice()));
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let mut sub_filters = try_with_capacity(self.sub_filters.len())?;
        for sub_filter in &self.sub_filters {
            sub_filters.push(sub_filter.try_clone()?);
        }
        Ok(ArrivingBitmaps { sub_filters, header: try_to_vec(&self.header)?, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<usize> = const { Cell::new(0) });

    /// Bytes that count how often they are looked at.
    struct Counting(Vec<u8>);

    impl Bitmap for Counting {
        fn as_bytes(&self) -> &[u8] {
            LOOKS.set(LOOKS.get() + 1);
            &self.0
        }
        fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
            self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn heap_layouts(&self, _visit: &mut dyn FnMut(Layout)) {}
        fn try_clone(&self) -> Result<Self, Error> {
            Ok(Counting(self.0.clone()))
        }
    }

    /// A dump of 20,000 sub-filters of a byte each once took 2.7 s, for each byte was looked for from the start.
    #[test]
    fn a_piece_costs_the_same_wherever_it_goes() {
        const LEN: usize = 20_000;
        let mut arriving = ArrivingBitmaps::new(b"", (0..LEN).map(|_| Counting(vec![0])).collect()).unwrap();
        LOOKS.set(0);
        for position in 0..LEN {
            assert_eq!(arriving.next_memory(5).len(), 1);
            arriving.push(&[position as u8]).unwrap();
        }
        assert!(LOOKS.get() <= 4 * LEN, "{} looks", LOOKS.get());
        assert!(arriving.push(&[0]).is_err() && arriving.next_memory(1).is_empty());
        assert!(arriving.sub_filters.iter().enumerate().all(|(index, one)| one.0 == [index as u8]));
    }

    #[test]
    fn a_piece_may_span_bitmaps() {
        let mut arriving = ArrivingBitmaps::new(b"h", [2, 0, 3, 1].map(|len| Counting(vec![0; len])).into()).unwrap();
        for piece in [&b"a"[..], b"bcd", b"", b"ef"] {
            arriving.push(piece).unwrap();
        }
        let all: Vec<_> = arriving.sub_filters.iter().map(|one| one.0.as_slice()).collect();
        assert_eq!(all, [&b"ab"[..], b"", b"cde", b"f"]);
    }
}
