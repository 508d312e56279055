//! Adds the items of one column to the filters or counters of their groups, which another column names.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rollcall_core::unstable::hash::hash64;

use crate::arguments::Nulls;
use crate::columns::Column;

/// For each row, adds the item to `values[group]`. `add` gets the items of one group in each block of rows. All values
/// are looked up before anything is added.
///
/// # Errors
/// `TypeError` for what is no column, `ValueError` for columns of different lengths, and the errors of columns, of the
/// mapping `values` and of `add`.
pub(crate) fn update_groups<'py, V: PyTypeInfo>(
    values: &Bound<'py, PyAny>,
    groups: &Bound<'py, PyAny>,
    items: &Bound<'py, PyAny>,
    nulls: Nulls,
    add: impl Fn(&Bound<'py, V>, &[&[u8]]) -> PyResult<()>,
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
        of_groups.push(value.cast_into::<V>()?);
    }
    let mut of_items = Vec::new();
    match items.num_missing() {
        0 => of_items = grouped.of_rows,
        _ => {
            let present = grouped.of_rows.iter().zip(items.missing()).filter(|(_, is_missing)| !is_missing);
            of_items.extend(present.map(|(&group, _)| group));
        }
    }
    let mut of_items = of_items.as_slice();
    items.blocks(py, |block| {
        // Sorts the items by group. `ends` has the place of each group's next item, and at last the group's end.
        let of_block = of_items.split_off(..block.len()).unwrap_or_default();
        let mut ends = vec![0; of_groups.len()];
        of_block.iter().for_each(|&group| ends[group as usize] += 1);
        let mut start = 0;
        ends.iter_mut().for_each(|end| start += std::mem::replace(end, start));
        let mut sorted = vec![&[][..]; block.len()];
        for (&group, item) in of_block.iter().zip(block) {
            let end = &mut ends[group as usize];
            sorted[*end] = item;
            *end += 1;
        }
        let mut start = 0;
        of_groups.iter().zip(ends).try_for_each(|(value, end)| match &sorted[std::mem::replace(&mut start, end)..end] {
            [] => Ok(()),
            items => add(value, items),
        })
    })
}

fn column(given: &Bound<'_, PyAny>, nulls: Nulls) -> PyResult<Column> {
    let expected = || PyTypeError::new_err(format!("expected a column of Arrow, got {}", given.get_type()));
    Column::new(given, nulls)?.ok_or_else(expected)
}

/// A column of groups. Missing values are one group.
#[derive(Default)]
struct Grouped {
    /// The different groups, in the order in which they occur.
    names: Vec<Option<Box<[u8]>>>,
    /// For each row, the index of its group.
    of_rows: Vec<u32>,
}

impl Grouped {
    fn new(column: &Column) -> PyResult<Self> {
        let mut grouped = Grouped { names: Vec::new(), of_rows: Vec::with_capacity(column.len()) };
        let (mut known, mut missing) = (HashMap::with_hasher(NameHashes(RandomState::new().hash_one(()))), None);
        column.rows(|name: Option<&[u8]>| {
            let next = grouped.names.len() as u32;
            let group = match name {
                None => *missing.get_or_insert(next),
                Some(name) => match known.get(name) {
                    Some(&group) => group,
                    None => *known.entry(Box::from(name)).or_insert(next),
                },
            };
            if group == next {
                grouped.names.push(name.map(Into::into));
            }
            grouped.of_rows.push(group);
        })?;
        Ok(grouped)
    }
}

/// Hashes names by XXH3 under this seed, in a third of the time of std's hash. Strangers may choose the names.
struct NameHashes(u64);

impl BuildHasher for NameHashes {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher(self.0)
    }
}

struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash64(bytes, self.0);
    }

    /// The length, which std hashes before the bytes.
    fn write_usize(&mut self, _len: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
