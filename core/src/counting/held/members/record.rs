//! The record: the encoding of a member of an exact counter. The header of a record is its first byte, which says how
//! the text is encoded, and for texts of 128 bytes or more two more bytes. The rest is the body. All encodings are
//! listed in docs/persistence.md#header-of-a-counter.
//!
//! A record depends only on the text and on the prefix of the set: the text that its members begin with.

use std::borrow::Cow;

use super::digits::{Case, HEX_DIGITS, MOST_BYTES, MOST_CHARACTERS, are_digits, bytes_of, decimal, is_number};
use super::digits::{is_uuid, put_decimal, put_hex, put_uuid, value_of, without_hyphens};
use crate::counting::params::MOST_PREFIX;

/// The first byte of each kind of record. For hex digits and numbers, the length of the body is added to it.
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

/// The length of a record, by its first byte. It is 0 for texts of 128 bytes or more, and for bytes that begin no
/// record.
const LENGTHS: [u8; 256] = {
    let (mut lengths, mut first) = ([0; 256], 0);
    while first < LONG_TEXT {
        lengths[first as usize] = match first {
            0..HEX_LOWER => 1 + first,
            0x84..=0xa0 => 1 + first - HEX_LOWER,
            0xa4..=0xc0 => 1 + first - HEX_UPPER,
            0xc1..=0xc8 => 1 + first - DECIMAL,
            UUID_LOWER | UUID_UPPER => 17,
            0xd8..=0xdf => 1 + first - PREFIXED,
            _ => 0,
        };
        first += 1;
    }
    lengths
};

pub(in crate::counting) struct Record<'a> {
    /// The prefix to store before this member, if the member is the first of the set and has a prefix; otherwise empty.
    pub(super) prefix: &'a [u8],
    /// The header of the record, and the body if the text is encoded.
    pub(super) head: &'a [u8],
    /// The text if it is not encoded; otherwise empty.
    pub(super) text: &'a [u8],
    /// The bytes that the member takes of the limit `exact_bytes`: the length of the record without its header. If the
    /// record leaves out a prefix, it is the length of the whole text, so that the number does not depend on other
    /// members.
    pub(in crate::counting) counted_bytes: usize,
}

impl<'a> Record<'a> {
    /// Encodes `item` for a set with this prefix (see [arena](super::arena)). The header has no room for lengths of
    /// 2^21 bytes or more, but no member of an exact counter is that long.
    #[inline(always)]
    pub(super) fn of(item: &'a [u8], prefix: &[u8], coded: &'a mut Coded) -> Self {
        let is_digit = |end: Option<&u8>| end.is_some_and(u8::is_ascii_hexdigit);
        // A number, a UUID and hex digits begin and end with a hex digit. Nearly all other texts do not.
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

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.text.len()
    }
}

/// Encodes a text that is a number, a UUID or hex digits. Returns the length of the record; 0 for another text.
#[inline(never)]
fn put_digits(item: &[u8], coded: &mut Coded) -> usize {
    if let Ok(uuid) = item.try_into()
        && let Some(digits) = without_hyphens(uuid)
    {
        return put_hex_digits(&digits, [UUID_LOWER, UUID_UPPER], 16, coded);
    }
    if let Some(value) = decimal(item) {
        return put_number(DECIMAL, value, coded);
    }
    if !HEX_DIGITS.contains(&item.len()) || !item.len().is_multiple_of(2) {
        return 0;
    }
    // Zeros are put behind the digits, so that there are 64 digits.
    let mut digits = [[b'0'; 8]; MOST_BYTES / 4];
    digits.as_flattened_mut()[..item.len()].copy_from_slice(item);
    let len = item.len() / 2;
    let codes = [HEX_LOWER + len as u8, HEX_UPPER + len as u8];
    put_hex_digits(&digits.map(u64::from_le_bytes), codes, len, coded)
}

