//! The trait [`Family`]: how filters and counters differ for the code that connects them to the server.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;
use rollcall_core::bloom::{BitLayout, BloomFilter};
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::size_limit::SizeLimit;
use rollcall_core::unstable::heap::OnHeap;
use rollcall_core::unstable::persist::rdb::{self, Sink, Source};
use rollcall_core::unstable::persist::{Partial, PartialFilter, Stored, redisbloom};
use rollcall_core::unstable::wire;

use super::names::Prefix;
use super::totals::{ValueKind, ValueShare};
use crate::server::metrics::{COUNTER_ADVANCES, FILTER_ADVANCES, Metric};
use crate::server::pages::make_resident;

/// A value in a key: complete, or partially loaded from dump chunks.
pub enum State<T: Stored> {
    Ready(T),
    /// Boxed, so that the enum is no larger than a complete value.
    Partial(Box<T::Partial>),
}

impl<T: Family> State<T> {
    /// The complete value if all its bytes have arrived, otherwise the partially loaded value.
    pub fn from_partial(partial: T::Partial) -> Result<Self, Error> {
        Ok(if is_complete(&partial) { State::Ready(partial.finish()?) } else { State::Partial(Box::new(partial)) })
    }

    /// What the value contributes to the totals for `INFO`. A partially loaded value contributes the bytes received so
    /// far.
    pub fn share(&self) -> ValueShare {
        match self {
            State::Ready(value) => value.share(),
            State::Partial(partial) => {
                let kind = if T::becomes_classic(partial) { ValueKind::PartialClassic } else { T::PARTIAL };
                ValueShare::new(kind, partial.received_bytes())
            }
        }
    }

    /// The prefix (BF, RF or LC) of the commands that replicate this value.
    pub fn prefix(&self) -> Prefix {
        match self {
            State::Ready(value) => value.prefix(),
            // The commands for a partially loaded RedisBloom-compatible filter are RF.* if another module owns BF.*.
            State::Partial(partial) if T::becomes_classic(partial) => T::prefix_of_events(),
            State::Partial(_) => T::OWN_PREFIX,
        }
    }
}

/// Whether all bytes have arrived.
pub fn is_complete(partial: &impl Partial) -> bool {
    partial.received_bytes() == partial.total_bytes()
}

/// Filters or counters, for the code that connects them to the server.
pub trait Family: Stored + OnHeap + FromIterator<&'static [u8]> {
    /// The prefix of the commands for values in this module's own layouts: RF or LC.
    const OWN_PREFIX: Prefix;

    /// The kind under which `INFO` counts a partially loaded value, unless it will be a RedisBloom-compatible filter.
    const PARTIAL: ValueKind;

    /// Counts how often windows of these values moved forward.
    const ADVANCES: &'static Metric;

    /// The data type of all values except complete classic (RedisBloom-compatible) filters.
    const OWN_TYPE: &'static DataType;

    /// Whether `handle` is a data type of this family.
    #[inline]
    fn has_type(handle: *mut raw::RedisModuleType) -> bool {
        handle == Self::OWN_TYPE.handle()
    }

    /// The server's data type of a value in this state.
    fn data_type(_state: &State<Self>) -> &'static DataType {
        Self::OWN_TYPE
    }

    /// Writes a value to an RDB file or a `DUMP` payload.
    fn save(state: &State<Self>, sink: &mut impl Sink) {
        match state {
            State::Ready(value) => rdb::save(value, sink),
            State::Partial(partial) => rdb::save_partial(&**partial, sink),
        }
    }

    /// The prefix (BF, RF or LC) of the commands that replicate this value.
    fn prefix(&self) -> Prefix {
        Self::OWN_PREFIX
    }

    /// The prefix of the names of keyspace events about these values.
    fn prefix_of_events() -> Prefix {
        Self::OWN_PREFIX
    }

    /// What the value contributes to the totals for `INFO`.
    fn share(&self) -> ValueShare;

    /// Whether `additions` items can be added without a change of the value's size and kind. Always false for counters,
    /// because every new member may change the size.
    #[inline]
    fn takes_in_place(&self, _additions: usize) -> bool {
        false
    }

    /// Whether a partially loaded value will be a classic (RedisBloom-compatible) filter.
    fn becomes_classic(_loading: &Self::Partial) -> bool {
        false
    }

    fn try_clone(&self) -> Result<Self, Error>;
}

/// Changes a value in place, and updates the totals for `INFO`.
pub fn change<T: Family, R>(value: &mut T, change: impl FnOnce(&mut T) -> R) -> R {
    let before = value.share();
    let result = change(value);
    before.becomes(&value.share());
    result
}

/// A data type that the module registers with the server.
pub struct DataType {
    /// The name of nine characters, which RDB files store with every value.
    pub name: &'static str,
    /// The version of the encoding in RDB files.
    pub encoding: u32,
    handle: AtomicPtr<raw::RedisModuleType>,
}

impl DataType {
    pub const fn new(name: &'static str, encoding: u32) -> Self {
        DataType { name, encoding, handle: AtomicPtr::new(null_mut()) }
    }

    /// The server's handle; null if the type is not registered.
    #[inline]
    pub fn handle(&self) -> *mut raw::RedisModuleType {
        self.handle.load(Ordering::Relaxed)
    }

