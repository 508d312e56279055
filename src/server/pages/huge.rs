//! Huge pages inside large bitmaps, for the option `huge-pages`.
//!
//! A bitmap begins with small pages. The background thread that frees values then turns each aligned 2 MiB of it into a
//! huge page. If the kernel used huge pages from the start, the first added items would wait while it clears them: 30
//! ms in all for a filter of 184 MB.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The size and the alignment of a huge page in bytes.
pub const PAGE_BYTES: usize = 2 << 20;

/// Blocks of at least this many bytes get huge pages.
pub const BLOCK_BYTES: usize = 8 << 20;

static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// The id of the process in which the option `huge-pages` was set to `yes`; 0 before. A forked child has another id and
/// does not use the queue, because its copy may be locked for ever.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether a block was queued since the last call of [`has_new`].
static HAS_NEW: AtomicBool = AtomicBool::new(false);

/// The blocks that still have to get huge pages.
struct Queue {
    /// For each block, the addresses of its pages that are not huge yet. No range is empty.
    blocks: Vec<Range<usize>>,
    /// The address of the page that is becoming huge now; 0 if there is none.
    current: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { blocks: Vec::new(), current: 0 });

/// Signals that [`Queue::current`] has changed.
static PAGE_DONE: Condvar = Condvar::new();

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the option `huge-pages`, for blocks that are allocated from now on.
pub fn set(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
    if is_wanted {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
    }
}

/// The state of the option `huge-pages`: `no`, `yes`, or what forbids huge pages although it is `yes`.
pub fn state() -> &'static str {
    if IS_WANTED.load(Ordering::Relaxed) { kernel::forbidden_by().unwrap_or("yes") } else { "no" }
}

/// Whether blocks of this process may have huge pages; false in a forked child.
pub fn is_used() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    process != 0 && process == std::process::id()
}

/// The addresses of the whole huge pages inside a block.
fn whole_pages(block: *mut u8, bytes: usize) -> Range<usize> {
    let start = block as usize;
    start.next_multiple_of(PAGE_BYTES)..(start + bytes) / PAGE_BYTES * PAGE_BYTES
}

/// Queues a new block of zeros, if the option is `yes` and the block is large. A queued block must be passed to
/// [`withdraw`] before it is freed.
pub fn queue_block(block: *mut u8, bytes: usize) {
    if bytes >= BLOCK_BYTES && IS_WANTED.load(Ordering::Relaxed) && is_used() {
        queue().blocks.push(whole_pages(block, bytes));
        HAS_NEW.store(true, Ordering::Relaxed);
    }
}

/// Whether a block was queued since the last call. The background thread must then call [`next_page`].
pub fn has_new() -> bool {
    HAS_NEW.load(Ordering::Relaxed) && HAS_NEW.swap(false, Ordering::Relaxed)
}

/// Makes one queued page huge, without changing a byte. Pages of the newest block come first. Returns false if no page
/// is queued.
pub fn next_page() -> bool {
    let mut guard = queue();
    let Some(pages) = guard.blocks.last_mut() else { return false };
    let page = pages.start;
    pages.start += PAGE_BYTES;
    if pages.start >= pages.end {
        guard.blocks.pop();
    }
    guard.current = page;
    drop(guard);
    if kernel::forbidden_by().is_none() {
        kernel::join(page);
    }
    queue().current = 0;
    PAGE_DONE.notify_all();
    true
}

/// Called before a block is freed: removes it from the queue of blocks whose pages are to become huge. Waits while one
/// of its pages is becoming huge.
pub fn withdraw(block: *mut u8, bytes: usize) {
    if bytes < BLOCK_BYTES || !is_used() {
        return;
    }
    let pages = whole_pages(block, bytes);
    let mut guard = queue();
    guard.blocks.retain(|queued| !pages.contains(&queued.start));
    while pages.contains(&guard.current) {
        guard = PAGE_DONE.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    drop(guard);
    kernel::release(pages);
}

#[cfg(target_os = "linux")]
mod kernel {
    use super::{PAGE_BYTES, Range};
    use libc::{MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_POPULATE_WRITE, PR_GET_THP_DISABLE, c_int, c_ulong};

    /// Joins small pages into a huge one, since Linux 6.1. The crate `libc` has this number for glibc only.
    const MADV_COLLAPSE: c_int = 25;

    /// The system's setting for pages of 2 MiB, in newer kernels, and for pages of all sizes.
    const SETTINGS: [&str; 2] =
        ["/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", "/sys/kernel/mm/transparent_hugepage/enabled"];

    /// What forbids huge pages: the system, or the process by `disable-thp`.
    pub fn forbidden_by() -> Option<&'static str> {
        let none: c_ulong = 0;
        // SAFETY: the call passes and changes no memory.
        let disabled = unsafe { libc::prctl(PR_GET_THP_DISABLE, none, none, none, none) };
        // Huge pages are still allowed on request if the number is larger than 1.
        if disabled == 1 {
            return Some("forbidden-by-disable-thp");
        }
        let mut settings = SETTINGS.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        let setting = settings.find(|setting| !setting.contains("[inherit]"));
        setting.filter(|setting| setting.contains("[never]")).map(|_| "forbidden-by-system")
    }

    fn advise(pages: Range<usize>, advice: c_int) {
        // SAFETY: none of these calls changes a byte. The kernel checks the range. If a call fails, the memory is
        // unchanged.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(pages.start), pages.len(), advice) };
    }

    /// Makes the page at this address huge.
    ///
    /// The first call allows a huge page. The second provides it if no part of the page was in use. Otherwise the third
    /// copies the small pages into a huge page (since Linux 6.1).
    pub fn join(page: usize) {
        for advice in [MADV_HUGEPAGE, MADV_POPULATE_WRITE, MADV_COLLAPSE] {
            advise(page..page + PAGE_BYTES, advice);
        }
    }

    pub fn release(pages: Range<usize>) {
        advise(pages, MADV_NOHUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::Range;

    pub fn forbidden_by() -> Option<&'static str> {
        Some("forbidden-by-system")
    }

    pub fn join(_page: usize) {}

    pub fn release(_pages: Range<usize>) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
pub mod tests;