/// Encodes characters if they are hexadecimal digits of one case. The encoding is `codes[0]` for lower case or
/// `codes[1]` for upper case, then `len` bytes for the digits. Returns its length, `1 + len`; 0 for other characters.
#[inline(always)]
fn put_hex_digits(digits: &[u64], codes: [u8; 2], len: usize, coded: &mut Coded) -> usize {
    for (case, code) in [(Case::Lower, codes[0]), (Case::Upper, codes[1])] {
        if digits.iter().fold(true, |are_all, &eight| are_all & are_digits(eight, case)) {
            coded[0] = code;
            for (bytes, eights) in coded[1..].as_chunks_mut().0.iter_mut().zip(digits.as_chunks().0) {
                let &[first, second] = eights;
                *bytes = (bytes_of(first) | bytes_of(second) << 32).to_le_bytes();
            }
            return 1 + len;
        }
    }
    0
}

#[inline]
fn put_number(code: u8, value: u64, coded: &mut Coded) -> usize {
    let len = (u64::BITS - value.leading_zeros()).div_ceil(8).max(1) as u8;
    coded[0] = code + len;
    coded[1..9].copy_from_slice(&value.to_le_bytes());
    1 + usize::from(len)
}

/// The record of `item`, if the record has two bytes. `prefix` is the text that members of the set begin with.
#[inline(always)]
pub(super) fn pair_of(item: &[u8], prefix: &[u8]) -> Option<[u8; 2]> {
    // A number that fits in one byte has at most three digits.
    if item.len() > prefix.len() + 3 {
        return None;
    }
    let number = if prefix.is_empty() { None } else { behind(prefix, item) };
    let (code, digits) = number.map_or((DECIMAL, item), |number| (PREFIXED, number));
    match (decimal(digits), item) {
        (Some(value), _) => Some([code + 1, value.try_into().ok()?]),
        (None, &[character]) => Some([1, character]),
        _ => None,
    }
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
        0..4 => value_of(member) == value_of(item),
        4..8 => have_same_ends::<4>(member, item),
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
    /// The text that members of the counter have in common before a number, as `user:` in `user:17`.
    prefix: &'a [u8],
}

impl<'a> Member<'a> {
    /// Splits `bytes` into the first record and the rest; `None` if they do not begin with a whole record. `prefix` is
    /// the text that members of the set begin with.
    #[inline]
    pub(in crate::counting) fn split(bytes: &'a [u8], prefix: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let &first = bytes.first()?;
        let len = match LENGTHS[usize::from(first)] {
            0 => long_text(bytes)?,
            len => len.into(),
        };
        let (record, rest) = bytes.split_at_checked(len)?;
        Some((Member { record, prefix }, rest))
    }

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

    /// Whether encoding `text` gives this record. `text` must be what the record decodes to.
    #[inline]
    pub(super) fn is_record_of(self, text: &[u8]) -> bool {
        let mut coded = CODED;
        // Two records that decode to `text` are equal if they have the same first byte, which says how a text is
        // encoded, and the same length. A UUID in lower case has only one encoding, so nothing is compared.
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
            [0x84..=0xa0, ref body @ ..] => put_hex(body, Case::Lower, buffer),
            [0xa4..=0xc0, ref body @ ..] => put_hex(body, Case::Upper, buffer),
            [UUID_UPPER, ref body @ ..] => put_uuid(body, Case::Upper, buffer),
            _ => self.body(),
        }
    }

    /// Whether `bytes` begin with the record of the text `item`. `prefix` returns the text that members of the set
    /// begin with.
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

/// The length of the first record of `bytes`, if it is a text of 128 bytes or more.
#[cold]
fn long_text(bytes: &[u8]) -> Option<usize> {
    let &[first @ LONG_TEXT..=u8::MAX, low, high] = bytes.first_chunk()? else { return None };
    Some(3 + (usize::from(first - LONG_TEXT) << 16 | usize::from(high) << 8 | usize::from(low)))
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
pub(super) mod tests;
