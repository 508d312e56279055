//! Few slots of a bitmap, by their positions, each with its tag.
//!
//! Positions that share their upper bits are in one sorted list of their lower 16, so that a new one moves few others
//! and takes two bytes and its tag. Lists grow by a sixteenth.

use std::alloc::Layout as Memory;

use crate::counting::held::tag::Tag;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::error::Error;
use crate::size_limit::{try_to_vec, try_with_capacity};
use crate::window::Touch;

/// Bytes of a stored position.
pub(in crate::counting) const POSITION_BYTES: usize = size_of::<u32>();
/// Bits of a position that its list keeps.
const LOWER_BITS: u32 = u16::BITS;
/// Entries that a list grows by at least.
const LEAST_GROWTH: usize = 4;

/// The lower bits of a position, and its tag.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed)]
struct Record<T: Tag> {
    lower: u16,
    tag: T,
}

/// Entries by which a list of `len` grows at most when it is full.
fn growth(len: usize) -> usize {
    (len / 16).max(LEAST_GROWTH)
}

/// Positions with tags.
#[derive(Debug)]
pub(crate) struct Positions<T: Tag = ()> {
    /// A list for every 65,536 slots, or nothing where there are no positions.
    lists: Box<[Vec<Record<T>>]>,
    len: u64,
}

fn num_lists(layout: Layout) -> u64 {
    layout.num_bits().div_ceil(1 << LOWER_BITS)
}

/// The most heap bytes of `len` positions.
pub(in crate::counting) fn heap_bytes<T: Tag>(layout: Layout, len: u64) -> u64 {
    let lists = if len > 0 { num_lists(layout) } else { 0 };
    let most_entries = len + len / 16 + LEAST_GROWTH as u64 * lists.min(len);
    lists * size_of::<Vec<Record<T>>>() as u64 + most_entries * size_of::<Record<T>>() as u64
}

impl<T: Tag> Positions<T> {
    /// None. It allocates nothing.
    pub(in crate::counting) fn none() -> Self {
        Positions { lists: Box::default(), len: 0 }
    }

    /// None, with lists for those of a layout.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_lists(layout: Layout) -> Result<Self, Error> {
        let num_lists = num_lists(layout) as usize;
        let mut lists = try_with_capacity(num_lists)?;
        lists.resize_with(num_lists, Vec::new);
        Ok(Positions { lists: lists.into_boxed_slice(), len: 0 })
    }

    /// How many they are.
    #[inline]
    pub(in crate::counting) fn len(&self) -> u64 {
        self.len
    }

    /// All of them with their tags, ascending.
    pub(in crate::counting) fn iter(&self) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        self.iter_from(0)
    }

    /// Those from the one numbered `rank` on.
    fn iter_from(&self, rank: u64) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        let mut skipped = rank as usize;
        (0u32..).zip(&self.lists).flat_map(move |(upper, list)| {
            let from = skipped.min(list.len());
            skipped -= from;
            list[from..].iter().map(move |entry| (upper << LOWER_BITS | u32::from(entry.lower), entry.tag))
        })
    }

    /// Marks a position that is there; the error says [where](Self::insert) one belongs that is not.
    #[inline]
    pub(in crate::counting) fn renew(&mut self, position: u32, tag: T, ages: T::Ages) -> Result<Touch, usize> {
        let list = self.lists.get_mut((position >> LOWER_BITS) as usize).ok_or(0usize)?;
        let at = list.binary_search_by_key(&(position as u16), |entry| entry.lower)?;
        let mut before = list[at].tag;
        let touch = tag.renew(&mut before, ages);
        list[at].tag = before;
        Ok(touch)
    }

    /// Inserts a position of a layout that is not there yet, at the place in its list where it belongs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was changed then.
    pub(in crate::counting) fn insert(
        &mut self,
        layout: Layout,
        at: usize,
        position: u32,
        tag: T,
    ) -> Result<(), Error> {
        if self.lists.is_empty() {
            *self = Self::with_lists(layout)?;
        }
        let list = &mut self.lists[(position >> LOWER_BITS) as usize];
        if list.len() == list.capacity() {
            let more = growth(list.len());
            let needed_bytes = (more * size_of::<Record<T>>()) as u64;
            list.try_reserve_exact(more).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        }
        list.insert(at, Record { lower: position as u16, tag });
        self.len += 1;
        Ok(())
    }

    /// Positions that are ascending, each once, all below `layout.num_bits()`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn from_ascending(
        layout: Layout,
        all: impl Iterator<Item = (u32, T)> + Clone,
    ) -> Result<Self, Error> {
        if all.clone().next().is_none() {
            return Ok(Self::none());
        }
        let mut positions = Self::with_lists(layout)?;
        let mut lens = all.clone().map(|(position, _)| position >> LOWER_BITS).peekable();
        for (upper, list) in (0..).zip(&mut positions.lists) {
            let len = std::iter::from_fn(|| lens.next_if_eq(&upper)).count();
            *list = try_with_capacity(len)?;
        }
        for (position, tag) in all {
            positions.lists[(position >> LOWER_BITS) as usize].push(Record { lower: position as u16, tag });
            positions.len += 1;
        }
        Ok(positions)
    }

    /// Keeps the positions whose tags `is_kept` says.
    pub(in crate::counting) fn retain(&mut self, is_kept: impl Fn(T) -> bool) {
        self.len = 0;
        for list in &mut self.lists {
            list.retain(|entry| is_kept(entry.tag));
            // Bytes are reported of lists that are nearly full. Without memory for a smaller one it stays.
            if list.capacity() > list.len() + growth(list.len())
                && let Ok(smaller) = try_to_vec(list)
            {
                *list = smaller;
            } else if list.is_empty() {
                *list = Vec::new();
            }
            self.len += list.len() as u64;
        }
    }

    /// How many of each segment there are.
    pub(in crate::counting) fn counts(&self, layout: Layout) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        let (mut end, mut before) = (0, 0);
        for segment in 0..layout.num_segments() {
            end += layout.slots(segment);
            let rank = self.rank(end);
            counts.add(segment, rank - before);
            before = rank;
        }
        counts
    }

    /// How many are below a position.
    fn rank(&self, position: u64) -> u64 {
        let (whole, lower) = ((position >> LOWER_BITS) as usize, position as u16);
        let (before, rest) = self.lists.split_at(whole.min(self.lists.len()));
        let in_list = rest.first().map_or(0, |list| list.partition_point(|entry| entry.lower < lower));
        before.iter().map(Vec::len).sum::<usize>() as u64 + in_list as u64
    }

    /// Appends `len` records from the one numbered `rank` on: each position as u32, little-endian, and its tag.
    pub(in crate::counting) fn append_to(&self, bytes: &mut Vec<u8>, rank: u64, len: usize) {
        for (position, tag) in self.iter_from(rank).take(len) {
            bytes.extend_from_slice(&position.to_le_bytes());
            bytes.extend_from_slice(tag.as_bytes());
        }
    }

    /// Calls `visit` with the layout of each heap allocation.
    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(Memory)) {
        if !self.lists.is_empty() {
            visit(Memory::for_value::<[_]>(&self.lists));
        }
        for list in self.lists.iter().filter(|list| list.capacity() > 0) {
            visit(Memory::array::<Record<T>>(list.capacity()).unwrap_or(Memory::new::<u64>()));
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        let mut lists = try_with_capacity(self.lists.len())?;
        for list in &self.lists {
            lists.push(try_to_vec(list)?);
        }
        Ok(Positions { lists: lists.into_boxed_slice(), len: self.len })
    }
}

