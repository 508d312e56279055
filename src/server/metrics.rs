//! The counters and gauges of the module in `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::threads::{ROLES, Role, role};

/// A counter of events, or a gauge. Several threads may change it.
///
/// The main thread and the thread that frees in the background each write a number of their own. So they need no atomic
/// additions, which take twenty times as long. Each number may wrap around, but their sum is right.
pub struct Metric {
    /// One number per [`Role`].
    numbers: [AtomicU64; ROLES],
}

impl Metric {
    pub const fn new() -> Self {
        Metric { numbers: [const { AtomicU64::new(0) }; ROLES] }
    }

    pub fn count(&self) {
        self.add(1);
    }

    #[inline]
    pub fn add(&self, more: u64) {
        self.add_as(role(), more);
    }

    /// Adds `more`. `role` is this thread's role, which a caller with several metrics determines only once.
    #[inline]
    pub fn add_as(&self, role: Role, more: u64) {
        let number = &self.numbers[role as usize];
        if role == Role::Other {
            number.fetch_add(more, Ordering::Relaxed);
        } else {
            number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// Subtracts `less`, which must have been added before.
    pub fn sub(&self, less: u64) {
        self.add(less.wrapping_neg());
    }

    pub fn get(&self) -> u64 {
        self.numbers.iter().fold(0, |sum, number| sum.wrapping_add(number.load(Ordering::Relaxed)))
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

#[cfg(test)]
mod tests {
    use super::super::threads;
    use super::*;

    /// One thread may subtract what another has added.
    #[test]
    fn the_numbers_of_all_threads_are_summed() {
        static METRIC: Metric = Metric::new();
        let thousand = |change: fn(&Metric)| (0..1000).for_each(|_| change(&METRIC));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || thousand(|metric| metric.sub(3)));
                scope.spawn(move || thousand(|metric| metric.add(2)));
            }
            for begin in [threads::become_main, threads::become_freeing] {
                scope.spawn(move || {
                    begin();
                    thousand(|metric| metric.add(5));
                    thousand(|metric| metric.sub(1));
                    thousand(|metric| metric.count());
                });
            }
        });
        assert_eq!(METRIC.get(), 8000);
        METRIC.sub(8000);
        assert_eq!(METRIC.get(), 0);
    }
}
