//! The tapered bitmap of an estimating counter: sparse while few slots are set, then dense.
//!
//! Sparse are the positions of the set slots in a Roaring bitmap (D. Lemire et al., "Roaring bitmaps:
//! implementation of an optimized software library", Software: Practice and Experience 48(4), 2018).
//! Dense are the words. Which of them it is, is not part of the meaning: the same slots are set.

use std::alloc;
use std::borrow::Cow;

use roaring::RoaringBitmap;

use crate::bits;
use crate::counting::estimate::{KeptEstimate, Segments};
use crate::counting::layout::{Layout, SegmentCounts, Slot};
use crate::error::Error;
use crate::size_limit::SizeLimit;

/// Bytes that a position takes in a sparse bitmap at most: two in an array that may be half empty.
pub(super) const SPARSE_POSITION_BYTES: u64 = 4;
/// Bytes that the crate keeps of a container beside its positions.
const CONTAINER_BYTES: u64 = 40;
/// Positions that the crate makes room for in a union, beside those of both sets.
const UNION_ROOM: u64 = 8;
/// Bytes that each 65,536 slots take in a sparse bitmap beside their positions, once one of them is set: a place in a
/// vector that may be half empty, and room in an array, two bytes a position.
const SPARSE_CONTAINER_BYTES: u64 = 2 * CONTAINER_BYTES + 2 * UNION_ROOM;
/// The most positions that a container holds as an array.
const ARRAY_VALUES: u64 = 4096;
/// Slots that share a container.
const CONTAINER_SLOTS: u64 = 1 << 16;

/// The bits of an estimating counter.
#[derive(Debug)]
pub(super) struct Bitmap {
    bits: Bits,
    /// How many members it certainly has: one more than the last exact count, the largest of those that were merged.
    /// An estimate may lie below what was known.
    floor: u32,
    layout: Layout,
}

/// How the bits are held. In boxes, because exact counters have none of this and should be small.
#[derive(Debug)]
pub(super) enum Bits {
    /// Some slots.
    Sparse(Box<Sparse>),
    /// All slots.
    Dense(Box<Dense>),
}

/// The set slots of a bitmap.
#[derive(Debug, Clone)]
pub(super) struct Sparse {
    /// Their positions, which fit u32 in every layout.
    pub(super) positions: RoaringBitmap,
    /// How many they are.
    pub(super) len: u64,
    /// The estimate, or none when a bit changed since it was last worked out.
    estimate: KeptEstimate,
}

/// All slots of a bitmap.
#[derive(Debug)]
pub(super) struct Dense {
    /// `layout.num_words()` words.
    words: Box<[u64]>,
    /// As of [`Sparse`].
    estimate: KeptEstimate,
    /// How many slots of each segment are set.
    counts: SegmentCounts,
}

impl Dense {
    /// Sets a slot; true when it was free. Then the caller has to [forget](Self::forget_estimate) the estimate.
    #[inline(always)]
    pub(super) fn insert(&mut self, slot: Slot) -> bool {
        let free = bits::set(&mut self.words, slot.index as usize);
        if free {
            self.counts.increment(slot.segment);
        }
        free
    }

    /// Forgets the estimate, since bits changed.
    #[inline]
    pub(super) fn forget_estimate(&mut self) {
        self.estimate.forget();
    }

    /// Asks for the word of a slot, ahead of its use.
    #[inline]
    pub(super) fn prefetch(&self, slot: Slot) {
        bits::prefetch(&self.words, slot.index as usize);
    }
}

/// Heap bytes of a dense bitmap.
pub(super) fn dense_bytes(layout: Layout) -> u64 {
    layout.num_bytes() + size_of::<Dense>() as u64
}

/// Words of zeros for a dense bitmap.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn zeroed_words(layout: Layout) -> Result<Box<[u64]>, Error> {
    bytemuck::allocation::try_zeroed_slice_box(layout.num_words())
        .map_err(|()| Error::OutOfMemory { needed_bytes: layout.num_bytes() })
}

