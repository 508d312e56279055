use super::*;
use crate::counting::held::members::record::{counted_bytes, tests::record};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;

mod buffer;
mod removal;

thread_local! {
    /// The number of members that were hashed or looked up in a set.
    pub static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

impl Members {
    /// Inserts `item`, which must not be a member yet.
    pub(in crate::counting) fn put(&mut self, item: &[u8], tag: u8) {
        let added = self.add_absent(item, table_hash(item), tag, ROOM, &Unlimited);
        assert_eq!(added, Ok(Some(Mark::New)));
    }

    pub(in crate::counting) fn contains(&self, item: &[u8]) -> bool {
        self.offset_of(item, table_hash(item)).is_some()
    }
}

fn members(items: &[&[u8]]) -> Members {
    let mut members = Members::default();
    for item in items {
        members.put(item, 1);
    }
    members
}

pub(super) const ROOM: Room = Room { members: 65_536, bytes: 1 << 20 };

/// Lists of items of several kinds: of one length, short, encoded in two bytes, with a prefix, of all encodings, and of
/// all lengths.
pub(super) fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let of_one_length = (1usize..80).prop_flat_map(|len| vec(vec(any::<u8>(), len), 0..400));
    let short = vec(vec(any::<u8>(), 0..3), 0..400);
    let pairs = vec(any::<u8>().prop_map(|n| if n < 128 { n.to_string().into_bytes() } else { vec![n] }), 0..400);
    let prefixed = vec((0u32..400).prop_map(|number| format!("user:{number}").into_bytes()), 0..400);
    let coded = vec(super::record::tests::texts(), 0..400);
    let all_kinds = vec(prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 100..600)], 0..400);
    prop_oneof![of_one_length, short, pairs, prefixed, coded, all_kinds]
}

/// Whether a record is that of a number in a set with this prefix.
fn is_number(record: &[u8], prefix: &[u8]) -> bool {
    if prefix.is_empty() { (0xc1..=0xc8).contains(&record[0]) } else { (0xd8..=0xdf).contains(&record[0]) }
}

/// A byte from which the tests make encoded members and invalid bytes that look like them.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0u8..4, 1 => 0xc1u8..0xc4, 1 => 0xd8u8..0xda, 1 => b'0'..=b'3', 1 => 0x80u8..=0xff]
}

#[test]
fn the_index_follows_the_number_and_the_bytes() {
    let mut many = Members::default();
    for number in 0..300u32 {
        many.put(&number.to_le_bytes(), 1);
        assert_eq!(many.index == Index::NONE, number < 4);
    }
    let mut long = members(&[b"a", b"b", b"c", b"d", &[1; 65_000]]);
    assert!(!long.index.is_far());
    long.put(&[2; 1000], 1);
    assert!(long.index.is_far());
    for members in [many, long] {
        let mut bytes = 0;
        members.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        assert_eq!(bytes, members.heap_bytes());
        assert!(members.iter().all(|(_, item)| members.contains(&item.text())));
    }
}

/// The tag of the first member stands behind the front, and may have any value but 0.
#[test]
fn no_tag_is_taken_for_a_part_of_the_front() {
    let sets = [&["user:17", "abc"][..], &["user:17", "user:18"], &["17", "18"], &["17", "abc"], &["abc"]];
    for newest in 1..=255 {
        let ages = Ages { newest, modulus: 255, most_age: 4 };
        for items in sets {
            let mut members = Members::new(ages);
            items.iter().for_each(|item| members.put(item.as_bytes(), newest));
            let read = Members::from_bytes(members.as_bytes(), ROOM, ages).unwrap();
            assert!(read.iter().eq(members.iter()), "{newest} {items:?}");
            assert!(items.iter().all(|item| read.contains(item.as_bytes())), "{newest} {items:?}");
        }
    }
}

