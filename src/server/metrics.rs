//! Numbers that the module counts for `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
pub struct Metric(AtomicU64);

impl Metric {
    const fn new() -> Self {
        Metric(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stored values and chunks that were refused as damaged.
pub static CORRUPT_REFUSED: Metric = Metric::new();
/// Values that were refused, or kept from growing, by a size limit.
pub static SIZE_REFUSED: Metric = Metric::new();
