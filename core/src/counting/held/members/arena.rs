//! The arena: the encoded members of an exact counter ([records](super::record)), one after the other. With a window,
//! the slice tag of a member is before its record. The arena has the same bytes in memory and in the stored form.
//!
//! If the first member ends in a decimal number, as `user:17` does, the text before the number is the prefix of the
//! arena. A member that consists of this prefix and a number is kept as the number. The prefix stays at the front of
//! the arena until no member is left. It is stored as the byte `0xd2`, its length in one byte, and its text. In a
//! windowed counter, the tag 0 is before them.

use std::marker::PhantomData;

use super::record::Member;
use crate::counting::held::tag::Tag;
use crate::counting::params::MOST_PREFIX;

/// The byte that marks a prefix: the text that members begin with, which is stored only once. No encoded member begins
/// with this byte.
pub(super) const PREFIX: u8 = 0xd2;

/// Splits an arena (the encoded members) into the prefix, a text that members begin with, and the members. The prefix
/// is empty if the arena has none.
#[inline]
pub(super) fn split_prefix<T: Tag>(arena: &[u8]) -> (&[u8], &[u8]) {
    if let Some((tag, &[PREFIX, len, ref rest @ ..])) = T::split(arena)
        && tag == T::default()
        && (1..=MOST_PREFIX).contains(&usize::from(len))
        && let Some((prefix, members)) = rest.split_at_checked(len.into())
        && prefix.last().is_some_and(|last| !last.is_ascii_digit())
    {
        return (prefix, members);
    }
    (&[], arena)
}

/// The number of bytes that `prefix`, the text that members begin with, takes in an arena (the encoded members).
#[inline]
pub(super) fn prefix_bytes<T: Tag>(prefix: &[u8]) -> usize {
    if prefix.is_empty() { 0 } else { T::BYTES + 2 + prefix.len() }
}

/// Whether `item` is the member at byte `offset` of an arena (the encoded members).
#[inline(always)]
pub(super) fn is_at<T: Tag>(arena: &[u8], offset: usize, item: &[u8]) -> bool {
    let bytes = arena.get(offset + T::BYTES..);
    bytes.is_some_and(|bytes| Member::begins(bytes, item, || split_prefix::<T>(arena).0))
}

/// An iterator over the slice tags and members of an arena (the encoded members). It stops at the end, or at bytes that
/// are no valid member.
#[derive(Debug, Clone, Default)]
pub(in crate::counting) struct Records<'a, T> {
    rest: &'a [u8],
    prefix: &'a [u8],
    tags: PhantomData<T>,
}

impl<'a, T: Tag> Records<'a, T> {
    #[inline]
    pub(in crate::counting) fn new(arena: &'a [u8]) -> Self {
        let (prefix, rest) = split_prefix::<T>(arena);
        Records { rest, prefix, tags: PhantomData }
    }

    /// An iterator over the members from byte `offset` on. It yields nothing if `offset` is beyond the arena.
    #[inline]
    pub(in crate::counting) fn from(arena: &'a [u8], offset: usize) -> Self {
        Records { rest: arena.get(offset..).unwrap_or_default(), ..Self::new(arena) }
    }

    pub(in crate::counting) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a, T: Tag> Iterator for Records<'a, T> {
    type Item = (T, Member<'a>);

    #[inline]
    fn next(&mut self) -> Option<(T, Member<'a>)> {
        let (tag, rest) = T::split(self.rest)?;
        let (member, rest) = Member::split(rest, self.prefix)?;
        self.rest = rest;
        Some((tag, member))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn a_record_is_a_header_and_a_body() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 1 << 20, (1 << 21) - 1] {
            let item = vec![9; length];
            let mut arena = [&b"\x02ab"[..], &record(&item, &[])].concat();
            let mut members = Records::<()>::from(&arena, 3);
            assert!(members.next().unwrap().1 == item && members.next().is_none() && members.rest().is_empty());
            // Without its last byte, the member is not valid.
            arena.pop();
            let mut members = Records::<()>::from(&arena, 3);
            assert!(members.next().is_none() && members.rest() == &arena[3..]);
        }
        assert_eq!(Records::<()>::from(b"ab", 3).next(), None);
    }

    #[test]
    fn a_prefix_is_split_or_is_none() {
        let [longest, too_long] = [32, 33].map(|len| [vec![PREFIX, len], vec![b'x'; len.into()]].concat());
        for (arena, prefix) in [
            (&b"\xd2\x05user:\xd8\x01"[..], &b"user:"[..]),
            (b"\xd2\x01u", b"u"),
            (b"\x06user:1", b""),
            (b"\xd2\0\x01a", b""),
            (b"\xd2\x02u1\xd8\x01", b""),
            (b"\xd2\x05user", b""),
            (b"\xd2", b""),
            (&longest, &[b'x'; 32]),
            (&too_long, b""),
            (b"", b""),
        ] {
            let (found, members) = split_prefix::<()>(arena);
            assert_eq!((found, members.len()), (prefix, arena.len() - prefix_bytes::<()>(prefix)));
            let tagged = [&[0], arena].concat();
            assert_eq!(split_prefix::<u8>(&tagged).0, prefix);
            // A prefix has the byte 0 in place of a slice tag. So other bytes are not a prefix.
            assert_eq!(split_prefix::<u8>(&[&[1], arena].concat()).0, b"");
        }
    }
}
