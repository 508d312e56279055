//! Partially loaded values as Python classes: `rollcall_redis/_transfer.py` hands them what a server replies.

use pyo3::prelude::*;
use rollcall_core::bloom::BloomFilter as Filter;
use rollcall_core::counting::Counter as Count;
use rollcall_core::unstable::persist::{LoadingBloomFilter, LoadingCounter};
use rollcall_core::unstable::wire;

use crate::arguments::{Limit, Whole};
use crate::chunks::Partial;
use crate::counter::Counter;
use crate::filter::BloomFilter;
use crate::transfer::{CLASSIC, COUNTERS, LINES};

/// A filter that is loaded by chunks.
#[pyclass(frozen, name = "_FilterLoader", module = "rollcall_redis._rollcall")]
pub(crate) struct FilterLoader {
    partial: Partial<LoadingBloomFilter>,
    limit: Limit,
}

#[pymethods]
impl FilterLoader {
    /// The types of its keys on servers, each with the prefix of the commands that give its chunks.
    #[classattr]
    const PREFIXES: [(&str, &str); 2] = [(wire::TYPE_OF_LINES, LINES), (wire::TYPE_OF_CLASSIC, CLASSIC)];

    #[new]
    #[pyo3(signature = (max_bytes=None))]
    fn new(max_bytes: Option<Whole>) -> Self {
        FilterLoader { partial: Partial::new(), limit: Limit::of(max_bytes) }
    }

    /// Appends the next chunk, given with its iterator.
    fn push(&self, next: Whole, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        self.partial.push(next.0, chunk, self.limit)
    }

    /// The filter, once all of it has been loaded.
    fn finish(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        let filter: Filter = self.partial.finish(py)?;
        Ok(BloomFilter::of(filter, self.limit))
    }
}

/// A counter that is loaded by chunks.
#[pyclass(frozen, name = "_CounterLoader", module = "rollcall_redis._rollcall")]
pub(crate) struct CounterLoader {
    partial: Partial<LoadingCounter>,
    limit: Limit,
}

#[pymethods]
impl CounterLoader {
    /// As that of filters.
    #[classattr]
    const PREFIXES: [(&str, &str); 1] = [(wire::TYPE_OF_COUNTERS, COUNTERS)];

    #[new]
    #[pyo3(signature = (max_bytes=None))]
    fn new(max_bytes: Option<Whole>) -> Self {
        CounterLoader { partial: Partial::new(), limit: Limit::of(max_bytes) }
    }

    /// Appends the next chunk, given with its iterator.
    fn push(&self, next: Whole, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        self.partial.push(next.0, chunk, self.limit)
    }

    /// The counter, once all of it has been loaded.
    fn finish(&self, py: Python<'_>) -> PyResult<Counter> {
        let counter: Count = self.partial.finish(py)?;
        Ok(Counter::of(counter, self.limit))
    }
}
