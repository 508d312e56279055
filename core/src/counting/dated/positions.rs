//! Few slots of a windowed counter, each with the tag of the slice that it was last touched in.
//!
//! Slots that share their upper bits are in one sorted list, so that a new one moves few others.

use std::alloc::Layout as Memory;

use super::ring::Ages;
use crate::counting::layout::{Layout, SegmentCounts, Slot};
use crate::error::Error;
use crate::size_limit::{try_to_vec, try_with_capacity};

/// Bytes of a position and its tag in a payload.
pub(in crate::counting) const RECORD_BYTES: usize = size_of::<u32>() + 1;

/// Slots whose positions are in one list, as a power of two.
const LIST_BITS: u32 = 12;
/// Bytes that an entry takes at most: lists may be half empty.
const MOST_ENTRY_BYTES: u64 = 2 * size_of::<Entry>() as u64;
/// Entries that a list has room for once it has one.
const LEAST_ENTRIES: usize = 4;
/// Bytes that a list takes at most beside: its place, and the least that a vector allocates.
const LIST_BYTES: u64 = (size_of::<Vec<Entry>>() + LEAST_ENTRIES * size_of::<Entry>()) as u64;

/// The lower bits of a position, little-endian, and its tag.
type Entry = [u8; 3];

fn entry(position: u32, tag: u8) -> Entry {
    let low = (position & ((1 << LIST_BITS) - 1)) as u16;
    let [first, second] = low.to_le_bytes();
    [first, second, tag]
}

fn low(entry: &Entry) -> u32 {
    u16::from_le_bytes([entry[0], entry[1]]).into()
}

/// Where a position is in its list, or belongs.
fn find(list: &[Entry], position: u32) -> Result<usize, usize> {
    list.binary_search_by_key(&low(&entry(position, 0)), low)
}

/// Positions with tags.
#[derive(Debug)]
pub(crate) struct DatedPositions {
    lists: Vec<Vec<Entry>>,
    len: u64,
}

fn num_lists(layout: Layout) -> u64 {
    layout.num_bits().div_ceil(1 << LIST_BITS)
}

/// The most heap bytes of so many positions.
pub(super) fn heap_bytes(layout: Layout, len: u64) -> u64 {
    num_lists(layout) * LIST_BYTES + len * MOST_ENTRY_BYTES
}

impl DatedPositions {
    /// None.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn new(layout: Layout) -> Result<Self, Error> {
        let mut lists = try_with_capacity(num_lists(layout) as usize)?;
        lists.resize_with(num_lists(layout) as usize, Vec::new);
        Ok(DatedPositions { lists, len: 0 })
    }

    /// How many they are.
    pub(in crate::counting) fn len(&self) -> u64 {
        self.len
    }

    /// All of them with their tags, ascending.
    pub(in crate::counting) fn iter(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.iter_from(0)
    }

    /// Those from the one numbered `rank` on.
    fn iter_from(&self, rank: u64) -> impl Iterator<Item = (u32, u8)> + '_ {
        let mut skipped = rank as usize;
        (0u32..).zip(&self.lists).flat_map(move |(upper, list)| {
            let from = skipped.min(list.len());
            skipped -= from;
            list[from..].iter().map(move |entry| (upper << LIST_BITS | low(entry), entry[2]))
        })
    }

    /// The tag of a position, to change it.
    pub(super) fn tag_mut(&mut self, position: u32) -> Option<&mut u8> {
        let list = &mut self.lists[(position >> LIST_BITS) as usize];
        find(list, position).ok().map(|at| &mut list[at][2])
    }

    /// Inserts a position that there is not yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, position: u32, tag: u8) -> Result<(), Error> {
        let list = &mut self.lists[(position >> LIST_BITS) as usize];
        let at = find(list, position).unwrap_or_else(|at| at);
        list.try_reserve(1).map_err(|_| Error::OutOfMemory { needed_bytes: MOST_ENTRY_BYTES })?;
        list.insert(at, entry(position, tag));
        self.len += 1;
        Ok(())
    }

    /// Keeps the positions whose tags `is_kept` says.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u8) -> bool) {
        self.len = 0;
        for list in &mut self.lists {
            list.retain(|entry| is_kept(entry[2]));
            // What is told of the bytes counts on lists that are half full. Without memory for a smaller one it stays.
            if list.capacity() > (2 * list.len()).max(LEAST_ENTRIES)
                && let Ok(smaller) = try_to_vec(list)
            {
                *list = smaller;
            } else if list.is_empty() {
                *list = Vec::new();
            }
            self.len += list.len() as u64;
        }
    }

    /// How many of each segment there are whose tags `is_meant` says.
    pub(super) fn counts(&self, layout: Layout, is_meant: impl Fn(u8) -> bool) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        let meant = self.iter().filter(|&(_, tag)| is_meant(tag));
        meant.for_each(|(position, _)| counts.increment(layout.segment_of(position.into())));
        counts
    }

    /// Appends `len` records from the one numbered `rank` on.
    pub(in crate::counting) fn append_to(&self, bytes: &mut Vec<u8>, rank: u64, len: usize) {
        for (position, tag) in self.iter_from(rank).take(len) {
            let [a, b, c, d] = position.to_le_bytes();
            bytes.extend_from_slice(&[a, b, c, d, tag]);
        }
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(Memory)) {
        let mut visit = |layout: Result<Memory, _>| visit(layout.unwrap_or(Memory::new::<u64>()));
        visit(Memory::array::<Vec<Entry>>(self.lists.capacity()));
        for list in self.lists.iter().filter(|list| list.capacity() > 0) {
            visit(Memory::array::<Entry>(list.capacity()));
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let mut lists = try_with_capacity(self.lists.len())?;
        for list in &self.lists {
            lists.push(try_to_vec(list)?);
        }
        Ok(DatedPositions { lists, len: self.len })
    }
}