/// Numbers of one set take one size, and have no index until the 257th comes or they have tags. A wider number makes
/// all wider, and a member of another kind gives all of them headers.
#[test]
fn numbers_of_a_set_take_one_size() {
    for (prefix, front) in [("", 1), ("user:", 7)] {
        for ages in [Ages::PLAIN, AGES] {
            let (mut members, mut all, tag) = (Members::new(ages), Vec::new(), ages.tag_bytes());
            let mut put = |members: &mut Members, number: u64| {
                let item = format!("{prefix}{number}").into_bytes();
                assert!(!members.contains(&item));
                members.put(&item, 1);
                all.push(item);
                assert_eq!(members.as_bytes().len(), front + tag + all.len() * (tag + usize::from(members.width)));
                assert!(all.iter().all(|item| members.contains(item)));
                assert!(members.iter().map(|(_, member)| member.text().to_vec()).eq(all.iter().cloned()));
                let read = Members::from_bytes(members.as_bytes(), ROOM, ages).unwrap();
                assert_eq!(
                    (read.as_bytes(), read.member_bytes, read.len()),
                    (members.as_bytes(), members.member_bytes, all.len())
                );
                assert!(all.iter().all(|item| read.contains(item)));
            };
            let widths =
                [(0..70u64, 1), (250..260, 2), (65_530..65_540, 4), (1 << 40..(1 << 40) + 3, 8), (100..300, 8)];
            for (numbers, width) in widths {
                for number in numbers.filter(|number| !(250..260).contains(number) || width == 2) {
                    put(&mut members, number);
                    assert_eq!(members.index == Index::NONE, members.len() < if tag == 0 { 257 } else { 5 });
                }
                assert_eq!(members.width, width);
            }
            // The width stays when the wide numbers are removed.
            let wide = format!("{prefix}{}", 1u64 << 40).into_bytes();
            let place = members.offset_of(&wide, table_hash(&wide)).unwrap();
            members.remove(std::iter::once(place));
            assert!(!members.contains(&wide) && members.width == 8);
            all.retain(|item| *item != wide);
            let before = members.member_bytes;
            for other in [&b"ann"[..], b"user:0x", b"9223372036854775808"] {
                members.put(other, 1);
                all.push(other.to_vec());
            }
            assert_eq!((members.width, members.member_bytes), (0, before + 3 + 7 + 19));
            assert!(all.iter().all(|item| members.contains(item)) && !members.contains(&wide));
            assert!(members.iter().map(|(_, member)| member.text().to_vec()).eq(all));
        }
    }
}

#[test]
fn arena_is_pinned() {
    assert_eq!(members(&[b"ab", b"", b"c"]).as_bytes(), b"\x02ab\0\x01c");
    for (length, written) in [
        (127, &b"\x7f"[..]),
        (128, b"\xe0\x80\0"),
        (16_383, b"\xe0\xff\x3f"),
        (16_384, b"\xe0\0\x40"),
        ((1 << 20) - 1, b"\xef\xff\xff"),
    ] {
        let members = members(&[&vec![7; length], b"x"]);
        assert!(members.as_bytes().starts_with(written) && members.as_bytes()[written.len()] == 7);
        assert_eq!(members.iter().map(|(_, item)| item.text().len()).collect::<Vec<_>>(), [length, 1]);
        assert_eq!(members.as_bytes().len(), written.len() + length + 2);
    }
}

#[test]
fn the_most_members_have_offsets() {
    // The shortest possible members are added until a limit is reached. In the first case the limit is the number
    // of members, in the second their bytes.
    for room in [ROOM, Room { members: 70_000, bytes: 100_000 }] {
        let mut members = Members::default();
        for number in 0u32.. {
            let bytes = number.to_le_bytes();
            let item = &bytes[..4 - number.leading_zeros() as usize / 8];
            if !members.has_room_for(counted_bytes(item), room) {
                break;
            }
            members.put(item, 1);
        }
        assert!(members.len() == 65_536 || members.member_bytes + 1 >= room.bytes);
        assert!(members.as_bytes().len() as u64 <= room.arena_bytes());
        assert!(members.iter().all(|(_, item)| members.contains(&item.text())));
        let again = Members::from_bytes(members.as_bytes(), room, Ages::PLAIN).unwrap();
        assert!(again.as_bytes() == members.as_bytes() && again.try_clone().unwrap().len() == members.len());
    }
}

