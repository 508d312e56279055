//! The hash index of the [members](super) of an exact counter. It consists of groups of 16 entries. An entry has a
//! fingerprint, which is a byte of the member's hash, and a place: the number or the byte offset of the member. The
//! fingerprints of a group are compared at once.
//!
//! The groups are like those of a Swiss table (hashbrown), but fuller: on average 15 of the 16 entries of a group may
//! be occupied. A member whose group is full is added to the next group. If an entry of the full group becomes free,
//! the member moves back into it. So a removed member leaves no marker.

use multiversion::multiversion;

/// The number of entries in a group of the hash index. A fingerprint takes one byte.
const GROUP: usize = 16;
/// The size in bytes of a group of 16 entries, each with a fingerprint and the number of a member in one byte.
const NUMBERED: usize = GROUP + GROUP;
/// The size in bytes of a group of 16 entries, each with a fingerprint and the byte offset of a member in two bytes.
const OFFSET: usize = GROUP + GROUP * size_of::<u16>();
/// The size in bytes of a group of 16 entries, each with a fingerprint and the byte offset of a member in four bytes.
const FAR_OFFSET: usize = GROUP + GROUP * size_of::<u32>();

/// A set of at most this number of members has no index.
const UNINDEXED: usize = 4;
/// If all encoded members take this number of bytes each, as small numbers do, up to 255 members have no index.
pub(super) const PAIR: u8 = 2;
/// The largest number of members of an index that has only fingerprints: fingerprint `n` belongs to member `n`.
const ORDERED: usize = 2 * GROUP;
/// The largest average number of members per group of the hash index.
const GROUP_MEMBERS: usize = 15;
/// The possible numbers of groups in the hash index, up to that of the largest counter. From 3 on, each is more than
/// twice the previous number, because growing the index hashes all members again and so must be rare. The last two are
/// never used; they make the bounds check of [`Index::groups`] needless.
const GROUPS: [u16; 16] = [0, 1, 2, 3, 7, 17, 35, 71, 143, 287, 575, 1151, 2303, 4607, 4607, 4607];

/// If removing members from the index would search more groups than this, the index is rebuilt instead, which is
/// faster.
const MOST_LOOKS: usize = 64;

/// How the hash index says which member a fingerprint belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Places {
    /// There is no index. A look-up compares all members.
    #[default]
    Unindexed,
    /// Fingerprint `n` belongs to member `n`. All encoded members have the same length.
    Ordered,
    /// An entry has the number of the member, in one byte. All encoded members have the same length.
    Number,
    /// An entry has the byte offset of the member in the buffer, in two bytes.
    Offset,
    /// An entry has the byte offset of the member in the buffer, in four bytes.
    FarOffset,
}

/// The size of a hash index, and the kind of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Index {
    /// The place of the number of groups in [`GROUPS`].
    step: u8,
    /// The length of each encoded member with its slice tag; 0 if the lengths differ or exceed 255 bytes.
    pub(super) record: u8,
    pub(super) places: Places,
}

impl Index {
    /// The smallest hash index for `len` members whose encodings take `arena` bytes. `record` is the length of each
    /// encoded member with its slice tag; 0 if the lengths differ.
    pub(super) fn new(len: usize, record: u8, arena: usize) -> Self {
        let (places, per_group) = match len {
            0..=UNINDEXED => (Places::Unindexed, usize::MAX),
            ..0x100 if record == PAIR => (Places::Unindexed, usize::MAX),
            ..=ORDERED if record > 0 => (Places::Ordered, GROUP),
            ..0x100 if record > 0 => (Places::Number, GROUP_MEMBERS),
            _ if arena <= usize::from(u16::MAX) => (Places::Offset, GROUP_MEMBERS),
            _ => (Places::FarOffset, GROUP_MEMBERS),
        };
        let needed = if per_group == usize::MAX { 0 } else { len.div_ceil(per_group) };
        let step = GROUPS.iter().position(|&groups| usize::from(groups) >= needed).unwrap_or(GROUPS.len() - 1);
        Index { step: step as u8, record, places }
    }

    /// The same index for encoded members of this length; 0 if the lengths differ.
    #[inline]
    pub(super) fn with_record(self, record: u8) -> Self {
        Index { record, ..self }
    }

    /// The number of groups.
    #[inline(always)]
    pub(super) fn groups(self) -> u16 {
        GROUPS[usize::from(self.step) % GROUPS.len()]
    }

