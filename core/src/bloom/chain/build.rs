//! Adds many items on several threads. The result is the same as when adding them one after another.
//!
//! A batch of hashes is added in parallel only if the newest sub-filter has room for the whole batch, even if every
//! item is new. So the sub-filter is not full before the last hash, and the threads need not check whether it is. Older
//! sub-filters do not change, so any thread may read them.

use std::thread;

use super::{Chain, SubFilter, look_up_chunks};
use crate::error::Error;
use crate::hash::{CHUNK, Hash128};
use crate::size_limit::{SizeLimit, try_with_capacity};

/// The least room of the newest sub-filter, in items, for adding in parallel. With less room, one thread adds the
/// items, after known items have been filtered out. Free to change.
const LEAST_ROOM: u64 = 4096;

/// The batch size, in hashes per thread, for filtering out known items. It is used while the newest sub-filter has room
/// for fewer than [`LEAST_ROOM`] items. Free to change.
const SORTED_OUT: usize = 1 << 14;

impl<S: SubFilter + Sync> Chain<S> {
    /// Adds the items with these hashes, in order, on several threads. Returns how many were new. The result has the
    /// same bits and counts as after [`Chain::add_all`].
    ///
    /// # Errors
    /// The errors of [`Chain::add`]. The items before the rejected one are added.
    ///
    /// # Panics
    /// If the system cannot start the threads.
    pub(in crate::bloom) fn add_hashed(
        &mut self,
        blocks: &[&[Hash128]],
        threads: usize,
        limit: &impl SizeLimit,
    ) -> Result<u64, Error> {
        let threads = threads.max(1);
        let before = self.num_items();
        let mut blocks = blocks.to_vec();
        loop {
            let room = self.room();
            let is_tight = room < LEAST_ROOM;
            let most = if is_tight { SORTED_OUT * threads } else { usize::try_from(room).unwrap_or(usize::MAX) };
            let batch = take(&mut blocks, most);
            if batch.is_empty() {
                return Ok(self.num_items() - before);
            }
            if is_tight {
                let absent = absent(self.sub_filters(), &batch, threads)?;
                for chunk in absent.iter().flat_map(|hashes| hashes.chunks(CHUNK)) {
                    self.prefetch_addition(chunk);
                    self.add_chunk(chunk, limit).1?;
                }
                continue;
            }
            if let Some((newest, older)) = self.sub_filters_mut().split_last_mut() {
                let absent = if older.is_empty() { Vec::new() } else { absent(older, &batch, threads)? };
                let absent: Vec<&[Hash128]> = absent.iter().map(Vec::as_slice).collect();
                newest.insert_blocks(if older.is_empty() { &batch } else { &absent }, threads)?;
            }
        }
    }
}

/// Takes up to `most` hashes from the front of `blocks`.
fn take<'h>(blocks: &mut Vec<&'h [Hash128]>, mut most: usize) -> Vec<&'h [Hash128]> {
    let mut taken = Vec::new();
    for block in blocks.iter_mut() {
        let (front, rest) = block.split_at(most.min(block.len()));
        (most, *block) = (most - front.len(), rest);
        taken.push(front);
    }
    [&mut taken, blocks].into_iter().for_each(|all| all.retain(|block| !block.is_empty()));
    taken
}

/// The hashes that none of `sub_filters` may contain, in order.
fn absent<S: SubFilter + Sync>(
    sub_filters: &[S],
    blocks: &[&[Hash128]],
    threads: usize,
) -> Result<Vec<Vec<Hash128>>, Error> {
    let total: usize = blocks.iter().map(|block| block.len()).sum();
    let share = total.div_ceil(threads).next_multiple_of(CHUNK).max(CHUNK);
    let parts: Vec<&[Hash128]> = blocks.iter().flat_map(|block| block.chunks(share)).collect();
    if let [only] = parts[..] {
        return Ok(vec![absent_of(sub_filters, only)?]);
    }
    thread::scope(|scope| {
        let running: Vec<_> = parts.iter().map(|part| scope.spawn(|| absent_of(sub_filters, part))).collect();
        running.into_iter().map(join).collect()
    })
}

fn absent_of<S: SubFilter>(sub_filters: &[S], hashes: &[Hash128]) -> Result<Vec<Hash128>, Error> {
    let mut absent = try_with_capacity(hashes.len())?;
    let record = |hash, is_known: bool| absent.extend((!is_known).then_some(hash));
    look_up_chunks(sub_filters, hashes.iter().copied(), record);
    Ok(absent)
}

/// Waits for a thread and returns its result. A panic of the thread continues here.
pub(in crate::bloom) fn join<T>(running: thread::ScopedJoinHandle<'_, T>) -> T {
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_taken_from_the_front() {
        let hashes: Vec<Hash128> = (0..12).map(|lo| Hash128 { lo, hi: 0 }).collect();
        let mut blocks: Vec<&[Hash128]> = vec![&hashes[..0], &hashes[..3], &hashes[3..3], &hashes[3..8], &hashes[8..]];
        let lens = |blocks: &[&[Hash128]]| blocks.iter().map(|block| block.len()).collect::<Vec<_>>();
        let mut taken: Vec<Hash128> = Vec::new();
        for (most, of_each, left) in [
            (6, &[3, 3][..], &[2, 4][..]),
            (0, &[], &[2, 4]),
            (2, &[2], &[4]),
            (1, &[1], &[3]),
            (usize::MAX, &[3], &[]),
            (5, &[], &[]),
        ] {
            let batch = take(&mut blocks, most);
            assert_eq!((&lens(&batch)[..], &lens(&blocks)[..]), (of_each, left), "{most}");
            taken.extend(batch.into_iter().flatten());
        }
        assert!(taken == hashes);
    }
}
