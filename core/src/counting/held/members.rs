//! The set of an exact counter: the members themselves, each encoded as a [record].
//!
//! The encoded members lie one after the other in one byte array, the [arena], whose bytes are also the stored form.
//! The arena and a [hash index](group) share one [buffer](packed).

pub(in crate::counting) mod arena;
mod digits;
pub(in crate::counting) mod group;
mod packed;
pub(in crate::counting) mod record;
mod remove;

use std::marker::PhantomData;

use arena::{Records, split_prefix};
use group::Index;
use record::{CODED, Coded, Member, Record};

use crate::counting::held::ring::Ages;
use crate::counting::held::tag::Tag;
use crate::counting::params::Room;
use crate::error::Error;
use crate::hash::{hash64, table_hash};
use crate::window::Mark;

/// Distinct byte strings, in the order they were added. Each has a tag: the slice in which it was last added.
#[derive(Debug, Default)]
pub(in crate::counting) struct Members<T = ()> {
    /// The encoded members, then the index for finding them.
    buffer: Box<[u8]>,
    /// The length of the encoded members at the front of `buffer`, in bytes.
    arena_len: u32,
    /// The bytes that all members together take of the limit `exact_bytes`.
    member_bytes: u32,
    len: u32,
    index: Index,
    tags: PhantomData<T>,
}

impl<T: Tag> Members<T> {
    pub(in crate::counting) fn new() -> Self {
        Self::default()
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
        match self.as_bytes() {
            [] => Record::first(item, coded),
            arena => Record::of(item, split_prefix::<T>(arena).0, coded),
        }
    }

    /// The encoded members, and the prefix that they may have in common.
    pub(in crate::counting) fn arena(&self) -> (&[u8], &[u8]) {
        (self.as_bytes(), split_prefix::<T>(self.as_bytes()).0)
    }

    /// The members, each with its slice tag, in the order they were added.
    pub(in crate::counting) fn iter(&self) -> Records<'_, T> {
        Records::new(self.as_bytes())
    }

    /// The members with their hashes under `seed`, and their slice tags.
    pub(in crate::counting) fn hashed(&self, seed: u64) -> impl Iterator<Item = (u64, T, Member<'_>)> {
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

    /// The slice tag of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member.
    #[inline]
    pub(in crate::counting) fn tag_of(&self, item: &[u8], hash: u64) -> Option<T> {
        let offset = self.offset_of(item, hash)?;
        T::split(self.as_bytes().get(offset..)?).map(|(tag, _)| tag)
    }

    /// Sets the slice tag of the member `item` to `tag`, if `tag` is younger than the old one. `hash` is the
    /// [`table_hash`] of `item`. Returns `None` if `item` is no member.
    #[inline(always)]
    pub(in crate::counting) fn renew(&mut self, item: &[u8], hash: u64, tag: T, ages: Ages) -> Option<Mark> {
        let offset = self.offset_of(item, hash)?;
        Some(tag.renew_in(self.buffer.get_mut(offset..).unwrap_or_default(), ages))
    }

    /// Whether the set stays within the limits `room` with one more member, which takes `counted_bytes` bytes of the
    /// limit `exact_bytes`.
    #[inline]
    pub(in crate::counting) fn has_room_for(&self, counted_bytes: usize, room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes());
        self.len() < room.members as usize && bytes_left.is_some_and(|left| counted_bytes <= left as usize)
    }

    /// Inserts `item`, which must not be a member yet. The caller has checked that the set has room for it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]. On error the set is unchanged.
    pub(in crate::counting) fn insert(&mut self, item: &[u8], tag: T) -> Result<(), Error> {
        let mut coded = CODED;
        self.insert_if(&self.record_of(item, &mut coded), table_hash(item), tag, |_| Ok(()))
    }

    /// The most heap bytes that `arena_bytes` bytes of encoded members take together with their hash index, without the
    /// rounding of the buffer's size.
    pub(in crate::counting) fn bytes_of_read(arena_bytes: u64, room: Room) -> u64 {
        let members = Self::most_members(arena_bytes as usize, room);
        arena_bytes + Index::new(members, 0, arena_bytes as usize).bytes() as u64
    }

    pub(super) fn most_members(arena_bytes: usize, room: Room) -> usize {
        // Besides its slice tag, a member takes at least two bytes. The only exception is the empty string, which takes
        // one byte.
        (room.members as usize).min(arena_bytes / (T::BYTES + 2) + 1)
    }

    /// Loads the bytes that [`Self::as_bytes`] returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`] in these cases: the bytes are not members as [`Self::insert`] writes them, a member occurs
    /// twice, the members exceed `room`, or the slice of a member has expired.
    pub(in crate::counting) fn from_bytes(bytes: &[u8], room: Room, ages: Ages) -> Result<Self, Error> {
        let mut members = Self::with_room(bytes, room)?;
        let (mut rest, mut buffer) = (Records::<T>::new(bytes), [0; 64]);
        for (tag, member) in rest.by_ref() {
            tag.check(ages)?;
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
            members.take_in(T::BYTES + member.record().len(), counted_bytes, hash);
        }
        let left = rest.rest().len();
        Error::check_field(left == 0, "members", "a whole last member", format_args!("{left} bytes of it"))?;
        Error::check_field(members.len() > 0 || bytes.is_empty(), "members", "one behind the prefix", "none")?;
        Ok(members)
    }
}

#[cfg(test)]
pub(in crate::counting) mod tests;