/// Calls `visit` with each slot and its tag of what [`DatedPositions::append_to`] gives of all.
///
/// # Errors
/// [`Error::Corrupt`] when a position is beyond the bitmap or not above the one before it, or a slice is not alive; those
/// of `visit`.
pub(super) fn for_each_record(
    bytes: &[u8],
    layout: Layout,
    ages: Ages,
    most_age: u8,
    mut visit: impl FnMut(Slot, u8) -> Result<(), Error>,
) -> Result<(), Error> {
    let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
    if !rest.is_empty() {
        return Err(Error::corrupt("position bytes", "a multiple of 5", bytes.len()));
    }
    let mut last = None;
    for &[a, b, c, d, tag] in records {
        let position = u32::from_le_bytes([a, b, c, d]);
        let index = u64::from(position);
        if index >= layout.num_bits() {
            return Err(Error::corrupt("position", format_args!("below {}", layout.num_bits()), position));
        }
        if last.is_some_and(|last| last >= position) {
            return Err(Error::corrupt("position", "above the one before it", position));
        }
        if !ages.has(tag) || !ages.is_within(tag, most_age) {
            return Err(Error::corrupt("tag", "that of a living slice", tag));
        }
        visit(Slot { index, segment: layout.segment_of(index) }, tag)?;
        last = Some(position);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_many_takes_no_more_than_is_told() {
        let layout = Layout::new(14, 8).expect("a layout");
        let mut positions = DatedPositions::new(layout).expect("memory");
        for position in 0..3000 {
            positions.insert(position, u8::from(position % 100 != 0)).expect("memory");
        }
        for (kept, len) in [(0, 30), (7, 0)] {
            positions.retain(|tag| tag == kept);
            let mut bytes = 0;
            positions.heap_layouts(&mut |layout| bytes += layout.size() as u64);
            assert_eq!(positions.len(), len);
            assert!(bytes <= heap_bytes(layout, len), "{bytes} bytes of {len}");
        }
    }

    #[test]
    fn lists_are_as_long_as_told() {
        // Six lists, of which the first two have positions.
        let layout = Layout::new(14, 8).expect("a layout");
        let mut positions = DatedPositions::new(layout).expect("memory");
        let sizes = |positions: &DatedPositions| {
            let mut sizes = Vec::new();
            positions.heap_layouts(&mut |layout| sizes.push((layout.size(), layout.align())));
            sizes
        };
        let lists = (6 * size_of::<Vec<Entry>>(), 8);
        assert_eq!(sizes(&positions), [lists]);
        let tagged = (0..8).zip(1..).chain((5000..5003).zip(101..));
        tagged.for_each(|(position, tag)| positions.insert(position, tag).expect("memory"));
        assert_eq!(sizes(&positions), [lists, (8 * 3, 1), (4 * 3, 1)]);
        assert_eq!(heap_bytes(layout, 11), 6 * 36 + 11 * 6);
        // Half full, a list stays as long as it is, and one of four entries always does.
        positions.retain(|tag| tag <= 4 || tag == 102);
        assert_eq!((positions.len(), sizes(&positions)), (5, vec![lists, (8 * 3, 1), (4 * 3, 1)]));
        positions.retain(|tag| tag <= 3);
        assert_eq!((positions.len(), sizes(&positions)), (3, vec![lists, (3 * 3, 1)]));
        assert_eq!(positions.iter().collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)]);
        positions.retain(|_| false);
        assert_eq!((positions.len(), sizes(&positions)), (0, vec![lists]));
    }

    #[test]
    fn records_that_cannot_be_are_named() {
        // 6912 slots; of 15 tags those from 1 to 5 are alive.
        let layout = Layout::new(9, 8).expect("a layout");
        let ages = Ages { newest: 5, modulus: 15 };
        let read = |records: &[(u32, u8)], more: &[u8]| {
            let mut bytes: Vec<u8> = Vec::new();
            for (position, tag) in records {
                bytes.extend_from_slice(&position.to_le_bytes());
                bytes.push(*tag);
            }
            bytes.extend_from_slice(more);
            let mut found = Vec::new();
            for_each_record(&bytes, layout, ages, 4, |slot, tag| {
                assert_eq!(slot.segment, layout.segment_of(slot.index));
                found.push((slot.index as u32, tag));
                Ok(())
            })
            .map(|()| found)
        };
        let good = [(0, 1), (255, 5), (256, 3), (6911, 2)];
        assert_eq!(read(&good, b""), Ok(good.to_vec()));
        assert_eq!(read(&good, b"123"), Err(Error::corrupt("position bytes", "a multiple of 5", 23)));
        let beyond = Err(Error::corrupt("position", "below 6912", 6912));
        assert_eq!(read(&[(7, 1), (6912, 1)], b""), beyond);
        for again in [7, 6] {
            let not_above = Err(Error::corrupt("position", "above the one before it", again));
            assert_eq!(read(&[(7, 1), (again, 1)], b""), not_above);
        }
        for tag in [0, 6, 15, 16, 255] {
            let dead = Err(Error::corrupt("tag", "that of a living slice", tag));
            assert_eq!(read(&[(7, 1), (8, tag)], b""), dead);
        }
    }
}
