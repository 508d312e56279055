//! The members of a small windowed counter, each with the tag of the slice that it was last seen in.
//!
//! They lie in one arena, as they are stored: a tag, the length, the member. A hash table of offsets finds one.

use std::alloc::Layout;

use hashbrown::HashTable;

use super::ring::Ages;
use crate::counting::members::{Room, arena, arena::Prefix, offsets_bytes};
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;
use crate::size_limit::{try_reserve, try_to_vec};

/// What the hash table aligns its memory to, bytes.
const TABLE_ALIGN: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// Distinct byte strings in the order they came, with tags.
#[derive(Debug)]
pub(in crate::counting) struct DatedMembers {
    arena: Vec<u8>,
    /// Where the records begin.
    offsets: HashTable<u32>,
    /// Bytes of the members alone.
    member_bytes: u32,
}

/// Iterator over tags and members.
#[derive(Debug, Clone)]
pub(in crate::counting) struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.rest.split_first()?;
        let mut members = arena::Iter::new(rest);
        let member = members.next()?;
        self.rest = members.rest();
        Some((tag, member))
    }
}

/// The member of the record at `offset`.
fn member_at(arena: &[u8], offset: usize) -> &[u8] {
    arena::Iter::from(arena, offset + 1).next().unwrap_or_default()
}

/// Is `item` the member of the record at `offset`? No length begins another, so the bytes tell.
#[inline]
fn is_at(arena: &[u8], offset: usize, item: &[u8]) -> bool {
    let Some((_, record)) = arena.get(offset..).and_then(<[u8]>::split_first) else { return false };
    if item.len() < 0x80 {
        return record
            .split_first()
            .is_some_and(|(&len, rest)| usize::from(len) == item.len() && rest.starts_with(item));
    }
    record.strip_prefix(Prefix::of(item).as_bytes()).is_some_and(|rest| rest.starts_with(item))
}

impl DatedMembers {
    /// No members; allocates nothing.
    pub(super) fn new() -> Self {
        DatedMembers { arena: Vec::new(), offsets: HashTable::new(), member_bytes: 0 }
    }

