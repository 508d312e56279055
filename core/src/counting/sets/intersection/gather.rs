//! Counts the set slots in every union of some of the sets.
//!
//! Each set is folded to the common layout once. Then words are joined a block at a time, for all unions while the
//! block is in the nearest cache. Few slots are counted one by one instead.

use std::borrow::Cow;

use crate::bits;
use crate::counting::counter::Counter;
use crate::counting::held::words::zeroed_words;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::sets::union::{for_each_slot, has_few_slots};
use crate::error::Error;
use crate::size_limit::{try_filled, try_with_capacity};

/// The number of words joined at a time: 2 KiB of each set, and 2 KiB for the union.
const BLOCK_WORDS: usize = 256;

/// The number of set slots in each union. Bit `i` of the index says whether set `i` is included; the empty union is
/// first.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn counts_of_unions(layout: Layout, sets: &[&Counter]) -> Result<Vec<SegmentCounts>, Error> {
    if has_few_slots(layout, sets.iter().copied()) {
        return by_position(layout, sets);
    }
    let mut folded = try_with_capacity(sets.len())?;
    for set in sets {
        folded.push(match set.words_at(layout) {
            Some(words) => Cow::Borrowed(words),
            None => {
                let mut words = zeroed_words(layout)?;
                set.or_into(layout, &mut words);
                Cow::Owned(words.into_vec())
            }
        });
    }
    by_block(layout, &folded)
}

/// Counts the set slots of all unions of `sets`, which are bitmaps, block by block.
pub(super) fn by_block(layout: Layout, sets: &[Cow<'_, [u64]>]) -> Result<Vec<SegmentCounts>, Error> {
    let mut counts = try_filled(1 << sets.len(), SegmentCounts::default())?;
    let mut block = [0u64; BLOCK_WORDS];
    for start in (0..layout.num_words()).step_by(BLOCK_WORDS) {
        let end = layout.num_words().min(start + BLOCK_WORDS);
        let union = &mut block[..end - start];
        for (marks, counts) in counts.iter_mut().enumerate().skip(1) {
            union.fill(0);
            let marked = sets.iter().enumerate().filter(|(set, _)| marks >> set & 1 == 1);
            marked.for_each(|(_, words)| bits::or_into(union, &words[start..end]));
            counts.add_words(layout, start, union);
        }
    }
    Ok(counts)
}

/// Counts the set slots of all unions of `sets`, slot by slot.
pub(super) fn by_position(layout: Layout, sets: &[&Counter]) -> Result<Vec<SegmentCounts>, Error> {
    let mut counts = try_filled(1 << sets.len(), SegmentCounts::default())?;
    let marked = sets.iter().enumerate().map(|(set, &counter)| (counter, 1 << set));
    for_each_slot(layout, marked, |segment, marks| {
        let unions = (0..).zip(&mut counts).filter(|(union, _)| union & marks != 0);
        unions.for_each(|(_, counts)| counts.add(segment, 1));
    })?;
    Ok(counts)
}