#[test]
fn the_most_bytes_of_an_arena_are_pinned() {
    for (members, bytes, most) in [
        (0, 1, 1),
        (3, 100, 103),
        (3, 127, 130),
        (3, 128, 133),
        // A member of 128 bytes has three more bytes in front of it, which encode its length.
        // Numbers take up to eight bytes.
        (100, 100, 800),
        (7, 900, 921),
        (8, 900, 922),
        (3, 1000, 1009),
        (100, 1000, 1114),
        (65_536, 1 << 20, (1 << 20) + 65_536 + 2 * 8192),
    ] {
        // The encoded members also include the longest prefix (text that members begin with): 32 bytes, after two
        // other bytes, and the byte that says the width of numbers.
        assert_eq!(Room { members, bytes }.arena_bytes(), most + 35);
    }
}

#[test]
fn memory_of_members_is_known_before_reading() {
    // Each case has the bytes of encoded members, and the bytes of the index for the largest number of members in
    // them. An index has 1, 2, 3, 7, 17 or 35 groups of 48 bytes.
    for (bytes, index) in [
        (0, 0),
        (7, 0),
        (8, 48),
        (29, 48),
        (30, 2 * 48),
        (58, 2 * 48),
        (60, 3 * 48),
        (88, 3 * 48),
        (90, 7 * 48),
        (209, 7 * 48),
        (210, 17 * 48),
        (509, 17 * 48),
        (510, 35 * 48),
        (65_535, 2303 * 48),
        (65_536, 2303 * 80),
    ] {
        assert_eq!(Members::bytes_of_read(bytes, ROOM), bytes + index, "{bytes}");
    }
    // These bytes look like many empty members, but take no more memory.
    for bytes in [29, 30, 600, 65_535] {
        let read = Members::default().with_room(&vec![0; bytes], ROOM).unwrap().heap_bytes();
        assert!(read <= Members::bytes_of_read(bytes as u64, ROOM).div_ceil(4) * 5, "{bytes}: {read}");
    }
    // The limit on the number of members also limits the memory.
    assert_eq!(Members::bytes_of_read(600, Room { members: 4, bytes: 600 }), 600);
    assert_eq!(Members::bytes_of_read(600, Room { members: 5, bytes: 600 }), 648);
}

/// Fifteen tags, of which tags 1 to 5 stand for slices that have not expired.
const AGES: Ages = Ages { newest: 5, modulus: 15, most_age: 4 };

fn read_tagged(bytes: &[u8]) -> Result<Members, Error> {
    Members::from_bytes(bytes, Room { members: 3, bytes: 10 }, AGES)
}

#[test]
fn errors_of_invalid_members_name_the_fault() {
    let more = ("at most 3 members of 10 bytes together", "more");
    let dead = |tag| ("that of a living slice", tag);
    for (bytes, (expected, got)) in [
        (&b"\x01\x01a\x01\x01b\x01\x01c\x01\x01d"[..], more),
        (b"\x01\x0bx2345678901", more),
        (b"\x01\x01a\x01\x0ax234567890", more),
        (b"\x01\x01a\x02\x01a", ("distinct members", "one twice")),
        (b"\x01\x01a\x02", ("a whole last member", "1 bytes of it")),
        (b"\x01\x01a\x02\x03bc", ("a whole last member", "4 bytes of it")),
        (b"\x01\xe0\x01\0a", ("each in the form of its text", "one in another")),
        (b"\x01\x0212", ("each in the form of its text", "one in another")),
        (b"\x01\xc2\x01\0", ("each in the form of its text", "one in another")),
        (b"\x01\xa4\x01\x23\x45\x67", ("each in the form of its text", "one in another")),
        (b"\x01\xc8\0\0\0\0\0\0\0\x80", ("each in the form of its text", "one in another")),
    ] {
        assert_eq!(read_tagged(bytes).err(), Some(Error::corrupt("members", expected, got)), "{bytes:?}");
    }
    for (tag, (expected, got)) in [(0, dead("0")), (6, dead("6")), (15, dead("15")), (16, dead("16"))] {
        assert_eq!(read_tagged(&[tag, 1, b'a']).err(), Some(Error::corrupt("tag", expected, got)));
    }
    // A prefix without a member, two prefixes, a number that needs a prefix, and a text that has a shorter form.
    for bytes in [&b"\xd2\x01u"[..], b"\xd2\x01u\xd2\x01v\xd8\x01", b"\xd8\x01", b"\xd2\x01u\x02u1"] {
        let rejected = Members::from_bytes(bytes, ROOM, Ages::PLAIN);
        assert!(matches!(rejected, Err(Error::Corrupt { .. })), "{bytes:?}");
    }
}

