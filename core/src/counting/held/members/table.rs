//! A set of more members than [packed](super::packed) can hold: an arena, and a hash table of offsets into it.

use std::alloc::Layout;
use std::marker::PhantomData;

use hashbrown::HashTable;

use super::arena::{LengthPrefix, Records, record_bytes};
use crate::counting::held::tag::Tag;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;

/// The alignment of the hash table's memory, in bytes: the number of control bytes that hashbrown compares at once.
const TABLE_ALIGN: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// The most bytes of a hash table with this number of members: a four-byte offset and a control byte for each bucket.
/// The buckets are a power of two, at most 7/8 of them full.
pub(in crate::counting) fn offsets_bytes(members: u64) -> u64 {
    let buckets = (members + members / 7 + 4).next_power_of_two();
    buckets * (size_of::<u32>() as u64 + 1) + TABLE_ALIGN as u64
}

/// The offsets of members in the arena, by hash. They take two bytes while the arena is short, as it usually is.
#[derive(Debug)]
enum Offsets {
    Near(HashTable<u16>),
    Far(HashTable<u32>),
}

/// Evaluates an expression with the hash table, whatever the size of its offsets.
macro_rules! either {
    ($offsets:expr, $table:ident => $call:expr) => {
        match $offsets {
            Offsets::Near($table) => $call,
            Offsets::Far($table) => $call,
        }
    };
}

impl Offsets {
    fn len(&self) -> usize {
        either!(self, table => table.len())
    }

    /// Finds the offset with this hash for which `is_it` returns true.
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        either!(self, table => table.find(hash, |&offset| is_it(offset as usize)).map(|&offset| offset as usize))
    }

    /// Replaces each offset by the result of `change`; `None` removes it.
    fn retain(&mut self, change: impl Fn(usize) -> Option<usize>) {
        either!(self, table => table.retain(|offset| {
            let changed = change(*offset as usize);
            *offset = changed.unwrap_or(0) as _;
            changed.is_some()
        }));
    }

    /// Removes all offsets, and keeps the room for them.
    fn clear(&mut self) {
        either!(self, table => table.clear());
    }

    /// Reserves room for `more` offsets, of which `last` is the largest. On error nothing is changed.
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
        either!(self, table => table.try_reserve(more, |&offset| hash(offset as usize))).map_err(|_| ())
    }

    /// Inserts an offset, for which room was reserved.
    fn insert(&mut self, hash: u64, offset: usize, rehash: impl Fn(usize) -> u64) {
        either!(self, table => {
            table.insert_unique(hash, offset as _, |&offset| rehash(offset as usize));
        });
    }

    fn allocation_size(&self) -> usize {
        either!(self, table => table.allocation_size())
    }
}

/// An arena of members, and a hash table of their offsets.
#[derive(Debug)]
pub(in crate::counting) struct Table<T> {
    arena: Vec<u8>,
    /// Bytes of the members, without their lengths and tags.
    member_bytes: u32,
    offsets: Offsets,
    tags: PhantomData<T>,
}

