//! Transfers values from and to servers. `rollcall_redis/_transfer.py` sends the commands, by the client of the calling
//! program.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::Whole;

/// Prefixes of the commands that dump and load chunks: for filters in the layout `lines`, for classic filters, and for
/// counters.
pub(crate) const LINES: &str = "RF";
pub(crate) const CLASSIC: &str = "BF";
pub(crate) const COUNTERS: &str = "LC";

const MODULE: &str = "rollcall_redis._transfer";

/// Calls the Python function `function`, which downloads a key. Returns a value, or for an asyncio client an awaitable.
pub(crate) fn download<'py>(
    function: &str,
    client: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    max_bytes: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    client.py().import(MODULE)?.call_method1(function, (client, key, max_bytes.map(|most| most.0)))
}

/// Stores `value` at a key. The caller passes a copy, since the value must not change during the transfer.
pub(crate) fn upload<'py>(
    copy: Bound<'py, PyAny>,
    client: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    ttl: Option<&Bound<'py, PyAny>>,
    replace: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(client.py());
    options.set_item("ttl", ttl)?;
    options.set_item("replace", replace)?;
    client.py().import(MODULE)?.call_method("upload", (copy, client, key), Some(&options))
}
