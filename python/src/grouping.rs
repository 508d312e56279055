//! Adds the items of one column to the filters or counters of their groups, which another column names.

use std::collections::HashMap;

use pyo3::PyClass;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use rollcall_core::error::Error;
use rollcall_core::unstable::hash64;

use crate::arguments::{Nulls, Whole};
use crate::columns::{Column, SMALL_ROWS, Texts};
use crate::errors::raised_detached;
use crate::rows::BLOCK_ROWS;

/// A filter or counter of a group, for a thread that has released Python's lock.
pub(crate) trait Grouped: PyClass<Frozen = True> + Sync {
    /// Adds items. Returns the seed for [`Self::add_hashes`], if this can add further items.
    ///
    /// # Errors
    /// Those of the filter or counter.
    fn add_items(&self, items: &[&[u8]], now: Option<Whole>) -> Result<Option<u64>, Error>;

    /// Adds items by their hashes under `seed`. Returns false, and adds nothing, if the value needs the items.
    ///
    /// # Errors
    /// Those of the filter or counter.
    fn add_hashes(&self, _seed: u64, _hashes: &[u64], _now: Option<Whole>) -> Result<bool, Error> {
        Ok(false)
    }
}

/// For each row, adds the item to `values[group]`. All values are looked up before anything is added. Then Python's
/// lock is released, and each value gets the items of its group in each block of rows.
///
/// # Errors
/// `TypeError` for what is no column, `ValueError` for columns of different lengths, and the errors of columns, of the
/// mapping `values` and of the values.
pub(crate) fn update_groups<V: Grouped>(
    values: &Bound<'_, PyAny>,
    groups: &Bound<'_, PyAny>,
    items: &Bound<'_, PyAny>,
    nulls: Nulls,
    now: Option<Whole>,
) -> PyResult<()> {
    let py = values.py();
    let named = |error: PyErr| match error.is_instance_of::<PyTypeError>(py) {
        true => {
            let named = PyTypeError::new_err(format!("groups: {}", error.value(py)));
            named.set_cause(py, Some(error));
            named
        }
        false => error,
    };
    let (groups, items) = (column(groups, Nulls::Skip).map_err(named)?, column(items, nulls)?);
    let (names, of_rows) = py.detach(|| grouped(&groups))?;
    if of_rows.len() != items.len() {
        let (names, items) = (of_rows.len(), items.len());
        return Err(PyValueError::new_err(format!("expected as many groups as items, got {names} and {items}")));
    }
    let mut of_groups = Vec::with_capacity(names.len());
    for name in &names {
        let value = values.get_item(name.as_deref().map(|name| groups.as_python(py, name)).transpose()?)?;
        of_groups.push(value.cast_into::<V>()?.unbind());
    }
    let of_groups: Vec<&V> = of_groups.iter().map(Py::get).collect();
    let (mut of_rows, mut starts) = (&of_rows[..], vec![0; of_groups.len() + 1]);
    let mut seed = py.detach(|| of_groups.first()?.add_items(&[], now).ok()?);
    let mut texts = Texts::default();
    // A block takes time for each group.
    items.each_block_detached(py, of_groups.len().clamp(SMALL_ROWS, BLOCK_ROWS), |block| {
        let of_block = of_rows.split_off(..block.len()).unwrap_or_default();
        let items = block.items(&mut texts)?;
        let groups = || of_block.iter().enumerate().filter(|&(row, _)| !block.is_missing(row)).map(|(_, &group)| group);
        starts.fill(0);
        groups().for_each(|group| starts[group as usize + 1] += 1);
        starts.iter_mut().fold(0, |sum, start| {
            *start += sum;
            *start
        });
        // Hashes take less time to sort than items, which are read here in the order in which they lie in memory.
        let hashes = seed.map(|seed| (seed, sorted(groups(), &starts, items.iter().map(|item| hash64(item, seed)))));
        let mut by_group = None;
        for (value, ends) in of_groups.iter().zip(starts.windows(2)) {
            let rows = ends[0]..ends[1];
            let is_done = match &hashes {
                _ if rows.is_empty() => true,
                Some((seed, hashes)) => raised_detached(value.add_hashes(*seed, &hashes[rows.clone()], now))?,
                None => false,
            };
            if !is_done {
                let items = by_group.get_or_insert_with(|| sorted(groups(), &starts, items.iter().copied()));
                seed = seed.or(raised_detached(value.add_items(&items[rows], now))?);
            }
        }
        Ok(())
    })
}

/// The values, sorted by their groups. `starts` has the place of each group's first value.
fn sorted<T: Copy + Default>(
    groups: impl Iterator<Item = u32>,
    starts: &[usize],
    values: impl ExactSizeIterator<Item = T>,
) -> Vec<T> {
    let (mut sorted, mut places) = (vec![T::default(); values.len()], starts.to_vec());
    for (group, value) in groups.zip(values) {
        let place = &mut places[group as usize];
        sorted[*place] = value;
        *place += 1;
    }
    sorted
}

fn column(given: &Bound<'_, PyAny>, nulls: Nulls) -> PyResult<Column> {
    let expected = || PyTypeError::new_err(format!("expected a column of Arrow, got {}", given.get_type()));
    Column::new(given, nulls)?.ok_or_else(expected)
}

/// The name of a group; `None` for the group of missing values.
type Name = Option<Box<[u8]>>;

/// The different groups of a column, in the order in which they occur, and for each row the number of its group.
fn grouped(column: &Column) -> PyResult<(Vec<Name>, Vec<u32>)> {
    let (mut groups, mut of_rows) = (Groups::new(), Vec::with_capacity(column.len()));
    let mut texts = Texts::default();
    column.each_block(SMALL_ROWS, |block| block.each(&mut texts, |name| of_rows.push(groups.number_of(name))))?;
    Ok((groups.names, of_rows))
}

/// The groups that were found. A group's number is its place in `names`.
struct Groups {
    names: Vec<Name>,
    numbers: HashMap<Box<[u8]>, u32>,
    missing: Option<u32>,
    /// For the last byte of names, the group that was found last: the length of its name, its ends and its number. A
    /// comparison takes fewer instructions than a hash.
    recent: [(usize, (u64, u64), u32); 64],
}

impl Groups {
    fn new() -> Self {
        let recent = [(usize::MAX, (0, 0), 0); 64];
        Groups { names: Vec::new(), numbers: HashMap::new(), missing: None, recent }
    }

    /// The number of a group, which becomes the last if it is new.
    #[inline(always)]
    fn number_of(&mut self, name: Option<&[u8]>) -> u32 {
        if let Some(name) = name {
            let (len, ends, number) = self.recent[place_of(name)];
            if len == name.len()
                && ends == ends_of(name)
                && (len <= ENDS || self.names[number as usize].as_deref() == Some(name))
            {
                return number;
            }
        }
        self.look_up(name)
    }

    #[inline(never)]
    fn look_up(&mut self, name: Option<&[u8]>) -> u32 {
        let next = self.names.len() as u32;
        let number = match name {
            None => *self.missing.get_or_insert(next),
            Some(name) => {
                let known = self.numbers.get(name).copied();
                let number = known.unwrap_or_else(|| *self.numbers.entry(name.into()).or_insert(next));
                self.recent[place_of(name)] = (name.len(), ends_of(name), number);
                number
            }
        };
        if number == next {
            self.names.push(name.map(Into::into));
        }
        number
    }
}

fn place_of(name: &[u8]) -> usize {
    usize::from(name.last().copied().unwrap_or_default() % 64)
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
