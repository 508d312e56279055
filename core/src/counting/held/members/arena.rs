//! The arena: the encoded members of an exact counter ([records](super::record)), one after the other. With a window,
//! the slice tag of a member is before its record. The arena has the same bytes in memory and in the stored form.
//!
//! If the first member ends in a decimal number, as `user:17` does, the text before the number is the prefix of the
//! arena. A member that consists of this prefix and a number is kept as the number. The prefix stays at the front of
//! the arena until no member is left. It is stored as the byte `0xd2`, its length in one byte, and its text. In a
//! windowed counter, the tag 0 is before them.

use super::record::Member;
use crate::counting::held::ring::Ages;
use crate::counting::params::MOST_PREFIX;

/// The byte that marks a prefix: the text that members begin with, which is stored only once. No encoded member begins
/// with this byte.
pub(super) const PREFIX: u8 = 0xd2;

/// Splits an arena (the encoded members) into the prefix, a text that members begin with, and the members. The prefix
/// is empty if the arena has none. `tag_bytes` is the length of a slice tag: 0 without a window, otherwise 1.
#[inline]
pub(super) fn split_prefix(arena: &[u8], tag_bytes: usize) -> (&[u8], &[u8]) {
    if arena.get(tag_bytes) == Some(&PREFIX)
        && let (&[] | &[0], &[PREFIX, len, ref rest @ ..]) = arena.split_at(tag_bytes)
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
pub(super) fn prefix_bytes(prefix: &[u8], tag_bytes: usize) -> usize {
    if prefix.is_empty() { 0 } else { tag_bytes + 2 + prefix.len() }
}

/// An iterator over the slice tags and members of an arena (the encoded members). It stops at the end, or at bytes that
/// are no valid member. Without a window, each member has the tag of [`Ages::PLAIN`].
#[derive(Debug, Clone, Default)]
pub(in crate::counting) struct Records<'a> {
    rest: &'a [u8],
    prefix: &'a [u8],
    tag_bytes: usize,
}

impl<'a> Records<'a> {
    #[inline]
    pub(super) fn new(arena: &'a [u8], tag_bytes: usize) -> Self {
        let (prefix, rest) = split_prefix(arena, tag_bytes);
        Records { rest, prefix, tag_bytes }
    }

    /// An iterator over the members from byte `offset` on. It yields nothing if `offset` is beyond the arena.
    #[inline]
    pub(super) fn from(arena: &'a [u8], tag_bytes: usize, offset: usize) -> Self {
        Records { rest: arena.get(offset..).unwrap_or_default(), ..Self::new(arena, tag_bytes) }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u8, Member<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u8, Member<'a>)> {
        let (tag, rest) = self.rest.split_at_checked(self.tag_bytes)?;
        let (member, rest) = Member::split(rest, self.prefix)?;
        self.rest = rest;
        Some((tag.first().copied().unwrap_or(Ages::PLAIN.newest), member))
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
            let mut members = Records::from(&arena, 0, 3);
            assert!(members.next().unwrap().1 == item && members.next().is_none() && members.rest().is_empty());
            // Without its last byte, the member is not valid.
            arena.pop();
            let mut members = Records::from(&arena, 0, 3);
            assert!(members.next().is_none() && members.rest() == &arena[3..]);
        }
        assert_eq!(Records::from(b"ab", 0, 3).next(), None);
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
            let (found, members) = split_prefix(arena, 0);
            assert_eq!((found, members.len()), (prefix, arena.len() - prefix_bytes(prefix, 0)));
            let tagged = [&[0], arena].concat();
            assert_eq!(split_prefix(&tagged, 1).0, prefix);
            // A prefix has the byte 0 in place of a slice tag. So other bytes are not a prefix.
            assert_eq!(split_prefix(&[&[1], arena].concat(), 1).0, b"");
        }
    }
}
