//! From and to servers: `rollcall_redis/_transfer.py` does it, with the client that the program has.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::Whole;

/// The prefixes of the commands that give and take the chunks of filters of lines, of classic ones, and of counters.
pub(crate) const LINES: &str = "RF";
pub(crate) const CLASSIC: &str = "BF";
pub(crate) const COUNTERS: &str = "LC";

const MODULE: &str = "rollcall_redis._transfer";

/// Calls the Python function of this name for a key; returns a value, or an awaitable where the client is of asyncio.
pub(crate) fn download<'py>(
    function: &str,
    client: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    max_bytes: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    client.py().import(MODULE)?.call_method1(function, (client, key, max_bytes.map(|most| most.0)))
}

/// Stores a value at a key. It must be a copy, since it may not change meanwhile.
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
