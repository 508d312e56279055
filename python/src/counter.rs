//! The class `rollcall_redis.Counter`.

use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};
use rollcall_core::admission::Terms;
use rollcall_core::counting::{Counter as Count, Estimated, Params, View};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::window::{ClockSource, Window};

use crate::admission::admit;
use crate::arguments::{Limit, Nulls, Seconds, Whole, default_slices, live, time, unix_seconds, with_slices};
use crate::equality::are_equal;
use crate::errors::{ESTIMATE, PARAMETER, raised};
use crate::grouping::{Grouped, update_groups};
use crate::guarded::Guarded;
use crate::items::{Items, LONG, answers, with_item};
use crate::merging::merge_all;
use crate::stored::Pickled;
use crate::transfer::COUNTERS;
use crate::{chunks, stored, transfer};

/// The default number of slices of a counter's window, the same as on a server.
const SLICES: u32 = 12;

/// A counter of distinct members. While they are few, it is exact and lists them; then it estimates their number.
///
/// A member is str (its UTF-8), bytes, bytearray or memoryview. The count is exact for up to `exact_limit` members,
/// which may have up to `exact_bytes` bytes together. Beyond, for any number of members, its relative standard error is
/// at most 1.04 times `error_rate`, plus half a member.
///
/// With `window`, members expire that many seconds after they were last added.
#[pyclass(frozen, module = "rollcall_redis")]
pub(crate) struct Counter {
    pub(crate) counter: Guarded<Count>,
    limit: Limit,
}

impl Counter {
    pub(crate) fn with_limit(counter: Count, limit: Limit) -> Self {
        Counter { counter: Guarded::new(counter), limit }
    }

    fn add_block(
        &self,
        py: Python<'_>,
        items: &[&[u8]],
        now: Option<Whole>,
        added: impl FnMut(bool) + Send,
    ) -> PyResult<()> {
        let limit = self.limit;
        let add = |counter: &mut Count| live(counter, now).add_all(items.iter().copied(), &limit, added);
        let result = if items.len() < LONG { self.counter.write(py, add) } else { self.counter.write_long(py, add) };
        result.map_err(|error| raised(py, error))
    }

    fn unite(&self, py: Python<'_>, others: &[&Counter], now: Option<Whole>) -> PyResult<bool> {
        let others: Vec<&Guarded<Count>> = others.iter().map(|other| &other.counter).collect();
        let limit = self.limit;
        let united = self.counter.write_with(py, &others, |counter, others| live(counter, now).merge(others, &limit));
        united.map_err(|error| raised(py, error))
    }

    fn cloned(&self, py: Python<'_>) -> PyResult<Self> {
        let clone = self.counter.read_long(py, Count::try_clone).map_err(|error| raised(py, error))?;
        Ok(Counter::with_limit(clone, self.limit))
    }

    fn params(&self, py: Python<'_>) -> Params {
        self.counter.read(py, |counter| *counter.params())
    }

    fn windowing(&self, py: Python<'_>) -> Option<Window> {
        self.counter.read(py, |counter| counter.window().copied())
    }

    /// The estimated number of members that are live at the time `now`, or that were added in the last `since` seconds.
    fn estimated(&self, py: Python<'_>, since: Option<Seconds>, now: Option<Whole>) -> PyResult<Estimated> {
        let reported = self.counter.read(py, |counter| Ok(view_of(counter, since, now)?.estimated()));
        reported.map_err(|error: Error| raised(py, error))
    }
}

