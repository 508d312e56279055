//! Returns the pages of large blocks to the system step by step, on threads that may take their time.
//!
//! While the system takes a gigabyte back at once, it holds locks that the server's thread needs to map memory. A
//! filter that has just dropped a slice allocates the next one at that time, and would wait for a fifth of a second.

use std::cell::Cell;

thread_local! {
    static MAY_TAKE_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Drops a value on a thread that no client waits for: the pages of its large blocks are returned step by step.
pub fn drop_in_steps<T>(value: T) {
    /// Resets `MAY_TAKE_TIME` when dropped, after a panic too.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            MAY_TAKE_TIME.set(false);
        }
    }
    let _leave = Leave;
    MAY_TAKE_TIME.set(true);
    drop(value);
}

/// Returns the pages of a block that is about to be freed, if it is large and no client waits. The rest is left to the
/// allocator.
///
/// # Safety
/// The block is allocated in private anonymous memory, as malloc has it, and no code reads it any more.
pub unsafe fn give_back(block: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= 2 * linux::STEP_BYTES && MAY_TAKE_TIME.get() {
        // SAFETY: the caller's promise.
        unsafe { linux::give_back(block, bytes) }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, bytes);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};

    /// Bytes per step; a step takes some hundred microseconds.
    pub const STEP_BYTES: usize = 1 << 20;

    /// A multiple of the sizes of pages, up to 64 KiB. Where pages are larger, Linux rejects an address that is not the
    /// start of a page, and a step is whole pages too.
    const PAGE_BYTES: usize = 64 << 10;

    const MADV_DONTNEED: c_int = 4;

    unsafe extern "C" {
        fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }

    /// # Safety
    /// As for [`super::give_back`].
    pub unsafe fn give_back(block: *mut u8, bytes: usize) {
        let mut start = block.align_offset(PAGE_BYTES);
        while start.saturating_add(STEP_BYTES) <= bytes {
            // SAFETY: whole pages within the block, whose content is no longer needed. If it fails, the pages stay.
            unsafe { madvise(block.add(start).cast(), STEP_BYTES, MADV_DONTNEED) };
            start += STEP_BYTES;
        }
    }
}