    /// Whether this index has room for `len` members that take `arena` bytes.
    #[inline]
    pub(super) fn holds(self, len: usize, record: u8, arena: usize) -> bool {
        let (is_alike, groups) = (record > 0 && record == self.record, usize::from(self.groups()));
        match self.places {
            Places::Unindexed => len <= UNINDEXED || is_alike && record == PAIR && len < 0x100,
            Places::Ordered => is_alike && len <= GROUP * groups,
            Places::Number => is_alike && len <= (GROUP_MEMBERS * groups).min(0xff),
            Places::Offset => arena <= usize::from(u16::MAX) && len <= GROUP_MEMBERS * groups,
            Places::FarOffset => len <= GROUP_MEMBERS * groups,
        }
    }

    /// The number of members for which the index has room; 0 for [`Places::Unindexed`] and [`Places::Ordered`].
    pub(super) fn members(self) -> usize {
        match self.places {
            Places::Unindexed | Places::Ordered => 0,
            Places::Number | Places::Offset | Places::FarOffset => GROUP_MEMBERS * usize::from(self.groups()),
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> usize {
        usize::from(self.groups()) * [0, GROUP, NUMBERED, OFFSET, FAR_OFFSET][self.places as usize]
    }

    /// Adds a member to the index at the end of `buffer`. The index must have room for it.
    #[inline(always)]
    pub(super) fn enter(self, buffer: &mut [u8], hash: u64, number: usize, offset: usize) {
        match self.places {
            Places::Unindexed => {}
            Places::Ordered => buffer[ordered(buffer.len(), number)] = fingerprint(hash),
            Places::Number => enter::<NUMBERED>(buffer, self.groups(), hash, number),
            Places::Offset => enter::<OFFSET>(buffer, self.groups(), hash, offset),
            Places::FarOffset => enter::<FAR_OFFSET>(buffer, self.groups(), hash, offset),
        }
    }

    /// Returns `(start, unit)`: the byte offset of a member is `start + unit * value`. `value` is the number of the
    /// member if the index has numbers, and otherwise the byte offset itself. `front` is the byte offset of the first
    /// member.
    #[inline(always)]
    pub(super) fn scale(self, front: usize) -> (usize, usize) {
        match self.places {
            Places::Ordered | Places::Number => (front, self.record.into()),
            _ => (0, 1),
        }
    }

    /// The value of a member in the index, which is its number or its byte offset; `None` if there is no such member.
    /// `hash` is the hash of the member, and `is_it` says whether a value is that of the member. The index is at the
    /// end of `buffer`.
    #[inline(always)]
    pub(super) fn find(self, buffer: &[u8], hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        match self.places {
            Places::Unindexed => None,
            Places::Ordered => (0..usize::from(self.groups())).find_map(|number| {
                let group = group_at::<GROUP>(buffer, number)?;
                places_in(group, hash).map(|place| number * GROUP + place).find(|&value| is_it(value))
            }),
            Places::Number => self.find_in::<NUMBERED>(buffer, hash, is_it),
            Places::Offset => self.find_in::<OFFSET>(buffer, hash, is_it),
            Places::FarOffset => self.find_in::<FAR_OFFSET>(buffer, hash, is_it),
        }
    }

    #[inline(always)]
    fn find_in<const BYTES: usize>(self, buffer: &[u8], hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        // Nearly always, it is enough to search the group that the hash selects, up to the first equal fingerprint.
        let group = group_at::<BYTES>(buffer, group_of(hash, self.groups()))?;
        match matches(group, fingerprint(hash)) {
            0 if group[GROUP - 1] == 0 => None,
            0 => self.find_anywhere::<BYTES>(buffer, hash, is_it),
            matches => {
                let first = place_of(group, first_place(matches));
                if is_it(first) { Some(first) } else { self.find_anywhere::<BYTES>(buffer, hash, is_it) }
            }
        }
    }

    /// Does the same as [`Self::find`], but compares all members with an equal fingerprint, and goes on to the next
    /// group after a full one.
    #[cold]
    #[inline(never)]
    fn find_anywhere<const BYTES: usize>(
        self,
        buffer: &[u8],
        hash: u64,
        is_it: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let groups = usize::from(self.groups());
        let mut number = group_of(hash, self.groups());
        while let Some(group) = group_at::<BYTES>(buffer, number) {
            let found = places_in(group, hash).map(|place| place_of(group, place)).find(|&value| is_it(value));
            // A group whose last entry is free is not full, so the search ends. At least one group is never full.
            if found.is_some() || group[GROUP - 1] == 0 {
                return found;
            }
            number = if number + 1 < groups { number + 1 } else { 0 };
        }
        None
    }

    /// Removes members from the index `groups`. The value of a member in the index is its number or its byte offset.
    /// `gone` has a pair for each removed member, the last member first: its value, and how much this removal lowers
    /// the values of all later members (by 1, or by the bytes of the member). `hash_of` maps a value to the hash of its
    /// member. Returns false if rebuilding the index takes less time; the caller must then rebuild it.
    pub(super) fn remove(
        self,
        groups: &mut [u8],
        mut gone: impl Iterator<Item = (usize, usize)> + Clone,
        hash_of: impl FnMut(usize) -> u64,
    ) -> bool {
        match self.places {
            Places::Unindexed => true,
            Places::Ordered => gone.all(|(value, _)| {
                let (end, last) = (groups.len(), groups.len() - 1);
                (value..last).for_each(|number| groups[ordered(end, number)] = groups[ordered(end, number + 1)]);
                groups[ordered(end, last)] = 0;
                true
            }),
            Places::Number => remove::<NUMBERED, 1>(groups, gone, hash_of),
            Places::Offset => remove::<OFFSET, 2>(groups, gone, hash_of),
            Places::FarOffset => remove::<FAR_OFFSET, 4>(groups, gone, hash_of),
        }
    }
}

/// The fingerprint of a hash: one byte of the hash, but at least 1, since 0 marks a free entry.
#[inline]
fn fingerprint(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// The index of the group that a hash selects. It depends on other bits of the hash than the [`fingerprint`].
#[inline]
pub(super) fn group_of(hash: u64, groups: u16) -> usize {
    (((hash >> 32) * u64::from(groups)) >> 32) as usize
}

/// A group of an index at the end of `buffer`. Group 0 is the last in the buffer.
#[inline(always)]
fn group_at<const BYTES: usize>(buffer: &[u8], number: usize) -> Option<&[u8; BYTES]> {
    let start = buffer.len().checked_sub((number + 1) * BYTES)?;
    buffer.get(start..)?.first_chunk()
}

/// The entries of a group whose fingerprints equal that of `hash`. A few of the entries may have others.
#[inline(always)]
fn places_in<const BYTES: usize>(group: &[u8; BYTES], hash: u64) -> impl Iterator<Item = usize> {
    let mut matches = matches(group, fingerprint(hash));
    std::iter::from_fn(move || {
        let place = (matches != 0).then(|| first_place(matches));
        matches &= matches.wrapping_sub(1);
        place
    })
}

/// Finds the fingerprints of a group that equal `wanted`. Bit `8 n` of the result stands for fingerprint `n`, and bit
/// `8 n + 1` for fingerprint `n + 8`. Only the first match among fingerprints 0 to 7, and the first among 8 to 15, is
/// certain; later matches may be false (H. S. Warren, "Hacker's Delight", 2nd edition, section 6-1).
#[inline(always)]
fn matches<const BYTES: usize>(group: &[u8; BYTES], wanted: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    let [first, second] = [0, 1].map(|half| {
        let word = group.as_chunks().0.get(half).map_or(!0, |bytes| u64::from_le_bytes(*bytes));
        let differs = word ^ (LOW * u64::from(wanted));
        // This sets the high bit of each byte that is 0. It may also set the high bit of a byte that is 1, if the byte
        // before is 0. The callers allow for these false matches.
        differs.wrapping_sub(LOW) & !differs & HIGH
    });
    first >> 7 | second >> 6
}

/// The index of the first match in the result of `matches`, whose bits stand for the fingerprints 0, 8, 1, 9, ..., 7,
/// 15, in this order.
#[inline(always)]
fn first_place(matches: u64) -> usize {
    let bit = matches.trailing_zeros() as usize;
    (bit / 8 + bit % 8 * 8) % GROUP
}

/// Reads what an entry of a group has besides the fingerprint: in a group of [`NUMBERED`] bytes the number of the
/// member, otherwise its byte offset.
#[inline(always)]
fn place_of<const BYTES: usize>(group: &[u8; BYTES], place: usize) -> usize {
    match BYTES {
        NUMBERED => group[GROUP + place].into(),
        OFFSET => u16::from_le_bytes([group[GROUP + 2 * place], group[GROUP + 2 * place + 1]]).into(),
        _ => group[GROUP + 4 * place..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize),
    }
}

/// The byte position of the fingerprint of member `number` in a buffer of `end` bytes. The buffer ends with an
/// [`Ordered`](Places::Ordered) index.
#[inline]
fn ordered(end: usize, number: usize) -> usize {
    end - (number / GROUP + 1) * GROUP + number % GROUP
}

/// Adds a member to the first group that is not full, from the group on that the hash selects. The index is at the end
/// of `buffer`. `value` is what the index has for the member: its number or its byte offset.
#[inline(always)]
fn enter<const BYTES: usize>(buffer: &mut [u8], groups: u16, hash: u64, value: usize) {
    let (_, index) = buffer.as_rchunks_mut::<BYTES>();
    let mut number = group_of(hash, groups);
    for _ in 0..groups {
        #[cfg(test)]
        tests::GROUPS_LOOKED_AT.set(tests::GROUPS_LOOKED_AT.get() + 1);
        let last = index.len();
        let Some(group) = last.checked_sub(number + 1).and_then(|at| index.get_mut(at)) else { return };
        let free = matches(group, 0);
        if free != 0 {
            return put(group, first_place(free), fingerprint(hash), value);
        }
        number = if number + 1 < usize::from(groups) { number + 1 } else { 0 };
    }
}

#[inline(always)]
fn put<const BYTES: usize>(group: &mut [u8; BYTES], place: usize, fingerprint: u8, value: usize) {
    let bytes = BYTES / GROUP - 1;
    group[place] = fingerprint;
    group[GROUP + bytes * place..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

fn remove<const BYTES: usize, const PLACE: usize>(
    groups: &mut [u8],
    mut gone: impl Iterator<Item = (usize, usize)> + Clone,
    mut hash_of: impl FnMut(usize) -> u64,
) -> bool {
    let (groups, _) = groups.as_chunks_mut::<BYTES>();
    let mut looks = groups.len().min(MOST_LOOKS);
    if !gone.clone().all(|(value, _)| remove_one(groups, value, &mut looks, &mut hash_of)) {
        return false;
    }
    gone.all(|(value, by)| {
        for place in groups.iter_mut().flat_map(|group| group[GROUP..].as_chunks_mut::<PLACE>().0) {
            let mut bytes = [0; 4];
            bytes[..PLACE].copy_from_slice(place);
            let before = u32::from_le_bytes(bytes);
            let after = if before > value as u32 { before - by as u32 } else { before };
            place.copy_from_slice(&after.to_le_bytes()[..PLACE]);
        }
        true
    })
}

/// Removes the member that has this `value` in the index. Searches at most `looks` groups, and subtracts the number of
/// searched groups from `looks`. Returns false if more groups would have to be searched.
///
/// A member whose group was full is in a later group. So if an entry of a full group becomes free, such a member moves
/// from a later group into the entry. The entry that it leaves is filled in the same way.
fn remove_one<const BYTES: usize>(
    groups: &mut [[u8; BYTES]],
    value: usize,
    looks: &mut usize,
    hash_of: &mut impl FnMut(usize) -> u64,
) -> bool {
    // The groups lie in reverse order: group 0 is the last in the buffer.
    let (len, last) = (groups.len(), groups.len() - 1);
    let mut home_of = |value| last - group_of(hash_of(value), len as u16);
    let steps = |from: usize, to: usize| if from < to { from + len - to } else { from - to };
    let (mut at, mut gap) = (home_of(value), None);
    while *looks > 0 {
        #[cfg(test)]
        tests::GROUPS_LOOKED_AT.set(tests::GROUPS_LOOKED_AT.get() + 1);
        *looks -= 1;
        let group = groups[at];
        let mut moves = |place: usize| match (place_of(&group, place), gap) {
            (found, None) => found == value,
            (other, Some((gap, _))) => {
                let home = home_of(other);
                steps(home, gap) < steps(home, at)
            }
        };
        if let Some(place) = (0..GROUP).find(|&place| group[place] > 0 && moves(place)) {
            if let Some((number, free)) = gap {
                put(&mut groups[number], free, group[place], place_of(&group, place));
            }
            gap = Some((at, place));
        }
        // A member is in a later group only if all groups before it, from its own on, are full. So the search ends at a
        // group that is not full.
        if let (Some((number, free)), 0) = (gap, group[GROUP - 1]) {
            // In a group that is not full, the last entry must be free. So its member moves to the entry that became
            // free.
            let group = groups[number];
            put(&mut groups[number], free, group[GROUP - 1], place_of(&group, GROUP - 1));
            groups[number][GROUP - 1] = 0;
            return true;
        }
        at = at.checked_sub(1).unwrap_or(last);
    }
    false
}

/// The number of the pair of bytes that equals `wanted`, counted from 1; 0 if there is none. All pairs are different.
// The loops have no early end. So their branches are predictable, and the second compiles to vector instructions.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn number_of(pairs: &[[u8; 2]], wanted: [u8; 2]) -> u16 {
    let (chunks, rest) = pairs.as_chunks::<16>();
    if chunks.is_empty() {
        return (1..).zip(rest).fold(0, |found, (number, &pair)| found | if pair == wanted { number } else { 0 });
    }
    let mut last = [[0; 2]; 16];
    last[..rest.len()].copy_from_slice(rest);
    let (mut found, mut numbers) = ([0; 16], std::array::from_fn::<u16, 16, _>(|number| number as u16 + 1));
    for chunk in chunks.iter().chain([&last]) {
        for ((found, number), &pair) in found.iter_mut().zip(&mut numbers).zip(chunk) {
            *found |= if pair == wanted { *number } else { 0 };
            *number += 16;
        }
    }
    found.into_iter().fold(0, |found, number| found | number)
}

#[cfg(test)]
pub(in crate::counting) mod tests;
