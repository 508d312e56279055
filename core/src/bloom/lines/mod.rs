//! Cache-line blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
//! 2007). An item's bits are in one cache line of 512 bits or, at low error rates, in a few.

pub(super) mod line;
mod load;
pub(super) mod probe;
pub(crate) mod sizing;