#[test]
fn members_that_stay_are_found_in_their_order() {
    // The members are of one length, of many lengths, and so long that their offsets take four bytes.
    let lengths: [fn(u32) -> usize; 3] = [|_| 4, |number| number as usize, |number| 4 + number as usize * 6];
    for (length, is_far) in lengths.into_iter().zip([false, false, true]) {
        let mut members = Members::new(AGES);
        let item = |number: u32| (0..).flat_map(|_| number.to_le_bytes()).take(length(number)).collect::<Vec<_>>();
        let tag = |number: u32| 1 + (number % 5) as u8;
        for number in 0..200 {
            members.put(&item(number), tag(number));
        }
        assert_eq!(members.index.is_far(), is_far);
        for (kept, count) in [(&[1, 2, 3, 4, 5][..], 200), (&[1, 3, 4], 120), (&[3], 40), (&[], 0)] {
            members.retain(|tag| kept.contains(&tag));
            let numbers = (0..200).filter(|&number| kept.contains(&tag(number)));
            let listed = members.iter().map(|(tag, member)| (tag, member.text().to_vec()));
            assert!(listed.eq(numbers.clone().map(|number| (tag(number), item(number)))));
            assert_eq!((members.len(), numbers.clone().count()), (count, count));
            assert_eq!(members.member_bytes as usize, numbers.map(|number| item(number).len()).sum::<usize>());
            for number in 0..200 {
                let expected = Some(tag(number)).filter(|tag| kept.contains(tag));
                assert_eq!(members.tag_of(&item(number), table_hash(&item(number))), expected);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(
        prefix in prop::sample::select(vec![
            &b""[..], b"\xd2\x01u", b"\xd2\x02u1", b"\xd3", b"\xd4", b"\xd6", b"\xd2\x01u\xd3", b"\xd2\x06abcdef\xd4",
        ]),
        bytes in vec(byte(), 0..60),
    ) {
        let bytes = [prefix, &bytes].concat();
        // The bytes are valid if, and only if, adding their texts to a set with the same prefix gives the same
        // bytes.
        let (front, _) = Front::split(&bytes, 0);
        let mut added = front.to_bytes(0).to_vec();
        let mut texts = BTreeSet::new();
        for (_, member) in Records::new(&bytes, 0).filter(|(_, member)| texts.insert(member.text().to_vec())) {
            let text = member.text();
            let record = record(&text, front.prefix);
            match member.number() {
                Some(number) if front.width > 0 && is_number(&record, front.prefix) => {
                    added.extend(&number.to_le_bytes()[..front.width.into()]);
                }
                _ => added.extend(record),
            }
        }
        let expected = (added == bytes && (front == Front::default() || !texts.is_empty())).then_some(&bytes[..]);
        let read = Members::from_bytes(&bytes, ROOM, Ages::PLAIN);
        prop_assert_eq!(read.as_ref().ok().map(Members::as_bytes), expected);
    }
}
