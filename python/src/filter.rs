//! The class `rollcall_redis.BloomFilter`.

use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use rollcall_core::admission::Terms;
use rollcall_core::bloom::{BitLayout, BloomFilter as Filter, Params, Present, Windowing};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::ClockSource;

use crate::admission::admit;
use crate::arguments::{Limit, Nulls, Seconds, Whole, default_slices, live, time, unix_seconds, with_slices};
use crate::errors::{PARAMETER, raised};
use crate::grouping::{Grouped, update_groups};
use crate::guarded::Guarded;
use crate::items::{Items, LONG, answers, with_item};
use crate::stored::Pickled;
use crate::transfer::{CLASSIC, LINES};
use crate::{chunks, stored, transfer};

/// A Bloom filter: a set that answers whether an item may be in it, with one or two bytes per item.
///
/// Every item that was added is found. At most the share `error_rate` of other items is found too. The filter grows
/// after `capacity` items, unless `expansion` is 0. An item is str (its UTF-8), bytes, bytearray or memoryview.
///
/// With `window`, items expire that many seconds after they were added.
#[pyclass(frozen, module = "rollcall_redis")]
pub(crate) struct BloomFilter {
    filter: Guarded<Filter>,
    limit: Limit,
}

impl BloomFilter {
    pub(crate) fn with_limit(filter: Filter, limit: Limit) -> Self {
        BloomFilter { filter: Guarded::new(filter), limit }
    }

    /// Calls `ask` with the filter, to look up `items` items. For a small number of items, Python's lock is kept.
    fn ask<R: Send>(&self, py: Python<'_>, items: usize, ask: impl FnOnce(&Filter) -> R + Send) -> R {
        if items < LONG { self.filter.read(py, ask) } else { self.filter.read_long(py, ask) }
    }

    /// Adds items, and calls `added` for each with whether it was new. For a small number of items, Python's lock is
    /// kept.
    fn add_block(
        &self,
        py: Python<'_>,
        items: &[&[u8]],
        now: Option<Whole>,
        added: impl FnMut(bool) + Send,
    ) -> PyResult<()> {
        let limit = self.limit;
        let add = |filter: &mut Filter| live(filter, now).add_all(items.iter().copied(), &limit, added);
        let result = if items.len() < LONG { self.filter.write(py, add) } else { self.filter.write_long(py, add) };
        result.map_err(|error| raised(py, error))
    }

    /// Adds the contents of `others` to this filter. Returns whether the filter changed.
    fn unite(&self, py: Python<'_>, others: &[&BloomFilter], now: Option<Whole>) -> PyResult<bool> {
        let others: Vec<&Guarded<Filter>> = others.iter().map(|other| &other.filter).collect();
        let limit = self.limit;
        let united = self.filter.write_with(py, &others, |filter, others| live(filter, now).merge(others, &limit));
        united.map_err(|error| raised(py, error))
    }

    fn cloned(&self, py: Python<'_>) -> PyResult<Self> {
        let clone = self.filter.read_long(py, Filter::try_clone).map_err(|error| raised(py, error))?;
        Ok(BloomFilter::with_limit(clone, self.limit))
    }

    fn windowing(&self, py: Python<'_>) -> Option<Windowing> {
        self.filter.read(py, |filter| filter.windowing().copied())
    }

    fn params(&self, py: Python<'_>) -> Params {
        self.filter.read(py, |filter| *filter.params())
    }
}

/// The window that these arguments of the constructor describe.
fn windowing_of(
    py: Python<'_>,
    window: Option<Seconds>,
    slices: Option<Whole>,
    refresh: bool,
    manual: bool,
) -> PyResult<Option<Windowing>> {
    let Some(Seconds(seconds)) = window else {
        let given = [("slices", slices.is_some()), ("refresh", refresh), ("manual", manual)];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(PARAMETER.error(py, format_args!("{name} needs window"))),
            None => Ok(None),
        };
    };
    let default = default_slices(Windowing::default_slices(refresh), seconds);
    let clock_source = if manual { ClockSource::Manual } else { ClockSource::System };
    let windowing = Windowing::new(seconds, slices.map_or(default, Whole::narrow), clock_source, refresh);
    windowing.map(Some).map_err(|error| raised(py, with_slices(error, slices)))
}

