//! Counts the set slots in every union of some of the sets.
//!
//! Each set is folded to the common layout once. Then words are joined a block at a time: larger unions are built from
//! smaller ones while the smaller ones are in the nearest cache. Few slots are counted one by one instead.

use std::borrow::Cow;

use crate::bits;
use crate::counting::counter::Counter;
use crate::counting::held::words::zeroed_words;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::sets::union::{for_each_slot, has_few_slots};
use crate::error::Error;
use crate::size_limit::{try_filled, try_with_capacity};

/// The number of words joined at a time: 2 KiB of each set, and 2 KiB for each intermediate union.
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
    let mut unions = try_filled(sets.len(), [0u64; BLOCK_WORDS])?;
    for start in (0..layout.num_words()).step_by(BLOCK_WORDS) {
        let end = layout.num_words().min(start + BLOCK_WORDS);
        for (marks, counts) in counts.iter_mut().enumerate().skip(1) {
            // Each union is kept under its first set until the next union with that first set replaces it. Unions of
            // later sets are built first.
            let first = marks.trailing_zeros() as usize;
            let others = marks & (marks - 1);
            let (earlier, later) = unions.split_at_mut(first + 1);
            let union = &mut earlier[first][..end - start];
            let own = &sets[first][start..end];
            if others == 0 {
                union.copy_from_slice(own);
            } else {
                union.copy_from_slice(&later[others.trailing_zeros() as usize - first - 1][..end - start]);
                bits::or_into(union, own);
            }
            counts.add_words(layout, start, union);
        }
    }
    Ok(counts)
}

/// Counts the set slots of all unions of `sets`, slot by slot.
pub(super) fn by_position(layout: Layout, sets: &[&Counter]) -> Result<Vec<SegmentCounts>, Error> {
    // Counts the slots that exactly the marked sets have, and afterwards the slots that no set outside the marked ones
    // has.
    let mut within = try_filled(1 << sets.len(), SegmentCounts::default())?;
    let marked = sets.iter().enumerate().map(|(set, &counter)| (counter, 1 << set));
    for_each_slot(layout, marked, |segment, marks| within[marks as usize].increment(segment))?;
    let all = within.len() - 1;
    for set in 0..sets.len() {
        for marks in (0..=all).filter(|marks| marks >> set & 1 == 1) {
            let without = within[marks ^ 1 << set];
            for segment in 0..layout.num_segments() {
                within[marks].add(segment, without.get(segment));
            }
        }
    }
    let mut counts = try_filled(1 << sets.len(), SegmentCounts::default())?;
    for (marks, union) in counts.iter_mut().enumerate() {
        for segment in 0..layout.num_segments() {
            union.add(segment, within[all].get(segment) - within[all ^ marks].get(segment));
        }
    }
    Ok(counts)
}
