use super::*;
use crate::counting::layout::{MAX_SEGMENT_BITS, MIN_SEGMENT_BITS};
use crate::hash::hash64;
use crate::marks::CHUNK;
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Ages with 15 and with 255 tags, of which five are live.
const HALVES: Ages = Ages { newest: 5, modulus: 15, most_age: 4 };
const WHOLES: Ages = Ages { newest: 2, modulus: 255, most_age: 4 };

/// The marked slots with their tags, ascending.
fn listed(slots: &Slots) -> Vec<(u32, u8)> {
    let mut all = Vec::new();
    for (segment, place) in slots.places() {
        place.for_each(slots.layout, slots.ages, |place, tag| {
            all.push((slots.layout.slot_at(segment, place as u16), tag))
        });
    }
    all
}

/// Checks all that follows from the marked slots: counts, window, memory.
fn check(slots: &Slots) {
    let (layout, ages) = (slots.layout, slots.ages);
    let mut counts = SegmentCounts::default();
    listed(slots).iter().for_each(|&(slot, _)| counts.add(layout.segment_of(slot), 1));
    assert_eq!((slots.counts, slots.counts_within(u8::MAX)), (counts, counts));
    assert_eq!((usize::from(slots.first)..usize::from(slots.end)), window_of(layout, &counts, ages));
    assert_eq!(slots.num_bytes() + Slots::STRUCT_BYTES, bytes_of_counts(layout, &counts, ages));
    let mut bytes = 0;
    slots.heap_layouts(&mut |memory| bytes += memory.size() as u64);
    assert_eq!(bytes, slots.num_bytes());
    let cells = layout.num_slots() * ages.cell_bits() as u64 / 8;
    assert!(bytes <= cells, "{bytes} bytes for {cells}");
}

/// Marks a list of slots without a window.
fn mark_all(slots: &mut Slots, list: impl Iterator<Item = u32>) -> Vec<Mark> {
    let (hashes, mut marks): (Vec<_>, _) = (list.map(|slot| slots.layout.first_hash(slot)).collect(), Vec::new());
    hashes.chunks(CHUNK).for_each(|chunk| slots.mark_all(chunk, &Unlimited, |mark| marks.push(mark)).unwrap());
    marks
}

fn mark(slots: &mut Slots, slot: u32, tag: u8) -> Mark {
    slots.mark(slot, tag, &Unlimited).unwrap()
}

/// Slots, of which early segments have more, and whole runs of neighbours.
fn any_slots(layout: Layout) -> impl Strategy<Value = Vec<u32>> {
    let one = any::<u64>().prop_map(move |hash| vec![layout.slot_of(hash)]);
    let any = (0..layout.num_slots() as u32).prop_map(|slot| vec![slot]);
    let run = (0..layout.num_slots() as u32, 0..2 * layout.slots() as u32)
        .prop_map(move |(slot, len)| (slot..layout.num_slots().min(u64::from(slot + len)) as u32).collect());
    vec(prop_oneof![40 => one, 20 => any, 1 => run], 0..300).prop_map(|lists| lists.concat())
}

fn any_marks() -> impl Strategy<Value = (Layout, Vec<u32>, Vec<u32>)> {
    (MIN_SEGMENT_BITS..=10)
        .prop_map(Layout::new)
        .prop_flat_map(|layout| (Just(layout), any_slots(layout), any_slots(layout)))
}

/// Runs all operations on slots with tags, and compares them with a map.
fn check_as_a_map(layout: Layout, first: &[u32], second: &[u32], ages: Ages) {
    let marked = |all: &[u32]| {
        let (mut slots, mut naive) = (Slots::new(layout, ages), BTreeMap::new());
        for (number, &slot) in all.iter().enumerate() {
            let age = hash64(&(number as u64).to_le_bytes(), 3) as u8 % (1 + ages.most_age);
            let expected = match naive.get(&slot) {
                None => Mark::New,
                Some(&before) if before > age => Mark::Renewed,
                Some(_) => Mark::Same,
            };
            assert_eq!(mark(&mut slots, slot, ages.tag(age)), expected);
            if expected != Mark::Same {
                naive.insert(slot, age);
            }
        }
        check(&slots);
        assert!(aged(&slots).eq(naive.clone()));
        (slots, naive)
    };
    let ((one, naive), (other, others)) = (marked(first), marked(second));
    // A union keeps the younger tags.
    let mut united = naive.clone();
    for (&slot, &age) in &others {
        let own = united.entry(slot).or_insert(age);
        *own = age.min(*own);
    }
    let mut wide = Slots::wide(layout, ages).unwrap();
    [&one, &other].into_iter().for_each(|slots| wide.merge(slots, ages.most_age, 0));
    let union = wide.formed(|_| Ok(())).unwrap();
    check(&union);
    assert_eq!(union.has_slots_of(&one), united == naive);
    assert!(aged(&union).eq(united.clone()));
    // The bits of each span, in this layout and in a coarser one.
    for to in [layout, Layout::new(MIN_SEGMENT_BITS)] {
        for most_age in [0, 2, 4] {
            let mut bits = Slots::wide(to, Ages::PLAIN).unwrap();
            bits.merge(&union, most_age, 0);
            let within = united.iter().filter(|&(_, &age)| age <= most_age);
            let mut expected: Vec<u32> = within.map(|(&slot, _)| layout.fold(slot, to)).collect();
            expected.dedup();
            assert!(listed(&bits).into_iter().map(|(slot, _)| slot).eq(expected));
        }
    }
    let copy = union.try_clone().unwrap();
    assert!(copy.has_slots_of(&union) && listed(&copy) == listed(&union));
    check(&copy);
    if ages.has_tags() {
        let (mut tallied, mut counted) = (BTreeMap::<(usize, u8), u64>::new(), BTreeMap::new());
        union.tally(&mut |segment, tag, slots| *tallied.entry((segment, ages.age(tag))).or_default() += slots);
        united.iter().for_each(|(&slot, &age)| *counted.entry((layout.segment_of(slot), age)).or_default() += 1u64);
        assert_eq!(tallied, counted);
        for most_age in 0..=ages.most_age {
            assert_eq!(union.has_any(most_age), united.values().any(|&age| age <= most_age));
        }
        // What is older than two slices expires.
        let mut left = union;
        left.expire(2, ages);
        united.retain(|_, &mut age| age <= 2);
        check(&left);
        assert!(aged(&left).eq(united));
    }
}

