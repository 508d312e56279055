//! RedisBloom's layout: for data imported from RedisBloom, and for filters that will be exported to RedisBloom.
//!
//! If RedisBloom is given the same items in the same order, its filter has the same bits and answers. Filters also grow
//! by RedisBloom's rules. A look-up costs a cache miss for each bit of the item. In the cache-line layout, it costs one
//! or two cache misses for all bits together.

pub(crate) mod bits;
pub(crate) mod sizing;
