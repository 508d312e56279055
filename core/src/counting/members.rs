//! The members of a small counter, themselves.
//!
//! All of them lie in one [arena], as they are stored. What finds one there depends on how many they are: up to 255
//! members of less than 64 KiB [`Packed`], one buffer for all; beyond, a [`Table`].

pub(super) mod arena;
mod packed;
mod table;

use std::alloc::Layout;

use arena::Iter;
use packed::Packed;
use table::Table;
pub(super) use table::offsets_bytes;

use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;

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

/// Distinct byte strings in the order they came.
#[derive(Debug)]
pub(super) enum Members {
    Packed(Packed),
    Table(Box<Table>),
}

impl Members {
    /// No members; allocates nothing.
    pub(super) fn new() -> Self {
        Members::Packed(Packed::default())
    }

    /// Number of members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Members::Packed(packed) => packed.len(),
            Members::Table(table) => table.len(),
        }
    }

    /// Bytes of all members together, lengths aside.
    #[inline]
    pub(super) fn member_bytes(&self) -> u32 {
        match self {
            Members::Packed(packed) => packed.member_bytes(),
            Members::Table(table) => table.member_bytes(),
        }
    }

    /// The arena: each member as its length and its bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Members::Packed(packed) => packed.arena(),
            Members::Table(table) => table.arena(),
        }
    }

    /// The members, in the order they came.
    pub(super) fn iter(&self) -> Iter<'_> {
        Iter::new(self.as_bytes())
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
    #[inline]
    pub(super) fn contains(&self, item: &[u8], hash: u64) -> bool {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        match self {
            Members::Packed(packed) => packed.contains(item, hash),
            Members::Table(table) => table.contains(item, hash),
        }
    }

    /// Would `item` still fit, in number and in bytes, in so much room?
    #[inline]
    pub(super) fn has_room_for(&self, item: &[u8], room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes());
        self.len() < room.members as usize && bytes_left.is_some_and(|left| item.len() <= left as usize)
    }

    /// Inserts `item`, which is no member yet and for which there is room.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, item: &[u8], hash: u64, seed: u64) -> Result<(), Error> {
        self.insert_if(item, hash, seed, |_| Ok(()))
    }

    /// As [`Self::insert`], if `check` allows the bytes that it takes more at least.
    ///
    /// # Errors
    /// Those of [`Self::insert`] and of `check`.
    #[inline]
    pub(super) fn insert_if(
        &mut self,
        item: &[u8],
        hash: u64,
        seed: u64,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Members::Packed(packed) if packed.takes(item) => packed.insert(item, hash, seed, check),
            Members::Packed(packed) => {
                check(Table::bytes_for(item))?;
                let mut table = Table::of(packed.arena(), packed.len(), packed.member_bytes(), item, seed)?;
                table.insert(item, hash, seed)?;
                *self = Members::Table(Box::new(table));
                Ok(())
            }
            Members::Table(table) => {
                check(Table::bytes_for(item))?;
                table.insert(item, hash, seed)
            }
        }
    }

    /// The most heap bytes of members that are read from an arena of so many bytes, but for what lists allocate ahead.
    pub(super) fn bytes_of_read(arena_bytes: u64, room: Room) -> u64 {
        // All but one have a byte besides their length.
        let members = u64::from(room.members).min(arena_bytes / 2 + 1);
        arena_bytes + packed::index_bytes_for(members).unwrap_or_else(|| Table::bytes_beside(members))
    }

    /// Reads what [`Self::as_bytes`] gave, hashing under `seed`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not members to the last one as [`Self::insert`] writes them, a member occurs
    /// twice, or they do not fit in `room`.
    pub(super) fn from_bytes(bytes: &[u8], room: Room, seed: u64) -> Result<Self, Error> {
        let mut members = Members::Packed(Packed::with_room(bytes)?);
        let mut rest = Iter::new(bytes);
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
        if !rest.rest().is_empty() {
            return Err(Error::corrupt("members", "a whole last member", format!("{} bytes of it", rest.rest().len())));
        }
        // Lengths that are longer than they need to be would come out shorter.
        if members.as_bytes() != bytes {
            return Err(Error::corrupt("members", "lengths as short as can be", "a longer one"));
        }
        Ok(members)
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        match self {
            Members::Packed(packed) => packed.heap_layouts(visit),
            Members::Table(table) => {
                visit(Layout::new::<Table>());
                table.heap_layouts(visit);
            }
        }
    }

    /// Bytes of all heap allocations.
    #[inline]
    pub(super) fn heap_bytes(&self) -> u64 {
        match self {
            Members::Packed(packed) => packed.heap_bytes(),
            Members::Table(table) => size_of::<Table>() as u64 + table.heap_bytes(),
        }
    }

    /// Hands the buffer of all members over and takes it back, wherever it lies then.
    pub(super) fn relocate(&mut self, mover: &impl Mover) {
        match self {
            Members::Packed(packed) => packed.relocate(mover),
            Members::Table(table) => table.relocate(mover),
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        Ok(match self {
            Members::Packed(packed) => Members::Packed(packed.try_clone()?),
            Members::Table(table) => {
                Members::Table(Box::new(Table::of(table.arena(), table.len(), table.member_bytes(), b"", seed)?))
            }
        })
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

    /// Items for either form, of one length, of short ones and of all kinds.
    fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let of_one_length = (1usize..80).prop_flat_map(|len| vec(vec(any::<u8>(), len), 0..400));
        let short = vec(vec(any::<u8>(), 0..3), 0..400);
        let all_kinds = vec(prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 100..600)], 0..400);
        prop_oneof![of_one_length, short, all_kinds]
    }

    struct Copier;

    impl Mover for Copier {
        fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
            buffer.into_iter().collect()
        }
    }

    #[test]
    fn the_form_follows_the_number_and_the_bytes() {
        let is_packed = |members: &Members| matches!(members, Members::Packed(_));
        let mut many = Members::new();
        for number in 0..300u32 {
            let item = number.to_le_bytes();
            many.insert(&item, hash64(&item, 0), 0).unwrap();
            assert_eq!(is_packed(&many), number < 255);
        }
        let mut long = members(&[&vec![1; 65_000], b"a"]);
        assert!(is_packed(&long));
        long.insert(&[2; 1000], hash64(&[2; 1000], 0), 0).unwrap();
        assert!(!is_packed(&long));
        for members in [many, long] {
            let mut bytes = 0;
            members.heap_layouts(&mut |layout| bytes += layout.size() as u64);
            assert_eq!(bytes, members.heap_bytes());
            assert!(members.iter().all(|item| members.contains(item, hash64(item, 0))));
        }
    }

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
            assert!(members.len() == 65_536 || members.member_bytes() + 1 >= room.bytes);
            assert!(members.as_bytes().len() as u64 <= room.arena_bytes());
            assert!(members.iter().all(|item| members.contains(item, hash64(item, 0))));
            let again = Members::from_bytes(members.as_bytes(), room, 0).unwrap();
            assert!(again.as_bytes() == members.as_bytes() && again.try_clone(0).unwrap().len() == members.len());
        }
    }

    #[test]
    fn the_most_bytes_of_an_arena_are_pinned() {
        for (members, bytes, most) in [
            (0, 1, 1),
            (3, 100, 103),
            (3, 127, 130),
            (3, 128, 133),
            // Members of 128 bytes have one byte more, and one of 2^14 has two.
            (7, 900, 921),
            (8, 900, 922),
            (3, 1000, 1009),
            (100, 1000, 1114),
            (65_536, 1 << 20, (1 << 20) + 65_536 + 2 * 8192),
        ] {
            assert_eq!(Room { members, bytes }.arena_bytes(), most);
        }
    }

    #[test]
    fn what_members_take_is_told_before_they_are_read() {
        let table = size_of::<Table>() as u64;
        // The most members of so many bytes, two each but one. Then the bytes of their index: 48 a group, of which
        // there are 1, 3, 7 or 17, or a table.
        for (bytes, index) in [
            (0, 0),
            (7, 0),
            (8, 48),
            (29, 48),
            (30, 3 * 48),
            (88, 3 * 48),
            (90, 7 * 48),
            (209, 7 * 48),
            (210, 17 * 48),
            (509, 17 * 48),
            (510, table + offsets_bytes(256)),
            (600, table + offsets_bytes(301)),
        ] {
            assert_eq!(Members::bytes_of_read(bytes, ROOM), bytes + index, "{bytes}");
        }
        // No more than there is room for.
        assert_eq!(Members::bytes_of_read(600, Room { members: 4, bytes: 600 }), 600);
        assert_eq!(Members::bytes_of_read(600, Room { members: 5, bytes: 600 }), 648);
    }

    /// Copies, and notes how many bytes.
    #[derive(Default)]
    struct Moved(Cell<Option<usize>>);

    impl Mover for Moved {
        fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
            assert_eq!(self.0.replace(Some(size_of_val(&*buffer))), None);
            buffer.into_iter().collect()
        }
    }

    #[test]
    fn the_buffer_of_all_members_is_handed_over() {
        for number in [0u32, 1, 5, 255, 256, 1000] {
            let mut members = Members::new();
            (0..number).map(u32::to_le_bytes).for_each(|item| members.insert(&item, hash64(&item, 0), 0).unwrap());
            let (before, moved) = (members.as_bytes().to_vec(), Moved::default());
            members.relocate(&moved);
            let (mut sizes, moved) = (Vec::new(), moved.0.take().unwrap());
            members.heap_layouts(&mut |layout| sizes.push(layout.size()));
            assert!(moved >= before.len() && (number == 0 || sizes.contains(&moved)), "{moved} of {sizes:?}");
            assert_eq!(members.as_bytes(), before);
        }
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
        fn behaves_as_a_set(items in items(), seed in any::<u64>(), moved in 1usize..100) {
            let mut members = Members::new();
            let mut naive = BTreeSet::new();
            for item in &items {
                let hash = hash64(item, seed);
                prop_assert_eq!(members.contains(item, hash), naive.contains(item));
                if naive.insert(item.clone()) {
                    members.insert(item, hash, seed).unwrap();
                }
                if naive.len() % moved == 0 {
                    members.relocate(&Copier);
                }
            }
            prop_assert_eq!(members.len(), naive.len());
            prop_assert_eq!(members.member_bytes(), naive.iter().map(|item| item.len() as u32).sum::<u32>());
            for copy in [members.try_clone(seed).unwrap(), Members::from_bytes(members.as_bytes(), ROOM, seed).unwrap()] {
                prop_assert_eq!(copy.as_bytes(), members.as_bytes());
                prop_assert!(naive.iter().all(|item| copy.contains(item, hash64(item, seed))));
                for item in &items {
                    let longer = [item, &b"!"[..]].concat();
                    prop_assert_eq!(copy.contains(&longer, hash64(&longer, seed)), naive.contains(&longer));
                }
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