/// The marked slots with the ages of their tags, ascending.
fn aged(slots: &Slots) -> impl Iterator<Item = (u32, u8)> {
    let ages = slots.ages;
    listed(slots).into_iter().map(move |(slot, tag)| (slot, ages.age(tag)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slots_behave_as_a_map((layout, first, second) in any_marks()) {
        [Ages::PLAIN, HALVES, WHOLES].into_iter().for_each(|ages| check_as_a_map(layout, &first, &second, ages));
    }

    /// Windows of other lengths have cells of other widths, and other layouts are folded.
    #[test]
    fn slots_of_different_windows_and_layouts_merge(
        (layout, first, second) in any_marks(),
        to in MIN_SEGMENT_BITS..=10,
        behind in 0u8..5,
    ) {
        let to = Layout::new(to).min(layout);
        let (mut one, mut other) = (Slots::new(to, HALVES), Slots::new(layout, WHOLES));
        first.iter().for_each(|&slot| _ = mark(&mut one, layout.fold(slot, to), HALVES.tag(slot as u8 % 5)));
        second.iter().for_each(|&slot| _ = mark(&mut other, slot, WHOLES.tag(slot as u8 % 5)));
        let mut expected = one.try_clone().unwrap();
        let mut wide = Slots::wide(to, HALVES).unwrap();
        wide.merge(&one, HALVES.most_age, 0);
        wide.merge(&other, HALVES.most_age - behind, behind);
        let merged = wide.formed(|_| Ok(())).unwrap();
        for (slot, age) in aged(&other).filter(|(_, age)| age + behind <= HALVES.most_age) {
            mark(&mut expected, layout.fold(slot, to), HALVES.tag(age + behind));
        }
        prop_assert_eq!(listed(&merged), listed(&expected));
        check(&merged);
    }
}

/// Whatever slots are chosen, in whatever order, the bytes stay within those of the cells of all segments.
#[test]
fn no_choice_of_slots_takes_more_than_all_cells() {
    let plain = (MIN_SEGMENT_BITS..=MAX_SEGMENT_BITS).map(|bits| (bits, Ages::PLAIN));
    let windowed = [8, 12, 14].into_iter().flat_map(|bits| [(bits, HALVES), (bits, WHOLES)]);
    for (bits, ages) in plain.chain(windowed) {
        let layout = Layout::new(bits);
        let (slots, all) = (layout.slots(), layout.num_segments());
        let places = |segment: usize, range: Range<u64>| range.map(move |place| layout.slot_at(segment, place as u16));
        // As many as are still listed in each segment, one more in the last, and then all.
        let mut chosen = Slots::new(layout, ages);
        for segment in (0..all).rev() {
            let listed = most_listed(layout, segment, ages);
            assert!(3 * listed <= slots, "lists are stored as Golomb-Rice code");
            places(segment, 0..listed).for_each(|slot| assert_eq!(mark(&mut chosen, slot, ages.newest), Mark::New));
        }
        assert_eq!((chosen.first, chosen.end), (0, 0));
        check(&chosen);
        let most = most_listed(layout, all - 1, ages);
        places(all - 1, most..most + 1).for_each(|slot| assert_eq!(mark(&mut chosen, slot, 1), Mark::New));
        assert_eq!((chosen.first, usize::from(chosen.end), chosen.num_listed()), (0, all, 0));
        check(&chosen);
        if ages.has_tags() {
            continue;
        }
        // Segments fill from the last to the first: nothing is dropped before the first is full.
        for segment in (0..all).rev() {
            places(segment, 0..slots).for_each(|slot| _ = mark(&mut chosen, slot, 1));
            assert_eq!(usize::from(chosen.first), if segment == 0 { all } else { 0 });
        }
        check(&chosen);
        assert_eq!(chosen.num_bytes(), 0);
    }
}

/// The most bytes of default counters, and of the others in proportion: heap and struct.
#[test]
fn bytes_are_those_of_the_documents() {
    for (segment_bits, most) in [(8, 500), (10, 1500), (11, 2700), (12, 5300), (14, 20_800), (16, 83_500)] {
        let layout = Layout::new(segment_bits);
        let (mut slots, mut largest) = (Slots::new(layout, Ages::PLAIN), 0);
        for number in 0..if cfg!(debug_assertions) { 300_000u64 } else { 10_000_000 } {
            mark(&mut slots, layout.slot_of(hash64(&number.to_le_bytes(), 7)), 1);
            largest = largest.max(slots.num_bytes() + Slots::STRUCT_BYTES);
        }
        assert!(largest <= most && (cfg!(debug_assertions) || largest >= most * 4 / 5), "{layout:?}: {largest}");
    }
}

/// A position is found wherever the others are, also if they are all near one end of the segment.
#[test]
fn positions_in_lists_are_found_however_they_are_spread() {
    for len in [0, 1, 31, 32, 33, 64, 100, 256] {
        for (first, step) in [(0, 1), (4096 - len, 1), (3, 4096 / 260), (1900, 1)] {
            let places: Vec<u16> = (0..len).map(|number| first + number * step).collect();
            for place in 0..4096 {
                assert_eq!(find(&places, place, 12), places.partition_point(|&other| other < place));
            }
        }
    }
}

/// A limit that counts its rejections, as [`SizeLimit::allows`] says.
struct Counting(MaxBytes, Cell<u32>);

impl SizeLimit for Counting {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        self.0.check(held_bytes, more_bytes).inspect_err(|_| self.1.update(|rejections| rejections + 1))
    }

    fn allows(&self, held_bytes: u64, more_bytes: u64) -> bool {
        self.0.allows(held_bytes, more_bytes)
    }
}

proptest! {
    /// Also if a size limit rejects a slot in the middle of a list.
    #[test]
    fn lists_with_tags_are_marked_as_slots_one_by_one((layout, first, second) in any_marks(), spare in 0u64..3000) {
        for ages in [Ages::PLAIN, HALVES, WHOLES] {
            let (mut by_list, mut by_one) = (Slots::new(layout, ages), Slots::new(layout, ages));
            // Some slots have an older tag.
            for &slot in &second[..second.len() / 2] {
                let tag = ages.tag(1.min(ages.most_age));
                prop_assert_eq!(mark(&mut by_list, slot, tag), mark(&mut by_one, slot, tag));
            }
            for list in [&first, &second, &first] {
                for chunk in list.chunks(CHUNK) {
                    let held = own_bytes(ages.has_tags()) + Slots::STRUCT_BYTES + by_one.num_bytes();
                    let limit = Counting(MaxBytes(held + spare), Cell::default());
                    let (mut marks, mut expected) = (Vec::new(), Vec::new());
                    let hashes: Vec<_> = chunk.iter().map(|&slot| layout.first_hash(slot)).collect();
                    let result = by_list.mark_all(&hashes, &limit, |mark| marks.push(mark));
                    let each = |&slot: &u32| by_one.mark(slot, ages.newest, &limit).map(|mark| expected.push(mark));
                    prop_assert_eq!(result, chunk.iter().try_for_each(each));
                    prop_assert_eq!(limit.1.get(), 2 * u32::from(expected.len() < chunk.len()));
                    prop_assert!(marks == expected && by_list.has_slots_of(&by_one));
                }
            }
            check(&by_list);
        }
    }
}

#[test]
fn a_list_of_slots_is_marked_as_one_by_one() {
    let layout = Layout::new(MIN_SEGMENT_BITS);
    let (mut by_list, mut by_one) = (Slots::new(layout, Ages::PLAIN), Slots::new(layout, Ages::PLAIN));
    // Segment 0 fills up in the middle of the third list. Then nothing but lists is left, and the fourth list has slots
    // of the full segment.
    for list in [0..100u32, 90..200, 150..300, 0..310] {
        let marks = mark_all(&mut by_list, list.clone());
        assert_eq!(marks, list.map(|slot| mark(&mut by_one, slot, 1)).collect::<Vec<_>>());
        assert_eq!((by_list.window.as_ref(), listed(&by_list)), (by_one.window.as_ref(), listed(&by_one)));
        check(&by_list);
    }
    let mut full = Slots::new(layout, Ages::PLAIN);
    mark_all(&mut full, 0..256);
    assert_eq!((full.window.len(), mark(&mut full, 7, 1), mark(&mut full, 256, 1)), (0, Mark::Same, Mark::New));
    check(&full);
}