impl<T: Tag> Table<T> {
    /// A table of the `len` distinct members of `arena`, with room for `item`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn of(arena: &[u8], len: usize, item: &[u8], seed: u64) -> Result<Self, Error> {
        let no_memory = || Error::OutOfMemory { needed_bytes: arena.len() as u64 + Self::bytes_for(item) };
        let offsets = Offsets::Near(HashTable::new());
        let mut table = Table { arena: Vec::new(), member_bytes: 0, offsets, tags: PhantomData };
        table.arena.try_reserve(arena.len() + record_bytes::<T>(item)).map_err(|_| no_memory())?;
        table.offsets.try_reserve(len + 1, arena.len(), |_| 0).map_err(|()| no_memory())?;
        table.arena.extend_from_slice(arena);
        table.index(seed, |_| true);
        Ok(table)
    }

    /// Keeps the members for whose tags `is_kept` returns true, and adds them to the hash table, which is empty and has
    /// room.
    fn index(&mut self, seed: u64, is_kept: impl Fn(T) -> bool) {
        let (mut from, mut to) = (0, 0);
        while let Some((tag, member)) = Records::<T>::from(&self.arena, from).next() {
            let (hash, len, start) = (hash64(member, seed), member.len(), from);
            from += record_bytes::<T>(member);
            if is_kept(tag) {
                self.offsets.insert(hash, to, |_| 0);
                self.member_bytes += len as u32;
                self.arena.copy_within(start..from, to);
                to += from - start;
            }
        }
        self.arena.truncate(to);
    }

    /// Keeps the members for whose tags `is_kept` returns true; allocates nothing.
    pub(super) fn retain(&mut self, seed: u64, is_kept: impl Fn(T) -> bool) {
        self.offsets.clear();
        self.member_bytes = 0;
        self.index(seed, is_kept);
    }

    /// Removes the members at `gone`, ascending offsets in the arena; allocates nothing and hashes no member. The
    /// second number of each is overwritten, by the bytes that are gone up to and with this member.
    pub(super) fn remove(&mut self, gone: &mut [(usize, usize)]) {
        let (mut from, mut to) = (0, 0);
        for (offset, bytes_gone) in gone.iter_mut() {
            let Some((_, member)) = Records::<T>::from(&self.arena, *offset).next() else { return };
            let bytes = record_bytes::<T>(member);
            self.member_bytes -= member.len() as u32;
            self.arena.copy_within(from..*offset, to);
            to += *offset - from;
            from = *offset + bytes;
            *bytes_gone = from - to;
        }
        self.arena.copy_within(from.., to);
        self.arena.truncate(to + self.arena.len() - from);
        self.offsets.retain(|offset| {
            let at = gone.partition_point(|&(gone, _)| gone < offset);
            let bytes_gone = at.checked_sub(1).map_or(0, |last| gone[last].1);
            (gone.get(at).is_none_or(|&(gone, _)| gone != offset)).then_some(offset - bytes_gone)
        });
    }

    /// The most bytes that a table of this number of members takes, without its arena.
    pub(super) fn bytes_beside(members: u64) -> u64 {
        size_of::<Self>() as u64 + offsets_bytes(members)
    }

    /// The number of members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Bytes of all members together, without their lengths and tags.
    #[inline]
    pub(super) fn member_bytes(&self) -> u32 {
        self.member_bytes
    }

    /// The arena, a buffer of all members: each as its tag, its length and its bytes.
    pub(super) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// The offset of the member `item` in the arena; its hash is `hash`; `None` if `item` is no member.
    // Out of line, so that the code for few members stays small.
    #[inline(never)]
    pub(super) fn find(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.offsets.find(hash, |offset| self.member_at(offset) == Some(item))
    }

    fn member_at(&self, offset: usize) -> Option<&[u8]> {
        Records::<T>::from(&self.arena, offset).next().map(|(_, member)| member)
    }

    /// The arena, mutable, so that the caller can change tags.
    #[inline]
    pub(super) fn arena_mut(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// The least number of bytes that [`Self::insert`] will add for `item`.
    pub(super) fn bytes_for(item: &[u8]) -> u64 {
        (record_bytes::<T>(item) + size_of::<u16>() + 1) as u64
    }

    /// Inserts `item`, which is no member yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the set is unchanged.
    pub(super) fn insert(&mut self, item: &[u8], hash: u64, seed: u64, tag: T) -> Result<(), Error> {
        let no_memory = || Error::OutOfMemory { needed_bytes: Self::bytes_for(item) };
        let arena = &mut self.arena;
        arena.try_reserve(record_bytes::<T>(item)).map_err(|_| no_memory())?;
        let rehash = |offset| Records::<T>::from(arena, offset).next().map_or(0, |(_, member)| hash64(member, seed));
        self.offsets.try_reserve(1, arena.len(), rehash).map_err(|()| no_memory())?;
        self.offsets.insert(hash, arena.len(), rehash);
        self.arena.extend_from_slice(tag.as_bytes());
        self.arena.extend_from_slice(LengthPrefix::of(item).as_bytes());
        self.arena.extend_from_slice(item);
        self.member_bytes += item.len() as u32;
        Ok(())
    }

    /// Calls `visit` with the layout of each heap allocation, including the box of this struct.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::new::<Self>());
        for (bytes, align) in [(self.arena.capacity(), 1), (self.offsets.allocation_size(), TABLE_ALIGN)] {
            if bytes > 0 {
                visit(Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<u16>()));
            }
        }
    }

    /// Bytes of all heap allocations, including the box of this struct.
    pub(super) fn heap_bytes(&self) -> u64 {
        (size_of::<Self>() + self.arena.capacity() + self.offsets.allocation_size()) as u64
    }

    /// Passes the arena to `mover` and keeps the buffer that it returns. The hash table is not moved: its memory is
    /// private.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        let mut arena = std::mem::take(&mut self.arena);
        let len = arena.len();
        // With its length equal to its capacity, the vector becomes a box and a vector again without an allocation.
        arena.resize(arena.capacity(), 0);
        arena = mover.relocate(arena.into_boxed_slice()).into_vec();
        arena.truncate(len);
        self.arena = arena;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_as_short_as_they_can_be() {
        let add = |table: &mut Table<()>, item: &[u8]| table.insert(item, hash64(item, 0), 0, ()).unwrap();
        let mut table = Table::<()>::of(b"\x01a", 1, b"", 0).unwrap();
        add(&mut table, &[1; 65_000]);
        assert!(matches!(table.offsets, Offsets::Near(_)));
        for item in [&[2; 1000][..], b"b", b"c"] {
            add(&mut table, item);
        }
        assert!(matches!(table.offsets, Offsets::Far(_)));
        assert!(
            Records::<()>::new(table.arena()).all(|(_, item)| table.find(item, hash64(item, 0)).is_some())
                && table.len() == 5
        );
        assert!(table.find(b"d", hash64(b"d", 0)).is_none());
        let copy = Table::<()>::of(table.arena(), table.len(), b"d", 0).unwrap();
        assert!(
            Records::<()>::new(table.arena()).all(|(_, item)| copy.find(item, hash64(item, 0)).is_some())
                && copy.len() == 5
        );
    }

    #[test]
    fn what_offsets_take_is_reported_and_no_less() {
        for (members, buckets) in [
            (0, 4),
            (1, 8),
            (4, 8),
            (5, 16),
            (11, 16),
            (12, 32),
            (25, 32),
            (26, 64),
            (100, 128),
            (110, 256),
            (65_536, 1 << 17),
        ] {
            assert_eq!(offsets_bytes(members), 5 * buckets + TABLE_ALIGN as u64, "{members}");
        }
        let mut table = HashTable::<u32>::new();
        for number in 0..2000 {
            let hash = |number: &u32| hash64(&number.to_le_bytes(), 0);
            assert!(table.allocation_size() as u64 <= offsets_bytes(number.into()));
            table.insert_unique(hash(&number), number, hash);
        }
        assert_eq!(Table::<()>::bytes_beside(100), size_of::<Table<()>>() as u64 + offsets_bytes(100));
        // The bytes of a member, its length, its offset and the control byte of that.
        assert_eq!(
            (Table::<()>::bytes_for(b""), Table::<()>::bytes_for(b"abc"), Table::<()>::bytes_for(&[0; 200])),
            (4, 7, 205)
        );
    }

    #[test]
    fn the_last_offset_of_two_bytes_is_taken() {
        for (filler, is_near) in [(65_531, true), (65_532, false)] {
            let mut table = Table::<()>::of(b"", 0, b"", 0).unwrap();
            for item in [&vec![1; filler][..], b"", b"b"] {
                // The last begins after all others, three bytes of a length and one among them.
                table.insert(item, hash64(item, 0), 0, ()).unwrap();
            }
            assert_eq!(table.arena().len() - 2, filler + 4);
            assert_eq!(matches!(table.offsets, Offsets::Near(_)), is_near);
            assert!(
                Records::<()>::new(table.arena()).all(|(_, item)| table.find(item, hash64(item, 0)).is_some())
                    && table.len() == 3
            );
            let mut sizes = Vec::new();
            table.heap_layouts(&mut |layout| sizes.push((layout.size(), layout.align())));
            let own = Layout::new::<Table<()>>();
            let arena = (table.arena.capacity(), 1);
            assert_eq!(sizes, [(own.size(), own.align()), arena, (table.offsets.allocation_size(), TABLE_ALIGN)]);
            assert_eq!(table.heap_bytes(), sizes.iter().map(|&(bytes, _)| bytes as u64).sum());
        }
    }
}
