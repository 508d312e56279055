//! The record: the encoding of a member of an exact counter. The header of a record is its first byte, which says how
//! the text is encoded, and for texts of 128 bytes or more two more bytes. The rest is the body. All encodings are
//! listed in docs/persistence.md#header-of-a-counter.
//!
//! A record depends only on the text and on the prefix of the set. The arena is the front, then all members, one after
//! the other; with a window, the slice tag of a member is before it. It has the same bytes in memory and in the stored
//! form. The front is what the members share, and stays until no member is left:
//!
//! - If the first member ends in a decimal number, as `user:17` does, the text before the number is the prefix: the
//!   byte `0xd2`, its length in one byte, and its text. A member that is the prefix and a number is kept as the number.
//! - If all members are such numbers, or numbers without a prefix, they are kept without headers, and all in the same
//!   number of bytes: 1, 2, 4 or 8. A byte from `0xd3` to `0xd6` says how many, with a prefix one from `0xc9` to `0xcc`
//!   instead of `0xd2`. A larger number makes all members wider. The first member of another kind makes all of them
//!   records with headers.
//!
//! In a windowed counter, a front that is not empty begins with the tag 0.

use std::borrow::Cow;
use std::ops::BitXor;

use arrayvec::ArrayVec;
use multiversion::multiversion;

use super::digits::{Case, HEX_DIGITS, MOST_BYTES, MOST_CHARACTERS, bytes_of, bytes_of_number, decimal};
use super::digits::{is_uuid, put_decimal, put_hex, put_uuid, put_value, value_of, without_hyphens};
use crate::counting::held::ring::Ages;
use crate::counting::params::MOST_PREFIX;

/// The first byte of each kind of record. For hex digits and numbers, the length of the body is added to it.
const HEX_LOWER: u8 = 0x80;
const HEX_UPPER: u8 = 0xa0;
const DECIMAL: u8 = 0xc0;
const UUID_LOWER: u8 = 0xd0;
const UUID_UPPER: u8 = 0xd1;
const PREFIXED: u8 = 0xd7;
const LONG_TEXT: u8 = 0xe0;

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

/// The record of an item that is looked up or added.
#[derive(Clone, Copy)]
pub(in crate::counting) struct Record<'i> {
    item: &'i [u8],
    /// The first byte of the record.
    code: u8,
    /// The first 16 bytes of the body if the text is a number, a UUID or hex digits. They stay in registers.
    body: [u64; 2],
}

impl<'i> Record<'i> {
    /// Encodes `item` for a set with this prefix. The header has no room for lengths of 2^21 bytes or more, but no
    /// member of an exact counter is that long.
    #[inline(always)]
    pub(super) fn of(item: &'i [u8], prefix: &[u8]) -> Self {
        // A number, a UUID and hex digits begin and end with a hex digit. Nearly all other texts do not.
        let is_digit = |end: Option<&u8>| end.is_some_and(u8::is_ascii_hexdigit);
        if is_digit(item.first())
            && is_digit(item.last())
            && let Some((code, body)) = digits(item)
        {
            return Record { item, code, body };
        }
        if !prefix.is_empty()
            && let Some(value) = number_of(item, prefix)
        {
            return Record { item, code: PREFIXED + bytes_of_number(value) as u8, body: [value, 0] };
        }
        let code = if item.len() < 0x80 { item.len() as u8 } else { LONG_TEXT | (item.len() >> 16) as u8 };
        Record { item, code, body: [0; 2] }
    }

    /// Encodes the first member of a set. This member decides the prefix: its text up to the last character that is not
    /// a digit. The prefix is empty if the text does not end in a number.
    pub(super) fn first(item: &'i [u8]) -> (Self, &'i [u8]) {
        let last = item.iter().rposition(|byte| !byte.is_ascii_digit());
        let prefix = last.filter(|&last| last < MOST_PREFIX).map_or(&[][..], |last| &item[..=last]);
        let record = Self::of(item, prefix);
        (record, if (PREFIXED..LONG_TEXT).contains(&record.code) { prefix } else { &[] })
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        match LENGTHS[usize::from(self.code)] {
            0 => 3 + self.item.len(),
            len => len.into(),
        }
    }

    /// The length of the record, or of the number in a set of numbers of this width.
    #[inline(always)]
    pub(super) fn len_in(&self, width: u8) -> usize {
        if width > 0 { width.into() } else { self.len() }
    }

