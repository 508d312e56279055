//! The set of an exact counter: the members themselves.
//!
//! All members lie in one [arena], in the form in which they are stored. Up to 255 members of less than 64 KiB are held
//! as [`Packed`], with arena and index in one buffer. Larger sets are held as a [`Table`].

pub(in crate::counting) mod arena;
mod group;
mod packed;
mod remove;
mod table;

use std::alloc::Layout;

use arena::Records;
use packed::Packed;
use table::Table;

use crate::counting::held::tag::Tag;
use crate::counting::params::Room;
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::Mover;
use crate::window::Mark;

/// Distinct byte strings, each with its tag, in the order they were added.
#[derive(Debug)]
pub(in crate::counting) enum Members<T = ()> {
    Packed(Packed<T>),
    Table(Box<Table<T>>),
}

/// Evaluates an expression with the members, whatever their form.
macro_rules! either {
    ($members:expr, $form:ident => $call:expr) => {
        match $members {
            Members::Packed($form) => $call,
            Members::Table($form) => $call,
        }
    };
}

impl<T: Tag> Members<T> {
    /// A set without members; allocates nothing.
    pub(in crate::counting) fn new() -> Self {
        Members::Packed(Packed::default())
    }

    /// The number of members.
    #[inline]
    pub(in crate::counting) fn len(&self) -> usize {
        either!(self, form => form.len())
    }

    /// Bytes of all members together, without their lengths and tags.
    #[inline]
    pub(in crate::counting) fn member_bytes(&self) -> u32 {
        either!(self, form => form.member_bytes())
    }

    /// The arena, a buffer of all members: each as its tag, its length and its bytes.
    pub(in crate::counting) fn as_bytes(&self) -> &[u8] {
        either!(self, form => form.arena())
    }

