//! The encoding of a member of an exact counter, the record: a header and a body. The header is the first byte, and for
//! long texts two more bytes.
//!
//! | first byte | text of the member | body |
//! |---|---|---|
//! | `0x00` to `0x7f` | any | the text; the byte is its length |
//! | `0x84` to `0xa0` | 8 to 64 hex digits, an even number, lower case | 4 to 32 bytes |
//! | `0xa4` to `0xc0` | the same number of hex digits, upper case | 4 to 32 bytes |
//! | `0xc1` to `0xc8` | a decimal number below 2^63 without leading zeros | 1 to 8 bytes, the lowest first |
//! | `0xd0`, `0xd1` | a UUID as 8-4-4-4-12 digits in lower case, in upper case | 16 bytes |
//! | `0xd8` to `0xdf` | the prefix of the [arena](super::arena), then a decimal number as above | 1 to 8 bytes |
//! | `0xe0` to `0xff` | any of 128 bytes or more | the text |
//!
//! The length of a text of 128 bytes or more has 21 bits: five bits of the first byte, and two more bytes, the lower
//! byte first. A text is kept in the first form that fits, in the order decimal, UUID, hex, prefix, text. Lower case
//! comes before upper case. So equal texts have equal records in counters with the same prefix.

use std::borrow::Cow;

use super::digits::{Case, HEX_DIGITS, MOST_BYTES, MOST_CHARACTERS, bytes_of, bytes_of_uuid, decimal, digits_of};
use super::digits::{is_number, is_uuid, put_decimal, put_hex, put_uuid, value_of};
use crate::counting::params::MOST_PREFIX;

/// The lowest first byte of each kind of record. For hex digits and numbers, the length of the body is added to it.
const HEX_LOWER: u8 = 0x80;
const HEX_UPPER: u8 = 0xa0;
const DECIMAL: u8 = 0xc0;
const UUID_LOWER: u8 = 0xd0;
const UUID_UPPER: u8 = 0xd1;
const PREFIXED: u8 = 0xd7;
const LONG_TEXT: u8 = 0xe0;

/// Memory for a header of one byte and the longest body of hex digits or a number.
pub(in crate::counting) type Coded = [u8; 1 + MOST_BYTES];
pub(in crate::counting) const CODED: Coded = [0; 1 + MOST_BYTES];

/// An encoded text, ready to be inserted.
pub(in crate::counting) struct Record<'a> {
    /// The prefix to store before this member: a text that this and later members begin with. It is empty unless the
    /// member is the first of the set, and has a prefix.
    pub(super) prefix: &'a [u8],
    /// The header. If the body is not the text itself, it follows.
    pub(super) head: &'a [u8],
    /// The text if the body is the text itself; otherwise empty.
    pub(super) text: &'a [u8],
    /// The bytes that the member takes of the limit `exact_bytes`: the length of its body. For a member with a prefix,
    /// it is the length of the text. So the number depends only on the text, not on the other members.
    pub(in crate::counting) counted_bytes: usize,
}

impl<'a> Record<'a> {
    /// Encodes `item` for a set. `prefix` is the text that members of the set begin with, which is stored only once. A
    /// counter never keeps an item of 2^21 bytes or more.
    pub(super) fn of(item: &'a [u8], prefix: &[u8], coded: &'a mut Coded) -> Self {
        let is_digit = |end: Option<&u8>| end.is_some_and(u8::is_ascii_hexdigit);
        // Nearly all texts that are not of hex digits begin or end with another character. They need no attempt.
        let len = if is_digit(item.first()) && is_digit(item.last()) { put_digits(item, coded) } else { 0 };
        if len > 0 {
            return Record { prefix: &[], head: &coded[..len], text: &[], counted_bytes: len - 1 };
        }
        if !prefix.is_empty()
            && let Some(value) = behind(prefix, item).and_then(decimal)
        {
            let len = put_number(PREFIXED, value, coded);
            return Record { prefix: &[], head: &coded[..len], text: &[], counted_bytes: item.len() };
        }
        let [low, high, highest, ..] = item.len().to_le_bytes();
        let head = if item.len() < 0x80 { 1 } else { 3 };
        coded[..3].copy_from_slice(&if head == 1 { [low, 0, 0] } else { [LONG_TEXT | highest, low, high] });
        Record { prefix: &[], head: &coded[..head], text: item, counted_bytes: item.len() }
    }

