//! Up to 255 members in one buffer: an arena and, from five members on, an index.
//!
//! ```text
//! | arena: members in the order they came | free | index: ... | group 1 | group 0 |
//!
//! group: 16 fingerprints, a byte each | 16 places, 1 or 2 bytes each
//! ```
//!
//! The arena grows from the front, and the index is at the end. The hash of a member selects its group; if that group
//! is full, the member is in the next one. A fingerprint is a byte of the hash, never 0; 0 marks a place without a
//! member. The 16 fingerprints of a group are compared at once. For an equal one, the place says where in the arena to
//! compare.
//!
//! While all members have the same length, as IDs do, a place is the number of the member, in one byte. Otherwise a
//! place is the offset of the member, in two bytes. Up to [`UNINDEXED`] members have no index, unless one is reserved
//! for a list of more: a lookup scans the arena.
//!
//! A buffer is as long as its contents, rounded up to a size class of common allocators.

use std::alloc::Layout;
use std::marker::PhantomData;

use super::arena::{LengthPrefix, Records, is_same, record_bytes};
use super::group::{GROUP, NUMBERED, OFFSET, enter, fingerprint, first_place, group_of, matches};
use crate::counting::held::tag::Tag;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;
use crate::size_limit::{try_reserve, try_to_vec};

/// The most members that are scanned without an index.
const UNINDEXED: usize = 4;
/// The most members per group of the index, on average.
const GROUP_MEMBERS: usize = 15;
/// The possible numbers of groups. Each is twice the one before plus one: growing the index hashes all members again,
/// so it must be rare.
const GROUPS: [u8; 4] = [1, 3, 7, 17];
/// The most members of a buffer. The number of a member must fit in a byte.
const MAX_MEMBERS: usize = GROUP_MEMBERS * GROUPS[GROUPS.len() - 1] as usize;
/// The most bytes that are allocated in advance for the next member.
const MOST_AHEAD: usize = 64;

const _: () = assert!(MAX_MEMBERS <= u8::MAX as usize);

/// An arena and its index, in one buffer.
#[derive(Debug, Default)]
pub(in crate::counting) struct Packed<T> {
    buffer: Box<[u8]>,
    /// Bytes of the arena.
    arena_len: u16,
    /// Bytes of the members, without their lengths and tags.
    member_bytes: u16,
    /// Bytes of each record, if all records have the same length: then the index stores numbers of members. Otherwise
    /// 0: the index stores offsets.
    record: u16,
    len: u8,
    groups: u8,
    tags: PhantomData<T>,
}

/// The sizes of a [`Packed`] after an insertion.
struct Next {
    record: u16,
    groups: u8,
    /// Bytes of the arena and the index together.
    bytes: usize,
}

/// The number of groups in an index of `len` members.
fn groups_for(len: usize) -> u8 {
    let fits = |groups: &u8| len <= GROUP_MEMBERS * usize::from(*groups);
    if len <= UNINDEXED { 0 } else { GROUPS.into_iter().find(fits).unwrap_or(u8::MAX) }
}

/// The most bytes of an index of this number of members; `None` if one buffer cannot hold the members.
pub(super) fn index_bytes_for(members: u64) -> Option<u64> {
    let members = usize::try_from(members).ok().filter(|&members| members <= MAX_MEMBERS)?;
    Some(u64::from(groups_for(members)) * OFFSET as u64)
}

/// Bytes of a group of the index. If [`record`](Packed::record) is 0, a place takes two bytes, else one.
#[inline]
fn group_bytes(record: u16) -> usize {
    if record == 0 { OFFSET } else { NUMBERED }
}