/// The positions of a payload, each with its tag, as [`Positions::append_to`] wrote them.
///
/// # Errors
/// [`Error::Corrupt`] when a position is beyond the bitmap or not above the one before it, or a tag is not of what is
/// live.
pub(in crate::counting) fn read<T: Tag>(
    payload: &[u8],
    layout: Layout,
    ages: T::Ages,
) -> Result<impl Iterator<Item = (u32, T)> + Clone, Error> {
    let record_bytes = size_of::<u32>() + T::BYTES;
    if !payload.len().is_multiple_of(record_bytes) {
        let expected = format!("a multiple of {record_bytes}");
        return Err(Error::corrupt("position bytes", expected, payload.len()));
    }
    let records = payload.chunks_exact(record_bytes).filter_map(|record| {
        let (position, tag) = record.split_first_chunk()?;
        Some((u32::from_le_bytes(*position), T::split(tag)?.0))
    });
    let mut least = 0;
    for (position, tag) in records.clone() {
        let index = u64::from(position);
        if index >= layout.num_bits() {
            return Err(Error::corrupt("position", format_args!("below {}", layout.num_bits()), position));
        }
        if index < least {
            return Err(Error::corrupt("position", "above the one before it", position));
        }
        tag.check(ages)?;
        least = index + 1;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::held::ring::Ages;
    use crate::hash::hash64;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Of 15 tags those from 1 to 5 are alive.
    const AGES: Ages = Ages { newest: 5, modulus: 15, most_age: 4 };

    fn layout(precision: u32) -> Layout {
        Layout::new(precision, 8).unwrap()
    }

    fn sizes<T: Tag>(positions: &Positions<T>) -> Vec<(usize, usize)> {
        let mut sizes = Vec::new();
        positions.heap_layouts(&mut |layout| sizes.push((layout.size(), layout.align())));
        sizes
    }

    #[test]
    fn counts_are_those_of_one_by_one() {
        for (precision, tail_bits) in [(9, 8), (11, 10), (12, 11), (14, 8), (20, 19), (22, 10)] {
            let layout = Layout::new(precision, tail_bits).unwrap();
            // Around the ends of all segments, and anywhere.
            let starts = (0..=layout.num_segments()).map(|before| (0..before).map(|i| layout.slots(i)).sum::<u64>());
            let ends = starts.flat_map(|start| [start.saturating_sub(2), start.saturating_sub(1), start, start + 5]);
            let anywhere = (0..5000u64).map(|number| layout.slot_of(hash64(&number.to_le_bytes(), 0)).index);
            let mut all: Vec<u64> = ends.chain(anywhere).filter(|&index| index < layout.num_bits()).collect();
            all.sort_unstable();
            all.dedup();
            let mut counts = SegmentCounts::default();
            all.iter().for_each(|&index| counts.increment(layout.segment_of(index)));
            let positions = Positions::from_ascending(layout, all.iter().map(|&index| (index as u32, ()))).unwrap();
            assert_eq!((positions.counts(layout), positions.len()), (counts, all.len() as u64), "{layout:?}");
            assert_eq!(Positions::<()>::none().counts(layout), SegmentCounts::default());
        }
    }

    #[test]
    fn lists_grow_by_a_sixteenth_and_take_no_more_than_reported() {
        let layout = layout(14);
        let mut positions = Positions::none();
        assert!(sizes(&positions).is_empty());
        let mut capacity = 0;
        for position in 0..3000u32 {
            positions.insert(layout, position as usize, 7 * position, ()).unwrap();
            let (sizes, len) = (sizes(&positions), position as usize + 1);
            if len > capacity {
                capacity = position as usize + (position as usize / 16).max(4);
            }
            assert_eq!(sizes, [(24, 8), (2 * capacity, 1)]);
            assert!(24 + 2 * capacity as u64 <= heap_bytes::<()>(layout, len as u64));
        }
        // What is read takes two bytes each.
        let read = Positions::from_ascending(layout, positions.iter()).unwrap();
        assert_eq!((sizes(&read), read.len()), (vec![(24, 8), (6000, 1)], 3000));
        assert_eq!(sizes(&positions.try_clone().unwrap()), sizes(&read));
    }

    #[test]
    fn what_is_left_of_many_takes_no_more_than_is_reported() {
        let layout = layout(20);
        let mut positions = Positions::none();
        for position in 0..3000 {
            let (number, tag) = (700 * (position % 1000) + position / 1000, u8::from(position % 100 != 0));
            let at = positions.renew(number, tag, AGES).unwrap_err();
            positions.insert(layout, at, number, tag).unwrap();
        }
        for (kept, len) in [(0, 30), (7, 0)] {
            positions.retain(|tag| tag == kept);
            let bytes: usize = sizes(&positions).iter().map(|(size, _)| size).sum();
            assert_eq!(positions.len(), len);
            assert!(bytes as u64 <= heap_bytes::<u8>(layout, len.max(1)), "{bytes} bytes of {len}");
        }
    }

    #[test]
    fn records_that_cannot_be_are_named() {
        // 6912 slots.
        let layout = layout(9);
        let read = |records: &[(u32, u8)], more: &[u8]| {
            let records = records.iter().map(|(position, tag)| [&position.to_le_bytes()[..], &[*tag]].concat());
            let bytes = [&records.collect::<Vec<_>>().concat()[..], more].concat();
            read::<u8>(&bytes, layout, AGES).map(|records| records.collect::<Vec<_>>())
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

    proptest! {
        #[test]
        fn behaves_as_a_map(marks in vec((0u32..9000, 0u8..5), 0..600), rank in 0u64..700) {
            // Neighbours, and neighbours across the lists.
            let layout = layout(20);
            let position = |number: u32| number * 37 % (layout.num_bits() as u32);
            let (mut positions, mut naive) = (Positions::none(), BTreeMap::new());
            for (number, age) in marks {
                let (position, tag) = (position(number), AGES.tag(age));
                let renewed = positions.renew(position, tag, AGES);
                let expected = naive.get(&position).map(|&before| {
                    if AGES.age(before) <= age { Touch::Same } else { Touch::Renewed }
                });
                prop_assert_eq!(renewed.ok(), expected);
                if let Err(at) = renewed {
                    positions.insert(layout, at, position, tag).unwrap();
                }
                if renewed != Ok(Touch::Same) {
                    naive.insert(position, tag);
                }
            }
            let expected: Vec<(u32, u8)> = naive.into_iter().collect();
            prop_assert_eq!(positions.iter().collect::<Vec<_>>(), &expected[..]);
            prop_assert_eq!(positions.len(), expected.len() as u64);
            let (mut all, mut some) = (Vec::new(), Vec::new());
            positions.append_to(&mut all, 0, expected.len());
            positions.append_to(&mut some, rank, 10);
            let end = all.len().min(5 * (rank as usize + 10));
            prop_assert_eq!(&some[..], &all[end.min(5 * rank as usize)..end]);
            prop_assert!(read::<u8>(&all, layout, AGES).unwrap().eq(expected));
        }
    }
}
