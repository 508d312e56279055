//! Cache-line blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
//! 2007). A block is a cache line of 512 bits. All bits of an item are in one line, or at low error rates in a few
//! lines.

pub(super) mod line;
mod load;
pub(super) mod probe;
pub(crate) mod sizing;
