use super::*;
use crate::counting::held::members::index::group_of;
use crate::counting::held::ring::own_bytes;
use crate::size_limit::MaxBytes;

fn packed(items: impl IntoIterator<Item = Vec<u8>>) -> Members {
    let mut packed = Members::default();
    for item in items {
        assert!(!packed.contains(&item));
        let before = packed.heap_bytes();
        let mut after = before;
        if let Err(error) = packed.add_absent(&item, table_hash(&item), 1, ROOM, &MaxBytes(own_bytes(false) + before)) {
            let Error::TooLarge { needed_bytes, .. } = error else { panic!("{error}") };
            assert!(packed.heap_bytes() == before && !packed.contains(&item));
            packed.put(&item, 1);
            after = needed_bytes - own_bytes(false);
        }
        assert_eq!(packed.heap_bytes(), after);
    }
    packed
}

fn id(number: usize) -> Vec<u8> {
    format!("m{number:011}").into_bytes()
}

#[test]
fn sizes_are_pinned() {
    // Each case has a number of members of 12 bytes each, and the bytes that they take together.
    for (len, bytes) in [(0, 0), (1, 16), (2, 48), (4, 80), (5, 128), (10, 192), (100, 1792), (250, 4096)] {
        assert_eq!(packed((0..len).map(id)).heap_bytes(), bytes, "{len} members");
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
    assert!((1..=700).all(|bytes| size_class(bytes) >= bytes && size_class(size_class(bytes)) == size_class(bytes)));
}

#[test]
fn members_of_one_group_fill_the_next() {
    // The hashes of these items select the first group, no matter how many groups there are.
    let of_first = |item: &Vec<u8>| group_of(table_hash(item), 0x100) == 0;
    let (items, others) = ((0..).map(id).filter(of_first), (0..).map(id).filter(|item| !of_first(item)));
    let items: Vec<_> = items.take(0xff).collect();
    let packed = packed(items.iter().cloned());
    assert!(items.iter().all(|item| packed.contains(item)));
    assert!(others.take(1000).all(|item| !packed.contains(&item)));
    assert_eq!((packed.index.groups(), packed.index.is_far()), (17, false));
}

#[test]
fn memory_for_members_is_allocated_once_when_read() {
    for items in
        [(0..3).map(id).collect::<Vec<_>>(), (0..200).map(id).collect(), (0..200).map(|n| vec![7; n]).collect()]
    {
        let expected = packed(items.iter().cloned());
        let room = Members::default().with_room(expected.as_bytes(), ROOM).unwrap().heap_bytes();
        let read = Members::from_bytes(expected.as_bytes(), ROOM, Ages::PLAIN).unwrap();
        assert_eq!((read.as_bytes(), read.index), (expected.as_bytes(), expected.index));
        assert!(read.heap_bytes() <= expected.heap_bytes());
        assert_eq!(read.heap_bytes(), room);
    }
}