/// The most heap bytes that the positions of so many set slots take.
pub(super) fn sparse_bytes(layout: Layout, set_bits: u64) -> u64 {
    let containers = layout.num_bits().div_ceil(CONTAINER_SLOTS).min(set_bits);
    set_bits * SPARSE_POSITION_BYTES + containers * SPARSE_CONTAINER_BYTES
}

/// The most heap bytes that a bitmap takes with so many slots set, held as it will be then.
pub(super) fn heap_bytes(layout: Layout, set_bits: u64) -> u64 {
    if sparse_fits(layout, set_bits) {
        size_of::<Sparse>() as u64 + sparse_bytes(layout, set_bits)
    } else {
        dense_bytes(layout)
    }
}

/// How many of these positions, all below `layout.num_bits()`, lie in each segment. The containers of the bitmap know
/// how many they have, so few positions are looked at.
pub(super) fn counts_of(positions: &RoaringBitmap, layout: Layout) -> SegmentCounts {
    let mut counts = SegmentCounts::default();
    let mut start = 0;
    for segment in 0..layout.num_segments() {
        let end = start + layout.slots(segment);
        counts.add(segment, positions.range_cardinality(start as u32..=(end - 1) as u32));
        start = end;
    }
    counts
}

/// Is sparse the better way to hold so many set slots? It is up to half of the dense size: there
/// it still saves memory worth the slower adding, and the way there was not too long.
pub(super) fn sparse_fits(layout: Layout, set_bits: u64) -> bool {
    sparse_bytes(layout, set_bits) <= layout.num_bytes() / 2
}

impl Bitmap {
    /// No slot set; allocates as good as nothing.
    pub(super) fn new(layout: Layout) -> Self {
        Self::sparse(layout, RoaringBitmap::new())
    }

    fn sparse(layout: Layout, positions: RoaringBitmap) -> Self {
        let len = positions.len();
        let sparse = Sparse { positions, len, estimate: KeptEstimate::none() };
        Bitmap { bits: Bits::Sparse(Box::new(sparse)), floor: 0, layout }
    }

    /// A bitmap of dense words, which are counted.
    pub(super) fn from_words(layout: Layout, words: Box<[u64]>) -> Self {
        debug_assert_eq!(words.len(), layout.num_words());
        let counts = SegmentCounts::of_words(&words, layout);
        let dense = Dense { words, estimate: KeptEstimate::none(), counts };
        Bitmap { bits: Bits::Dense(Box::new(dense)), floor: 0, layout }
    }

    /// A bitmap of positions, all below `layout.num_bits()`, which are counted. `held_bytes` is what
    /// the counter takes without it.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`].
    pub(super) fn from_positions(
        layout: Layout,
        positions: RoaringBitmap,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        debug_assert!(positions.max().is_none_or(|last| u64::from(last) < layout.num_bits()));
        limit.check(held_bytes, heap_bytes(layout, positions.len()))?;
        let mut bitmap = Self::sparse(layout, positions);
        bitmap.settle()?;
        Ok(bitmap)
    }

    /// Makes it dense unless it fits sparse. [`heap_bytes`] is what was asked for.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; it is sparse as before then.
    fn settle(&mut self) -> Result<(), Error> {
        if sparse_fits(self.layout, self.set_bits()) { Ok(()) } else { self.make_dense() }
    }

    /// Its layout.
    #[inline]
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// How many members it certainly has.
    pub(super) fn floor(&self) -> u32 {
        self.floor
    }

    /// The same bits of so many members at least.
    pub(super) fn with_floor(self, floor: u32) -> Self {
        let mut bitmap = Bitmap { floor, ..self };
        match &mut bitmap.bits {
            Bits::Sparse(sparse) => sparse.estimate.forget(),
            Bits::Dense(dense) => dense.forget_estimate(),
        }
        bitmap
    }

