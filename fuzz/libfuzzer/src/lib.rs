//! What the programs of all targets do with an input.

use std::time::Duration;

use cpu_time::ThreadTime;
use rollcall_fuzz::Target;

/// The longest that an input may take, in a build with checks and the address sanitizer. No server may stop for longer.
const LONGEST: Duration = Duration::from_millis(100);

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
