//! The set of an exact counter: the members themselves, each encoded as a [record]. The encoded members (the [arena])
//! and, usually from five members on, a [hash index](index) share one buffer:
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

mod arena;
mod digits;
pub(in crate::counting) mod index;
pub(in crate::counting) mod record;

use std::alloc::Layout;

use arena::{PREFIX, Records, prefix_bytes, split_prefix};
use index::{Index, PAIR, Places, number_of};
use record::{CODED, Coded, Member, Record, pair_of};

use crate::counting::held::ring::Ages;
use crate::counting::params::Room;
use crate::error::Error;
use crate::hash::{hash64, table_hash};
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, Unlimited, try_reserve, try_to_vec, try_zeroed};
use crate::window::Mark;

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
    /// The length of the encoded members at the front of `buffer`, in bytes.
    arena_len: u32,
    /// The bytes that all members together take of the limit `exact_bytes`.
    member_bytes: u32,
    len: u32,
    /// The bytes that a slice tag takes in front of an encoded member: 0 without a window, otherwise 1.
    tag_bytes: u8,
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

    #[inline]
    pub(in crate::counting) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(in crate::counting) fn member_bytes(&self) -> u32 {
        self.member_bytes
    }

    #[inline]
    pub(in crate::counting) fn record_of<'i>(&self, item: &'i [u8], coded: &'i mut Coded) -> Record<'i> {
        match self.len {
            0 => Record::first(item, coded),
            _ => Record::of(item, self.prefix(), coded),
        }
    }

    /// The encoded members, and the prefix that they may have in common.
    pub(in crate::counting) fn arena(&self) -> (&[u8], &[u8]) {
        (self.as_bytes(), self.prefix())
    }

    /// The members, each with its slice tag, in the order they were added.
    pub(in crate::counting) fn iter(&self) -> Records<'_> {
        Records::new(self.as_bytes(), self.tag_bytes())
    }

    /// The members with their hashes under `seed`, and their slice tags.
    pub(in crate::counting) fn hashed(&self, seed: u64) -> impl Iterator<Item = (u64, u8, Member<'_>)> {
        let mut buffer = [0; 64];
        self.iter().map(move |(tag, member)| {
            #[cfg(test)]
            tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
            (hash64(member.text_in(&mut buffer), seed), tag, member)
        })
    }

    #[cfg(test)]
    pub(in crate::counting) fn contains(&self, item: &[u8]) -> bool {
        self.offset_of(item, table_hash(item)).is_some()
    }

    /// The byte offset and the slice tag of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no
    /// member.
    #[inline]
    pub(in crate::counting) fn find(&self, item: &[u8], hash: u64) -> Option<(usize, u8)> {
        let offset = self.offset_of(item, hash)?;
        let tag = if self.tag_bytes == 0 { Ages::PLAIN.newest } else { *self.buffer.get(offset)? };
        Some((offset, tag))
    }

    /// Adds `item`, whose [`table_hash`] is `hash`. If it is a member already, its slice tag becomes `tag` if that is
    /// younger. The result is `None`, and the set is unchanged, if the set would exceed `room`.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[inline(always)]
    pub(in crate::counting) fn add(
        &mut self,
        item: &[u8],
        hash: u64,
        (tag, ages): (u8, Ages),
        room: Room,
        limit: &impl SizeLimit,
    ) -> Result<Option<Mark>, Error> {
        match self.offset_of(item, hash) {
            Some(_) if self.tag_bytes == 0 => Ok(Some(Mark::Same)),
            Some(offset) => Ok(self.buffer.get_mut(offset).map(|own| ages.renew(own, tag))),
            None => self.add_absent(item, hash, tag, room, limit),
        }
    }

    /// Does the same as [`Self::add`] for an item that is no member yet.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    #[inline]
    pub(in crate::counting) fn add_absent(
        &mut self,
        item: &[u8],
        hash: u64,
        tag: u8,
        room: Room,
        limit: &impl SizeLimit,
    ) -> Result<Option<Mark>, Error> {
        let mut coded = CODED;
        let new = self.record_of(item, &mut coded);
        if !self.has_room_for(new.counted_bytes, room) {
            return Ok(None);
        }
        self.insert(&new, hash, tag, limit)?;
        Ok(Some(Mark::New))
    }

    /// Whether the set stays within the limits `room` with one more member, which takes `counted_bytes` bytes of the
    /// limit `exact_bytes`.
    #[inline]
    pub(in crate::counting) fn has_room_for(&self, counted_bytes: usize, room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes());
        self.len() < room.members as usize && bytes_left.is_some_and(|left| counted_bytes <= left as usize)
    }

    /// The most heap bytes that `arena_bytes` bytes of encoded members take together with their hash index, without the
    /// rounding of the buffer's size.
    pub(in crate::counting) fn bytes_of_read(arena_bytes: u64, room: Room, ages: Ages) -> u64 {
        let members = most_members(arena_bytes as usize, room, ages.tag_bytes());
        arena_bytes + Index::new(members, 0, arena_bytes as usize).bytes() as u64
    }

    /// Loads the bytes that [`Self::as_bytes`] returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`] in these cases: the bytes are not members as [`Self::insert`] writes them, a member occurs
    /// twice, the members exceed `room`, or the slice of a member has expired.
    pub(in crate::counting) fn from_bytes(bytes: &[u8], room: Room, ages: Ages) -> Result<Self, Error> {
        let mut members = Self::new(ages).with_room(bytes, room)?;
        let (mut rest, mut buffer) = (Records::new(bytes, members.tag_bytes()), [0; 64]);
        for (tag, member) in rest.by_ref() {
            ages.check(tag)?;
            let text = member.text_in(&mut buffer);
            // A text that is encoded in another way than [`Self::insert`] encodes it is rejected.
            Error::check_field(member.is_record_of(text), "members", "each in the form of its text", "one in another")?;
            let counted_bytes = member.counted_bytes();
            if !members.has_room_for(counted_bytes, room) {
                let expected = format!("at most {} members of {} bytes together", room.members, room.bytes);
                return Err(Error::corrupt("members", expected, "more"));
            }
            let hash = table_hash(text);
            if members.offset_of(text, hash).is_some() {
                return Err(Error::corrupt("members", "distinct members", "one twice"));
            }
            members.take_in(members.tag_bytes() + member.record().len(), counted_bytes, hash);
        }
        let left = rest.rest().len();
        Error::check_field(left == 0, "members", "a whole last member", format_args!("{left} bytes of it"))?;
        Error::check_field(members.len() > 0 || bytes.is_empty(), "members", "one behind the prefix", "none")?;
        Ok(members)
    }

    /// Gives an empty set a buffer that has the encoded members of `arena`, and room for their index. The caller must
    /// count the members and add them to the index.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_room(mut self, arena: &[u8], room: Room) -> Result<Self, Error> {
        let tag_bytes = self.tag_bytes();
        let mut records = Records::new(arena, tag_bytes).map(|(_, member)| tag_bytes + member.record().len());
        let Some(first) = records.next() else { return Ok(self) };
        let (len, all_alike) = records.fold((1, true), |(len, alike), record| (len + 1, alike && record == first));
        let record = if all_alike { u8::try_from(first).unwrap_or(0) } else { 0 };
        let index = Index::new(len.min(most_members(arena.len(), room, tag_bytes)), record, arena.len());
        self.make_room(arena.len() + index.bytes())?;
        self.buffer[..arena.len()].copy_from_slice(arena);
        self.arena_len = (arena.len() - split_prefix(arena, tag_bytes).1.len()) as u32;
        self.index = index;
        Ok(self)
    }

    /// The part of the buffer that has all members, each as its slice tag and its encoding.
    #[inline]
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        // The buffer is never shorter than this, so the default is never used.
        self.buffer.get(..self.arena_len as usize).unwrap_or_default()
    }

    /// The byte offset of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member.
    #[inline]
    fn offset_of(&self, item: &[u8], hash: u64) -> Option<usize> {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        match self.index.places {
            Places::Unindexed if self.tag_bytes() == 0 && self.index.record == PAIR => self.find_pair(item),
            Places::Unindexed => self.find_among_few(item),
            Places::Ordered | Places::Number => {
                let front = self.front();
                let offset = |number| front + number * usize::from(self.index.record);
                self.index.find(&self.buffer, hash, |number| self.is_at(offset(number), item)).map(offset)
            }
            Places::Offset => self.index.find(&self.buffer, hash, |offset| self.is_at(offset, item)),
            Places::FarOffset => self.find_far(item, hash),
        }
    }

    #[inline(never)]
    fn find_among_few(&self, item: &[u8]) -> Option<usize> {
        let (arena, mut records) = (self.as_bytes(), self.iter());
        while !records.rest().is_empty() {
            let offset = arena.len() - records.rest().len();
            if self.is_at(offset, item) {
                return Some(offset);
            }
            records.next()?;
        }
        None
    }

    /// Finds `item` if all encoded members have two bytes, as small numbers do.
    #[inline(never)]
    fn find_pair(&self, item: &[u8]) -> Option<usize> {
        let (prefix, pairs) = split_prefix(self.as_bytes(), 0);
        let number = number_of(pairs.as_chunks().0, pair_of(item, prefix)?);
        Some(self.front() + usize::from(number).checked_sub(1)? * usize::from(PAIR))
    }

    // This method is not inlined, so that the code for few members stays small.
    #[inline(never)]
    fn find_far(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.index.find(&self.buffer, hash, |offset| self.is_at(offset, item))
    }

    /// Whether `item` is the member at this byte offset.
    #[inline(always)]
    fn is_at(&self, offset: usize, item: &[u8]) -> bool {
        let bytes = self.as_bytes().get(offset + self.tag_bytes()..);
        bytes.is_some_and(|bytes| Member::begins(bytes, item, || self.prefix()))
    }

    /// The byte offset of the first member. The prefix, a text that several members begin with, may be stored before
    /// it.
    #[inline(always)]
    fn front(&self) -> usize {
        self.as_bytes().len() - split_prefix(self.as_bytes(), self.tag_bytes()).1.len()
    }

    /// The text that members may begin with, and that is stored only once.
    #[inline(always)]
    fn prefix(&self) -> &[u8] {
        split_prefix(self.as_bytes(), self.tag_bytes()).0
    }

    /// Inserts `new`, which must not be a member yet. The caller has checked that the set has room for it.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the set is unchanged.
    #[inline]
    fn insert(&mut self, new: &Record<'_>, hash: u64, tag: u8, limit: &impl SizeLimit) -> Result<(), Error> {
        let (own, len) = (self.tag_bytes() + new.len(), self.len() + 1);
        let arena = self.as_bytes().len() + prefix_bytes(new.prefix, self.tag_bytes()) + own;
        let is_first = self.len == 0 && self.index.places == Places::Unindexed;
        let record = if is_first || own == self.index.record.into() { u8::try_from(own).unwrap_or(0) } else { 0 };
        // The index is kept as long as it has room for the new member.
        let is_kept = self.index.holds(len, record, arena);
        let index = if is_kept {
            self.index.with_record(record)
        } else {
            Index::new(len.max(self.index.members()), record, arena)
        };
        let bytes = arena + index.bytes();
        if bytes > self.buffer.len() {
            // From the second member on, memory for one more member is allocated too. This halves the number of
            // reallocations of short buffers.
            let wanted = if self.len == 0 { bytes } else { bytes + own.min(MOST_AHEAD) };
            limit.check(self.heap_bytes(), (size_class(wanted) - self.buffer.len()) as u64)?;
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
    /// if `limit` rejects the bytes or the allocation fails.
    #[inline(never)]
    pub(in crate::counting) fn reserve(&mut self, more: usize, room: Room, limit: &impl SizeLimit) -> bool {
        let (front, before) = (self.front(), self.buffer.len());
        let len = more.saturating_add(self.len()).min(room.members as usize);
        let records = len.saturating_mul(self.as_bytes().len() - front);
        let arena = front + records.min(room.arena_bytes() as usize + len * self.tag_bytes());
        let index = Index::new(len, self.index.record, arena);
        let bytes = arena + index.bytes();
        let has_room = bytes > before
            && limit.allows(self.heap_bytes(), (size_class(bytes) - before) as u64)
            && self.make_room(bytes).is_ok();
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
    fn append(&mut self, new: &Record<'_>, tag: u8) {
        let prefix = new.prefix;
        if !prefix.is_empty() {
            let bytes = [&[0, PREFIX, prefix.len() as u8][1 - self.tag_bytes()..], prefix].concat();
            self.buffer[..bytes.len()].copy_from_slice(&bytes);
            self.arena_len = bytes.len() as u32;
        }
        let (_, free) = self.buffer.split_at_mut(self.arena_len as usize);
        let (tag_byte, free) = free.split_at_mut(self.tag_bytes.into());
        tag_byte.fill(tag);
        let (head, text) = free.split_at_mut(new.head.len());
        // The first byte is written directly. It is often the only one, and a copy would take longer.
        if let ([first, rest @ ..], [code, body @ ..]) = (head, new.head) {
            *first = *code;
            rest.copy_from_slice(body);
        }
        text[..new.text.len()].copy_from_slice(new.text);
        self.count(self.tag_bytes() + new.len(), new.counted_bytes);
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
    fn take_in(&mut self, own: usize, counted_bytes: usize, hash: u64) {
        let (number, offset) = (self.len(), self.as_bytes().len());
        self.count(own, counted_bytes);
        self.index.enter(&mut self.buffer, hash, number, offset);
    }

    /// Rebuilds the hash index with the size and kind of `index`, for which the buffer must have room.
    #[inline(never)]
    fn index_anew(&mut self, index: Index) {
        self.index = index;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (front, groups) = buffer.split_at_mut(buffer.len() - index.bytes());
        groups.fill(0);
        let arena = &front[..self.arena_len as usize];
        let (mut members, mut decoded) = (Records::new(arena, self.tag_bytes()), [0; 64]);
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

    /// A set without tags of the members that were last added at most `most_age` slices ago.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn within(&self, ages: Ages, most_age: u8) -> Result<Self, Error> {
        let (mut members, mut buffer, mut coded) = (Members::default(), [0; 64], CODED);
        for (_, member) in self.iter().filter(|&(tag, _)| ages.age(tag) <= most_age) {
            let text = member.text_in(&mut buffer);
            members.insert(&members.record_of(text, &mut coded), table_hash(text), 0, &Unlimited)?;
        }
        Ok(members)
    }

    /// Removes each member for whose slice tag `is_kept` returns false.
    pub(in crate::counting) fn retain(&mut self, is_kept: impl Fn(u8) -> bool) {
        if self.iter().all(|(tag, _)| is_kept(tag)) {
            return;
        }
        let tag_bytes = self.tag_bytes();
        self.close_gaps(|arena, from| {
            let mut records = Records::from(arena, tag_bytes, from);
            loop {
                let offset = arena.len() - records.rest().len();
                if !is_kept(records.next()?.0) {
                    return Some(offset);
                }
            }
        });
        self.index_anew(self.index);
        self.free();
    }

    /// Removes the members at the byte offsets `gone`, which are in ascending order.
    pub(in crate::counting) fn remove(&mut self, mut gone: impl DoubleEndedIterator<Item = usize> + Clone) {
        let is_index_kept = self.remove_from_index(gone.clone().rev());
        self.close_gaps(|_, _| gone.next());
        if !is_index_kept {
            self.index_anew(self.index);
        }
        self.free();
    }

    /// Removes from the index the members at the byte offsets `gone`, which are in descending order. Returns false if
    /// the index must be rebuilt instead.
    fn remove_from_index(&mut self, gone: impl Iterator<Item = usize> + Clone) -> bool {
        let (index, tag_bytes, (start, unit)) = (self.index, self.tag_bytes(), self.index.scale(self.front()));
        let (arena, groups) = self.buffer.split_at_mut(self.buffer.len() - index.bytes());
        let arena = &arena[..self.arena_len as usize];
        let member_at = |offset| Records::from(arena, tag_bytes, offset).next().map(|(_, member)| member);
        let hash_of = |value| {
            let member = member_at(start + unit * value);
            member.map_or(0, |member| table_hash(member.text_in(&mut [0; 64])))
        };
        let values = gone.map(|offset| {
            let bytes = member_at(offset).map_or(0, |member| tag_bytes + member.record().len());
            ((offset - start) / unit, bytes / unit)
        });
        index.remove(groups, values, hash_of)
    }

    /// Removes the bytes of members. It allocates nothing, and does not change the hash index. `next` returns the byte
    /// offset of the next member to be removed, from a given offset on.
    fn close_gaps(&mut self, mut next: impl FnMut(&[u8], usize) -> Option<usize>) {
        let front = self.front();
        let (mut from, mut to) = (front, front);
        loop {
            let gone = next(self.as_bytes(), from);
            let until = gone.unwrap_or(self.as_bytes().len());
            if from > to {
                self.buffer.copy_within(from..until, to);
            }
            to += until - from;
            let Some((_, member)) = gone.and_then(|gone| Records::from(self.as_bytes(), self.tag_bytes(), gone).next())
            else {
                break;
            };
            let (record, counted) = (member.record().len(), member.counted_bytes());
            from = until + self.tag_bytes() + record;
            self.len -= 1;
            self.member_bytes -= counted as u32;
        }
        self.arena_len = if self.len == 0 { 0 } else { to as u32 };
    }

    /// Frees the memory of removed members if it is more than three quarters of the buffer.
    fn free(&mut self) {
        // A growing set may take up to three times the memory that it needs. It is copied to a smaller buffer only if
        // it takes more than four times. So adding and removing a member again and again does not copy it each time.
        let room = Room { members: self.len() as u32, bytes: self.member_bytes() };
        let arena = self.as_bytes().len();
        if arena + Index::new(self.len(), self.index.record, arena).bytes() < self.buffer.len() / 4
            && let Ok(smaller) = self.compact(room)
        {
            *self = smaller;
        }
    }

    /// A copy without spare memory, like a set that was just loaded.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn compact(&self, room: Room) -> Result<Self, Error> {
        let empty = Members { tag_bytes: self.tag_bytes, ..Members::default() };
        let smaller = empty.with_room(self.as_bytes(), room)?;
        let mut smaller = Members { arena_len: self.arena_len, member_bytes: room.bytes, len: room.members, ..smaller };
        smaller.index_anew(smaller.index);
        Ok(smaller)
    }
}

/// The most members that `arena_bytes` bytes of encoded members may be.
fn most_members(arena_bytes: usize, room: Room, tag_bytes: usize) -> usize {
    // Besides its slice tag, a member takes at least two bytes. The only exception is the empty string, which takes
    // one byte.
    (room.members as usize).min(arena_bytes / (tag_bytes + 2) + 1)
}

#[cfg(test)]
pub(in crate::counting) mod tests;
