//! Members one after the other, each as its tag, its length and its bytes, in memory and in the stored form.
//!
//! A length is written in groups of 7 bits, the lowest first, all but the last with the high bit set (LEB128): one byte
//! up to 127, two up to 16,383, three up to the 1 MiB that members may have together.

use std::marker::PhantomData;

use crate::counting::held::tag::Tag;

/// The most bytes of the encoded length that precedes a member.
const MAX_LENGTH_BYTES: usize = 3;

/// The encoded length that precedes a member.
pub(in crate::counting) struct LengthPrefix {
    bytes: [u8; MAX_LENGTH_BYTES],
    len: usize,
}

impl LengthPrefix {
    /// Encodes the length of `item`, which has fewer than 2^21 bytes.
    #[inline]
    pub(in crate::counting) fn of(item: &[u8]) -> Self {
        let length = item.len();
        if length < 0x80 {
            return LengthPrefix { bytes: [length as u8, 0, 0], len: 1 };
        }
        let [first, second, third] = [length, length >> 7, length >> 14].map(|rest| rest as u8);
        match third {
            0 => LengthPrefix { bytes: [first | 0x80, second, 0], len: 2 },
            _ => LengthPrefix { bytes: [first | 0x80, second | 0x80, third], len: 3 },
        }
    }

    #[inline]
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Bytes that `item` takes in an arena, with its tag and its length.
#[inline]
pub(in crate::counting) fn record_bytes<T: Tag>(item: &[u8]) -> usize {
    let length_bytes = match item.len() {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => MAX_LENGTH_BYTES,
    };
    T::BYTES + length_bytes + item.len()
}

/// Iterator over the tags and members of an arena. It stops at the end, or at bytes that are no valid member.
#[derive(Debug, Clone)]
pub(in crate::counting) struct Records<'a, T> {
    rest: &'a [u8],
    tags: PhantomData<T>,
}

impl<'a, T: Tag> Records<'a, T> {
    /// An iterator over the members of an arena, with their tags.
    #[inline]
    pub(in crate::counting) fn new(arena: &'a [u8]) -> Self {
        Records { rest: arena, tags: PhantomData }
    }

    /// An iterator from the member at byte `offset` on. It yields nothing if `offset` is beyond the arena.
    #[inline]
    pub(in crate::counting) fn from(arena: &'a [u8], offset: usize) -> Self {
        Self::new(arena.get(offset..).unwrap_or_default())
    }

    /// The bytes not read yet.
    pub(in crate::counting) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a, T: Tag> Iterator for Records<'a, T> {
    type Item = (T, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(T, &'a [u8])> {
        let (tag, rest) = T::split(self.rest)?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 { (usize::from(first), rest) } else { long_length(first, rest)? };
        let (member, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some((tag, member))
    }
}

/// Decodes a length of more than one byte. Returns the length and the bytes after it; `None` if the length takes more
/// than three bytes or is cut off.
#[inline(never)]
fn long_length(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let (&second, rest) = rest.split_first()?;
    let length = usize::from(first & 0x7f) | usize::from(second & 0x7f) << 7;
    if second < 0x80 {
        return Some((length, rest));
    }
    let (&third, rest) = rest.split_first()?;
    (third < 0x80).then_some((length | usize::from(third) << 14, rest))
}

/// Whether two members are equal. Most members have 8 to 64 bytes, which are compared without a call.
#[inline(always)]
pub(super) fn is_same(member: &[u8], item: &[u8]) -> bool {
    if member.len() != item.len() {
        return false;
    }
    match item.len() {
        8..=16 => have_same_ends::<8>(member, item),
        17..=32 => have_same_ends::<16>(member, item),
        33..=64 => have_same_ends::<32>(member, item),
        _ => member == item,
    }
}

#[inline(always)]
fn have_same_ends<const N: usize>(member: &[u8], item: &[u8]) -> bool {
    let starts = (member.first_chunk::<N>(), item.first_chunk::<N>());
    let ends = (member.last_chunk::<N>(), item.last_chunk::<N>());
    let ((Some(start), Some(item_start)), (Some(end), Some(item_end))) = (starts, ends) else { return false };
    start == item_start && end == item_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_length_and_as_many_bytes() {
        for (length, length_bytes) in
            [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (1 << 20, 3), ((1 << 21) - 1, 3)]
        {
            let item = vec![9; length];
            assert_eq!(
                (record_bytes::<()>(&item), LengthPrefix::of(&item).as_bytes().len()),
                (length_bytes + length, length_bytes)
            );
            let mut arena = [b"\x02ab", LengthPrefix::of(&item).as_bytes(), &item].concat();
            let mut members = Records::<()>::from(&arena, 3);
            assert!(members.next() == Some(((), &item[..])) && members.next().is_none() && members.rest().is_empty());
            // A member without its last byte is no record.
            arena.pop();
            let mut members = Records::<()>::from(&arena, 3);
            assert!(members.next().is_none() && members.rest() == &arena[3..]);
        }
        assert_eq!(Records::<()>::from(b"ab", 3).next(), None);
        // A length of more than three bytes is no record, however many bytes follow.
        let mut arena = vec![0; 3 + (1 << 21)];
        arena[..3].fill(0x80);
        assert!(Records::<()>::new(&arena).next().is_none());
    }
}
