//! Converts errors of the core library to the Python exceptions of `rollcall_redis/_types.py`.

use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rollcall_core::error::Error;
use rollcall_core::persist::file::FileError;

/// An exception class of `rollcall_redis._types`, which is looked up only once.
pub(crate) struct Class {
    name: &'static str,
    found: PyOnceLock<Py<PyType>>,
}

impl Class {
    pub(crate) const fn new(name: &'static str) -> Self {
        Class { name, found: PyOnceLock::new() }
    }

    pub(crate) fn get<'py>(&'py self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
        self.found.import(py, "rollcall_redis._types", self.name)
    }

    /// An exception of this class with a message.
    pub(crate) fn error(&self, py: Python<'_>, text: impl ToString) -> PyErr {
        match self.get(py) {
            Ok(class) => PyErr::from_type(class.clone(), (text.to_string(),)),
            Err(error) => error,
        }
    }
}

pub(crate) static ESTIMATE: Class = Class::new("Estimate");
pub(crate) static ADMISSION: Class = Class::new("Admission");
pub(crate) static ADMISSIONS: Class = Class::new("Admissions");
static ANY: Class = Class::new("Error");
pub(crate) static PARAMETER: Class = Class::new("ParameterError");
static SIZE: Class = Class::new("SizeError");
pub(crate) static CORRUPT: Class = Class::new("CorruptError");
static INCOMPATIBLE: Class = Class::new("IncompatibleError");
static FULL: Class = Class::new("FullError");
static NOT_EXACT: Class = Class::new("NotExactError");

/// The exception for an error of the core library, with the same message.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    class_of(&error).error(py, error)
}

fn class_of(error: &Error) -> &'static Class {
    match error {
        Error::OutOfRange { .. } => &PARAMETER,
        Error::TooLarge { .. } | Error::OutOfMemory { .. } => &SIZE,
        Error::Full { .. } | Error::RateExceeded { .. } => &FULL,
        Error::Incompatible { .. } => &INCOMPATIBLE,
        Error::NotExact { .. } | Error::PastExact { .. } => &NOT_EXACT,
        Error::Corrupt { .. } => &CORRUPT,
        // Errors that the core may add later raise the base class.
        _ => &ANY,
    }
}

/// Raises an error in a thread that has released Python's lock.
pub(crate) fn raised_detached<T>(result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| Python::attach(|py| raised(py, error)))
}

/// The exception for an error of a file of values. Its message names the file if `path` is given.
pub(crate) fn raised_of_file(py: Python<'_>, error: FileError, path: Option<&Path>) -> PyErr {
    let error = match (error, path) {
        (FileError::Value(error), None) => return raised(py, error),
        (FileError::Io(error), None) => return error.into(),
        // Python picks the class by the number of the system error, such as `FileNotFoundError`.
        (FileError::Io(error), Some(path)) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            return PyOSError::new_err((error.raw_os_error(), text, path.as_os_str().to_owned()));
        }
        (error, None) => error,
        (error, Some(path)) => {
            let class = match &error {
                FileError::Value(error) => class_of(error),
                error => class_of_file(error),
            };
            return class.error(py, format_args!("{}: {error}", path.display()));
        }
    };
    class_of_file(&error).error(py, error)
}

fn class_of_file(error: &FileError) -> &'static Class {
    match error {
        FileError::NotAFile
        | FileError::Newer { .. }
        | FileError::Damaged { .. }
        | FileError::Ends { .. }
        | FileError::OtherKind { .. }
        | FileError::NotOneValue { .. } => &CORRUPT,
        _ => &ANY,
    }
}
