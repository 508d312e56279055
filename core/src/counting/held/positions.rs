//! The marked slots of a sparse bitmap, as a list of positions, each with its tag.
//!
//! Each list covers 65,536 slots. A short list has two bytes a position, sorted. A long list has a byte a position,
//! sorted within buckets of 255 slots, after the number of positions in each bucket:
//!
//! ```text
//! short:  lower 16 bits, tag | lower 16 bits, tag | ...
//! long:   len of bucket 0 | len of bucket 1 | ... | place in its bucket, tag | place in its bucket, tag | ...
//! ```
//!
//! So a position takes at most two bytes and its tag. In a list with many more positions than buckets it takes little
//! more than one byte and its tag. Lists grow by a sixteenth.

use std::alloc::Layout as Memory;
use std::marker::PhantomData;

use crate::counting::held::tag::Tag;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::error::Error;
use crate::size_limit::{try_collect_ok, try_reserve, try_to_vec, try_with_capacity};
use crate::window::Mark;

/// Bytes of a position as it is stored in a payload.
pub(in crate::counting) const POSITION_BYTES: usize = size_of::<u32>();
/// The number of low bits of a position that a list stores. The higher bits select the list.
const LOWER_BITS: u32 = u16::BITS;
/// The number of slots in a bucket: at most 255, so that a byte can count the marked ones.
const BUCKET: usize = u8::MAX as usize;
/// The least number of positions by which a full list grows.
const LEAST_GROWTH: usize = 4;

/// The most positions by which a full list of `len` positions grows.
fn growth(len: usize) -> usize {
    (len / 16).max(LEAST_GROWTH)
}

/// A sparse set of positions, each with its tag.
#[derive(Debug)]
pub(crate) struct Positions<T: Tag = ()> {
    /// One list for every 65,536 slots; empty while there are no positions.
    lists: Box<[List<T>]>,
    len: u64,
}

/// The positions among 65,536 slots.
#[derive(Debug)]
struct List<T> {
    /// The records of the list, each a position and its tag. In a long list, the lengths of the buckets come first.
    bytes: Vec<u8>,
    /// The number of buckets in a long list; 0 for a short list.
    buckets: u16,
    tags: PhantomData<T>,
}

fn num_lists(layout: Layout) -> u64 {
    layout.num_bits().div_ceil(1 << LOWER_BITS)
}

/// Whether one list covers all positions of a layout.
pub(in crate::counting) fn is_one_list(layout: Layout) -> bool {
    num_lists(layout) == 1
}

/// The number of buckets that the list with index `list` has in its long form. Short lists have no buckets.
fn buckets_of(layout: Layout, list: usize) -> usize {
    let slots = layout.num_bits() as usize - (list << LOWER_BITS);
    slots.min(1 << LOWER_BITS).div_ceil(BUCKET)
}

/// The most heap bytes that `len` positions of a layout take.
pub(in crate::counting) fn heap_bytes<T: Tag>(layout: Layout, len: u64) -> u64 {
    let lists = if len > 0 { num_lists(layout) } else { 0 };
    let most_entries = len + len / 16 + LEAST_GROWTH as u64 * lists.min(len);
    let buckets: usize = (0..lists as usize).map(|list| buckets_of(layout, list)).sum();
    let short = most_entries * List::<T>::SHORT as u64;
    lists * size_of::<List<T>>() as u64 + short.min(buckets as u64 + most_entries * List::<T>::LONG as u64)
}

impl<T: Tag> List<T> {
    /// Bytes of a position and its tag in a short list.
    const SHORT: usize = size_of::<u16>() + T::BYTES;
    /// Bytes of a position and its tag in a long list.
    const LONG: usize = size_of::<u8>() + T::BYTES;

    const NONE: Self = List { bytes: Vec::new(), buckets: 0, tags: PhantomData };