    /// Sets the server's handle, to null when the server has freed the data type.
    pub fn set_handle(&self, handle: *mut raw::RedisModuleType) {
        self.handle.store(handle, Ordering::Relaxed);
    }
}

/// Reads a value of [`Family::OWN_TYPE`] from an RDB file or a `DUMP` payload. The kernel provides all pages of a large
/// buffer before it is filled.
///
/// # Errors
/// [`Error::Corrupt`] with the damaged field, [`Error::TooLarge`], or [`Error::OutOfMemory`].
pub fn load<T: Family>(source: &mut impl Source, encoding: u32, limit: &impl SizeLimit) -> Result<State<T>, Error> {
    if encoding != rdb::ENCODING {
        return Err(Error::corrupt("encoding version", rdb::ENCODING, encoding));
    }
    let state = State::from_partial(rdb::load(source, limit, &mut make_resident)?)?;
    match std::ptr::eq(T::data_type(&state), T::OWN_TYPE) {
        true => Ok(state),
        false => Err(Error::corrupt("layout", "lines, or a partially loaded filter", "a complete classic filter")),
    }
}

/// Like [`load`], for a complete filter that is stored as RedisBloom stores it.
///
/// # Errors
/// The same as for [`load`].
pub fn load_classic(
    source: &mut impl Source,
    encoding: u32,
    limit: &impl SizeLimit,
) -> Result<State<BloomFilter>, Error> {
    redisbloom::load_rdb(source, encoding, limit, &mut make_resident).map(State::Ready)
}

/// The data type of filters in Rollcall's own layout (`lines`), and of partially loaded filters of any layout.
pub static LINES: DataType = DataType::new(wire::TYPE_OF_LINES, rdb::ENCODING);

/// The data type of complete RedisBloom-compatible filters. With RedisBloom's type name and encoding, each module can
/// load the other's values.
pub static CLASSIC: DataType = DataType::new(wire::TYPE_OF_CLASSIC, redisbloom::RDB_ENCODING_NEWEST);

/// The data type of counters, complete or partially loaded.
pub static COUNTERS: DataType = DataType::new(wire::TYPE_OF_COUNTERS, rdb::ENCODING);

/// Whether this module has registered BF.* and the data type `MBbloom--` of RedisBloom-compatible filters.
pub fn serves_classic() -> bool {
    !CLASSIC.handle().is_null()
}

/// Sets all handles to null, after a failed load.
pub fn reset_handles() {
    for data_type in [&LINES, &CLASSIC, &COUNTERS] {
        data_type.set_handle(null_mut());
    }
}

impl Family for BloomFilter {
    const OWN_PREFIX: Prefix = Prefix::Rf;
    const PARTIAL: ValueKind = ValueKind::PartialFilter;
    const ADVANCES: &'static Metric = &FILTER_ADVANCES;
    const OWN_TYPE: &'static DataType = &LINES;

    #[inline]
    fn has_type(handle: *mut raw::RedisModuleType) -> bool {
        handle == LINES.handle() || handle == CLASSIC.handle()
    }

    fn data_type(state: &State<Self>) -> &'static DataType {
        match state {
            State::Ready(filter) if filter.layout() == BitLayout::Classic => &CLASSIC,
            State::Ready(_) | State::Partial(_) => &LINES,
        }
    }

    fn save(state: &State<Self>, sink: &mut impl Sink) {
        match state {
            State::Ready(filter) => match filter.layout() {
                BitLayout::Lines => rdb::save(filter, sink),
                BitLayout::Classic => redisbloom::save_rdb(filter, sink),
            },
            State::Partial(partial) => rdb::save_partial(&**partial, sink),
        }
    }

    fn prefix(&self) -> Prefix {
        Prefix::from_layout(self.layout())
    }

    fn prefix_of_events() -> Prefix {
        if serves_classic() { Prefix::Bf } else { Prefix::Rf }
    }

    fn share(&self) -> ValueShare {
        let kind = match (self.windowing(), self.layout()) {
            (Some(_), _) => ValueKind::WindowedFilter,
            (None, BitLayout::Lines) => ValueKind::Lines,
            (None, BitLayout::Classic) => ValueKind::Classic,
        };
        ValueShare {
            kind,
            bytes: OnHeap::num_bytes(self),
            items: self.num_items(),
            capacity: self.capacity(),
            sub_filters: self.sub_filters().len() as u64,
        }
    }

    #[inline(always)]
    fn takes_in_place(&self, additions: usize) -> bool {
        self.has_room_for(additions as u64)
    }

    fn becomes_classic(partial: &PartialFilter) -> bool {
        partial.is_classic()
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }
}

impl Family for Counter {
    const OWN_PREFIX: Prefix = Prefix::Lc;
    const PARTIAL: ValueKind = ValueKind::PartialCounter;
    const ADVANCES: &'static Metric = &COUNTER_ADVANCES;
    const OWN_TYPE: &'static DataType = &COUNTERS;

    fn share(&self) -> ValueShare {
        let kind = match (self.window(), self.is_exact()) {
            (Some(_), _) => ValueKind::WindowedCounter,
            (None, true) => ValueKind::Exact,
            (None, false) => ValueKind::Estimate,
        };
        ValueShare::new(kind, self.num_bytes())
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }
}
