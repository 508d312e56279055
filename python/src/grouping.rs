//! Adds the items of one column to the filters or counters of their groups, which another column names.

use std::collections::HashMap;

use pyo3::PyClass;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use rollcall_core::error::Error;

use crate::arguments::Nulls;
use crate::columns::{Column, SMALL_ROWS, Texts};
use crate::errors::raised_detached;
use crate::rows::BLOCK_ROWS;

/// The least number of rows that are divided among the groups at a time. Their numbers stay in the processor's cache.
const LEAST_ROWS: usize = 1 << 12;

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
    let named = |error: PyErr| match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(format!("groups: {}", error.value(py))),
        false => error,
    };
    let (groups, items) = (column(groups, Nulls::Skip).map_err(named)?, column(items, nulls)?);
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
    let missing = of_groups.len();
    let (mut of_rows, mut ends) = (&grouped.of_rows[..], vec![0; missing + 2]);
    let (mut places, mut sorted, mut texts) = (Vec::new(), Vec::new(), Texts::default());
    // A block takes time for each group.
    items.each_block_detached(py, of_groups.len().clamp(LEAST_ROWS, BLOCK_ROWS), |block| {
        let of_block = of_rows.split_off(..block.len()).unwrap_or_default();
        // What is missing is a group behind all others.
        let group_of = |(row, &group): (usize, &u32)| if block.is_missing(row) { missing } else { group as usize };
        // One loop numbers the rows of each group, and another sorts rows by group. In one loop, a processor could not
        // overlap a row with the next, since it would know late where it writes.
        ends.fill(0);
        places.resize(block.len(), 0);
        for (row, place) in of_block.iter().enumerate().zip(&mut places) {
            let end = &mut ends[group_of(row) + 1];
            *place = std::mem::replace(end, *end + 1);
        }
        ends.iter_mut().fold(0, |sum, end| {
            *end += sum;
            *end
        });
        sorted.resize(block.len(), 0);
        for (row, place) in of_block.iter().enumerate().zip(&places) {
            sorted[(ends[group_of(row)] + place) as usize] = row.0 as u32;
        }
        sorted.truncate(ends[missing] as usize);
        let mut groups = of_groups.iter().zip(&ends[1..]);
        let (mut group, mut start) = (groups.next(), 0);
        for rows in sorted.chunks(SMALL_ROWS) {
            let items = block.items_of(rows.iter().map(|&row| row as usize), &mut texts)?;
            let mut items = &items[..];
            while let (Some((value, end)), false) = (group, items.is_empty()) {
                let of_group = items.split_off(..items.len().min((end - start) as usize)).unwrap_or_default();
                if !of_group.is_empty() {
                    raised_detached(add(value, of_group))?;
                }
                start += of_group.len() as u32;
                if start == *end {
                    group = groups.next();
                }
            }
        }
        Ok(())
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
        // For the last byte of names, the group that was found last, with its ends: fewer instructions than a hash.
        let mut recent = [(usize::MAX, (0, 0), 0); 64];
        let (mut known, mut missing) = (HashMap::<Box<[u8]>, u32>::new(), None);
        let mut texts = Texts::default();
        column.each_block(SMALL_ROWS, |block| {
            let items = block.items(&mut texts)?;
            let mut items = items.iter();
            of_rows.extend((0..block.len()).map(|row| {
                let name = if block.is_missing(row) { None } else { items.next().copied() };
                let next = names.len() as u32;
                let group = match name {
                    None => *missing.get_or_insert(next),
                    Some(name) => {
                        let (len, ends) = (name.len(), ends_of(name));
                        let recent = &mut recent[usize::from(name.last().copied().unwrap_or_default() % 64)];
                        let is_recent = recent.0 == len
                            && recent.1 == ends
                            && (len <= ENDS || names[recent.2 as usize].as_deref() == Some(name));
                        if !is_recent {
                            let group = match known.get(name) {
                                Some(&group) => group,
                                None => *known.entry(Box::from(name)).or_insert(next),
                            };
                            *recent = (len, ends, group);
                        }
                        recent.2
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

/// The length of the longest names that are equal if their lengths and their ends are.
const ENDS: usize = 16;

/// The first and the last bytes of a name as numbers, which take less time to compare than to call `memcmp`.
#[inline]
fn ends_of(name: &[u8]) -> (u64, u64) {
    if let (Some(&first), Some(&last)) = (name.first_chunk(), name.last_chunk()) {
        return (u64::from_le_bytes(first), u64::from_le_bytes(last));
    }
    if let (Some(&first), Some(&last)) = (name.first_chunk(), name.last_chunk()) {
        return (u32::from_le_bytes(first).into(), u32::from_le_bytes(last).into());
    }
    let byte = |at| u64::from(name.get(at).copied().unwrap_or_default());
    (byte(0), byte(1) | byte(2) << 8)
}