impl Grouped for BloomFilter {
    fn add_items(&self, items: &[&[u8]], now: Option<Whole>) -> Result<Option<u64>, Error> {
        let add = |filter: &mut Filter| live(filter, now).add_all(items.iter().copied(), &self.limit, |_| {});
        self.filter.write_detached(add).map(|()| None)
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, error_rate=0.01, *, expansion=None, seed=Whole(0), layout="lines", window=None,
        slices=None, refresh=false, manual=false, max_bytes=None, now=None))]
    #[pyo3(text_signature = "(capacity, error_rate=0.01, *, expansion=None, seed=0, layout='lines', window=None, \
        slices=None, refresh=False, manual=False, max_bytes=None, now=None)")]
    #[expect(clippy::too_many_arguments, reason = "as many as BF.RESERVE has, all but two by name")]
    fn new(
        py: Python<'_>,
        capacity: Whole,
        error_rate: f64,
        expansion: Option<Whole>,
        seed: Whole,
        layout: &str,
        window: Option<Seconds>,
        slices: Option<Whole>,
        refresh: bool,
        manual: bool,
        max_bytes: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Self> {
        let windowing = windowing_of(py, window, slices, refresh, manual)?;
        let expansion = expansion.map_or(2, Whole::narrow);
        let params = Params { error_rate, capacity: capacity.0, expansion, seed: seed.0 };
        let layout = match layout {
            "lines" => BitLayout::Lines,
            "classic" => BitLayout::Classic,
            other => {
                return Err(PARAMETER.error(py, format_args!("layout must be 'lines' or 'classic', got '{other}'")));
            }
        };
        let limit = Limit::new(max_bytes);
        let made = py.detach(|| match windowing {
            None => Filter::new(layout, params, &limit),
            Some(_) if layout == BitLayout::Classic => Err(Error::Incompatible {
                parameter: rollcall_core::error::Parameter::Layout,
                ours: "lines, as filters with a window have".to_owned(),
                theirs: layout.to_string(),
            }),
            Some(windowing) => {
                Filter::windowed(params, windowing, windowing.window.first_slice(unix_seconds(now)), &limit)
            }
        });
        match made {
            Ok(filter) => Ok(BloomFilter::with_limit(filter, limit)),
            Err(Error::Incompatible { .. }) => Err(PARAMETER.error(py, "window needs layout 'lines'")),
            Err(error) => Err(raised(py, error)),
        }
    }

    /// Adds an item. Returns True if it was new, and False if the filter reported it before.
    #[pyo3(signature = (item, now=None))]
    fn add(&self, item: &Bound<'_, PyAny>, now: Option<Whole>) -> PyResult<bool> {
        let py = item.py();
        let limit = self.limit;
        let added = with_item(item, |item| self.filter.write(py, |filter| live(filter, now).add(item, &limit)))?;
        added.map_err(|error| raised(py, error))
    }

    /// Adds all items of an iterable, an array or a column. With `nulls="skip"`, missing values of a column are left
    /// out; otherwise they raise `TypeError`.
    #[pyo3(signature = (items, *, width=None, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "($self, items, *, width=None, nulls='error', now=None)")]
    fn update<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<()> {
        let py = items.py();
        match Items::new(items, width, nulls)? {
            Items::Column(column) => column.blocks_detached(py, |items| self.add_items(items, now).map(drop)),
            items => items.blocks(py, |block| self.add_block(py, block, now, |_| {})),
        }
    }

    /// For each row of two columns, adds the item to `filters[group]`, in a mapping such as `defaultdict(BloomFilter)`.
    /// A group is an int, str or bytes, by the type of its column, or None if it is missing. Rows are paired by
    /// position, also those of pandas Series with different indexes.
    #[staticmethod]
    #[pyo3(signature = (filters, groups, items, *, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "(filters, groups, items, *, nulls='error', now=None)")]
    fn update_groups(
        filters: &Bound<'_, PyAny>,
        groups: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<()> {
        update_groups::<Self>(filters, groups, items, nulls, now)
    }

    /// Adds many items, and returns for each whether it was new: in a list, for an array of NumPy or a column in a
    /// NumPy array, or for another buffer in a memoryview of format '?'.
    ///
    /// The items of an array are the elements of a one-dimensional array of bytes, or the rows of a two-dimensional
    /// one. With `width`, each item is the next `width` bytes of an array of any shape. Arrays of floats are rejected.
    ///
    /// A column (of Arrow's C data interface) has texts, bytes, whole numbers, which become their decimal digits, or
    /// UUIDs. Missing values raise `TypeError`; with `nulls="skip"` they are left out, and their answer is False.
    #[pyo3(signature = (items, *, width=None, nulls=Nulls::Error, now=None))]
    #[pyo3(text_signature = "($self, items, *, width=None, nulls='error', now=None)")]
    fn add_many<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = items.py();
        answers(items, width, nulls, |block, reported| {
            self.add_block(py, block, now, |is_new| reported.push(is_new.into()))
        })
    }

    /// Whether the item may have been added, with `since` in the last `since` seconds; False is certain. Without
    /// `refresh`, an item counts as added when it was new.
    #[pyo3(signature = (item, *, since=None, now=None))]
    fn contains(&self, item: &Bound<'_, PyAny>, since: Option<Seconds>, now: Option<Whole>) -> PyResult<bool> {
        let py = item.py();
        let found =
            with_item(item, |item| self.filter.read(py, |filter| Ok(view_of(filter, since, now)?.may_contain(item))))?;
        found.map_err(|error: Error| raised(py, error))
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(item, None, None)
    }

    /// Looks up many items, given as in `add_many`. Returns a list of bool, a NumPy array or a memoryview, as
    /// `add_many` does.
    #[pyo3(signature = (items, *, width=None, nulls=Nulls::Error, since=None, now=None))]
    #[pyo3(text_signature = "($self, items, *, width=None, nulls='error', since=None, now=None)")]
    fn contains_many<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        width: Option<Whole>,
        nulls: Nulls,
        since: Option<Seconds>,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = items.py();
        answers(items, width, nulls, |block, reported| {
            let asked = self.ask(py, block.len(), |filter| {
                let found = |found: bool| reported.push(found.into());
                view_of(filter, since, now)?.may_contain_all(block.iter().copied(), found);
                Ok(())
            });
            asked.map_err(|error: Error| raised(py, error))
        })
    }

    /// Adds new items as long as the filter has fewer than `limit`, in one atomic step. With `all`, adds all of them or
    /// none.
    ///
    /// With `dryrun`, nothing is changed. With `withroom`, returns `Admissions` instead of a list.
    #[pyo3(signature = (items, limit, *, all=false, dryrun=false, withroom=false, width=None, now=None))]
    #[expect(clippy::too_many_arguments, reason = "all but two by name")]
    fn admit<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        limit: Whole,
        all: bool,
        dryrun: bool,
        withroom: bool,
        width: Option<Whole>,
        now: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (items, terms) = (Items::new(items, width, Nulls::Never)?, Terms { limit: limit.0, all, dry_run: dryrun });
        admit(&self.filter, items, terms, withroom, self.limit, now, py)
    }

    /// Makes this filter the union of itself and others. Returns True if it changed.
    #[pyo3(signature = (*others, now=None))]
    fn merge(&self, py: Python<'_>, others: Vec<Bound<'_, BloomFilter>>, now: Option<Whole>) -> PyResult<bool> {
        let others: Vec<&BloomFilter> = others.iter().map(Bound::get).collect();
        self.unite(py, &others, now)
    }

    fn __or__(&self, other: &Bound<'_, BloomFilter>) -> PyResult<Self> {
        let union = self.cloned(other.py())?;
        union.unite(other.py(), &[other.get()], None)?;
        Ok(union)
    }

    fn __ior__(&self, other: &Bound<'_, BloomFilter>) -> PyResult<()> {
        self.unite(other.py(), &[other.get()], None).map(drop)
    }

    /// The number of items that were new when they were added; with a window, only of live items.
    fn __len__(&self, py: Python<'_>) -> usize {
        usize::try_from(self.num_items(py, None)).unwrap_or(usize::MAX)
    }

    /// The number of items at the time `now`, like `len`.
    #[pyo3(signature = (now=None))]
    fn num_items(&self, py: Python<'_>, now: Option<Whole>) -> u64 {
        self.filter.read(py, |filter| filter.at(time(filter, now)).num_items())
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.num_items(py, None) > 0
    }

    /// Compares parameters and bits.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<BloomFilter>() else { return Ok(py.NotImplemented()) };
        let equal = Guarded::read_all(py, &[&self.filter, &other.get().filter], |both| both[0] == both[1]);
        equal.into_py_any(py)
    }

    #[classattr]
    fn __hash__() -> Option<isize> {
        None
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let params = self.params(py);
        let (items, bytes) = (self.num_items(py, None), self.size_bytes(py));
        let window = match self.windowing(py) {
            None => String::new(),
            Some(windowing) => format!(", {windowing}"),
        };
        format!(
            "<rollcall_redis.BloomFilter of {} at {:?}: {items} items, {bytes} bytes, {}{window}>",
            params.capacity,
            params.error_rate,
            self.layout(py),
        )
    }

    /// Empties the filter.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let cleared = self.filter.write_long(py, |filter| filter.new_like(&Unlimited).map(|empty| *filter = empty));
        cleared.map_err(|error| raised(py, error))
    }

    /// A copy of the filter.
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
        // Expired data is freed under the lock of the filter alone.
        self.filter.write_long(py, |filter| drop(filter.advance(slice.0)));
    }

    /// The newest slice that the filter has reached; None without a window.
    #[getter]
    fn newest_slice(&self, py: Python<'_>) -> Option<u64> {
        self.filter.read(py, Filter::newest_slice)
    }

    /// The number of items that the filter is sized for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.params(py).capacity
    }

    /// The largest share of absent items that the filter may report as present.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> f64 {
        self.params(py).error_rate
    }

    /// The size of each further sub-filter as a multiple of the one before; 0 if the filter does not grow.
    #[getter]
    fn expansion(&self, py: Python<'_>) -> u32 {
        self.params(py).expansion
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        self.params(py).seed
    }

    /// The layout of the bits: 'lines' or 'classic'.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        self.filter.read(py, |filter| filter.layout().name())
    }

    /// The length of the window in seconds; None without a window.
    #[getter]
    fn window(&self, py: Python<'_>) -> Option<u64> {
        Some(self.windowing(py)?.window.seconds())
    }

    /// The number of slices; None without a window.
    #[getter]
    fn slices(&self, py: Python<'_>) -> Option<u32> {
        Some(self.windowing(py)?.window.slices())
    }

    /// Whether adding a known item again renews it.
    #[getter]
    fn refresh(&self, py: Python<'_>) -> bool {
        self.windowing(py).is_some_and(|windowing| windowing.refresh)
    }

    /// Whether the window has the manual clock, which `advance` moves.
    #[getter]
    fn manual(&self, py: Python<'_>) -> bool {
        self.windowing(py).is_some_and(|windowing| windowing.window.clock_source() == ClockSource::Manual)
    }

    /// The most bytes of memory that the filter may take; None for no limit.
    #[getter]
    fn max_bytes(&self) -> Option<u64> {
        self.limit.0
    }

    /// The bytes of memory that the filter takes.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> u64 {
        self.filter.read(py, Filter::size_bytes)
    }

    /// The share of bits that are set.
    #[getter]
    fn fill_ratio(&self, py: Python<'_>) -> f64 {
        self.filter.read(py, |filter| filter.at(time(filter, None)).fill_ratio())
    }

    /// The present share of absent items that the filter reports as present, estimated from its set bits.
    #[getter]
    fn false_positive_rate(&self, py: Python<'_>) -> f64 {
        self.filter.read(py, |filter| filter.at(time(filter, None)).false_positive_rate())
    }

    /// The filter as bytes, in the file format of the command-line tool.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        stored::to_bytes(py, &self.filter)
    }

    /// Loads a filter from bytes that `to_bytes`, the command-line tool or a server's DUMP returned.
    #[classmethod]
    #[pyo3(signature = (data, max_bytes=None))]
    fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>, max_bytes: Option<Whole>) -> PyResult<Self> {
        let limit = Limit::new(max_bytes);
        stored::from_bytes(data, limit).map(|filter| BloomFilter::with_limit(filter, limit))
    }

    /// Writes the filter to a file. The file gets its name only when it is complete.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        stored::save(py, &self.filter, &path)
    }

    /// Loads a filter from a file that `save` or the command-line tool wrote.
    #[classmethod]
    #[pyo3(signature = (path, max_bytes=None))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf, max_bytes: Option<Whole>) -> PyResult<Self> {
        let limit = Limit::new(max_bytes);
        stored::load(class.py(), &path, limit).map(|filter| BloomFilter::with_limit(filter, limit))
    }

    /// Downloads the filter at a key of a server. `client` is a client of redis-py or valkey-py. With an asyncio
    /// client, the result has to be awaited.
    #[classmethod]
    #[pyo3(signature = (client, key, *, max_bytes=None))]
    fn download<'py>(
        _class: &Bound<'py, PyType>,
        client: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        max_bytes: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        transfer::download("download_filter", client, key, max_bytes)
    }

    /// Stores the filter at a key of a server, for `ttl` seconds if that is given. An existing key is kept unless
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

    /// The prefix of the commands that load the chunks of this filter.
    fn _prefix(&self, py: Python<'_>) -> &'static str {
        self.filter.read(py, |filter| match filter.layout() {
            BitLayout::Lines => LINES,
            BitLayout::Classic => CLASSIC,
        })
    }

    /// The reply of SCANDUMP for `iterator`.
    fn _scandump<'py>(&self, py: Python<'py>, iterator: Whole) -> PyResult<Bound<'py, PyTuple>> {
        chunks::scan(py, &self.filter, iterator.0)
    }
}

/// The items to look up: those that are live at the time `now`, or those added in the last `since` seconds.
fn view_of(filter: &Filter, since: Option<Seconds>, now: Option<Whole>) -> Result<Present<'_>, Error> {
    let time = time(filter, now);
    since.map_or_else(|| Ok(filter.at(time)), |Seconds(seconds)| filter.since(seconds, time))
}
