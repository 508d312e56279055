//! The payload of a value, in parts that are encoded or copied only when they are requested.

use std::borrow::Cow;

use crate::counting::payload::PayloadPart;

/// The bulk of a stored value: its bitmaps, members or positions of bits, one after the other.
pub struct Payload<'a> {
    /// The part with a given number; `None` after the last.
    parts: Box<dyn Fn(usize) -> Option<PayloadPart<'a>> + 'a>,
    /// The number of payload bytes: while a value is being loaded, those received so far.
    end: u64,
}

/// A range of bytes in one part, which is encoded only when the range is read.
pub(super) struct Stretch<'a> {
    part: PayloadPart<'a>,
    start: u64,
    end: u64,
}

impl<'a> Stretch<'a> {
    /// In bytes, at least 1.
    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The capacity in bytes that a `Vec` needs for [`Self::append_to`].
    pub(super) fn room(&self) -> usize {
        if let PayloadPart::Bytes(_) = self.part { self.len() } else { self.part.num_bytes() as usize }
    }

    pub(super) fn read(&self) -> Cow<'a, [u8]> {
        self.part.read(self.start, self.end)
    }

    /// Appends the bytes of this range, like [`PayloadPart::append_to`].
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        self.part.append_to(bytes, self.start, self.end);
    }
}

/// A part of the payload: its index, and the position of its first byte in the payload.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    part: usize,
    start: u64,
}

impl<'a> Payload<'a> {
    /// `parts` returns the part with a given number; `None` after the last.
    pub(crate) fn new(parts: impl Fn(usize) -> Option<PayloadPart<'a>> + 'a) -> Self {
        Payload { parts: Box::new(parts), end: u64::MAX }
    }

    /// A payload of bitmaps. `as_bytes` returns the bytes of a bitmap.
    pub(crate) fn of_bitmaps<B>(bitmaps: &'a [B], as_bytes: impl Fn(&'a B) -> &'a [u8] + 'a) -> Self {
        Self::new(move |index| bitmaps.get(index).map(|bitmap| PayloadPart::Bytes(as_bytes(bitmap))))
    }

    /// The first `len` bytes of the payload.
    pub fn up_to(self, len: u64) -> Self {
        Payload { end: self.end.min(len), ..self }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        let parts = (0..).map_while(|index| (self.parts)(index));
        parts.map(|part| part.num_bytes()).sum::<u64>().min(self.end)
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.piece(0, 1).is_empty()
    }

    /// At most `max_bytes` bytes from `position` on, all from the same part, such as a bitmap; empty at the end of the
    /// payload.
    pub fn piece(&self, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        self.stretch(position, max_bytes).map_or(Cow::default(), |stretch| stretch.read())
    }

    /// All pieces of at most `max_bytes` bytes, with their positions, in linear time.
    pub fn pieces(self, max_bytes: usize) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
        self.stretches(max_bytes).map(|(position, stretch)| (position, stretch.read()))
    }

    /// Like [`Self::piece`], but does not read the bytes yet; `None` at the end of the payload.
    pub(super) fn stretch(&self, position: u64, max_bytes: usize) -> Option<Stretch<'a>> {
        self.stretch_from(&mut Place::default(), position, max_bytes)
    }

    /// Like [`Self::pieces`], but does not read the bytes yet.
    pub(super) fn stretches(self, max_bytes: usize) -> impl Iterator<Item = (u64, Stretch<'a>)> {
        let mut place = Place::default();
        let mut position = 0;
        std::iter::from_fn(move || {
            let stretch = self.stretch_from(&mut place, position, max_bytes)?;
            let at = position;
            position += stretch.len() as u64;
            Some((at, stretch))
        })
    }

    /// Like [`Self::stretch`], but begins the search at the part `place`. This part must not begin after `position`.
    /// Afterwards `place` is the part that contains `position`.
    fn stretch_from(&self, place: &mut Place, position: u64, max_bytes: usize) -> Option<Stretch<'a>> {
        while let Some(part) = (self.parts)(place.part) {
            let part_end = place.start + part.num_bytes();
            let end = self.end.min(part_end).min(position.saturating_add(max_bytes as u64));
            if position < part_end {
                let (start, end) = (position - place.start, end.checked_sub(place.start)?);
                return (start < end).then_some(Stretch { part, start, end });
            }
            *place = Place { part: place.part + 1, start: part_end };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Bitmaps of 0, 1, 2, 3, 0, 1, 2, 3 and so on bytes.
    fn bitmaps(count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|index| vec![index as u8; index % 4]).collect()
    }

    #[test]
    fn pieces_lie_within_a_part() {
        let bitmaps = bitmaps(8);
        let payload = || Payload::of_bitmaps(&bitmaps, Vec::as_slice);
        let pieces: Vec<_> = payload().pieces(2).map(|(position, piece)| (position, piece.into_owned())).collect();
        let expected: [(u64, &[u8]); 8] =
            [(0, &[1]), (1, &[2, 2]), (3, &[3, 3]), (5, &[3]), (6, &[5]), (7, &[6, 6]), (9, &[7, 7]), (11, &[7])];
        assert_eq!(pieces, expected.map(|(position, piece)| (position, piece.to_vec())));
        for (position, piece) in expected {
            assert_eq!(&*payload().piece(position, 2), piece);
        }
        assert_eq!(&*payload().piece(4, usize::MAX), [3, 3]);
        assert_eq!((payload().len(), payload().is_empty()), (12, false));
        for position in [12, u64::MAX] {
            assert!(payload().piece(position, 2).is_empty());
        }
    }

    #[test]
    fn what_has_arrived_ends_anywhere() {
        let bitmaps = bitmaps(8);
        let whole = bitmaps.concat();
        for len in 0..=whole.len() {
            let payload = || Payload::of_bitmaps(&bitmaps, Vec::as_slice).up_to(len as u64);
            assert_eq!((payload().len(), payload().is_empty()), (len as u64, len == 0));
            assert_eq!(payload().pieces(2).flat_map(|(_, piece)| piece.into_owned()).collect::<Vec<_>>(), whole[..len]);
            assert!(payload().piece(len as u64, 2).is_empty());
        }
    }

    #[test]
    fn all_pieces_take_each_part_once_and_no_walk_from_the_start() {
        let bitmaps = vec![vec![1u8; 3]; 20_000];
        let asked = Cell::new(0);
        let payload = Payload::new(|index| {
            asked.set(asked.get() + 1);
            bitmaps.get(index).map(|bitmap| PayloadPart::Bytes(bitmap))
        });
        assert_eq!(payload.pieces(2).count(), 40_000);
        // A part is requested once for each of its pieces, and once more at the start of the next part.
        assert!(asked.get() <= 60_001, "{}", asked.get());
    }
}
