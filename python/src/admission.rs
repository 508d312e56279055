//! Admission up to a limit, for both classes.

use pyo3::prelude::*;
use pyo3::types::PyList;
use rollcall_core::admission::{Admission, Terms};
use rollcall_core::live::{Live, Value};

use crate::arguments::{Limit, Whole, time};
use crate::errors::{ADMISSION, ADMISSIONS, raised};
use crate::guarded::Guarded;
use crate::items::{Items, LONG};

/// Admits `items` to the value: returns the list of their outcomes, and `withroom` also the room.
pub(crate) fn admit<'py, T: Value + Send + Sync>(
    value: &Guarded<T>,
    items: Items<'py>,
    terms: Terms,
    withroom: bool,
    most: Limit,
    now: Option<Whole>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let items = items.all(py)?;
    let admit = |value: &mut T| {
        let (time, items) = (time(value, now), items.iter().map(Vec::as_slice));
        let mut live = Live::new(value, time);
        match withroom {
            false => live.admit(items, terms, &most).map(|outcomes| (outcomes, None)),
            true => live.admit_with_room(items, terms, time, &most).map(|(outcomes, room)| (outcomes, Some(room))),
        }
    };
    let admitted = if items.len() < LONG { value.write(py, admit) } else { value.write_long(py, admit) };
    let (outcomes, room) = admitted.map_err(|error| raised(py, error))?;
    let class = ADMISSION.get(py)?;
    let [admitted, known, rejected] = [class.getattr("ADMITTED")?, class.getattr("KNOWN")?, class.getattr("REJECTED")?];
    let outcomes = PyList::new(
        py,
        outcomes.iter().map(|outcome| match outcome {
            Admission::Admitted => &admitted,
            Admission::Known => &known,
            Admission::Rejected => &rejected,
        }),
    )?;
    match room {
        None => Ok(outcomes.into_any()),
        Some(room) => ADMISSIONS.get(py)?.call1((outcomes, room.items, room.retry_after)),
    }
}