    /// An empty list with room for `len` positions. It is a long list of `buckets` buckets if a long list takes fewer
    /// bytes, else a short list.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_room(len: usize, buckets: usize) -> Result<Self, Error> {
        let buckets = if len > buckets { buckets } else { 0 };
        let record = if buckets > 0 { Self::LONG } else { Self::SHORT };
        let mut bytes = try_with_capacity(buckets + len * record)?;
        bytes.resize(buckets, 0);
        Ok(List { bytes, buckets: buckets as u16, tags: PhantomData })
    }

    #[inline]
    fn record_bytes(&self) -> usize {
        if self.buckets > 0 { Self::LONG } else { Self::SHORT }
    }

    #[inline]
    fn records(&self) -> &[u8] {
        &self.bytes[usize::from(self.buckets)..]
    }

    fn len(&self) -> usize {
        self.records().len() / self.record_bytes()
    }

    /// Finds the rank (the index in the list) of the position with these lower bits. If the position is missing, `Err`
    /// has the rank at which to [insert](Self::insert) it.
    #[inline]
    fn find(&self, lower: u16) -> Result<usize, usize> {
        if self.buckets == 0 {
            let at = |rank: usize| self.lower_at(rank);
            let (mut from, mut end) = (0, self.len());
            while from < end {
                let middle = (from + end) / 2;
                // Without a branch, since its direction is unpredictable.
                let is_below = at(middle) < lower;
                from = if is_below { middle + 1 } else { from };
                end = if is_below { end } else { middle };
            }
            return if from < self.len() && at(from) == lower { Ok(from) } else { Err(from) };
        }
        let (bucket, place) = (usize::from(lower) / BUCKET, (usize::from(lower) % BUCKET) as u8);
        let (before, rest) = self.bytes.split_at(bucket.min(self.buckets.into()));
        let start = before.iter().map(|&len| u32::from(len)).sum::<u32>() as usize;
        let len = if bucket < self.buckets.into() { rest.first().map_or(0, |&len| usize::from(len)) } else { 0 };
        let records = &self.records()[start * Self::LONG..][..len * Self::LONG];
        let below = records.chunks_exact(Self::LONG).take_while(|record| record[0] < place).count();
        let is_there = records.get(below * Self::LONG) == Some(&place);
        if is_there { Ok(start + below) } else { Err(start + below) }
    }

    /// The lower bits of the position at `rank` in a short list.
    #[inline]
    fn lower_at(&self, rank: usize) -> u16 {
        let at = rank * Self::SHORT;
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// The bytes of the tag at `rank`, to change them.
    fn tag_bytes(&mut self, rank: usize) -> &mut [u8] {
        let record = self.record_bytes();
        let end = usize::from(self.buckets) + (rank + 1) * record;
        &mut self.bytes[end - T::BYTES..end]
    }

    /// Inserts a position at `rank`. The list has `buckets` buckets once it is long.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the list is unchanged.
    fn insert(&mut self, rank: usize, lower: u16, tag: T, buckets: usize) -> Result<(), Error> {
        let len = self.len();
        if self.buckets == 0 && len == buckets {
            let mut long = Self::with_room(len + growth(len), buckets)?;
            self.iter().for_each(|(lower, tag)| long.push(lower, tag));
            *self = long;
        }
        let record = self.record_bytes();
        if self.bytes.len() + record > self.bytes.capacity() {
            let more = if self.buckets == 0 { growth(len).min(buckets - len) } else { growth(len) };
            try_reserve(&mut self.bytes, more * record)?;
        }
        let (at, end) = (usize::from(self.buckets) + rank * record, self.bytes.len());
        self.bytes.resize(end + record, 0);
        self.bytes.copy_within(at..end, at + record);
        self.write(at, lower, tag);
        Ok(())
    }

    /// Appends a position, which the list has room for.
    fn push(&mut self, lower: u16, tag: T) {
        let at = self.bytes.len();
        self.bytes.resize(at + self.record_bytes(), 0);
        self.write(at, lower, tag);
    }

    /// Writes a position and its tag over the bytes from `at` on, and counts the position in its bucket.
    #[inline]
    fn write(&mut self, at: usize, lower: u16, tag: T) {
        let number = if self.buckets == 0 {
            self.bytes[at..at + 2].copy_from_slice(&lower.to_le_bytes());
            2
        } else {
            self.bytes[at] = (usize::from(lower) % BUCKET) as u8;
            self.bytes[usize::from(lower) / BUCKET] += 1;
            1
        };
        self.bytes[at + number..][..T::BYTES].copy_from_slice(tag.as_bytes());
    }

    /// The positions with their tags, ascending.
    fn iter(&self) -> impl Iterator<Item = (u16, T)> + Clone + '_ {
        let (is_short, mut lens) = (self.buckets == 0, self.bytes[..self.buckets.into()].iter());
        // The first slot of the next bucket, and the number of positions left in the present bucket.
        let (mut next_start, mut left) = (0, 0);
        self.records().chunks_exact(self.record_bytes()).filter_map(move |record| {
            if is_short {
                let (lower, tag) = record.split_first_chunk()?;
                return Some((u16::from_le_bytes(*lower), T::split(tag)?.0));
            }
            while left == 0 {
                left = *lens.next()?;
                next_start += BUCKET;
            }
            left -= 1;
            let (&place, tag) = record.split_first()?;
            Some(((next_start - BUCKET) as u16 + u16::from(place), T::split(tag)?.0))
        })
    }

    /// Keeps the positions for whose tags `is_kept` returns true; allocates nothing.
    fn retain(&mut self, is_kept: impl Fn(T) -> bool) {
        let (buckets, record) = (usize::from(self.buckets), self.record_bytes());
        let (lens, records) = self.bytes.split_at_mut(buckets);
        let (all, mut from, mut to) = (records.len(), 0, 0);
        let mut keep = |end: usize| {
            let mut kept = 0usize;
            while from < end {
                let tag = T::split(&records[from + record - T::BYTES..from + record]);
                if tag.is_some_and(|(tag, _)| is_kept(tag)) {
                    records.copy_within(from..from + record, to);
                    (kept, to) = (kept + 1, to + record);
                }
                from += record;
            }
            kept
        };
        let mut end = 0;
        for len in lens.iter_mut() {
            end += usize::from(*len) * record;
            *len = keep(end) as u8;
        }
        if buckets == 0 {
            keep(all);
        }
        self.bytes.truncate(buckets + to);
    }
}

