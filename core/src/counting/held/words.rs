//! The dense bitmap of a plain counter: a bit for each slot.

use std::alloc::Layout as Memory;

use crate::bits;
use crate::counting::held::cells::Cells;
use crate::counting::layout::{Layout, SegmentCounts, Slot};
use crate::error::Error;
use crate::heap::Mover;
use crate::size_limit::try_zeroed;
use crate::window::Mark;

/// The dense form of a plain bitmap: a bit for each slot.
#[derive(Debug)]
pub(crate) struct Words {
    /// The words of the bitmap; their number is `layout.num_words()`.
    words: Box<[u64]>,
    /// The number of set slots in each segment. Boxed, so that sparse bitmaps stay small.
    counts: Box<SegmentCounts>,
}

/// Zeroed words for a bitmap of a layout.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(in crate::counting) fn zeroed_words(layout: Layout) -> Result<Box<[u64]>, Error> {
    try_zeroed(layout.num_words())
}

impl Words {
    /// A dense bitmap of these words, whose set bits are counted.
    pub(in crate::counting) fn counted(layout: Layout, words: Box<[u64]>) -> Self {
        debug_assert_eq!(words.len(), layout.num_words());
        let mut counted = Words { words, counts: Box::default() };
        counted.count(layout, ());
        counted
    }

    pub(in crate::counting) fn as_words(&self) -> &[u64] {
        &self.words
    }
}

impl Cells<()> for Words {
    fn num_bytes(layout: Layout, (): ()) -> u64 {
        layout.num_bytes()
    }

    fn new(layout: Layout, (): ()) -> Result<Self, Error> {
        Ok(Words { words: zeroed_words(layout)?, counts: Box::default() })
    }

    fn from_payload(payload: &mut Vec<u8>, layout: Layout, (): ()) -> Result<Self, Error> {
        let mut words = zeroed_words(layout)?;
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(payload);
        Ok(Self::counted(layout, words))
    }

    fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    #[inline(always)]
    fn mark(&mut self, slot: Slot, (): (), (): ()) -> Mark {
        self.set(slot, ())
    }

    #[inline(always)]
    fn set(&mut self, slot: Slot, (): ()) -> Mark {
        let is_new = bits::set(&mut self.words, slot.index as usize);
        self.counts.add(slot.segment, u64::from(is_new));
        if is_new { Mark::New } else { Mark::Same }
    }

    #[inline(always)]
    fn prefetch(&self, slot: Slot) {
        bits::prefetch(&self.words, slot.index as usize);
    }

    fn counts(&self) -> &SegmentCounts {
        &self.counts
    }

    fn counts_within(&self, _: Layout, (): (), _: u8) -> SegmentCounts {
        *self.counts
    }

    fn has_any(&self, (): (), _: u8) -> bool {
        self.counts.total() > 0
    }

    fn merge(&mut self, to: Layout, (): (), from: &Self, layout: Layout, (): (), _: u8) -> Option<bool> {
        layout.or_folded(&from.words, to, &mut self.words);
        Some(false)
    }

    fn count(&mut self, layout: Layout, (): ()) {
        *self.counts = SegmentCounts::of_words(&self.words, layout);
    }

    fn for_each(&self, visit: &mut dyn FnMut(u64, ())) {
        bits::ones(&self.words).for_each(|index| visit(index as u64, ()));
    }

    fn heap_layouts(&self) -> [Memory; 2] {
        [Memory::for_value::<[u64]>(&self.words), Memory::new::<SegmentCounts>()]
    }

    fn relocate(&mut self, mover: &impl Mover) {
        self.words = mover.relocate(std::mem::take(&mut self.words));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let mut words: Box<[u64]> = try_zeroed(self.words.len())?;
        bits::copy_to_zeroed(bytemuck::cast_slice_mut(&mut words), self.as_bytes());
        Ok(Words { words, counts: self.counts.clone() })
    }
}
