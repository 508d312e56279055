//! The counters and gauges of the module in `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of events, or a gauge. Several threads may change it.
pub struct Metric(AtomicU64);

impl Metric {
    pub const fn new() -> Self {
        Metric(AtomicU64::new(0))
    }

    pub fn count(&self) {
        self.add(1);
    }

    #[inline]
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Subtracts `less`, which must have been added before.
    #[inline]
    pub fn sub(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stored values (RDB, RESTORE) and dump chunks that were rejected as corrupt.
pub static CORRUPT_REJECTED: Metric = Metric::new();
/// Commands that were rejected because a filter that does not scale was full.
pub static FULL_REJECTED: Metric = Metric::new();
/// How often `max-key-bytes` rejected a new value or the growth of a value.
pub static LIMIT_REJECTED: Metric = Metric::new();
/// How often a new value or the growth of a value was rejected for lack of memory (`maxmemory` or the allocator).
pub static MEMORY_REJECTED: Metric = Metric::new();
/// Blocks that active defragmentation has moved.
pub static DEFRAG_MOVES: Metric = Metric::new();
/// Sub-filters that were appended to filters.
pub static GROWTHS: Metric = Metric::new();
/// Counters that changed from exact to an estimate.
pub static PROMOTIONS: Metric = Metric::new();
/// Items that `BF.ADMIT` rejected because of its limit.
pub static FILTER_ITEMS_REJECTED: Metric = Metric::new();
/// Items that `LC.ADMIT` rejected because of its limit.
pub static COUNTER_ITEMS_REJECTED: Metric = Metric::new();
/// How often the sliding window of a filter moved forward.
pub static FILTER_ADVANCES: Metric = Metric::new();
/// How often the sliding window of a counter moved forward.
pub static COUNTER_ADVANCES: Metric = Metric::new();
