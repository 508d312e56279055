//! The members of a small counter, themselves.
//!
//! All of them lie in one arena, one after the other, each as its length (u16, little-endian) and its
//! bytes; that is also how they are stored. A hash table of offsets into the arena finds one.

use std::alloc::Layout;

use hashbrown::HashTable;

use crate::error::Error;
use crate::hash::hash64;

/// Bytes that the members may have together, lengths aside. More than that, and the counter
/// estimates. Changing it changes which stored values are accepted.
pub const MAX_MEMBER_BYTES: usize = 16 * 1024;

/// Bytes of the length before a member.
const LENGTH_BYTES: usize = size_of::<u16>();

/// What the hash table aligns its memory to: the control bytes that it looks at together, in bytes.
const TABLE_ALIGN: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

// Offsets are u16. Distinct members within the bound are at most the empty one, the 256 of one byte
// and otherwise ones of two bytes or more; the lengths then still fit.
const _: () = assert!(MAX_MEMBER_BYTES + (257 + MAX_MEMBER_BYTES / 2) * LENGTH_BYTES <= u16::MAX as usize);

/// Distinct byte strings in the order they came.
#[derive(Debug, Default)]
pub(super) struct Members {
    arena: Vec<u8>,
    offsets: HashTable<u16>,
}

impl Members {
    /// No members; allocates nothing.
    pub(super) const fn new() -> Self {
        Members { arena: Vec::new(), offsets: HashTable::new() }
    }

    /// Number of members.
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Bytes of all members together, lengths aside.
    pub(super) fn member_bytes(&self) -> usize {
        self.arena.len() - self.len() * LENGTH_BYTES
    }

    /// The arena: each member as its length (u16, little-endian) and its bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.arena
    }

    /// The members, in the order they came.
    pub(super) fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.arena }
    }

    /// The members with their hashes under `seed`.
    pub(super) fn hashed(&self, seed: u64) -> impl Iterator<Item = (u64, &[u8])> {
        self.iter().map(move |item| {
            #[cfg(test)]
            tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
            (hash64(item, seed), item)
        })
    }

    /// Is `item`, whose hash is `hash`, a member?
    pub(super) fn contains(&self, item: &[u8], hash: u64) -> bool {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        self.offsets.find(hash, |&offset| member_at(&self.arena, offset) == item).is_some()
    }

    /// Would `item` still fit, in number and in bytes, beside at most `max_members - 1` others?
    pub(super) fn has_room_for(&self, item: &[u8], max_members: u32) -> bool {
        self.len() < max_members as usize
            && item.len() <= MAX_MEMBER_BYTES
            && self.member_bytes() + item.len() <= MAX_MEMBER_BYTES
    }

    /// Bytes that [`Self::insert`] will add for `item` at least.
    pub(super) fn bytes_for(item: &[u8]) -> u64 {
        (item.len() + LENGTH_BYTES + size_of::<u16>() + 1) as u64
    }

    /// Inserts `item`, which is no member yet and for which there is room.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, item: &[u8], hash: u64, seed: u64) -> Result<(), Error> {
        debug_assert!(!self.contains(item, hash) && self.has_room_for(item, u32::MAX));
        let no_memory = || Error::OutOfMemory { needed_bytes: Self::bytes_for(item) };
        let arena = &mut self.arena;
        arena.try_reserve(LENGTH_BYTES + item.len()).map_err(|_| no_memory())?;
        let rehash = |&offset: &u16| hash64(member_at(arena, offset), seed);
        self.offsets.try_reserve(1, rehash).map_err(|_| no_memory())?;
        self.offsets.insert_unique(hash, arena.len() as u16, rehash);
        self.arena.extend_from_slice(&(item.len() as u16).to_le_bytes());
        self.arena.extend_from_slice(item);
        Ok(())
    }

    /// Reads what [`Self::as_bytes`] gave, hashing under `seed`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not members to the last one, a member occurs twice, or they
    /// are more than `max_members` or [`MAX_MEMBER_BYTES`].
    pub(super) fn from_bytes(bytes: &[u8], max_members: u32, seed: u64) -> Result<Self, Error> {
        let mut members = Members::new();
        let mut rest = Iter { rest: bytes };
        for item in rest.by_ref() {
            if !members.has_room_for(item, max_members) {
                let expected = format!("at most {max_members} members of {MAX_MEMBER_BYTES} bytes together");
                return Err(Error::corrupt("members", expected, "more"));
            }
            let hash = hash64(item, seed);
            if members.contains(item, hash) {
                return Err(Error::corrupt("members", "distinct members", "one twice"));
            }
            members.insert(item, hash, seed)?;
        }
        if !rest.rest.is_empty() {
            return Err(Error::corrupt("members", "a whole last member", format!("{} bytes of it", rest.rest.len())));
        }
        Ok(members)
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        for (bytes, align) in [(self.arena.capacity(), 1), (self.offsets.allocation_size(), TABLE_ALIGN)] {
            if bytes > 0 {
                visit(Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u16>()));
            }
        }
    }

    /// Bytes of all heap allocations.
    pub(super) fn heap_bytes(&self) -> u64 {
        (self.arena.capacity() + self.offsets.allocation_size()) as u64
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        let no_memory = || Error::OutOfMemory { needed_bytes: self.arena.len() as u64 };
        let mut copy = Members::new();
        copy.arena.try_reserve_exact(self.arena.len()).map_err(|_| no_memory())?;
        copy.offsets.try_reserve(self.len(), |_| 0).map_err(|_| no_memory())?;
        for (hash, item) in self.hashed(seed) {
            copy.insert(item, hash, seed)?;
        }
        Ok(copy)
    }
}

