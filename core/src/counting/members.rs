//! The members of a small counter, themselves.
//!
//! All of them lie in one arena, one after the other, each as its length and its bytes; that is also how they are stored. A
//! length is written in groups of 7 bits, the lowest first, all but the last with the high bit set (LEB128): one byte up to
//! 127, two up to 16,383, three up to the 1 MiB that members may have together. A hash table of offsets into the arena finds
//! a member.

use std::alloc::Layout;

use hashbrown::HashTable;

use crate::error::Error;
use crate::hash::hash64;

/// Bytes that the length before a member takes at most.
const MAX_LENGTH_BYTES: usize = 3;

/// What the hash table aligns its memory to: the control bytes that it looks at together, in bytes.
const TABLE_ALIGN: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// How many members a counter may keep, and how many bytes they may have together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) members: u32,
    pub(super) bytes: u32,
}

impl Room {
    /// The most bytes of an arena: lengths of one byte, and a longer one for each 128 bytes of members.
    pub(super) fn arena_bytes(self) -> u64 {
        let bytes = u64::from(self.bytes);
        bytes + u64::from(self.members) + 2 * (bytes / 128).min(u64::from(self.members))
    }
}

/// Where members begin in the arena. Two bytes do as long as it is short: most counters have few members.
#[derive(Debug)]
enum Offsets {
    Near(HashTable<u16>),
    Far(HashTable<u32>),
}

impl Offsets {
    fn len(&self) -> usize {
        match self {
            Offsets::Near(table) => table.len(),
            Offsets::Far(table) => table.len(),
        }
    }

    /// Is there an offset of this hash that `is_it`?
    fn contains(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> bool {
        match self {
            Offsets::Near(table) => table.find(hash, |&offset| is_it(usize::from(offset))).is_some(),
            Offsets::Far(table) => table.find(hash, |&offset| is_it(offset as usize)).is_some(),
        }
    }

    /// Makes room for so many more, up to an offset of `last`. Nothing is changed unless it is made.
    fn try_reserve(&mut self, more: usize, last: usize, hash: impl Fn(usize) -> u64) -> Result<(), ()> {
        if let Offsets::Near(near) = self
            && last > usize::from(u16::MAX)
        {
            let mut far = HashTable::new();
            let of_far = |&offset: &u32| hash(offset as usize);
            far.try_reserve(near.len() + more, of_far).map_err(|_| ())?;
            for &offset in near.iter() {
                far.insert_unique(hash(usize::from(offset)), u32::from(offset), of_far);
            }
            *self = Offsets::Far(far);
            return Ok(());
        }
        match self {
            Offsets::Near(table) => table.try_reserve(more, |&offset| hash(usize::from(offset))),
            Offsets::Far(table) => table.try_reserve(more, |&offset| hash(offset as usize)),
        }
        .map_err(|_| ())
    }

    /// Inserts an offset for which there is room.
    fn insert(&mut self, hash: u64, offset: usize, rehash: impl Fn(usize) -> u64) {
        match self {
            Offsets::Near(table) => {
                table.insert_unique(hash, offset as u16, |&offset| rehash(usize::from(offset)));
            }
            Offsets::Far(table) => {
                table.insert_unique(hash, offset as u32, |&offset| rehash(offset as usize));
            }
        }
    }

    fn allocation_size(&self) -> usize {
        match self {
            Offsets::Near(table) => table.allocation_size(),
            Offsets::Far(table) => table.allocation_size(),
        }
    }
}

/// Distinct byte strings in the order they came.
#[derive(Debug)]
pub(super) struct Members {
    arena: Vec<u8>,
    /// Bytes of the members alone.
    member_bytes: u32,
    offsets: Offsets,
}

impl Members {
    /// No members; allocates nothing.
    pub(super) const fn new() -> Self {
        Members { arena: Vec::new(), member_bytes: 0, offsets: Offsets::Near(HashTable::new()) }
    }

