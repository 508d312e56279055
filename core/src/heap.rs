//! The memory that a value holds, for a server that measures and moves it.

use std::alloc::Layout;

/// A value whose memory is on the heap.
pub trait OnHeap {
    /// Calls `visit` with the layout of every heap allocation that the value owns.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// The bytes of the value, computed at a cost that does not grow with the value. Contents that other values may
    /// share are left out.
    fn num_bytes(&self) -> u64;

    /// Lets `mover` move large buffer number `index`; returns false if the value has no such buffer.
    ///
    /// # Panics
    /// If `mover` returns another number of elements than it was given.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool;
}

/// Moves buffers: a server's defragmenter.
pub trait Mover {
    /// Returns the same elements, in another place or in the same.
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]>;
}
