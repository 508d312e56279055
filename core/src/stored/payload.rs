//! The payload of a value: its bitmaps, members or positions of bits.

use std::borrow::Cow;

/// The bulk of a stored value: the bitmaps of a filter end to end, or the bytes of a counter.
pub struct Payload<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    /// The number of payload bytes: while a value is being loaded, those received so far.
    end: u64,
}

impl<'a> Payload<'a> {
    pub(crate) fn of_bitmaps(bitmaps: impl Iterator<Item = &'a [u8]>) -> Self {
        Payload { parts: bitmaps.map(Cow::Borrowed).collect(), end: u64::MAX }
    }

    pub(crate) fn of_bytes(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Payload { parts: vec![bytes.into()], end: u64::MAX }
    }

    /// The payload of a value whose header contains everything.
    pub(crate) fn none() -> Self {
        Payload { parts: Vec::new(), end: 0 }
    }

    /// The first `len` bytes of the payload.
    #[must_use]
    pub fn up_to(self, len: u64) -> Self {
        Payload { end: self.end.min(len), ..self }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum::<u64>().min(self.end)
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `max_bytes` bytes from `position` on, all from the same bitmap; empty at the end of the payload.
    pub fn piece(&self, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        let mut start = 0;
        for part in &self.parts {
            let len = part.len() as u64;
            let end = self.end.min(position.saturating_add(max_bytes as u64)).min(start + len);
            if position < end {
                let range = (position - start) as usize..(end - start) as usize;
                return match part {
                    Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
                    Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
                };
            }
            start += len;
        }
        Cow::default()
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
        let payload = || Payload::of_bitmaps(bitmaps.iter().map(Vec::as_slice));
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
    fn what_has_arrived_ends_anywhere() {
        let bitmaps = bitmaps(4);
        let whole = bitmaps.concat();
        for len in 0..=whole.len() {
            let in_parts = Payload::of_bitmaps(bitmaps.iter().map(Vec::as_slice));
            let [borrowed, owned] = [Cow::Borrowed(&whole[..]), Cow::Owned(whole.clone())].map(Payload::of_bytes);
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
