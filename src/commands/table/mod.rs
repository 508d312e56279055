//! Every command as a row: its name, its flags, its keys, and its text in `COMMAND DOCS`.

use std::ffi::{CStr, c_int};

use redis_module::raw;

use super::{bloom, counting, valkey_bloom};
use crate::refusal::Refusal;
use crate::reply::refuse;
use crate::server::ffi::{Args, RedisModuleCtx, RedisModuleString, run_command};

/// The entry point that the server calls.
pub type EntryPoint = unsafe extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

/// A command.
pub struct Command {
    /// In lower case, as the server's own and RedisBloom's: errors of arity and `INFO commandstats` print it.
    pub name: &'static CStr,
    pub entry: EntryPoint,
    /// As the server counts: the name included, negative for "at least".
    pub arity: c_int,
    pub flags: &'static CStr,
    pub keys: Keys,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    pub arguments: &'static [Argument],
}

/// Which arguments are keys, and what is done to them.
#[derive(Clone, Copy, PartialEq)]
pub enum Keys {
    /// The first argument, read.
    Read,
    /// The first argument, added to.
    Insert,
    /// The first argument, emptied.
    Clear,
    /// All arguments, read.
    ReadAll,
    /// The first is added to, the others are read.
    Merge,
}

/// An argument, for `COMMAND DOCS`.
pub struct Argument {
    pub name: &'static CStr,
    pub kind: Kind,
    /// The word before the value, or instead of one.
    pub token: Option<&'static CStr>,
    pub optional: bool,
    pub multiple: bool,
    pub choices: &'static [Argument],
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Key,
    String,
    Integer,
    Double,
    UnixTime,
    Token,
    OneOf,
}

const fn argument(name: &'static CStr, kind: Kind) -> Argument {
    Argument { name, kind, token: None, optional: false, multiple: false, choices: &[] }
}

/// `[TOKEN value]`
const fn option(token: &'static CStr, name: &'static CStr, kind: Kind) -> Argument {
    Argument { token: Some(token), optional: true, ..argument(name, kind) }
}

/// `[TOKEN]`
const fn flag(token: &'static CStr, name: &'static CStr) -> Argument {
    Argument { token: Some(token), optional: true, ..argument(name, Kind::Token) }
}

/// `name [name ...]`
const fn several(name: &'static CStr, kind: Kind) -> Argument {
    Argument { multiple: true, ..argument(name, kind) }
}

/// One word of a choice.
const fn choice(token: &'static CStr, name: &'static CStr) -> Argument {
    Argument { token: Some(token), ..argument(name, Kind::Token) }
}

/// `[choice | choice | ...]`
const fn field(choices: &'static [Argument]) -> Argument {
    Argument { optional: true, choices, ..argument(c"field", Kind::OneOf) }
}

const KEY: Argument = argument(c"key", Kind::Key);
const ITEM: Argument = argument(c"item", Kind::String);
const ITEMS: Argument = several(c"item", Kind::String);
const AFTER_ITEMS: Argument = Argument { token: Some(c"ITEMS"), ..several(c"item", Kind::String) };
const DESTINATION: Argument = argument(c"destination", Kind::Key);
const SOURCES: Argument = several(c"source", Kind::Key);
const ITERATOR: Argument = argument(c"iterator", Kind::Integer);
const DATA: Argument = argument(c"data", Kind::String);
const CAPACITY: Argument = option(c"CAPACITY", c"capacity", Kind::Integer);
const ERROR: Argument = option(c"ERROR", c"error-rate", Kind::Double);
const EXACT: Argument = option(c"EXACT", c"exact-limit", Kind::Integer);
const BYTES: Argument = option(c"BYTES", c"exact-bytes", Kind::Integer);
const PRECISION: Argument = option(c"PRECISION", c"precision", Kind::Integer);
const TAIL: Argument = option(c"TAIL", c"tail-bits", Kind::Integer);
const EXPANSION: Argument = option(c"EXPANSION", c"expansion", Kind::Integer);
const NONSCALING: Argument = flag(c"NONSCALING", c"nonscaling");
const NOCREATE: Argument = flag(c"NOCREATE", c"nocreate");
const SEED: Argument = option(c"SEED", c"seed", Kind::Integer);
const LAYOUT: Argument = Argument {
    choices: &[choice(c"lines", c"lines"), choice(c"classic", c"classic")],
    ..option(c"LAYOUT", c"layout", Kind::OneOf)
};