    /// The bytes that the member takes of the limit `exact_bytes`: the length of the record without its header. If the
    /// record leaves out a prefix, it is the length of the whole text, so that the number does not depend on other
    /// members.
    #[inline(always)]
    pub(in crate::counting) fn counted_bytes(&self) -> usize {
        let is_encoded = (HEX_LOWER..PREFIXED).contains(&self.code);
        if is_encoded { self.len() - 1 } else { self.item.len() }
    }

    /// The number that the text is, behind the prefix of the set if it has one. `None` if the text is no such number.
    #[inline(always)]
    pub(super) fn number(&self, prefix: &[u8]) -> Option<u64> {
        let code = if prefix.is_empty() { DECIMAL } else { PREFIXED };
        (self.code.wrapping_sub(code + 1) < 8).then_some(self.body[0])
    }

    /// Whether `bytes` begin with the record of `item`; `None` for the kinds of records that are decoded to compare.
    #[inline(always)]
    pub(super) fn begins_plainly(bytes: &[u8], item: &[u8]) -> Option<bool> {
        match bytes.split_first()? {
            (&len @ 0..HEX_LOWER, rest) => Some(rest.get(..len.into()).is_some_and(|text| is_same(text, item))),
            (&UUID_LOWER, rest) => {
                Some(item.try_into().is_ok_and(|uuid| rest.first_chunk().is_some_and(|body| is_uuid(uuid, body))))
            }
            _ => None,
        }
    }

    /// Writes the record to `bytes`, which have its length. In a set of numbers of this width, writes the number.
    #[inline(always)]
    pub(super) fn put(&self, bytes: &mut [u8], width: u8) {
        if width > 0 {
            return put_value(bytes, self.body[0]);
        }
        let [code, rest @ ..] = bytes else { return };
        *code = self.code;
        match self.code {
            0..HEX_LOWER => rest.copy_from_slice(self.item),
            LONG_TEXT.. => {
                let (len, text) = rest.split_at_mut(2);
                len.copy_from_slice(&self.item.len().to_le_bytes()[..2]);
                text.copy_from_slice(self.item);
            }
            UUID_LOWER | UUID_UPPER => rest.copy_from_slice(&self.bytes()),
            0x84..=0xc0 if rest.len() <= 16 => rest.copy_from_slice(&self.bytes()[..rest.len()]),
            0x84..=0xc0 => hex(self.item).into_iter().for_each(|(_, body)| rest.copy_from_slice(&body[..rest.len()])),
            _ => put_value(rest, self.body[0]),
        }
    }

    /// The body of a UUID, or the first 16 bytes of that of hex digits.
    #[inline(always)]
    fn bytes(&self) -> [u8; 16] {
        bytemuck::cast(self.body.map(u64::to_le))
    }
}

/// The first byte of the record of a number, a UUID or hex digits, and the first 16 bytes of its body. `None` for
/// another text.
#[inline(always)]
fn digits(item: &[u8]) -> Option<(u8, [u64; 2])> {
    if let Ok(uuid) = item.try_into()
        && let Some(digits) = without_hyphens(uuid)
    {
        let (code, body) = match bytes_of(digits, Case::Lower) {
            Some(body) => (UUID_LOWER, body),
            None => (UUID_UPPER, bytes_of(digits, Case::Upper)?),
        };
        return Some((code, bytemuck::cast::<_, [u64; 2]>(body).map(u64::from_le)));
    }
    if let Some(value) = decimal(item) {
        return Some((DECIMAL + bytes_of_number(value) as u8, [value, 0]));
    }
    let (code, body) = hex(item)?;
    let [first, second, ..]: [u64; 4] = bytemuck::cast(body);
    Some((code, [first, second].map(u64::from_le)))
}

