//! What the programs of all targets do with an input.
#![feature(cfg_sanitize)]

use std::time::Duration;

use cpu_time::ThreadTime;
use rollcall_fuzz::Target;

/// The longest that an input may take, in an optimised build with checks. No server may stop for longer. The address
/// sanitizer takes some times as long.
const LONGEST: Duration = Duration::from_millis(if cfg!(sanitize = "address") { 400 } else { 100 });

/// Runs a target on an input.
///
/// # Panics
/// Where it does, and where it takes too long.
pub fn run(target: Target, data: &[u8]) {
    let start = ThreadTime::now();
    target(data);
    let took = start.elapsed();
    assert!(took <= LONGEST, "an input that takes {took:?}");
}
