//! Tests of the memory of windowed counters: the bytes requested from a limit, and the allocations.

use std::cell::RefCell;

use super::*;
use crate::counting::held::members::Members;
use crate::counting::held::ring::Ages;
use crate::counting::held::slots::{Slots, bytes_of_counts};
use crate::counting::layout::{LARGEST_ERRORS, Layout, MIN_SEGMENT_BITS};
use crate::error::Limit;
use crate::hash::hash64;

/// Each window has a number of slices, and the bits of a cell.
const WINDOWS: [(u32, u64); 2] = [(4, 4), (60, 8)];

const WINDOWED: u64 = (size_of::<Counter>() + size_of::<TagRing>()) as u64;

/// A counter with segments of 256 slots.
fn counter(exact_limit: u32, slices: u32) -> Counter {
    let params = Params { exact_bytes: 16_384, ..params(exact_limit, 0.05) };
    Counter::new(params).unwrap().with_window(window(slices, ClockSource::Manual), 0).unwrap()
}

/// The bytes that the slots of a counter take.
fn slots_bytes(counter: &Counter) -> u64 {
    let ages = counter.ring().map_or(Ages::PLAIN, |ring| ring.ages);
    bytes_of_counts(counter.layout(), &counter.counts().unwrap(), ages)
}

/// A limit that allows everything, and records each request: the bytes held, and the bytes to add.
#[derive(Default)]
struct Asked(RefCell<Vec<(u64, u64)>>);

impl SizeLimit for Asked {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        self.0.borrow_mut().push((held_bytes, more_bytes));
        Ok(())
    }
}

fn asked_for(counter: &mut Counter, item: u32) -> (Mark, Vec<(u64, u64)>) {
    let asked = Asked::default();
    let mark = counter.mark(item.to_le_bytes(), &asked).unwrap();
    (mark, asked.0.into_inner())
}

/// A list of members asks for the memory of the first one, then for that of all others. Afterwards the counter takes as
/// much as one that was loaded.
#[test]
fn a_list_asks_for_its_memory_at_once() {
    let numbered = |of: &dyn Fn(u32) -> String| (0..240).map(of).collect::<Vec<_>>();
    for (items, most_asked) in [
        (numbered(&|n| format!("{n:08x}-0123-4567-89ab-{n:012x}")), 2),
        (numbered(&|n| (100_000 + n).to_string()), 2),
        (numbered(&|n| (100_000 + n).to_string())[..3].to_vec(), 2),
        // The same few members again and again.
        (numbered(&|n| (100_000 + n % 7).to_string()), 2),
        (numbered(&|n| format!("user:{n}")), 4),
        (numbered(&|n| format!("person{}@example.com", 240 - n)), 3),
        (numbered(&|n| format!("person{n}@example.com")), 5),
        // The members do not all fit.
        (numbered(&|n| format!("{n:01000}")), 100),
    ] {
        let params = Params { exact_bytes: 16_384, ..params(250, 0.05) };
        let plain = Counter::new(params).unwrap();
        let windowed = plain.try_clone().unwrap().with_window(window(4, ClockSource::Manual), 0).unwrap();
        for mut counter in [plain, windowed] {
            let (asked, mut marks) = (Asked::default(), Vec::new());
            counter.add_each(items.iter().map(String::as_bytes), &asked, |mark| marks.push(mark)).unwrap();
            let asked = asked.0.into_inner();
            assert!(asked.len() <= most_asked, "{} for {:?}: {asked:?}", asked.len(), items[0]);
            assert_eq!(counter.num_bytes(), reloaded(&counter).num_bytes(), "{:?}", items[0]);
            let distinct = items.iter().enumerate().map(|(at, item)| !items[..at].contains(item));
            if counter.is_exact() {
                assert!(marks.iter().map(|&mark| mark == Mark::New).eq(distinct));
                assert!(items.iter().all(|item| counter.contains(item).unwrap()));
            }
        }
    }
}

/// If the limit has no room for what a list might need, it need not have: the list may repeat few members.
#[test]
fn a_list_of_repeated_members_asks_for_them_once() {
    let items: Vec<_> = (0..240).map(|number| format!("member {}", number % 7)).collect();
    let mut one_by_one = Counter::new(params(250, 0.05)).unwrap();
    items.iter().for_each(|item| assert!(one_by_one.add(item, &Unlimited).is_ok()));
    let mut counter = Counter::new(params(250, 0.05)).unwrap();
    let limit = MaxBytes(one_by_one.num_bytes());
    counter.add_each(items.iter().map(String::as_bytes), &limit, |_| ()).unwrap();
    assert_eq!((counter.count(), counter.num_bytes()), (7, one_by_one.num_bytes()));
}

