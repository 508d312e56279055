//! How what was seen is held: as members, as few slots or as all of them, each with the slice in which it last was.

use super::cells::{self, DatedCells};
use super::members::DatedMembers;
use super::positions::{self, DatedPositions};
use super::ring::{Ages, Ring};
use crate::counting::layout::{Layout, Slot};
use crate::counting::params::Plan;
use crate::error::Error;
use crate::window::Touch;

/// How what was seen is held.
#[derive(Debug)]
pub(in crate::counting) enum Seen {
    /// Members.
    Exact(DatedMembers),
    /// Some slots.
    Sparse(DatedPositions),
    /// All slots.
    Dense(DatedCells),
}

/// Heap bytes of the cells of a layout.
pub(super) fn dense_bytes(layout: Layout, ring: &Ring) -> u64 {
    cells::num_bytes(layout, ring.has_halves())
}

/// Are lists the better way to hold so many positions? They are up to half of what cells take.
pub(super) fn sparse_fits(layout: Layout, ring: &Ring, len: u64) -> bool {
    positions::heap_bytes(layout, len) <= dense_bytes(layout, ring) / 2
}

/// The most heap bytes that so many positions take, held as they will be.
pub(in crate::counting) fn bytes_of_slots(layout: Layout, ring: &Ring, len: u64) -> u64 {
    if sparse_fits(layout, ring, len) { positions::heap_bytes(layout, len) } else { dense_bytes(layout, ring) }
}

impl Seen {
    /// Nothing.
    pub(super) fn none(plan: &Plan) -> Result<Self, Error> {
        if plan.params.exact_limit > 0 {
            return Ok(Seen::Exact(DatedMembers::new()));
        }
        Ok(Seen::Sparse(DatedPositions::new(plan.layout)?))
    }

    /// No slots, with room for at least so many.
    pub(super) fn of_slots(layout: Layout, ring: &Ring, len: u64) -> Result<Self, Error> {
        Ok(if sparse_fits(layout, ring, len) {
            Seen::Sparse(DatedPositions::new(layout)?)
        } else {
            Seen::Dense(DatedCells::new(layout, ring.has_halves())?)
        })
    }

    /// Notes a slot with a tag, if that is younger than the one it has.
    pub(super) fn note(&mut self, slot: Slot, tag: u8, layout: Layout, ring: &Ring) -> Result<Touch, Error> {
        let ages = ring.ages();
        let position = slot.index as u32;
        match self {
            Seen::Exact(_) => return Ok(Touch::Same),
            Seen::Dense(cells) => {
                let before = cells.tag(slot.index);
                if before != 0 && ages.age(before) <= ages.age(tag) {
                    return Ok(Touch::Same);
                }
                cells.replace(slot, tag);
                return Ok(if before == 0 { Touch::New } else { Touch::Renewed });
            }
            Seen::Sparse(positions) => {
                if let Some(before) = positions.tag_mut(position) {
                    return Ok(renew(before, tag, ages));
                }
                if sparse_fits(layout, ring, positions.len() + 1) {
                    positions.insert(position, tag)?;
                    return Ok(Touch::New);
                }
            }
        }
        let mut cells = DatedCells::new(layout, ring.has_halves())?;
        if let Seen::Sparse(positions) = self {
            positions.iter().for_each(|(position, tag)| {
                let index = u64::from(position);
                cells.replace(Slot { index, segment: layout.segment_of(index) }, tag);
            });
        }
        cells.replace(slot, tag);
        *self = Seen::Dense(cells);
        Ok(Touch::New)
    }
}

/// Puts a tag over an older one.
pub(super) fn renew(before: &mut u8, tag: u8, ages: Ages) -> Touch {
    if ages.age(*before) <= ages.age(tag) {
        return Touch::Same;
    }
    *before = tag;
    Touch::Renewed
}

#[cfg(test)]
mod tests {
    use super::super::ring::MOST_SLICES;
    use super::*;

    use crate::window::{Pace, Window};

    #[test]
    fn a_slot_has_the_youngest_of_its_slices() {
        let layout = Layout::new(11, 8).unwrap();
        for slices in [4, 60] {
            let ring = Ring::new(Window::new(600, slices, MOST_SLICES, Pace::Clock).unwrap(), 1000);
            let ages = ring.ages();
            for of_all in [false, true] {
                let mut seen = Seen::of_slots(layout, &ring, if of_all { 1 << 20 } else { 0 }).unwrap();
                assert_eq!(matches!(seen, Seen::Dense(_)), of_all);
                let slot = Slot { index: 5000, segment: layout.segment_of(5000) };
                let mut note = |age| seen.note(slot, ages.tag(age), layout, &ring);
                // From the third slice back on, younger and younger.
                for (age, touch) in [
                    (3, Touch::New),
                    (3, Touch::Same),
                    (4, Touch::Same),
                    (3, Touch::Same),
                    (2, Touch::Renewed),
                    (3, Touch::Same),
                    (0, Touch::Renewed),
                    (0, Touch::Same),
                    (1, Touch::Same),
                ] {
                    assert_eq!(note(age), Ok(touch), "{age}");
                }
                let tag = match &mut seen {
                    Seen::Dense(cells) => cells.tag(5000),
                    Seen::Sparse(positions) => *positions.tag_mut(5000).unwrap(),
                    Seen::Exact(_) => 0,
                };
                assert_eq!(ages.age(tag), 0);
            }
        }
    }

    #[test]
    fn the_tag_of_the_newest_slice_goes_over_any() {
        assert_eq!([0, 3, 7].map(|before| Touch::over(before, 7)), [Touch::New, Touch::Renewed, Touch::Same]);
    }

    #[test]
    fn slots_that_become_cells_keep_their_slices() {
        let layout = Layout::new(11, 8).unwrap();
        let ring = Ring::new(Window::new(600, 4, MOST_SLICES, Pace::Clock).unwrap(), 1000);
        let mut seen = Seen::of_slots(layout, &ring, 0).unwrap();
        let tag = |index: u64| ring.ages().tag((index % 5) as u8);
        for index in 0..319u64 {
            assert!(matches!(seen, Seen::Sparse(_)));
            let slot = Slot { index: 7 * index, segment: layout.segment_of(7 * index) };
            assert_eq!(seen.note(slot, tag(7 * index), layout, &ring), Ok(Touch::New));
        }
        // 318 positions take half of the bytes of the cells at most.
        let Seen::Dense(cells) = &seen else { panic!("{seen:?}") };
        let mut found = Vec::new();
        cells.for_each(&mut |index, tag| found.push((index, tag)));
        assert!(found.into_iter().eq((0..319).map(|index| (7 * index, tag(7 * index)))));
        assert_eq!(cells.counts().total(), 319);
    }
}
