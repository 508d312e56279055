//! RedisBloom's layout: for data imported from RedisBloom, and for filters that will be exported to RedisBloom.
//!
//! If RedisBloom is given the same items in the same order, its filter has the same bits and answers. Filters also grow
//! by RedisBloom's rules.

pub(crate) mod bits;
pub(crate) mod sizing;
