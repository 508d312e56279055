//! Runs a fuzz target on one input, and fails if an operation takes too long.
#![feature(cfg_sanitize)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;
use rollcall_fuzz::{AFTER_OPERATION, Target};

/// The time limit of an operation. The goal is that no command blocks a server for more than 100 ms. Coverage counting
/// doubles the time, and the address sanitizer multiplies it further, so the limits are higher.
const LONGEST: Duration = Duration::from_millis(if cfg!(sanitize = "address") { 800 } else { 200 });

/// The time of the longest operation so far, in nanoseconds. It starts at 5 ms, so that shorter operations are not
/// reported.
static LONGEST_SO_FAR: AtomicU64 = AtomicU64::new(5_000_000);

thread_local! {
    /// The time at which the current operation began.
    static START: Cell<ThreadTime> = Cell::new(ThreadTime::now());
}

/// Runs a target on an input. Reports each operation that took longer than all operations before it.
///
/// # Panics
/// If the target panics, or if an operation takes longer than `LONGEST`.
pub fn run(target: Target, data: &[u8]) {
    AFTER_OPERATION.get_or_init(|| look_at_time);
    START.set(ThreadTime::now());
    target(data);
    look_at_time();
}

/// Checks and reports the time since the last call, or since the target was started.
fn look_at_time() {
    let now = ThreadTime::now();
    let took = now.duration_since(START.replace(now));
    if LONGEST_SO_FAR.fetch_max(took.as_nanos() as u64, Ordering::Relaxed) < took.as_nanos() as u64 {
        eprintln!("longest operation: {took:.1?}");
    }
    assert!(took <= LONGEST, "an operation that takes {took:?}");
}