    /// Encodes the first member of a set. This member decides the prefix: its text up to the last character that is not
    /// a digit.
    pub(super) fn first(item: &'a [u8], coded: &'a mut Coded) -> Self {
        let last = item.iter().rposition(|byte| !byte.is_ascii_digit());
        let prefix = last.filter(|&last| last < MOST_PREFIX).map_or(&[][..], |last| &item[..=last]);
        let record = Self::of(item, prefix, coded);
        let is_prefixed = (PREFIXED..LONG_TEXT).contains(&record.head[0]);
        Record { prefix: if is_prefixed { prefix } else { &[] }, ..record }
    }

    /// Bytes of the header and the body.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.text.len()
    }
}

/// Encodes a text that is a number, a UUID or hex digits. Returns the length of the record; 0 for another text.
#[inline(never)]
fn put_digits(item: &[u8], coded: &mut Coded) -> usize {
    if let Some(value) = decimal(item) {
        return put_number(DECIMAL, value, coded);
    }
    if let Ok(uuid) = item.try_into() {
        for (case, code) in [(Case::Lower, UUID_LOWER), (Case::Upper, UUID_UPPER)] {
            if let Some(bytes) = bytes_of_uuid(uuid, case) {
                coded[0] = code;
                coded[1..=bytes.len()].copy_from_slice(&bytes);
                return 1 + bytes.len();
            }
        }
    }
    if !HEX_DIGITS.contains(&item.len()) || !item.len().is_multiple_of(2) {
        return 0;
    }
    let mut digits = [[b'0'; 8]; MOST_BYTES / 4];
    digits.as_flattened_mut()[..item.len()].copy_from_slice(item);
    let bytes = digits.map(|eight| (bytes_of(u64::from_le_bytes(eight)) as u32).to_le_bytes());
    let (bytes, len): ([u8; MOST_BYTES], _) = (bytemuck::cast(bytes), item.len() / 2);
    for (case, code) in [(Case::Lower, HEX_LOWER), (Case::Upper, HEX_UPPER)] {
        if digits_of(&bytes, case).as_flattened() == digits.as_flattened() {
            coded[0] = code + len as u8;
            coded[1..].copy_from_slice(&bytes);
            return 1 + len;
        }
    }
    0
}

/// Encodes a number. Returns the length of the record.
#[inline]
fn put_number(code: u8, value: u64, coded: &mut Coded) -> usize {
    let len = (u64::BITS - value.leading_zeros()).div_ceil(8).max(1) as u8;
    coded[0] = code + len;
    coded[1..9].copy_from_slice(&value.to_le_bytes());
    1 + usize::from(len)
}

/// The bytes that `item` takes of the limit `exact_bytes`. See [`Record::counted_bytes`].
pub(in crate::counting) fn counted_bytes(item: &[u8]) -> usize {
    Record::of(item, &[], &mut { CODED }).counted_bytes
}

/// The part of `item` after `prefix`, if `item` begins with `prefix`.
#[inline(always)]
fn behind<'i>(prefix: &[u8], item: &'i [u8]) -> Option<&'i [u8]> {
    let (start, rest) = item.split_at_checked(prefix.len())?;
    is_same(start, prefix).then_some(rest)
}

