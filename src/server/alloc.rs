//! The global allocator of this module. It calls the server's allocator, so that the server's memory figures,
//! `maxmemory` and defragmentation include this module's memory.
//!
//! `redis_module::alloc::RedisAlloc` is not used, for three reasons:
//! - It has no `alloc_zeroed`. A new filter of 1 GB would be cleared on the server's thread, not later by the kernel.
//! - It ends the process when a large allocation fails.
//! - It promises alignments that not every malloc gives.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis_module::raw;
use rollcall_core::unstable::Mover;

use super::metrics::{DEFRAG_MOVES, Metric};
use super::pages::{self, huge};

/// The alignment in bytes that every malloc guarantees. It is not 16: the jemalloc of Redis has blocks of 24 and 40
/// bytes, and on some systems the server stores the size of a block in the 8 bytes before it.
const MALLOC_ALIGN: usize = 8;

/// Allocations of at least this number of bytes return null if memory is lacking. If a smaller allocation fails, the
/// server ends the process.
const TRY_BYTES: usize = 64 * 1024;

/// Bitmaps are aligned to cache lines.
const CACHE_LINE: usize = 64;

/// The measured alignment of the server's malloc, for sizes that are a multiple of it: [`MALLOC_ALIGN`] or
/// [`CACHE_LINE`] bytes; 0 before the first allocation.
static ALIGNMENT: AtomicUsize = AtomicUsize::new(0);

/// The difference in bytes between jemalloc's smallest size classes: 16 by default, and 8 in the jemalloc of Redis; 0
/// for another allocator.
static QUANTUM: AtomicUsize = AtomicUsize::new(16);

/// The bytes that are allocated now.
pub static ALLOCATED: Metric = Metric::new();

/// Unit tests run outside a server, and use the system's allocator.
pub struct ServerAlloc;

#[cfg(not(test))]
#[global_allocator]
static GLOBAL: ServerAlloc = ServerAlloc;

/// Prepares the allocator. Before this call, nothing can be allocated.
///
/// # Safety
/// The pointers to the server's functions are filled in.
pub unsafe fn begin() {
    // The alignment decides which blocks have padding. It is not measured again after a failed load, because blocks of
    // that load may remain.
    if ALIGNMENT.load(Ordering::Relaxed) == 0 {
        // SAFETY: as the caller promises.
        ALIGNMENT.store(unsafe { malloc_alignment() }, Ordering::Relaxed);
    }
}

/// The number of blocks of each size with which malloc's alignment is tested. The blocks are freed at the end, because
/// malloc would return a freed block again.
const TRIED: usize = 16;

/// Measures the alignment of malloc's blocks. Several sizes are tried, because all blocks of one size may be aligned by
/// chance.
///
/// With jemalloc, blocks of whole cache lines are aligned to cache lines, so bitmaps need no padding. The name of the
/// server's allocator is not enough, because another allocator may be preloaded.
///
/// # Safety
/// The pointers to the server's functions are filled in.
unsafe fn malloc_alignment() -> usize {
    let mut sizes = (1..=16).map(|lines| lines * CACHE_LINE).chain([16, 48, 80, 112, 208, 1344, 5184, 20_544]);
    // A block of jemalloc is aligned to the power of two that divides its size.
    let is_aligned = |block: *mut c_void, size: usize| {
        !block.is_null() && (block as usize).is_multiple_of(CACHE_LINE.min(size & size.wrapping_neg()))
    };
    // SAFETY: as the caller promises; `all_blocks` passes allocated blocks.
    if sizes.all(|size| unsafe { all_blocks(size, |block| is_aligned(block, size)) }) {
        CACHE_LINE
    } else {
        MALLOC_ALIGN
    }
}

/// Tests the server's allocator with [`TRIED`] new blocks of `size` bytes. Returns whether `is_right` is true for all.
///
/// # Safety
/// The pointers to the server's functions are filled in.
unsafe fn all_blocks(size: usize, is_right: impl Fn(*mut c_void) -> bool) -> bool {
    // SAFETY: each block is passed to `is_right` before it is freed, and it is freed once.
    unsafe {
        let (Some(alloc), Some(free)) = (raw::RedisModule_Alloc, raw::RedisModule_Free) else { return false };
        let blocks = [(); TRIED].map(|()| alloc(size));
        let all_right = blocks.iter().all(|block| is_right(*block));
        blocks.into_iter().for_each(|block| free(block));
        all_right
    }
}

