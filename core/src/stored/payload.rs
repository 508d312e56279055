//! The payload of a value: its bitmaps, members or positions of bits.

use std::borrow::Cow;

use crate::bits::{PAGE_BYTES, or_page};
use crate::error::Error;
use crate::size_limit::{try_collect, try_reserve};

/// The bulk of a stored value: the bitmaps of a filter end to end, or the bytes of a counter.
#[derive(Default)]
pub struct Payload<'a> {
    /// Each part, and the position of its end.
    parts: Vec<(Cow<'a, [u8]>, u64)>,
    /// The number of payload bytes: while a value is being loaded, those received so far.
    end: u64,
}

/// A value, and its payload if the value does not contain it.
pub type Apart<'a, T> = (T, Payload<'a>);

impl<'a> Payload<'a> {
    pub(crate) fn of_parts<P: Into<Cow<'a, [u8]>>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut end = 0;
        let with_end = |part: P| {
            let part = part.into();
            end += part.len() as u64;
            (part, end)
        };
        Payload { parts: parts.into_iter().map(with_end).collect(), end }
    }

    /// Appends a piece. Small pieces are joined, because a list of them could take more memory than they.
    pub(crate) fn push(&mut self, piece: Cow<'a, [u8]>) -> Result<(), Error> {
        self.end += piece.len() as u64;
        if let Some((last, end)) = self.parts.last_mut()
            && last.len().max(piece.len()) < PAGE_BYTES
        {
            last.to_mut().extend_from_slice(&piece);
            *end = self.end;
            return Ok(());
        }
        try_reserve(&mut self.parts, 1)?;
        self.parts.push((piece, self.end));
        Ok(())
    }

    /// The same payload, for as long as this one exists.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn borrowed(&self) -> Result<Payload<'_>, Error> {
        let parts = self.parts.iter().map(|(part, end)| (Cow::Borrowed(&**part), *end));
        Ok(Payload { parts: try_collect(self.parts.len(), parts)?, end: self.end })
    }

    /// The first `len` bytes of the payload.
    #[must_use]
    pub fn up_to(self, len: u64) -> Self {
        Payload { end: self.end.min(len), ..self }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.end
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// ORs the bytes from `position` on into `page`, as far as they reach.
    pub(crate) fn or_into(&self, mut position: u64, mut page: &mut [u8]) {
        while !page.is_empty() && position < self.end {
            let piece = self.piece(position, page.len());
            let (now, later) = page.split_at_mut(piece.len());
            or_page(now, &piece);
            (position, page) = (position + piece.len() as u64, later);
        }
    }

    /// At most `max_bytes` bytes from `position` on, all from the same bitmap; empty at the end of the payload.
    pub fn piece(&self, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        let Some((part, part_end)) = self.parts.get(self.parts.partition_point(|&(_, end)| end <= position)) else {
            return Cow::default();
        };
        let end = self.end.min(position.saturating_add(max_bytes as u64)).min(*part_end);
        let start = part_end - part.len() as u64;
        let range = (position - start) as usize..(end.max(position) - start) as usize;
        match part {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
            Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
        }
    }

    /// All pieces of at most `max_bytes` bytes, with their positions.
    pub fn pieces(self, max_bytes: usize) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
        let mut position = 0;
        std::iter::from_fn(move || {
            let (at, piece) = (position, self.piece(position, max_bytes));
            position += piece.len() as u64;
            (!piece.is_empty()).then_some((at, piece))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bitmaps of 8, 16, 24, 8 and so on bytes. All bytes of a bitmap are its index.
    fn bitmaps(count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|index| vec![index as u8; [8, 16, 24][index % 3]]).collect()
    }

    #[test]
    fn pieces_lie_within_a_bitmap() {
        let bitmaps = bitmaps(4);
        let payload = || Payload::of_parts(bitmaps.iter().map(Vec::as_slice));
        let pieces: Vec<_> = payload().pieces(12).map(|(position, piece)| (position, piece.into_owned())).collect();
        let expected = [(0, 0, 8), (8, 1, 12), (20, 1, 4), (24, 2, 12), (36, 2, 12), (48, 3, 8)];
        assert_eq!(pieces, expected.map(|(position, index, len)| (position, vec![index; len])));
        for (position, piece) in &pieces {
            assert_eq!(*payload().piece(*position, 12), **piece);
        }
        assert_eq!(*payload().piece(30, usize::MAX), [2; 18]);
        assert_eq!((payload().len(), payload().is_empty()), (56, false));
        for position in [56, u64::MAX] {
            assert!(payload().piece(position, 2).is_empty());
        }
    }

    #[test]
    fn small_pieces_are_joined() {
        let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        for len in [1, 1000, PAGE_BYTES - 1, PAGE_BYTES] {
            let mut payload = Payload::default();
            bytes.chunks(len).for_each(|piece| payload.push(piece.into()).unwrap());
            assert!(payload.parts.len() <= bytes.len() / PAGE_BYTES + 1, "{len}");
            assert_eq!(
                payload.borrowed().unwrap().pieces(777).flat_map(|(_, piece)| piece.into_owned()).collect::<Vec<_>>(),
                bytes
            );
        }
    }

    #[test]
    fn a_payload_may_be_cut_at_any_byte() {
        let bitmaps = bitmaps(4);
        let whole = bitmaps.concat();
        for len in 0..=whole.len() {
            let in_parts = Payload::of_parts(bitmaps.iter().map(Vec::as_slice));
            let [borrowed, owned] =
                [Cow::Borrowed(&whole[..]), Cow::Owned(whole.clone())].map(|part| Payload::of_parts([part]));
            for payload in [in_parts, borrowed, owned].map(|whole| whole.up_to(len as u64)) {
                assert_eq!((payload.len(), payload.is_empty()), (len as u64, len == 0));
                assert!(payload.piece(len as u64, 2).is_empty());
                assert_eq!(
                    payload.pieces(5).flat_map(|(_, piece)| piece.into_owned()).collect::<Vec<_>>(),
                    whole[..len]
                );
            }
        }
    }
}
