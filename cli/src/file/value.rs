//! The value of a file's entry, in memory.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;

use super::Kind;

/// A filter or a counter.
#[derive(Debug)]
pub enum Value {
    Filter(BloomFilter),
    Counter(Counter),
}

impl Value {
    pub fn kind(&self) -> Kind {
        match self {
            Value::Filter(_) => Kind::Filter,
            Value::Counter(_) => Kind::Counter,
        }
    }
}
