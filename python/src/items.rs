//! Reads items from Python objects: one item, or many from a list, an iterable or an array.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyIterator, PyList, PyMemoryView, PyString, PyTuple};

use crate::arguments::{Nulls, Whole};
use crate::columns::Column;
use crate::rows::{BLOCK_ROWS, Rows, no_memory};

/// The least number of items for which Python's lock is released. Releasing it costs some 100 ns.
pub(crate) const LONG: usize = 256;

/// Calls `use_it` with the bytes of an item. A str is encoded in UTF-8.
///
/// # Errors
/// `TypeError` for anything except str, bytes, bytearray and memoryview.
pub(crate) fn with_item<R>(item: &Bound<'_, PyAny>, use_it: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    match borrowed(item)? {
        Some(bytes) => Ok(use_it(bytes)),
        None => copied(item).map(|bytes| use_it(bytes.as_bytes())),
    }
}

/// The bytes of an immutable item (str or bytes), without a copy; `None` for any other type.
#[inline]
fn borrowed<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes()));
    }
    match item.cast::<PyString>() {
        Ok(text) => Ok(Some(text.to_str()?.as_bytes())),
        Err(_) => Ok(None),
    }
}

/// A copy of the bytes of a mutable item. Python allocates the copy, and raises `MemoryError` if memory is short.
fn copied<'py>(item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if item.is_instance_of::<PyByteArray>() {
        return Ok(item.py().get_type::<PyBytes>().call1((item,))?.cast_into()?);
    }
    if item.is_instance_of::<PyMemoryView>() {
        // A memoryview of any format counts as its bytes.
        return Ok(item.call_method0("tobytes")?.cast_into()?);
    }
    let advice = match item.is_none() {
        true => "leave missing values out, or pass a column and nulls=\"skip\"",
        false => "decide on its text, and pass that",
    };
    Err(PyTypeError::new_err(format!(
        "an item is str, bytes, bytearray or memoryview, got {}: {advice}",
        item.get_type().name()?
    )))
}

/// Rejects a masked array of NumPy: its buffer has the masked values too.
fn reject_masked(given: &Bound<'_, PyAny>) -> PyResult<()> {
    // What has this method is an array, or a column of pandas or Polars.
    if given.hasattr("__array__")?
        && let Ok(masked) = given.py().import("numpy.ma")
        && given.is_instance(&masked.getattr("MaskedArray")?)?
    {
        return Err(PyTypeError::new_err(
            "what is masked in an array is no item: pass array.compressed(), which leaves it out",
        ));
    }
    Ok(())
}

/// The buffer of an object.
///
/// # Errors
/// `TypeError` for an object without a buffer, or with a buffer of zero dimensions.
fn buffer_of(given: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let py = given.py();
    let error = match PyUntypedBuffer::get(given) {
        Ok(buffer) => return Ok(buffer),
        Err(error) => error,
    };
    if !error.is_instance_of::<PyBufferError>(py) {
        return Err(error);
    }
    // A memoryview computes values that a buffer may leave out, such as the strides of ctypes' arrays.
    let view = PyMemoryView::from(given)?;
    if view.getattr("ndim")?.extract::<usize>()? == 0 {
        return Err(PyTypeError::new_err(
            "expected several items, got an array of no dimension: pass array.reshape(1)",
        ));
    }
    PyUntypedBuffer::get(&view)
}