/// A slot that needs memory asks for it: for a longer list what it grows by, for a larger window all of it.
#[test]
fn slots_ask_for_the_memory_that_they_take() {
    let plain = Counter::new(params(0, 0.05)).unwrap();
    let windowed = WINDOWS.map(|(slices, cell_bits)| (counter(0, slices), slices, cell_bits));
    for (mut counter, slices, cell_bits) in windowed.into_iter().chain([(plain, 0, 1)]) {
        let own = own_bytes(slices > 0);
        let structs = own + Slots::STRUCT_BYTES;
        let (mut lists, mut windows) = (0, 0);
        for item in 0..6000 {
            let before = counter.num_bytes();
            let (mark, asked) = asked_for(&mut counter, item);
            let after = counter.num_bytes();
            assert_eq!(after, own + slots_bytes(&counter), "{item} of {slices} slices");
            match asked[..] {
                // Without a window, a segment that is full is dropped.
                [] => assert!(after == before || slices == 0 && after < before, "{mark:?} of {item}"),
                [(held, more)] if held == structs && (before > structs || more > 16) => {
                    assert_eq!(held + more, after);
                    windows += 1;
                }
                [(held, more)] => {
                    assert_eq!((held, held + more), (before, after));
                    lists += 1;
                }
                _ => panic!("{asked:?}"),
            }
        }
        assert!(lists > 10 && windows > 3, "{lists} lists and {windows} windows");
        // All slots of the window have cells.
        assert!(slices == 0 || counter.num_bytes() > 256 * cell_bits / 8 * windows);
    }
}

#[test]
fn promotion_asks_for_the_slots_of_all_members() {
    for (slices, _) in WINDOWS {
        for members in [10, 300, 1000] {
            let mut counter = counter(members, slices);
            (0..members).for_each(|item| assert_eq!(asked_for(&mut counter, item).0, Mark::New));
            assert!(counter.is_exact());
            let mut estimating = counter.try_clone().unwrap();
            asked_for(&mut estimating, u32::MAX);
            let limit_bytes = WINDOWED + slots_bytes(&estimating) - 1;
            let rejected = counter.mark([255; 4], &MaxBytes(limit_bytes));
            assert!(
                matches!(rejected, Err(Error::TooLarge { limit_bytes: asked, limit: Limit::Value, .. })
                    if asked == limit_bytes),
                "{rejected:?}"
            );
            assert!(counter.is_exact());
        }
    }
}

/// What has expired takes no memory.
#[test]
fn memory_follows_the_live_members() {
    for (slices, _) in WINDOWS {
        let mut counter = counter(0, slices);
        (0..20_000u32).for_each(|item| drop(counter.mark(item.to_le_bytes(), &Unlimited)));
        let most = counter.num_bytes();
        counter.advance(u64::from(slices));
        (0..40u32).for_each(|item| drop(counter.mark(item.to_le_bytes(), &Unlimited)));
        assert!(counter.num_bytes() <= most + 16);
        counter.advance(u64::from(slices) + 1);
        let mut few = self::counter(0, slices);
        (0..40u32).for_each(|item| drop(few.mark(item.to_le_bytes(), &Unlimited)));
        assert_eq!((counter.num_bytes(), counter.set_bits()), (few.num_bytes(), few.set_bits()));
        assert!(20 * counter.num_bytes() < most + 20 * WINDOWED + 20 * Slots::STRUCT_BYTES + 4000);
    }
}

#[test]
fn the_form_bounds_the_payload_and_its_memory() {
    let params = Params { exact_bytes: 1000, ..params(100, 0.05) };
    for (slices, cell_bits) in WINDOWS {
        let ring = Some(TagRing::new(window(slices, ClockSource::Manual), 0));
        let form = |counts| CounterForm { params, lower_bound: 0, counts, ring };
        let mut counts = SegmentCounts::default();
        [256, 100, 16].into_iter().enumerate().for_each(|(segment, count)| counts.add(segment, count));
        let bytes = 32 + 12 + [256u64, 100, 16].map(|count| count * cell_bits / 8).iter().sum::<u64>();
        // Two segments are in the window, and 16 slots in a list.
        let slots = Slots::STRUCT_BYTES + 2 * 256 * cell_bits / 8 + 48;
        // A hundred members take a tag and a header each, and seven of them two bytes more for longer headers. With a
        // front of 36 bytes these are 1250 bytes.
        for (counts, bytes, taken) in [
            (None, 0, Members::bytes_of_read(0, params.room())),
            (None, 7, 7),
            (None, 8, 8 + 48),
            (None, 1250, 1250 + 7 * 48),
            (Some(SegmentCounts::default()), 0, Slots::STRUCT_BYTES),
            (Some(counts), 10, slots),
            (Some(counts), bytes, slots),
        ] {
            let asked = Asked::default();
            assert_eq!(form(counts).check_bytes(bytes, &asked), Ok(()), "{bytes}");
            assert_eq!(asked.0.into_inner(), [(WINDOWED, taken)], "{bytes}");
        }
        for (counts, bytes, most) in
            [(None, 1251, 1250), (Some(SegmentCounts::default()), 1, 0), (Some(counts), bytes + 1, bytes)]
        {
            let asked = Asked::default();
            let rejected = form(counts).check_bytes(bytes, &asked);
            assert_eq!(rejected, Err(Error::corrupt("payload length", format!("at most {most} bytes"), bytes)));
            assert!(asked.0.into_inner().is_empty());
        }
    }
}

