//! Partially loaded filters of either layout: the bytes of their bitmaps are appended in order.

use std::alloc::Layout;
use std::borrow::Cow;
use std::fmt;

use super::codec::expect;
use super::payload::Payload;
use super::value::{ChunkFormat, Loading, Stored};
use crate::bloom::chain::try_clone_all;
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;
use crate::size_limit::{SizeLimit, try_to_vec};

/// The steps of loading in which the types of filters differ.
pub trait Loads: fmt::Debug + Sized {
    /// The type of the sub-filters.
    type SubFilter: SubFilter;

    /// The fields of a header, except those of single sub-filters.
    type Claims: Clone + fmt::Debug + Send;

    /// Reads a header and allocates all sub-filters, zeroed. Also returns the payload if it is inline in the header.
    ///
    /// # Errors
    /// The errors of [`Loading::begin`].
    fn begin<'a>(header: &'a [u8], limit: &impl SizeLimit) -> Result<Begun<'a, Self>, Error>;

    /// Builds the filter from the fields of its header (`claims`) and its loaded sub-filters.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the sub-filters do not make a valid filter.
    fn complete(claims: &Self::Claims, sub_filters: Vec<Self::SubFilter>) -> Result<Self, Error>;
}

/// The state after reading a header.
pub struct Begun<'a, F: Loads> {
    /// The fields of the header, except those of single sub-filters.
    pub(super) claims: F::Claims,
    /// The format of the payload's chunks.
    pub(super) format: ChunkFormat,
    /// The sub-filters, zeroed.
    pub(super) sub_filters: Vec<F::SubFilter>,
    /// The payload, if it is inline in the header.
    pub(super) inline: Option<Cow<'a, [u8]>>,
}

/// A partially loaded filter of either layout.
#[derive(Debug)]
pub struct LoadingBitmaps<F: Loads> {
    claims: F::Claims,
    format: ChunkFormat,
    partial: PartialBitmaps<F::SubFilter>,
}

impl<F: Loads> LoadingBitmaps<F> {
    /// Takes the filter out, with the bits that have been loaded.
    fn take(&mut self) -> Result<F, Error> {
        F::complete(&self.claims, std::mem::take(&mut self.partial.sub_filters))
    }
}

impl<F: Loads> Loading for LoadingBitmaps<F>
where
    F: Stored<Loading = Self>,
{
    type Value = F;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let Begun { claims, format, sub_filters, inline } = F::begin(header, limit)?;
        let partial = match inline {
            Some(payload) => PartialBitmaps::complete(sub_filters, &payload)?,
            None => PartialBitmaps::new(header, sub_filters)?,
        };
        Ok(LoadingBitmaps { claims, format, partial })
    }

    fn header(&self) -> &[u8] {
        &self.partial.header
    }

    fn chunk_format(&self) -> ChunkFormat {
        self.format
    }

    fn received_bytes(&self) -> u64 {
        self.partial.received_bytes
    }

    fn total_bytes(&self) -> u64 {
        self.partial.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        Payload::of_bitmaps(&self.partial.sub_filters, SubFilter::as_bytes).up_to(self.partial.received_bytes)
    }

    fn next_memory(&self, len: usize) -> &[u8] {
        self.partial.next_memory(len)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.partial.push(bytes)
    }

    fn finish(&mut self) -> Result<F, Error> {
        expect("payload length", self.total_bytes(), self.received_bytes())?;
        self.take()
    }

    fn finish_with_zeros(&mut self) -> Option<F> {
        (self.format == ChunkFormat::Plain).then(|| self.take().ok())?
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        let PartialBitmaps { sub_filters, header, .. } = &self.partial;
        visit(Layout::for_value::<[F::SubFilter]>(sub_filters));
        sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
        visit(Layout::for_value(header.as_slice()));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = try_clone_all(&self.partial.sub_filters)?;
        let header = try_to_vec(&self.partial.header)?;
        let partial = PartialBitmaps { sub_filters, header, ..self.partial };
        Ok(LoadingBitmaps { claims: self.claims.clone(), format: self.format, partial })
    }
}

/// A sub-filter whose bits are loaded as bytes.
trait PartialBits {
    fn as_bytes(&self) -> &[u8];
    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;
}