/// The items of one call, which are read in blocks: a list or tuple, an iterator, the rows of an array, or a column.
pub(crate) enum Items<'py> {
    Listed(Bound<'py, PyTuple>),
    Iterated(Bound<'py, PyIterator>),
    Rows(Rows),
    Column(Column),
}

impl<'py> Items<'py> {
    /// Prepares to read the items of `given`.
    ///
    /// # Errors
    /// `TypeError` for an object that has no items.
    pub(crate) fn new(given: &Bound<'py, PyAny>, width: Option<Whole>, nulls: Nulls) -> PyResult<Self> {
        if let Some(Whole(width)) = width {
            if given.hasattr("__arrow_c_array__")? || given.hasattr("__arrow_c_stream__")? {
                return Err(PyTypeError::new_err(
                    "width= is for the bytes of a buffer: the items of a column follow from its type",
                ));
            }
            reject_masked(given)?;
            // No array is larger than `usize::MAX` bytes, so a larger width fails in the same way.
            let width = usize::try_from(width).unwrap_or(usize::MAX);
            return Rows::new(buffer_of(given)?, Some(width)).map(Items::Rows);
        }
        if let Ok(tuple) = given.cast::<PyTuple>() {
            return Ok(Items::Listed(tuple.clone()));
        }
        // The references are copied to a tuple, because another thread may change the list.
        if let Ok(list) = given.cast::<PyList>() {
            return Ok(Items::Listed(list.to_tuple()));
        }
        if given.is_instance_of::<PyString>()
            || given.is_instance_of::<PyBytes>()
            || given.is_instance_of::<PyByteArray>()
        {
            return Err(PyTypeError::new_err(format!(
                "expected several items, got one {}: pass [item], or width= for the bytes of an array",
                given.get_type().name()?
            )));
        }
        if let Some(column) = Column::new(given, nulls)? {
            return Ok(Items::Column(column));
        }
        reject_masked(given)?;
        match buffer_of(given) {
            Ok(buffer) => Rows::new(buffer, None).map(Items::Rows),
            // NumPy raises `ValueError` for a dtype that no buffer can have, such as texts of any length.
            Err(error)
                if error.is_instance_of::<PyTypeError>(given.py())
                    || error.is_instance_of::<PyValueError>(given.py()) && given.hasattr("__array__")? =>
            {
                given.try_iter().map(Items::Iterated).map_err(|_| {
                    PyTypeError::new_err(format!(
                        "expected a list, an iterable or an array of items, got {}",
                        given.get_type()
                    ))
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Calls `take` with all items, in blocks. If reading an item raises an exception, the call ends; earlier blocks
    /// were taken.
    pub(crate) fn blocks(&self, py: Python<'py>, mut take: impl FnMut(&[&[u8]]) -> PyResult<()>) -> PyResult<()> {
        match self {
            Items::Listed(tuple) => {
                let mut rest = tuple.iter_borrowed();
                loop {
                    let held: Vec<_> = rest.by_ref().take(BLOCK_ROWS).collect();
                    if held.is_empty() {
                        return Ok(());
                    }
                    with_all(&held.iter().map(|item| &**item).collect::<Vec<_>>(), &mut take)?;
                    py.check_signals()?;
                }
            }
            Items::Iterated(iterator) => {
                let mut iterator = iterator.clone().fuse();
                loop {
                    let held: Vec<Bound<'py, PyAny>> = iterator.by_ref().take(BLOCK_ROWS).collect::<PyResult<_>>()?;
                    if held.is_empty() {
                        return Ok(());
                    }
                    with_all(&held.iter().collect::<Vec<_>>(), &mut take)?;
                    py.check_signals()?;
                }
            }
            Items::Rows(rows) => {
                let mut block = Vec::new();
                for start in (0..rows.len()).step_by(rows.block_rows()) {
                    let len = rows.block_rows().min(rows.len() - start);
                    rows.copy(py, start, len, &mut block)?;
                    take(&rows.split(&block, len).collect::<Vec<_>>())?;
                    py.check_signals()?;
                }
                Ok(())
            }
            Items::Column(column) => column.blocks(py, take),
        }
    }

    /// Copies all items, for calls that decide about all items at once.
    pub(crate) fn all(&self, py: Python<'py>) -> PyResult<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.blocks(py, |items| {
            all.try_reserve(items.len()).map_err(|_| no_memory(items.len()))?;
            for item in items {
                let mut copy = Vec::new();
                copy.try_reserve_exact(item.len()).map_err(|_| no_memory(item.len()))?;
                copy.extend_from_slice(item);
                all.push(copy);
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// Calls `take` with the bytes of these items.
fn with_all(items: &[&Bound<'_, PyAny>], take: &mut impl FnMut(&[&[u8]]) -> PyResult<()>) -> PyResult<()> {
    let mut never_change = Vec::with_capacity(items.len());
    for item in items {
        match borrowed(item)? {
            Some(bytes) => never_change.push(bytes),
            None => break,
        }
    }
    if never_change.len() == items.len() {
        return take(&never_change);
    }
    let mut held = Vec::with_capacity(items.len());
    for &item in items {
        held.push(match borrowed(item)? {
            Some(_) => item.clone(),
            None => copied(item)?.into_any(),
        });
    }
    let mut all = Vec::with_capacity(held.len());
    for item in &held {
        all.push(borrowed(item)?.unwrap_or_default());
    }
    take(&all)
}

/// Calls `ask` with all items, and returns one answer for each: in an array of bool for what NumPy takes as an array,
/// such as a column of pandas; in a memoryview of format `?` for another buffer or column; and otherwise in a list of
/// bool. The answer about a missing value is False.
pub(crate) fn answers<'py>(
    given: &Bound<'py, PyAny>,
    width: Option<Whole>,
    nulls: Nulls,
    mut ask: impl FnMut(&[&[u8]], &mut Vec<u8>) -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    let items = Items::new(given, width, nulls)?;
    let mut answers = Vec::new();
    items.blocks(py, |block| ask(block, &mut answers))?;
    if let Items::Column(column) = &items {
        answers = column.spread(answers);
    }
    // Users without NumPy get the same as for other objects.
    let numpy = if given.hasattr("__array__")? { py.import("numpy").ok() } else { None };
    if matches!(items, Items::Rows(_) | Items::Column(_)) || numpy.is_some() {
        let view = PyMemoryView::from(&PyByteArray::new(py, &answers))?.call_method1("cast", ("?",))?;
        return match numpy {
            Some(numpy) => numpy.call_method1("asarray", (view,)),
            None => Ok(view),
        };
    }
    let shown = answers.iter().map(|&answer| PyBool::new(py, answer != 0));
    Ok(PyList::new(py, shown)?.into_any())
}

/// Calls `use_it` with the bytes of an argument other than an item, such as a file or a chunk. Immutable bytes are not
/// copied.
pub(crate) fn with_bytes<R>(given: &Bound<'_, PyAny>, use_it: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(use_it(bytes.as_bytes()));
    }
    let bytes = PyMemoryView::from(given)?.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok(use_it(bytes.as_bytes()))
}
