//! Merges many stored counters.

use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rollcall_core::counting::Counter as Count;
use rollcall_core::persist;
use rollcall_core::persist::file::FileError;

use crate::arguments::{Limit, Nulls, Whole, time};
use crate::columns::Column;
use crate::errors::{PARAMETER, raised_of_file};
use crate::items::with_bytes;

/// The union of the counters in a list, an iterable or a column of bytes. One of them is in memory at a time.
pub(crate) fn merge_all(given: &Bound<'_, PyAny>, nulls: Nulls, limit: Limit, now: Option<Whole>) -> PyResult<Count> {
    let py = given.py();
    let mut union: Option<Count> = None;
    let mut merge = |number: usize, bytes: &[u8]| {
        let merged = py.detach(|| -> Result<(), FileError> {
            let next = persist::from_bytes(bytes, &limit)?;
            match &mut union {
                None => union = Some(next),
                Some(union) => {
                    let time = time(union, now);
                    union.live(time).merge(&[&next], &limit).map_err(FileError::Value)?;
                }
            }
            Ok(())
        });
        merged.map_err(|error| raised_of_file(py, error, Some(Path::new(&name(number)))))
    };
    if let Some(column) = Column::new(given, nulls)? {
        let mut rows = column.missing().enumerate().filter(|(_, is_missing)| !is_missing).map(|(row, _)| row);
        column.blocks(py, |items| items.iter().zip(&mut rows).try_for_each(|(bytes, row)| merge(row, bytes)))?;
    } else {
        for (number, item) in given.try_iter()?.enumerate() {
            let item = item?;
            if item.is_none() && nulls == Nulls::Skip {
                continue;
            }
            with_bytes(&item, |bytes| merge(number, bytes)).map_err(|_| {
                let skip = if item.is_none() { ": pass nulls=\"skip\" to leave it out" } else { "" };
                let kind = item.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
                PyTypeError::new_err(format!("{}: expected the bytes of a counter, got {kind}{skip}", name(number)))
            })??;
            py.check_signals()?;
        }
    }
    union.ok_or_else(|| PARAMETER.error(py, "expected one counter or more, got none"))
}

fn name(number: usize) -> String {
    format!("counters[{number}]")
}
