//! Takes members out of a set: removed members and expired ones.
//!
//! The other members keep their order, and the arena keeps its prefix. One pass closes the gaps between the remaining
//! members and makes the index anew.

use super::Members;
use super::arena::split_prefix;
use super::record::Record;
use crate::counting::held::tag::Tag;
use crate::counting::params::Room;
use crate::error::Error;

impl<T: Tag> Members<T> {
    /// Keeps the members for whose tags `is_kept` returns true.
    pub(in crate::counting) fn retain(&mut self, seed: u64, is_kept: impl Fn(T) -> bool) {
        if !self.iter().all(|(tag, _)| is_kept(tag)) {
            self.retain_at(seed, |_, tag| is_kept(tag));
        }
    }

    /// Removes the members at the offsets in `gone`. Each entry is an offset in the arena, in ascending order, and a
    /// number that is ignored.
    pub(in crate::counting) fn remove(&mut self, gone: &[(usize, usize)], seed: u64) {
        let mut gone = gone.iter().map(|&(offset, _)| offset).peekable();
        self.retain_at(seed, |offset, _| gone.next_if_eq(&offset).is_none());
    }

    /// Keeps the members for whose offset in the arena and tag `is_kept` returns true. Frees the memory of the others
    /// once it is most of the buffer.
    fn retain_at(&mut self, seed: u64, is_kept: impl FnMut(usize, T) -> bool) {
        self.keep(seed, is_kept);
        // A set that grows may take up to three times what it needs. So a set is not copied each time that a member is
        // added and removed.
        let room = Room { members: self.len() as u32, bytes: self.member_bytes() };
        let needed = Self::bytes_of_read(self.as_bytes().len() as u64, room);
        if needed < self.heap_bytes() / 4
            && let Ok(smaller) = self.compact(room, seed)
        {
            *self = smaller;
        }
    }

    /// A copy with as little free room as a set that was just loaded. A set without a prefix gets none, whichever
    /// member is now the first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn compact(&self, room: Room, seed: u64) -> Result<Self, Error> {
        let mut members = Self::with_room(self.as_bytes(), room)?;
        let (prefix, _) = split_prefix::<T>(self.as_bytes());
        for (hash, tag, member) in self.hashed(seed) {
            let mut buffer = [0; 64];
            members.insert_if(&Record::of(member.text_in(&mut buffer), prefix), hash, seed, tag, |_| Ok(()))?;
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::held::members::record::Member;
    use crate::counting::held::members::tests::{Copier, LOOKED_AT, ROOM, items};
    use crate::hash::hash64;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn insert(members: &mut Members, item: &[u8]) {
        members.insert(item, hash64(item, 7), 7, ()).unwrap();
    }

    /// Memory is freed once most members are removed. Adding and removing a member again and again does not copy the
    /// others.
    #[test]
    fn a_set_shrinks_with_its_members() {
        for number in [5u32, 250, 1000] {
            let item = |number: u32| format!("m{number:011}").into_bytes();
            let mut members = Members::new();
            (0..number).for_each(|number| insert(&mut members, &item(number)));
            LOOKED_AT.set(0);
            for left in (0..number).rev() {
                members.remove(&[(0, 0)], 7);
                assert_eq!(members.len(), left as usize);
                assert!(members.heap_bytes() <= 4 * (Members::<()>::bytes_of_read(13 * u64::from(left), ROOM) + 16));
                // The first member is removed and added again, so it becomes the last one.
                if left > 0 {
                    let first = members.iter().next().unwrap().1.text().to_vec();
                    members.remove(&[(0, 0)], 7);
                    insert(&mut members, &first);
                }
            }
            assert_eq!(members.heap_bytes(), 0);
            assert!(LOOKED_AT.get() <= u64::from(number), "{} of {number}", LOOKED_AT.get());
        }
    }

    /// Once it has freed memory, a set is the same as one that was read.
    #[test]
    fn a_set_that_shrinks_keeps_its_prefix_or_none() {
        for (first, prefix) in [("user:1", "user:"), ("ann", "")] {
            let mut members = Members::new();
            insert(&mut members, first.as_bytes());
            (100..400).for_each(|number| insert(&mut members, format!("user:{number}").as_bytes()));
            for left in [60, 10] {
                let before = members.heap_bytes();
                let offset = |member: Member<'_>| members.offset_of(&member.text(), hash64(&member.text(), 7)).unwrap();
                let gone: Vec<_> = members.iter().map(|(_, member)| (offset(member), 0)).collect();
                members.remove(&gone[..gone.len() - left], 7);
                assert!(members.heap_bytes() < before);
                assert_eq!(split_prefix::<()>(members.as_bytes()).0, prefix.as_bytes());
                let read = Members::<()>::from_bytes(members.as_bytes(), ROOM, 7, ()).unwrap();
                assert_eq!((members.index, members.heap_bytes()), (read.index, read.heap_bytes()));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_removed_was_never_there(items in items(), gone in vec(any::<bool>(), 400), moved: bool) {
            let mut members = Members::<()>::new();
            let distinct: BTreeSet<&Vec<u8>> = items.iter().collect();
            distinct.iter().for_each(|item| insert(&mut members, item));
            let (gone, left): (Vec<_>, Vec<_>) =
                distinct.iter().zip(&gone).partition(|&(_, &is_gone)| is_gone);
            let offset = |item: &[u8]| members.offset_of(item, hash64(item, 7)).unwrap();
            let offsets: Vec<_> = gone.iter().map(|(item, _)| (offset(item), 0)).collect();
            members.remove(&offsets, 7);
            if moved {
                members.relocate(&Copier);
            }
            let mut never = Members::<()>::new();
            left.iter().for_each(|(item, _)| insert(&mut never, item));
            // The member from which the prefix was taken may have been removed.
            prop_assert!(members.iter().map(|(_, member)| member).eq(never.iter().map(|(_, member)| member)));
            prop_assert_eq!((members.len(), members.member_bytes()), (never.len(), never.member_bytes()));
            prop_assert!(gone.iter().all(|(item, _)| !members.contains(item, hash64(item, 7))));
            prop_assert!(left.iter().all(|(item, _)| members.contains(item, hash64(item, 7))));
            gone.iter().for_each(|(item, _)| insert(&mut members, item));
            prop_assert!(distinct.iter().all(|item| members.contains(item, hash64(item, 7))));
        }
    }
}