/// The first byte of the record of hex digits, and its body, filled up with zeros. `None` for another text.
#[inline(never)]
fn hex(item: &[u8]) -> Option<(u8, [u8; MOST_BYTES])> {
    if !HEX_DIGITS.contains(&item.len()) || !item.len().is_multiple_of(2) {
        return None;
    }
    // Zeros are put behind the digits, so that there are 64.
    let mut digits = [b'0'; MOST_CHARACTERS];
    digits[..item.len()].copy_from_slice(item);
    let [first, second]: [[u64; 4]; 2] = bytemuck::cast(digits);
    [(Case::Lower, HEX_LOWER), (Case::Upper, HEX_UPPER)].into_iter().find_map(|(case, code)| {
        let second = if item.len() > MOST_CHARACTERS / 2 { bytes_of(second, case)? } else { [0; 16] };
        Some((code + item.len() as u8 / 2, bytemuck::cast([bytes_of(first, case)?, second])))
    })
}

/// The bytes that `item` takes of the limit `exact_bytes`. See [`Record::counted_bytes`].
pub(in crate::counting) fn counted_bytes(item: &[u8]) -> usize {
    Record::of(item, &[]).counted_bytes()
}

/// The number that `item` is in a set with this prefix. See [`Record::number`].
#[inline(always)]
pub(super) fn number_of(item: &[u8], prefix: &[u8]) -> Option<u64> {
    let (start, rest) = item.split_at_checked(prefix.len())?;
    if is_same(start, prefix) { decimal(rest) } else { None }
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
    member.first_chunk::<N>() == item.first_chunk() && member.last_chunk::<N>() == item.last_chunk()
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
    body: &'a [u8],
    /// The length of the header of the record: 0 in a set of numbers.
    header: u8,
    /// The first byte of the header. In a set of numbers, it is that of a record of as many bytes.
    code: u8,
    /// The text that members of the counter have in common before a number, as `user:` in `user:17`.
    prefix: &'a [u8],
}

impl<'a> Member<'a> {
    /// Splits `bytes` into the first member and the rest; `None` if they do not begin with a whole member. `front` is
    /// that of the set.
    #[inline]
    pub(in crate::counting) fn split(bytes: &'a [u8], front: Front<'a>) -> Option<(Self, &'a [u8])> {
        let Front { prefix, width } = front;
        if width > 0 {
            let (body, rest) = bytes.split_at_checked(width.into())?;
            let code = width + if prefix.is_empty() { DECIMAL } else { PREFIXED };
            return Some((Member { body, header: 0, code, prefix }, rest));
        }
        let &code = bytes.first()?;
        let (header, len) = match LENGTHS[usize::from(code)] {
            0 => (3, long_text(bytes)?),
            len => (1, len.into()),
        };
        let (record, rest) = bytes.split_at_checked(len)?;
        Some((Member { body: record.get(usize::from(header)..)?, header, code, prefix }, rest))
    }

    /// The length of the member in its arena, without its slice tag.
    #[inline]
    pub(super) fn len(self) -> usize {
        usize::from(self.header) + self.body.len()
    }

    /// The record of the member, whose text is decoded into `buffer`.
    pub(super) fn record<'b>(self, buffer: &'b mut [u8; MOST_CHARACTERS]) -> Record<'b>
    where
        'a: 'b,
    {
        Record::of(self.text_in(buffer), self.prefix)
    }

    /// The number that the member is, behind the prefix of the set if it has one.
    #[inline]
    pub(super) fn number(self) -> Option<u64> {
        matches!(self.code, 0xc1..=0xc8 | 0xd8..=0xdf).then(|| value_of(self.body))
    }

    /// The address of the member in its arena. Members of one set that were added later have higher addresses.
    #[inline]
    pub(in crate::counting) fn address(self) -> usize {
        self.body.as_ptr().addr() - usize::from(self.header)
    }

    /// The bytes that the member takes of the limit `exact_bytes`. See [`Record::counted_bytes`].
    #[inline]
    pub(in crate::counting) fn counted_bytes(self) -> usize {
        match self.code {
            0xd8..=0xdf => self.text_in(&mut [0; MOST_CHARACTERS]).len(),
            0xc1..=0xc8 => bytes_of_number(value_of(self.body)),
            _ => self.body.len(),
        }
    }

    /// Whether `text` would be kept like this. `text` must be what the record decodes to. `front` is that of the set.
    #[inline]
    pub(super) fn is_record_of(self, text: &[u8], front: Front<'_>) -> bool {
        // Two records that decode to `text` are equal if they have the same first byte, which says how a text is
        // encoded, and the same length. A UUID in lower case has only one encoding, so nothing is compared.
        self.code == UUID_LOWER || {
            let due = Record::of(text, self.prefix);
            match front.width {
                0 => due.code == self.code && due.len() == self.len(),
                _ => due.number(self.prefix) == self.number(),
            }
        }
    }

    /// The text of the member, as it was added. [`text_in`](Self::text_in) does the same and never allocates.
    pub fn text(self) -> Cow<'a, [u8]> {
        match self.code {
            0..HEX_LOWER | LONG_TEXT.. => Cow::Borrowed(self.body),
            _ => Cow::Owned(self.text_in(&mut [0; MOST_CHARACTERS]).to_vec()),
        }
    }

    /// The text of the member, as it was added. It is decoded into `buffer`, unless the counter keeps the text itself.
    #[inline(always)]
    pub fn text_in<'b>(self, buffer: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self.code {
            0..HEX_LOWER => self.body,
            UUID_LOWER => put_uuid(self.body, Case::Lower, buffer),
            0xc1..=0xc8 => put_decimal(&[], self.body, buffer),
            0xd8..=0xdf => put_decimal(self.prefix, self.body, buffer),
            0x84..=0xa0 => put_hex(self.body, Case::Lower, buffer),
            0xa4..=0xc0 => put_hex(self.body, Case::Upper, buffer),
            UUID_UPPER => put_uuid(self.body, Case::Upper, buffer),
            _ => self.body,
        }
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
        match self.code == other.code && self.prefix == other.prefix {
            true => self.body == other.body,
            // The bytes of a number may differ, if its set has wider ones or another prefix.
            false => *self == other.text_in(&mut [0; MOST_CHARACTERS]),
        }
    }
}

