//! Tests of the memory of windowed counters: the bytes requested from a limit, and the allocations.

use std::cell::RefCell;

use super::*;
use crate::counting::held::bitmap::Bitmap;
use crate::counting::held::members::Members;
use crate::counting::held::positions;
use crate::counting::layout::SegmentCounts;
use crate::counting::windowed_set::WindowedSet;
use crate::error::Limit;

/// Each window has a number of slices, the bytes of its cells, and the most positions that are stored, five bytes each.
const WINDOWS: [(u32, u64, u64); 2] = [(4, 3968, 396), (60, 7936, 793)];

const WINDOWED: u64 = Counter::WINDOWED_BYTES;

/// Bytes of the struct of a bitmap.
const BITMAP: u64 = Bitmap::<u8>::STRUCT_BYTES;

/// Bytes of the set-slot counts of all segments.
const COUNTS: u64 = size_of::<SegmentCounts>() as u64;

/// The most heap bytes of `len` positions.
fn sparse(len: u64) -> u64 {
    positions::heap_bytes::<u8>(layout(), len)
}

/// A layout with 7936 slots, whose positions lie in one list.
fn layout() -> Layout {
    Layout::new(11, 8).unwrap()
}

fn counter(exact_limit: u32, slices: u32) -> Counter {
    let params = Params { exact_bytes: 16_384, ..params(exact_limit, 100) };
    Counter::with_layout(params, layout()).unwrap().with_window(window(slices, ClockSource::Manual), 0).unwrap()
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

#[test]
fn each_new_slot_asks_for_its_entry_and_the_first_too_many_for_all_cells() {
    for (slices, cells, most) in WINDOWS {
        let mut counter = counter(0, slices);
        for item in 0..6000 {
            let (before, len) = (counter.representation(), counter.set_bits());
            let (mark, asked) = asked_for(&mut counter, item);
            let expected = match before {
                Representation::Sparse if mark == Mark::New && len < most => {
                    vec![(WINDOWED + BITMAP + sparse(len), sparse(len + 1) - sparse(len))]
                }
                Representation::Sparse if mark == Mark::New => vec![(WINDOWED + BITMAP, cells + COUNTS)],
                _ => vec![],
            };
            assert_eq!(asked, expected, "slot {len} of {slices} slices");
            let is_sparse = counter.representation() == Representation::Sparse;
            assert_eq!(is_sparse, counter.set_bits() <= most);
            let bytes = if is_sparse { sparse(counter.set_bits()) } else { cells + COUNTS };
            assert_eq!(counter.num_bytes(), WINDOWED + BITMAP + bytes);
        }
        assert!(counter.set_bits() > most);
    }
}

#[test]
fn the_member_that_is_too_many_asks_for_the_slots_of_all() {
    for (slices, cells, most) in WINDOWS {
        for members in [10, most as u32 - 1, 1000] {
            let mut counter = counter(members, slices);
            (0..members).for_each(|item| assert_eq!(asked_for(&mut counter, item).0, Mark::New));
            assert!(counter.is_exact());
            // Several members may share a slot, so the slots are counted.
            let mut estimating = counter.try_clone().unwrap();
            asked_for(&mut estimating, u32::MAX);
            let slots = estimating.set_bits();
            let bytes = BITMAP + if slots <= most { sparse(slots) } else { cells + COUNTS };
            let (needed_bytes, limit_bytes) = (WINDOWED + bytes, WINDOWED + bytes - 1);
            let rejected = counter.mark([255; 4], &MaxBytes(limit_bytes));
            assert_eq!(rejected, Err(Error::TooLarge { needed_bytes, limit_bytes, limit: Limit::Value }));
            assert!(counter.is_exact());
            assert_eq!(asked_for(&mut counter, u32::MAX), (Mark::New, vec![(WINDOWED, bytes)]));
            let is_sparse = counter.representation() == Representation::Sparse;
            assert_eq!((is_sparse, counter.set_bits()), (slots <= most, slots));
        }
    }
}

/// A mover that copies buffers, and records their sizes in bytes.
#[derive(Default)]
struct Moved(RefCell<Vec<usize>>);

impl Mover for Moved {
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        self.0.borrow_mut().push(size_of_val(&*buffer));
        buffer.into_iter().collect()
    }
}