const EXPIRY: Argument = Argument {
    optional: true,
    choices: &[
        Argument { token: Some(c"EX"), ..argument(c"seconds", Kind::Integer) },
        Argument { token: Some(c"PX"), ..argument(c"milliseconds", Kind::Integer) },
        Argument { token: Some(c"EXAT"), ..argument(c"unix-time-seconds", Kind::UnixTime) },
        Argument { token: Some(c"PXAT"), ..argument(c"unix-time-milliseconds", Kind::UnixTime) },
    ],
    ..argument(c"expiration", Kind::OneOf)
};

const LIMIT: Argument = Argument { token: Some(c"LIMIT"), ..argument(c"limit", Kind::Integer) };
const ALL: Argument = flag(c"ALL", c"all");
const DRYRUN: Argument = flag(c"DRYRUN", c"dryrun");

/// Checks the number of arguments against `arity` and runs the handler.
macro_rules! entry {
    ($handler:path, $arity:expr) => {{
        unsafe extern "C" fn call(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
            const ARITY: c_int = $arity;
            let checked = |ctx, args: Args<'_>| {
                let len = args.len() as c_int;
                if (ARITY >= 0 && len != ARITY) || len < -ARITY { Err(Refusal::Arity) } else { $handler(ctx, args) }
            };
            // SAFETY: the server calls this with what it passes to a command.
            unsafe { run_command(ctx, argv, argc, checked, refuse) }
        }
        call
    }};
}

macro_rules! command {
    ($name:expr, $handler:path, $arity:expr, $flags:expr, $keys:expr, $complexity:expr, $summary:expr, $arguments:expr) => {
        Command {
            name: $name,
            entry: entry!($handler, $arity),
            arity: $arity,
            flags: $flags,
            keys: $keys,
            summary: $summary,
            complexity: $complexity,
            arguments: $arguments,
        }
    };
}

const WRITE: &CStr = c"write deny-oom";
const WRITE_FAST: &CStr = c"write deny-oom fast";
const READ: &CStr = c"readonly";
const READ_FAST: &CStr = c"readonly fast";

