//! The tapered bitmap of an estimating counter: sparse while few slots are marked, then dense.
//!
//! A sparse bitmap has the positions of the marked slots. A dense one has a cell for each slot: a bit, or with a window
//! the tag of a slice. The two forms mean the same: only the marked slots count.

use std::alloc;
use std::borrow::Cow;

use crate::counting::estimate::{KeptEstimate, Segments};
use crate::counting::held::cells::{Cells, TagCells};
use crate::counting::held::positions::{self, POSITION_BYTES, Positions};
use crate::counting::held::tag::Tag;
use crate::counting::held::words::Words;
use crate::counting::layout::{Layout, SegmentCounts, Slot};
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::Mark;

/// The bytes of cells that are made and read in the time of inserting one position into a list. Free to change: nothing
/// stored depends on it.
const CELL_BYTES_PER_MARK: u64 = 256;

/// The type of the tags of slots: no tag, or the slice in which a slot was last marked. It determines the type of the
/// dense bitmap.
pub(crate) trait SlotTag: Tag {
    /// The dense form: a cell for each slot of a layout.
    type Cells: Cells<Self>;
}

impl SlotTag for () {
    type Cells = Words;
}

impl SlotTag for u8 {
    type Cells = TagCells;
}

/// The most bytes that positions take in the stored form. A bitmap with more positions is stored dense, which takes
/// fewer bytes. With tags the limit is half of that: tagged positions are larger, and inserting into lists of thousands
/// takes long. Changing the limit changes which form is stored.
pub(in crate::counting) fn most_position_bytes<T: SlotTag>(layout: Layout, ages: T::Ages) -> u64 {
    T::Cells::num_bytes(layout, ages) / (1 + T::BYTES as u64)
}

/// Whether `len` marked slots of a layout are stored as positions.
pub(in crate::counting) fn is_sparse<T: SlotTag>(layout: Layout, len: u64, ages: T::Ages) -> bool {
    len * (POSITION_BYTES + T::BYTES) as u64 <= most_position_bytes::<T>(layout, ages)
}

/// Whether `len` marked slots of a layout are held in memory as positions. The limit is that of the stored form
/// ([`is_sparse`]). It is higher for a bitmap without tags whose positions fit one list: up to half the bytes of the
/// dense form.
pub(in crate::counting) fn has_few<T: SlotTag>(layout: Layout, len: u64, ages: T::Ages) -> bool {
    let take_half = || 2 * positions::heap_bytes::<T>(layout, len) <= T::Cells::heap_bytes(layout, ages);
    is_sparse::<T>(layout, len, ages) || T::BYTES == 0 && positions::is_one_list(layout) && take_half()
}

/// Dense cells with these marked positions.
///
/// # Errors
/// [`Error::OutOfMemory`].
fn cells_of<T: SlotTag>(layout: Layout, all: impl Iterator<Item = (u32, T)>, ages: T::Ages) -> Result<T::Cells, Error> {
    let mut cells = T::Cells::new(layout, ages)?;
    for (position, tag) in all {
        cells.mark(slot_at(layout, position.into()), tag, ages);
    }
    Ok(cells)
}

/// The marked slots of an estimating counter, sparse or dense, with the cached estimate.
#[derive(Debug)]
pub(in crate::counting) struct Bitmap<T: SlotTag = ()> {
    slots: Slots<T>,
    /// The cached estimate; none if a slot has changed since the last computation.
    estimate: KeptEstimate,
    /// A lower bound of the number of members: one more than the last exact count, or the largest lower bound of the
    /// merged counters. The estimate is never reported below it.
    lower_bound: u32,
    layout: Layout,
}

/// The marked slots, in one of two forms.
#[derive(Debug)]
pub(in crate::counting) enum Slots<T: SlotTag> {
    /// The positions of the marked slots.
    Sparse(Positions<T>),
    /// A cell for each slot: a bit, or a tag if the counter has a window.
    Dense(T::Cells),
}

/// The most heap bytes that a bitmap with `len` marked slots takes, without its struct. The number `len` decides
/// whether the bitmap is sparse or dense.
pub(in crate::counting) fn heap_bytes<T: SlotTag>(layout: Layout, len: u64, ages: T::Ages) -> u64 {
    if has_few::<T>(layout, len, ages) {
        positions::heap_bytes::<T>(layout, len)
    } else {
        T::Cells::heap_bytes(layout, ages)
    }
}