impl<T: Tag> Positions<T> {
    /// An empty set of positions; allocates nothing.
    pub(in crate::counting) fn none() -> Self {
        Positions { lists: Box::default(), len: 0 }
    }

    /// An empty set with all lists of a layout, each of them empty.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn with_lists(layout: Layout) -> Result<Self, Error> {
        let num_lists = num_lists(layout) as usize;
        let mut lists = try_with_capacity(num_lists)?;
        lists.resize_with(num_lists, || List::NONE);
        Ok(Positions { lists: lists.into_boxed_slice(), len: 0 })
    }

    /// The number of positions.
    #[inline]
    pub(in crate::counting) fn len(&self) -> u64 {
        self.len
    }

    /// All positions with their tags, ascending.
    pub(in crate::counting) fn iter(&self) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        self.iter_from(0)
    }

    /// The positions with their tags, ascending, without the first `rank` of them.
    fn iter_from(&self, rank: u64) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        let mut skipped = rank as usize;
        (0u32..).zip(&self.lists).flat_map(move |(upper, list)| {
            let from = skipped.min(list.len());
            skipped -= from;
            list.iter().skip(from).map(move |(lower, tag)| (upper << LOWER_BITS | u32::from(lower), tag))
        })
    }

    /// Marks a position of the set with `tag`, if the position's own tag is older. If the position is missing, `Err`
    /// has the rank in its list at which to [insert](Self::insert) it.
    #[inline]
    pub(in crate::counting) fn renew(&mut self, position: u32, tag: T, ages: T::Ages) -> Result<Mark, usize> {
        let list = self.lists.get_mut((position >> LOWER_BITS) as usize).ok_or(0usize)?;
        let rank = list.find(position as u16)?;
        Ok(tag.renew_in(list.tag_bytes(rank), ages))
    }

    /// Inserts a missing position of a layout, at the rank `at` in its list.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the positions are unchanged.
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
        let number = (position >> LOWER_BITS) as usize;
        self.lists[number].insert(at, position as u16, tag, buckets_of(layout, number))?;
        self.len += 1;
        Ok(())
    }

    /// The set of these positions, which are ascending, distinct and below `layout.num_bits()`.
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
        for (number, list) in positions.lists.iter_mut().enumerate() {
            let len = std::iter::from_fn(|| lens.next_if_eq(&(number as u32))).count();
            *list = List::with_room(len, buckets_of(layout, number))?;
        }
        for (position, tag) in all {
            positions.lists[(position >> LOWER_BITS) as usize].push(position as u16, tag);
            positions.len += 1;
        }
        Ok(positions)
    }

    /// Keeps the positions for whose tags `is_kept` returns true.
    pub(in crate::counting) fn retain(&mut self, is_kept: impl Fn(T) -> bool) {
        self.len = 0;
        for list in &mut self.lists {
            let buckets = usize::from(list.buckets);
            list.retain(&is_kept);
            let (len, room) = (list.len(), (list.bytes.capacity() - buckets) / list.record_bytes());
            // Reported sizes assume lists that are nearly full, so a list with much free room is replaced. Without
            // memory for the smaller list the larger one stays.
            if (room > len + growth(len) || len < buckets || len == 0)
                && let Ok(mut smaller) = List::with_room(len, if buckets > 0 { buckets } else { len })
            {
                list.iter().for_each(|(lower, tag)| smaller.push(lower, tag));
                *list = smaller;
            }
            self.len += len as u64;
        }
    }

    /// The number of positions in each segment.
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

    /// The number of positions below `position`.
    fn rank(&self, position: u64) -> u64 {
        let whole = (position >> LOWER_BITS) as usize;
        let (before, rest) = self.lists.split_at(whole.min(self.lists.len()));
        let in_list = rest.first().map_or(0, |list| list.find(position as u16).unwrap_or_else(|rank| rank));
        before.iter().map(List::len).sum::<usize>() as u64 + in_list as u64
    }

    /// Appends `len` positions to `bytes`, from the position with rank `rank` on. Each is a little-endian u32, followed
    /// by its tag.
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
        for list in self.lists.iter().filter(|list| list.bytes.capacity() > 0) {
            visit(Memory::array::<u8>(list.bytes.capacity()).unwrap_or(Memory::new::<u64>()));
        }
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        let copy = |list: &List<T>| Ok(List { bytes: try_to_vec(&list.bytes)?, ..*list });
        let lists = try_collect_ok(self.lists.len(), self.lists.iter().map(copy))?;
        Ok(Positions { lists: lists.into_boxed_slice(), len: self.len })
    }
}