/// Whether two texts are equal. Up to 64 bytes are compared without calling `memcmp`.
#[inline(always)]
fn is_same(member: &[u8], item: &[u8]) -> bool {
    if member.len() != item.len() {
        return false;
    }
    match item.len() {
        0..8 => value_of(member) == value_of(item),
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

/// A member of an exact counter, as the counter encodes it. Two members are equal if their texts are equal.
///
/// ```
/// use rollcall_core::counting::Counter;
///
/// let counter: Counter = ["ann", "1f0e3dad-9990-4d3c-b2c9-6a1d2b3c4d5e"].into_iter().collect();
/// let texts: Vec<_> = counter.members()?.map(|member| member.text().to_vec()).collect();
/// assert_eq!(texts, [&b"ann"[..], b"1f0e3dad-9990-4d3c-b2c9-6a1d2b3c4d5e"]);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Member<'a> {
    record: &'a [u8],
    /// The text before the number that the members of the counter have in common, as `user:` in `user:17`.
    prefix: &'a [u8],
}

impl<'a> Member<'a> {
    /// Splits `bytes` into the first record and the rest. `prefix` is the text that members of the set begin with,
    /// which is stored only once. Returns `None` if `bytes` do not begin with a whole record.
    #[inline]
    pub(super) fn split(bytes: &'a [u8], prefix: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let len = match *bytes.first()? {
            len @ 0..HEX_LOWER => 1 + usize::from(len),
            UUID_LOWER | UUID_UPPER => 17,
            first @ (0x84..=0xa0) => 1 + usize::from(first - HEX_LOWER),
            first @ (0xa4..=0xc0) => 1 + usize::from(first - HEX_UPPER),
            first @ (0xc1..=0xc8) => 1 + usize::from(first - DECIMAL),
            first @ (0xd8..=0xdf) if !prefix.is_empty() => 1 + usize::from(first - PREFIXED),
            first @ LONG_TEXT.. => {
                let &[low, high] = bytes.get(1..3)?.first_chunk()?;
                3 + (usize::from(first - LONG_TEXT) << 16 | usize::from(high) << 8 | usize::from(low))
            }
            _ => return None,
        };
        let (record, rest) = bytes.split_at_checked(len)?;
        Some((Member { record, prefix }, rest))
    }

    /// The header and the body.
    #[inline]
    pub(in crate::counting) fn record(self) -> &'a [u8] {
        self.record
    }

    #[inline]
    fn body(self) -> &'a [u8] {
        match self.record {
            [LONG_TEXT..=u8::MAX, _, _, body @ ..] | [_, body @ ..] => body,
            [] => &[],
        }
    }

    /// The bytes that the member takes of the limit `exact_bytes`. See [`Record::counted_bytes`].
    #[inline]
    pub(in crate::counting) fn counted_bytes(self) -> usize {
        match self.record {
            [0xd8..=0xdf, ..] => self.text_in(&mut [0; MOST_CHARACTERS]).len(),
            _ => self.body().len(),
        }
    }

    /// Whether encoding `text`, the text of this member, gives this record.
    #[inline]
    pub(super) fn is_record_of(self, text: &[u8]) -> bool {
        let mut coded = CODED;
        // Two records of the same text are equal if their first bytes and their lengths are equal. A UUID has only one
        // record.
        self.record[0] == UUID_LOWER || {
            let due = Record::of(text, self.prefix, &mut coded);
            due.head[0] == self.record[0] && due.len() == self.record.len()
        }
    }

    /// The text of the member, as it was added. [`text_in`](Self::text_in) does the same and never allocates.
    pub fn text(self) -> Cow<'a, [u8]> {
        match *self.record {
            [0..HEX_LOWER | LONG_TEXT.., ..] => Cow::Borrowed(self.body()),
            _ => Cow::Owned(self.text_in(&mut [0; MOST_CHARACTERS]).to_vec()),
        }
    }

    /// The text of the member, as it was added. It is decoded into `buffer`, unless the counter keeps the text itself.
    #[inline(always)]
    pub fn text_in<'b>(self, buffer: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self.record {
            [0..HEX_LOWER, ref text @ ..] => text,
            [UUID_LOWER, ref body @ ..] => put_uuid(body, Case::Lower, buffer),
            [0xc1..=0xc8, ref body @ ..] => put_decimal(&[], body, buffer),
            [0xd8..=0xdf, ref body @ ..] => put_decimal(self.prefix, body, buffer),
            _ => self.rarer_text_in(buffer),
        }
    }

    #[inline(never)]
    fn rarer_text_in<'b>(self, buffer: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8]
    where
        'a: 'b,
    {
        let body = self.body();
        match *self.record {
            [0x84..=0xa0, ..] => put_hex(body, Case::Lower, buffer),
            [0xa4..=0xc0, ..] => put_hex(body, Case::Upper, buffer),
            [UUID_UPPER, ..] => put_uuid(body, Case::Upper, buffer),
            _ => body,
        }
    }

    /// Whether the first record of `bytes` is that of the text `item`. `prefix` returns the text that members of the
    /// set begin with, which is stored only once. The text is neither decoded nor copied.
    #[inline(always)]
    pub(super) fn begins(bytes: &'a [u8], item: &[u8], prefix: impl FnOnce() -> &'a [u8]) -> bool {
        match bytes.split_first() {
            Some((&length @ 0..HEX_LOWER, rest)) => {
                usize::from(length) == item.len() && rest.get(..item.len()).is_some_and(|text| is_same(text, item))
            }
            Some((&UUID_LOWER, rest)) => match (item.try_into(), rest.first_chunk()) {
                (Ok(item), Some(body)) => is_uuid(item, body, Case::Lower),
                _ => false,
            },
            Some((&first @ 0xc1..=0xc8, rest)) => is_number(item, first - DECIMAL, rest),
            Some((&first @ 0xd8..=0xdf, rest)) => {
                behind(prefix(), item).is_some_and(|number| is_number(number, first - PREFIXED, rest))
            }
            _ => Self::rarely_begins(bytes, item),
        }
    }

    #[inline(never)]
    fn rarely_begins(bytes: &'a [u8], item: &[u8]) -> bool {
        Self::split(bytes, &[]).is_some_and(|(member, _)| member == *item)
    }
}

