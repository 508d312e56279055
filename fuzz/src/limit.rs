//! A size limit that remembers how many bytes it has allowed.

use std::alloc::Layout;
use std::cell::Cell;

use rollcall_core::error::{Error, Limit as Rejecting};
use rollcall_core::live::Value;
use rollcall_core::size_limit::SizeLimit;

use crate::input::Input;

/// Number of bytes that a value may take in addition to the bytes that it requested from the limit. Parameters are
/// not requested, because values share them. The list of sub-filters takes more than its elements, because its
/// capacity is rounded up.
const UNASKED_BYTES: u64 = 512;

/// A value may take this multiple of the bytes that it requested. A growing list requests what it needs, but doubles
/// its capacity. If the table of shared parameters is full, each sub-filter has its own: the smallest requests 104
/// bytes, and takes up to 328.
const TIMES_ALLOWED: u64 = 4;

/// A limit of `most_bytes` for a value. `allowed_bytes` is the largest size that was allowed.
#[derive(Debug)]
pub struct Limit {
    most_bytes: u64,
    allowed_bytes: Cell<u64>,
}

impl Limit {
    /// A limit of `most_bytes`.
    pub fn of(most_bytes: u64) -> Self {
        Limit { most_bytes, allowed_bytes: Cell::new(0) }
    }

    /// A limit for the value of an input: rarely tight, and never so large that one input takes long.
    pub fn chosen(input: &mut Input<'_>) -> Self {
        Self::of(match input.byte() {
            tight @ 0..64 => u64::from(tight) * 64,
            64..224 => 16 << 10,
            224..252 => 64 << 10,
            _ => 1 << 20,
        })
    }

    /// Resets the number of bytes allowed so far to 0.
    pub fn forget(&self) {
        self.allowed_bytes.set(0);
    }

    /// Number of bytes of memory that a value takes.
    pub fn taken_by<T: Value>(&self, value: &T) -> u64 {
        self.taken::<T>(|visit| value.heap_layouts(visit))
    }

    /// Number of bytes of a struct together with all allocations that `show` reports.
    pub fn taken<T>(&self, show: impl FnOnce(&mut dyn FnMut(Layout))) -> u64 {
        let mut bytes = size_of::<T>() as u64;
        show(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// Checks that a value takes no more memory than before, or than was allowed since the last call of
    /// [`Limit::forget`].
    ///
    /// # Panics
    /// If the value takes more.
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