/// Reads the positions of a payload, each with its tag, as [`Positions::append_to`] wrote them.
///
/// # Errors
/// [`Error::Corrupt`] when a position is beyond the bitmap or not above the one before it, or a tag is of no live
/// slice.
pub(in crate::counting) fn read<T: Tag>(
    payload: &[u8],
    layout: Layout,
    ages: T::Ages,
) -> Result<impl Iterator<Item = (u32, T)> + Clone, Error> {
    let record_bytes = size_of::<u32>() + T::BYTES;
    let is_whole = payload.len().is_multiple_of(record_bytes);
    Error::check_field(is_whole, "position bytes", format_args!("a multiple of {record_bytes}"), payload.len())?;
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

    /// Ages with 15 tags, of which tags 1 to 5 are live.
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
            // Positions around the ends of all segments, and anywhere.
            let starts = (0..=layout.num_segments()).map(|before| (0..before).map(|i| layout.slots(i)).sum::<u64>());
            let ends = starts.flat_map(|start| [start.saturating_sub(2), start.saturating_sub(1), start, start + 5]);
            let anywhere = (0..5000u64).map(|number| layout.slot_of(hash64(&number.to_le_bytes(), 0)).index);
            let mut all: Vec<u64> = ends.chain(anywhere).filter(|&index| index < layout.num_bits()).collect();
            all.sort_unstable();
            all.dedup();
            let mut counts = SegmentCounts::default();
            all.iter().for_each(|&index| counts.add(layout.segment_of(index), 1));
            let positions = Positions::from_ascending(layout, all.iter().map(|&index| (index as u32, ()))).unwrap();
            assert_eq!((positions.counts(layout), positions.len()), (counts, all.len() as u64), "{layout:?}");
            assert_eq!(Positions::<()>::none().counts(layout), SegmentCounts::default());
        }
    }

    #[test]
    fn lists_grow_by_a_sixteenth_and_take_no_more_than_reported() {
        // 21,504 slots in 85 buckets.
        let layout = layout(14);
        let mut positions = Positions::none();
        assert!(sizes(&positions).is_empty());
        let mut capacity = 0;
        for position in 0..3000u32 {
            positions.insert(layout, position as usize, 7 * position, ()).unwrap();
            let (sizes, before, len) = (sizes(&positions), position as usize, position as usize + 1);
            if len > capacity || len == 86 {
                let grown = before + (before / 16).max(4);
                capacity = if len <= 85 { grown.min(85) } else { grown };
            }
            let bytes = if len <= 85 { 2 * capacity } else { 85 + capacity };
            assert_eq!(sizes, [(32, 8), (bytes, 1)], "{len}");
            assert!(32 + bytes as u64 <= heap_bytes::<()>(layout, len as u64));
        }
        // Positions that were read take a byte each: their lists have no free room.
        let read = Positions::from_ascending(layout, positions.iter()).unwrap();
        assert_eq!((sizes(&read), read.len()), (vec![(32, 8), (3085, 1)], 3000));
        assert_eq!(sizes(&positions.try_clone().unwrap()), sizes(&read));
    }

    #[test]
    fn a_bucket_may_be_full() {
        let layout = layout(20);
        let mut positions = Positions::none();
        // Backwards, from the list after the first.
        for position in (0..66_000u32).rev() {
            assert_eq!(positions.renew(position, (), ()), Err(0));
            positions.insert(layout, 0, position, ()).unwrap();
        }
        assert!(positions.iter().map(|(position, ())| position).eq(0..66_000));
        assert!((0..66_000).all(|position| positions.renew(position, (), ()) == Ok(Mark::Same)));
        assert_eq!(
            [0, 254, 255, 65_535, 65_536, 66_000, 70_000].map(|end| positions.rank(end)),
            [0, 254, 255, 65_535, 65_536, 66_000, 66_000]
        );
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
                    if AGES.age(before) <= age { Mark::Same } else { Mark::Renewed }
                });
                prop_assert_eq!(renewed.ok(), expected);
                if let Err(at) = renewed {
                    positions.insert(layout, at, position, tag).unwrap();
                }
                if renewed != Ok(Mark::Same) {
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
