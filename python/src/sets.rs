//! Functions on several counters together, such as `rollcall_redis.union_card`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use rollcall_core::counting::{self, Counter as Count, Member, View};
use rollcall_core::error::Error;

use crate::arguments::{Seconds, Whole};
use crate::counter::{Counter, estimate_of, view_of};
use crate::errors::raised;
use crate::guarded::Guarded;

/// A counter, and its time span in the last seconds: an int, a timedelta, or None for all live members.
pub(crate) struct Operand<'py> {
    counter: Bound<'py, Counter>,
    since: Option<Seconds>,
}

impl<'py> FromPyObject<'_, 'py> for Operand<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok((counter, since)) = given.extract::<(Bound<'py, PyAny>, Option<Seconds>)>() {
            return Ok(Operand { counter: counter.cast_into::<Counter>()?, since });
        }
        Ok(Operand { counter: given.to_owned().cast_into::<Counter>()?, since: None })
    }
}

/// Calls `ask` with the members of each counter that its operand selects.
fn ask<R: Send>(
    py: Python<'_>,
    operands: &[Operand<'_>],
    now: Option<Whole>,
    question: impl FnOnce(&[View<'_>]) -> Result<R, Error> + Send,
) -> PyResult<R> {
    let all: Vec<&Guarded<Count>> = operands.iter().map(|operand| &operand.counter.get().counter).collect();
    let spans: Vec<Option<Seconds>> = operands.iter().map(|operand| operand.since).collect();
    let answer = Guarded::read_all(py, &all, |counters| {
        let views = counters.iter().zip(spans).map(|(counter, since)| view_of(counter, since, now));
        question(&views.collect::<Result<Vec<_>, Error>>()?)
    });
    answer.map_err(|error| raised(py, error))
}

fn members_of<'py>(
    py: Python<'py>,
    operands: &[Operand<'py>],
    now: Option<Whole>,
    question: impl for<'v> FnOnce(&[View<'v>]) -> Result<Vec<Member<'v>>, Error> + Send,
) -> PyResult<Bound<'py, PyList>> {
    let copied =
        |views: &[View<'_>]| Ok(question(views)?.iter().map(|member| member.text().to_vec()).collect::<Vec<_>>());
    PyList::new(py, ask(py, operands, now, copied)?.iter().map(|member| PyBytes::new(py, member)))
}

/// The number of distinct members of all counters together, with its standard error. Each operand is a counter, or a
/// pair of a counter and its last seconds.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn union_card<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    estimate_of(py, ask(py, &operands, now, counting::union_card)?)
}

/// The number of members that all counters share, with its standard error.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn inter_card<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    estimate_of(py, ask(py, &operands, now, counting::inter_card)?)
}

/// The number of members of the first counter that none of the others has, with its standard error.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn diff_card<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    estimate_of(py, ask(py, &operands, now, counting::diff_card)?)
}

/// The members of all counters together as bytes, in no order. All counters must be exact.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn union<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyList>> {
    members_of(py, &operands, now, counting::union)
}

/// The members that all counters share, as bytes. All counters must be exact.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn inter<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyList>> {
    members_of(py, &operands, now, counting::inter)
}

/// The members of the first counter that none of the others has, as bytes. All counters must be exact.
#[pyfunction]
#[pyo3(signature = (*operands, now=None))]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    operands: Vec<Operand<'py>>,
    now: Option<Whole>,
) -> PyResult<Bound<'py, PyList>> {
    members_of(py, &operands, now, counting::diff)
}