impl<B: AsRef<[u8]> + ?Sized> PartialEq<B> for Member<'_> {
    fn eq(&self, other: &B) -> bool {
        let item = other.as_ref();
        match self.code {
            0xc1..=0xc8 => decimal(item) == self.number(),
            0xd8..=0xdf => number_of(item, self.prefix) == self.number(),
            _ => self.text_in(&mut [0; MOST_CHARACTERS]) == item,
        }
    }
}

/// An iterator over the slice tags and members of an arena (the encoded members). It stops at the end, or at bytes that
/// are no valid member. Without a window, each member has the tag of [`Ages::PLAIN`].
#[derive(Debug, Clone, Default)]
pub(in crate::counting) struct Records<'a> {
    pub(super) rest: &'a [u8],
    pub(super) front: Front<'a>,
    pub(super) tag_bytes: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(arena: &'a [u8], tag_bytes: usize) -> Self {
        let (front, rest) = Front::split(arena, tag_bytes);
        Records { rest, front, tag_bytes }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u8, Member<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u8, Member<'a>)> {
        let (&tag, rest) = match self.tag_bytes {
            0 => (&Ages::PLAIN.newest, self.rest),
            _ => self.rest.split_first()?,
        };
        let (member, rest) = Member::split(rest, self.front)?;
        self.rest = rest;
        Some((tag, member))
    }

    // A filter calls this in its `next`. The default would stay a call for each member, as long as decoding its text.
    #[inline(always)]
    fn find_map<B, F: FnMut(Self::Item) -> Option<B>>(&mut self, mut of: F) -> Option<B> {
        loop {
            if let Some(found) = of(self.next()?) {
                return Some(found);
            }
        }
    }
}

/// The byte that marks a prefix: the text that members begin with, which is stored only once. No encoded member begins
/// with this byte.
const PREFIX: u8 = 0xd2;
/// The byte that marks numbers of one byte each. The next three mark numbers of 2, 4 and 8 bytes. No encoded member
/// begins with these bytes.
const NUMBERS: u8 = 0xd3;
const WIDEST: u8 = NUMBERS + 3;
/// The bytes that mark a prefix and also numbers of 1, 2, 4 and 8 bytes. A marker of its own behind the prefix could be
/// taken for the slice tag of the first member.
const PREFIX_NUMBERS: u8 = 0xc9;
const PREFIX_WIDEST: u8 = PREFIX_NUMBERS + 3;

/// A set of at most this number of numbers without tags has no index. So numbers of one byte each never have one.
pub(super) const MOST_SCANNED: usize = 0x100;

/// What the members of an arena share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::counting) struct Front<'a> {
    /// The text that members begin with; empty if there is none.
    pub(super) prefix: &'a [u8],
    /// The number of bytes of each member if all are numbers: 1, 2, 4 or 8. Otherwise 0.
    pub(super) width: u8,
}

