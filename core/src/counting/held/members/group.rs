//! A group in the index of [packed](super::packed) members: 16 fingerprints that are compared at once, and 16 places
//! that say where the members are.
//!
//! The groups are those of a Swiss table (hashbrown's), but fuller: 15 of 16 places may be taken, because the index is
//! built anew when a member is removed.

/// The number of fingerprints in a group.
pub(super) const GROUP: usize = 16;
/// Bytes of a group in which each place is the number of a member, in one byte.
pub(super) const NUMBERED: usize = GROUP + GROUP;
/// Bytes of a group in which each place is the offset of a member, in two bytes.
pub(super) const OFFSET: usize = GROUP + GROUP * size_of::<u16>();

/// The fingerprint of a hash: one of its bytes, but never 0, which marks places without a member.
#[inline]
pub(super) fn fingerprint(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// The index of the group that a hash selects. It depends on other bits of the hash than [`fingerprint`] does.
#[inline]
pub(super) fn group_of(hash: u64, groups: u8) -> usize {
    (((hash >> 32) * u64::from(groups)) >> 32) as usize
}

/// Finds the fingerprints of a group that equal `wanted`. In the result, bit `8 n` stands for fingerprint `n`, and bit
/// `8 n + 1` for fingerprint `n + 8`. In each half only the first bit is certain; later ones may be false matches (H.
/// S. Warren, "Hacker's Delight", 2nd edition, section 6-1).
#[inline(always)]
pub(super) fn matches<const BYTES: usize>(group: &[u8; BYTES], wanted: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    let [first, second] = [0, 1].map(|half| {
        let word = group.as_chunks().0.get(half).map_or(!0, |bytes| u64::from_le_bytes(*bytes));
        let differs = word ^ (LOW * u64::from(wanted));
        // The high bit of each byte that is 0, and of each byte that is 1 and follows such a byte.
        differs.wrapping_sub(LOW) & !differs & HIGH
    });
    first >> 7 | second >> 6
}

/// The index of the first fingerprint that `matches` found, in the order 0, 8, 1, 9 ... 15.
#[inline(always)]
pub(super) fn first_place(matches: u64) -> usize {
    let bit = matches.trailing_zeros() as usize;
    (bit / 8 + bit % 8 * 8) % GROUP
}

/// Adds a member to the index at the end of `buffer`. `value` is the number or the offset of the member. The index must
/// have a free place.
#[inline(always)]
pub(super) fn enter<const BYTES: usize>(buffer: &mut [u8], groups: u8, hash: u64, value: u16) {
    let (_, index) = buffer.as_rchunks_mut::<BYTES>();
    let mut number = group_of(hash, groups);
    for _ in 0..groups {
        let last = index.len();
        let Some(group) = last.checked_sub(number + 1).and_then(|at| index.get_mut(at)) else { return };
        let free = matches(group, 0);
        if free != 0 {
            let place = first_place(free);
            group[place] = fingerprint(hash);
            if BYTES == NUMBERED {
                group[GROUP + place] = value as u8;
            } else {
                [group[GROUP + 2 * place], group[GROUP + 2 * place + 1]] = value.to_le_bytes();
            }
            return;
        }
        number = if number + 1 < usize::from(groups) { number + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matches_are_found(fingerprints in prop::array::uniform16(0u8..4), wanted in 1u8..4) {
            let mut found = vec![];
            let mut group = [0xff; NUMBERED];
            group[..GROUP].copy_from_slice(&fingerprints);
            let mut left = matches(&group, wanted);
            while left != 0 {
                found.push(first_place(left));
                left &= left - 1;
            }
            let equal: Vec<_> = (0..GROUP).filter(|&place| fingerprints[place] == wanted).collect();
            prop_assert!(equal.iter().all(|place| found.contains(place)));
            // Without an equal fingerprint nothing is found.
            prop_assert!(!equal.is_empty() || found.is_empty());
        }
    }
}