/// Finds the difference between jemalloc's smallest size classes. If it is 8 bytes, a block of 24 bytes takes 24 bytes;
/// if it is 16, 32 bytes.
pub fn set_size_classes(jemalloc: bool) {
    // SAFETY: the pointers to the server's functions are filled in while the module loads, and `MallocSize`, which the
    // server may lack, is checked. `all_blocks` passes allocated blocks.
    let takes_24 = |block| unsafe { raw::RedisModule_MallocSize.is_some_and(|size_of| size_of(block) == 24) };
    // SAFETY: as above.
    let quantum = match unsafe { all_blocks(24, takes_24) } {
        _ if !jemalloc => 0,
        true => 8,
        false => 16,
    };
    QUANTUM.store(quantum, Ordering::Relaxed);
}

/// The bytes that malloc reserves for a request of `size` bytes, without padding.
pub fn usable_size(size: usize) -> usize {
    if size == 0 {
        return 0;
    }
    let quantum = QUANTUM.load(Ordering::Relaxed);
    if quantum == 0 {
        return size.saturating_add(8).checked_next_multiple_of(16).unwrap_or(size).max(32) - 8;
    }
    if size <= 8 {
        return 8;
    }
    let step = 1usize << (usize::BITS - (size - 1).leading_zeros() - 3);
    size.checked_next_multiple_of(step.max(quantum)).unwrap_or(size)
}

/// The bytes of padding before an allocation: 0 unless its alignment is larger than malloc's. The last word of the
/// padding has the address that malloc returned.
fn padding(layout: Layout) -> usize {
    if layout.align() > ALIGNMENT.load(Ordering::Relaxed) { layout.align() } else { 0 }
}

/// The size of the block that Rust allocates for a panic, with an alignment of 8. LLVM's unwinder needs 16 bytes of
/// alignment. Every malloc gives them to blocks of 64 bytes, so 64 bytes are requested.
const PANIC_BYTES: usize = 56;

/// The bytes to request from malloc for `size` bytes and their padding; `None` on overflow.
fn malloc_size(size: usize, layout: Layout) -> Option<usize> {
    match padding(layout) {
        0 if (size, layout.align()) == (PANIC_BYTES, 8) => Some(64),
        0 => size.checked_next_multiple_of(layout.align()),
        padding => size.checked_add(padding),
    }
}

/// The bytes that malloc reserves for an allocation of this layout, with its padding.
pub fn usable_layout_size(layout: Layout) -> usize {
    usable_size(malloc_size(layout.size(), layout).unwrap_or(usize::MAX))
}

/// Allocates `size` bytes with the server's malloc. Null if memory is lacking.
///
/// # Safety
/// Must be called inside a server.
unsafe fn server_alloc(size: usize, zeroed: bool) -> *mut u8 {
    // SAFETY: the pointers to the server's functions are filled in inside a server.
    unsafe {
        let pointer: *mut c_void = match (zeroed, size >= TRY_BYTES, raw::RedisModule_TryCalloc) {
            (false, false, _) => raw::RedisModule_Alloc.map_or(null_mut(), |alloc| alloc(size)),
            (false, true, _) => raw::RedisModule_TryAlloc.map_or(null_mut(), |alloc| alloc(size)),
            (true, true, Some(try_calloc)) => try_calloc(1, size),
            // Redis 7.0 and 7.2 have no TryCalloc, so TryAlloc first shows whether memory is available. If another
            // thread takes the memory in between, the server ends the process.
            (true, true, None) if !can_allocate(size) => null_mut(),
            (true, ..) => raw::RedisModule_Calloc.map_or(null_mut(), |calloc| calloc(1, size)),
        };
        pointer.cast()
    }
}

/// Returns an aligned address in the block at `base`, and writes `base` into the word before this address.
///
/// # Safety
/// `base` is null or has `size + align` bytes, where `align` is a power of two above 8.
unsafe fn align_up(base: *mut u8, align: usize) -> *mut u8 {
    if base.is_null() {
        return base;
    }
    // SAFETY: malloc aligns to 8, so the next multiple of `align` after `base` is 8 to `align` bytes further. These
    // bytes are the padding, which has room for the address.
    unsafe {
        let offset = align - (base as usize & (align - 1));
        let aligned = base.add(offset);
        aligned.cast::<*mut u8>().sub(1).write(base);
        aligned
    }
}

/// The address that malloc returned for the allocation at `pointer`.
///
/// # Safety
/// `pointer` was allocated by this allocator with `layout`.
unsafe fn base_of(pointer: *mut u8, layout: Layout) -> *mut u8 {
    if padding(layout) == 0 {
        return pointer;
    }
    // SAFETY: `align_up` wrote this address into the word before the allocation.
    unsafe { pointer.cast::<*mut u8>().sub(1).read() }
}

