//! The trait [`Family`]: how filters and counters differ in this module.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;
use rollcall_core::error::Error;
use rollcall_core::live::{Live, Value};
use rollcall_core::size_limit::SizeLimit;
use rollcall_core::unstable::persist::rdb::{self, Sink, Source};
use rollcall_core::unstable::persist::{ChunkFormat, Partial, redisbloom};
use rollcall_core::unstable::wire;
use rollcall_core::window::Time;

use super::names::Prefix;
use super::totals::{ValueKind, ValueShare};
use crate::args::{self, Allowed, Items, Options};
use crate::command_error::CommandError;
use crate::limits::ServerLimit;
use crate::reply;
use crate::server::ffi::{Args, Ctx, OwnedString};
use crate::server::metrics::Metric;

/// A value in a key: complete, or partially loaded from dump chunks.
pub enum State<T: Value> {
    Ready(T),
    /// Boxed, so that the enum is no larger than a complete value.
    Partial(Box<T::Partial>),
}

impl<T: Family> State<T> {
    /// The complete value if all its bytes have arrived, otherwise the partially loaded value.
    pub fn from_partial(partial: T::Partial) -> Result<Self, Error> {
        Ok(if partial.is_complete() { State::Ready(partial.finish()?) } else { State::Partial(Box::new(partial)) })
    }

    /// What the value contributes to the totals for `INFO`. A partially loaded value contributes the bytes received so
    /// far.
    pub fn share(&self) -> ValueShare {
        match self {
            State::Ready(value) => value.share(),
            State::Partial(partial) => {
                let kind = if becomes_classic(&**partial) { ValueKind::PartialClassic } else { T::PARTIAL };
                ValueShare::new(kind, partial.received_bytes())
            }
        }
    }

    /// The prefix (BF, RF or LC) of the commands that replicate this value.
    pub fn prefix(&self) -> Prefix {
        match self {
            State::Ready(value) => value.prefix(),
            // The commands for a partially loaded RedisBloom-compatible filter are RF.* if another module owns BF.*.
            State::Partial(partial) if becomes_classic(&**partial) => T::prefix_of_events(),
            State::Partial(_) => T::OWN_PREFIX,
        }
    }
}

/// Whether a partially loaded value will be a classic (RedisBloom-compatible) filter.
pub fn becomes_classic(partial: &impl Partial) -> bool {
    partial.chunk_format() == ChunkFormat::Plain
}

/// What a command added.
pub struct Added {
    pub items: AddedItems,
    /// The number of these items that were new.
    pub new: usize,
    /// The error that is the whole reply; `None` if a reply was already written.
    pub error: Option<CommandError>,
}

/// The items that a command added, which replicas add too.
pub enum AddedItems {
    /// The first items of the command, up to the item that failed, known ones included.
    First(usize),
    /// The items that `ADMIT` admitted or, if it `renews`, added again. There is an answer for each item.
    Admitted { answers: Vec<u8>, renews: bool },
}

impl AddedItems {
    /// Whether the item at this index was added.
    pub fn has(&self, index: usize) -> bool {
        match self {
            &AddedItems::First(len) => index < len,
            AddedItems::Admitted { answers, renews } => {
                answers[index] == reply::YES || *renews && answers[index] == reply::NO
            }
        }
    }
}

/// The parameters of the last created value, formatted as options of `INSERT`. Most values are created with the same
/// parameters, so this cache saves formatting.
pub type LastWords<C> = Mutex<Option<(C, Vec<OwnedString>)>>;

