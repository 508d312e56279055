//! The set of an exact counter: the members themselves, each encoded as a [record]. The encoded members (the arena) and
//! a [hash index](index) share one buffer:
//!
//! ```text
//! | arena: front | members in order of addition | free | index: ... | group 1 | group 0 |
//!
//! front: the prefix that members share, and the width if all are numbers
//! group: 16 fingerprints, a byte each | 16 byte offsets of members, 2 or 4 bytes each
//! ```
//!
//! The arena grows from the front, and the index is at the end. A fingerprint is a byte of the hash, and never 0; a
//! free entry has 0. A look-up compares only the members whose fingerprints are equal.
//!
//! Up to four members have no index, and up to 256 numbers without tags neither: a loop compares them all.
//!
//! The length of a buffer is rounded up to a size class of common allocators.

mod digits;
pub(in crate::counting) mod index;
pub(in crate::counting) mod record;
mod removal;

use std::alloc::Layout;

use index::{FAR_OFFSET, Index, OFFSET};
use record::{Front, MOST_SCANNED, Member, Record, Records, has_item, number_of};

use crate::counting::held::ring::{Ages, own_bytes};
use crate::counting::params::Room;
use crate::error::Error;
use crate::hash::{hash64, table_hash};
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, Unlimited, try_reserve, try_to_vec, try_zeroed};
use crate::window::Mark;

/// A set of at most this number of members has no index.
const FEW: usize = 4;

/// When the buffer grows, at most this number of additional bytes is allocated for the next member.
const MOST_AHEAD: usize = 64;

