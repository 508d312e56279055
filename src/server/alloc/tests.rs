//! Tests of the sizes that are requested from the server's malloc, and of the alignment of blocks.

use std::alloc::System;
use std::sync::{Mutex, PoisonError};

use super::*;

/// Serialises the tests that set the static variables.
static FOUND: Mutex<()> = Mutex::new(());

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn size_classes_are_jemallocs() {
    // From the size class table of jemalloc(3), whose quantum is 16.
    for (size, class) in [
        (1, 8),
        (9, 16),
        (17, 32),
        (127, 128),
        (129, 160),
        (192, 192),
        (193, 224),
        (257, 320),
        (513, 640),
        (1025, 1280),
        (4097, 5120),
        (16385, 20480),
        (1 << 20, 1 << 20),
        ((1 << 20) + 1, 1_310_720),
    ] {
        assert_eq!(usable_size(size), class, "{size}");
    }
}

#[test]
fn over_aligned_blocks_keep_their_base() {
    let _found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = layout(640, 64);
    // Some allocators align whole cache lines to cache lines, so that these need no padding. Unit tests assume one that
    // does not.
    let requests = || {
        let blocks = [(640, 64), (64, 32), (640, 128), (641, 64), (96, 32), (640, 16), (100, 16), (640, 8)];
        blocks.map(|(size, align)| malloc_size(size, layout(size, align)).unwrap())
    };
    ALIGNMENT.store(CACHE_LINE, Ordering::Relaxed);
    let panics = [(56, 8), (56, 1), (48, 8)].map(|(size, align)| malloc_size(size, layout(size, align)).unwrap());
    assert_eq!(panics, [64, 56, 48]);
    assert_eq!((requests(), usable_layout_size(lines)), ([640, 64, 768, 704, 96, 640, 112, 640], 640));
    ALIGNMENT.store(MALLOC_ALIGN, Ordering::Relaxed);
    assert_eq!((requests(), usable_layout_size(lines)), ([704, 96, 768, 705, 128, 656, 116, 640], 768));
    let mut block = vec![0u8; 640 + 64 + 64];
    for shift in [0usize, 8, 16, 40, 56] {
        let start = block.as_mut_ptr() as usize;
        let base = (start.next_multiple_of(64) + shift) as *mut u8;
        // SAFETY: the block has room for 640 bytes and 64 of padding after `base`, which is 8-aligned.
        unsafe {
            let aligned = align_up(base, 64);
            assert_eq!(aligned as usize % 64, 0);
            assert!(aligned as usize > base as usize && aligned as usize - base as usize <= 64);
            assert_eq!(base_of(aligned, lines), base);
        }
    }
}

/// A fake allocator that stores the size of each block in the 8 bytes before it, and aligns no block to 16 bytes.
mod odd {
    use super::*;

    const NOTE: usize = 8;

    pub static LIVE: AtomicUsize = AtomicUsize::new(0);

    unsafe fn made(size: usize, zeroed: bool) -> *mut c_void {
        let whole = layout(size + NOTE, 16);
        LIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the size is not 0; the block has room for the note.
        unsafe {
            let base = if zeroed { System.alloc_zeroed(whole) } else { System.alloc(whole) };
            base.cast::<usize>().write(size);
            base.add(NOTE).cast()
        }
    }

    pub unsafe extern "C" fn alloc(size: usize) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { made(size, false) }
    }

    pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { made(count * size, true) }
    }

    pub unsafe extern "C" fn free(block: *mut c_void) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: made above, with its size in front.
        unsafe {
            let base = block.cast::<u8>().sub(NOTE);
            System.dealloc(base, layout(base.cast::<usize>().read() + NOTE, 16));
        }
    }

    pub unsafe extern "C" fn fails(_size: usize) -> *mut c_void {
        null_mut()
    }
}

/// Makes [`odd`] the server's allocator, without the API functions that Redis 7.0 lacks.
///
/// # Safety
/// No other code may use the API's pointers. This holds, because the library does not use them in unit tests.
unsafe fn use_odd() {
    // SAFETY: as promised.
    unsafe {
        raw::RedisModule_Alloc = Some(odd::alloc);
        raw::RedisModule_TryAlloc = Some(odd::alloc);
        raw::RedisModule_Calloc = Some(odd::calloc);
        raw::RedisModule_Free = Some(odd::free);
        ALIGNMENT.store(0, Ordering::Relaxed);
        begin();
        assert_eq!(ALIGNMENT.load(Ordering::Relaxed), MALLOC_ALIGN);
    }
}