/// LC.*
pub static COUNTING: &[Command] = &[
    command!(
        c"lc.reserve",
        counting::reserve,
        -3,
        WRITE_FAST,
        Keys::Insert,
        c"O(1)",
        c"Creates an empty counter with its own capacity, error rate and exact limit",
        &[KEY, argument(c"capacity", Kind::Integer), ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, EXPIRY]
    ),
    command!(
        c"lc.add",
        counting::add,
        -3,
        WRITE_FAST,
        Keys::Insert,
        c"O(N) where N is the number of items",
        c"Counts items, each once; creates the counter if it is missing",
        &[KEY, ITEMS]
    ),
    command!(
        c"lc.insert",
        counting::insert_command,
        -4,
        WRITE_FAST,
        Keys::Insert,
        c"O(N) where N is the number of items",
        c"Counts items; if the counter is missing, creates it with these options",
        &[KEY, CAPACITY, ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, NOCREATE, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"lc.admit",
        counting::admit,
        -6,
        WRITE,
        Keys::Insert,
        c"O(N+M) where N is the number of items and M the number of members",
        c"Counts new items while there are fewer than a limit; the counter stays exact",
        &[KEY, LIMIT, ALL, DRYRUN, CAPACITY, ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, NOCREATE, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"lc.count",
        counting::count,
        -2,
        READ_FAST,
        Keys::ReadAll,
        c"O(1) for one key; O(N*M) for the union of N counters of M bits",
        c"Returns the number of distinct members of a counter, or of the union of several",
        &[several(c"key", Kind::Key)]
    ),
    command!(
        c"lc.merge",
        counting::merge,
        -3,
        WRITE,
        Keys::Merge,
        c"O(N*M) where N is the number of counters and M their bits",
        c"Makes a counter the union of itself and others",
        &[DESTINATION, SOURCES]
    ),
    command!(
        c"lc.diffcount",
        counting::diffcount,
        -3,
        READ,
        Keys::ReadAll,
        c"O(N*M) where N is the number of counters and M their bits",
        c"Returns the number of members of a counter that are in no other, with its standard error",
        &[KEY, several(c"other", Kind::Key)]
    ),
    command!(
        c"lc.intercount",
        counting::intercount,
        -3,
        READ,
        Keys::ReadAll,
        c"O(M*2^N+4^N) where N is the number of counters that hold estimates and M their bits; O(N*K) while all are exact, K the members of the smallest",
        c"Returns the number of members that all counters have, with its standard error",
        &[KEY, several(c"other", Kind::Key)]
    ),
    command!(
        c"lc.estimate",
        counting::estimate,
        -2,
        READ_FAST,
        Keys::ReadAll,
        c"O(1) for one key; O(N*M) for the union of N counters of M bits",
        c"Returns the number of distinct members as LC.COUNT does, with its standard error",
        &[several(c"key", Kind::Key)]
    ),
    command!(
        c"lc.exists",
        counting::exists,
        3,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Tells whether an item is a member of a counter, while the counter is exact",
        &[KEY, ITEM]
    ),
    command!(
        c"lc.mexists",
        counting::mexists,
        -3,
        READ_FAST,
        Keys::Read,
        c"O(N) where N is the number of items",
        c"Tells of each item whether it is a member of a counter, while the counter is exact",
        &[KEY, ITEMS]
    ),
    command!(
        c"lc.members",
        counting::members,
        2,
        READ,
        Keys::Read,
        c"O(N) where N is the number of members",
        c"Lists the members of a counter while it is exact",
        &[KEY]
    ),
    command!(
        c"lc.diff",
        counting::diff,
        -3,
        READ,
        Keys::ReadAll,
        c"O(N*M) where N is the number of counters and M the number of members of the first",
        c"Lists the members of a counter that are in no other, while all are exact",
        &[KEY, several(c"other", Kind::Key)]
    ),
    command!(
        c"lc.clear",
        counting::clear,
        2,
        c"write fast",
        Keys::Clear,
        c"O(1)",
        c"Empties a counter, which is exact again unless EXACT is 0, and keeps its parameters and time to live",
        &[KEY]
    ),
    command!(
        c"lc.info",
        counting::info,
        -2,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Returns the parameters and the state of a counter",
        &[
            KEY,
            field(&[
                choice(c"CAPACITY", c"capacity"),
                choice(c"ERROR", c"error"),
                choice(c"EXACT", c"exact"),
                choice(c"BYTES", c"bytes"),
                choice(c"MODE", c"mode"),
                choice(c"REPRESENTATION", c"representation"),
                choice(c"SIZE", c"size"),
                choice(c"COUNT", c"count"),
                choice(c"STDERR", c"stderr"),
                choice(c"BITS", c"bits"),
                choice(c"BITSSET", c"bitsset"),
                choice(c"PRECISION", c"precision"),
                choice(c"TAIL", c"tail"),
            ])
        ]
    ),
    command!(
        c"lc.scandump",
        counting::scandump,
        3,
        READ,
        Keys::Read,
        c"O(N) where N is the size of the chunk",
        c"Returns the next chunk of a counter's dump",
        &[KEY, ITERATOR]
    ),
    command!(
        c"lc.loadchunk",
        counting::loadchunk,
        4,
        WRITE,
        Keys::Insert,
        c"O(N) where N is the size of the chunk",
        c"Restores a counter chunk by chunk, as LC.SCANDUMP gave them",
        &[KEY, ITERATOR, DATA]
    ),
];

/// BF.*
pub static BLOOM: &[Command] = &[
    command!(
        c"bf.reserve",
        bloom::reserve,
        -4,
        WRITE_FAST,
        Keys::Insert,
        c"O(1)",
        c"Creates an empty Bloom filter with its own error rate and capacity",
        &[
            KEY,
            argument(c"error-rate", Kind::Double),
            argument(c"capacity", Kind::Integer),
            EXPANSION,
            NONSCALING,
            SEED,
            LAYOUT,
            EXPIRY
        ]
    ),
    command!(
        c"bf.add",
        bloom::add,
        3,
        WRITE_FAST,
        Keys::Insert,
        c"O(N) where N is the number of sub-filters",
        c"Adds an item to a Bloom filter; creates the filter if it is missing",
        &[KEY, ITEM]
    ),
    command!(
        c"bf.madd",
        bloom::madd,
        -3,
        WRITE_FAST,
        Keys::Insert,
        c"O(N*M) where N is the number of items and M the number of sub-filters",
        c"Adds items to a Bloom filter; creates the filter if it is missing",
        &[KEY, ITEMS]
    ),
    command!(
        c"bf.insert",
        bloom::insert_command,
        -4,
        WRITE_FAST,
        Keys::Insert,
        c"O(N*M) where N is the number of items and M the number of sub-filters",
        c"Adds items to a Bloom filter; if it is missing, creates it with these options",
        &[KEY, CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, SEED, LAYOUT, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"bf.admit",
        bloom::admit,
        -6,
        WRITE,
        Keys::Insert,
        c"O(N*M) where N is the number of items and M the number of sub-filters",
        c"Adds new items to a Bloom filter while it has fewer than a limit",
        &[KEY, LIMIT, ALL, DRYRUN, CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, SEED, LAYOUT, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"bf.exists",
        bloom::exists,
        3,
        READ_FAST,
        Keys::Read,
        c"O(N) where N is the number of sub-filters",
        c"Tells whether an item may be in a Bloom filter, or is certainly not",
        &[KEY, ITEM]
    ),
    command!(
        c"bf.mexists",
        bloom::mexists,
        -3,
        READ_FAST,
        Keys::Read,
        c"O(N*M) where N is the number of items and M the number of sub-filters",
        c"Tells of each item whether it may be in a Bloom filter, or is certainly not",
        &[KEY, ITEMS]
    ),
    command!(
        c"bf.card",
        bloom::card,
        2,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Returns the number of items that were added to a Bloom filter",
        &[KEY]
    ),
    command!(
        c"bf.info",
        bloom::info,
        -2,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Returns the parameters and the state of a Bloom filter",
        &[
            KEY,
            field(&[
                choice(c"CAPACITY", c"capacity"),
                choice(c"SIZE", c"size"),
                choice(c"FILTERS", c"filters"),
                choice(c"ITEMS", c"items"),
                choice(c"EXPANSION", c"expansion"),
                choice(c"ERROR", c"error"),
                choice(c"FPR", c"fpr"),
                choice(c"FILL", c"fill"),
                choice(c"LAYOUT", c"layout"),
            ])
        ]
    ),
    command!(
        c"bf.merge",
        bloom::merge,
        -3,
        WRITE,
        Keys::Merge,
        c"O(N*M) where N is the number of filters and M their bits",
        c"Makes a Bloom filter the union of itself and others of the same parameters",
        &[DESTINATION, SOURCES]
    ),
    command!(
        c"bf.clear",
        bloom::clear,
        2,
        c"write fast",
        Keys::Clear,
        c"O(1)",
        c"Empties a Bloom filter and keeps its parameters and time to live",
        &[KEY]
    ),
    command!(
        c"bf.scandump",
        bloom::scandump,
        3,
        READ,
        Keys::Read,
        c"O(N) where N is the size of the chunk",
        c"Returns the next chunk of a Bloom filter's dump",
        &[KEY, ITERATOR]
    ),
    command!(
        c"bf.loadchunk",
        bloom::loadchunk,
        4,
        WRITE,
        Keys::Insert,
        c"O(N) where N is the size of the chunk",
        c"Restores a Bloom filter chunk by chunk, as BF.SCANDUMP gave them",
        &[KEY, ITERATOR, DATA]
    ),
    command!(
        c"bf.debug",
        bloom::debug,
        2,
        READ,
        Keys::Read,
        c"O(N) where N is the number of sub-filters",
        c"Describes each sub-filter of a Bloom filter",
        &[KEY]
    ),
    command!(
        c"bf.load",
        valkey_bloom::load,
        3,
        WRITE,
        Keys::Insert,
        c"O(1)",
        c"Answers with an error: valkey-bloom's data is not read",
        &[KEY, DATA]
    ),
];

impl Command {
    /// First key, last key and step, as `COMMAND INFO` gives them.
    pub fn key_range(&self) -> (c_int, c_int, c_int) {
        match self.keys {
            Keys::Read | Keys::Insert | Keys::Clear => (1, 1, 1),
            Keys::ReadAll | Keys::Merge => (1, -1, 1),
        }
    }
}

impl Kind {
    pub fn raw(self) -> raw::RedisModuleCommandArgType {
        match self {
            Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            Kind::String => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
            Kind::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
            Kind::UnixTime => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME,
            Kind::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            Kind::OneOf => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        }
    }
}
