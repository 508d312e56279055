//! Moving the memory of filters and counters, for a server that defragments.

/// Moves buffers to other addresses, as a server's defragmenter does.
pub trait Mover {
    /// Returns the same elements, at another address or the same.
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]>;
}
