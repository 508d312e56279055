//! Describes the arguments of commands for `COMMAND DOCS`.

use std::ffi::CStr;

use redis_module::raw;

pub struct Argument {
    pub name: &'static CStr,
    pub kind: ArgumentKind,
    /// The keyword before the value, or the whole argument if it has no value.
    pub token: Option<&'static CStr>,
    pub optional: bool,
    pub multiple: bool,
    pub choices: &'static [Argument],
}

/// The type of an argument. The discriminants are the server's numbers.
#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
pub enum ArgumentKind {
    Key = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
    String = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
    Integer = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
    Double = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
    UnixTime = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME,
    Token = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
    OneOf = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
    /// All of `choices`, in this order.
    Block = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
}

pub(super) const fn argument(name: &'static CStr, kind: ArgumentKind) -> Argument {
    Argument { name, kind, token: None, optional: false, multiple: false, choices: &[] }
}

/// The argument `TOKEN value`.
const fn valued(token: &'static CStr, name: &'static CStr, kind: ArgumentKind) -> Argument {
    Argument { token: Some(token), ..argument(name, kind) }
}

const fn optional(argument: Argument) -> Argument {
    Argument { optional: true, ..argument }
}

/// The argument `[TOKEN value]`.
pub(super) const fn option(token: &'static CStr, name: &'static CStr, kind: ArgumentKind) -> Argument {
    optional(valued(token, name, kind))
}

/// The argument `[TOKEN]`.
pub(super) const fn flag(token: &'static CStr, name: &'static CStr) -> Argument {
    optional(choice(token, name))
}

/// The argument `name [name ...]`.
pub(super) const fn several(name: &'static CStr, kind: ArgumentKind) -> Argument {
    Argument { multiple: true, ..argument(name, kind) }
}

/// One keyword among alternatives.
pub const fn choice(token: &'static CStr, name: &'static CStr) -> Argument {
    valued(token, name, ArgumentKind::Token)
}

/// The argument `choice | choice | ...`.
const fn one_of(name: &'static CStr, choices: &'static [Argument]) -> Argument {
    Argument { choices, ..argument(name, ArgumentKind::OneOf) }
}

/// The argument `[choice | choice | ...]` of `INFO`.
pub(super) const fn field(choices: &'static [Argument]) -> Argument {
    optional(one_of(c"field", choices))
}

/// The options of a sliding window.
const fn window(options: &'static [Argument]) -> Argument {
    optional(Argument { choices: options, ..argument(c"window", ArgumentKind::Block) })
}

pub(super) const KEY: Argument = argument(c"key", ArgumentKind::Key);
pub(super) const ITEM: Argument = argument(c"item", ArgumentKind::String);
pub(super) const ITEMS: Argument = several(c"item", ArgumentKind::String);
pub(super) const AFTER_ITEMS: Argument = Argument { token: Some(c"ITEMS"), ..several(c"item", ArgumentKind::String) };
pub(super) const DESTINATION: Argument = argument(c"destination", ArgumentKind::Key);
pub(super) const SOURCES: Argument = several(c"source", ArgumentKind::Key);
/// The values that a `MERGEDUMP` merges.
pub(super) const PAYLOADS: Argument = several(c"payload", ArgumentKind::String);
pub(super) const ITERATOR: Argument = argument(c"iterator", ArgumentKind::Integer);
pub(super) const DATA: Argument = argument(c"data", ArgumentKind::String);
pub(super) const CAPACITY: Argument = option(c"CAPACITY", c"capacity", ArgumentKind::Integer);
pub(super) const ERROR: Argument = option(c"ERROR", c"error-rate", ArgumentKind::Double);
pub(super) const EXACT: Argument = option(c"EXACT", c"exact-limit", ArgumentKind::Integer);
pub(super) const BYTES: Argument = option(c"BYTES", c"exact-bytes", ArgumentKind::Integer);
pub(super) const EXPANSION: Argument = option(c"EXPANSION", c"expansion", ArgumentKind::Integer);
pub(super) const NONSCALING: Argument = flag(c"NONSCALING", c"nonscaling");
pub(super) const NOCREATE: Argument = flag(c"NOCREATE", c"nocreate");
pub(super) const SEED: Argument = option(c"SEED", c"seed", ArgumentKind::Integer);
pub(super) const LAYOUT: Argument = Argument {
    choices: &[choice(c"lines", c"lines"), choice(c"classic", c"classic")],
    ..option(c"LAYOUT", c"layout", ArgumentKind::OneOf)
};

pub(super) const EXPIRY: Argument = optional(one_of(
    c"expiration",
    &[
        valued(c"EX", c"seconds", ArgumentKind::Integer),
        valued(c"PX", c"milliseconds", ArgumentKind::Integer),
        valued(c"EXAT", c"unix-time-seconds", ArgumentKind::UnixTime),
        valued(c"PXAT", c"unix-time-milliseconds", ArgumentKind::UnixTime),
    ],
));

const MANUAL: Argument = flag(c"MANUAL", c"manual");
const MANUAL_OR_VOLATILE: Argument =
    optional(one_of(c"life", &[choice(c"MANUAL", c"manual"), choice(c"VOLATILE", c"volatile")]));
const SLICES: Argument = option(c"SLICES", c"slices", ArgumentKind::Integer);
const REFRESH: Argument = flag(c"REFRESH", c"refresh");
const SECONDS: Argument = valued(c"WINDOW", c"seconds", ArgumentKind::Integer);
/// The options of a filter's sliding window.
pub(super) const FILTER_WINDOW: Argument = window(&[SECONDS, MANUAL, SLICES, REFRESH]);
/// The window options of a filter in `INSERT` and `ADMIT`. Only these allow `VOLATILE` (the key expires when all its
/// items have expired): their next call can create the key again with the same options.
pub(super) const FILTER_WINDOW_OF_INSERT: Argument = window(&[SECONDS, MANUAL_OR_VOLATILE, SLICES, REFRESH]);
/// The options of a counter's sliding window.
pub(super) const COUNTER_WINDOW: Argument = window(&[SECONDS, MANUAL, SLICES]);
/// The window options of a counter in `INSERT` and `ADMIT`, which allow `VOLATILE`.
pub(super) const COUNTER_WINDOW_OF_INSERT: Argument = window(&[SECONDS, MANUAL_OR_VOLATILE, SLICES]);
/// The target of `ADVANCE`. Its option `REBASE` is not documented, because only primaries send it.
pub(super) const TO: Argument = one_of(c"to", &[argument(c"slice", ArgumentKind::Integer), choice(c"CLOCK", c"clock")]);

pub(super) const LIMIT: Argument = valued(c"LIMIT", c"limit", ArgumentKind::Integer);
pub(super) const WITHROOM: Argument = flag(c"WITHROOM", c"withroom");
pub(super) const WIDTH: Argument = option(c"WIDTH", c"bytes", ArgumentKind::Integer);
pub(super) const SINCE: Argument = option(c"SINCE", c"seconds", ArgumentKind::Integer);
pub(super) const ALL: Argument = flag(c"ALL", c"all");
pub(super) const DRYRUN: Argument = flag(c"DRYRUN", c"dryrun");
