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

/// Sets the bits of all hashes in `blocks`, on `threads` threads. Returns how many bits and how many items were new.
///
/// # Errors
/// [`Error::OutOfMemory`]; nothing is changed then.
pub(super) fn insert_blocks(
    shape: ItemShape,
    lines: &mut [Line],
    blocks: &[&[Hash128]],
    threads: usize,
) -> Result<(u64, u64), Error> {
    let num_lines = lines.len();
    let num_words = blocks.iter().map(|block| block.len()).sum::<usize>().div_ceil(WORD_BITS);
    let share = num_lines.div_ceil(threads.max(1)).max(1);
    let mut parts = Vec::new();
    for (index, part) in lines.chunks_mut(share).enumerate() {
        parts.push((Part::new(part, index * share, num_lines), try_filled(num_words, 0)?));
    }
    let done: Vec<(u64, Vec<u64>)> = thread::scope(|scope| {
        let last = parts.pop();
        // Marks in `new` each hash that set a bit of the part, and returns the number of these bits.
        let fill = move |(mut part, mut new): (Part<'_>, Vec<u64>)| {
            let (mut start, mut bits) = (0, 0);
            for block in blocks {
                bits += probe::insert_part(shape, &mut part, block, start, &mut new);
                start += block.len();
            }
            (bits, new)
        };
        let running: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || fill(part))).collect();
        last.map(fill).into_iter().chain(running.into_iter().map(join)).collect()
    });
    let mut done = done.into_iter();
    let Some((mut bits, mut new)) = done.next() else { return Ok((0, 0)) };
    for (more_bits, more_new) in done {
        bits += more_bits;
        or_into(&mut new, &more_new);
    }
    Ok((bits, count_ones(&new)))
}
