//! A limit that remembers what it allowed.

use std::alloc::Layout;
use std::cell::Cell;

use rollcall_core::error::{Error, Limit as Rejecting};
use rollcall_core::size_limit::SizeLimit;
use rollcall_core::unstable::heap::OnHeap;

use crate::input::Input;

/// Bytes that a value may take beyond what was allowed: its parameters, which other values may share and which are asked for
/// with none of them, and the list of sub-filters, whose bytes are rounded once and asked for one by one.
const UNASKED_BYTES: u64 = 512;

/// How many times as much as was allowed a value may take. A list that grows member by member doubles, and is asked for
/// by what it needs. The spec of a sub-filter is asked for with none, but counted where a full pool has not taken it.
const TIMES_ALLOWED: u64 = 2;

/// At most so many bytes for a value.
#[derive(Debug)]
pub struct Limit {
    most_bytes: u64,
    allowed_bytes: Cell<u64>,
}

impl Limit {
    /// Of so many bytes.
    pub fn of(most_bytes: u64) -> Self {
        Limit { most_bytes, allowed_bytes: Cell::new(0) }
    }

    /// A limit for values that are made: rarely tight, and never so large that one input takes long.
    pub fn chosen(input: &mut Input<'_>) -> Self {
        Self::of(match input.byte() {
            tight @ 0..64 => u64::from(tight) * 64,
            64..224 => 16 << 10,
            224..252 => 64 << 10,
            _ => 1 << 20,
        })
    }

    /// Forgets what was allowed.
    pub fn forget(&self) {
        self.allowed_bytes.set(0);
    }

    /// Bytes that a value takes.
    pub fn taken_by<T: OnHeap>(&self, value: &T) -> u64 {
        self.taken::<T>(|visit| value.heap_layouts(visit))
    }

    /// Bytes that a struct takes with all allocations that are shown.
    pub fn taken<T>(&self, show: impl FnOnce(&mut dyn FnMut(Layout))) -> u64 {
        let mut bytes = size_of::<T>() as u64;
        show(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// Checks that a value took no more than it had before, or was allowed since that was last [forgotten](Self::forget).
    ///
    /// # Panics
    /// If it did.
    pub fn check_taken(&self, before_bytes: u64, taken_bytes: u64) {
        let most_bytes = (self.allowed_bytes.get() * TIMES_ALLOWED).max(before_bytes * TIMES_ALLOWED) + UNASKED_BYTES;
        assert!(taken_bytes <= most_bytes, "{taken_bytes} bytes taken, {most_bytes} allowed");
    }
}

impl SizeLimit for Limit {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        if needed_bytes > self.most_bytes {
            return Err(Error::TooLarge { needed_bytes, limit_bytes: self.most_bytes, limit: Rejecting::Value });
        }
        self.allowed_bytes.set(self.allowed_bytes.get().max(needed_bytes));
        Ok(())
    }
}