    /// The most likely number of members, but the floor at least.
    pub(super) fn estimate(&self) -> f64 {
        let kept = match &self.bits {
            Bits::Sparse(sparse) => &sparse.estimate,
            Bits::Dense(dense) => &dense.estimate,
        };
        let work_out = || Segments::new(self.layout, &self.counts()).estimate();
        kept.get_or(|| work_out().max(f64::from(self.floor)))
    }

    /// Set slots.
    pub(super) fn set_bits(&self) -> u64 {
        match &self.bits {
            Bits::Sparse(sparse) => sparse.len,
            Bits::Dense(dense) => dense.counts.total(),
        }
    }

    /// Set slots of each segment.
    pub(super) fn counts(&self) -> Cow<'_, SegmentCounts> {
        match &self.bits {
            Bits::Sparse(sparse) => Cow::Owned(counts_of(&sparse.positions, self.layout)),
            Bits::Dense(dense) => Cow::Borrowed(&dense.counts),
        }
    }

    /// The bits themselves.
    pub(super) fn bits(&self) -> &Bits {
        &self.bits
    }

    /// The words, when dense.
    pub(super) fn words(&self) -> Option<&[u64]> {
        match &self.bits {
            Bits::Sparse(_) => None,
            Bits::Dense(dense) => Some(&dense.words),
        }
    }

    /// All slots, when dense.
    #[inline]
    pub(super) fn dense_mut(&mut self) -> Option<&mut Dense> {
        match &mut self.bits {
            Bits::Sparse(_) => None,
            Bits::Dense(dense) => Some(dense),
        }
    }

    /// Sets a slot; true when it was free. `held_bytes` is what the counter takes without the bitmap.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; nothing was changed then.
    pub(super) fn insert(&mut self, slot: Slot, held_bytes: u64, limit: &impl SizeLimit) -> Result<bool, Error> {
        let position = slot.index as u32;
        match &mut self.bits {
            Bits::Dense(dense) => {
                let free = dense.insert(slot);
                if free {
                    dense.forget_estimate();
                }
                return Ok(free);
            }
            Bits::Sparse(sparse) if sparse.positions.contains(position) => return Ok(false),
            Bits::Sparse(sparse) if sparse_fits(self.layout, sparse.len + 1) => {
                let heap = heap_bytes(self.layout, sparse.len);
                limit.check(held_bytes + heap, heap_bytes(self.layout, sparse.len + 1) - heap)?;
                sparse.positions.insert(position);
                sparse.len += 1;
                sparse.estimate.forget();
                return Ok(true);
            }
            Bits::Sparse(_) => {}
        }
        limit.check(held_bytes, dense_bytes(self.layout))?;
        self.make_dense()?;
        // Its estimate was not worked out yet.
        Ok(self.dense_mut().is_some_and(|dense| dense.insert(slot)))
    }

    /// Makes it dense if it is not.
    fn make_dense(&mut self) -> Result<(), Error> {
        if let Bits::Sparse(_) = &self.bits {
            let mut words = zeroed_words(self.layout)?;
            self.or_into(self.layout, &mut words);
            *self = Bitmap { floor: self.floor, ..Self::from_words(self.layout, words) };
        }
        Ok(())
    }

    /// ORs it into the bitmap `words` of a layout `to` that its own folds to.
    pub(super) fn or_into(&self, to: Layout, words: &mut [u64]) {
        if self.set_bits() == 0 {
            // Of any layout.
            return;
        }
        match &self.bits {
            Bits::Sparse(_) => self.for_each_position(to, &mut |index| {
                bits::set(words, index as usize);
            }),
            Bits::Dense(dense) => self.layout.or_folded(&dense.words, to, words),
        }
    }

    /// Calls `visit` with each set slot as it lies in a bitmap of a layout `to` that its own folds
    /// to, ascending. Some may come more than once.
    pub(super) fn for_each_position(&self, to: Layout, visit: &mut dyn FnMut(u64)) {
        let fold = |index: u64| if to == self.layout { index } else { self.layout.fold(index, to) };
        match &self.bits {
            Bits::Sparse(sparse) => sparse.positions.iter().for_each(|index| visit(fold(u64::from(index)))),
            Bits::Dense(dense) => bits::ones(&dense.words).for_each(|index| visit(fold(index as u64))),
        }
    }

    /// ORs into a dense bitmap what `others` do to its words. False, and nothing done, when it is sparse. `floor` is that
    /// of them all.
    pub(super) fn or_dense(&mut self, floor: u32, others: &mut dyn FnMut(Layout, &mut [u64])) -> bool {
        let Bits::Dense(dense) = &mut self.bits else { return false };
        others(self.layout, &mut dense.words);
        dense.counts = SegmentCounts::of_words(&dense.words, self.layout);
        dense.forget_estimate();
        self.floor = floor;
        true
    }

    /// Calls `visit` with the layout of each heap allocation. Those of a sparse bitmap are near the truth: the
    /// crate that makes them tells their sum, not each.
    pub(super) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        let mut visit = |bytes: usize| {
            // None is aligned to more than a word.
            visit(alloc::Layout::from_size_align(bytes, 8).unwrap_or(alloc::Layout::new::<u64>()));
        };
        match &self.bits {
            Bits::Dense(dense) => {
                visit(size_of::<Dense>());
                visit(size_of_val::<[u64]>(&dense.words));
            }
            Bits::Sparse(sparse) => {
                visit(size_of::<Sparse>());
                let positions = &sparse.positions;
                let about = positions.statistics();
                if about.n_containers > 0 {
                    let containers = about.n_containers.next_power_of_two().max(4) as usize;
                    visit(containers * CONTAINER_BYTES as usize);
                }
                for _ in 0..about.n_bitset_containers {
                    visit(CONTAINER_SLOTS as usize / 8);
                }
                // The crate counts four bytes an entry; they are u16. Each container has its part of them, and at most what
                // doubling its room has led to.
                let array_bytes = about.n_bytes_array_containers / 2;
                let in_arrays = about.n_values_array_containers.max(1);
                for start in (0..self.layout.num_bits()).step_by(CONTAINER_SLOTS as usize) {
                    let values = positions.range_cardinality(start as u32..=(start + CONTAINER_SLOTS - 1) as u32);
                    if (1..=ARRAY_VALUES).contains(&values) {
                        let most_bytes = values.next_power_of_two().max(4) * size_of::<u16>() as u64;
                        visit((array_bytes * values / u64::from(in_arrays)).min(most_bytes) as usize);
                    }
                }
            }
        }
    }

    /// Bytes of all heap allocations; when sparse, the most that they may be.
    #[inline]
    pub(super) fn num_bytes(&self) -> u64 {
        match &self.bits {
            Bits::Dense(_) => dense_bytes(self.layout),
            Bits::Sparse(sparse) => size_of::<Sparse>() as u64 + sparse_bytes(self.layout, sparse.len),
        }
    }

    /// Hands the words of a dense bitmap over and takes them back, wherever they lie then.
    pub(super) fn relocate(&mut self, relocate: impl FnOnce(Box<[u64]>) -> Box<[u64]>) {
        if let Bits::Dense(dense) = &mut self.bits {
            dense.words = relocate(std::mem::take(&mut dense.words));
            debug_assert_eq!(dense.words.len(), self.layout.num_words());
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let bits = match &self.bits {
            // Many small allocations, none over 8 KiB but the list of them.
            Bits::Sparse(sparse) => Bits::Sparse(sparse.clone()),
            Bits::Dense(dense) => {
                let mut words = zeroed_words(self.layout)?;
                bits::copy_to_zeroed(bytemuck::cast_slice_mut(&mut words), bytemuck::cast_slice(&dense.words));
                Bits::Dense(Box::new(Dense { words, estimate: dense.estimate.clone(), counts: dense.counts }))
            }
        };
        Ok(Bitmap { bits, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{Counter, Params};
    use crate::hash::hash64;
    use crate::size_limit::{MaxBytes, Unlimited};
    use std::cell::RefCell;

    #[test]
    fn positions_are_counted_as_one_by_one() {
        for (precision, tail_bits) in [(9, 8), (11, 10), (12, 11), (14, 8), (20, 19), (22, 10)] {
            let layout = Layout::new(precision, tail_bits).unwrap();
            // Around the ends of all segments, and anywhere.
            let starts = (0..=layout.num_segments()).map(|before| (0..before).map(|i| layout.slots(i)).sum::<u64>());
            let ends = starts.flat_map(|start| [start.saturating_sub(2), start.saturating_sub(1), start, start + 5]);
            let anywhere = (0..5000u64).map(|number| layout.slot_of(hash64(&number.to_le_bytes(), 0)).index);
            let positions: RoaringBitmap =
                ends.chain(anywhere).filter(|&index| index < layout.num_bits()).map(|index| index as u32).collect();
            let mut counts = SegmentCounts::default();
            positions.iter().for_each(|index| counts.increment(layout.segment_of(u64::from(index))));
            assert_eq!(counts_of(&positions, layout), counts, "{layout:?}");
            assert_eq!(counts_of(&RoaringBitmap::new(), layout), SegmentCounts::default());
        }
    }

    /// 7936 slots: half of the words, 496 bytes, are as many as 100 positions take.
    fn small() -> Layout {
        Layout::new(11, 8).unwrap()
    }

    /// Allows everything, and notes what it is asked.
    #[derive(Default)]
    struct Asked(RefCell<Vec<(u64, u64)>>);

    impl SizeLimit for Asked {
        fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
            self.0.borrow_mut().push((held_bytes, more_bytes));
            Ok(())
        }
    }

    #[test]
    fn the_most_bytes_of_positions_are_pinned() {
        // Four bytes each, and 96 for each container that there may be.
        for (precision, containers) in [(11, 1), (14, 1), (20, 17)] {
            let layout = Layout::new(precision, 8).unwrap();
            for (len, held) in [(0, 0), (1, 1), (5, 5.min(containers)), (1000, containers)] {
                assert_eq!(sparse_bytes(layout, len), 4 * len + 96 * held);
            }
        }
    }

    #[test]
    fn each_slot_asks_for_its_position_and_the_first_too_many_for_all_words() {
        let mut bitmap = Bitmap::new(small());
        let (sparse, dense) = (size_of::<Sparse>() as u64, 992 + size_of::<Dense>() as u64);
        for position in 0..200u64 {
            let asked = Asked::default();
            let slot = Slot { index: 3 * position, segment: small().segment_of(3 * position) };
            assert_eq!(bitmap.insert(slot, 1000, &asked), Ok(true));
            let expected = match position {
                0 => vec![(1000 + sparse, 100)],
                1..100 => vec![(1000 + sparse + 96 + 4 * position, 4)],
                100 => vec![(1000, dense)],
                _ => vec![],
            };
            assert_eq!(asked.0.take(), expected, "{position}");
            assert_eq!(matches!(bitmap.bits(), Bits::Sparse(_)), position < 100);
            assert_eq!(bitmap.insert(slot, 1000, &asked), Ok(false));
            assert!(asked.0.take().is_empty());
        }
    }

    #[test]
    fn all_slots_take_others_where_they_are() {
        let words = |bits: &[usize]| {
            let mut words = zeroed_words(small()).unwrap();
            bits.iter().for_each(|&bit| assert!(bits::set(&mut words, bit)));
            words
        };
        let mut dense = Bitmap::from_words(small(), words(&[1, 7000]));
        assert_eq!(dense.estimate(), Bitmap::from_words(small(), words(&[1, 7000])).estimate());
        let mut or = |layout: Layout, into: &mut [u64]| {
            assert_eq!(layout, small());
            bits::set(into, 5);
            bits::set(into, 7000);
        };
        assert!(dense.or_dense(0, &mut or));
        let expected = Bitmap::from_words(small(), words(&[1, 5, 7000]));
        assert_eq!((dense.words(), dense.counts()), (expected.words(), expected.counts()));
        assert_eq!((dense.estimate(), dense.floor()), (expected.estimate(), 0));
        assert!(dense.or_dense(77, &mut or));
        assert_eq!((dense.estimate(), dense.floor()), (77.0, 77));
        let mut sparse = Bitmap::new(small());
        assert!(!sparse.or_dense(77, &mut |_, _| panic!("it has no words")));
        assert_eq!((sparse.set_bits(), sparse.floor()), (0, 0));
    }

    #[test]
    fn a_counter_of_all_slots_takes_others_without_more_memory() {
        let counter = |members: std::ops::Range<u32>| {
            let params = Params { exact_limit: 0, capacity: 1000, ..Params::default() };
            let mut counter = Counter::new(params).unwrap();
            members.for_each(|member| assert!(counter.add(member.to_le_bytes(), &Unlimited).is_ok()));
            counter
        };
        let (mut ours, mut few) = (counter(0..5000), counter(0..10));
        assert_eq!(ours.merge(&[&counter(4000..6000), &few], &MaxBytes(0)), Ok(true));
        assert_eq!(ours.estimate(), counter(0..6000).estimate());
        assert!(matches!(few.merge(&[&ours], &MaxBytes(0)), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn the_allocations_of_a_bitmap_are_told_one_by_one() {
        let sizes = |positions: &RoaringBitmap| {
            let layout = Layout::new(20, 10).unwrap();
            // A copy has room for its positions alone.
            let bitmap = Bitmap::from_positions(layout, positions.clone(), 0, &Unlimited).unwrap();
            let mut sizes = Vec::new();
            bitmap.heap_layouts(&mut |layout| sizes.push(layout.size()));
            assert!(sizes.iter().sum::<usize>() as u64 <= bitmap.num_bytes());
            sizes
        };
        let sparse = size_of::<Sparse>();
        assert_eq!(sizes(&RoaringBitmap::new()), [sparse]);
        // The list of containers has room for four at least, of 40 bytes each; each position has two bytes.
        let container = |number: u32, len: u32| (0..len).map(move |position| (number << 16) + 13 * position);
        let of = |containers: &[(u32, u32)]| {
            containers.iter().flat_map(|&(number, len)| container(number, len)).collect::<RoaringBitmap>()
        };
        assert_eq!(sizes(&of(&[(0, 5)])), [sparse, 4 * 40, 10]);
        assert_eq!(sizes(&of(&[(0, 5), (1, 7)])), [sparse, 4 * 40, 10, 14]);
        // Of more than 4096 positions a container has a bit for each slot.
        assert_eq!(sizes(&of(&[(0, 4096), (1, 5000), (15, 9)])), [sparse, 4 * 40, 8192, 8192, 18]);
        let five: Vec<_> = (0..5).map(|number| (number, 3)).collect();
        assert_eq!(sizes(&of(&five)), [sparse, 8 * 40, 6, 6, 6, 6, 6]);
        // Dense, there are the words beside the fixed part.
        let dense = Bitmap::from_words(small(), zeroed_words(small()).unwrap());
        let mut layouts = Vec::new();
        dense.heap_layouts(&mut |layout| layouts.push((layout.size(), layout.align())));
        assert_eq!(layouts, [(size_of::<Dense>(), 8), (992, 8)]);
    }
}