#[test]
fn the_large_buffer_is_handed_over() {
    for (slices, cells, most) in WINDOWS {
        for (exact_limit, items) in [(10, 10), (3000, 3000), (0, most as u32 / 2), (10, 6000)] {
            let mut counter = counter(exact_limit, slices);
            (0..items).for_each(|item| assert!(counter.mark(item.to_le_bytes(), &Unlimited).is_ok()));
            let (before, moved) = (stored(&counter), Moved::default());
            assert!(counter.relocate(0, &moved));
            assert!(!counter.relocate(1, &moved));
            let moved = moved.0.into_inner();
            match counter.representation() {
                // The buffer of the arena, including the room for later members.
                Representation::Exact => {
                    let mut sizes = Vec::new();
                    counter.heap_layouts(&mut |layout| sizes.push(layout.size()));
                    assert!(moved.len() == 1 && sizes.contains(&moved[0]) && moved[0] >= before.4.len());
                }
                Representation::Sparse => assert!(moved.is_empty()),
                Representation::Dense => assert_eq!(moved, [cells as usize]),
            }
            assert_eq!(stored(&counter), before);
        }
    }
}

#[test]
fn a_payload_is_as_long_as_its_form_may_be_and_takes_what_it_says() {
    use Representation::{Dense, Exact, Sparse};
    let params = Params { exact_bytes: 1000, ..params(100, 100) };
    for (slices, cells, most) in WINDOWS {
        let window = Some((window(slices, ClockSource::Manual), 0, 0));
        let form = |representation| CounterForm { params, layout: layout(), lower_bound: 0, representation, window };
        // A hundred members take a tag and a length each, and seven of them two bytes more for longer lengths: 1214
        // bytes.
        for (representation, bytes, taken) in [
            (Exact, 0, Members::<u8>::bytes_of_read(0, params.room())),
            (Exact, 11, 11),
            (Exact, 12, 12 + 48),
            (Exact, 1214, 1214 + 7 * 48),
            (Sparse, 0, BITMAP),
            (Sparse, 50, BITMAP + sparse(10)),
            (Sparse, 5 * most, BITMAP + sparse(most)),
            (Dense, cells, BITMAP + cells + COUNTS),
        ] {
            let asked = Asked::default();
            assert_eq!(form(representation).check_bytes(bytes, &asked), Ok(()), "{representation} of {bytes}");
            assert_eq!(asked.0.into_inner(), [(WINDOWED, taken)], "{representation} of {bytes}");
        }
        let next = (cells / 2 / 5 + 1) * 5;
        for (representation, bytes, most_bytes) in [
            (Exact, 1215, 1214),
            (Sparse, 49, cells / 2),
            (Sparse, next, cells / 2),
            (Sparse, next + 1, cells / 2),
            (Dense, cells - 1, cells),
            (Dense, cells + 1, cells),
            (Dense, 0, cells),
        ] {
            let asked = Asked::default();
            let rejected = form(representation).check_bytes(bytes, &asked);
            let expected = Error::corrupt("payload length", format!("at most {most_bytes} bytes"), bytes);
            assert_eq!(rejected, Err(expected));
            assert!(asked.0.into_inner().is_empty());
        }
    }
}

#[test]
fn a_member_is_found_whatever_its_length() {
    let params = Params { exact_bytes: 1 << 20, ..params(20, 100) };
    let mut counter = Counter::new(params).unwrap().with_window(window(4, ClockSource::Manual), 0).unwrap();
    let mut sizes = Vec::new();
    counter.heap_layouts(&mut |layout| sizes.push(layout));
    // Without members only the structs are allocated.
    assert!(
        sizes.iter().filter(|layout| **layout == std::alloc::Layout::new::<WindowedSet>()).count() == 1
            && sizes.len() <= 2
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