impl std::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.text().escape_ascii())
    }
}

impl Eq for Member<'_> {}

impl PartialEq for Member<'_> {
    fn eq(&self, other: &Self) -> bool {
        match self.prefix == other.prefix {
            true => self.record == other.record,
            false => *self == other.text_in(&mut [0; MOST_CHARACTERS]),
        }
    }
}

impl<B: AsRef<[u8]> + ?Sized> PartialEq<B> for Member<'_> {
    fn eq(&self, other: &B) -> bool {
        self.text_in(&mut [0; MOST_CHARACTERS]) == other.as_ref()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const LOWER: &str = "0123abcd-ef01-2345-6789-abcdef012345";

    /// The encoding of `item` in a set whose members begin with `prefix`.
    pub(in super::super) fn record(item: &[u8], prefix: &[u8]) -> Vec<u8> {
        let mut coded = CODED;
        let record = Record::of(item, prefix, &mut coded);
        [record.head, record.text].concat()
    }

    /// Texts for each kind of record, and texts that just miss a kind.
    pub(in super::super) fn texts() -> impl Strategy<Value = Vec<u8>> {
        let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
        let nearly = (uuid, 0usize..36, any::<u8>()).prop_map(|(text, at, other)| {
            let mut text = text.into_bytes();
            text[at] = other;
            text
        });
        prop_oneof![
            4 => uuid.prop_map(String::into_bytes),
            2 => uuid.prop_map(|text| text.to_uppercase().into_bytes()),
            2 => nearly,
            2 => any::<u64>().prop_map(|number| number.to_string().into_bytes()),
            2 => "[0-9]{1,20}".prop_map(String::into_bytes),
            2 => (0u32..1000).prop_map(|number| number.to_string().into_bytes()),
            2 => "[0-9a-f]{1,70}".prop_map(String::into_bytes),
            2 => "[0-9A-F]{1,70}".prop_map(String::into_bytes),
            1 => "[0-9a-fA-F-]{1,70}".prop_map(String::into_bytes),
            2 => (0u32..1000).prop_map(|number| format!("user:{number}").into_bytes()),
            1 => "user:[0-9]{0,20}".prop_map(String::into_bytes),
            1 => vec(any::<u8>(), 0..200),
        ]
    }

    #[test]
    fn records_are_pinned() {
        let bytes = *b"\x01\x23\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45";
        let upper = LOWER.to_uppercase();
        for (item, head, body) in [
            (&b""[..], &b"\0"[..], &b""[..]),
            (b"ann", b"\x03", b"ann"),
            (b"0", b"\xc1", b"\0"),
            (b"255", b"\xc1", b"\xff"),
            (b"256", b"\xc2", b"\0\x01"),
            (b"00", b"\x02", b"00"),
            (b"-1", b"\x02", b"-1"),
            (b"12345678", b"\xc3", b"\x4e\x61\xbc"),
            (b"9223372036854775807", b"\xc8", b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
            (b"9223372036854775808", b"\x13", b"9223372036854775808"),
            (b"18446744073709551616", b"\x8a", b"\x18\x44\x67\x44\x07\x37\x09\x55\x16\x16"),
            (b"01234567", b"\x84", b"\x01\x23\x45\x67"),
            (b"0012abcdef", b"\x85", b"\0\x12\xab\xcd\xef"),
            (b"0012ABCDEF", b"\xa5", b"\0\x12\xab\xcd\xef"),
            (b"0012abcdeF", b"\x0a", b"0012abcdeF"),
            (b"012abc", b"\x06", b"012abc"),
            (b"0012abcde", b"\x09", b"0012abcde"),
            (&[b'f'; 64], b"\xa0", &[0xff; 32]),
            (&[b'F'; 64], b"\xc0", &[0xff; 32]),
            (&[b'f'; 66], b"\x42", &[b'f'; 66]),
            (LOWER.as_bytes(), b"\xd0", &bytes),
            (upper.as_bytes(), b"\xd1", &bytes),
            // A `g` is not a hexadecimal digit, but has the same low bits as a `7`.
            (b"0123abcg-ef01-2345-6789-abcdef012345", b"\x24", b"0123abcg-ef01-2345-6789-abcdef012345"),
            (&[b'0'; 127], b"\x7f", &[b'0'; 127]),
            (&[b'0'; 128], b"\xe0\x80\0", &[b'0'; 128]),
            (&[b'z'; 0x1_0203], b"\xe1\x03\x02", &[b'z'; 0x1_0203]),
        ] {
            assert_eq!(record(item, b""), [head, body].concat(), "{:?}", item.escape_ascii().to_string());
            // The prefix (here `an`) changes only the encoding of texts that consist of the prefix and a number.
            assert_eq!(record(item, b"an"), record(item, b""));
        }
        for (item, written) in [
            (&b"user:0"[..], &b"\xd8\0"[..]),
            (b"user:65536", b"\xda\0\0\x01"),
            (b"user:9223372036854775807", b"\xdf\xff\xff\xff\xff\xff\xff\xff\x7f"),
            (b"user:9223372036854775808", b"\x18user:9223372036854775808"),
            (b"user:", b"\x05user:"),
            (b"user:07", b"\x07user:07"),
            (b"user:1a", b"\x07user:1a"),
            (b"users:1", b"\x07users:1"),
        ] {
            assert_eq!(record(item, b"user:"), written);
        }
    }

    #[test]
    fn the_first_member_decides_the_prefix() {
        let long = [&[b'x'; MOST_PREFIX], &b"1"[..]].concat();
        for (item, prefix) in [
            (&b"user:17"[..], &b"user:"[..]),
            (b"a1b2", b"a1b"),
            (&long, &[b'x'; MOST_PREFIX]),
            (&[b"x", &long[..]].concat(), b""),
            (b"17", b""),
            (b"user:", b""),
            (b"user:017", b""),
            (b"user:9223372036854775808", b""),
            (b"abcdef12", b""),
            (LOWER.as_bytes(), b""),
        ] {
            let mut coded = CODED;
            let first = Record::first(item, &mut coded);
            assert_eq!((first.prefix, [first.head, first.text].concat()), (prefix, record(item, prefix)));
        }
    }

    #[test]
    fn what_is_no_record_is_not_split() {
        for first in (0x80..=0x83).chain(0xa1..=0xa3).chain(0xc9..=0xcf).chain(0xd2..=0xd7) {
            let mut bytes = [0; 100];
            bytes[0] = first;
            assert_eq!(Member::split(&bytes, b"user:"), None, "{first:#x}");
        }
        for bytes in [&b""[..], b"\x01", b"\x84abc", b"\xc2a", b"\xd0", b"\xe0", b"\xe0\x01", b"\xe0\x02\0a"] {
            assert_eq!(Member::split(bytes, b"user:"), None);
        }
        // These bytes encode a number after the text that members begin with, but the set has no such text.
        assert_eq!(Member::split(b"\xd8\x01", b""), None);
    }

    fn prefixes() -> impl Strategy<Value = &'static [u8]> {
        prop::sample::select(vec![&b""[..], b"user:", b"u", &[b'a'; MOST_PREFIX]])
    }

    proptest! {
        #[test]
        fn bytes_are_compared_to_the_last(len in 0usize..200, at in any::<prop::sample::Index>()) {
            let item: Vec<u8> = (0..len as u8).collect();
            prop_assert!(is_same(&item, &item.clone()));
            let mut other = item.clone();
            if len > 0 {
                other[at.index(len)] ^= 1;
                prop_assert!(!is_same(&item, &other));
            }
            other.push(0);
            prop_assert!(!is_same(&item, &other));
        }

        #[test]
        fn texts_come_back_byte_for_byte(text in texts(), other in texts(), prefix in prefixes()) {
            let record = record(&text, prefix);
            let most = text.len() + if text.len() < 128 { 1 } else { 3 };
            prop_assert!(record.len() <= most);
            let behind = [&record[..], b"behind"].concat();
            let (member, rest) = Member::split(&behind, prefix).unwrap();
            prop_assert_eq!((member.record(), rest), (&record[..], &b"behind"[..]));
            prop_assert_eq!(&*member.text(), &text[..]);
            let mut buffer = [7; MOST_CHARACTERS];
            prop_assert_eq!(member.text_in(&mut buffer), &text[..]);
            prop_assert_eq!(member.counted_bytes(), counted_bytes(&text));
            prop_assert!(member.is_record_of(&text) && Member::begins(&behind, &text, || prefix));
            prop_assert_eq!(Member::begins(&behind, &other, || prefix), text == other);
        }

        #[test]
        fn members_are_equal_if_their_texts_are(
            (one, other) in prop_oneof![(texts(), texts()), texts().prop_map(|text| (text.clone(), text))],
            (ours, theirs) in (prefixes(), prefixes()),
        ) {
            let (records, is_same) = ((record(&one, ours), record(&other, theirs)), one == other);
            let (own, theirs) = (Member::split(&records.0, ours), Member::split(&records.1, theirs));
            prop_assert_eq!(own.unwrap().0 == theirs.unwrap().0, is_same);
        }

        #[test]
        fn any_record_has_a_text(first in any::<u8>(), body in vec(any::<u8>(), 0..200), prefix in prefixes()) {
            let bytes = [&[first][..], &body].concat();
            if let Some((member, _)) = Member::split(&bytes, prefix) {
                let text = member.text().to_vec();
                let own = record(&text, prefix);
                prop_assert_eq!(member.is_record_of(&text), own == member.record());
                prop_assert!(own != member.record() || Member::begins(&bytes, &text, || prefix));
            }
        }
    }
}
