//! RedisBloom's layout, for filters that are imported from RedisBloom or will be exported to it.
//!
//! Given the same items in the same order, these filters have the same bits, answers and sizes as RedisBloom's.

pub(crate) mod bits;
pub(crate) mod sizing;