/// The byte that the tests write at offset `at` of a block.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

#[test]
fn every_alignment_is_given_where_malloc_gives_8_alone() {
    let _found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the lock keeps the other tests away; each block is used within its size and freed once, with its layout.
    unsafe {
        use_odd();
        for align in [1, 8, 16, 32, 64, 4096] {
            for size in [1usize, 15, 16, 24, 48, 640, 5000, TRY_BYTES, TRY_BYTES + 1] {
                for (zeroed, new_size) in [(false, size / 2 + 1), (true, size * 2), (true, size + TRY_BYTES)] {
                    let (before, after) = (layout(size, align), layout(new_size, align));
                    let block = allocate(before, zeroed);
                    assert!(!block.is_null() && (block as usize).is_multiple_of(align), "{before:?}");
                    assert!(!zeroed || (0..size).all(|at| block.add(at).read() == 0), "{before:?}");
                    (0..size).for_each(|at| block.add(at).write(byte(at)));
                    let block = ServerAlloc.realloc(block, before, new_size);
                    assert!(!block.is_null() && (block as usize).is_multiple_of(align), "{after:?}");
                    assert!((0..size.min(new_size)).all(|at| block.add(at).read() == byte(at)), "{before:?} {after:?}");
                    (0..new_size).for_each(|at| block.add(at).write(1));
                    ServerAlloc.dealloc(block, after);
                    assert_eq!(odd::LIVE.load(Ordering::Relaxed), 0, "{before:?} {after:?}");
                }
            }
        }
    }
}

#[test]
fn a_large_block_that_cannot_grow_stays() {
    let _found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: as above.
    unsafe {
        use_odd();
        for align in [1, 16, 64] {
            let before = layout(100, align);
            let block = allocate(before, false);
            (0..100).for_each(|at| block.add(at).write(byte(at)));
            raw::RedisModule_TryAlloc = Some(odd::fails);
            for new_size in [TRY_BYTES, 1 << 40, isize::MAX as usize - 4096, isize::MAX as usize / align * align] {
                assert!(ServerAlloc.realloc(block, before, new_size).is_null(), "{new_size}");
            }
            assert!((0..100).all(|at| block.add(at).read() == byte(at)));
            raw::RedisModule_TryAlloc = Some(odd::alloc);
            let block = ServerAlloc.realloc(block, before, TRY_BYTES);
            assert!((0..100).all(|at| block.add(at).read() == byte(at)));
            let block = ServerAlloc.realloc(block, layout(TRY_BYTES, align), 100);
            assert!((0..100).all(|at| block.add(at).read() == byte(at)));
            ServerAlloc.dealloc(block, before);
        }
        assert_eq!(odd::LIVE.load(Ordering::Relaxed), 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn large_blocks_of_zeros_are_queued_while_they_live() {
    use super::huge::tests::{queued_pages, wanted};
    const LARGE: usize = huge::BLOCK_BYTES;
    let _found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let queued_after = |size, align, zeroed| {
        // SAFETY: as above.
        unsafe {
            let block = allocate(layout(size, align), zeroed);
            let queued = queued_pages(block, size);
            ServerAlloc.dealloc(block, layout(size, align));
            assert_eq!(queued_pages(block, size), 0);
            queued
        }
    };
    // SAFETY: as above.
    unsafe { use_odd() };
    let _wanted = wanted();
    for align in [8, 64] {
        assert!(queued_after(LARGE, align, true) >= 3);
        assert_eq!((queued_after(LARGE - 1, align, true), queued_after(LARGE, align, false)), (0, 0));
        // SAFETY: as above.
        unsafe {
            let block = allocate(layout(LARGE, align), true);
            let moved = ServerAlloc.realloc(block, layout(LARGE, align), 2 * LARGE);
            assert_eq!((queued_pages(block, LARGE), queued_pages(moved, 2 * LARGE)), (0, 0));
            ServerAlloc.dealloc(moved, layout(2 * LARGE, align));
        }
    }
    huge::set(false);
    assert_eq!(queued_after(LARGE, 64, true), 0);
}
