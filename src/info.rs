//! The module's sections of the server's `INFO`: numbers of values, their memory, and counts of events. Commands keep
//! every figure up to date, so the cost of `INFO` does not depend on the number of values.

use std::ffi::{CStr, c_int};

use redis_module::raw;

use crate::server::api::api;
use crate::server::ffi::{Ctx, OK, guard};
use crate::server::metrics::{
    CORRUPT_REJECTED, COUNTER_ADVANCES, DEFRAG_MOVES, FILTER_ADVANCES, FULL_REJECTED, GROWTHS, LIMIT_REJECTED,
    MEMORY_REJECTED, PROMOTIONS,
};
use crate::server::{alloc, reclaim, version};
use crate::types::totals::{CAPACITY, GROWN, ITEMS, SUB_FILTERS, ValueKind, bytes, keys};
use crate::unserved;

/// Registers the module's sections of `INFO` with the server.
pub fn register(ctx: Ctx) {
    // SAFETY: the callback is of the type that the server calls.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx.as_ptr(), Some(report))) };
}

/// The kinds of values that are filters.
const FILTERS: [ValueKind; 5] = [
    ValueKind::Lines,
    ValueKind::Classic,
    ValueKind::WindowedFilter,
    ValueKind::LoadingFilter,
    ValueKind::LoadingClassic,
];
/// The kinds of values that are partially loaded filters.
const LOADING_FILTERS: [ValueKind; 2] = [ValueKind::LoadingFilter, ValueKind::LoadingClassic];
/// The kinds of values that are counters.
const COUNTERS: [ValueKind; 5] =
    [ValueKind::Exact, ValueKind::Sparse, ValueKind::Dense, ValueKind::WindowedCounter, ValueKind::LoadingCounter];

type Figure = (&'static CStr, u64);

/// Returns the lines of the module's general section that follow the version. The server prefixes each name with the
/// module's name.
fn general() -> [Figure; 11] {
    [
        (c"filters", keys(FILTERS)),
        (c"filters_not_served", unserved::count()),
        (c"counters", keys(COUNTERS)),
        (c"allocated_bytes", alloc::allocated_bytes() as u64),
        (c"refused_corrupt", CORRUPT_REJECTED.get()),
        (c"refused_full", FULL_REJECTED.get()),
        (c"refused_limit", LIMIT_REJECTED.get()),
        (c"refused_memory", MEMORY_REJECTED.get()),
        (c"defrag_moves", DEFRAG_MOVES.get()),
        (c"frees_waiting", reclaim::WAITING.get()),
        (c"frees_waiting_bytes", reclaim::WAITING_BYTES.get()),
    ]
}

fn of_filters() -> [Figure; 14] {
    [
        (c"filters_lines", keys([ValueKind::Lines])),
        (c"filters_classic", keys([ValueKind::Classic])),
        (c"filters_windowed", keys([ValueKind::WindowedFilter])),
        (c"filters_loading", keys(LOADING_FILTERS)),
        (c"filters_lines_bytes", bytes([ValueKind::Lines])),
        (c"filters_classic_bytes", bytes([ValueKind::Classic])),
        (c"filters_windowed_bytes", bytes([ValueKind::WindowedFilter])),
        (c"filters_loading_bytes", bytes(LOADING_FILTERS)),
        (c"filters_items", ITEMS.get()),
        (c"filters_capacity", CAPACITY.get()),
        (c"filters_sub_filters", SUB_FILTERS.get()),
        (c"filters_grown", GROWN.get()),
        (c"filters_growths", GROWTHS.get()),
        (c"filters_advances", FILTER_ADVANCES.get()),
    ]
}

fn of_counters() -> [Figure; 12] {
    [
        (c"counters_exact", keys([ValueKind::Exact])),
        (c"counters_sparse", keys([ValueKind::Sparse])),
        (c"counters_dense", keys([ValueKind::Dense])),
        (c"counters_windowed", keys([ValueKind::WindowedCounter])),
        (c"counters_loading", keys([ValueKind::LoadingCounter])),
        (c"counters_exact_bytes", bytes([ValueKind::Exact])),
        (c"counters_sparse_bytes", bytes([ValueKind::Sparse])),
        (c"counters_dense_bytes", bytes([ValueKind::Dense])),
        (c"counters_windowed_bytes", bytes([ValueKind::WindowedCounter])),
        (c"counters_loading_bytes", bytes([ValueKind::LoadingCounter])),
        (c"counters_conversions", PROMOTIONS.get()),
        (c"counters_advances", COUNTER_ADVANCES.get()),
    ]
}

unsafe extern "C" fn report(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    // The server shows a section with an empty name under the module's name. It takes no fields of a section that was
    // not requested.
    let begin = |section: &CStr| {
        // SAFETY: the context is live; the name ends with NUL.
        unsafe { api!(RedisModule_InfoAddSection(ctx, section.as_ptr())) == OK }
    };
    let add = |lines: &[Figure]| {
        for (name, value) in lines {
            // SAFETY: the context is live; the name ends with NUL.
            unsafe { api!(RedisModule_InfoAddFieldULongLong(ctx, name.as_ptr(), *value)) };
        }
    };
    guard(
        "INFO",
        || {
            if begin(c"") {
                // SAFETY: the context is live; both strings end with NUL.
                unsafe { api!(RedisModule_InfoAddFieldCString(ctx, c"version".as_ptr(), version::TEXT.as_ptr())) };
                add(&general());
            }
            if begin(c"filters") {
                add(&of_filters());
            }
            if begin(c"counters") {
                add(&of_counters());
            }
        },
        || (),
    );
}
