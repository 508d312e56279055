//! Python classes that load values chunk by chunk. `rollcall_redis/_transfer.py` passes them the chunks that a server
//! replies.

use pyo3::prelude::*;
use rollcall_core::bloom::BloomFilter as Filter;
use rollcall_core::counting::Counter as Count;
use rollcall_core::unstable::persist::{PartialCounter, PartialFilter};
use rollcall_core::unstable::wire;

use crate::arguments::{Limit, Whole};
use crate::chunks::Loader;
use crate::counter::Counter;
use crate::filter::BloomFilter;
use crate::transfer::{CLASSIC, COUNTERS, LINES};

/// A filter that is being loaded chunk by chunk.
#[pyclass(frozen, name = "_FilterLoader", module = "rollcall_redis._rollcall")]
pub(crate) struct FilterLoader {
    partial: Loader<PartialFilter>,
    limit: Limit,
}

#[pymethods]
impl FilterLoader {
    /// The key types of filters on servers, each with the prefix of the commands that dump its chunks.
    #[classattr]
    const PREFIXES: [(&str, &str); 2] = [(wire::TYPE_OF_LINES, LINES), (wire::TYPE_OF_CLASSIC, CLASSIC)];

    #[new]
    #[pyo3(signature = (max_bytes=None))]
    fn new(max_bytes: Option<Whole>) -> Self {
        FilterLoader { partial: Loader::new(), limit: Limit::new(max_bytes) }
    }

    /// Appends the next chunk, with the `SCANDUMP` iterator that belongs to it.
    fn push(&self, next: Whole, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        self.partial.push(next.0, chunk, self.limit)
    }

    /// The loaded filter; raises an exception if chunks are missing.
    fn finish(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        let filter: Filter = self.partial.finish(py)?;
        Ok(BloomFilter::with_limit(filter, self.limit))
    }
}

/// A counter that is being loaded chunk by chunk.
#[pyclass(frozen, name = "_CounterLoader", module = "rollcall_redis._rollcall")]
pub(crate) struct CounterLoader {
    partial: Loader<PartialCounter>,
    limit: Limit,
}

#[pymethods]
impl CounterLoader {
    /// The key type of counters on servers, with the prefix of the commands that dump its chunks.
    #[classattr]
    const PREFIXES: [(&str, &str); 1] = [(wire::TYPE_OF_COUNTERS, COUNTERS)];

    #[new]
    #[pyo3(signature = (max_bytes=None))]
    fn new(max_bytes: Option<Whole>) -> Self {
        CounterLoader { partial: Loader::new(), limit: Limit::new(max_bytes) }
    }

    /// Appends the next chunk, with the `SCANDUMP` iterator that belongs to it.
    fn push(&self, next: Whole, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        self.partial.push(next.0, chunk, self.limit)
    }

    /// The loaded counter; raises an exception if chunks are missing.
    fn finish(&self, py: Python<'_>) -> PyResult<Counter> {
        let counter: Count = self.partial.finish(py)?;
        Ok(Counter::with_limit(counter, self.limit))
    }
}
