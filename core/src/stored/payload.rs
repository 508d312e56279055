//! The payload of a value: its bitmaps, members or positions of bits.

use std::borrow::Cow;

/// The bulk of a stored value: bitmaps end to end, or the bytes of a counter.
#[derive(Default)]
pub struct Payload<'a>(Vec<Cow<'a, [u8]>>);

impl<'a> Payload<'a> {
    /// These parts, end to end. A filter has at most 1,024, so a failed allocation of the list is not handled.
    pub(crate) fn new(parts: impl IntoIterator<Item = impl Into<Cow<'a, [u8]>>>) -> Self {
        Payload(parts.into_iter().map(Into::into).collect())
    }

    /// The first `len` bytes of the payload.
    #[must_use]
    pub fn up_to(self, mut len: u64) -> Self {
        Self::new(self.0.into_iter().map(|part| {
            let kept = cut(&part, 0, usize::try_from(len).unwrap_or(usize::MAX));
            len -= kept.len() as u64;
            kept
        }))
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `max_bytes` bytes from `position` on, all from the same bitmap; empty at the end of the payload.
    pub fn piece(&self, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        let mut rest = position;
        for part in &self.0 {
            match rest.checked_sub(part.len() as u64) {
                None => return cut(part, rest as usize, max_bytes),
                Some(behind) => rest = behind,
            }
        }
        Cow::default()
    }

    /// All pieces of at most `max_bytes` bytes, with their positions, in linear time.
    pub fn pieces(self, max_bytes: usize) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
        let starts = move |part: &Cow<'a, [u8]>| (0..part.len()).step_by(max_bytes);
        let pieces = self.0.into_iter().flat_map(move |part| starts(&part).map(move |at| cut(&part, at, max_bytes)));
        pieces.scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some((*end - piece.len() as u64, piece))
        })
    }
}

/// At most `max_bytes` bytes of `part` from byte `start` on.
fn cut<'a>(part: &Cow<'a, [u8]>, start: usize, max_bytes: usize) -> Cow<'a, [u8]> {
    let range = start..part.len().min(start.saturating_add(max_bytes));
    match part {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
        Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
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
        let payload = || Payload::new(&bitmaps);
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
            let in_parts = Payload::new(&bitmaps);
            let [borrowed, owned] =
                [Cow::Borrowed(&whole[..]), Cow::Owned(whole.clone())].map(|part| Payload::new([part]));
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
