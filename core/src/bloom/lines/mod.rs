//! Cache-line blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
//! 2007). A block is a cache line of 512 bits. All bits of an item are in one line, or in a few lines if the error rate
//! is low.

pub(super) mod line;
mod load;
pub(super) mod probe;
pub(crate) mod sizing;
