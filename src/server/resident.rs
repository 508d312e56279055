//! Memory that the kernel makes resident before its first use.

use std::ffi::{c_int, c_void};

/// Size from which [`make_resident`] asks the kernel, bytes. For less memory the call costs as much as it saves.
const RESIDENT_BYTES: usize = 64 * 1024;

/// Makes all pages of `memory` resident in one call, before it is written. Page faults, one for each page, would take a
/// third of the time of loading a large value. No byte changes. The call has an effect on Linux 5.14 and newer, and
/// none elsewhere.
pub fn make_resident(memory: &[u8]) {
    /// A divisor of every page size. Where pages are larger, the kernel rejects addresses that are not aligned to them.
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
    /// `MADV_POPULATE_WRITE` of Linux.
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

    /// Whether each page of `memory` is resident, as Linux reports it.
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
