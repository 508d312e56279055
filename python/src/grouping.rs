//! Adds the items of one column to the filters or counters of their groups, which another column names.

use std::borrow::Cow;
use std::collections::HashMap;

use pyo3::PyClass;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use rollcall_core::error::Error;

use crate::arguments::Nulls;
use crate::columns::{Column, SMALL_ROWS};
use crate::rows::BLOCK_ROWS;

/// For each row, adds the item to `values[group]`. All values are looked up before anything is added. Then Python's
/// lock is released, and `add` gets the items of one group in each block of rows.
///
/// # Errors
/// `TypeError` for what is no column, `ValueError` for columns of different lengths, and the errors of columns, of the
/// mapping `values` and of `add`.
pub(crate) fn update_groups<V: PyClass<Frozen = True> + Sync>(
    values: &Bound<'_, PyAny>,
    groups: &Bound<'_, PyAny>,
    items: &Bound<'_, PyAny>,
    nulls: Nulls,
    add: impl Fn(&V, &[&[u8]]) -> Result<(), Error> + Sync,
) -> PyResult<()> {
    let py = values.py();
    let (groups, items) = (column(groups, Nulls::Skip)?, column(items, nulls)?);
    let grouped = py.detach(|| Grouped::new(&groups))?;
    if grouped.of_rows.len() != items.len() {
        let (names, items) = (grouped.of_rows.len(), items.len());
        return Err(PyValueError::new_err(format!("expected as many groups as items, got {names} and {items}")));
    }
    let mut of_groups = Vec::with_capacity(grouped.names.len());
    for name in &grouped.names {
        let value = values.get_item(name.as_deref().map(|name| groups.as_python(py, name)).transpose()?)?;
        of_groups.push(value.cast_into::<V>()?.unbind());
    }
    let of_groups: Vec<&V> = of_groups.iter().map(Py::get).collect();
    let (mut of_rows, mut ends) = (&grouped.of_rows[..], vec![0; of_groups.len()]);
    // A block takes time for each group.
    items.blocks_detached(py, of_groups.len().clamp(SMALL_ROWS, BLOCK_ROWS), |block| {
        let of_block = of_rows.split_off(..block.rows.len()).unwrap_or_default();
        // The groups of the items: those of all rows but missing values.
        let of_items = if block.items.len() == block.rows.len() {
            Cow::Borrowed(of_block)
        } else {
            let rows = block.rows.clone().zip(of_block);
            rows.filter(|&(row, _)| !block.is_missing(row)).map(|(_, &group)| group).collect()
        };
        // The place of each group's next item, and at last the end of its items.
        ends.fill(0);
        of_items.iter().for_each(|&group| ends[group as usize] += 1);
        let mut start = 0;
        ends.iter_mut().for_each(|end| start += std::mem::replace(end, start));
        let mut sorted = vec![&[][..]; block.items.len()];
        for (&group, item) in of_items.iter().zip(block.items) {
            let end = &mut ends[group as usize];
            sorted[*end] = item;
            *end += 1;
        }
        let mut start = 0;
        of_groups.iter().zip(&ends).try_for_each(|(value, &end)| {
            match &sorted[std::mem::replace(&mut start, end)..end] {
                [] => Ok(()),
                items => add(value, items),
            }
        })
    })
}

fn column(given: &Bound<'_, PyAny>, nulls: Nulls) -> PyResult<Column> {
    let expected = || PyTypeError::new_err(format!("expected a column of Arrow, got {}", given.get_type()));
    Column::new(given, nulls)?.ok_or_else(expected)
}

/// A column of groups. Missing values are one group.
struct Grouped {
    /// The different groups, in the order in which they occur.
    names: Vec<Option<Box<[u8]>>>,
    /// For each row, the index of its group.
    of_rows: Vec<u32>,
}

impl Grouped {
    fn new(column: &Column) -> PyResult<Self> {
        let (mut names, mut of_rows) = (Vec::<Option<Box<[u8]>>>::new(), Vec::with_capacity(column.len()));
        // For each last byte of a name, the group that was found last: fewer instructions than a hash.
        let mut recent = [u32::MAX; 256];
        let (mut known, mut missing) = (HashMap::<Box<[u8]>, u32>::new(), None);
        column.each_block(SMALL_ROWS, |block| {
            let mut of_block = block.items.iter();
            of_rows.extend(block.rows.clone().map(|row| {
                let name = if block.is_missing(row) { None } else { of_block.next().copied() };
                let next = names.len() as u32;
                let group = match name {
                    None => *missing.get_or_insert(next),
                    Some(name) => {
                        let recent = &mut recent[usize::from(name.last().copied().unwrap_or_default())];
                        if names.get(*recent as usize).is_none_or(|other| other.as_deref() != Some(name)) {
                            *recent = match known.get(name) {
                                Some(&group) => group,
                                None => *known.entry(Box::from(name)).or_insert(next),
                            };
                        }
                        *recent
                    }
                };
                if group == next {
                    names.push(name.map(Into::into));
                }
                group
            }));
            Ok(())
        })?;
        Ok(Grouped { names, of_rows })
    }
}
