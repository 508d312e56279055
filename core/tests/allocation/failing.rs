//! An allocator in which a chosen allocation fails.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocations of fewer bytes are small. If a small allocation fails, a server ends, whichever command asked for it.
pub const LARGE_BYTES: usize = 16 << 10;

thread_local! {
    /// The number of allocations of this thread until one fails; 0 if none fails. It counts down.
    static FAILS_IN: Cell<u64> = const { Cell::new(0) };
    /// The least size in bytes of the allocations that are counted.
    static FROM_BYTES: Cell<usize> = const { Cell::new(LARGE_BYTES) };
}

struct Failing;

impl Failing {
    /// Whether the next allocation, of this number of bytes, fails.
    fn fails(bytes: usize) -> bool {
        let left = FAILS_IN.get();
        if left == 0 || bytes < FROM_BYTES.get() {
            return false;
        }
        FAILS_IN.set(left - 1);
        left == 1
    }
}

// SAFETY: all memory comes from the system's allocator. A failed allocation returns null, as the system does without
// memory. The cells are constants without destructors, so reading them allocates nothing.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if Self::fails(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`, and all memory comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs `operate` while its `n`th allocation of at least `from_bytes` fails. Returns its result, and whether an
/// allocation failed.
pub fn with_failure_from<R>(from_bytes: usize, n: u64, operate: impl FnOnce() -> R) -> (R, bool) {
    FROM_BYTES.set(from_bytes);
    FAILS_IN.set(n);
    let outcome = operate();
    let failed = FAILS_IN.replace(0) == 0;
    (outcome, failed)
}

/// Runs `operate` while its `n`th large allocation fails.
pub fn with_failure<R>(n: u64, operate: impl FnOnce() -> R) -> (R, bool) {
    with_failure_from(LARGE_BYTES, n, operate)
}