/// The size that allocators round `bytes` up to: a multiple of 16 up to 128, then one of four sizes per doubling.
#[inline]
fn size_class(bytes: usize) -> usize {
    let step = 1 << ((bytes.max(65) - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

impl<T: Tag> Packed<T> {
    /// An empty set with room for the members of `arena`, if one buffer can hold them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn with_room(arena: &[u8]) -> Result<Self, Error> {
        let mut packed = Packed::default();
        let records = Records::<T>::new(arena).take(MAX_MEMBERS + 1);
        let mut records = records.map(|(_, member)| record_bytes::<T>(member));
        let Some(first) = records.next() else { return Ok(packed) };
        let (mut len, mut all_alike) = (1, true);
        for record in records {
            len += 1;
            all_alike &= record == first;
        }
        if len <= MAX_MEMBERS && arena.len() <= usize::from(u16::MAX) {
            let record = if all_alike { first as u16 } else { 0 };
            let groups = groups_for(len);
            packed.make_room(arena.len() + usize::from(groups) * group_bytes(record))?;
            (packed.record, packed.groups) = (record, groups);
        }
        Ok(packed)
    }

    /// Reserves room in an empty set for `len` members of the length of `item`, and makes their index at once. Returns
    /// the length of the buffer; `None` if the buffer cannot hold them or `check` rejects its bytes.
    pub(super) fn reserve(
        &mut self,
        item: &[u8],
        len: usize,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Option<usize> {
        let record = record_bytes::<T>(item);
        let arena = len.checked_mul(record).filter(|&arena| arena <= usize::from(u16::MAX))?;
        if !(2..=MAX_MEMBERS).contains(&len) || !self.buffer.is_empty() {
            return None;
        }
        let groups = groups_for(len);
        let bytes = arena + usize::from(groups) * NUMBERED;
        check(size_class(bytes) as u64).and_then(|()| self.make_room(bytes)).ok()?;
        (self.record, self.groups) = (record as u16, groups);
        Some(self.buffer.len())
    }

    /// Frees the unused rest of a buffer that was [reserved](Self::reserve), unless the buffer's length has changed
    /// since. Fewer members than expected get a smaller index.
    pub(super) fn trim(&mut self, reserved: usize, seed: u64) {
        let (groups, kept) = (groups_for(self.len()), self.index_bytes());
        let after = size_class(usize::from(self.arena_len) + usize::from(groups) * group_bytes(self.record));
        if self.buffer.len() != reserved || after >= reserved {
            return;
        }
        if groups == self.groups {
            self.buffer.copy_within(reserved - kept..reserved, after - kept);
        }
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        buffer.truncate(after);
        self.buffer = buffer.into_boxed_slice();
        let is_index_kept = std::mem::replace(&mut self.groups, groups) == groups;
        if !is_index_kept && groups > 0 {
            self.index_anew(seed);
        }
    }

    /// The number of members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Bytes of all members together, without their lengths and tags.
    #[inline]
    pub(super) fn member_bytes(&self) -> u32 {
        u32::from(self.member_bytes)
    }

    /// The arena, the buffer's part with all members: each as its tag, its length and its bytes.
    #[inline]
    pub(super) fn arena(&self) -> &[u8] {
        // Always in range, since the arena lies in the buffer.
        self.buffer.get(..usize::from(self.arena_len)).unwrap_or_default()
    }

    /// Bytes of the index.
    #[inline]
    fn index_bytes(&self) -> usize {
        usize::from(self.groups) * group_bytes(self.record)
    }

    /// Passes the offset of the member `item`, whose hash is `hash`, to `found`. Returns the result; `None` if `item`
    /// is no member.
    #[inline]
    pub(super) fn find<R>(&self, item: &[u8], hash: u64, found: impl Fn(usize) -> R + Copy) -> Option<R> {
        match (self.groups, self.record) {
            (0, _) => self.find_among_few(item, found),
            (_, 0) => self.find_indexed::<OFFSET, R>(item, hash, found),
            // Only an item whose record has this length can be a member.
            (_, record) => match item.len() {
                0..0x80 if usize::from(record) == T::BYTES + 1 + item.len() => {
                    self.find_indexed::<NUMBERED, R>(item, hash, found)
                }
                0x80.. if usize::from(record) == record_bytes::<T>(item) => {
                    self.find_indexed_anywhere::<NUMBERED, R>(item, hash, found)
                }
                _ => None,
            },
        }
    }

    #[inline(never)]
    fn find_among_few<R>(&self, item: &[u8], found: impl Fn(usize) -> R + Copy) -> Option<R> {
        let mut records = Records::<T>::new(self.arena());
        records.find(|(_, member)| is_same(member, item))?;
        Some(found(usize::from(self.arena_len) - records.rest().len() - record_bytes::<T>(item)))
    }

    #[inline(always)]
    fn find_indexed<const BYTES: usize, R>(
        &self,
        item: &[u8],
        hash: u64,
        found: impl Fn(usize) -> R + Copy,
    ) -> Option<R> {
        // The first group and its first equal fingerprint nearly always decide.
        let group = self.group::<BYTES>(group_of(hash, self.groups))?;
        match matches(group, fingerprint(hash)) {
            0 if group[GROUP - 1] == 0 => None,
            0 => self.find_indexed_anywhere::<BYTES, R>(item, hash, found),
            matches => {
                let first = self.member_at(group, first_place(matches), item, found);
                first.or_else(|| self.find_indexed_anywhere::<BYTES, R>(item, hash, found))
            }
        }
    }

    /// The same as [`Self::find_indexed`], for the rare case: compares `item` in all groups and with all fingerprints
    /// that may match.
    #[cold]
    #[inline(never)]
    fn find_indexed_anywhere<const BYTES: usize, R>(
        &self,
        item: &[u8],
        hash: u64,
        found: impl Fn(usize) -> R + Copy,
    ) -> Option<R> {
        let mut number = group_of(hash, self.groups);
        while let Some(group) = self.group::<BYTES>(number) {
            let mut matches = matches(group, fingerprint(hash));
            while matches != 0 {
                if let Some(at) = self.member_at(group, first_place(matches), item, found) {
                    return Some(at);
                }
                matches &= matches - 1;
            }
            // The last place of a group is filled last, so a group with an empty last place ends the search. At least
            // one group is never full.
            if group[GROUP - 1] == 0 {
                return None;
            }
            number = if number + 1 < usize::from(self.groups) { number + 1 } else { 0 };
        }
        None
    }

    #[inline(always)]
    fn group<const BYTES: usize>(&self, number: usize) -> Option<&[u8; BYTES]> {
        let start = self.buffer.len().checked_sub((number + 1) * BYTES)?;
        self.buffer.get(start..)?.first_chunk()
    }

    /// Compares `item` with one member: the member to which a place in a group of the index refers. Calls `found` as
    /// [`Self::find`] does.
    #[inline(always)]
    fn member_at<const BYTES: usize, R>(
        &self,
        group: &[u8; BYTES],
        place: usize,
        item: &[u8],
        found: impl Fn(usize) -> R,
    ) -> Option<R> {
        if BYTES == NUMBERED {
            // If `item` is a member, its record is as long as all others.
            let at = usize::from(group[GROUP + place]) * usize::from(self.record);
            let end = at + usize::from(self.record);
            let member = self.buffer.get(end - item.len()..end)?;
            return is_same(member, item).then(|| found(at));
        }
        let at = usize::from(u16::from_le_bytes([group[GROUP + 2 * place], group[GROUP + 2 * place + 1]]));
        let is_it = match self.buffer.get(at + T::BYTES..).and_then(|rest| rest.split_first()) {
            Some((&length @ 0..0x80, rest)) => {
                usize::from(length) == item.len() && rest.get(..item.len()).is_some_and(|member| is_same(member, item))
            }
            _ => is_long_member::<T>(self.arena(), at, item),
        };
        is_it.then(|| found(at))
    }

    /// The buffer, mutable, so that the caller can change tags. The arena is at its beginning.
    #[inline]
    pub(super) fn arena_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Keeps the members for whose offset in the arena and tag `is_kept` returns true; allocates nothing.
    pub(super) fn retain(&mut self, seed: u64, mut is_kept: impl FnMut(usize, T) -> bool) {
        let (mut from, mut to) = (0, 0);
        (self.len, self.member_bytes) = (0, 0);
        while let Some((tag, member)) = Records::<T>::from(self.arena(), from).next() {
            let (len, start) = (member.len(), from);
            from += record_bytes::<T>(member);
            if is_kept(start, tag) {
                self.buffer.copy_within(start..from, to);
                to += from - start;
                self.len += 1;
                self.member_bytes += len as u16;
            }
        }
        self.arena_len = to as u16;
        if self.groups > 0 {
            self.index_anew(seed);
        }
    }

    /// Whether the buffer can hold `item`, which is no member yet.
    #[inline]
    pub(super) fn takes(&self, item: &[u8]) -> bool {
        self.len() < MAX_MEMBERS && usize::from(self.arena_len) + record_bytes::<T>(item) <= usize::from(u16::MAX)
    }

    /// The sizes of the set after the insertion of `item`, which the buffer can hold.
    #[inline]
    fn with(&self, item: &[u8]) -> Next {
        let (bytes, len) = (record_bytes::<T>(item), self.len() + 1);
        let is_first = self.len == 0 && self.groups == 0;
        let record = if is_first || bytes == usize::from(self.record) { bytes as u16 } else { 0 };
        // An index that is made anew has no more groups than it needs, even if more were reserved.
        let is_kept = record == self.record && len <= UNINDEXED.max(GROUP_MEMBERS * usize::from(self.groups));
        let groups = if is_kept { self.groups } else { groups_for(len) };
        let bytes = usize::from(self.arena_len) + bytes + usize::from(groups) * group_bytes(record);
        Next { record, groups, bytes }
    }

    /// Inserts `item`, which is no member yet and which the set can hold. `check` must allow any growth of the buffer.
    ///
    /// # Errors
    /// The errors of `check`, and [`Error::OutOfMemory`]; on error the set is unchanged.
    #[inline]
    pub(super) fn insert(
        &mut self,
        item: &[u8],
        hash: u64,
        seed: u64,
        tag: T,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        debug_assert!(self.takes(item) && self.find(item, hash, |_| ()).is_none());
        let Next { record, groups, bytes } = self.with(item);
        if bytes > self.buffer.len() {
            // From the second member on, room for one more is allocated too: short buffers are then reallocated half as
            // often.
            let wanted = if self.len == 0 { bytes } else { bytes + record_bytes::<T>(item).min(MOST_AHEAD) };
            check((size_class(wanted) - self.buffer.len()) as u64)?;
            self.make_room(wanted)?;
        }
        let is_index_kept = groups == self.groups && (record == self.record || groups == 0);
        let (offset, number) = (self.arena_len, self.len);
        self.append(item, tag);
        (self.record, self.groups) = (record, groups);
        match (is_index_kept, groups, record) {
            (false, ..) => self.index_anew(seed),
            (_, 0, _) => {}
            (.., 0) => enter::<OFFSET>(&mut self.buffer, groups, hash, offset),
            _ => enter::<NUMBERED>(&mut self.buffer, groups, hash, u16::from(number)),
        }
        Ok(())
    }

    /// Appends `item` to the arena, which has room for it.
    #[inline]
    fn append(&mut self, item: &[u8], tag: T) {
        let prefix = LengthPrefix::of(item);
        let (_, free) = self.buffer.split_at_mut(usize::from(self.arena_len));
        let (tag_bytes, free) = free.split_at_mut(T::BYTES);
        tag_bytes.copy_from_slice(tag.as_bytes());
        let (length, free) = free.split_at_mut(prefix.as_bytes().len());
        match (length, prefix.as_bytes()) {
            // A single byte is written without a call.
            ([only], &[byte]) => *only = byte,
            (length, bytes) => length.copy_from_slice(bytes),
        }
        free[..item.len()].copy_from_slice(item);
        self.arena_len += (T::BYTES + prefix.as_bytes().len() + item.len()) as u16;
        self.member_bytes += item.len() as u16;
        self.len += 1;
    }

    /// Adds all members to the index, which is empty and has room for them.
    #[inline(never)]
    fn index_anew(&mut self, seed: u64) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let index = buffer.len() - self.index_bytes();
        let (front, index) = buffer.split_at_mut(index);
        index.fill(0);
        let (mut members, groups) = (Records::<T>::new(&front[..usize::from(self.arena_len)]), self.groups);
        for number in 0..self.len {
            let offset = usize::from(self.arena_len) - members.rest().len();
            let Some((_, member)) = members.next() else { break };
            let hash = hash64(member, seed);
            if self.record == 0 {
                enter::<OFFSET>(index, groups, hash, offset as u16);
            } else {
                enter::<NUMBERED>(index, groups, hash, u16::from(number));
            }
        }
        self.buffer = buffer;
    }

    /// Lengthens the buffer to at least `needed` bytes, more than it has now, and rounds the length up to a size class.
    /// The arena stays at the front. The index moves to the new end, and the bytes between them are free.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the buffer is unchanged.
    #[inline(never)]
    fn make_room(&mut self, needed: usize) -> Result<(), Error> {
        let (before, after) = (self.buffer.len(), size_class(needed));
        let index_bytes = self.index_bytes();
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        let reserved = try_reserve(&mut buffer, after - before);
        if reserved.is_ok() {
            buffer.resize(after, 0);
            buffer.copy_within(before - index_bytes..before, after - index_bytes);
        }
        // The length equals the capacity, or the old length after a failure, so the conversion allocates nothing.
        self.buffer = buffer.into_boxed_slice();
        reserved
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        if !self.buffer.is_empty() {
            visit(Layout::for_value::<[u8]>(&self.buffer));
        }
    }

    /// Bytes of all heap allocations.
    #[inline]
    pub(super) fn heap_bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// Passes the buffer to `mover` and keeps the buffer that it returns.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        let len = self.buffer.len();
        self.buffer = mover.relocate(std::mem::take(&mut self.buffer));
        debug_assert_eq!(self.buffer.len(), len);
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        Ok(Packed { buffer: try_to_vec(&self.buffer)?.into_boxed_slice(), ..*self })
    }
}

/// Whether `item` is the member that begins at `at`, for lengths that take more than a byte.
#[cold]
#[inline(never)]
fn is_long_member<T: Tag>(arena: &[u8], at: usize, item: &[u8]) -> bool {
    Records::<T>::from(arena, at).next().is_some_and(|(_, member)| member == item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(items: impl IntoIterator<Item = Vec<u8>>) -> Packed<()> {
        let mut packed = Packed::default();
        for item in items {
            let hash = hash64(&item, 0);
            assert!(packed.takes(&item) && packed.find(&item, hash, |_| ()).is_none());
            let (before, mut more) = (packed.heap_bytes(), 0);
            let reject = |bytes| {
                more = bytes;
                Err(Error::OutOfMemory { needed_bytes: 1 })
            };
            if packed.insert(&item, hash, 0, (), reject).is_err() {
                assert!(packed.heap_bytes() == before && packed.find(&item, hash, |_| ()).is_none());
                packed.insert(&item, hash, 0, (), |_| Ok(())).unwrap();
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
        // Each case has a number of members, the bytes for members of 12 bytes each, and the bytes if one of them has
        // 13.
        for (len, bytes, bytes_of_two_lengths) in [
            (0, 0, 0),
            (1, 16, 16),
            (2, 48, 48),
            (4, 80, 80),
            (5, 112, 128),
            (10, 192, 192),
            (100, 1536, 1792),
            (250, 4096, 4096),
        ] {
            assert_eq!(packed((0..len).map(id)).heap_bytes(), bytes, "{len} members");
            let two_lengths =
                packed((0..len).map(|number| if number == 0 { b"13 characters".to_vec() } else { id(number) }));
            assert_eq!(two_lengths.heap_bytes(), bytes_of_two_lengths, "{len} members of two lengths");
        }
        // A buffer is filled to its last byte: a member of these has 16 bytes with its length.
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
        // Items whose hashes select the first group, however many groups there are.
        let of_first = |item: &Vec<u8>| group_of(hash64(item, 0), u8::MAX) == 0;
        let (items, others) = ((0..).map(id).filter(of_first), (0..).map(id).filter(|item| !of_first(item)));
        let items: Vec<_> = items.take(MAX_MEMBERS).collect();
        let mut packed = packed(items.iter().cloned());
        assert!(items.iter().all(|item| packed.find(item, hash64(item, 0), |_| ()).is_some()));
        assert!(others.take(1000).all(|item| packed.find(&item, hash64(&item, 0), |_| ()).is_none()));
        assert!(!packed.takes(b"") && packed.len() == MAX_MEMBERS);
        // A member of another length turns all places from numbers into offsets.
        packed.len -= 1;
        packed.arena_len -= packed.record;
        packed.member_bytes -= packed.record - 1;
        packed.index_anew(0);
        packed.insert(b"", hash64(b"", 0), 0, (), |_| Ok(())).unwrap();
        assert!(packed.record == 0 && packed.find(b"", hash64(b"", 0), |_| ()).is_some());
        assert!(items[..MAX_MEMBERS - 1].iter().all(|item| packed.find(item, hash64(item, 0), |_| ()).is_some()));
    }

    #[test]
    fn what_will_be_read_is_allocated_once() {
        for items in [
            (0..3).map(id).collect::<Vec<_>>(),
            (0..200).map(id).collect(),
            (0..200).map(|n| vec![7; n]).collect(),
            // An index of offsets is longer than an index of numbers, here by more than the rounding of buffers covers.
            (0..60).map(|n| vec![n; 8 + usize::from(n % 2)]).collect(),
        ] {
            let expected = packed(items.iter().cloned());
            let mut read = Packed::<()>::with_room(expected.arena()).unwrap();
            let room = (read.buffer.as_ptr(), read.heap_bytes());
            for item in &items {
                read.insert(item, hash64(item, 0), 0, (), |_| Ok(())).unwrap();
            }
            assert_eq!((read.arena(), read.record, read.groups), (expected.arena(), expected.record, expected.groups));
            assert!(read.heap_bytes() <= expected.heap_bytes());
            assert_eq!((read.buffer.as_ptr(), read.heap_bytes()), room);
        }
        let too_many = packed((0..MAX_MEMBERS).map(id)).arena().repeat(2);
        assert_eq!(Packed::<()>::with_room(&too_many).unwrap().heap_bytes(), 0);
    }

    proptest! {
        #[test]
        fn bytes_are_compared_to_the_last(len in 0usize..200, at in any::<prop::sample::Index>()) {
            let item: Vec<u8> = (0..len as u8).collect();
            prop_assert!(is_same(&item, &item.clone()));
            let mut other = item.clone();
            if len > 0 {
                other[at.index(len)] ^= 1;
                prop_assert!(!is_same(&item, &other));
            }
            other.push(0);
            prop_assert!(!is_same(&item, &other));
        }
    }
}
