//! Many members: a hash table of offsets into the arena finds one.

use std::alloc::Layout;
use std::marker::PhantomData;

use hashbrown::HashTable;

use super::arena::{LengthPrefix, Records, record_bytes};
use crate::counting::held::tag::Tag;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;

/// What the hash table aligns its memory to: the control bytes that it looks at together, in bytes.
const TABLE_ALIGN: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// The most bytes of a hash table of so many offsets of four bytes, each with a control byte. It is at most 7/8 full, of a
/// power of two.
pub(in crate::counting) fn offsets_bytes(members: u64) -> u64 {
    let buckets = (members + members / 7 + 4).next_power_of_two();
    buckets * (size_of::<u32>() as u64 + 1) + TABLE_ALIGN as u64
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

    /// The offset of this hash that `is_it`.
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Offsets::Near(table) => table.find(hash, |&offset| is_it(usize::from(offset))).map(|&at| usize::from(at)),
            Offsets::Far(table) => table.find(hash, |&offset| is_it(offset as usize)).map(|&at| at as usize),
        }
    }

    /// Removes all. It has room for as many as before.
    fn clear(&mut self) {
        match self {
            Offsets::Near(table) => table.clear(),
            Offsets::Far(table) => table.clear(),
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

/// An arena and a hash table.
#[derive(Debug)]
pub(in crate::counting) struct Table<T> {
    arena: Vec<u8>,
    /// Bytes of the members alone.
    member_bytes: u32,
    offsets: Offsets,
    tags: PhantomData<T>,
}

impl<T: Tag> Table<T> {
    /// The distinct members of `arena`, which are `len`, with room for `item`.
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

    /// Keeps the members whose tags `is_kept` says, and enters them in the empty index, which has room for them.
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

    /// Keeps the members whose tags `is_kept` says. Allocates nothing.
    pub(super) fn retain(&mut self, seed: u64, is_kept: impl Fn(T) -> bool) {
        self.offsets.clear();
        self.member_bytes = 0;
        self.index(seed, is_kept);
    }

    /// Bytes of a table of so many members besides its arena, at most.
    pub(super) fn bytes_beside(members: u64) -> u64 {
        size_of::<Self>() as u64 + offsets_bytes(members)
    }

    /// Number of members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Bytes of all members together, lengths aside.
    #[inline]
    pub(super) fn member_bytes(&self) -> u32 {
        self.member_bytes
    }

    /// The members, each as its length and its bytes.
    pub(super) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Where the record of `item` begins, whose hash is `hash`.
    // Out of line, so that the code for few members stays small.
    #[inline(never)]
    pub(super) fn find(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.offsets.find(hash, |offset| self.member_at(offset) == Some(item))
    }

    fn member_at(&self, offset: usize) -> Option<&[u8]> {
        Records::<T>::from(&self.arena, offset).next().map(|(_, member)| member)
    }

    /// The arena, to change tags in it.
    #[inline]
    pub(super) fn arena_mut(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// Bytes that [`Self::insert`] will add for `item` at least.
    pub(super) fn bytes_for(item: &[u8]) -> u64 {
        (record_bytes::<T>(item) + size_of::<u16>() + 1) as u64
    }

    /// Inserts `item`, which is no member yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
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

    /// Hands the arena over and takes it back, wherever it lies then. The table is left where it is: nobody has its bytes.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        let mut arena = std::mem::take(&mut self.arena);
        let len = arena.len();
        // As long as its memory, it becomes a box and a vector again without another allocation.
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
        // A member, its length, an offset and its control byte.
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
            assert_eq!(sizes, [(table.arena.capacity(), 1), (table.offsets.allocation_size(), TABLE_ALIGN)]);
            assert_eq!(table.heap_bytes(), (sizes[0].0 + sizes[1].0) as u64);
        }
    }
}
