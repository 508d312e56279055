//! RedisBloom's layout: for data imported from RedisBloom, and for filters that will be exported to RedisBloom.
//!
//! The same items in the same order give the same bits, numbers and answers as in RedisBloom. Filters also grow by
//! RedisBloom's rules. A look-up costs a cache miss for each bit of the item. In the cache-line layout, it costs one or
//! two cache misses for all bits together.

pub(crate) mod bits;
pub(crate) mod sizing;
