use super::*;
use crate::hash::hash64;

/// Ages with tags of half a byte and of a whole byte. The newest slice and four older slices are live.
const HALVES: Ages = Ages { newest: 5, modulus: 15, most_age: 4 };
const WHOLES: Ages = Ages { newest: 200, modulus: 255, most_age: 4 };

/// Cells in which each cell has the tag that `tag_of` returns for its index, 0 if free. Also returns the list of these
/// tags.
fn cells(layout: Layout, ages: Ages, tag_of: impl Fn(u64) -> u8) -> (TagCells, Vec<u8>) {
    let tags: Vec<u8> = (0..layout.num_bits()).map(tag_of).collect();
    let mut bytes: Vec<u8> = if ages.has_halves() {
        tags.as_chunks().0.iter().map(|[first, second]| first | second << 4).collect()
    } else {
        tags.clone()
    };
    let cells = TagCells::from_payload(&mut bytes, layout, Ages { most_age: u8::MAX, ..ages }).unwrap();
    (cells, tags)
}

/// Counts, one by one, the cells whose tags satisfy `is_meant`.
fn counted(layout: Layout, tags: &[u8], is_meant: impl Fn(u8) -> bool) -> SegmentCounts {
    let mut counts = SegmentCounts::default();
    for (index, _) in (0..).zip(tags).filter(|&(_, &tag)| is_meant(tag)) {
        counts.add(layout.segment_of(index), 1);
    }
    counts
}

fn random(index: u64) -> u64 {
    hash64(&index.to_le_bytes(), 0)
}

#[test]
fn cells_gone_through_at_once_are_as_one_by_one() {
    for ages in [HALVES, WHOLES] {
        let modulus = u64::from(ages.modulus);
        // The cells are all free, all of the newest slice, few, or of every tag. Layouts have fewer words than are
        // processed together, or many more.
        let kinds: [&dyn Fn(u64) -> u8; 4] = [
            &|_| 0,
            &|_| ages.newest,
            &|index| {
                if random(index).is_multiple_of(1000) { (1 + random(index) / 1000 % modulus) as u8 } else { 0 }
            },
            &|index| (random(index) % (modulus + 1)) as u8,
        ];
        for (precision, tail_bits) in [(9, 8), (15, 8)] {
            let layout = Layout::new(precision, tail_bits).unwrap();
            for tag_of in kinds {
                let (mut cells, tags) = cells(layout, ages, tag_of);
                assert_eq!(cells.as_bytes().len() as u64, TagCells::num_bytes(layout, ages));
                assert_eq!(cells.counts(), &counted(layout, &tags, |tag| tag != 0));
                assert!((0..).zip(&tags).all(|(index, &tag)| cells.get(index as usize) == tag));
                let mut visited = Vec::new();
                cells.for_each(&mut |index, tag| visited.push((index, tag)));
                assert!((0..).zip(tags.iter().copied()).filter(|&(_, tag)| tag != 0).eq(visited));

                let mut by_tag = vec![SegmentCounts::default(); 256];
                cells.for_each_count(layout, &mut |segment, tag, count| {
                    assert!(count > 0);
                    by_tag[usize::from(tag)].add(segment, count);
                });
                assert_eq!(by_tag[0], SegmentCounts::default());
                for tag in [1, 2, ages.newest, ages.modulus] {
                    assert_eq!(by_tag[usize::from(tag)], counted(layout, &tags, |other| other == tag));
                }
                let total: u64 = by_tag.iter().map(SegmentCounts::total).sum();
                assert_eq!(total, cells.counts().total());

                for most_age in [0, 3, ages.modulus - 1] {
                    let is_meant = |tag| tag != 0 && ages.age(tag) <= most_age;
                    let expected = counted(layout, &tags, is_meant);
                    assert_eq!(cells.counts_within(layout, ages, most_age), expected);
                    assert_eq!(cells.has_any(ages, most_age), expected.total() > 0);
                    let mut words = vec![0; layout.num_words()];
                    cells.to_words(ages, most_age, &mut words);
                    let set = crate::bits::ones(&words).map(|index| index as u64);
                    assert!((0..).zip(&tags).filter(|&(_, &tag)| is_meant(tag)).map(|(index, _)| index).eq(set));
                }

                let copy = cells.try_clone().unwrap();
                assert_eq!((copy.as_bytes(), copy.counts()), (cells.as_bytes(), cells.counts()));
                cells.free_dead(layout, ages, 3);
                let left = |tag: u8| if tag != 0 && ages.age(tag) <= 3 { tag } else { 0 };
                assert!((0..).zip(&tags).all(|(index, &tag)| cells.get(index as usize) == left(tag)));
                assert_eq!(cells.counts(), &counted(layout, &tags, |tag| left(tag) != 0));
            }
        }
    }
}