    /// Number of members.
    pub(in crate::counting) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The arena: each member as its tag, its length and its bytes.
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        &self.arena
    }

    /// The tags and members, in the order they came.
    pub(in crate::counting) fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.arena }
    }

    #[inline]
    fn offset_of(&self, item: &[u8], hash: u64) -> Option<usize> {
        let found = self.offsets.find(hash, |&offset| is_at(&self.arena, offset as usize, item));
        found.map(|&offset| offset as usize)
    }

    /// The tag of a member.
    pub(in crate::counting) fn tag_of(&self, item: &[u8], hash: u64) -> Option<u8> {
        self.offset_of(item, hash).map(|offset| self.arena[offset])
    }

    /// The tag of a member, to change it.
    #[inline]
    pub(super) fn tag_mut(&mut self, item: &[u8], hash: u64) -> Option<&mut u8> {
        self.offset_of(item, hash).map(|offset| &mut self.arena[offset])
    }

    /// Would `item` still fit, in number and in bytes, in so much room?
    pub(super) fn has_room_for(&self, item: &[u8], room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes);
        self.len() < room.members as usize && bytes_left.is_some_and(|left| item.len() <= left as usize)
    }

    /// Bytes that [`Self::insert`] will add for `item` at least.
    pub(super) fn bytes_for(item: &[u8]) -> u64 {
        (1 + arena::record_bytes(item) + size_of::<u32>() + 1) as u64
    }

    /// Inserts `item`, which is no member yet and for which there is room.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, item: &[u8], hash: u64, seed: u64, tag: u8) -> Result<(), Error> {
        let (arena, needed_bytes) = (&mut self.arena, Self::bytes_for(item));
        arena.try_reserve(1 + arena::record_bytes(item)).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        let rehash = |&offset: &u32| hash64(member_at(arena, offset as usize), seed);
        self.offsets.try_reserve(1, rehash).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        self.offsets.insert_unique(hash, arena.len() as u32, rehash);
        self.arena.push(tag);
        self.arena.extend_from_slice(Prefix::of(item).as_bytes());
        self.arena.extend_from_slice(item);
        self.member_bytes += item.len() as u32;
        Ok(())
    }

    /// Keeps the members whose tags `is_kept` says. Allocates nothing.
    pub(super) fn retain(&mut self, seed: u64, is_kept: impl Fn(u8) -> bool) {
        if self.iter().all(|(tag, _)| is_kept(tag)) {
            return;
        }
        // It has room for as many as before.
        self.offsets.clear();
        self.member_bytes = 0;
        let (mut from, mut to) = (0, 0);
        while let Some((tag, member)) = (Iter { rest: &self.arena[from..] }).next() {
            let (len, hash) = (member.len(), hash64(member, seed));
            let end = from + 1 + arena::record_bytes(member);
            if is_kept(tag) {
                self.arena.copy_within(from..end, to);
                let arena = &self.arena;
                let rehash = |&offset: &u32| hash64(member_at(arena, offset as usize), seed);
                self.offsets.insert_unique(hash, to as u32, rehash);
                self.member_bytes += len as u32;
                to += end - from;
            }
            from = end;
        }
        self.arena.truncate(to);
    }

    /// The most heap bytes of members that are read from an arena of so many bytes.
    pub(in crate::counting) fn bytes_of_read(arena_bytes: u64, room: Room) -> u64 {
        // All but one have a byte besides tag and length.
        let members = u64::from(room.members).min(arena_bytes / 3 + 1);
        arena_bytes + if arena_bytes > 0 { offsets_bytes(members) } else { 0 }
    }

    /// Reads what [`Self::as_bytes`] gave.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not living members to the last one as [`Self::insert`] writes them, a
    /// member occurs twice, or they do not fit in `room`; [`Error::OutOfMemory`].
    pub(super) fn from_bytes(bytes: &[u8], room: Room, seed: u64, ages: Ages, most_age: u8) -> Result<Self, Error> {
        let mut members = Self::new();
        try_reserve(&mut members.arena, bytes.len())?;
        let mut rest = Iter { rest: bytes };
        for (tag, item) in rest.by_ref() {
            if !ages.has(tag) || !ages.is_within(tag, most_age) {
                return Err(Error::corrupt("tag", "that of a living slice", tag));
            }
            if !members.has_room_for(item, room) {
                let expected = format!("at most {} members of {} bytes together", room.members, room.bytes);
                return Err(Error::corrupt("members", expected, "more"));
            }
            let hash = hash64(item, seed);
            if members.tag_of(item, hash).is_some() {
                return Err(Error::corrupt("members", "distinct members", "one twice"));
            }
            members.insert(item, hash, seed, tag)?;
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
                visit(Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u32>()));
            }
        }
    }

    /// Bytes of all heap allocations.
    pub(super) fn heap_bytes(&self) -> u64 {
        (self.arena.capacity() + self.offsets.allocation_size()) as u64
    }

    /// Hands the arena over and takes it back, wherever it lies then.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        let mut arena = std::mem::take(&mut self.arena);
        let len = arena.len();
        // As long as its memory, it becomes a box and a vector again without another allocation.
        arena.resize(arena.capacity(), 0);
        arena = mover.relocate(arena.into_boxed_slice()).into_vec();
        arena.truncate(len);
        self.arena = arena;
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        let mut offsets = HashTable::new();
        let needed_bytes = self.offsets.allocation_size() as u64;
        let rehash = |&offset: &u32| hash64(member_at(&self.arena, offset as usize), seed);
        offsets.try_reserve(self.len(), rehash).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        for offset in &self.offsets {
            offsets.insert_unique(rehash(offset), *offset, rehash);
        }
        Ok(DatedMembers { arena: try_to_vec(&self.arena)?, offsets, member_bytes: self.member_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { members: 3, bytes: 10 };

    /// Of fifteen tags those from 1 to 5 are alive.
    const AGES: Ages = Ages { newest: 5, modulus: 15 };

    fn read(bytes: &[u8]) -> Result<DatedMembers, Error> {
        DatedMembers::from_bytes(bytes, ROOM, 7, AGES, 4)
    }

    #[test]
    fn members_are_read_as_they_are_stored() {
        for bytes in [&b""[..], b"\x05\x02ab", b"\x01\0\x05\x01a\x03\x09123456789", b"\x01\x0a1234567890"] {
            let members = read(bytes).unwrap();
            assert_eq!(members.as_bytes(), bytes);
            assert_eq!(members.len(), members.iter().count());
            for (tag, member) in members.iter() {
                assert_eq!(members.tag_of(member, hash64(member, 7)), Some(tag));
            }
            assert_eq!(members.tag_of(b"zoe", hash64(b"zoe", 7)), None);
            let copy = members.try_clone(7).unwrap();
            assert_eq!((copy.as_bytes(), copy.len(), copy.member_bytes), (bytes, members.len(), members.member_bytes));
        }
    }

    #[test]
    fn members_that_cannot_be_are_named() {
        let more = ("at most 3 members of 10 bytes together", "more");
        let dead = |tag| ("that of a living slice", tag);
        for (bytes, (expected, got)) in [
            (&b"\x01\x01a\x01\x01b\x01\x01c\x01\x01d"[..], more),
            (b"\x01\x0b12345678901", more),
            (b"\x01\x01a\x01\x0a1234567890", more),
            (b"\x01\x01a\x02\x01a", ("distinct members", "one twice")),
            (b"\x01\x01a\x02", ("a whole last member", "1 bytes of it")),
            (b"\x01\x01a\x02\x03bc", ("a whole last member", "4 bytes of it")),
            (b"\x01\x81\0a", ("lengths as short as can be", "a longer one")),
        ] {
            assert_eq!(read(bytes).err(), Some(Error::corrupt("members", expected, got)), "{bytes:?}");
        }
        for (tag, (expected, got)) in [(0, dead("0")), (6, dead("6")), (15, dead("15")), (16, dead("16"))] {
            assert_eq!(read(&[tag, 1, b'a']).err(), Some(Error::corrupt("tag", expected, got)));
        }
    }

    #[test]
    fn what_members_take_is_the_sum_of_their_allocations() {
        let mut members = DatedMembers::new();
        let sizes = |members: &DatedMembers| {
            let mut sizes = Vec::new();
            members.heap_layouts(&mut |layout| sizes.push(layout.size()));
            assert_eq!(members.heap_bytes(), sizes.iter().sum::<usize>() as u64);
            sizes
        };
        assert!(sizes(&members).is_empty());
        // The first has room for itself: a tag, its length, its bytes. The next double that.
        for (arena, item) in [(22, [1; 20]), (44, [2; 20]), (88, [3; 20]), (88, [4; 20])] {
            members.insert(&item, hash64(&item, 7), 7, 1).unwrap();
            assert_eq!(sizes(&members), [arena, members.offsets.allocation_size()]);
        }
    }

    #[test]
    fn members_that_stay_are_found_in_their_order() {
        let mut members = DatedMembers::new();
        let item = |number: u8| vec![number; usize::from(number)];
        for number in 0..200u8 {
            members.insert(&item(number), hash64(&item(number), 7), 7, 1 + number % 5).unwrap();
        }
        for (kept, count) in [(&[1, 2, 3, 4, 5][..], 200), (&[1, 3, 4], 120), (&[3], 40), (&[], 0)] {
            members.retain(7, |tag| kept.contains(&tag));
            assert_eq!(members.len(), count);
            let numbers = (0..200u8).filter(|number| kept.contains(&(1 + number % 5)));
            assert!(
                members
                    .iter()
                    .map(|(tag, member)| (tag, member.to_vec()))
                    .eq(numbers.clone().map(|number| (1 + number % 5, item(number))))
            );
            assert_eq!(members.member_bytes, numbers.map(u32::from).sum::<u32>());
            for number in 0..200u8 {
                let tag = Some(1 + number % 5).filter(|tag| kept.contains(tag));
                assert_eq!(members.tag_of(&item(number), hash64(&item(number), 7)), tag);
            }
        }
    }
}