pub(crate) fn estimate_of(py: Python<'_>, estimated: Estimated) -> PyResult<Bound<'_, PyAny>> {
    ESTIMATE.get(py)?.call1((estimated.count(), estimated.standard_error))
}

impl Grouped for Counter {
    fn add_items(&self, items: &[&[u8]], now: Option<Whole>) -> Result<Option<u64>, Error> {
        self.counter.write_detached(|counter| {
            live(counter, now).add_all(items.iter().copied(), &self.limit, |_| {})?;
            Ok((!counter.is_exact()).then_some(counter.params().seed))
        })
    }

    fn add_hashes(&self, seed: u64, hashes: &[u64], now: Option<Whole>) -> Result<bool, Error> {
        self.counter.write_detached(|counter| {
            Ok(counter.params().seed == seed && live(counter, now).add_hashes(hashes, &self.limit)?)
        })
    }
}

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (error_rate=0.01, *, exact_limit=Whole(250),
        exact_bytes=Whole(Params::DEFAULT_EXACT_BYTES as u64), window=None, slices=None, manual=false, seed=Whole(0),
        max_bytes=None, now=None))]
    #[pyo3(text_signature = "(error_rate=0.01, *, exact_limit=250, exact_bytes=16384, window=None, \
        slices=None, manual=False, seed=0, max_bytes=None, now=None)")]
    #[expect(clippy::too_many_arguments, reason = "as many as LC.RESERVE has, all but one by name")]
    fn new(
        py: Python<'_>,
        error_rate: f64,
        exact_limit: Whole,
        exact_bytes: Whole,
        window: Option<Seconds>,
        slices: Option<Whole>,
        manual: bool,
        seed: Whole,
        max_bytes: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Self> {
        let params =
            Params { error_rate, exact_limit: exact_limit.narrow(), exact_bytes: exact_bytes.narrow(), seed: seed.0 };
        let counter = Count::new(params).and_then(|counter| {
            let Some(Seconds(seconds)) = window else { return Ok(counter) };
            let slices = slices.map_or_else(|| default_slices(SLICES, seconds), Whole::narrow);
            let clock_source = if manual { ClockSource::Manual } else { ClockSource::System };
            let window = Window::new(seconds, slices, Count::MAX_SLICES, clock_source)?;
            counter.with_window(window, window.first_slice(unix_seconds(now)))
        });
        if window.is_none() && (slices.is_some() || manual) {
            let name = if manual { "manual" } else { "slices" };
            return Err(PARAMETER.error(py, format_args!("{name} needs window")));
        }
        let counter = counter.map_err(|error| raised(py, with_slices(error, slices)))?;
        Ok(Counter::with_limit(counter, Limit::new(max_bytes)))
    }

    /// Adds a member. Returns True if the count changed; for an exact counter, if the member is new.
    #[pyo3(signature = (member, now=None))]
    fn add(&self, member: &Bound<'_, PyAny>, now: Option<Whole>) -> PyResult<bool> {
        let py = member.py();
        let limit = self.limit;
        let added =
            with_item(member, |member| self.counter.write(py, |counter| live(counter, now).add(member, &limit)))?;
        added.map_err(|error| raised(py, error))
    }

    /// Adds all members of an iterable, an array or a column. With `nulls="skip"`, missing values of a column are left
    /// out; otherwise they raise `TypeError`.
    #[pyo3(signature = (members, *, width=None, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "($self, members, *, width=None, nulls='error', now=None)")]
    fn update<'py>(
        &self,
        members: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<()> {
        let py = members.py();
        match Items::new(members, width, nulls)? {
            Items::Column(column) => column.blocks_detached(py, |items| self.add_items(items, now).map(drop)),
            items => items.blocks(py, |block| self.add_block(py, block, now, |_| {})),
        }
    }

    /// For each row of two columns, adds the member to `counters[group]`, in a mapping such as `defaultdict(Counter)`.
    /// A group is an int, str or bytes, by the type of its column, or None if it is missing. Rows are paired by
    /// position, also those of pandas Series with different indexes.
    #[staticmethod]
    #[pyo3(signature = (counters, groups, members, *, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "(counters, groups, members, *, nulls='error', now=None)")]
    fn update_groups(
        counters: &Bound<'_, PyAny>,
        groups: &Bound<'_, PyAny>,
        members: &Bound<'_, PyAny>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<()> {
        update_groups::<Self>(counters, groups, members, nulls, now)
    }

    /// Adds many members, and returns for each the result of `add`: in a list, for an array of NumPy or a column in a
    /// NumPy array, or for another buffer in a memoryview of format '?'.
    ///
    /// The members of an array are the elements of a one-dimensional array of bytes, or the rows of a two-dimensional
    /// one. With `width`, each member is the next `width` bytes of an array of any shape. Arrays of floats are
    /// rejected.
    ///
    /// A column (of Arrow's C data interface) has texts, bytes, whole numbers, which become their decimal digits, or
    /// UUIDs. Missing values raise `TypeError`; with `nulls="skip"` they are left out, and their answer is False.
    #[pyo3(signature = (members, *, width=None, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "($self, members, *, width=None, nulls='error', now=None)")]
    fn add_many<'py>(
        &self,
        members: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = members.py();
        answers(members, width, nulls, |block, reported| {
            self.add_block(py, block, now, |is_new| reported.push(is_new.into()))
        })
    }

    /// Whether the value is a member. The counter must be exact. With a window: at the time `now`, or in the last
    /// `since` seconds.
    #[pyo3(signature = (member, *, since=None, now=None))]
    fn contains(&self, member: &Bound<'_, PyAny>, since: Option<Seconds>, now: Option<Whole>) -> PyResult<bool> {
        let py = member.py();
        let found = with_item(member, |member| {
            self.counter.read(py, |counter| view_of(counter, since, now)?.contains(member))
        })?;
        found.map_err(|error| raised(py, error))
    }

    fn __contains__(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(member, None, None)
    }

    /// Looks up many members, given as in `add_many`. Returns a list of bool, a NumPy array or a memoryview, as
    /// `add_many` does.
    #[pyo3(signature = (members, *, width=None, nulls=Nulls::Error, since=None, now=None))]
    #[pyo3(text_signature = "($self, members, *, width=None, nulls='error', since=None, now=None)")]
    fn contains_many<'py>(
        &self,
        members: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        since: Option<Seconds>,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = members.py();
        answers(members, width, nulls, |block, reported| {
            let found = self.counter.read_long(py, |counter| {
                let view = view_of(counter, since, now)?;
                block.iter().try_for_each(|member| {
                    reported.push(view.contains(member)?.into());
                    Ok(())
                })
            });
            found.map_err(|error| raised(py, error))
        })
    }

    /// The number of members; with `since`, of the members that were added in the last `since` seconds.
    #[pyo3(signature = (*, since=None, now=None))]
    fn count(&self, py: Python<'_>, since: Option<Seconds>, now: Option<Whole>) -> PyResult<u64> {
        Ok(self.estimated(py, since, now)?.count())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.count(py, None, None)?).unwrap_or(usize::MAX))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.count(py, None, None)? > 0)
    }

    /// The number of members, and its standard error in members.
    #[pyo3(signature = (*, since=None, now=None))]
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        since: Option<Seconds>,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        estimate_of(py, self.estimated(py, since, now)?)
    }

    /// The relative standard error of the count; 0 while it is exact.
    #[getter]
    fn standard_error(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.estimated(py, None, None)?.relative_error())
    }

    /// Whether the count is exact.
    #[getter]
    fn is_exact(&self, py: Python<'_>) -> bool {
        self.counter.read(py, Count::is_exact)
    }

    /// The members of an exact counter as bytes, in the order in which they were first added.
    ///
    /// With `withages`, pairs of a member and the seconds since the slice began in which it was last added, oldest
    /// first.
    #[pyo3(signature = (*, since=None, withages=false, now=None))]
    fn members<'py>(
        &self,
        py: Python<'py>,
        since: Option<Seconds>,
        withages: bool,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyList>> {
        if withages {
            let now = Some(Whole(unix_seconds(now)));
            let aged = self.counter.read(py, |counter| -> Result<Vec<(Vec<u8>, u64)>, Error> {
                let aged = view_of(counter, since, now)?.members_with_ages(time(counter, now))?;
                Ok(aged.into_iter().map(|(member, seconds)| (member.text().to_vec(), seconds)).collect())
            });
            let aged = aged.map_err(|error| raised(py, error))?;
            return PyList::new(py, aged.iter().map(|(member, seconds)| (PyBytes::new(py, member), *seconds)));
        }
        let listed = self.counter.read(py, |counter| -> Result<Vec<Vec<u8>>, Error> {
            Ok(view_of(counter, since, now)?.members()?.map(|member| member.text().to_vec()).collect())
        });
        let listed = listed.map_err(|error| raised(py, error))?;
        PyList::new(py, listed.iter().map(|member| PyBytes::new(py, member)))
    }

    /// For each slice of the window, newest first: its begin in Unix seconds, and the number of members since then with
    /// its standard error. Without a window the list is empty.
    #[pyo3(signature = (now=None))]
    fn history<'py>(&self, py: Python<'py>, now: Option<Whole>) -> PyResult<Vec<(i64, Bound<'py, PyAny>)>> {
        let rows = self.counter.read(py, |counter| counter.history(time(counter, now)));
        let rows = rows.map_err(|error| raised(py, error))?;
        rows.into_iter().map(|(start, estimated)| Ok((start, estimate_of(py, estimated)?))).collect()
    }

    /// Adds new members as long as the counter has fewer than `limit`, in one atomic step. With `all`, adds all of them
    /// or none.
    ///
    /// With `dryrun`, nothing is changed. `limit` must not exceed the number of members up to which the counter is
    /// exact. With `withroom`, returns `Admissions` instead of a list.
    #[pyo3(signature = (members, limit, *, all=false, dryrun=false, withroom=false, width=None, now=None))]
    #[expect(clippy::too_many_arguments, reason = "all but two by name")]
    fn admit<'py>(
        &self,
        py: Python<'py>,
        members: &Bound<'py, PyAny>,
        limit: Whole,
        all: bool,
        dryrun: bool,
        withroom: bool,
        width: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (members, terms) =
            (Items::new(members, width, Nulls::Never)?, Terms { limit: limit.0, all, dry_run: dryrun });
        admit(&self.counter, members, terms, withroom, self.limit, now, py)
    }

    /// Removes members of an exact counter. Returns for each item whether it was removed; of equal items the first is.
    #[pyo3(signature = (members, *, width=None, now=None))]
    fn remove(
        &self,
        py: Python<'_>,
        members: &Bound<'_, PyAny>,
        width: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Vec<bool>> {
        let members = Items::new(members, width, Nulls::Never)?.all(py)?;
        let removed =
            self.counter.write_long(py, |counter| live(counter, now).remove(members.iter().map(Vec::as_slice)));
        removed.map_err(|error| raised(py, error))
    }

    /// Makes this counter the union of itself and others. Returns True if it changed.
    #[pyo3(signature = (*others, now=None))]
    fn merge(&self, py: Python<'_>, others: Vec<Bound<'_, Counter>>, now: Option<Whole>) -> PyResult<bool> {
        let others: Vec<&Counter> = others.iter().map(Bound::get).collect();
        self.unite(py, &others, now)
    }

    fn __or__(&self, other: &Bound<'_, Counter>) -> PyResult<Self> {
        let union = self.cloned(other.py())?;
        union.unite(other.py(), &[other.get()], None)?;
        Ok(union)
    }

    fn __ior__(&self, other: &Bound<'_, Counter>) -> PyResult<()> {
        self.unite(other.py(), &[other.get()], None).map(drop)
    }

    /// Compares parameters, and members or bits. The order of insertion makes no difference.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Counter>() else { return Ok(py.NotImplemented()) };
        let both = [&self.counter, &other.get().counter];
        Guarded::read_all(py, &both, |both| are_equal(both[0], both[1])).into_py_any(py)
    }

    #[classattr]
    fn __hash__() -> Option<isize> {
        None
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (params, estimated) = (self.params(py), self.estimated(py, None, None)?);
        let count = match self.is_exact(py) {
            true => format!("{} members", estimated.count()),
            false => {
                // An error below ten members is shown with one decimal.
                let (error, decimals) = (estimated.standard_error, usize::from(estimated.standard_error < 10.0));
                format!("about {} members (\u{b1} {error:.decimals$})", estimated.count())
            }
        };
        let window = match self.windowing(py) {
            None => String::new(),
            Some(window) => {
                let clock_source = if window.clock_source() == ClockSource::Manual { " on a manual clock" } else { "" };
                format!(", {} seconds{clock_source} in {} slices", window.seconds(), window.slices())
            }
        };
        Ok(format!(
            "<rollcall_redis.Counter at {:?}: {count}, {} bytes{window}>",
            params.error_rate,
            self.size_bytes(py)
        ))
    }

    /// Empties the counter.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let cleared = self.counter.write_long(py, |counter| counter.new_like().map(|empty| *counter = empty));
        cleared.map_err(|error| raised(py, error))
    }

    /// A copy of the counter.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        self.cloned(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.cloned(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.cloned(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        let restore = slf.get_type().getattr("from_bytes")?;
        Ok((restore, (this.to_bytes(slf.py())?, this.limit.0)))
    }

    /// Moves the window forward to this slice, and drops what expires.
    fn advance(&self, py: Python<'_>, slice: Whole) {
        self.counter.write_long(py, |counter| counter.advance(slice.0));
    }

    /// The newest slice that the counter has reached; None without a window.
    #[getter]
    fn newest_slice(&self, py: Python<'_>) -> Option<u64> {
        self.counter.read(py, Count::newest_slice)
    }

    /// The relative standard error that was asked for; the actual one is at most 4 % larger, plus half a member.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> f64 {
        self.params(py).error_rate
    }

    /// The largest number of members for which the counter is exact.
    #[getter]
    fn exact_limit(&self, py: Python<'_>) -> u32 {
        self.params(py).exact_limit
    }

    /// The most bytes that all members of an exact counter may have together.
    #[getter]
    fn exact_bytes(&self, py: Python<'_>) -> u32 {
        self.params(py).exact_bytes
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        self.params(py).seed
    }

    /// The length of the window in seconds; None without a window.
    #[getter]
    fn window(&self, py: Python<'_>) -> Option<u64> {
        Some(self.windowing(py)?.seconds())
    }

    /// The number of slices of the window; None without a window.
    #[getter]
    fn slices(&self, py: Python<'_>) -> Option<u32> {
        Some(self.windowing(py)?.slices())
    }

    /// Whether the window has the manual clock, which `advance` moves.
    #[getter]
    fn manual(&self, py: Python<'_>) -> bool {
        self.windowing(py).is_some_and(|window| window.clock_source() == ClockSource::Manual)
    }

    /// The most bytes of memory that the counter may take; None for no limit.
    #[getter]
    fn max_bytes(&self) -> Option<u64> {
        self.limit.0
    }

    /// The bytes of memory that the counter takes.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> u64 {
        self.counter.read(py, Count::size_bytes)
    }

    /// The counter as bytes, in the file format of the command-line tool.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        stored::to_bytes(py, &self.counter)
    }

    /// Loads a counter from bytes that `to_bytes`, the command-line tool or a server's DUMP returned.
    #[classmethod]
    #[pyo3(signature = (data, max_bytes=None))]
    fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>, max_bytes: Option<Whole>) -> PyResult<Self> {
        let limit = Limit::new(max_bytes);
        stored::from_bytes(data, limit).map(|counter| Counter::with_limit(counter, limit))
    }

    /// The union of many counters, given as bytes in a list, an iterable or a column. It is the first counter after its
    /// `merge` with the others. Errors name a counter by its number, from 0 on.
    #[classmethod]
    #[pyo3(signature = (counters, *, nulls=Nulls::Error, max_bytes=None, now=None))]
    #[pyo3(text_signature = "(counters, *, nulls='error', max_bytes=None, now=None)")]
    fn merge_all(
        _class: &Bound<'_, PyType>,
        counters: &Bound<'_, PyAny>,
        nulls: Nulls,
        max_bytes: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Self> {
        let limit = Limit::new(max_bytes);
        merge_all(counters, nulls, limit, now).map(|union| Counter::with_limit(union, limit))
    }

    /// Writes the counter to a file. The file gets its name only when it is complete.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        stored::save(py, &self.counter, &path)
    }

    /// Loads a counter from a file that `save` or the command-line tool wrote.
    #[classmethod]
    #[pyo3(signature = (path, max_bytes=None))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf, max_bytes: Option<Whole>) -> PyResult<Self> {
        let limit = Limit::new(max_bytes);
        stored::load(class.py(), &path, limit).map(|counter| Counter::with_limit(counter, limit))
    }

    /// Downloads the counter at a key of a server. `client` is a client of redis-py or valkey-py. With an asyncio
    /// client, the result has to be awaited.
    #[classmethod]
    #[pyo3(signature = (client, key, *, max_bytes=None))]
    fn download<'py>(
        _class: &Bound<'py, PyType>,
        client: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        max_bytes: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        transfer::download("download_counter", client, key, max_bytes)
    }

    /// Stores the counter at a key of a server, for `ttl` seconds if that is given. An existing key is kept unless
    /// `replace` is True. `client` is a client of redis-py or valkey-py. With an asyncio client, the result has to be
    /// awaited.
    #[pyo3(signature = (client, key, *, ttl=None, replace=false))]
    fn upload<'py>(
        &self,
        client: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        ttl: Option<&Bound<'py, PyAny>>,
        replace: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = self.cloned(client.py())?.into_bound_py_any(client.py())?;
        transfer::upload(copy, client, key, ttl, replace)
    }

    /// The prefix of the commands that load the chunks of this counter.
    fn _prefix(&self) -> &'static str {
        COUNTERS
    }

    /// The reply of SCANDUMP for `iterator`.
    fn _scandump<'py>(&self, py: Python<'py>, iterator: Whole) -> PyResult<Bound<'py, PyTuple>> {
        chunks::scan(py, &self.counter, iterator.0)
    }
}

/// The members to read: those that are live at the time `now`, or those added in the last `since` seconds.
pub(crate) fn view_of(counter: &Count, since: Option<Seconds>, now: Option<Whole>) -> Result<View<'_>, Error> {
    let time = time(counter, now);
    since.map_or_else(|| Ok(counter.at(time)), |Seconds(seconds)| counter.since(seconds, time))
}
