//! Asks the kernel to make memory resident before its first use, to avoid page faults.

use std::ffi::{c_int, c_void};

/// [`make_resident`] asks the kernel only for at least this many bytes. For less memory the call costs as much as it
/// saves.
const RESIDENT_BYTES: usize = 64 * 1024;

/// Makes all pages of `memory` resident with one system call, without changing a byte. Called before a large value is
/// loaded: one page fault per page would take a third of the loading time. Has an effect on Linux 5.14 and newer only.
pub fn make_resident(memory: &[u8]) {
    /// The alignment in bytes of the range: a divisor of every page size. On a system with larger pages, the kernel
    /// rejects a range that is not aligned to them.
    const PAGE_BYTES: usize = 4096;
    if memory.len() >= RESIDENT_BYTES {
        let before = memory.as_ptr() as usize % PAGE_BYTES;
        populate(memory.as_ptr().wrapping_sub(before), memory.len() + before);
    }
}

#[cfg(target_os = "linux")]
fn populate(start: *const u8, len: usize) {
    unsafe extern "C" {
        fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
    }
    /// The advice `MADV_POPULATE_WRITE` of Linux's `madvise`.
    const POPULATE_WRITE: c_int = 23;
    // SAFETY: the kernel checks the range and changes no byte of it, even if the memory is not this module's. An error
    // leaves the pages to be provided when they are written.
    unsafe { madvise(start.cast_mut().cast(), len, POPULATE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn populate(_start: *const u8, _len: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Returns for each page of `memory` whether it is resident, according to Linux.
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
    fn memory_becomes_resident_and_stays_what_it_is() {
        // Large enough that malloc maps it anew. The middle of the memory is far from pages that a huge page may have
        // made resident.
        let memory = vec![0u8; 64 << 20];
        let part = &memory[(32 << 20) + 5000..][..1_000_000];
        make_resident(&part[..1000]);
        make_resident(&[]);
        assert!(!resident(part).contains(&true));
        make_resident(part);
        // All pages are resident, or none where Linux is older than 5.14 or its pages are larger than 4 KiB.
        let now = resident(part);
        assert!(!now.contains(&false) || !now.contains(&true));
        assert!(!resident(&memory[48 << 20..]).contains(&true));
        assert!(part.iter().all(|&byte| byte == 0));
    }
}