    /// The tags and members, in the order they were added.
    pub(in crate::counting) fn iter(&self) -> Records<'_, T> {
        Records::new(self.as_bytes())
    }

    /// The members with their hashes under `seed`, and their tags.
    pub(in crate::counting) fn hashed(&self, seed: u64) -> impl Iterator<Item = (u64, T, &[u8])> {
        self.iter().map(move |(tag, item)| {
            #[cfg(test)]
            tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
            (hash64(item, seed), tag, item)
        })
    }

    /// Whether `item`, whose hash is `hash`, is a member.
    #[inline]
    pub(in crate::counting) fn contains(&self, item: &[u8], hash: u64) -> bool {
        self.find(item, hash, |_| ()).is_some()
    }

    /// Passes the offset of the member `item` in the arena to `found`, and returns the result; `None` if `item` is no
    /// member. The offset is computed only if `found` uses it.
    #[inline]
    fn find<R>(&self, item: &[u8], hash: u64, found: impl Fn(usize) -> R + Copy) -> Option<R> {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        match self {
            Members::Packed(packed) => packed.find(item, hash, found),
            Members::Table(table) => table.find(item, hash).map(found),
        }
    }

    /// The offset of the member `item` in the arena; its hash is `hash`; `None` if it is no member.
    #[inline]
    pub(in crate::counting) fn offset_of(&self, item: &[u8], hash: u64) -> Option<usize> {
        self.find(item, hash, |offset| offset)
    }

    /// The tag of the member `item`, whose hash is `hash`; `None` if it is no member.
    #[inline]
    pub(in crate::counting) fn tag_of(&self, item: &[u8], hash: u64) -> Option<T> {
        let offset = self.offset_of(item, hash)?;
        T::split(self.as_bytes().get(offset..)?).map(|(tag, _)| tag)
    }

    /// Gives the member `item`, whose hash is `hash`, the tag `tag` if that is younger. Returns `None` if `item` is no
    /// member.
    #[inline(always)]
    pub(in crate::counting) fn renew(&mut self, item: &[u8], hash: u64, tag: T, ages: T::Ages) -> Option<Mark> {
        if T::BYTES == 0 {
            return self.contains(item, hash).then_some(Mark::Same);
        }
        let offset = self.offset_of(item, hash)?;
        let arena = either!(self, form => form.arena_mut());
        Some(tag.renew_in(arena.get_mut(offset..)?, ages))
    }

    /// Whether the set stays within the limits `room` if `item` is inserted.
    #[inline]
    pub(in crate::counting) fn has_room_for(&self, item: &[u8], room: Room) -> bool {
        let bytes_left = room.bytes.checked_sub(self.member_bytes());
        self.len() < room.members as usize && bytes_left.is_some_and(|left| item.len() <= left as usize)
    }

    /// Inserts `item`, which must be no member yet and must fit.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the set is unchanged.
    pub(in crate::counting) fn insert(&mut self, item: &[u8], hash: u64, seed: u64, tag: T) -> Result<(), Error> {
        self.insert_if(item, hash, seed, tag, |_| Ok(()))
    }

    /// Inserts an item like [`Self::insert`]. If the set has to grow, `check` must first allow the least number of
    /// bytes by which it will.
    ///
    /// # Errors
    /// The errors of [`Self::insert`] and of `check`.
    #[inline]
    pub(in crate::counting) fn insert_if(
        &mut self,
        item: &[u8],
        hash: u64,
        seed: u64,
        tag: T,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Members::Packed(packed) if packed.takes(item) => packed.insert(item, hash, seed, tag, check),
            Members::Packed(packed) => {
                check(Table::<T>::bytes_for(item))?;
                let mut table = Table::of(packed.arena(), packed.len(), item, seed)?;
                table.insert(item, hash, seed, tag)?;
                *self = Members::Table(Box::new(table));
                Ok(())
            }
            Members::Table(table) => {
                check(Table::<T>::bytes_for(item))?;
                table.insert(item, hash, seed, tag)
            }
        }
    }

    /// Reserves room in an empty set for `len` members of the length of `item`. Returns the reserved length, which is
    /// passed to [`trim`](Self::trim); `None` if one buffer cannot hold the members or `check` rejects its bytes.
    pub(in crate::counting) fn reserve(
        &mut self,
        item: &[u8],
        len: usize,
        check: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Option<usize> {
        match self {
            Members::Packed(packed) => packed.reserve(item, len, check),
            Members::Table(_) => None,
        }
    }

    /// Frees the unused rest of a reserved buffer.
    pub(in crate::counting) fn trim(&mut self, reserved: usize, seed: u64) {
        if let Members::Packed(packed) = self {
            packed.trim(reserved, seed);
        }
    }

    /// The most heap bytes that a set read from an arena of `arena_bytes` takes, without the room that vectors allocate
    /// ahead.
    pub(in crate::counting) fn bytes_of_read(arena_bytes: u64, room: Room) -> u64 {
        // All members except one have at least one byte, besides their tag and length.
        let members = u64::from(room.members).min(arena_bytes / (T::BYTES as u64 + 2) + 1);
        arena_bytes + packed::index_bytes_for(members).unwrap_or_else(|| Table::<T>::bytes_beside(members))
    }

    /// Reads the bytes of [`Self::as_bytes`], and hashes the members under `seed`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not members to the last byte, as [`Self::insert`] writes them; when a
    /// member occurs twice; when the members do not fit in `room`; or when a tag is of no live slice.
    pub(in crate::counting) fn from_bytes(bytes: &[u8], room: Room, seed: u64, ages: T::Ages) -> Result<Self, Error> {
        let mut members = Members::Packed(Packed::with_room(bytes)?);
        let mut rest = Records::<T>::new(bytes);
        for (tag, item) in rest.by_ref() {
            tag.check(ages)?;
            if !members.has_room_for(item, room) {
                let expected = format!("at most {} members of {} bytes together", room.members, room.bytes);
                return Err(Error::corrupt("members", expected, "more"));
            }
            let hash = hash64(item, seed);
            if members.contains(item, hash) {
                return Err(Error::corrupt("members", "distinct members", "one twice"));
            }
            members.insert(item, hash, seed, tag)?;
        }
        let left = rest.rest().len();
        Error::check_field(left == 0, "members", "a whole last member", format_args!("{left} bytes of it"))?;
        // A length that was longer than necessary would have been written again in a shorter form.
        let is_shortest = members.as_bytes() == bytes;
        Error::check_field(is_shortest, "members", "lengths as short as can be", "a longer one")?;
        Ok(members)
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        either!(self, form => form.heap_layouts(visit));
    }

    /// Bytes of all heap allocations.
    #[inline]
    pub(in crate::counting) fn heap_bytes(&self) -> u64 {
        either!(self, form => form.heap_bytes())
    }

    /// Passes the buffer of all members to `mover` and keeps the buffer that it returns.
    pub(in crate::counting) fn relocate(&mut self, mover: &impl Mover) {
        either!(self, form => form.relocate(mover))
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn try_clone(&self, seed: u64) -> Result<Self, Error> {
        Ok(match self {
            Members::Packed(packed) => Members::Packed(packed.try_clone()?),
            Members::Table(table) => Members::Table(Box::new(Table::of(table.arena(), table.len(), b"", seed)?)),
        })
    }
}

#[cfg(test)]
pub(in crate::counting) mod tests {
    use super::*;
    use crate::counting::held::members::table::offsets_bytes;
    use crate::counting::held::ring::Ages;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    thread_local! {
        /// The number of members that were hashed or looked up in a set.
        pub static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    }

    fn members(items: &[&[u8]]) -> Members {
        let mut members = Members::new();
        for item in items {
            members.insert(item, hash64(item, 0), 0, ()).unwrap();
        }
        members
    }

    pub(super) const ROOM: Room = Room { members: 65_536, bytes: 1 << 20 };

    /// Lists of items for the tests of both forms, packed and table: items of one length, short items, and items of all
    /// lengths.
    pub(super) fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let of_one_length = (1usize..80).prop_flat_map(|len| vec(vec(any::<u8>(), len), 0..400));
        let short = vec(vec(any::<u8>(), 0..3), 0..400);
        let all_kinds = vec(prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 100..600)], 0..400);
        prop_oneof![of_one_length, short, all_kinds]
    }

    pub(super) struct Copier;

    impl Mover for Copier {
        fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
            buffer.into_iter().collect()
        }
    }

    #[test]
    fn a_reserved_index_shrinks_to_the_members_that_came() {
        for len in [0u32, 1, 4, 5, 15, 16, 200] {
            let mut reserved = Members::<()>::new();
            let bytes = reserved.reserve(&[0; 4], 250, |_| Ok(())).unwrap();
            let hashed = |number: u32| (number.to_le_bytes(), hash64(&number.to_le_bytes(), 0));
            (0..len).map(hashed).for_each(|(item, hash)| reserved.insert(&item, hash, 0, ()).unwrap());
            reserved.trim(bytes, 0);
            let read = Members::<()>::from_bytes(reserved.as_bytes(), ROOM, 0, ()).unwrap();
            assert_eq!(reserved.heap_bytes(), read.heap_bytes(), "{len}");
            let is_member = |(item, hash): ([u8; 4], u64)| reserved.contains(&item, hash);
            assert!((0..len).map(hashed).all(is_member) && !(len..300).map(hashed).any(is_member));
        }
        // Members of another length make the buffer longer than reserved, and the index as small as they need.
        let mut mixed = Members::<()>::new();
        let bytes = mixed.reserve(b"a", 250, |_| Ok(())).unwrap();
        for item in [&b"a"[..], &[7; 900], b"b"] {
            mixed.insert(item, hash64(item, 0), 0, ()).unwrap();
        }
        mixed.trim(bytes, 0);
        assert!(mixed.contains(&[7; 900], hash64(&[7; 900], 0)) && mixed.heap_bytes() <= 1024);
    }

    #[test]
    fn the_form_follows_the_number_and_the_bytes() {
        let is_packed = |members: &Members| matches!(members, Members::Packed(_));
        let mut many = Members::new();
        for number in 0..300u32 {
            let item = number.to_le_bytes();
            many.insert(&item, hash64(&item, 0), 0, ()).unwrap();
            assert_eq!(is_packed(&many), number < 255);
        }
        let mut long = members(&[&vec![1; 65_000], b"a"]);
        assert!(is_packed(&long));
        long.insert(&[2; 1000], hash64(&[2; 1000], 0), 0, ()).unwrap();
        assert!(!is_packed(&long));
        for members in [many, long] {
            let mut bytes = 0;
            members.heap_layouts(&mut |layout| bytes += layout.size() as u64);
            assert_eq!(bytes, members.heap_bytes());
            assert!(members.iter().all(|(_, item)| members.contains(item, hash64(item, 0))));
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
            assert_eq!(members.iter().map(|(_, item)| item.len()).collect::<Vec<_>>(), [length, 1]);
            assert_eq!(members.as_bytes().len(), written.len() + length + 2);
        }
    }

    #[test]
    fn the_most_members_have_offsets() {
        // Members as short as possible are added until no room is left: first the number of members ends it, then their
        // bytes.
        for room in [ROOM, Room { members: 70_000, bytes: 100_000 }] {
            let mut members = Members::new();
            for number in 0u32.. {
                let bytes = number.to_le_bytes();
                let item = &bytes[..4 - number.leading_zeros() as usize / 8];
                if !members.has_room_for(item, room) {
                    break;
                }
                members.insert(item, hash64(item, 0), 0, ()).unwrap();
            }
            assert!(members.len() == 65_536 || members.member_bytes() + 1 >= room.bytes);
            assert!(members.as_bytes().len() as u64 <= room.arena_bytes());
            assert!(members.iter().all(|(_, item)| members.contains(item, hash64(item, 0))));
            let again = Members::<()>::from_bytes(members.as_bytes(), room, 0, ()).unwrap();
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
            // A member of 128 bytes has a length of two bytes, one of 2^14 bytes a length of three.
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
    fn what_members_take_is_reported_before_they_are_read() {
        let table = size_of::<Table<()>>() as u64;
        // Each case has the bytes of an arena, and the bytes of the index for the most members that the arena can hold.
        // All members except one take two bytes. An index has 1, 3, 7 or 17 groups of 48 bytes, or is a table.
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
            assert_eq!(Members::<()>::bytes_of_read(bytes, ROOM), bytes + index, "{bytes}");
        }
        // The number of members is limited by the room, too.
        assert_eq!(Members::<()>::bytes_of_read(600, Room { members: 4, bytes: 600 }), 600);
        assert_eq!(Members::<()>::bytes_of_read(600, Room { members: 5, bytes: 600 }), 648);
    }

    /// A mover that copies the buffer and records its length in bytes.
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
            (0..number).map(u32::to_le_bytes).for_each(|item| members.insert(&item, hash64(&item, 0), 0, ()).unwrap());
            let (before, moved) = (members.as_bytes().to_vec(), Moved::default());
            members.relocate(&moved);
            let (mut sizes, moved) = (Vec::new(), moved.0.take().unwrap());
            members.heap_layouts(&mut |layout| sizes.push(layout.size()));
            assert!(moved >= before.len() && (number == 0 || sizes.contains(&moved)), "{moved} of {sizes:?}");
            assert_eq!(members.as_bytes(), before);
        }
    }

    #[test]
    fn corrupt_bytes_are_rejected() {
        let corrupt: [&[u8]; 9] = [
            b"\x01",
            b"\x02a",
            b"\x01a\x01a",
            b"\x01a\x01b\x01c\x01d",
            b"\x80",
            b"\x80\x80",
            b"\x80\x80\x80\x01",
            // The length 1, in more bytes than necessary.
            b"\x81\0a",
            b"\x81\x80\0a",
        ];
        let room = Room { members: 3, bytes: 1000 };
        for bytes in corrupt {
            assert!(matches!(Members::<()>::from_bytes(bytes, room, 0, ()), Err(Error::Corrupt { .. })), "{bytes:?}");
        }
        let long = members(&[&vec![0; 1001]]);
        assert!(matches!(Members::<()>::from_bytes(long.as_bytes(), room, 0, ()), Err(Error::Corrupt { .. })));
    }

    /// Ages with fifteen tags, of which tags 1 to 5 are live.
    const AGES: Ages = Ages { newest: 5, modulus: 15, most_age: 4 };

    fn read_tagged(bytes: &[u8]) -> Result<Members<u8>, Error> {
        Members::from_bytes(bytes, Room { members: 3, bytes: 10 }, 7, AGES)
    }

    #[test]
    fn tagged_members_are_read_as_they_are_stored() {
        for bytes in [&b""[..], b"\x05\x02ab", b"\x01\0\x05\x01a\x03\x09123456789", b"\x01\x0a1234567890"] {
            let members = read_tagged(bytes).unwrap();
            assert_eq!(members.as_bytes(), bytes);
            assert_eq!(members.len(), members.iter().count());
            for (tag, member) in members.iter() {
                assert_eq!(members.tag_of(member, hash64(member, 7)), Some(tag));
            }
            assert_eq!(members.tag_of(b"zoe", hash64(b"zoe", 7)), None);
            let copy = members.try_clone(7).unwrap();
            assert_eq!(
                (copy.as_bytes(), copy.len(), copy.member_bytes()),
                (bytes, members.len(), members.member_bytes())
            );
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
            assert_eq!(read_tagged(bytes).err(), Some(Error::corrupt("members", expected, got)), "{bytes:?}");
        }
        for (tag, (expected, got)) in [(0, dead("0")), (6, dead("6")), (15, dead("15")), (16, dead("16"))] {
            assert_eq!(read_tagged(&[tag, 1, b'a']).err(), Some(Error::corrupt("tag", expected, got)));
        }
    }

    #[test]
    fn members_that_stay_are_found_in_their_order() {
        // Members of one length and of many lengths, in one buffer and in a table.
        let lengths: [fn(u32) -> usize; 3] = [|_| 4, |number| number as usize, |number| 4 + number as usize * 6];
        for (length, is_packed) in lengths.into_iter().zip([true, true, false]) {
            let mut members = Members::new();
            let item = |number: u32| (0..).flat_map(|_| number.to_le_bytes()).take(length(number)).collect::<Vec<_>>();
            let tag = |number: u32| 1 + (number % 5) as u8;
            for number in 0..200 {
                members.insert(&item(number), hash64(&item(number), 7), 7, tag(number)).unwrap();
            }
            assert_eq!(matches!(members, Members::Packed(_)), is_packed);
            for (kept, count) in [(&[1, 2, 3, 4, 5][..], 200), (&[1, 3, 4], 120), (&[3], 40), (&[], 0)] {
                members.retain(7, |tag| kept.contains(&tag));
                let numbers = (0..200).filter(|&number| kept.contains(&tag(number)));
                let listed = members.iter().map(|(tag, member)| (tag, member.to_vec()));
                assert!(listed.eq(numbers.clone().map(|number| (tag(number), item(number)))));
                assert_eq!((members.len(), numbers.clone().count()), (count, count));
                assert_eq!(members.member_bytes() as usize, numbers.map(|number| item(number).len()).sum::<usize>());
                for number in 0..200 {
                    let expected = Some(tag(number)).filter(|tag| kept.contains(tag));
                    assert_eq!(members.tag_of(&item(number), hash64(&item(number), 7)), expected);
                }
            }
        }
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
                    members.insert(item, hash, seed, ()).unwrap();
                }
                if naive.len() % moved == 0 {
                    members.relocate(&Copier);
                }
            }
            prop_assert_eq!(members.len(), naive.len());
            prop_assert_eq!(members.member_bytes(), naive.iter().map(|item| item.len() as u32).sum::<u32>());
            let read = Members::from_bytes(members.as_bytes(), ROOM, seed, ()).unwrap();
            for copy in [members.try_clone(seed).unwrap(), read] {
                prop_assert_eq!(copy.as_bytes(), members.as_bytes());
                prop_assert!(naive.iter().all(|item| copy.contains(item, hash64(item, seed))));
                for item in &items {
                    let longer = [item, &b"!"[..]].concat();
                    prop_assert_eq!(copy.contains(&longer, hash64(&longer, seed)), naive.contains(&longer));
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in vec(0u8..4, 0..200)) {
            if let Ok(members) = Members::<()>::from_bytes(&bytes, ROOM, 0, ()) {
                prop_assert_eq!(members.as_bytes(), &bytes[..]);
            }
        }
    }
}