/// Filters or counters: all that differs between them in this module.
pub trait Family: Value + FromIterator<&'static [u8]> {
    /// The parameters with which a command creates a value.
    type Creation: PartialEq + Copy + 'static;

    /// The prefix of the commands for values in this module's own layouts: RF or LC.
    const OWN_PREFIX: Prefix;

    /// The kind under which `INFO` counts a partially loaded value, unless it will be a RedisBloom-compatible filter.
    const PARTIAL: ValueKind;

    /// Counts how often windows of these values moved forward.
    const ADVANCES: &'static Metric;

    /// Counts the items that `ADMIT` rejected.
    const ITEMS_REJECTED: &'static Metric;

    /// The data type of all values except complete classic (RedisBloom-compatible) filters.
    const OWN_TYPE: &'static DataType;

    /// The options of `INSERT`.
    const INSERT_OPTIONS: Allowed<'static>;

    /// The last result of [`Self::words`].
    const LAST_WORDS: &'static LastWords<Self::Creation>;

    /// Whether `handle` is a data type of this family.
    #[inline]
    fn has_type(handle: *mut raw::RedisModuleType) -> bool {
        handle == Self::OWN_TYPE.handle()
    }

    /// The server's data type of a value in this state.
    fn data_type(_state: &State<Self>) -> &'static DataType {
        Self::OWN_TYPE
    }

    /// Writes a complete value to an RDB file or a `DUMP` payload.
    fn save(&self, sink: &mut impl Sink) {
        rdb::save(self, sink);
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

    fn try_clone(&self) -> Result<Self, Error>;

    /// The parameters from `options`, with the defaults for missing options. For a filter, the name of the command
    /// decides the default layout: it is the first of the arguments `command`.
    ///
    /// # Errors
    /// An option is out of range, or contradicts another option.
    fn creation(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self::Creation, CommandError>;

    /// Builds an empty value with these parameters.
    ///
    /// # Errors
    /// A parameter is out of range, or the value is larger than `limit` allows.
    fn build(creation: &Self::Creation, limit: &ServerLimit) -> Result<Self, Error>;

    /// All parameters as options of `INSERT`, with spaces between the words. Those of filters begin with `CAPACITY` and
    /// `ERROR`.
    fn words(creation: &Self::Creation) -> String;

    /// Whether a replica would create a value with these parameters if it ran the client's command unchanged. For
    /// missing options, a replica uses the library's defaults, which no later version may change.
    fn is_implied(creation: &Self::Creation) -> bool;

    /// Parses the options of `INSERT` or `ADMIT`. Returns the parameters for a new value too.
    fn given(ctx: Ctx, args: Args<'_>, allowed: Allowed<'_>) -> Result<(Self::Creation, Options), CommandError> {
        let options = args::options(ctx, args, 2, allowed)?;
        Ok((Self::creation(ctx, args, &options)?, options))
    }

    /// Parses `INSERT`, as [`Self::given`] does.
    fn insertion(ctx: Ctx, args: Args<'_>) -> Result<(Self::Creation, Options), CommandError> {
        Self::given(ctx, args, Self::INSERT_OPTIONS)
    }

    /// Adds all `items` and replies, or returns an error without a reply. `is_new_key` is true if the command creates
    /// the key.
    fn add_all(ctx: Ctx, live: &mut Live<Self>, items: Items, limit: &ServerLimit, is_new_key: bool) -> Added;

    /// Checks the option `LIMIT` of an `ADMIT` on this value, which is new if the command creates the key.
    fn check_limit(&self, _limit: u64, _is_new_key: bool) -> Result<(), CommandError> {
        Ok(())
    }

    /// Looks up items at `time`, or with `since` among those of the last seconds. Calls `found` for each with whether
    /// it is one.
    ///
    /// # Errors
    /// Those of a counter that estimates, and of a span that the window does not have, before the first call.
    fn look_up(&self, time: Time, since: Option<u64>, items: Items, found: impl FnMut(bool)) -> Result<(), Error>;

    /// The union of `first` and `others`, with the parameters of `first`.
    fn union(first: &Self, others: &[&Self], limit: &ServerLimit) -> Result<Self, Error>;

    /// An empty value with the same parameters; `None` if the value is empty already.
    fn emptied(&self) -> Result<Option<Self>, Error>;

    /// Frees what expired when the window moved forward.
    fn dispose(expired: Self::Expired);
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
    let state = State::from_partial(rdb::load(source, limit)?)?;
    match std::ptr::eq(T::data_type(&state), T::OWN_TYPE) {
        true => Ok(state),
        false => Err(Error::corrupt("layout", "lines, or a partially loaded filter", "a complete classic filter")),
    }
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
