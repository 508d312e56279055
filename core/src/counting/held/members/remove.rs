//! Members that leave a set: because they are removed, or because they have expired.
//!
//! Those that stay keep their order, so the arena becomes that of a set to which the others were never added.

use super::Members;
use super::packed::Packed;
use crate::counting::held::tag::Tag;
use crate::counting::params::Room;
use crate::error::Error;

impl<T: Tag> Members<T> {
    /// Keeps the members for whose tags `is_kept` returns true.
    pub(in crate::counting) fn retain(&mut self, seed: u64, is_kept: impl Fn(T) -> bool) {
        if !self.iter().all(|(tag, _)| is_kept(tag)) {
            match self {
                Members::Packed(packed) => packed.retain(seed, |_, tag| is_kept(tag)),
                Members::Table(table) => table.retain(seed, is_kept),
            }
            self.shrink(seed);
        }
    }

    /// Removes the members at `gone`, ascending offsets in the arena. The second number of each may be overwritten.
    pub(in crate::counting) fn remove(&mut self, gone: &mut [(usize, usize)], seed: u64) {
        match self {
            Members::Packed(packed) => {
                let mut gone = gone.iter().map(|&(offset, _)| offset).peekable();
                packed.retain(seed, |offset, _| gone.next_if_eq(&offset).is_none());
            }
            Members::Table(table) => table.remove(gone),
        }
        self.shrink(seed);
    }

    /// Frees the memory that members took who have left, once that is most of it.
    fn shrink(&mut self, seed: u64) {
        // A growing table takes up to twice what it needs. So a member that comes and goes never leads to a copy.
        let room = Room { members: self.len() as u32, bytes: self.member_bytes() };
        let needed = Self::bytes_of_read(self.as_bytes().len() as u64, room);
        if needed < self.heap_bytes() / 4
            && let Ok(smaller) = self.compact(seed)
        {
            *self = smaller;
        }
    }

    /// A copy that takes no more memory than a set that was read.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn compact(&self, seed: u64) -> Result<Self, Error> {
        let mut members = Members::Packed(Packed::with_room(self.as_bytes())?);
        for (hash, tag, item) in self.hashed(seed) {
            members.insert(item, hash, seed, tag)?;
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::held::members::tests::{Copier, LOOKED_AT, ROOM, items};
    use crate::hash::hash64;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn insert(members: &mut Members, item: &[u8]) {
        members.insert(item, hash64(item, 7), 7, ()).unwrap();
    }

    /// Memory is freed after most members are gone, and a member that comes and goes costs no copy of the others.
    #[test]
    fn a_set_shrinks_with_its_members() {
        for number in [5u32, 250, 1000] {
            let item = |number: u32| format!("m{number:011}").into_bytes();
            let mut members = Members::new();
            (0..number).for_each(|number| insert(&mut members, &item(number)));
            LOOKED_AT.set(0);
            for left in (0..number).rev() {
                members.remove(&mut [(0, 0)], 7);
                assert_eq!(members.len(), left as usize);
                assert!(members.heap_bytes() <= 4 * (Members::<()>::bytes_of_read(13 * u64::from(left), ROOM) + 16));
                // The first member goes and comes again, as the last one.
                if left > 0 {
                    let first = members.iter().next().unwrap().1.to_vec();
                    members.remove(&mut [(0, 0)], 7);
                    insert(&mut members, &first);
                }
            }
            assert_eq!(members.heap_bytes(), 0);
            assert!(LOOKED_AT.get() <= u64::from(number), "{} of {number}", LOOKED_AT.get());
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
            let mut offsets: Vec<_> = gone.iter().map(|(item, _)| (offset(item), 0)).collect();
            members.remove(&mut offsets, 7);
            if moved {
                members.relocate(&Copier);
            }
            let mut never = Members::<()>::new();
            left.iter().for_each(|(item, _)| insert(&mut never, item));
            prop_assert_eq!(members.as_bytes(), never.as_bytes());
            prop_assert_eq!((members.len(), members.member_bytes()), (never.len(), never.member_bytes()));
            prop_assert!(gone.iter().all(|(item, _)| !members.contains(item, hash64(item, 7))));
            prop_assert!(left.iter().all(|(item, _)| members.contains(item, hash64(item, 7))));
            gone.iter().for_each(|(item, _)| insert(&mut members, item));
            prop_assert!(distinct.iter().all(|item| members.contains(item, hash64(item, 7))));
        }
    }
}