impl<S: SubFilter> PartialBits for S {
    fn as_bytes(&self) -> &[u8] {
        SubFilter::as_bytes(self)
    }

    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        SubFilter::append_bytes(self, offset, bytes)
    }
}

/// Partially loaded sub-filters. All their memory is allocated from the start, zeroed.
///
/// Invariants: the first `complete` sub-filters have all their bytes. No bit after the first `received_bytes` bytes of
/// all sub-filters is set.
#[derive(Debug)]
struct PartialBitmaps<S> {
    sub_filters: Vec<S>,
    header: Vec<u8>,
    complete: usize,
    /// Bytes of the first `complete` sub-filters together.
    complete_bytes: u64,
    received_bytes: u64,
    total_bytes: u64,
}

impl<S: PartialBits> PartialBitmaps<S> {
    /// Begins loading into `sub_filters`, in which no bit is set.
    fn new(header: &[u8], sub_filters: Vec<S>) -> Result<Self, Error> {
        let header = try_to_vec(header)?;
        let total_bytes = sub_filters.iter().map(|sub_filter| sub_filter.as_bytes().len() as u64).sum();
        let (complete, complete_bytes, received_bytes) = (0, 0, 0);
        Ok(PartialBitmaps { sub_filters, header, complete, complete_bytes, received_bytes, total_bytes })
    }

    /// Loads sub-filters from one payload that holds all their bits.
    fn complete(sub_filters: Vec<S>, payload: &[u8]) -> Result<Self, Error> {
        let mut partial = Self::new(b"", sub_filters)?;
        partial.push(payload)?;
        expect("payload length", partial.total_bytes, partial.received_bytes)?;
        (partial.received_bytes, partial.complete_bytes, partial.total_bytes) = (0, 0, 0);
        Ok(partial)
    }

    /// Implements [`Loading::next_memory`].
    fn next_memory(&self, len: usize) -> &[u8] {
        let Some(sub_filter) = self.sub_filters.get(self.complete) else { return &[] };
        let rest = &sub_filter.as_bytes()[(self.received_bytes - self.complete_bytes) as usize..];
        &rest[..len.min(rest.len())]
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes;
        let is_valid = bytes.len() as u64 <= missing;
        Error::check_field(is_valid, "payload length", format_args!("at most {missing} bytes more"), bytes.len())?;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<usize> = const { Cell::new(0) });

    /// A bitmap that counts how often its bytes are read.
    struct Counting(Vec<u8>);

    impl PartialBits for Counting {
        fn as_bytes(&self) -> &[u8] {
            LOOKS.set(LOOKS.get() + 1);
            &self.0
        }
        fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
            self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    /// The time for a piece does not depend on its position. If each piece were searched for from the first sub-filter
    /// on, a dump of 20,000 sub-filters would take 2.7 s.
    #[test]
    fn a_piece_costs_the_same_wherever_it_goes() {
        const LEN: usize = 20_000;
        let mut partial = PartialBitmaps::new(b"", (0..LEN).map(|_| Counting(vec![0])).collect()).unwrap();
        LOOKS.set(0);
        for position in 0..LEN {
            assert_eq!(partial.next_memory(5).len(), 1);
            partial.push(&[position as u8]).unwrap();
        }
        assert!(LOOKS.get() <= 4 * LEN, "{} looks", LOOKS.get());
        assert!(partial.push(&[0]).is_err() && partial.next_memory(1).is_empty());
        assert!(partial.sub_filters.iter().enumerate().all(|(index, one)| one.0 == [index as u8]));
    }

    #[test]
    fn a_piece_may_span_bitmaps() {
        let mut partial = PartialBitmaps::new(b"h", [2, 0, 3, 1].map(|len| Counting(vec![0; len])).into()).unwrap();
        for piece in [&b"a"[..], b"bcd", b"", b"ef"] {
            partial.push(piece).unwrap();
        }
        let all: Vec<_> = partial.sub_filters.iter().map(|one| one.0.as_slice()).collect();
        assert_eq!(all, [&b"ab"[..], b"", b"cde", b"f"]);
    }
}
