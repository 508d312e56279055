//! Converts numbers, time spans and limits from Python arguments.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use rollcall_core::error::Error;
use rollcall_core::live::{Live, Value};
use rollcall_core::size_limit::{MaxBytes, SizeLimit};
use rollcall_core::window::{ClockSource, Time};

use crate::errors::PARAMETER;

/// A whole number from 0 to 2^64 - 1. Other whole numbers raise `ParameterError`, not `OverflowError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        given.extract().map(Whole).map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(py) {
            true => PARAMETER.error(py, format_args!("a whole number from 0 to 2^64 - 1 is expected, got {}", &*given)),
            false => error,
        })
    }
}

impl Whole {
    /// The number as a 32-bit parameter; a larger number becomes `u32::MAX`, which the core rejects.
    pub(crate) fn narrow(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

/// A time span in whole seconds: an int, or a `datetime.timedelta`, which is rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !given.hasattr("total_seconds")? {
            return given.extract::<Whole>().map(|Whole(seconds)| Seconds(seconds));
        }
        let seconds: f64 = given.call_method0("total_seconds")?.extract()?;
        if seconds < 0.0 {
            let py = given.py();
            return Err(PARAMETER.error(py, format_args!("a time span of 0 or more is expected, got {}", &*given)));
        }
        Ok(Seconds(seconds.ceil() as u64))
    }
}

/// What a call does about missing values in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    Error,
    Skip,
    /// As `Error`, for a call that cannot skip them.
    Never,
}

impl<'py> FromPyObject<'_, 'py> for Nulls {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<&str>() {
            Ok("error") => Ok(Nulls::Error),
            Ok("skip") => Ok(Nulls::Skip),
            _ => {
                let got = given.repr()?;
                Err(PARAMETER.error(given.py(), format_args!("nulls must be 'error' or 'skip', got {got}")))
            }
        }
    }
}

/// The largest number of bytes that a value may take; without a number, only memory limits the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

impl Limit {
    pub(crate) fn new(max_bytes: Option<Whole>) -> Self {
        Limit(max_bytes.map(|Whole(bytes)| bytes))
    }
}

impl SizeLimit for Limit {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        self.0.map_or(Ok(()), |most| MaxBytes(most).check(held_bytes, more_bytes))
    }
}

/// The Unix time in seconds: `now`, or the time of the system clock if `now` is `None`.
pub(crate) fn unix_seconds(now: Option<Whole>) -> u64 {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    now.map_or_else(clock, |Whole(now)| now)
}

/// The time for a call on `value`. A window with the system clock gets `now` or the present time; other values get the
/// time that they have reached.
pub(crate) fn time(value: &impl Value, now: Option<Whole>) -> Time {
    let asks = value.window().is_some_and(|window| window.clock_source() == ClockSource::System);
    if asks { Time::At(unix_seconds(now)) } else { Time::Reached }
}

/// Access to `value` for changes at the [`time`] of the call.
pub(crate) fn live<V: Value>(value: &mut V, now: Option<Whole>) -> Live<'_, V> {
    let time = time(value, now);
    Live::new(value, time)
}

/// The default number of slices, limited to one slice for each second of the window.
pub(crate) fn default_slices(default: u32, seconds: u64) -> u32 {
    u32::try_from(seconds.max(1)).map_or(default, |seconds| default.min(seconds))
}

/// Replaces the number of slices in an error by the number `given`, which may exceed 32 bits.
pub(crate) fn with_slices(error: Error, given: Option<Whole>) -> Error {
    match (error, given) {
        (Error::OutOfRange { parameter, expected, .. }, Some(Whole(slices)))
            if parameter == rollcall_core::error::Parameter::Slices =>
        {
            Error::OutOfRange { parameter, expected, got: slices.to_string() }
        }
        (error, _) => error,
    }
}