/// Allocates a block of this layout, with padding for its alignment.
///
/// # Safety
/// The same as for `GlobalAlloc::alloc`.
unsafe fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(size) = malloc_size(layout.size(), layout) else { return null_mut() };
        let base = server_alloc(size, zeroed);
        let pointer = if padding(layout) == 0 { base } else { align_up(base, layout.align()) };
        if layout.align() > MALLOC_ALIGN && !(pointer as usize).is_multiple_of(layout.align()) {
            // All blocks that the function `malloc_alignment` tested had this alignment. This block does not have it,
            // so it cannot be used.
            if let Some(free) = raw::RedisModule_Free {
                free(base.cast());
            }
            return null_mut();
        }
        if !pointer.is_null() {
            ALLOCATED.add(layout.size() as u64);
            // A large block that is requested with zeros is a bitmap.
            if zeroed {
                huge::queue_block(pointer, layout.size());
            }
        }
        pointer
    }
}

// SAFETY: every block has at least the requested size and alignment. A failed allocation returns null, and no function
// unwinds.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        unsafe { allocate(layout, false) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        unsafe { allocate(layout, true) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the block was allocated by this allocator with this layout. Nobody reads a block that is being freed.
        unsafe {
            ALLOCATED.sub(layout.size() as u64);
            huge::withdraw(pointer, layout.size());
            pages::give_back(pointer, layout.size());
            if let Some(free) = raw::RedisModule_Free {
                free(base_of(pointer, layout).cast());
            }
        }
    }
}

/// Whether an allocation of `bytes` bytes would succeed now. Commands ask before the server allocates for them, since
/// it ends the process if an allocation fails.
pub fn can_allocate(bytes: usize) -> bool {
    if bytes < TRY_BYTES {
        return true;
    }
    // SAFETY: `TryAlloc` takes a size; the block is freed once, here.
    unsafe {
        let (Some(try_alloc), Some(free)) = (raw::RedisModule_TryAlloc, raw::RedisModule_Free) else { return true };
        let block = try_alloc(bytes);
        if !block.is_null() {
            free(block);
        }
        !block.is_null()
    }
}

/// Moves the buffers of one value, during one call of the server's active defragmentation.
pub struct Defragmenter {
    ctx: *mut raw::RedisModuleDefragCtx,
}

impl Defragmenter {
    /// # Safety
    /// `ctx` is the context of the running defragmentation callback. The result does not outlive that callback.
    pub unsafe fn new(ctx: *mut raw::RedisModuleDefragCtx) -> Self {
        Defragmenter { ctx }
    }
}

impl Mover for Defragmenter {
    /// Lets the server move a buffer to a better address. Returns the buffer, moved or not.
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        let layout = Layout::for_value(&*buffer);
        let len = buffer.len();
        let start = Box::into_raw(buffer).cast::<E>();
        // SAFETY: this module owns the block, and no reference to it exists. The server copies its bytes: a move of a
        // value in Rust does no more. The new block has the layout with which the box frees it.
        unsafe {
            let moved = defrag(self.ctx, start.cast(), layout).cast::<E>();
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(moved, len))
        }
    }
}

/// Lets the server's active defragmentation move a block. Returns its new address.
///
/// # Safety
/// `ctx` is the context of the running defragmentation callback. `pointer` was allocated by this allocator with
/// `layout`, and no reference to its contents is live.
pub unsafe fn defrag(ctx: *mut raw::RedisModuleDefragCtx, pointer: *mut u8, layout: Layout) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(defrag_alloc) = raw::RedisModule_DefragAlloc else { return pointer };
        // Active defragmentation moves no block of this size. Besides, the background thread may be turning its pages
        // into huge pages. A block with padding is not jemalloc's, and no other malloc has active defragmentation.
        if layout.size() == 0 || layout.size() >= huge::BLOCK_BYTES || padding(layout) > 0 {
            return pointer;
        }
        let moved: *mut u8 = defrag_alloc(ctx, pointer.cast()).cast();
        if moved.is_null() {
            return pointer;
        }
        DEFRAG_MOVES.count();
        // The new block should have the same alignment, because it has the same size class. Otherwise the process is
        // ended, because the old block is already freed.
        if layout.align() > MALLOC_ALIGN && !(moved as usize).is_multiple_of(layout.align()) {
            std::process::abort();
        }
        moved
    }
}

#[cfg(test)]
mod tests;
