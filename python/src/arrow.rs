//! Imports columns by Arrow's C data interface, without a copy: `__arrow_c_stream__` and `__arrow_c_array__`.
//!
//! What a producer exports is trusted to be as the interface says, as any C extension is: its lengths and pointers
//! cannot be checked, and its memory must not change while the column is held.

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// The name of the extension type whose items have an agreed text.
const UUID: &str = "arrow.uuid";
/// Its storage.
const UUID_STORAGE: DataType = DataType::FixedSizeBinary(16);

/// Why an array or a stream is empty that was handed out once, and is handed out again.
const TAKEN: &str = "it was read before";

/// A column as its producer exports it, in one or several chunks.
pub(crate) struct Imported {
    pub(crate) chunks: Vec<ArrayData>,
    /// Whether its items, or those of its dictionaries, are UUIDs.
    pub(crate) holds_uuids: bool,
}

impl Imported {
    /// The column that `given` exports; `None` if it exports none, or cannot for want of a package.
    ///
    /// # Errors
    /// `TypeError` for a column whose items have no agreed text, and what the producer raises.
    pub(crate) fn new(given: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Some(capsule) = exported(given, "__arrow_c_stream__")? {
            return of_stream(given, &capsule);
        }
        let Some(pair) = exported(given, "__arrow_c_array__")? else { return Ok(None) };
        let pair = pair.cast_into::<PyTuple>()?;
        let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
        let schema = pointer::<FFI_ArrowSchema>(&schema, c"arrow_schema")?;
        let array = pointer::<FFI_ArrowArray>(&array, c"arrow_array")?;
        // SAFETY: The capsule, which `pair` keeps, has a schema, by its name.
        let schema = unsafe { schema.as_ref() };
        // SAFETY: The capsule has an array, by its name. It is taken out, so the capsule no longer releases it.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        if schema.release().is_none() || array.is_released() {
            return Err(wrong(TAKEN));
        }
        let item = item_of(schema)?;
        let mut chunks = Vec::new();
        item.push(array, &mut chunks)?;
        Ok(Some(Imported { chunks, holds_uuids: item.is_uuid }))
    }
}

/// What the method `name` of an object returns; `None` if it has no such method, or needs a package that is missing.
fn exported<'py>(given: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(method) = given.getattr_opt(name)? else { return Ok(None) };
    match method.call0() {
        // pandas exports by pyarrow.
        Err(error) if error.is_instance_of::<PyImportError>(given.py()) => Ok(None),
        called => called.map(Some),
    }
}

fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    Ok(capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast())
}

/// The column of a stream that `given` handed out; `None` for objects.
fn of_stream(given: &Bound<'_, PyAny>, capsule: &Bound<'_, PyAny>) -> PyResult<Option<Imported>> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, c"arrow_array_stream")?;
    // SAFETY: The capsule has a stream, by its name. It is taken out, so the capsule no longer releases it.
    let mut stream = Stream(unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) });
    // A producer may wait for threads that wait for Python's lock.
    let py = capsule.py();
    let schema = py.detach(|| stream.schema()).map_err(wrong)?;
    let item = item_of(&schema)?;
    // Of a column of objects, Polars hands out their addresses as bytes (its issue 15085). It can be iterated.
    if item.data_type == DataType::FixedSizeBinary(8)
        && let Some(dtype) = given.getattr_opt("dtype")?
        && dtype.str()? == "Object"
    {
        return Ok(None);
    }
    // All chunks are held, so that missing values are found before anything is added. Columns are in memory anyway.
    let mut chunks = Vec::new();
    while let Some(array) = py.detach(|| stream.next()).map_err(wrong)? {
        item.push(array, &mut chunks)?;
    }
    Ok(Some(Imported { chunks, holds_uuids: item.is_uuid }))
}

/// A stream of chunks.
struct Stream(FFI_ArrowArrayStream);

