//! The memory that a filter or counter holds, for a server that measures and moves it.

use std::alloc::Layout;

/// A filter or counter, whose memory is on the heap.
pub trait OnHeap {
    /// Calls `visit` with the size and alignment of every heap allocation that the value owns.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// The bytes of the value, computed in constant time. Memory that several values may share is left out.
    fn num_bytes(&self) -> u64;

    /// Lets `mover` move the large buffer `index`. Returns false if there is no such buffer.
    ///
    /// # Panics
    /// If `mover` returns another number of elements than it was given.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool;
}

/// Moves buffers to other addresses, as a server's defragmenter does.
pub trait Mover {
    /// Returns the same elements, at another address or the same.
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]>;
}
