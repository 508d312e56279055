//! The metrics with their names, units and help. `docs/monitoring.md` documents all of them.

use super::families::{Kind, Metric, Of};

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, unit: None, kind: Kind::Gauge, help }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, unit: None, kind: Kind::Counter, help }
}

const fn with_unit(unit: Of, metric: Metric) -> Metric {
    Metric { unit: Some(unit), ..metric }
}

pub const UP: Metric = gauge("up", "Whether the server answers.");
pub const INFO_UP: Metric = gauge("info_up", "Whether the server answered INFO.");
pub const COLLECTED: Metric =
    with_unit(Of::Seconds, gauge("collected_timestamp", "When the server was last asked, Unix time."));
pub const COLLECT_DURATION: Metric =
    with_unit(Of::Seconds, gauge("collect_duration", "How long asking the server took."));
pub const SERVER: Metric = gauge("server_info", "Versions of the server and of the module, and its role; always 1.");
pub const UPTIME: Metric = with_unit(Of::Seconds, gauge("server_uptime", "Time since the server started."));
pub const MEMORY_USED: Metric =
    with_unit(Of::Bytes, gauge("server_memory_used", "Memory that the server uses in all."));
pub const MEMORY_MAX: Metric =
    with_unit(Of::Bytes, gauge("server_memory_max", "Memory that the server may use: maxmemory, 0 for no limit."));
pub const SERVER_FINDING: Metric =
    gauge("server_finding", "What is wrong with the server as a whole: 1 for each finding.");

pub const FILTERS: Metric = gauge("filters", "Filters, partially loaded ones too.");
pub const COUNTERS: Metric = gauge("counters", "Counters, partially loaded ones too.");
pub const NOT_SERVED: Metric = gauge("filters_not_served", "Filters that are kept and served to nobody.");
pub const ALLOCATED: Metric = with_unit(Of::Bytes, gauge("allocated", "Memory that the module holds."));
pub const VALUES: Metric = gauge("values", "Filters and counters by their form.");
pub const VALUE_BYTES: Metric = with_unit(
    Of::Bytes,
    gauge("values_memory", "Memory of filters and counters by their form, as BF.INFO and LC.INFO have their size."),
);
pub const ITEMS: Metric = gauge("filters_items", "Items in complete filters.");
pub const CAPACITY: Metric = gauge("filters_capacity", "Items that complete filters are sized for.");
pub const SUB_FILTERS: Metric = gauge("filters_sub_filters", "Sub-filters of complete filters.");
pub const GROWN: Metric = gauge("filters_grown", "Filters without a window that have more than one sub-filter.");
pub const GROWTHS: Metric = counter("filters_growths", "Sub-filters appended to filters without windows.");
pub const PROMOTIONS: Metric = counter("counters_promotions", "Counters that became an estimate.");
pub const ADVANCES: Metric = counter("advances", "Windows moved on.");
pub const ITEMS_REJECTED: Metric = counter("items_rejected", "Items that ADMIT rejected.");
pub const REJECTED: Metric = counter("rejected", "Commands and values rejected, by reason.");
pub const DEFRAG_MOVES: Metric = counter("defrag_moves", "Buffers moved by active defragmentation.");
pub const FREES: Metric = gauge("frees_waiting", "Large values handed to the background and not yet freed.");
pub const FREES_BYTES: Metric = with_unit(
    Of::Bytes,
    gauge("frees_waiting_memory", "Memory of large values that the background has not yet freed."),
);

pub const KEYS_UP: Metric = gauge("keys_up", "Whether the last look at the keys came to its end.");
pub const KEYS_SHOWN: Metric = gauge("keys_shown", "Keys that match the pattern and are shown.");
pub const KEYS_LEFT_OUT: Metric = gauge("keys_left_out", "Keys that match the pattern and are more than --max-keys.");
pub const KEYS_COLLECTED: Metric =
    with_unit(Of::Seconds, gauge("keys_collected_timestamp", "When the keys were last looked at, Unix time."));
pub const KEYS_DURATION: Metric =
    with_unit(Of::Seconds, gauge("keys_collect_duration", "How long a look at the keys took."));
