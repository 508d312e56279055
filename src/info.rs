//! The module's section of `INFO`: the number of values, their memory, and what was refused.

use std::ffi::{CStr, c_int};

use redis_module::raw;

use crate::server::ffi::{Ctx, api, guard};
use crate::server::{alloc, metrics, version};
use crate::types::family::Family;
use crate::unserved;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;

/// Registers the section.
pub fn register(ctx: Ctx) {
    // SAFETY: the callback is of the type that the server calls.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx.as_ptr(), Some(report))) };
}

unsafe extern "C" fn report(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let lines: [(&CStr, u64); 6] = [
        (c"filters", live::<BloomFilter>()),
        (c"filters_not_served", unserved::count() as u64),
        (c"counters", live::<Counter>()),
        (c"allocated_bytes", alloc::allocated_bytes() as u64),
        (c"refused_corrupt", metrics::CORRUPT_REFUSED.get()),
        (c"refused_size", metrics::SIZE_REFUSED.get()),
    ];
    guard(
        "INFO",
        // SAFETY: the context is live; names end with NUL. The server puts the module's name before each.
        || unsafe {
            // The server shows a section with an empty name under the module's name.
            if api!(RedisModule_InfoAddSection(ctx, c"".as_ptr())) == crate::server::ffi::OK {
                api!(RedisModule_InfoAddFieldCString(ctx, c"version".as_ptr(), version::TEXT.as_ptr()));
                for (name, value) in lines {
                    api!(RedisModule_InfoAddFieldULongLong(ctx, name.as_ptr(), value));
                }
            }
        },
        || (),
    );
}

/// Values of a family that exist now.
fn live<T: Family>() -> u64 {
    T::data_types().iter().map(|data_type| data_type.live() as u64).sum()
}
