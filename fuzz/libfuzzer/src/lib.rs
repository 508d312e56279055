//! What the programs of all targets do with an input.
#![feature(cfg_sanitize)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cpu_time::ThreadTime;
use rollcall_fuzz::Target;

/// The longest that an input may take, in an optimised build with checks. No server may stop for longer. The address
/// sanitizer takes some times as long.
const LONGEST: Duration = Duration::from_millis(if cfg!(sanitize = "address") { 400 } else { 100 });

/// The longest so far, nanoseconds. What is shorter than this first one is not worth a line.
static LONGEST_SO_FAR: AtomicU64 = AtomicU64::new(5_000_000);

/// Runs a target on an input. Says so when it took longer than all before.
///
/// # Panics
/// Where it does, and where it takes too long.
pub fn run(target: Target, data: &[u8]) {
    let start = ThreadTime::now();
    target(data);
    let took = start.elapsed();
    if LONGEST_SO_FAR.fetch_max(took.as_nanos() as u64, Ordering::Relaxed) < took.as_nanos() as u64 {
        eprintln!("longest input: {took:.1?}");
    }
    assert!(took <= LONGEST, "an input that takes {took:?}");
}