impl<T: SlotTag> Bitmap<T> {
    /// Bytes of the struct itself.
    pub(in crate::counting) const STRUCT_BYTES: u64 = size_of::<Self>() as u64;

    fn with_slots(layout: Layout, slots: Slots<T>) -> Self {
        Bitmap { slots, estimate: KeptEstimate::none(), lower_bound: 0, layout }
    }

    /// A bitmap without a marked slot; allocates nothing.
    pub(in crate::counting) fn new(layout: Layout) -> Self {
        Self::with_slots(layout, Slots::Sparse(Positions::none()))
    }

    /// A dense bitmap of these cells of `layout`.
    pub(in crate::counting) fn dense(layout: Layout, cells: T::Cells) -> Self {
        Self::with_slots(layout, Slots::Dense(cells))
    }

    /// A bitmap with these marked positions, which are ascending and below `layout.num_bits()`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn from_ascending(
        layout: Layout,
        all: impl Iterator<Item = (u32, T)> + Clone,
        ages: T::Ages,
    ) -> Result<Self, Error> {
        if has_few::<T>(layout, all.clone().count() as u64, ages) {
            return Ok(Self::with_slots(layout, Slots::Sparse(Positions::from_ascending(layout, all)?)));
        }
        Ok(Self::dense(layout, cells_of(layout, all, ages)?))
    }

    /// The layout of the bitmap.
    #[inline]
    pub(in crate::counting) fn layout(&self) -> Layout {
        self.layout
    }

    /// The least number of members that the counter can have.
    pub(in crate::counting) fn lower_bound(&self) -> u32 {
        self.lower_bound
    }

    /// Raises the lower bound of the number of members. Returns whether it was lower.
    pub(in crate::counting) fn raise_lower_bound(&mut self, lower_bound: u32) -> bool {
        let is_raised = lower_bound > self.lower_bound;
        if is_raised {
            self.lower_bound = lower_bound;
            self.drop_estimate();
        }
        is_raised
    }

    /// The marked slots, in their sparse or dense form.
    pub(in crate::counting) fn slots(&self) -> &Slots<T> {
        &self.slots
    }

    /// The slots, to change them. After marking a free slot the caller must [drop](Self::drop_estimate) the estimate.
    #[inline]
    pub(in crate::counting) fn slots_mut(&mut self) -> &mut Slots<T> {
        &mut self.slots
    }

    /// Drops the cached estimate, because slots changed.
    #[inline]
    pub(in crate::counting) fn drop_estimate(&mut self) {
        self.estimate.clear();
    }

    /// The most likely number of members, at least the lower bound.
    pub(in crate::counting) fn estimate(&self) -> f64 {
        let compute = || Segments::new(self.layout, &self.counts()).estimate();
        self.estimate.get_or(|| compute().max(f64::from(self.lower_bound)))
    }

    /// Whether the bitmap is stored as positions. With tags, every bitmap that is held as positions is also stored as
    /// positions.
    pub(in crate::counting) fn is_stored_sparse(&self) -> bool {
        let is_few = |len| T::BYTES > 0 || is_sparse::<()>(self.layout, len, ());
        matches!(&self.slots, Slots::Sparse(positions) if is_few(positions.len()))
    }

    /// A bitmap from a payload in the dense form. In memory it is held as positions if few slots are marked.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn from_stored_cells(
        layout: Layout,
        cells: T::Cells,
        ages: T::Ages,
    ) -> Result<Self, Error> {
        let is_stored_dense = !is_sparse::<T>(layout, cells.counts().total(), ages);
        let mut bitmap = Self::dense(layout, cells);
        if is_stored_dense {
            bitmap.make_sparse_if_few(ages)?;
        }
        Ok(bitmap)
    }

    /// Makes a dense bitmap sparse if few slots are marked.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; on error the bitmap is unchanged.
    pub(in crate::counting) fn make_sparse_if_few(&mut self, ages: T::Ages) -> Result<(), Error> {
        let len = self.set_bits();
        if let Slots::Dense(cells) = &self.slots
            && has_few::<T>(self.layout, len, ages)
        {
            let mut all: Vec<(u32, T)> = try_with_capacity(len as usize)?;
            cells.for_each(&mut |index, tag| all.push((index as u32, tag)));
            self.slots = Slots::Sparse(Positions::from_ascending(self.layout, all.iter().copied())?);
        }
        Ok(())
    }

    /// The number of marked slots.
    pub(in crate::counting) fn set_bits(&self) -> u64 {
        match &self.slots {
            Slots::Sparse(positions) => positions.len(),
            Slots::Dense(cells) => cells.counts().total(),
        }
    }

    /// The number of marked slots in each segment.
    pub(in crate::counting) fn counts(&self) -> Cow<'_, SegmentCounts> {
        match &self.slots {
            Slots::Sparse(positions) => Cow::Owned(positions.counts(self.layout)),
            Slots::Dense(cells) => Cow::Borrowed(cells.counts()),
        }
    }

    /// Marks a slot with `tag`, if the slot is free or its own tag is older. `held_bytes` is the size of the counter
    /// without the heap bytes of the bitmap.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]; on error the bitmap is unchanged.
    #[inline(always)]
    pub(in crate::counting) fn mark(
        &mut self,
        slot: Slot,
        tag: T,
        ages: T::Ages,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Mark, Error> {
        let mark = match &mut self.slots {
            Slots::Dense(cells) => cells.mark(slot, tag, ages),
            Slots::Sparse(_) => self.mark_sparse(slot, tag, ages, held_bytes, limit)?,
        };
        if mark == Mark::New {
            self.drop_estimate();
        }
        Ok(mark)
    }

    #[inline(never)]
    fn mark_sparse(
        &mut self,
        slot: Slot,
        tag: T,
        ages: T::Ages,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<Mark, Error> {
        let Slots::Sparse(positions) = &mut self.slots else { return Ok(Mark::Same) };
        let (layout, position, len) = (self.layout, slot.index as u32, positions.len());
        let at = match positions.renew(position, tag, ages) {
            Ok(mark) => return Ok(mark),
            Err(at) => at,
        };
        if has_few::<T>(layout, len + 1, ages) {
            let heap_bytes = |len| positions::heap_bytes::<T>(layout, len);
            limit.check(held_bytes + heap_bytes(len), heap_bytes(len + 1) - heap_bytes(len))?;
            positions.insert(layout, at, position, tag)?;
        } else {
            limit.check(held_bytes, T::Cells::heap_bytes(layout, ages))?;
            let all = positions.iter().chain([(position, tag)]);
            self.slots = Slots::Dense(cells_of(layout, all, ages)?);
        }
        Ok(Mark::New)
    }

    /// Makes a sparse bitmap dense if that is a faster way to mark `more` slots. Returns whether it did.
    ///
    /// No limit is asked: the cells take at most 8 MiB. The caller asks for what is left of them once all are marked.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn make_dense_for(&mut self, more: u64, ages: T::Ages) -> Result<bool, Error> {
        let Slots::Sparse(positions) = &self.slots else { return Ok(false) };
        let is_faster = more * CELL_BYTES_PER_MARK > T::Cells::num_bytes(self.layout, ages);
        if is_faster {
            self.slots = Slots::Dense(cells_of(self.layout, positions.iter(), ages)?);
        }
        Ok(is_faster)
    }

    /// Marks the slots of `from`, if both bitmaps are dense and their cells can be merged at once. Returns what
    /// [`Cells::merge`] does. The cells must then be [counted](Self::count).
    pub(in crate::counting) fn merge_cells(
        &mut self,
        from: &Self,
        theirs: T::Ages,
        behind: u8,
        ages: T::Ages,
    ) -> Option<bool> {
        let (Slots::Dense(own), Slots::Dense(cells)) = (&mut self.slots, &from.slots) else { return None };
        own.merge(self.layout, ages, cells, from.layout, theirs, behind)
    }

    /// Counts the marked slots of a dense bitmap, and drops the estimate. Returns whether the number has changed.
    pub(in crate::counting) fn count(&mut self, ages: T::Ages) -> bool {
        let before = self.set_bits();
        if let Slots::Dense(cells) = &mut self.slots {
            cells.count(self.layout, ages);
        }
        self.drop_estimate();
        self.set_bits() != before
    }

    /// The number of slots in each segment that were marked at most `most_age` slices ago.
    pub(in crate::counting) fn counts_within(&self, ages: T::Ages, most_age: u8) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        match &self.slots {
            Slots::Sparse(positions) => positions
                .iter()
                .filter(|(_, tag)| tag.age(ages) <= most_age)
                .for_each(|(position, _)| counts.add(self.layout.segment_of(position.into()), 1)),
            Slots::Dense(cells) => counts = cells.counts_within(self.layout, ages, most_age),
        }
        counts
    }

    /// Whether any slot was marked at most `most_age` slices ago.
    pub(in crate::counting) fn has_any(&self, ages: T::Ages, most_age: u8) -> bool {
        match &self.slots {
            Slots::Sparse(positions) => positions.iter().any(|(_, tag)| tag.age(ages) <= most_age),
            Slots::Dense(cells) => cells.has_any(ages, most_age),
        }
    }

    /// Calls `visit` with each marked slot, folded to the layout `to`, and its tag, in ascending order. A slot may come
    /// more than once.
    pub(in crate::counting) fn for_each_folded(&self, to: Layout, visit: &mut dyn FnMut(u64, T)) {
        let fold = |index: u64| if to == self.layout { index } else { self.layout.fold(index, to) };
        self.for_each(&mut |index, tag| visit(fold(index), tag));
    }

    /// Calls `visit` with each marked slot and its tag, ascending.
    pub(in crate::counting) fn for_each(&self, visit: &mut dyn FnMut(u64, T)) {
        match &self.slots {
            Slots::Sparse(positions) => positions.iter().for_each(|(position, tag)| visit(position.into(), tag)),
            Slots::Dense(cells) => cells.for_each(visit),
        }
    }

    /// Calls `visit` with the layout of each heap allocation, except the struct itself.
    pub(in crate::counting) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match &self.slots {
            Slots::Sparse(positions) => positions.heap_layouts(visit),
            Slots::Dense(cells) => cells.heap_layouts().into_iter().for_each(visit),
        }
    }

    /// Bytes of all heap allocations; for a sparse bitmap an upper bound.
    #[inline]
    pub(in crate::counting) fn num_bytes(&self) -> u64 {
        match &self.slots {
            Slots::Sparse(positions) => positions::heap_bytes::<T>(self.layout, positions.len()),
            Slots::Dense(cells) => cells.heap_layouts().iter().map(|layout| layout.size() as u64).sum(),
        }
    }

    /// Passes the buffer of cells to `mover` and keeps the buffer that it returns. Positions are not moved.
    pub(in crate::counting) fn relocate(&mut self, mover: &impl Mover) {
        if let Slots::Dense(cells) = &mut self.slots {
            cells.relocate(mover);
        }
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(in crate::counting) fn try_clone(&self) -> Result<Self, Error> {
        let slots = match &self.slots {
            Slots::Sparse(positions) => Slots::Sparse(positions.try_clone()?),
            Slots::Dense(cells) => Slots::Dense(cells.try_clone()?),
        };
        Ok(Bitmap { slots, estimate: self.estimate.clone(), ..*self })
    }
}

