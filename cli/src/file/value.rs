//! The value of an entry, in memory.

use std::io::Read;

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::persist;
use rollcall_core::size_limit::SizeLimit;

use super::format::{Entry, Kind};
use super::read::Reader;
use super::write::Writer;
use crate::failure::Failure;

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

impl<R: Read> Reader<R> {
    /// Makes the value of an entry from its chunks, all of which are still to be read.
    ///
    /// # Errors
    /// When the file is damaged, or what it has is no such value, or is larger than `limit` allows.
    pub fn load(&mut self, entry: &Entry, limit: &impl SizeLimit) -> Result<Value, Failure> {
        match entry.kind {
            Kind::Filter => self.load_as(limit).map(Value::Filter),
            Kind::Counter => self.load_as(limit).map(Value::Counter),
        }
    }

    fn load_as<T: persist::Value>(&mut self, limit: &impl SizeLimit) -> Result<T, Failure> {
        let mut failure = None;
        let chunks = std::iter::from_fn(|| self.next_chunk().map_err(|error| failure = Some(error)).ok().flatten());
        let loaded = persist::load(chunks, limit);
        if let Some(failure) = failure {
            return Err(failure);
        }
        loaded.map_err(|error| Failure::of(format!("{}: {error}", self.path().display())))
    }
}

impl Writer {
    /// Writes a value from memory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store(&mut self, entry: &Entry, value: &Value) -> Result<(), Failure> {
        match value {
            Value::Filter(filter) => self.value(entry, persist::dump(filter)),
            Value::Counter(counter) => self.value(entry, persist::dump(counter)),
        }
    }
}
