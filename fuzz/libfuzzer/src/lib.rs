//! What the programs of all targets do with an input.
#![feature(cfg_sanitize)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;
use rollcall_fuzz::{AFTER_OPERATION, Target};

/// The longest that an operation may take, or an input that is one. No server may stop for longer than 100 ms. What counts
/// which branches are taken takes twice as long, and the address sanitizer some times.
const LONGEST: Duration = Duration::from_millis(if cfg!(sanitize = "address") { 800 } else { 200 });

/// The longest so far, nanoseconds. What is shorter than this first one is not worth a line.
static LONGEST_SO_FAR: AtomicU64 = AtomicU64::new(5_000_000);

thread_local! {
    /// When the operation began.
    static START: Cell<ThreadTime> = Cell::new(ThreadTime::now());
}

/// Runs a target on an input. Says so when an operation took longer than all before.
///
/// # Panics
/// Where it does, and where an operation takes too long.
pub fn run(target: Target, data: &[u8]) {
    AFTER_OPERATION.get_or_init(|| look_at_time);
    START.set(ThreadTime::now());
    target(data);
    look_at_time();
}

/// Checks the time since it was looked at last.
fn look_at_time() {
    let now = ThreadTime::now();
    let took = now.duration_since(START.replace(now));
    if LONGEST_SO_FAR.fetch_max(took.as_nanos() as u64, Ordering::Relaxed) < took.as_nanos() as u64 {
        eprintln!("longest operation: {took:.1?}");
    }
    assert!(took <= LONGEST, "an operation that takes {took:?}");
}
