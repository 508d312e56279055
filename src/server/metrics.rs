//! The counters and gauges that the module reports in `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of events, or a gauge, for `INFO`. Several threads may change it.
pub struct Metric(AtomicU64);

impl Metric {
    pub const fn new() -> Self {
        Metric(AtomicU64::new(0))
    }

    /// Adds 1.
    pub fn count(&self) {
        self.add(1);
    }

    /// Adds `more` to the number.
    #[inline]
    pub fn add(&self, more: u64) {
        // Adding 0 is skipped: an atomic addition takes as long as twenty plain ones.
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Subtracts `less`, which must have been added before.
    #[inline]
    pub fn sub(&self, less: u64) {
        if less > 0 {
            self.0.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Changes the number by the difference between `after` and `before`. Used when a part of the sum changes.
    pub fn replace(&self, before: u64, after: u64) {
        self.add(after.wrapping_sub(before));
    }

    /// Returns the current number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The number of stored values (RDB, RESTORE) and dump chunks that were rejected as corrupt.
pub static CORRUPT_REJECTED: Metric = Metric::new();
/// The number of commands that were rejected because a filter that may not grow was full.
pub static FULL_REJECTED: Metric = Metric::new();
/// The number of times that the option `max-key-bytes` rejected a value or the growth of a value.
pub static LIMIT_REJECTED: Metric = Metric::new();
/// The number of times that a lack of memory (`maxmemory` or the allocator) rejected a value or the growth of a value.
pub static MEMORY_REJECTED: Metric = Metric::new();
/// The number of blocks that active defragmentation has moved.
pub static DEFRAG_MOVES: Metric = Metric::new();
/// The number of sub-filters that were appended to filters.
pub static GROWTHS: Metric = Metric::new();
/// The number of promotions of counters: from exact to an estimate, and from a sparse to a dense estimate.
pub static PROMOTIONS: Metric = Metric::new();
/// The number of times that the sliding window of a filter advanced.
pub static FILTER_ADVANCES: Metric = Metric::new();
/// The number of times that the sliding window of a counter advanced.
pub static COUNTER_ADVANCES: Metric = Metric::new();
