//! The module's sections of the server's `INFO`, and the line in its log about filters that no registered command can
//! read. Commands keep every figure up to date, so `INFO` takes the same time for any number of values.

use std::ffi::{c_int, c_void};

use redis_module::raw::{self, Status};

use crate::config::{self, Commands};
use crate::server::ffi::{Ctx, WARNING, guard, log_anywhere};
use crate::server::pages::huge;
use crate::server::{alloc, metrics, reclaim};
use crate::types::totals::{CAPACITY, GROWN, ITEMS, SUB_FILTERS, ValueKind, bytes, keys};

pub fn register(ctx: Ctx) {
    raw::register_info_function(ctx.as_ptr(), Some(report));
}

/// Each row has a name and the kinds of values to count. A second figure, with `_bytes` after the name, has their
/// bytes.
type Kinds = [(&'static str, &'static [ValueKind])];

const FILTERS: &Kinds = &[
    ("filters_lines", &[ValueKind::Lines]),
    ("filters_classic", &[ValueKind::Classic]),
    ("filters_windowed", &[ValueKind::WindowedFilter]),
    ("filters_partially_loaded", &[ValueKind::PartialFilter, ValueKind::PartialClassic]),
];
const COUNTERS: &Kinds = &[
    ("counters_exact", &[ValueKind::Exact]),
    ("counters_estimate", &[ValueKind::Estimate]),
    ("counters_windowed", &[ValueKind::WindowedCounter]),
    ("counters_partially_loaded", &[ValueKind::PartialCounter]),
];

fn all_keys(kinds: &Kinds) -> u64 {
    kinds.iter().map(|(_, kinds)| keys(kinds)).sum()
}

unsafe extern "C" fn report(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    // The server shows a section with an empty name under the module's name. It puts the module's name before the names
    // of sections and fields, and ignores fields of sections that were not requested.
    let begin = |section: &str| raw::add_info_section(ctx, Some(section)) == Status::Ok;
    let add = |name: &str, value| {
        raw::add_info_field_unsigned_long_long(ctx, name, value);
    };
    let add_kinds = |kinds: &Kinds| {
        kinds.iter().for_each(|(name, kinds)| add(name, keys(kinds)));
        kinds.iter().for_each(|(name, kinds)| add(&format!("{name}_bytes"), bytes(kinds)));
    };
    guard("INFO", || {
        if begin("") {
            raw::add_info_field_str(ctx, "version", env!("CARGO_PKG_VERSION"));
            add("filters", all_keys(FILTERS));
            add("filters_not_served", unserved());
            add("counters", all_keys(COUNTERS));
            add("allocated_bytes", alloc::ALLOCATED.get());
            add("rejected_corrupt", metrics::CORRUPT_REJECTED.get());
            add("rejected_full", metrics::FULL_REJECTED.get());
            add("rejected_limit", metrics::LIMIT_REJECTED.get());
            add("rejected_memory", metrics::MEMORY_REJECTED.get());
            add("defrag_moves", metrics::DEFRAG_MOVES.get());
            add("frees_waiting", reclaim::WAITING.get());
            add("frees_waiting_bytes", reclaim::WAITING_BYTES.get());
            raw::add_info_field_str(ctx, "huge_pages", huge::state());
        }
        if begin("filters") {
            add_kinds(FILTERS);
            add("filters_items", ITEMS.get());
            add("filters_capacity", CAPACITY.get());
            add("filters_sub_filters", SUB_FILTERS.get());
            add("filters_grown", GROWN.get());
            add("filters_growths", metrics::GROWTHS.get());
            add("filters_advances", metrics::FILTER_ADVANCES.get());
            add("filters_items_rejected", metrics::FILTER_ITEMS_REJECTED.get());
        }
        if begin("counters") {
            add_kinds(COUNTERS);
            add("counters_promotions", metrics::PROMOTIONS.get());
            add("counters_advances", metrics::COUNTER_ADVANCES.get());
            add("counters_items_rejected", metrics::COUNTER_ITEMS_REJECTED.get());
        }
    });
}

/// The number of filters that no registered command can read.
fn unserved() -> u64 {
    match config::commands() {
        Commands::All => 0,
        Commands::Beside => keys(&[ValueKind::PartialClassic]),
        Commands::Lc => {
            keys(&[ValueKind::Lines, ValueKind::WindowedFilter, ValueKind::PartialFilter, ValueKind::PartialClassic])
        }
    }
}

/// After a data set has been loaded, the module logs the number of filters that no registered command can read, unless
/// it is 0.
pub fn register_log(ctx: Ctx) {
    let loading = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_LOADING, dataver: 1 };
    raw::subscribe_to_server_event(ctx.as_ptr(), loading, Some(loaded));
}

unsafe extern "C" fn loaded(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, step: u64, _: *mut c_void) {
    let report = || match (step == raw::REDISMODULE_SUBEVENT_LOADING_ENDED, unserved()) {
        (false, _) | (_, 0) => {}
        (true, filters) => log_anywhere(WARNING, &line(filters)),
    };
    guard("an event of loading", report);
}

/// The line for the log about `unserved` filters that no registered command can read.
fn line(unserved: u64) -> String {
    let (which, way) = match config::commands() {
        Commands::Beside => ("partially loaded classic ", "commands all"),
        Commands::All | Commands::Lc => ("", "commands beside (as RF.*) or commands all"),
    };
    let (filters, are, them) = if unserved == 1 { ("filter", "is", "it") } else { ("filters", "are", "them") };
    let mode = config::commands().word();
    format!(
        "{unserved} {which}{filters} {are} kept and saved, but not served with commands {mode}; load with {way} \
         to use {them}"
    )
}
