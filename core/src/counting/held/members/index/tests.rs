use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;

thread_local! {
    /// The number of groups of the hash index that were searched for a free entry, or for a member to be removed or
    /// moved.
    pub static GROUPS_LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// A hash that selects the group `number` and has this fingerprint.
fn selects(number: u64, groups: u16, fingerprint: u8) -> u64 {
    let hash = ((number << 32) / u64::from(groups) + 1) << 32 | u64::from(fingerprint);
    assert_eq!(group_of(hash, groups), number as usize);
    hash
}

/// Checks that a look-up in the index finds each of these members, and that the index has no other members.
fn check<const BYTES: usize>(index: Index, buffer: &[u8], members: &[u64]) {
    let groups: Vec<&[u8; BYTES]> = buffer.as_chunks().0.iter().rev().collect();
    let mut found = vec![];
    for (number, group) in groups.iter().enumerate() {
        let taken: Vec<_> = (0..GROUP).filter(|&place| group[place] > 0).collect();
        assert_eq!(group[GROUP - 1] > 0, taken.len() == GROUP);
        for place in taken {
            let member = place_of(group, place) / RECORD;
            let mut passed = group_of(members[member], index.groups());
            assert_eq!(group[place], fingerprint(members[member]));
            while passed != number {
                assert!(groups[passed][GROUP - 1] > 0, "group {passed} is not full");
                passed = (passed + 1) % groups.len();
            }
            found.push(member);
        }
    }
    found.sort_unstable();
    assert!(found.into_iter().eq(0..members.len()));
}

/// The length of the encoded members in [`check`], in bytes.
const RECORD: usize = 5;

proptest! {
    #[test]
    fn an_index_has_the_members_that_are_left(
        (len, groups) in (33usize..255).prop_flat_map(|len| (Just(len), 1u64..Index::new(len, 0).groups().into())),
        changes in vec((any::<prop::sample::Index>(), 0u8..5), 0..600),
        arena in prop::sample::select(vec![0xffff, 1 << 20]),
    ) {
        let index = Index::new(len, arena);
        let (mut buffer, mut members) = (vec![0; index.bytes()], vec![]);
        for (change, kind) in changes {
            if kind > 1 && members.len() < len {
                // The members select the last groups, so that some of them find all of the last groups full.
                let number = index.groups() as u64 - 1 - change.index(groups as usize) as u64;
                let hash = selects(number, index.groups(), kind + change.index(200) as u8);
                index.enter(&mut buffer, hash, RECORD * members.len());
                members.push(hash);
            } else if !members.is_empty() {
                let gone = change.index(members.len());
                let gone_bytes = std::iter::once((RECORD * gone, RECORD));
                prop_assert!(index.remove(&mut buffer, gone_bytes, |offset| members[offset / RECORD]));
                members.remove(gone);
            }
            if index.is_far() {
                check::<FAR_OFFSET>(index, &buffer, &members);
            } else {
                check::<OFFSET>(index, &buffer, &members);
            }
        }
    }

    #[test]
    fn matches_are_found(fingerprints in prop::array::uniform16(0u8..4), wanted in 1u8..4) {
        let mut found = vec![];
        let mut group = [0xff; OFFSET];
        group[..GROUP].copy_from_slice(&fingerprints);
        let mut left = matches(&group, wanted);
        while left != 0 {
            found.push(first_place(left));
            left &= left - 1;
        }
        let equal: Vec<_> = (0..GROUP).filter(|&place| fingerprints[place] == wanted).collect();
        prop_assert!(equal.iter().all(|place| found.contains(place)));
        // If no fingerprint is equal, no match is found.
        prop_assert!(!equal.is_empty() || found.is_empty());
    }
}
