//! The payload of a value: its bitmaps, members or positions of bits.

use std::borrow::Cow;

use crate::bloom::sub_filter::SubFilter;

/// The bulk of a stored value: bitmaps end to end, or the bytes of a counter.
pub struct Payload<'a> {
    parts: Parts<'a>,
    /// The number of payload bytes: while a value is being loaded, those received so far.
    end: u64,
}

enum Parts<'a> {
    Bitmaps(&'a [SubFilter]),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Payload<'a> {
    /// The bitmaps of these sub-filters.
    pub(crate) fn of_bitmaps(sub_filters: &'a [SubFilter]) -> Self {
        Payload { parts: Parts::Bitmaps(sub_filters), end: u64::MAX }
    }

    pub(crate) fn of_bytes(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Payload { parts: Parts::Bytes(bytes.into()), end: u64::MAX }
    }

    /// The first `len` bytes of the payload.
    #[must_use]
    pub fn up_to(self, len: u64) -> Self {
        Payload { end: self.end.min(len), ..self }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        let all = match &self.parts {
            Parts::Bitmaps(all) => all.iter().map(|one| one.as_bytes().len() as u64).sum(),
            Parts::Bytes(bytes) => bytes.len() as u64,
        };
        self.end.min(all)
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `max_bytes` bytes from `position` on, all from the same bitmap; empty at the end of the payload.
    pub fn piece(&self, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        let (mut index, mut start) = (0, 0);
        while let Some(len) = self.part_len(index)
            && position >= start + len
        {
            (index, start) = (index + 1, start + len);
        }
        self.piece_of(index, start, position, max_bytes)
    }

    /// All pieces of at most `max_bytes` bytes, with their positions, in linear time.
    pub fn pieces(self, max_bytes: usize) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
        let (mut index, mut start, mut position) = (0, 0, 0);
        std::iter::from_fn(move || {
            while let Some(len) = self.part_len(index)
                && position == start + len
            {
                (index, start) = (index + 1, position);
            }
            let (at, piece) = (position, self.piece_of(index, start, position, max_bytes));
            position += piece.len() as u64;
            (!piece.is_empty()).then_some((at, piece))
        })
    }

    fn part_len(&self, index: usize) -> Option<u64> {
        match &self.parts {
            Parts::Bitmaps(all) => all.get(index).map(|one| one.as_bytes().len() as u64),
            Parts::Bytes(bytes) => (index == 0).then_some(bytes.len() as u64),
        }
    }

    /// Like [`Self::piece`], from the bitmap `index`, which begins at `start`, not after `position`.
    fn piece_of(&self, index: usize, start: u64, position: u64, max_bytes: usize) -> Cow<'a, [u8]> {
        let len = self.part_len(index).unwrap_or(0);
        let end = self.end.min(position.saturating_add(max_bytes as u64)).min(start + len);
        if position >= end {
            return Cow::default();
        }
        let range = (position - start) as usize..(end - start) as usize;
        match &self.parts {
            Parts::Bitmaps(all) => Cow::Borrowed(&all[index].as_bytes()[range]),
            Parts::Bytes(Cow::Borrowed(bytes)) => Cow::Borrowed(&bytes[range]),
            Parts::Bytes(Cow::Owned(bytes)) => Cow::Owned(bytes[range].to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::classic::sizing::{Rules, Shape};
    use crate::size_limit::Unlimited;

    /// Sub-filters of 8, 16, 24, 8 and so on bytes. All bytes of a sub-filter are its index.
    fn sub_filters(count: usize) -> Vec<SubFilter> {
        let sub_filter = |index| {
            let shape = Shape::new(0.01, [1, 7, 14][index % 3], Rules::NOROUND | Rules::FORCE64).unwrap();
            let rules = Rules { options: Rules::NOROUND | Rules::FORCE64, growth: 2 };
            let mut sub_filter = SubFilter::from_shape(rules, shape, &Unlimited).unwrap();
            sub_filter.append_bytes(0, &vec![index as u8; sub_filter.as_bytes().len()]).unwrap();
            sub_filter
        };
        (0..count).map(sub_filter).collect()
    }

    #[test]
    fn pieces_lie_within_a_bitmap() {
        let sub_filters = sub_filters(4);
        let payload = || Payload::of_bitmaps(&sub_filters);
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
        let sub_filters = sub_filters(4);
        let whole: Vec<u8> = sub_filters.iter().flat_map(SubFilter::as_bytes).copied().collect();
        for len in 0..=whole.len() {
            let bitmaps = || Payload::of_bitmaps(&sub_filters).up_to(len as u64);
            let [borrowed, owned] = [Cow::Borrowed(&whole[..]), Cow::Owned(whole.clone())].map(Payload::of_bytes);
            for payload in [bitmaps(), borrowed.up_to(len as u64), owned.up_to(len as u64)] {
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
