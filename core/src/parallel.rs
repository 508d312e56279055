//! One pass over large buffers, on several threads at once. The caller waits for the other threads.
//!
//! On one thread, copying or uniting hundreds of megabytes would block a server for a long time. Most of this time is
//! page faults and waiting for memory, which several cores can do at the same time.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The size of a piece, in bytes: a thread works on one piece at a time. A piece takes a few hundred microseconds, ten
/// times as long as starting a thread.
pub(crate) const PIECE_BYTES: usize = 4 << 20;

/// The largest number of threads, with the caller's. More would not be faster, because four use all of the memory's
/// bandwidth.
const MAX_THREADS: usize = 4;

/// Calls `work` with each piece of a buffer of `num_bytes`, and returns the sum of the results. Each piece goes to the
/// next free thread.
pub(crate) fn sum<T: Send>(
    pieces: impl ExactSizeIterator<Item = T> + Send,
    num_bytes: usize,
    work: impl Fn(T) -> u64 + Sync,
) -> u64 {
    let threads = num_threads(num_bytes);
    if threads == 1 {
        return pieces.map(work).sum();
    }
    let (pieces, total) = (Mutex::new(pieces), AtomicU64::new(0));
    let take_pieces = || {
        let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let own = std::iter::from_fn(next).map(&work).sum();
        total.fetch_add(own, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        // If a thread cannot be started, the other threads handle its pieces.
        let start = |_: usize| thread::Builder::new().spawn_scoped(scope, take_pieces).is_ok();
        let _ = (1..threads).all(start);
        take_pieces();
    });
    total.into_inner()
}

/// The number of threads for a buffer of this many bytes, including the caller's.
fn num_threads(num_bytes: usize) -> usize {
    let wanted = (num_bytes / PIECE_BYTES).min(MAX_THREADS);
    // Asking the system for its cores takes time.
    if wanted < 2 { 1 } else { thread::available_parallelism().map_or(1, NonZero::get).min(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_taken_once() {
        for (len, piece) in [(0, 1), (1, 7), (100, 7), (1000, 1)] {
            let mut buffer = vec![0u8; len];
            let own_len = |piece: &mut [u8]| {
                piece.iter_mut().for_each(|byte| *byte += 1);
                piece.len() as u64
            };
            // This uses as many threads as a larger buffer would.
            assert_eq!(sum(buffer.chunks_mut(piece), 10 * PIECE_BYTES, own_len), len as u64);
            assert!(buffer.iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn threads_are_for_large_buffers_and_free_cores() {
        assert_eq!([0, PIECE_BYTES, 2 * PIECE_BYTES - 1].map(num_threads), [1; 3]);
        assert!(num_threads(usize::MAX) <= MAX_THREADS);
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        for (pieces, most) in [(2, 2), (3, 3), (4, 4), (5, 4), (100, 4)] {
            assert_eq!(num_threads(pieces * PIECE_BYTES), cores.min(most), "{pieces} pieces");
        }
        let own = thread::current().id();
        sum([1, 2].into_iter(), PIECE_BYTES, |_| {
            assert_eq!(thread::current().id(), own);
            0
        });
    }
}