impl Stream {
    fn schema(&mut self) -> Result<FFI_ArrowSchema, String> {
        let get = self.0.get_schema().ok_or(TAKEN)?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: A stream that is not released takes its own address, and a place for a schema.
        match unsafe { get(&raw mut self.0, &raw mut schema) } {
            0 => Ok(schema),
            code => Err(self.failure(code)),
        }
    }

    fn next(&mut self) -> Result<Option<FFI_ArrowArray>, String> {
        let get = self.0.get_next().ok_or(TAKEN)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: As in `schema`. A released array is the end.
        match unsafe { get(&raw mut self.0, &raw mut array) } {
            0 => Ok(Some(array).filter(|array| !array.is_released())),
            code => Err(self.failure(code)),
        }
    }

    /// The text of the failure that the last call returned as `code`.
    fn failure(&mut self, code: i32) -> String {
        // SAFETY: The last call on the stream failed, after which it may be asked why.
        let text = self.0.get_last_error().map(|get| unsafe { get(&raw mut self.0) }).and_then(|text| {
            // SAFETY: The text is null, or ends in a zero, and stays until the next call.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        text.unwrap_or_else(|| format!("error {code}"))
    }
}

/// The type of a column whose items can be taken.
struct ItemType {
    data_type: DataType,
    is_uuid: bool,
}

impl ItemType {
    /// Appends an array as a chunk. An empty one is left out: its buffers may be missing.
    fn push(&self, array: FFI_ArrowArray, chunks: &mut Vec<ArrayData>) -> PyResult<()> {
        if self.data_type == DataType::Null {
            // It has no buffers, but Polars exports one.
            chunks.push(ArrayData::new_null(&DataType::Null, array.len()));
        } else if !array.is_empty() {
            // SAFETY: The producer says that the array is of this type.
            chunks.push(unsafe { from_ffi_and_data_type(array, self.data_type.clone()) }.map_err(wrong)?);
        }
        Ok(())
    }
}

/// The type of the items in a column with this schema.
///
/// # Errors
/// `TypeError` for other types than text, bytes, whole numbers, UUIDs, and dictionaries of them.
fn item_of(schema: &FFI_ArrowSchema) -> PyResult<ItemType> {
    // Some formats are unknown to the crate, such as Polars' integers of 128 bits.
    let data_type = DataType::try_from(schema).map_err(|_| {
        PyTypeError::new_err(format!("a column of Arrow's format {} has no items: {CAST}", schema.format()))
    })?;
    if let Some(name) = schema.metadata().map_err(wrong)?.get(EXTENSION_TYPE_NAME_KEY) {
        return match name == UUID && data_type == UUID_STORAGE {
            true => Ok(ItemType { data_type, is_uuid: true }),
            false => Err(PyTypeError::new_err(format!(
                "a column of the extension type {name} has no agreed text: cast it to text, or to {data_type}, which \
                 stores it, in the engine"
            ))),
        };
    }
    match &data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {}
        integers if integers.is_integer() => {}
        // All its values are missing.
        DataType::Null => {}
        DataType::Dictionary(..) => {
            // The schema of the values says what `data_type` does not: whether they are of an extension type.
            let values = schema.dictionary().ok_or_else(|| wrong("its dictionary has no type"))?;
            let is_uuid = item_of(values)?.is_uuid;
            return Ok(ItemType { data_type, is_uuid });
        }
        DataType::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            let columns = if names.len() == 1 { "column" } else { "columns" };
            return Err(PyTypeError::new_err(format!(
                "expected one column, got a table with the {columns} {}: choose a column",
                names.join(", ")
            )));
        }
        floats if floats.is_floating() => {
            return Err(PyTypeError::new_err(format!(
                "a column of {floats} has no items, and a missing value makes floats of whole numbers: {CAST}"
            )));
        }
        other => return Err(PyTypeError::new_err(format!("a column of {other} has no items: {CAST}"))),
    }
    Ok(ItemType { data_type, is_uuid: false })
}

const CAST: &str = "cast it to text or to whole numbers in the engine";

/// An error for a column that cannot be read.
pub(crate) fn wrong(reason: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the column cannot be read: {reason}"))
}
