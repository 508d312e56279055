//! Sums over all values in the keyspace, for `INFO`. Each change of a value updates them, so `INFO` need not visit all
//! values.
//!
//! A value is added when its [`KeyEntry`](super::entry::KeyEntry) is created, and subtracted when it is dropped. A
//! change in place goes through [`change`](super::family::change).

use crate::server::metrics::{GROWTHS, Metric, PROMOTIONS};
use crate::server::reclaim;

/// The kind of a value for `INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Lines,
    Classic,
    WindowedFilter,
    /// A partially loaded filter in Rollcall's own layout (`lines`).
    PartialFilter,
    /// A partially loaded filter that will be a classic (RedisBloom-compatible) one.
    PartialClassic,
    Exact,
    Estimate,
    WindowedCounter,
    PartialCounter,
}

const KINDS: usize = ValueKind::PartialCounter as usize + 1;

/// The number of values of one kind, and the sum of their bytes.
struct Total {
    keys: Metric,
    bytes: Metric,
}

static TOTALS: [Total; KINDS] = [const { Total { keys: Metric::new(), bytes: Metric::new() } }; KINDS];
/// The number of items in all filters; partially loaded filters count as empty.
pub static ITEMS: Metric = Metric::new();
/// The sum of the capacities of all filters, in items.
pub static CAPACITY: Metric = Metric::new();
/// The number of sub-filters of all filters.
pub static SUB_FILTERS: Metric = Metric::new();
/// The number of filters without a window that have more than one sub-filter.
pub static GROWN: Metric = Metric::new();

/// The number of values of these `kinds`.
pub fn keys(kinds: &[ValueKind]) -> u64 {
    kinds.iter().map(|&kind| TOTALS[kind as usize].keys.get()).sum()
}

/// The sum of the bytes of all values of these `kinds`. A partially loaded value contributes the bytes received so far.
pub fn bytes(kinds: &[ValueKind]) -> u64 {
    kinds.iter().map(|&kind| TOTALS[kind as usize].bytes.get()).sum()
}

/// What one value contributes to the totals for `INFO`. Counters and partially loaded filters have 0 items, capacity
/// and sub-filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueShare {
    pub kind: ValueKind,
    pub bytes: u64,
    pub items: u64,
    pub capacity: u64,
    pub sub_filters: u64,
}

impl ValueShare {
    pub fn new(kind: ValueKind, bytes: u64) -> Self {
        ValueShare { kind, bytes, items: 0, capacity: 0, sub_filters: 0 }
    }

    fn grows(&self) -> bool {
        matches!(self.kind, ValueKind::Lines | ValueKind::Classic)
    }

    /// Adds this value to the totals.
    pub fn enter(&self) {
        reclaim::prepare(self.bytes);
        self.change(Metric::add);
    }

    /// Subtracts this value from the totals.
    pub fn leave(&self) {
        self.change(Metric::sub);
    }

    /// Calls `change` with each total to which the value contributes, and with the value's number.
    #[inline(always)]
    fn change(&self, change: impl Fn(&Metric, u64)) {
        let total = &TOTALS[self.kind as usize];
        change(&total.keys, 1);
        change(&total.bytes, self.bytes);
        if matches!(self.kind, ValueKind::Lines | ValueKind::Classic | ValueKind::WindowedFilter) {
            change(&ITEMS, self.items);
            change(&CAPACITY, self.capacity);
            change(&SUB_FILTERS, self.sub_filters);
            change(&GROWN, (self.grows() && self.sub_filters > 1).into());
        }
    }

    /// Replaces `self` by `after` in the totals, and counts events ([`Self::count_events`]). Not inlined, to keep the
    /// machine code of frequent commands small.
    #[inline(never)]
    pub fn becomes(&self, after: &ValueShare) {
        if self != after {
            self.count_events(after);
            self.leave();
            after.enter();
        }
    }

    /// Counts the events between `self` and `after`: a counter's promotion from exact to an estimate, or a filter's new
    /// sub-filters.
    pub fn count_events(&self, after: &ValueShare) {
        if (self.kind, after.kind) == (ValueKind::Exact, ValueKind::Estimate) {
            PROMOTIONS.count();
        }
        if self.grows() && after.grows() {
            GROWTHS.add(after.sub_filters.saturating_sub(self.sub_filters));
        }
    }
}
