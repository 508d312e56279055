//! The buffer of the [members](super) of an exact counter: the encoded members (the arena) and, usually from five
//! members on, a [hash index](super::group).
//!
//! ```text
//! | arena: members in order of addition | free | index: ... | group 1 | group 0 |
//!
//! group: 16 fingerprints, a byte each | 16 places, 1, 2 or 4 bytes each
//! ```
//!
//! The arena grows from the front, and the index is at the end. A fingerprint is a byte of the hash, and never 0; a
//! free entry has 0. A look-up compares only the members whose fingerprints are equal.
//!
//! A place says which member a fingerprint belongs to. Usually it is the byte offset of the member. It is the number of
//! the member, in one byte, for up to 255 members whose encodings have the same length, as those of UUIDs do. For up to
//! 32 such members there are no places: fingerprint `n` belongs to member `n`. Up to 255 members of two bytes each, as
//! small numbers take, have no index.
//!
//! The length of a buffer is rounded up to a size class of common allocators.

use std::alloc::Layout;

use multiversion::multiversion;

use super::Members;
use super::arena::{PREFIX, Records, is_at, prefix_bytes, split_prefix};
use super::group::{FAR_OFFSET, GROUP, Index, NUMBERED, OFFSET, PAIR, Places};
use super::group::{fingerprint, first_place, group_of, matches, place_of};
use super::record::{Record, pair_of};
use crate::counting::held::tag::Tag;
use crate::counting::params::Room;
use crate::error::Error;
use crate::hash::table_hash;
use crate::heap::Mover;
use crate::size_limit::{try_reserve, try_to_vec, try_zeroed};

/// When the buffer grows, at most this number of additional bytes is allocated for the next member.
const MOST_AHEAD: usize = 64;