impl Bitmap {
    /// The positions of a bitmap that is sparse in memory but dense in the stored form; `None` for any other bitmap.
    pub(in crate::counting) fn stored_as_words(&self) -> Option<&Positions> {
        match &self.slots {
            Slots::Sparse(positions) if !self.is_stored_sparse() => Some(positions),
            _ => None,
        }
    }

    /// The words of a dense bitmap; `None` for a sparse one.
    pub(in crate::counting) fn words(&self) -> Option<&[u64]> {
        match &self.slots {
            Slots::Sparse(_) => None,
            Slots::Dense(words) => Some(words.as_words()),
        }
    }
}

/// The slot at `index`, with its segment.
pub(in crate::counting) fn slot_at(layout: Layout, index: u64) -> Slot {
    Slot { index, segment: layout.segment_of(index) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits;
    use crate::counting::held::ring::Ages;
    use crate::counting::held::words::zeroed_words;
    use std::cell::RefCell;

    /// A layout of 7936 slots. The dense words take 992 bytes, and 248 stored positions take the same. In memory, up to
    /// 454 positions are held: they take at most half the bytes of the words and their counts.
    fn small() -> Layout {
        Layout::new(11, 8).unwrap()
    }

    /// A limit that allows everything and records what was asked.
    #[derive(Default)]
    struct Asked(RefCell<Vec<(u64, u64)>>);

    impl SizeLimit for Asked {
        fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
            self.0.borrow_mut().push((held_bytes, more_bytes));
            Ok(())
        }
    }

    #[test]
    fn where_sparse_ends_is_pinned() {
        // A plain position takes four bytes, and the limit is the bytes of all words. A tagged one takes five, and the
        // limit is half the bytes of all cells.
        let halves = Ages { newest: 1, modulus: 15, most_age: 4 };
        let wholes = Ages { modulus: 255, ..halves };
        for (precision, plain, of_halves, of_wholes) in
            [(11, 248, 396, 793), (14, 672, 1075, 2150), (20, 32_880, 52_608, 105_216)]
        {
            let layout = Layout::new(precision, 8).unwrap();
            let most =
                |is_sparse: &dyn Fn(u64) -> bool| (0..1 << 20).take_while(|&len| is_sparse(len)).count() as u64 - 1;
            assert_eq!(most(&|len| is_sparse::<()>(layout, len, ())), plain, "{precision}");
            assert_eq!(most(&|len| is_sparse::<u8>(layout, len, halves)), of_halves, "{precision}");
            assert_eq!(most(&|len| is_sparse::<u8>(layout, len, wholes)), of_wholes, "{precision}");
        }
    }

    #[test]
    fn each_slot_asks_for_its_position_and_the_first_too_many_for_all_words() {
        let mut bitmap = Bitmap::new(small());
        for position in 0..500u64 {
            let asked = Asked::default();
            let slot = slot_at(small(), 3 * position);
            assert_eq!(bitmap.mark(slot, (), (), 1000, &asked), Ok(Mark::New));
            let bytes = |len| positions::heap_bytes::<()>(small(), len);
            let expected = match position {
                0..454 => vec![(1000 + bytes(position), bytes(position + 1) - bytes(position))],
                454 => vec![(1000, 992 + size_of::<SegmentCounts>() as u64)],
                _ => vec![],
            };
            assert_eq!(asked.0.take(), expected, "{position}");
            assert_eq!(
                (matches!(bitmap.slots(), Slots::Sparse(_)), bitmap.is_stored_sparse()),
                (position < 454, position < 248)
            );
            assert_eq!(bitmap.mark(slot, (), (), 1000, &asked), Ok(Mark::Same));
            assert!(asked.0.take().is_empty());
        }
    }

    #[test]
    fn some_are_held_as_positions_and_stored_as_words() {
        for (len, is_held_sparse) in [(248u64, false), (249, true), (454, true), (455, false)] {
            let mut words = zeroed_words(small()).unwrap();
            (0..len).for_each(|number| assert!(bits::set(&mut words, 17 * number as usize)));
            let read = Bitmap::from_stored_cells(small(), Words::counted(small(), words.clone()), ()).unwrap();
            assert_eq!((matches!(read.slots(), Slots::Sparse(_)), read.is_stored_sparse()), (is_held_sparse, false));
            assert_eq!(read.stored_as_words().is_some(), is_held_sparse);
            assert_eq!(*read.counts(), SegmentCounts::of_words(&words, small()));
        }
    }

    #[test]
    fn all_slots_take_others_where_they_are() {
        let dense = |bits: &[usize]| {
            let mut words = zeroed_words(small()).unwrap();
            bits.iter().for_each(|&bit| assert!(bits::set(&mut words, bit)));
            Bitmap::dense(small(), Words::counted(small(), words))
        };
        let mut taking = dense(&[1, 7000]);
        assert_eq!(taking.estimate(), dense(&[1, 7000]).estimate());
        let buffer = taking.words().unwrap().as_ptr();
        let other = dense(&[5, 7000]);
        assert_eq!(taking.merge_cells(&other, (), 0, ()), Some(false));
        assert!(taking.count(()) && !taking.count(()));
        let expected = dense(&[1, 5, 7000]);
        assert_eq!((taking.words(), taking.counts()), (expected.words(), expected.counts()));
        assert_eq!((taking.estimate(), taking.lower_bound()), (expected.estimate(), 0));
        assert_eq!(taking.merge_cells(&Bitmap::new(small()), (), 0, ()), None);
        assert_eq!(taking.words().unwrap().as_ptr(), buffer);
        assert!(taking.raise_lower_bound(77) && !taking.raise_lower_bound(70));
        assert_eq!((taking.estimate(), taking.lower_bound()), (77.0, 77));
    }
}
