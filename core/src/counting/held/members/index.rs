//! The hash index of the [members](super) of an exact counter. It consists of groups of 16 entries. An entry has a
//! fingerprint, which is a byte of the member's hash, and a place: the byte offset of the member. The fingerprints of a
//! group are compared at once.
//!
//! The groups are like those of a Swiss table (hashbrown), but fuller: on average 15 of the 16 entries of a group may
//! be occupied. A member whose group is full is added to the next group. If an entry of the full group becomes free,
//! the member moves back into it. So a removed member leaves no marker.

/// The number of entries in a group of the hash index. A fingerprint takes one byte.
const GROUP: usize = 16;
/// The size in bytes of a group of 16 entries, each with a fingerprint and the byte offset of a member in two bytes.
pub(super) const OFFSET: usize = GROUP + GROUP * size_of::<u16>();
/// The size in bytes of a group of 16 entries, each with a fingerprint and the byte offset of a member in four bytes.
pub(super) const FAR_OFFSET: usize = GROUP + GROUP * size_of::<u32>();

/// The largest average number of members per group of the hash index.
const GROUP_MEMBERS: usize = 15;
/// The possible numbers of groups in the hash index, up to that of the largest counter. From 3 on, each is more than
/// twice the previous number, because growing the index hashes all members again and so must be rare. The last two are
/// never used; they make the bounds check of [`Index::groups`] needless.
const GROUPS: [u16; 16] = [0, 1, 2, 3, 7, 17, 35, 71, 143, 287, 575, 1151, 2303, 4607, 4607, 4607];

/// If removing members from the index would search more groups than this, the index is rebuilt instead, which is
/// faster.
const MOST_LOOKS: usize = 64;

/// The size of a hash index, and the kind of its entries: the place of the number of groups in [`GROUPS`], plus [`FAR`]
/// if offsets take four bytes instead of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Index(u8);

const FAR: u8 = GROUPS.len() as u8;

impl Index {
    pub(super) const NONE: Self = Index(0);

    /// The smallest hash index for `len` members whose encodings take `arena` bytes.
    pub(super) fn new(len: usize, arena: usize) -> Self {
        let fits = |groups: u16| len <= GROUP_MEMBERS * usize::from(groups);
        let step = GROUPS.into_iter().position(fits).unwrap_or(GROUPS.len() - 1);
        Index(step as u8 + if arena <= usize::from(u16::MAX) { 0 } else { FAR })
    }

    /// The number of groups; 0 if there is no index.
    #[inline(always)]
    pub(super) fn groups(self) -> u16 {
        GROUPS[usize::from(self.0 % FAR)]
    }

    #[inline(always)]
    pub(super) fn is_far(self) -> bool {
        self.0 >= FAR
    }

    /// Whether this index has room for `len` members that take `arena` bytes.
    #[inline]
    pub(super) fn holds(self, len: usize, arena: usize) -> bool {
        len <= self.members() && (arena <= usize::from(u16::MAX) || self.is_far())
    }

    /// The number of members for which the index has room.
    #[inline]
    pub(super) fn members(self) -> usize {
        GROUP_MEMBERS * usize::from(self.groups())
    }

    #[inline]
    pub(super) fn bytes(self) -> usize {
        usize::from(self.groups()) * if self.is_far() { FAR_OFFSET } else { OFFSET }
    }

    /// Adds a member to the index at the end of `buffer`. The index must have room for it.
    #[inline(always)]
    pub(super) fn enter(self, buffer: &mut [u8], hash: u64, offset: usize) {
        if self.is_far() {
            enter::<FAR_OFFSET>(buffer, self.groups(), hash, offset);
        } else {
            enter::<OFFSET>(buffer, self.groups(), hash, offset);
        }
    }

    /// The byte offset of a member; `None` if there is no such member. `hash` is the hash of the member, and `is_it`
    /// says whether it is the member at an offset. The index is at the end of `buffer`, and its groups have `BYTES`
    /// bytes. All members with an equal fingerprint are compared, and the next group is searched after a full one.
    #[inline(always)]
    pub(super) fn find<const BYTES: usize>(
        self,
        buffer: &[u8],
        hash: u64,
        mut is_it: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let groups = usize::from(self.groups());
        let mut number = group_of(hash, self.groups());
        while let Some(group) = group_at::<BYTES>(buffer, number) {
            let mut matches = matches(group, fingerprint(hash));
            while matches != 0 {
                let offset = place_of(group, first_place(matches));
                if is_it(offset) {
                    return Some(offset);
                }
                matches &= matches - 1;
            }
            // A group whose last entry is free is not full, so the search ends. At least one group is never full.
            if group[GROUP - 1] == 0 {
                return None;
            }
            number = if number + 1 < groups { number + 1 } else { 0 };
        }
        None
    }

    /// Removes members from the index `groups`. `gone` has a pair for each removed member, the last member first: its
    /// byte offset, and its length in bytes. `hash_of` maps an offset to the hash of its member. Returns false if
    /// rebuilding the index takes less time; the caller must then rebuild it.
    pub(super) fn remove(
        self,
        groups: &mut [u8],
        gone: impl Iterator<Item = (usize, usize)> + Clone,
        hash_of: impl FnMut(usize) -> u64,
    ) -> bool {
        match self {
            Index::NONE => true,
            _ if self.is_far() => remove::<FAR_OFFSET, 4>(groups, gone, hash_of),
            _ => remove::<OFFSET, 2>(groups, gone, hash_of),
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

/// The byte offset in an entry of a group.
#[inline(always)]
fn place_of<const BYTES: usize>(group: &[u8; BYTES], place: usize) -> usize {
    match BYTES {
        OFFSET => u16::from_le_bytes([group[GROUP + 2 * place], group[GROUP + 2 * place + 1]]).into(),
        _ => group[GROUP + 4 * place..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize),
    }
}

/// Adds a member to the first group that is not full, from the group on that the hash selects. The index is at the end
/// of `buffer`.
#[inline(always)]
fn enter<const BYTES: usize>(buffer: &mut [u8], groups: u16, hash: u64, offset: usize) {
    let (_, index) = buffer.as_rchunks_mut::<BYTES>();
    let mut number = group_of(hash, groups);
    for _ in 0..groups {
        #[cfg(test)]
        tests::GROUPS_LOOKED_AT.set(tests::GROUPS_LOOKED_AT.get() + 1);
        let last = index.len();
        let Some(group) = last.checked_sub(number + 1).and_then(|at| index.get_mut(at)) else { return };
        let free = matches(group, 0);
        if free != 0 {
            return put(group, first_place(free), fingerprint(hash), offset);
        }
        number = if number + 1 < usize::from(groups) { number + 1 } else { 0 };
    }
}

#[inline(always)]
fn put<const BYTES: usize>(group: &mut [u8; BYTES], place: usize, fingerprint: u8, offset: usize) {
    let bytes = BYTES / GROUP - 1;
    group[place] = fingerprint;
    group[GROUP + bytes * place..][..bytes].copy_from_slice(&offset.to_le_bytes()[..bytes]);
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

/// Removes the member at this byte offset, `value`, from the index. Searches at most `looks` groups, and subtracts the
/// number of searched groups from `looks`. Returns false if more groups would have to be searched.
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

#[cfg(test)]
pub(in crate::counting) mod tests;