/// The size to which allocators round `bytes` up: a multiple of 16 up to 128 bytes, and above that one of four sizes
/// per doubling.
#[inline]
fn size_class(bytes: usize) -> usize {
    let step = 1 << ((bytes.max(65) - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

/// The number of the pair of bytes that equals `wanted`, counted from 1; 0 if there is none. All pairs are different.
// The loops have no early end. So their branches are predictable, and the second compiles to vector instructions.
#[multiversion(targets("x86_64+avx2"))]
fn number_of(pairs: &[[u8; 2]], wanted: [u8; 2]) -> u16 {
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

impl<T: Tag> Members<T> {
    /// Makes a set whose buffer has the encoded members of `arena`, and room for their index. The caller must count the
    /// members and add them to the index.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn with_room(arena: &[u8], room: Room) -> Result<Self, Error> {
        let mut members = Members::default();
        let mut records = Records::<T>::new(arena).map(|(_, member)| T::BYTES + member.record().len());
        let Some(first) = records.next() else { return Ok(members) };
        let (len, all_alike) = records.fold((1, true), |(len, alike), record| (len + 1, alike && record == first));
        let record = if all_alike { u8::try_from(first).unwrap_or(0) } else { 0 };
        let index = Index::new(len.min(Self::most_members(arena.len(), room)), record, arena.len());
        members.make_room(arena.len() + index.bytes())?;
        members.buffer[..arena.len()].copy_from_slice(arena);
        members.arena_len = (arena.len() - split_prefix::<T>(arena).1.len()) as u32;
        members.index = index;
        Ok(members)
    }

    /// The part of the buffer that has all members, each as its slice tag and its encoding.
    #[inline]
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        // The buffer is never shorter than this, so the default is never used.
        self.buffer.get(..self.arena_len as usize).unwrap_or_default()
    }

    /// The byte offset of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member.
    #[inline]
    pub(in crate::counting) fn offset_of(&self, item: &[u8], hash: u64) -> Option<usize> {
        #[cfg(test)]
        super::tests::LOOKED_AT.set(super::tests::LOOKED_AT.get() + 1);
        match self.index.places {
            Places::Unindexed if T::BYTES == 0 && self.index.record == PAIR => self.find_pair(item),
            Places::Unindexed => self.find_among_few(item),
            Places::Ordered => self.find_ordered(item, hash),
            Places::Number => self.find_indexed::<NUMBERED>(item, hash),
            Places::Offset => self.find_indexed::<OFFSET>(item, hash),
            Places::FarOffset => self.find_far(item, hash),
        }
    }

    #[inline(never)]
    fn find_among_few(&self, item: &[u8]) -> Option<usize> {
        let (arena, mut records) = (self.as_bytes(), self.iter());
        while !records.rest().is_empty() {
            let offset = arena.len() - records.rest().len();
            if is_at::<T>(arena, offset, item) {
                return Some(offset);
            }
            records.next()?;
        }
        None
    }

    /// Finds `item` if all encoded members have two bytes, as small numbers do.
    #[inline(never)]
    fn find_pair(&self, item: &[u8]) -> Option<usize> {
        let (prefix, pairs) = split_prefix::<T>(self.as_bytes());
        let number = number_of(pairs.as_chunks().0, pair_of(item, prefix)?);
        Some(self.numbered(usize::from(number).checked_sub(1)?))
    }

    #[inline(always)]
    fn find_ordered(&self, item: &[u8], hash: u64) -> Option<usize> {
        for number in 0..usize::from(self.index.groups) {
            let group = self.group::<GROUP>(number)?;
            let mut matches = matches(group, fingerprint(hash));
            while matches != 0 {
                let at = self.numbered(number * GROUP + first_place(matches));
                if is_at::<T>(self.as_bytes(), at, item) {
                    return Some(at);
                }
                matches &= matches - 1;
            }
        }
        None
    }

    // This method is not inlined, so that the code for few members stays small.
    #[inline(never)]
    fn find_far(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.find_indexed::<FAR_OFFSET>(item, hash)
    }

    #[inline(always)]
    fn find_indexed<const BYTES: usize>(&self, item: &[u8], hash: u64) -> Option<usize> {
        // Nearly always, it is enough to search the group that the hash selects, up to the first equal fingerprint.
        let group = self.group::<BYTES>(group_of(hash, self.index.groups))?;
        match matches(group, fingerprint(hash)) {
            0 if group[GROUP - 1] == 0 => None,
            0 => self.find_indexed_anywhere::<BYTES>(item, hash),
            matches => {
                let first = self.member_at(group, first_place(matches), item);
                first.or_else(|| self.find_indexed_anywhere::<BYTES>(item, hash))
            }
        }
    }

    /// Does the same as [`Self::find_indexed`], but compares all members with an equal fingerprint, and goes on to the
    /// next group after a full one.
    #[cold]
    #[inline(never)]
    fn find_indexed_anywhere<const BYTES: usize>(&self, item: &[u8], hash: u64) -> Option<usize> {
        let mut number = group_of(hash, self.index.groups);
        while let Some(group) = self.group::<BYTES>(number) {
            let mut matches = matches(group, fingerprint(hash));
            while matches != 0 {
                if let Some(at) = self.member_at(group, first_place(matches), item) {
                    return Some(at);
                }
                matches &= matches - 1;
            }
            // A group whose last entry is free is not full, so the search ends. At least one group is never full.
            if group[GROUP - 1] == 0 {
                return None;
            }
            number = if number + 1 < usize::from(self.index.groups) { number + 1 } else { 0 };
        }
        None
    }

    #[inline(always)]
    fn group<const BYTES: usize>(&self, number: usize) -> Option<&[u8; BYTES]> {
        let start = self.buffer.len().checked_sub((number + 1) * BYTES)?;
        self.buffer.get(start..)?.first_chunk()
    }

    /// The byte offset of the member to which an entry in a group of the hash index refers, if that member is `item`.
    #[inline(always)]
    fn member_at<const BYTES: usize>(&self, group: &[u8; BYTES], place: usize, item: &[u8]) -> Option<usize> {
        let place = place_of(group, place);
        let at = if BYTES == NUMBERED { self.numbered(place) } else { place };
        is_at::<T>(self.as_bytes(), at, item).then_some(at)
    }

    /// The byte offset of the member with this number, if all encoded members have the same length.
    #[inline(always)]
    fn numbered(&self, number: usize) -> usize {
        self.front() + number * usize::from(self.index.record)
    }

    /// The byte offset of the first member. The prefix, a text that several members begin with, may be stored before
    /// it.
    #[inline(always)]
    pub(super) fn front(&self) -> usize {
        self.as_bytes().len() - split_prefix::<T>(self.as_bytes()).1.len()
    }

    /// Inserts `new`, which must not be a member yet. The caller has checked the limits of the set. If the buffer has
    /// to grow, `check` is first called with the number of additional bytes.
    ///
    /// # Errors
    /// The errors of `check`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[inline]
    pub(in crate::counting) fn insert_if(
        &mut self,
        new: &Record<'_>,
        hash: u64,
        tag: T,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (own, len) = (T::BYTES + new.len(), self.len() + 1);
        let arena = self.as_bytes().len() + prefix_bytes::<T>(new.prefix) + own;
        let is_first = self.len == 0 && self.index.places == Places::Unindexed;
        let record = if is_first || own == self.index.record.into() { u8::try_from(own).unwrap_or(0) } else { 0 };
        // The index is kept as long as it has room for the new member.
        let is_kept = self.index.holds(len, record, arena);
        let index = if is_kept {
            Index { record, ..self.index }
        } else {
            Index::new(len.max(self.index.members()), record, arena)
        };
        let bytes = arena + index.bytes();
        if bytes > self.buffer.len() {
            // From the second member on, memory for one more member is allocated too. This halves the number of
            // reallocations of short buffers.
            let wanted = if self.len == 0 { bytes } else { bytes + own.min(MOST_AHEAD) };
            check((size_class(wanted) - self.buffer.len()) as u64)?;
            self.make_room(wanted)?;
        }
        self.append(new, tag);
        if is_kept {
            self.index = index;
            index.enter(&mut self.buffer, hash, len - 1, arena - own);
        } else {
            self.index_anew(index);
        }
        Ok(())
    }

    /// Reserves memory for `more` members and their index, so that the buffer need not grow again and again. The set
    /// must have exactly one member, whose length is assumed for the new members. Returns false, and reserves nothing,
    /// if `is_allowed` rejects the bytes or the allocation fails.
    #[inline(never)]
    pub(in crate::counting) fn reserve(
        &mut self,
        more: usize,
        room: Room,
        is_allowed: impl FnOnce(u64) -> bool,
    ) -> bool {
        let (front, before) = (self.front(), self.buffer.len());
        let len = more.saturating_add(self.len()).min(room.members as usize);
        let records = len.saturating_mul(self.as_bytes().len() - front);
        let arena = front + records.min(room.arena_bytes() as usize + len * T::BYTES);
        let index = Index::new(len, self.index.record, arena);
        let bytes = arena + index.bytes();
        let has_room =
            bytes > before && is_allowed((size_class(bytes) - before) as u64) && self.make_room(bytes).is_ok();
        if has_room {
            self.index_anew(index);
        }
        has_room
    }

    /// Shrinks the buffer to what the encoded members and their smallest hash index take, rounded up to a size class.
    #[inline(never)]
    pub(in crate::counting) fn trim(&mut self) {
        let (arena, before) = (self.as_bytes().len(), self.buffer.len());
        let index = Index::new(self.len(), self.index.record, arena);
        let after = size_class(arena + index.bytes());
        // If the allocation fails, the larger buffer is kept.
        if after < before
            && let Ok(mut buffer) = try_zeroed(after)
        {
            buffer[..arena].copy_from_slice(self.as_bytes());
            if index == self.index {
                buffer[after - index.bytes()..].copy_from_slice(&self.buffer[before - index.bytes()..]);
            }
            self.buffer = buffer;
            if index != self.index {
                self.index_anew(index);
            }
        }
    }

    /// Appends the encoded member `new`. The buffer has room for it.
    #[inline]
    fn append(&mut self, new: &Record<'_>, tag: T) {
        let prefix = new.prefix;
        if !prefix.is_empty() {
            let bytes = [T::default().as_bytes(), &[PREFIX, prefix.len() as u8], prefix].concat();
            self.buffer[..bytes.len()].copy_from_slice(&bytes);
            self.arena_len = bytes.len() as u32;
        }
        let (_, free) = self.buffer.split_at_mut(self.arena_len as usize);
        let (tag_bytes, free) = free.split_at_mut(T::BYTES);
        tag_bytes.copy_from_slice(tag.as_bytes());
        let (head, text) = free.split_at_mut(new.head.len());
        // The first byte is written directly. It is often the only one, and a copy would take longer.
        if let ([first, rest @ ..], [code, body @ ..]) = (head, new.head) {
            *first = *code;
            rest.copy_from_slice(body);
        }
        text[..new.text.len()].copy_from_slice(new.text);
        self.count(T::BYTES + new.len(), new.counted_bytes);
    }

    /// Adds a member to the totals of the set. The buffer already has the member's slice tag and encoding, `own` bytes
    /// together. The member takes `counted_bytes` of the limit `exact_bytes`.
    #[inline]
    fn count(&mut self, own: usize, counted_bytes: usize) {
        self.arena_len += own as u32;
        self.member_bytes += counted_bytes as u32;
        self.len += 1;
    }

    /// Adds a member to the totals and the index. The buffer already has the member's slice tag and encoding, `own`
    /// bytes together.
    pub(super) fn take_in(&mut self, own: usize, counted_bytes: usize, hash: u64) {
        let (number, offset) = (self.len(), self.as_bytes().len());
        self.count(own, counted_bytes);
        self.index.enter(&mut self.buffer, hash, number, offset);
    }

    /// Rebuilds the hash index with the size and kind of `index`, for which the buffer must have room.
    #[inline(never)]
    pub(super) fn index_anew(&mut self, index: Index) {
        self.index = index;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (front, groups) = buffer.split_at_mut(buffer.len() - index.bytes());
        groups.fill(0);
        let arena = &front[..self.arena_len as usize];
        let (mut members, mut decoded) = (Records::<T>::new(arena), [0; 64]);
        for number in 0..self.len() {
            let offset = arena.len() - members.rest().len();
            let Some((_, member)) = members.next() else { break };
            index.enter(groups, table_hash(member.text_in(&mut decoded)), number, offset);
        }
        self.buffer = buffer;
    }

    /// Lengthens the buffer to `needed` bytes, which are more than before, rounded up to a size class of common
    /// allocators. The encoded members stay at the front. The index moves to the new end.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]. On error the buffer is unchanged.
    #[inline(never)]
    fn make_room(&mut self, needed: usize) -> Result<(), Error> {
        let (before, after) = (self.buffer.len(), size_class(needed));
        let index_bytes = self.index.bytes();
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        let reserved = try_reserve(&mut buffer, after - before);
        if reserved.is_ok() {
            buffer.resize(after, 0);
            buffer.copy_within(before - index_bytes..before, after - index_bytes);
        }
        // The length equals the capacity, even if the reservation failed. So `into_boxed_slice` allocates nothing.
        self.buffer = buffer.into_boxed_slice();
        reserved
    }

    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        if !self.buffer.is_empty() {
            visit(Layout::for_value::<[u8]>(&self.buffer));
        }
    }

    /// The total size of all heap allocations, in bytes.
    #[inline]
    pub(in crate::counting) fn heap_bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    pub(in crate::counting) fn relocate(&mut self, mover: &impl Mover) {
        let len = self.buffer.len();
        self.buffer = mover.relocate(std::mem::take(&mut self.buffer));
        debug_assert_eq!(self.buffer.len(), len);
    }

    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        Ok(Members { buffer: try_to_vec(&self.buffer)?.into_boxed_slice(), ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::CODED;
    use super::super::tests::ROOM;
    use super::*;
    use crate::counting::held::ring::Ages;

    fn packed(items: impl IntoIterator<Item = Vec<u8>>) -> Members {
        let mut packed = Members::default();
        for item in items {
            let hash = table_hash(&item);
            assert!(packed.offset_of(&item, hash).is_none());
            let (before, mut more) = (packed.heap_bytes(), 0);
            let reject = |bytes| {
                more = bytes;
                Err(Error::OutOfMemory { needed_bytes: 1 })
            };
            if packed.insert_if(&Record::of(&item, &[], &mut { CODED }), hash, (), reject).is_err() {
                assert!(packed.heap_bytes() == before && packed.offset_of(&item, hash).is_none());
                packed.insert(&item, ()).unwrap();
            }
            assert_eq!(packed.heap_bytes(), before + more);
        }
        packed
    }

    fn id(number: usize) -> Vec<u8> {
        format!("m{number:011}").into_bytes()
    }

    #[test]
    fn sizes_are_pinned() {
        // Each case has a number of members, the bytes for members of 12 bytes each, and the bytes if one member has
        // 13.
        for (len, bytes, bytes_of_two_lengths) in [
            (0, 0, 0),
            (1, 16, 16),
            (2, 48, 48),
            (4, 80, 80),
            (5, 96, 128),
            (10, 160, 192),
            (100, 1536, 1792),
            (250, 4096, 4096),
        ] {
            assert_eq!(packed((0..len).map(id)).heap_bytes(), bytes, "{len} members");
            let two_lengths =
                packed((0..len).map(|number| if number == 0 { b"13 characters".to_vec() } else { id(number) }));
            assert_eq!(two_lengths.heap_bytes(), bytes_of_two_lengths, "{len} members of two lengths");
        }
        // The members fill the buffer to its last byte. Each of them takes 16 bytes, with its length.
        let sizes = (1..=4).map(|len| packed((0..len).map(|number| vec![number; 15])).heap_bytes());
        assert!(sizes.eq([16, 48, 48, 80]));
    }

    #[test]
    fn size_classes_are_those_of_allocators() {
        let classes: Vec<_> = (1..=700).map(size_class).collect();
        let expected = [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768];
        assert_eq!(classes.chunk_by(|a, b| a == b).map(|run| run[0]).collect::<Vec<_>>(), expected);
        assert!(
            (1..=700).all(|bytes| size_class(bytes) >= bytes && size_class(size_class(bytes)) == size_class(bytes))
        );
    }

    #[test]
    fn members_of_one_group_fill_the_next() {
        // The hashes of these items select the first group, no matter how many groups there are.
        let of_first = |item: &Vec<u8>| group_of(table_hash(item), 0x100) == 0;
        let (items, others) = ((0..).map(id).filter(of_first), (0..).map(id).filter(|item| !of_first(item)));
        let items: Vec<_> = items.take(0xff).collect();
        let mut packed = packed(items.iter().cloned());
        assert!(items.iter().all(|item| packed.offset_of(item, table_hash(item)).is_some()));
        assert!(others.take(1000).all(|item| packed.offset_of(&item, table_hash(&item)).is_none()));
        assert_eq!(packed.index, Index { groups: 17, record: 13, places: Places::Number });
        // Inserting a member of another length turns the numbers of members in the hash index into byte offsets.
        packed.insert(b"", ()).unwrap();
        assert!(packed.index.places == Places::Offset && packed.offset_of(b"", table_hash(b"")).is_some());
        assert!(items.iter().all(|item| packed.offset_of(item, table_hash(item)).is_some()));
    }

    #[test]
    fn what_will_be_read_is_allocated_once() {
        for items in [
            (0..3).map(id).collect::<Vec<_>>(),
            (0..200).map(id).collect(),
            (0..200).map(|n| vec![7; n]).collect(),
            // An index of byte offsets is longer than an index of numbers. Here the difference is more than the
            // rounding of buffers.
            (0..60).map(|n| vec![n; 8 + usize::from(n % 2)]).collect(),
        ] {
            let expected = packed(items.iter().cloned());
            let room = Members::<()>::with_room(expected.as_bytes(), ROOM).unwrap().heap_bytes();
            let read = Members::<()>::from_bytes(expected.as_bytes(), ROOM, Ages::PLAIN).unwrap();
            assert_eq!((read.as_bytes(), read.index), (expected.as_bytes(), expected.index));
            assert!(read.heap_bytes() <= expected.heap_bytes());
            assert_eq!(read.heap_bytes(), room);
        }
    }
}
