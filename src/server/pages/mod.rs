//! Memory pages of large blocks. Before the first use of a block, the kernel provides all its pages at once, which
//! avoids page faults. Background threads return pages to the operating system in small steps.
//!
//! The kernel holds locks while it unmaps memory. If it freed a gigabyte in one step, the server's thread would wait
//! for a fifth of a second when it needs new memory.

pub mod huge;

use super::threads;
use libc::{MADV_DONTNEED, c_int, madvise};

/// Provides all pages of a range at once. The crate `libc` has this number for Linux only.
const MADV_POPULATE_WRITE: c_int = 23;

/// The smallest memory, in bytes, for which [`make_resident`] is worth its time. For less, it takes as much time as it
/// saves.
const RESIDENT_BYTES: usize = 64 * 1024;

/// The bytes that are given back to the kernel in one step, which takes a few hundred microseconds.
const STEP_BYTES: usize = 1 << 20;

/// The alignment in bytes of the memory that is given back: a multiple of every page size up to 64 KiB. On a system
/// with larger pages, Linux rejects memory that begins inside a page.
const LARGE_PAGE_BYTES: usize = 64 << 10;

/// The alignment in bytes of the range for which pages are requested: the smallest page size. On a system with larger
/// pages, the kernel may reject the range, which does no harm.
const SMALL_PAGE_BYTES: usize = 4096;

/// Asks the kernel for all pages of `memory` with one system call, without changing a byte. For a large value, page
/// faults would take a third of the loading time. Needs Linux 5.14.
pub fn make_resident(memory: &[u8]) {
    if memory.len() >= RESIDENT_BYTES && cfg!(target_os = "linux") {
        let before = memory.as_ptr() as usize % SMALL_PAGE_BYTES;
        let start = memory.as_ptr().wrapping_sub(before).cast_mut();
        // SAFETY: the kernel checks the range and changes no byte of it. If the call fails, each page is provided when
        // it is first written.
        unsafe { madvise(start.cast(), memory.len() + before, MADV_POPULATE_WRITE) };
    }
}

/// Gives the pages of a large block back to Linux in small steps, before the caller frees the block: in steps of
/// [`STEP_BYTES`] or of one huge page, because Linux does not free a part of a huge page. Does nothing on the main
/// thread and for smaller blocks.
///
/// # Safety
/// The block is in private anonymous memory, as malloc allocates it, and no code reads it any more.
pub unsafe fn give_back(block: *mut u8, bytes: usize) {
    if bytes < 2 * STEP_BYTES || threads::is_main() || cfg!(not(target_os = "linux")) {
        return;
    }
    let is_huge = bytes >= huge::BLOCK_BYTES && huge::is_used();
    let (align, step) = if is_huge { (huge::PAGE_BYTES, huge::PAGE_BYTES) } else { (LARGE_PAGE_BYTES, STEP_BYTES) };
    let mut start = block.align_offset(align);
    while start.saturating_add(step) <= bytes {
        // SAFETY: the range is whole pages within the block, and the contents of the block are no longer needed. If the
        // call fails, the pages stay in memory.
        unsafe { madvise(block.add(start).cast(), step, MADV_DONTNEED) };
        start += step;
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// For each page of `memory`, whether it is in physical memory.
    fn resident(memory: &[u8]) -> Vec<bool> {
        use std::os::unix::fs::FileExt;
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        let start = memory.as_ptr() as usize;
        let pages = start / 4096..(start + memory.len()).div_ceil(4096);
        let is_resident = |page: usize| {
            let mut entry = [0; 8];
            pagemap.read_exact_at(&mut entry, page as u64 * 8).unwrap();
            u64::from_ne_bytes(entry) >> 63 == 1
        };
        pages.map(is_resident).collect()
    }

    #[test]
    fn memory_becomes_resident_and_keeps_its_bytes() {
        // For this size, malloc takes new memory from the kernel. Its edges may be in physical memory already, as parts
        // of huge pages, but not its middle.
        let memory = vec![0u8; 64 << 20];
        let part = &memory[(32 << 20) + 5000..][..1_000_000];
        make_resident(&part[..1000]);
        make_resident(&[]);
        assert!(!resident(part).contains(&true));
        make_resident(part);
        // On Linux 5.14 or later with pages of 4 KiB, all pages are in physical memory now, otherwise none.
        let now = resident(part);
        assert!(!now.contains(&false) || !now.contains(&true));
        assert!(!resident(&memory[48 << 20..]).contains(&true));
        assert!(part.iter().all(|&byte| byte == 0));
    }
}
