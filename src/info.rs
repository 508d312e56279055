//! The module's part of `INFO`: how many values there are, what they take, what was refused.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use redis_module::raw;

use crate::server::ffi::{Ctx, api, guard};
use crate::server::{alloc, version};
use crate::types::family::Family;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;

/// A number that only grows.
pub struct Metric(AtomicU64);

impl Metric {
    const fn new() -> Self {
        Metric(AtomicU64::new(0))
    }

    /// One more.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stored values and chunks that were refused as damaged.
pub static CORRUPT_REFUSED: Metric = Metric::new();
/// Values that were refused, or kept from growing, by a size limit.
pub static SIZE_REFUSED: Metric = Metric::new();

/// Registers the section.
pub fn register(ctx: Ctx) {
    // SAFETY: the callback is of the type that the server calls.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx.as_ptr(), Some(report))) };
}

unsafe extern "C" fn report(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let lines: [(&CStr, u64); 5] = [
        (c"filters", BloomFilter::registry().live() as u64),
        (c"counters", Counter::registry().live() as u64),
        (c"allocated_bytes", alloc::allocated_bytes() as u64),
        (c"refused_corrupt", CORRUPT_REFUSED.get()),
        (c"refused_size", SIZE_REFUSED.get()),
    ];
    guard(
        "INFO",
        // SAFETY: the context is live; names end with NUL. The server puts the module's name before each.
        || unsafe {
            // A section without a name of its own: it shows as the module's.
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
