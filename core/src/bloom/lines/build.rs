//! Inserts many hashes on several threads.
//!
//! Each thread owns a range of lines. It goes over all hashes in order, and sets the bits that lie in its lines. So
//! each line gets its bits in the order of the hashes, whatever the number of threads. An item is new if a bit was free
//! in any of its lines.

use std::thread;

use super::super::bitmap::Line;
use super::super::chain::build::join;
use super::probe::{self, ItemShape, Part};
use crate::bits::{WORD_BITS, count_ones, or_into};
use crate::error::Error;
use crate::hash::Hash128;
use crate::size_limit::try_filled;

/// The changes that insertions made.
pub(super) struct Changed {
    /// The number of newly set bits.
    pub(super) bits: u64,
    /// The number of hashes that set a bit.
    pub(super) items: u64,
}

/// Sets the bits of all hashes in `blocks`, on `threads` threads. Returns how many bits and how many items were new.
///
/// # Errors
/// [`Error::OutOfMemory`]; nothing is changed then.
pub(super) fn insert_blocks(
    shape: ItemShape,
    lines: &mut [Line],
    blocks: &[&[Hash128]],
    threads: usize,
) -> Result<Changed, Error> {
    let num_lines = lines.len();
    let num_words = blocks.iter().map(|block| block.len()).sum::<usize>().div_ceil(WORD_BITS);
    let share = num_lines.div_ceil(threads.max(1)).max(1);
    let mut parts = Vec::new();
    for (index, part) in lines.chunks_mut(share).enumerate() {
        parts.push((Part { lines: part, first: index * share, num_lines }, try_filled(num_words, 0)?));
    }
    let done: Vec<(u64, Vec<u64>)> = thread::scope(|scope| {
        let last = parts.pop();
        let fill = move |(mut part, mut new): (Part<'_>, Vec<u64>)| (part.insert(shape, blocks, &mut new), new);
        let running: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || fill(part))).collect();
        last.map(fill).into_iter().chain(running.into_iter().map(join)).collect()
    });
    let mut done = done.into_iter();
    let Some((mut bits, mut new)) = done.next() else { return Ok(Changed { bits: 0, items: 0 }) };
    for (more_bits, more_new) in done {
        bits += more_bits;
        or_into(&mut new, &more_new);
    }
    Ok(Changed { bits, items: count_ones(&new) })
}

impl Part<'_> {
    /// Sets those bits of all hashes that fall into the lines of this part, and marks in `new` each hash that set a
    /// free bit. Returns the number of newly set bits.
    fn insert(&mut self, shape: ItemShape, blocks: &[&[Hash128]], new: &mut [u64]) -> u64 {
        let (mut start, mut bits) = (0, 0);
        for block in blocks {
            bits += probe::insert_part(shape, self, block, start, new);
            start += block.len();
        }
        bits
    }
}