    /// Number of members.
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Bytes of all members together, lengths aside.
    pub(super) fn member_bytes(&self) -> usize {
        self.member_bytes as usize
    }

    /// The arena: each member as its length and its bytes.
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
        self.offsets.contains(hash, |offset| member_at(&self.arena, offset) == item)
    }

    /// Would `item` still fit, in number and in bytes, in so much room?
    pub(super) fn has_room_for(&self, item: &[u8], room: Room) -> bool {
        let bytes_left = (room.bytes as usize).checked_sub(self.member_bytes());
        self.len() < room.members as usize && bytes_left.is_some_and(|left| item.len() <= left)
    }

    /// Bytes that [`Self::insert`] will add for `item` at least.
    pub(super) fn bytes_for(item: &[u8]) -> u64 {
        (item.len() + length_bytes(item.len()) + size_of::<u16>() + 1) as u64
    }

    /// Inserts `item`, which is no member yet and for which there is room.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, item: &[u8], hash: u64, seed: u64) -> Result<(), Error> {
        debug_assert!(!self.contains(item, hash));
        let no_memory = || Error::OutOfMemory { needed_bytes: Self::bytes_for(item) };
        let arena = &mut self.arena;
        arena.try_reserve(length_bytes(item.len()) + item.len()).map_err(|_| no_memory())?;
        let rehash = |offset| hash64(member_at(arena, offset), seed);
        self.offsets.try_reserve(1, arena.len(), rehash).map_err(|()| no_memory())?;
        self.offsets.insert(hash, arena.len(), rehash);
        push_length(&mut self.arena, item.len());
        self.arena.extend_from_slice(item);
        self.member_bytes += item.len() as u32;
        Ok(())
    }

    /// Reads what [`Self::as_bytes`] gave, hashing under `seed`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not members to the last one as [`Self::insert`] writes them, a member occurs
    /// twice, or they do not fit in `room`.
    pub(super) fn from_bytes(bytes: &[u8], room: Room, seed: u64) -> Result<Self, Error> {
        let mut members = Members::new();
        let mut rest = Iter { rest: bytes };
        for item in rest.by_ref() {
            if !members.has_room_for(item, room) {
                let expected = format!("at most {} members of {} bytes together", room.members, room.bytes);
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
        // Lengths that are longer than they need to be would come out shorter.
        if members.arena != bytes {
            return Err(Error::corrupt("members", "lengths as short as can be", "a longer one"));
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
        copy.offsets.try_reserve(self.len(), self.arena.len(), |_| 0).map_err(|()| no_memory())?;
        for (hash, item) in self.hashed(seed) {
            copy.insert(item, hash, seed)?;
        }
        Ok(copy)
    }
}

/// The member at `offset`. The arena was built or checked by this file, so the offset is a member's.
fn member_at(arena: &[u8], offset: usize) -> &[u8] {
    Iter { rest: &arena[offset..] }.next().unwrap_or_default()
}

/// Bytes that the length of so many bytes takes.
fn length_bytes(length: usize) -> usize {
    match length {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => MAX_LENGTH_BYTES,
    }
}

/// Appends a length below 2^21.
fn push_length(arena: &mut Vec<u8>, length: usize) {
    let mut rest = length;
    while rest >= 0x80 {
        arena.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    arena.push(rest as u8);
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
        let (&first, mut rest) = self.rest.split_first()?;
        let mut length = usize::from(first & 0x7f);
        let mut last = first;
        for group in 1..=MAX_LENGTH_BYTES {
            if last < 0x80 {
                break;
            }
            if group == MAX_LENGTH_BYTES {
                return None;
            }
            (last, rest) = rest.split_first().map(|(&byte, rest)| (byte, rest))?;
            length |= usize::from(last & 0x7f) << (7 * group);
        }
        let (member, rest) = rest.split_at_checked(length)?;
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

    const ROOM: Room = Room { members: 65_536, bytes: 1 << 20 };

    #[test]
    fn arena_is_pinned() {
        assert_eq!(members(&[b"ab", b"", b"c"]).as_bytes(), b"\x02ab\0\x01c");
        for (length, written) in [
            (127, &b"\x7f"[..]),
            (128, b"\x80\x01"),
            (16_383, b"\xff\x7f"),
            (16_384, b"\x80\x80\x01"),
            (1 << 20, b"\x80\x80\x40"),
        ] {
            let members = members(&[&vec![7; length], b"x"]);
            assert!(members.as_bytes().starts_with(written) && members.as_bytes()[written.len()] == 7);
            assert_eq!(members.iter().map(<[u8]>::len).collect::<Vec<_>>(), [length, 1]);
            assert_eq!(members.as_bytes().len(), written.len() + length + 2);
        }
    }

    #[test]
    fn the_most_members_have_offsets() {
        // Distinct members as short as can be, until no room is left: the number ends it, then the bytes.
        for room in [ROOM, Room { members: 70_000, bytes: 100_000 }] {
            let mut members = Members::new();
            for number in 0u32.. {
                let bytes = number.to_le_bytes();
                let item = &bytes[..4 - number.leading_zeros() as usize / 8];
                if !members.has_room_for(item, room) {
                    break;
                }
                members.insert(item, hash64(item, 0), 0).unwrap();
            }
            assert!(members.len() == 65_536 || members.member_bytes() + 1 >= room.bytes as usize);
            assert!(members.as_bytes().len() as u64 <= room.arena_bytes());
            assert!(members.iter().all(|item| members.contains(item, hash64(item, 0))));
            let again = Members::from_bytes(members.as_bytes(), room, 0).unwrap();
            assert!(again.as_bytes() == members.as_bytes() && again.try_clone(0).unwrap().len() == members.len());
        }
    }

    #[test]
    fn few_members_have_short_offsets() {
        let mut members = members(&[&vec![1; 65_000], b"a"]);
        assert!(matches!(members.offsets, Offsets::Near(_)));
        for item in [&vec![2; 1000][..], b"b", b"c"] {
            members.insert(item, hash64(item, 0), 0).unwrap();
        }
        assert!(matches!(members.offsets, Offsets::Far(_)));
        assert!(members.iter().all(|item| members.contains(item, hash64(item, 0))) && members.len() == 5);
        assert!(!members.contains(b"d", hash64(b"d", 0)));
    }

    #[test]
    fn corrupt_bytes_are_refused() {
        let corrupt: [&[u8]; 9] = [
            b"\x01",
            b"\x02a",
            b"\x01a\x01a",
            b"\x01a\x01b\x01c\x01d",
            b"\x80",
            b"\x80\x80",
            b"\x80\x80\x80\x01",
            // 1, longer than it need be.
            b"\x81\0a",
            b"\x81\x80\0a",
        ];
        let room = Room { members: 3, bytes: 1000 };
        for bytes in corrupt {
            assert!(matches!(Members::from_bytes(bytes, room, 0), Err(Error::Corrupt { .. })), "{bytes:?}");
        }
        let long = members(&[&vec![0; 1001]]);
        assert!(matches!(Members::from_bytes(long.as_bytes(), room, 0), Err(Error::Corrupt { .. })));
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
            for copy in [members.try_clone(seed).unwrap(), Members::from_bytes(members.as_bytes(), ROOM, seed).unwrap()] {
                prop_assert_eq!(copy.as_bytes(), members.as_bytes());
                prop_assert!(naive.iter().all(|item| copy.contains(item, hash64(item, seed))));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(0u8..4, 0..200)) {
            if let Ok(members) = Members::from_bytes(&bytes, ROOM, 0) {
                prop_assert_eq!(members.as_bytes(), &bytes[..]);
            }
        }
    }
}
