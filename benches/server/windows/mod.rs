//! Measures windowed filters and counters: time, bytes, and the time that other clients wait when slices begin.
//!
//! Windows have the manual clock, so that results do not depend on the time at which a slice begins.

mod bytes;
mod counters;
mod filters;
mod today;
mod waits;

pub use bytes::run as run_bytes;
pub use counters::run as run_counters;
pub use filters::run as run_filters;
pub use waits::run as run_waits;

use crate::batch::fill;
use crate::items::Source;
use crate::servers::Server;

/// A windowed filter whose older slices are full, as in permanent use.
#[derive(Clone, Copy)]
struct Window {
    capacity: u64,
    rate: f64,
    slices: u64,
}

impl Window {
    /// The number of items of a full slice.
    fn share(&self) -> u64 {
        self.capacity.div_ceil(self.slices)
    }

    /// Creates the filter with `older` items in each older slice and `newest` items in the newest. Returns the end of
    /// the range of item numbers.
    fn make(&self, server: &mut Server, key: &str, older: u64, newest: u64) -> u64 {
        let Window { capacity, rate, slices } = self;
        // The seconds do not matter: it has the manual clock.
        server.call(&format!("BF.RESERVE {key} {rate} {capacity} WINDOW {slices} MANUAL SLICES {slices}"));
        let mut next = 0;
        for slice in 0..=*slices {
            server.call(&format!("BF.ADVANCE {key} {slice}"));
            let items = if slice < *slices { older } else { newest };
            fill(server, key, &mut Source::From(next), items);
            next += items;
        }
        next
    }
}

/// The numbers after `name` in the reply to BF.DEBUG, one per sub-filter, oldest first.
fn of_sub_filters(server: &mut Server, key: &str, name: &str) -> Vec<u64> {
    let reply = server.call(&format!("BF.DEBUG {key}"));
    let number = |text: String| {
        let value = text.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned);
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    reply.elements().iter().skip(1).map(|sub_filter| number(sub_filter.text())).collect()
}
