//! Tests of the queue of pages, and of their memory.

use super::*;

/// Serialises the tests that use the queue.
static ALONE: Mutex<()> = Mutex::new(());

/// Sets the option to `yes` until the result is dropped, and keeps other tests of the queue away.
pub fn wanted() -> Wanted {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    set(true);
    Wanted(alone)
}

pub struct Wanted(#[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'static, ()>);

impl Drop for Wanted {
    fn drop(&mut self) {
        set(false);
    }
}

/// The number of a block's pages that are queued.
pub fn queued_pages(block: *mut u8, bytes: usize) -> usize {
    let pages = whole_pages(block, bytes);
    queue().blocks.iter().filter(|queued| pages.contains(&queued.start)).map(|queued| queued.len() / PAGE_BYTES).sum()
}

/// The bytes of huge pages around `pages`, according to Linux.
fn huge_bytes(pages: &Range<usize>) -> usize {
    let mut is_within = false;
    let mut bytes = 0;
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let addresses = line.split(' ').next().and_then(|word| word.split_once('-'));
        if let Some((Ok(start), Ok(end))) =
            addresses.map(|(start, end)| (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16)))
        {
            is_within = pages.start < end && start < pages.end;
        } else if let Some(kilobytes) = line.strip_prefix("AnonHugePages:")
            && is_within
        {
            bytes += kilobytes.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
        }
    }
    bytes
}

#[test]
fn whole_pages_lie_inside_a_block() {
    let at = |start: usize| std::ptr::without_provenance_mut(start);
    assert_eq!(whole_pages(at(PAGE_BYTES), BLOCK_BYTES), PAGE_BYTES..5 * PAGE_BYTES);
    assert_eq!(whole_pages(at(PAGE_BYTES + 1), BLOCK_BYTES), 2 * PAGE_BYTES..5 * PAGE_BYTES);
    assert_eq!(whole_pages(at(PAGE_BYTES - 1), BLOCK_BYTES), PAGE_BYTES..4 * PAGE_BYTES);
}

#[test]
fn pages_become_huge_and_keep_their_bytes() {
    let _wanted = wanted();
    if state() != "yes" {
        println!("left out: {}", state());
        return;
    }
    let mut memory = vec![0u8; 40 << 20];
    let (block, bytes) = (memory.as_mut_ptr(), memory.len());
    for at in (0..bytes / 2).step_by(5000) {
        memory[at] = (at % 251) as u8;
    }
    queue_block(block, bytes);
    assert!(has_new() && !has_new());
    let pages = whole_pages(block, bytes);
    assert_eq!(queued_pages(block, bytes), pages.len() / PAGE_BYTES);
    while queued_pages(block, bytes) > 0 {
        assert!(next_page());
    }
    assert!(!next_page());
    // Memory may be too fragmented for some pages.
    assert!(huge_bytes(&pages) >= pages.len() / 2, "{} of {} bytes", huge_bytes(&pages), pages.len());
    let is_kept =
        |at: usize| memory[at] == if at < bytes / 2 && at.is_multiple_of(5000) { (at % 251) as u8 } else { 0 };
    assert!((0..bytes).all(is_kept));
    withdraw(block, bytes);
}

#[test]
fn withdrawn_blocks_are_left_alone() {
    let _wanted = wanted();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                next_page();
            }
        });
        for round in 0..100 {
            let mut memory = vec![0u8; BLOCK_BYTES + round * 4096];
            let (block, bytes) = (memory.as_mut_ptr(), memory.len());
            queue_block(block, bytes);
            // In each round, the block is withdrawn at another time.
            while queued_pages(block, bytes) > round % 5 {
                memory[round] = 1;
            }
            withdraw(block, bytes);
            let queue = queue();
            let pages = whole_pages(block, bytes);
            assert!(
                !pages.contains(&queue.current) && queue.blocks.iter().all(|queued| !pages.contains(&queued.start))
            );
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// The child was forked while the queue was locked.
#[test]
fn a_forked_child_waits_for_nothing() {
    let _wanted = wanted();
    let mut memory = vec![0u8; BLOCK_BYTES];
    let (block, bytes) = (memory.as_mut_ptr(), memory.len());
    let mut locked = queue();
    locked.current = whole_pages(block, bytes).start;
    let mut status = 0;
    // SAFETY: the child calls only functions of the system before it ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // Ends a child that waits.
            libc::alarm(20);
            queue_block(block, bytes);
            withdraw(block, bytes);
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    locked.current = 0;
    assert_eq!(status, 0, "the child waited for the lock");
}
