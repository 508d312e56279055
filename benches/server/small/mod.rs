//! Measures thousands of small keys: their memory, their storage, and the time per call if each call goes to another
//! key.

mod bytes;
mod calls;
mod keys;
mod life;

pub use bytes::{COUNTER_TABLE, FILTER_TABLE};

use crate::measure::Bench;

/// Measures small keys on servers that have no other keys.
pub fn run(bench: &mut Bench) {
    let (mut ours, mut peer) = (bench.ours.another(), bench.peer.another());
    bytes::run(bench, &mut ours, &mut peer);
    bench.step(1, 10);
    life::run(bench, &ours, &peer);
    bench.step(5, 10);
    calls::run(bench, &mut ours, &mut peer);
}
