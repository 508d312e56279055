//! Dumps and loads values chunk by chunk, like the commands SCANDUMP and LOADCHUNK.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::unstable::persist::{Partial, push_chunk, scandump};

use crate::arguments::Limit;
use crate::errors::raised;
use crate::guarded::Guarded;
use crate::items::with_bytes;

/// The next iterator and the chunk, as SCANDUMP replies them for `value` and `iterator`.
pub(crate) fn scan<'py, T: Value + Sync>(
    py: Python<'py>,
    value: &Guarded<T>,
    iterator: u64,
) -> PyResult<Bound<'py, PyTuple>> {
    let scanned =
        value.read_long(py, |value| scandump(value, iterator).map(|(next, chunk)| (next, chunk.into_owned())));
    let (next, chunk) = scanned.map_err(|error| raised(py, error))?;
    (next, PyBytes::new(py, &chunk)).into_pyobject(py)
}

/// A value that is being loaded chunk by chunk. The `Option` is `None` before the header and after the end.
pub(crate) struct Loader<L>(Mutex<Option<L>>);

impl<L: Partial> Loader<L> {
    pub(crate) const fn new() -> Self {
        Loader(Mutex::new(None))
    }

    /// Appends a chunk, with the `SCANDUMP` iterator `next` that belongs to it. The first chunk is the header.
    pub(crate) fn push(&self, next: u64, chunk: &Bound<'_, PyAny>, limit: Limit) -> PyResult<()> {
        let py = chunk.py();
        let pushed = with_bytes(chunk, |bytes| {
            py.detach(|| {
                let mut partial = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                match &mut *partial {
                    Some(loading) => push_chunk(loading, next, bytes),
                    None => L::begin(bytes, &limit).map(|loading| *partial = Some(loading)),
                }
            })
        })?;
        pushed.map_err(|error| raised(py, error))
    }

    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<L::Value> {
        let finished = py.detach(|| match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(loading) => loading.finish(),
            None => Err(Error::corrupt("dump", "a header", "nothing")),
        });
        finished.map_err(|error| raised(py, error))
    }
}
