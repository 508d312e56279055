//! Sums over all values, for `INFO`. Each change of a value updates the sums, so `INFO` need not walk over all values.
//!
//! [`KeyEntry`](super::entry::KeyEntry) adds a value's share when the entry is created, and subtracts the share when
//! the entry is dropped. A command that changes a value in place records the share before and after the change, see
//! [`Before`](super::before::Before).

use crate::server::metrics::{GROWTHS, Metric, PROMOTIONS};
use crate::server::reclaim;

/// A kind of value: its family and its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Lines,
    Classic,
    /// A filter with a window of time or of the last items.
    WindowedFilter,
    /// A partially loaded filter.
    LoadingFilter,
    /// A partially loaded value that becomes a classic filter.
    LoadingClassic,
    Exact,
    Sparse,
    Dense,
    WindowedCounter,
    /// A partially loaded counter.
    LoadingCounter,
}

/// The number of kinds.
const KINDS: usize = ValueKind::LoadingCounter as usize + 1;

/// Sums over the values of a kind.
struct Total {
    keys: Metric,
    bytes: Metric,
}

static TOTALS: [Total; KINDS] = [const { Total { keys: Metric::new(), bytes: Metric::new() } }; KINDS];
/// The number of items in all complete filters.
pub static ITEMS: Metric = Metric::new();
/// The number of items that all complete filters are sized for.
pub static CAPACITY: Metric = Metric::new();
/// The number of sub-filters of all complete filters.
pub static SUB_FILTERS: Metric = Metric::new();
/// The number of filters with more than one sub-filter; windowed filters are not counted.
pub static GROWN: Metric = Metric::new();

/// Returns the number of values of all these `kinds`.
pub fn keys<const N: usize>(kinds: [ValueKind; N]) -> u64 {
    kinds.iter().map(|&kind| TOTALS[kind as usize].keys.get()).sum()
}

/// Returns the bytes of all values of these `kinds`. A partially loaded value counts with the bytes received so far.
pub fn bytes<const N: usize>(kinds: [ValueKind; N]) -> u64 {
    kinds.iter().map(|&kind| TOTALS[kind as usize].bytes.get()).sum()
}

/// What one value adds to the totals. Items, capacity and sub-filters are 0 for counters, and for filters that are still
/// being loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueShare {
    pub kind: ValueKind,
    pub bytes: u64,
    pub items: u64,
    pub capacity: u64,
    pub sub_filters: u64,
}

impl ValueShare {
    /// Returns the share of a value without items, capacity and sub-filters.
    pub fn of(kind: ValueKind, bytes: u64) -> Self {
        ValueShare { kind, bytes, items: 0, capacity: 0, sub_filters: 0 }
    }

    fn is_complete_filter(&self) -> bool {
        matches!(self.kind, ValueKind::Lines | ValueKind::Classic | ValueKind::WindowedFilter)
    }

    fn grows(&self) -> bool {
        matches!(self.kind, ValueKind::Lines | ValueKind::Classic)
    }

    fn is_grown(&self) -> bool {
        self.grows() && self.sub_filters > 1
    }

    /// Adds the value to the sums.
    pub fn enter(&self) {
        reclaim::prepare(self.bytes);
        self.change(Metric::add);
    }

    /// Subtracts the value from the sums.
    pub fn leave(&self) {
        self.change(Metric::sub);
    }

    /// Applies `change` to every sum that the value is part of.
    #[inline(always)]
    fn change(&self, change: impl Fn(&Metric, u64)) {
        let total = &TOTALS[self.kind as usize];
        change(&total.keys, 1);
        change(&total.bytes, self.bytes);
        if self.is_complete_filter() {
            change(&ITEMS, self.items);
            change(&CAPACITY, self.capacity);
            change(&SUB_FILTERS, self.sub_filters);
            change(&GROWN, self.is_grown().into());
        }
    }

    /// Replaces the value's share of the sums by `after`.
    pub fn becomes(&self, after: &ValueShare) {
        if self == after {
            return;
        }
        self.count_events(after);
        reclaim::prepare(after.bytes);
        if self.kind != after.kind {
            self.leave();
            after.enter();
            return;
        }
        TOTALS[self.kind as usize].bytes.replace(self.bytes, after.bytes);
        ITEMS.replace(self.items, after.items);
        CAPACITY.replace(self.capacity, after.capacity);
        SUB_FILTERS.replace(self.sub_filters, after.sub_filters);
        GROWN.replace(self.is_grown().into(), after.is_grown().into());
    }

    /// Counts the events that led from this share to `after`.
    pub fn count_events(&self, after: &ValueShare) {
        if matches!(
            (self.kind, after.kind),
            (ValueKind::Exact, ValueKind::Sparse | ValueKind::Dense) | (ValueKind::Sparse, ValueKind::Dense)
        ) {
            PROMOTIONS.count();
        }
        if self.grows() && after.grows() {
            GROWTHS.add(after.sub_filters.saturating_sub(self.sub_filters));
        }
    }
}