#[test]
fn a_single_cell_is_found_wherever_it_is() {
    let layout = Layout::new(14, 13).unwrap();
    for ages in [HALVES, WHOLES] {
        let last = layout.num_bits() - 1;
        for index in [0, 1, 2, 63, 64, 8191, 8192, 16_383, 16_384, last - 64, last - 1, last] {
            let slot = Slot { index, segment: layout.segment_of(index) };
            let mut cells = TagCells::new(layout, ages).unwrap();
            assert!(!cells.has_any(ages, u8::MAX));
            assert_eq!([2, 2, 3].map(|age| cells.mark(slot, ages.tag(age), ages)), [Mark::New, Mark::Same, Mark::Same]);
            assert_eq!(cells.get(index as usize), ages.tag(2));
            assert!(cells.has_any(ages, 2) && !cells.has_any(ages, 1));
            assert_eq!((cells.counts().get(slot.segment), cells.counts().total()), (1, 1));
            assert_eq!((cells.mark(slot, ages.newest, ages), cells.get(index as usize)), (Mark::Renewed, ages.newest));
            assert_eq!(
                (cells.counts().total(), cells.heap_layouts()[0].size() as u64),
                (1, TagCells::num_bytes(layout, ages))
            );
            let mut visited = Vec::new();
            cells.for_each(&mut |index, tag| visited.push((index, tag)));
            assert_eq!(visited, [(index, ages.newest)]);
        }
    }
}

#[test]
fn cells_of_dead_slices_are_rejected() {
    let layout = Layout::new(9, 8).unwrap();
    // The live tags are those from 1 on in half a byte, and from 196 on in a whole byte.
    for (ages, byte, dead) in [
        (HALVES, 0x06, Some(6)),
        (HALVES, 0x60, Some(6)),
        (HALVES, 0xf1, Some(15)),
        (HALVES, 0x15, None),
        (WHOLES, 195, Some(195)),
        (WHOLES, 196, None),
        (WHOLES, 200, None),
        (WHOLES, 201, Some(201)),
        (WHOLES, 0x11, Some(0x11)),
    ] {
        let mut bytes = vec![0; TagCells::num_bytes(layout, ages) as usize];
        *bytes.last_mut().unwrap() = byte;
        let (before, read) = (bytes.clone(), TagCells::from_payload(&mut bytes, layout, ages));
        match dead {
            None => assert!(read.is_ok_and(|cells| cells.as_bytes() == before) && bytes.is_empty()),
            Some(tag) => {
                let expected = Error::corrupt("tag", "0 or that of a living slice", tag);
                assert!(read.is_err_and(|error| error == expected) && bytes == before);
            }
        }
    }
}

#[test]
fn a_merge_at_once_is_as_one_by_one() {
    for (own, other) in [(HALVES, HALVES), (WHOLES, WHOLES)] {
        // The other ring is behind, has another newest tag, and a longer window.
        let theirs = Ages { newest: 3, most_age: 9, ..other };
        let layout = Layout::new(15, 8).unwrap();
        let tag_of = |ages: Ages, seed: u64| {
            move |index: u64| match random(index ^ seed) % 3 {
                0 => 0,
                _ => ages.tag((random(index ^ seed) / 3 % (u64::from(ages.most_age) + 1)) as u8),
            }
        };
        for behind in [0, 1, 4, 5, 255] {
            let (mut merged, _) = cells(layout, own, tag_of(own, 0));
            let (mut expected, _) = cells(layout, own, tag_of(own, 0));
            let (from, _) = cells(layout, theirs, tag_of(theirs, 1 << 40));
            let mut changed = false;
            from.for_each(&mut |index, tag| {
                let age = theirs.age(tag).saturating_add(behind);
                if age <= own.most_age {
                    let slot = Slot { index, segment: layout.segment_of(index) };
                    changed |= expected.mark(slot, own.tag(age), own) != Mark::Same;
                }
            });
            assert_eq!(merged.merge(layout, own, &from, layout, theirs, behind), Some(changed), "{behind}");
            assert_eq!(changed, behind <= own.most_age);
            merged.count(layout, own);
            assert_eq!((merged.as_bytes(), merged.counts()), (expected.as_bytes(), expected.counts()));
            // A second merge changes nothing.
            assert_eq!(merged.merge(layout, own, &from, layout, theirs, behind), Some(false));
        }
        let mismatched = if own.has_halves() { WHOLES } else { HALVES };
        let (mut merged, _) = cells(layout, own, |_| 0);
        assert_eq!(merged.merge(layout, own, &cells(layout, mismatched, |_| 0).0, layout, mismatched, 0), None);
        let coarse = Layout::new(14, 8).unwrap();
        assert_eq!(merged.merge(layout, own, &cells(coarse, own, |_| 0).0, coarse, own, 0), None);
    }
}
