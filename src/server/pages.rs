//! Returns the memory pages of large blocks to the operating system in small steps, on background threads.
//!
//! Steps are needed because the kernel holds locks while it unmaps memory. When a windowed filter drops its oldest
//! slice, the server's thread maps memory for the next slice at the same time. If the kernel freed a gigabyte at once,
//! the server's thread would wait for a fifth of a second.

use std::cell::Cell;

thread_local! {
    static MAY_TAKE_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Drops a value and returns the pages of its large blocks in steps. Called on a background thread, where no client
/// waits.
pub fn drop_in_steps<T>(value: T) {
    /// Resets `MAY_TAKE_TIME` when dropped, even after a panic.
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

/// Returns the pages of a large block that is about to be freed, if the thread may take its time. Other blocks are left
/// to the allocator.
///
/// # Safety
/// The block is in private anonymous memory, as malloc allocates it, and no code reads it any more.
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

    /// The number of bytes that one step returns. A step takes some hundred microseconds.
    pub const STEP_BYTES: usize = 1 << 20;

    /// The alignment in bytes of each step: a multiple of every page size up to 64 KiB. On a system with larger pages,
    /// a step is whole pages too, because Linux rejects an address inside a page.
    const PAGE_BYTES: usize = 64 << 10;

    const MADV_DONTNEED: c_int = 4;

    unsafe extern "C" {
        fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }

    /// Returns the pages of a block to Linux, [`STEP_BYTES`] at a time.
    ///
    /// # Safety
    /// The same as for [`super::give_back`].
    pub unsafe fn give_back(block: *mut u8, bytes: usize) {
        let mut start = block.align_offset(PAGE_BYTES);
        while start.saturating_add(STEP_BYTES) <= bytes {
            // SAFETY: whole pages within the block, whose content is no longer needed. If it fails, the pages stay.
            unsafe { madvise(block.add(start).cast(), STEP_BYTES, MADV_DONTNEED) };
            start += STEP_BYTES;
        }
    }
}