/// The member at `offset`. The arena was built or checked by this file, so the offset is a member's.
fn member_at(arena: &[u8], offset: u16) -> &[u8] {
    Iter { rest: &arena[usize::from(offset)..] }.next().unwrap_or_default()
}

/// Iterator over members; stops at the end or where the bytes are no member.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.rest.split_first_chunk::<LENGTH_BYTES>()?;
        let (member, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.rest = rest;
        Some(member)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    thread_local! {
        /// How many members were hashed or looked for in a set.
        pub static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    }

    fn members(items: &[&[u8]]) -> Members {
        let mut members = Members::new();
        for item in items {
            members.insert(item, hash64(item, 0), 0).unwrap();
        }
        members
    }

    #[test]
    fn arena_is_pinned() {
        assert_eq!(members(&[b"ab", b"", b"c"]).as_bytes(), b"\x02\0ab\0\0\x01\0c");
    }

    #[test]
    fn the_most_members_have_offsets() {
        // Distinct members as short as can be, until no room is left.
        let mut members = members(&[b""]);
        for item in (0..=u8::MAX).map(u8::to_le_bytes) {
            members.insert(&item, hash64(&item, 0), 0).unwrap();
        }
        for item in (0..=u16::MAX).map(u16::to_le_bytes) {
            if !members.has_room_for(&item, u32::MAX) {
                break;
            }
            members.insert(&item, hash64(&item, 0), 0).unwrap();
        }
        assert_eq!(members.len(), 1 + 256 + (MAX_MEMBER_BYTES - 256) / 2);
        assert_eq!(members.member_bytes(), MAX_MEMBER_BYTES);
        assert!(members.iter().all(|item| members.contains(item, hash64(item, 0))));
    }

    #[test]
    fn corrupt_bytes_are_refused() {
        let corrupt: [&[u8]; 5] = [b"\0", b"\x01\0", b"\x02\0a", b"\x01\0a\x01\0a", b"\x01\0a\x01\0b\x01\0c\x01\0d"];
        for bytes in corrupt {
            assert!(matches!(Members::from_bytes(bytes, 3, 0), Err(Error::Corrupt { .. })), "{bytes:?}");
        }
        let mut long = (MAX_MEMBER_BYTES as u16 + 1).to_le_bytes().to_vec();
        long.resize(MAX_MEMBER_BYTES + 3, 0);
        assert!(matches!(Members::from_bytes(&long, 3, 0), Err(Error::Corrupt { .. })));
    }

    proptest! {
        #[test]
        fn behaves_as_a_set(items in vec(vec(any::<u8>(), 0..3), 0..300), seed in any::<u64>()) {
            let mut members = Members::new();
            let mut naive = BTreeSet::new();
            for item in &items {
                let hash = hash64(item, seed);
                prop_assert_eq!(members.contains(item, hash), naive.contains(item));
                if naive.insert(item.clone()) {
                    members.insert(item, hash, seed).unwrap();
                }
            }
            prop_assert_eq!(members.len(), naive.len());
            prop_assert_eq!(members.member_bytes(), naive.iter().map(Vec::len).sum::<usize>());
            for copy in [members.try_clone(seed).unwrap(), Members::from_bytes(members.as_bytes(), 300, seed).unwrap()] {
                prop_assert_eq!(copy.as_bytes(), members.as_bytes());
                prop_assert!(naive.iter().all(|item| copy.contains(item, hash64(item, seed))));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(0u8..4, 0..200)) {
            if let Ok(members) = Members::from_bytes(&bytes, 50, 0) {
                prop_assert_eq!(members.as_bytes(), &bytes[..]);
            }
        }
    }
}