pub const KEY_ITEMS: Metric = gauge("key_items", "Items of a filter or members of a counter.");
pub const KEY_CAPACITY: Metric =
    gauge("key_capacity", "Items that the filter is sized for, with a window the items of one window.");
pub const KEY_FILL: Metric = with_unit(
    Of::Ratio,
    gauge("key_fill", "Items of a filter, counted or estimated from its set bits, in parts of its capacity."),
);
pub const KEY_ERROR: Metric =
    with_unit(Of::Ratio, gauge("key_error", "False positives to be expected now, or the standard error of a counter."));
pub const KEY_ERROR_ASKED: Metric = with_unit(Of::Ratio, gauge("key_error_asked", "The error that was asked for."));
pub const KEY_SUB_FILTERS: Metric = gauge("key_sub_filters", "Sub-filters; with a window those of one slice.");
pub const KEY_MEMORY: Metric =
    with_unit(Of::Bytes, gauge("key_memory", "Memory of the value, as BF.INFO and LC.INFO have its size."));
pub const KEY_TTL: Metric = with_unit(Of::Seconds, gauge("key_ttl", "Time until it expires; absent if it does not."));
pub const KEY_PARTIALLY_LOADED: Metric = gauge("key_partially_loaded", "Whether some of its chunks are still to come.");
pub const KEY_FINDING: Metric = gauge("key_finding", "What is wrong with the key: 1 for each finding.");

/// All metrics, in the order in which they are written.
pub static ALL: [Metric; 42] = [
    UP,
    INFO_UP,
    COLLECTED,
    COLLECT_DURATION,
    SERVER,
    UPTIME,
    MEMORY_USED,
    MEMORY_MAX,
    SERVER_FINDING,
    FILTERS,
    COUNTERS,
    NOT_SERVED,
    ALLOCATED,
    VALUES,
    VALUE_BYTES,
    ITEMS,
    CAPACITY,
    SUB_FILTERS,
    GROWN,
    GROWTHS,
    PROMOTIONS,
    ADVANCES,
    ITEMS_REJECTED,
    REJECTED,
    DEFRAG_MOVES,
    FREES,
    FREES_BYTES,
    KEYS_UP,
    KEYS_SHOWN,
    KEYS_LEFT_OUT,
    KEYS_COLLECTED,
    KEYS_DURATION,
    KEY_ITEMS,
    KEY_CAPACITY,
    KEY_FILL,
    KEY_ERROR,
    KEY_ERROR_ASKED,
    KEY_SUB_FILTERS,
    KEY_MEMORY,
    KEY_TTL,
    KEY_PARTIALLY_LOADED,
    KEY_FINDING,
];

/// The fields of INFO that become metrics unchanged.
pub const PLAIN: [(&str, Metric); 13] = [
    ("rollcall_filters", FILTERS),
    ("rollcall_counters", COUNTERS),
    ("rollcall_filters_not_served", NOT_SERVED),
    ("rollcall_allocated_bytes", ALLOCATED),
    ("rollcall_filters_items", ITEMS),
    ("rollcall_filters_capacity", CAPACITY),
    ("rollcall_filters_sub_filters", SUB_FILTERS),
    ("rollcall_filters_grown", GROWN),
    ("rollcall_filters_growths", GROWTHS),
    ("rollcall_counters_promotions", PROMOTIONS),
    ("rollcall_defrag_moves", DEFRAG_MOVES),
    ("rollcall_frees_waiting", FREES),
    ("rollcall_frees_waiting_bytes", FREES_BYTES),
];

/// The reasons for rejected commands. INFO counts each in a field `rollcall_rejected_REASON`.
pub const REASONS: [&str; 4] = ["corrupt", "full", "limit", "memory"];

/// The families, filters and counters, with the forms of each, as INFO and labels name them. INFO counts values in
/// `rollcall_FAMILY_FORM` and their bytes in `rollcall_FAMILY_FORM_bytes`.
pub const FORMS: [(&str, &str, &[&str]); 2] = [
    ("filters", "filter", &["lines", "classic", "windowed", "partially_loaded"]),
    ("counters", "counter", &["exact", "estimate", "windowed", "partially_loaded"]),
];