impl<'a> Front<'a> {
    /// Splits an arena (the encoded members) into its front and the members. `tag_bytes` is the length of a slice tag:
    /// 0 without a window, otherwise 1.
    pub(super) fn split(arena: &'a [u8], tag_bytes: usize) -> (Self, &'a [u8]) {
        let (mut front, Some(([] | [0], mut rest))) = (Front::default(), arena.split_at_checked(tag_bytes)) else {
            return (Front::default(), arena);
        };
        match *rest {
            [marker @ NUMBERS..=WIDEST, ref members @ ..] => (front.width, rest) = (1 << (marker - NUMBERS), members),
            [marker @ (PREFIX | PREFIX_NUMBERS..=PREFIX_WIDEST), len, ref more @ ..] => {
                if (1..=MOST_PREFIX).contains(&usize::from(len))
                    && let Some((prefix, members)) = more.split_at_checked(len.into())
                    && prefix.last().is_some_and(|last| !last.is_ascii_digit())
                {
                    let width = if marker == PREFIX { 0 } else { 1 << (marker - PREFIX_NUMBERS) };
                    (front, rest) = (Front { prefix, width }, members);
                }
            }
            _ => {}
        }
        (front, if front == Front::default() { arena } else { rest })
    }

    /// The bytes of the front in an arena.
    pub(super) fn to_bytes(self, tag_bytes: usize) -> ArrayVec<u8, { MOST_PREFIX + 3 }> {
        let mut bytes = ArrayVec::new();
        if self != Front::default() {
            bytes.extend(std::iter::repeat_n(0, tag_bytes));
        }
        let power = self.width.checked_ilog2().map(|power| power as u8);
        if !self.prefix.is_empty() {
            bytes.extend([power.map_or(PREFIX, |power| PREFIX_NUMBERS + power), self.prefix.len() as u8]);
            bytes.extend(self.prefix.iter().copied());
        } else if let Some(power) = power {
            bytes.push(NUMBERS + power);
        }
        bytes
    }

    /// The least width for a number.
    #[inline(always)]
    pub(super) fn width_of(number: u64) -> u8 {
        1 << (u8::from(number > 0xff) + u8::from(number > 0xffff) + u8::from(number > 0xffff_ffff))
    }

    /// Whether `wanted` is one of these numbers, which have the width of this front.
    #[inline(always)]
    fn has(self, numbers: &[u8], wanted: u64) -> bool {
        match self.width {
            width if wanted.unbounded_shr(8 * u32::from(width)) > 0 => false,
            1 => has(numbers, u8::from_le_bytes, wanted as u8),
            2 => has(numbers, u16::from_le_bytes, wanted as u16),
            4 => has(numbers, u32::from_le_bytes, wanted as u32),
            _ => has(numbers, u64::from_le_bytes, wanted),
        }
    }
}

/// Whether `item` is one of these numbers, which have the width of `front`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub(super) fn has_item(front: Front<'_>, numbers: &[u8], item: &[u8]) -> bool {
    number_of(item, front.prefix).is_some_and(|wanted| front.has(numbers, wanted))
}

/// Whether `wanted` is one of these numbers, each of `N` bytes.
// The loops have no early end and no branches, and compile to vector instructions: one of `least` is 0 if any number is
// equal.
#[inline(always)]
fn has<T, const N: usize>(numbers: &[u8], number_of: impl Fn([u8; N]) -> T, wanted: T) -> bool
where
    T: Copy + Default + Ord + BitXor<Output = T>,
{
    const LANES: usize = 32;
    let (numbers, _) = numbers.as_chunks();
    // The last numbers, which are fewer than `LANES`, are compared together with some before them.
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    let Some(last) = numbers.last_chunk::<LANES>() else {
        return rest.iter().fold(false, |any, &number| any | (number_of(number) == wanted));
    };
    let mut least = last.map(|number| number_of(number) ^ wanted);
    for chunk in chunks {
        for (least, &number) in least.iter_mut().zip(chunk) {
            *least = (*least).min(number_of(number) ^ wanted);
        }
    }
    least.into_iter().fold(false, |any, least| any | (least == T::default()))
}

#[cfg(test)]
pub(super) mod tests;