/// The size to which allocators round `bytes` up: a multiple of 16 up to 128 bytes, and above that one of four sizes
/// per doubling.
#[inline]
fn size_class(bytes: usize) -> usize {
    let step = 1 << ((bytes.max(65) - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

/// Distinct byte strings, in the order they were added. With a window, each has a tag: the slice in which it was last
/// added. Without a window, the tags given to these methods are not used, and the tag of every member is that of
/// [`Ages::PLAIN`].
#[derive(Debug, Default)]
pub(in crate::counting) struct Members {
    /// The encoded members, then the index for finding them.
    buffer: Box<[u8]>,
    /// The length of the front and the encoded members in `buffer`, in bytes.
    arena_len: u32,
    /// The bytes that all members together take of the limit `exact_bytes`.
    pub(in crate::counting) member_bytes: u32,
    len: u32,
    /// The bytes that a slice tag takes in front of an encoded member: 0 without a window, otherwise 1.
    tag_bytes: u8,
    /// The length of the front of the arena.
    front_len: u8,
    /// The width in the front of the arena: the bytes of each member if all are numbers, otherwise 0.
    pub(in crate::counting) width: u8,
    index: Index,
}

impl Members {
    pub(in crate::counting) fn new(ages: Ages) -> Self {
        Members { tag_bytes: ages.tag_bytes() as u8, ..Members::default() }
    }

    #[inline(always)]
    fn tag_bytes(&self) -> usize {
        self.tag_bytes.into()
    }

    /// The text that members may begin with, and that is stored only once.
    #[inline(always)]
    fn prefix(&self) -> &[u8] {
        self.buffer.get(self.tag_bytes() + 2..self.front_len.into()).unwrap_or_default()
    }

    #[inline(always)]
    fn front(&self) -> Front<'_> {
        Front { prefix: self.prefix(), width: self.width }
    }

    #[inline]
    pub(in crate::counting) fn len(&self) -> usize {
        self.len as usize
    }

    /// The front, and the encoded members with it.
    pub(in crate::counting) fn arena(&self) -> (&[u8], Front<'_>) {
        (self.as_bytes(), self.front())
    }

    /// The members, each with its slice tag, in the order they were added.
    pub(in crate::counting) fn iter(&self) -> Records<'_> {
        self.records_from(self.front_len.into())
    }

    /// The members from byte `offset` on.
    fn records_from(&self, offset: usize) -> Records<'_> {
        let rest = self.as_bytes().get(offset..).unwrap_or_default();
        Records { rest, front: self.front(), tag_bytes: self.tag_bytes() }
    }

    /// The hashes of the members under `seed`, and their slice tags.
    pub(in crate::counting) fn hashed(&self, seed: u64) -> impl Iterator<Item = (u64, u8)> {
        let mut buffer = [0; 64];
        self.iter().map(move |(tag, member)| {
            #[cfg(test)]
            tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
            (hash64(member.text_in(&mut buffer), seed), tag)
        })
    }

    /// The slice tag of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member.
    #[inline]
    pub(in crate::counting) fn tag_of(&self, item: &[u8], hash: u64) -> Option<u8> {
        if self.is_scanned() {
            return has_item(self.front(), self.numbers(), item).then_some(Ages::PLAIN.newest);
        }
        self.find(item, hash).map(|(_, tag)| tag)
    }

    /// Does the same as [`Self::tag_of`], and returns the byte offset of the member too.
    #[inline]
    pub(in crate::counting) fn find(&self, item: &[u8], hash: u64) -> Option<(usize, u8)> {
        let offset = self.offset_of(item, hash)?;
        let tag = if self.tag_bytes == 0 { Ages::PLAIN.newest } else { *self.buffer.get(offset)? };
        Some((offset, tag))
    }

    /// Adds `item`. If it is a member already, its slice tag becomes `tag` if that is younger. The result is `None`,
    /// and the set is unchanged, if the set would exceed `room`.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[inline(always)]
    pub(in crate::counting) fn add(
        &mut self,
        item: &[u8],
        (tag, ages): (u8, Ages),
        room: Room,
        limit: &impl SizeLimit,
    ) -> Result<Option<Mark>, Error> {
        if self.is_scanned() {
            return match has_item(self.front(), self.numbers(), item) {
                true => Ok(Some(Mark::Same)),
                false => self.add_absent(item, 0, tag, room, limit),
            };
        }
        let hash = self.hash_of(item);
        match self.offset_of(item, hash) {
            Some(_) if self.tag_bytes == 0 => Ok(Some(Mark::Same)),
            Some(offset) => Ok(self.buffer.get_mut(offset).map(|own| ages.renew(own, tag))),
            None => self.add_absent(item, hash, tag, room, limit),
        }
    }

    /// Does the same as [`Self::add`] for an item that is no member yet, and whose [`table_hash`] is `hash`.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    #[inline(never)]
    pub(in crate::counting) fn add_absent(
        &mut self,
        item: &[u8],
        hash: u64,
        tag: u8,
        room: Room,
        limit: &impl SizeLimit,
    ) -> Result<Option<Mark>, Error> {
        let (record, prefix) = match self.len {
            0 => Record::first(item),
            _ => (Record::of(item, self.prefix()), &[][..]),
        };
        if !self.has_room_for(record.counted_bytes(), room) {
            return Ok(None);
        }
        self.insert(&record, prefix, hash, tag, limit)?;
        Ok(Some(Mark::New))
    }

    /// Whether the set stays within the limits `room` with one more member, which takes `counted_bytes` bytes of the
    /// limit `exact_bytes`.
    #[inline]
    pub(in crate::counting) fn has_room_for(&self, counted_bytes: usize, room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes);
        self.len() < room.members as usize && bytes_left.is_some_and(|left| counted_bytes <= left as usize)
    }

    /// The most heap bytes that `arena_bytes` bytes of encoded members take together with their hash index, without the
    /// rounding of the buffer's size.
    pub(in crate::counting) fn bytes_of_read(arena_bytes: u64, room: Room) -> u64 {
        let members = most_members(arena_bytes as usize, room);
        arena_bytes + if members > FEW { Index::new(members, arena_bytes as usize).bytes() as u64 } else { 0 }
    }

    /// Loads the bytes that [`Self::as_bytes`] returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`] in these cases: the bytes are not members as [`Self::insert`] writes them, a member occurs
    /// twice, the members exceed `room`, or the slice of a member has expired.
    pub(in crate::counting) fn from_bytes(bytes: &[u8], room: Room, ages: Ages) -> Result<Self, Error> {
        let mut members = Self::new(ages).with_room(bytes, room)?;
        let (mut rest, mut buffer) = (Records::new(bytes, members.tag_bytes()), [0; 64]);
        let front = rest.front;
        for (tag, member) in rest.by_ref() {
            ages.check(tag)?;
            let text = member.text_in(&mut buffer);
            // A text that is encoded in another way than [`Self::add`] encodes it is rejected.
            let is_ours = member.is_record_of(text, front);
            Error::check_field(is_ours, "members", "each in the form of its text", "one in another")?;
            let counted_bytes = member.counted_bytes();
            if !members.has_room_for(counted_bytes, room) {
                let expected = format!("at most {} members of {} bytes together", room.members, room.bytes);
                return Err(Error::corrupt("members", expected, "more"));
            }
            let hash = table_hash(text);
            let is_new = members.tag_of(text, hash).is_none();
            Error::check_field(is_new, "members", "distinct members", "one twice")?;
            members.index.enter(&mut members.buffer, hash, members.arena_len as usize);
            members.count(members.tag_bytes() + member.len(), counted_bytes);
        }
        let left = rest.rest.len();
        Error::check_field(left == 0, "members", "a whole last member", format_args!("{left} bytes of it"))?;
        Error::check_field(members.len() > 0 || bytes.is_empty(), "members", "one behind the front", "none")?;
        Ok(members)
    }

    /// Gives an empty set a buffer that has the encoded members of `arena`, and room for their index. The caller must
    /// count the members and add them to the index.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_room(mut self, arena: &[u8], room: Room) -> Result<Self, Error> {
        let records = Records::new(arena, self.tag_bytes());
        let (front_len, width) = (arena.len() - records.rest.len(), records.front.width);
        let len = records.count().min(most_members(arena.len(), room));
        let index = self.index_for(len, width, arena.len());
        self.make_room(arena.len() + index.bytes())?;
        self.buffer[..arena.len()].copy_from_slice(arena);
        (self.arena_len, self.front_len, self.width, self.index) = (front_len as u32, front_len as u8, width, index);
        Ok(self)
    }

    /// The smallest index for `len` members, whose encodings take `arena` bytes. `width` is that of the front.
    fn index_for(&self, len: usize, width: u8, arena: usize) -> Index {
        let most = if width > 0 && self.tag_bytes == 0 { MOST_SCANNED } else { FEW };
        if len <= most { Index::NONE } else { Index::new(len, arena) }
    }

    /// The part of the buffer that has all members, each as its slice tag and its encoding.
    #[inline]
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        // The buffer is never shorter than this, so the default is never used.
        self.buffer.get(..self.arena_len as usize).unwrap_or_default()
    }

    /// The byte offset of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member.
    #[inline(never)]
    fn offset_of(&self, item: &[u8], hash: u64) -> Option<usize> {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        if self.index == Index::NONE {
            return self.find_by_one(item);
        }
        if self.index.is_far() { self.find_in::<FAR_OFFSET>(item, hash) } else { self.find_in::<OFFSET>(item, hash) }
    }

    #[inline(always)]
    fn find_in<const BYTES: usize>(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.index.find::<BYTES>(&self.buffer, hash, |offset| self.is_at(offset, item))
    }

    /// The [`table_hash`] of `item`, or 0 if there is no index, which is all that it is for.
    #[inline(always)]
    pub(in crate::counting) fn hash_of(&self, item: &[u8]) -> u64 {
        if self.index == Index::NONE { 0 } else { table_hash(item) }
    }

    /// Whether this is a set of numbers without an index.
    #[inline(always)]
    fn is_scanned(&self) -> bool {
        self.width > 0 && self.tag_bytes == 0 && self.index == Index::NONE
    }

    /// The numbers of a set without an index.
    #[inline(always)]
    fn numbers(&self) -> &[u8] {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        self.as_bytes().get(self.front_len.into()..).unwrap_or_default()
    }

    #[inline(never)]
    fn find_by_one(&self, item: &[u8]) -> Option<usize> {
        let number = if self.width == 0 { None } else { Some(number_of(item, self.prefix())?) };
        let mut offset = self.front_len.into();
        for (_, member) in self.iter() {
            let is_it = if number.is_some() { member.number() == number } else { self.is_at(offset, item) };
            if is_it {
                return Some(offset);
            }
            offset += self.tag_bytes() + member.len();
        }
        None
    }

    /// Whether the member at this byte offset is `item`.
    // Only the comparison of texts is inlined, so that a look-up keeps its variables in registers.
    #[inline(always)]
    fn is_at(&self, offset: usize, item: &[u8]) -> bool {
        let plainly = if self.width == 0 { Record::begins_plainly(self.bytes_at(offset), item) } else { None };
        plainly.unwrap_or_else(|| self.is_encoded_at(offset, item))
    }

    #[inline(never)]
    fn is_encoded_at(&self, offset: usize, item: &[u8]) -> bool {
        Member::split(self.bytes_at(offset), self.front()).is_some_and(|(member, _)| member == *item)
    }

    /// The bytes from a member on, without its slice tag.
    #[inline(always)]
    fn bytes_at(&self, offset: usize) -> &[u8] {
        self.as_bytes().get(offset + self.tag_bytes()..).unwrap_or_default()
    }

    /// Inserts an item, which must not be a member yet. The caller has checked that the set has room for it. If it is
    /// the first, `prefix` becomes that of the set.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[inline]
    fn insert(
        &mut self,
        record: &Record<'_>,
        prefix: &[u8],
        hash: u64,
        tag: u8,
        limit: &impl SizeLimit,
    ) -> Result<(), Error> {
        let len = self.len() + 1;
        let width = match self.len {
            0 => record.number(prefix).map_or(0, Front::width_of),
            _ if self.width == 0 => 0,
            _ => record.number(self.prefix()).map_or(0, |number| self.width.max(Front::width_of(number))),
        };
        let own = self.tag_bytes() + record.len_in(width);
        if self.len == 0 || width != self.width {
            self.reform(prefix, width, own, limit)?;
        }
        let arena = self.as_bytes().len() + own;
        // The index is kept as long as it has room for the new member.
        let index = match self.index.holds(len, arena) {
            true => self.index,
            false => self.index_for(len.max(self.index.members()), width, arena),
        };
        let bytes = arena + index.bytes();
        if bytes > self.buffer.len() {
            // Memory for one more member is allocated too. This halves the number of reallocations of short buffers.
            let wanted = bytes + own.min(MOST_AHEAD);
            limit.check(self.held_bytes(), (size_class(wanted) - self.buffer.len()) as u64)?;
            self.make_room(wanted)?;
        }
        let (tag_byte, bytes) = self.buffer[arena - own..arena].split_at_mut(self.tag_bytes.into());
        if let [byte] = tag_byte {
            *byte = tag;
        }
        record.put(bytes, width);
        self.count(own, record.counted_bytes());
        if index != self.index {
            self.index_anew(index);
        } else if index != Index::NONE {
            index.enter(&mut self.buffer, hash, arena - own);
        }
        Ok(())
    }

    /// Rewrites all members for another width in the front: wider numbers, or 0 for records with headers. The front of
    /// an empty set gets the prefix `first` too. The buffer has room for one more member of `own` bytes. Room that was
    /// reserved for more is given up, so that a list fails where its members, added one by one, would.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[cold]
    fn reform(&mut self, first: &[u8], width: u8, own: usize, limit: &impl SizeLimit) -> Result<(), Error> {
        let prefix = if self.len == 0 { first } else { self.prefix() };
        let front_bytes = Front { prefix, width }.to_bytes(self.tag_bytes());
        let len_of = |member: Member<'_>| self.tag_bytes() + member.record(&mut [0; 64]).len_in(width);
        let arena = front_bytes.len() + self.iter().map(|(_, member)| len_of(member)).sum::<usize>() + own;
        let index = self.index_for(self.len() + 1, width, arena);
        let bytes = size_class(arena + index.bytes());
        limit.check(self.held_bytes(), bytes.saturating_sub(self.buffer.len()) as u64)?;
        let mut buffer = try_zeroed(bytes)?;
        let mut at = front_bytes.len();
        buffer[..at].copy_from_slice(&front_bytes);
        for (tag, member) in self.iter() {
            let len = len_of(member);
            let (tag_byte, bytes) = buffer[at..at + len].split_at_mut(self.tag_bytes());
            tag_byte.fill(tag);
            member.record(&mut [0; 64]).put(bytes, width);
            at += len;
        }
        let front_len = front_bytes.len() as u8;
        // The caller then makes the index anew.
        *self = Members { buffer, arena_len: at as u32, front_len, width, index: Index::NONE, ..*self };
        Ok(())
    }

    /// Reserves memory for `more` members and their index, so that the buffer need not grow again and again. The new
    /// members are assumed to be as long as those of the set, which must not be empty. Returns false, and reserves
    /// nothing, if the allocation fails, or if `limit` does not allow the longest members: so a list fails where its
    /// members, added one by one, would.
    #[inline(never)]
    pub(in crate::counting) fn reserve(&mut self, more: usize, room: Room, limit: &impl SizeLimit) -> bool {
        let (front, before) = (usize::from(self.front_len), self.buffer.len());
        let len = more.saturating_add(self.len()).min(room.members as usize);
        let records = len.saturating_mul(self.as_bytes().len() - front) / self.len();
        let longest = room.arena_bytes() as usize;
        let arena = front + records.min(longest + len * self.tag_bytes());
        let index = self.index_for(len, self.width, arena);
        let bytes = arena + index.bytes();
        let most = Self::bytes_of_read(longest as u64 + u64::from(room.members), room) as usize + MOST_AHEAD;
        let has_room =
            bytes > before && limit.allows(self.held_bytes(), size_class(most) as u64) && self.make_room(bytes).is_ok();
        if has_room && index != self.index {
            self.index_anew(index);
        }
        has_room
    }

    /// Shrinks the buffer to what the encoded members and their smallest hash index take, rounded up to a size class.
    #[inline(never)]
    pub(in crate::counting) fn trim(&mut self) {
        let (arena, before) = (self.as_bytes().len(), self.buffer.len());
        let index = self.index_for(self.len(), self.width, arena);
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

    /// Adds a member to the totals of the set. The buffer already has the member's slice tag and encoding, `own` bytes
    /// together. The member takes `counted_bytes` of the limit `exact_bytes`.
    #[inline]
    fn count(&mut self, own: usize, counted_bytes: usize) {
        self.arena_len += own as u32;
        self.member_bytes += counted_bytes as u32;
        self.len += 1;
    }

    /// Rebuilds the hash index with the size and kind of `index`, for which the buffer must have room.
    #[inline(never)]
    fn index_anew(&mut self, index: Index) {
        self.index = index;
        if index == Index::NONE {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let (arena, groups) = buffer.split_at_mut(buffer.len() - index.bytes());
        groups.fill(0);
        let mut records = Records::new(&arena[..self.arena_len as usize], self.tag_bytes());
        let mut offset = self.front_len.into();
        while let Some((_, member)) = records.next() {
            index.enter(groups, table_hash(member.text_in(&mut [0; 64])), offset);
            offset = self.arena_len as usize - records.rest.len();
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

    /// The bytes of the whole counter.
    fn held_bytes(&self) -> u64 {
        own_bytes(self.tag_bytes > 0) + self.heap_bytes()
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

    /// A set without tags of the members that were last added at most `most_age` slices ago.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn within(&self, ages: Ages, most_age: u8) -> Result<Self, Error> {
        let (mut members, mut buffer) = (Members::default(), [0; 64]);
        for (_, member) in self.iter().filter(|&(tag, _)| ages.age(tag) <= most_age) {
            let text = member.text_in(&mut buffer);
            members.add_absent(text, table_hash(text), 0, Room::ANY, &Unlimited)?;
        }
        Ok(members)
    }
}

/// The most members that `arena_bytes` bytes of encoded members may be.
fn most_members(arena_bytes: usize, room: Room) -> usize {
    // With its slice tag, a member takes at least two bytes. Without a tag, the empty text takes one, and so do numbers
    // below 256, which have no index.
    (room.members as usize).min(arena_bytes / 2 + 1)
}

#[cfg(test)]
pub(in crate::counting) mod tests;
