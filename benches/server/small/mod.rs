//! Small keys by the thousand: their memory, their storage, and the price of a call when each goes to another key.

mod bytes;
mod calls;
mod keys;
mod life;

pub use bytes::{COUNTER_TABLE, FILTER_TABLE};

use crate::measure::Bench;

/// Measures small keys, on servers that hold nothing else.
pub fn run(bench: &mut Bench) {
    let (mut ours, mut peer) = (bench.ours.another(), bench.peer.another());
    bytes::run(bench, &mut ours, &mut peer);
    bench.step(1, 10);
    life::run(bench, &mut ours, &mut peer);
    bench.step(5, 10);
    calls::run(bench, &mut ours, &mut peer);
}
