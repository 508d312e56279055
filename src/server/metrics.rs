//! Numbers that the module counts for `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number for `INFO`: a count of events, or a present amount. Several threads may change it.
pub struct Metric(AtomicU64);

impl Metric {
    pub const fn new() -> Self {
        Metric(AtomicU64::new(0))
    }

    /// Adds one.
    pub fn count(&self) {
        self.add(1);
    }

    /// Adds `more`.
    #[inline]
    pub fn add(&self, more: u64) {
        // Adding 0 is skipped: an atomic addition takes as long as twenty plain ones.
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Subtracts `less`, which was added before.
    #[inline]
    pub fn sub(&self, less: u64) {
        if less > 0 {
            self.0.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Replaces the part `before` of the number by `after`.
    pub fn replace(&self, before: u64, after: u64) {
        if before != after {
            self.add(after.wrapping_sub(before));
        }
    }

    /// Returns the present number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The number of stored values and chunks that were rejected as corrupt.
pub static CORRUPT_REJECTED: Metric = Metric::new();
/// The number of commands that a full filter rejected.
pub static FULL_REJECTED: Metric = Metric::new();
/// The number of values that were rejected, or kept from growing, by `max-key-bytes`.
pub static LIMIT_REJECTED: Metric = Metric::new();
/// The number of values that were rejected, or kept from growing, by `maxmemory` or the allocator.
pub static MEMORY_REJECTED: Metric = Metric::new();
/// The number of blocks that active defragmentation has moved.
pub static DEFRAG_MOVES: Metric = Metric::new();
/// The number of sub-filters that were appended to filters.
pub static GROWTHS: Metric = Metric::new();
/// The number of promotions: counters that became an estimate, and estimates that became dense.
pub static PROMOTIONS: Metric = Metric::new();
/// The number of times that windows of filters moved on.
pub static FILTER_ADVANCES: Metric = Metric::new();
/// The number of times that windows of counters moved on.
pub static COUNTER_ADVANCES: Metric = Metric::new();