#[test]
fn a_member_is_found_whatever_its_length() {
    let params = Params { exact_bytes: 1 << 20, ..params(20, 0.05) };
    let mut counter = Counter::new(params).unwrap().with_window(window(4, ClockSource::Manual), 0).unwrap();
    let mut sizes = Vec::new();
    counter.heap_layouts(&mut |layout| sizes.push(layout));
    // Without members only the structs are allocated.
    assert!(
        sizes.iter().filter(|layout| **layout == std::alloc::Layout::new::<TagRing>()).count() == 1 && sizes.len() <= 2
    );
    let items = [0, 1, 127, 128, 129, 256, 16_383, 16_384, 70_000].map(|length| vec![7u8; length]);
    for item in &items {
        let (asked, held) = (Asked::default(), counter.num_bytes());
        assert_eq!(counter.mark(item, &asked), Ok(Mark::New));
        let asked = asked.0.into_inner();
        // A `Vec` doubles when it grows.
        assert!(asked.iter().all(|&(before, more)| before == held && 2 * (held + more) >= counter.num_bytes()));
        assert!(asked.len() == 1 || asked.is_empty() && counter.num_bytes() == held);
        assert_eq!(counter.mark(item, &MaxBytes(0)), Ok(Mark::Same));
    }
    for mut counter in [reloaded(&counter), counter] {
        assert!(counter.members().unwrap().eq(&items));
        let other = [&[7; 127][..], b"2"].concat();
        assert_eq!(counter.contains(&other), Ok(false));
        assert_eq!(counter.contains(vec![2; 128]), Ok(false));
        counter.advance(1);
        for item in &items {
            assert_eq!((counter.contains(item), counter.mark(item, &MaxBytes(0))), (Ok(true), Ok(Mark::Renewed)));
        }
    }
}

/// The size class of allocators (four per doubling) that holds `bytes`.
fn class_of(bytes: u64) -> u64 {
    bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2))
}

/// Checks the bytes of counters with the same members, in descending order of their error rates: one with a larger rate
/// takes no more than any other, but for one size class.
fn check_ascending(bytes: &[u64], members: u64, slices: u32) {
    let mut fewest = u64::MAX / 4;
    for &bytes_of_one in bytes.iter().rev() {
        let class_above = class_of(class_of(fewest) + 1);
        assert!(bytes_of_one <= class_above, "{members} members in {slices} slices: {bytes:?}");
        fewest = fewest.min(bytes_of_one);
    }
}

/// Numbers of members from 10 to `most`, each larger by `step` than the one before.
fn sizes(most: u64, step: f64) -> impl Iterator<Item = u64> {
    let grow = move |&size: &u64| Some((size as f64 * step).ceil() as u64).filter(|&size| size <= most);
    std::iter::successors(Some(10), grow)
}

/// A counter takes what its numbers of slots say, as the test above shows, so they are enough here.
#[test]
fn a_larger_error_rate_takes_no_more_bytes() {
    let of_layout = |larger| (Layout::new(MIN_SEGMENT_BITS + larger as u32), vec![0u64; 0], SegmentCounts::default());
    let (mut all, mut added): ([_; LARGEST_ERRORS.len()], _) = (std::array::from_fn(of_layout), 0);
    all.iter_mut().for_each(|(layout, bits, _)| bits.resize(layout.num_slots() as usize / 64, 0));
    for members in sizes(1_000_000, 1.1) {
        for hash in (added..members).map(|number: u64| hash64(&number.to_le_bytes(), 7)) {
            for (layout, bits, counts) in &mut all {
                let slot = layout.slot_of(hash);
                counts.add(layout.segment_of(slot), u64::from(crate::bits::set(bits, slot as usize)));
            }
        }
        added = members;
        for (slices, ages) in
            [4, 12, 24, 100].map(|slices| (slices, TagRing::new(window(slices, ClockSource::Manual), 0).ages))
        {
            let bytes = all.each_ref().map(|(layout, _, counts)| bytes_of_counts(*layout, counts, ages));
            check_ascending(&bytes, members, slices);
        }
    }
}
