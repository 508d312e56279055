//! A row of the command table, and the functions that the server calls for it.

use std::convert::Infallible;
use std::ffi::{CStr, c_int};

use super::super::argument::Argument;
use crate::args;
use crate::command_error::{CommandError, Kind};
use crate::config::{self, Commands};
use crate::reply::reject;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, RedisModuleCtx, RedisModuleString, run_command};

/// The arguments of a command, as the server passes them.
pub type Argv = *mut *mut RedisModuleString;

/// A row of the command table.
pub struct Command {
    /// The name in lower case, as `INFO commandstats` and errors show it.
    pub name: &'static CStr,
    /// The function that the server calls to run the command.
    pub entry: unsafe extern "C" fn(*mut RedisModuleCtx, Argv, c_int) -> c_int,
    /// The number of arguments with the command's name; -n means at least n.
    pub arity: c_int,
    pub flags: &'static CStr,
    pub keys: Keys,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    pub arguments: &'static [Argument],
    /// The hint for clients about the reply, which `COMMAND` shows; may be empty.
    pub tips: &'static CStr,
}

/// Which arguments are keys, and what the command does with them.
#[derive(Clone, Copy, PartialEq)]
pub enum Keys {
    /// The first argument is read.
    Read,
    /// Items are added to the first argument.
    Insert,
    /// Members are removed from the first argument.
    Remove,
    /// The first argument is emptied.
    Clear,
    /// The first argument is the key of a value whose window moves forward.
    Advance,
    /// All arguments are read.
    ReadAll,
    /// The first argument is the number of keys that follow and are read.
    Numbered,
    /// The first argument is changed, and all others are read.
    Merge,
}

/// Runs `handler`, unless the number of arguments contradicts `arity`. `kind` is the kind of values that the command is
/// for. With the option `commands lc`, commands for filters are accepted only from a primary or the AOF.
///
/// # Safety
/// The same as for [`run_command`].
#[inline(always)]
pub(super) unsafe fn call(
    ctx: *mut RedisModuleCtx,
    argv: Argv,
    argc: c_int,
    kind: Kind,
    arity: c_int,
    handler: impl for<'a> FnOnce(Ctx, Args<'a>) -> Result<(), CommandError>,
) -> c_int {
    let checked = |ctx: Ctx<'_>, args: Args<'_>| {
        if kind == Kind::Filter && config::commands() == Commands::Lc && !must_obey(ctx) {
            return Err(CommandError::NoFilters);
        }
        let len = args.len() as c_int;
        if (arity >= 0 && len != arity) || len < -arity { Err(CommandError::Arity) } else { handler(ctx, args) }
    };
    // SAFETY: as the caller promises.
    unsafe { run_command(ctx, argv, argc, checked, |ctx, error| reject(ctx, kind, &error)) }
}

/// Reports the keys of a command of [`Keys::Numbered`], if the server calls the command only to ask for them. Returns
/// whether it did. In a cluster, Redis 7 finds the node for a command by this report.
///
/// # Safety
/// The same as for [`run_command`].
pub(super) unsafe fn reports_keys(ctx: *mut RedisModuleCtx, argv: Argv, argc: c_int) -> bool {
    let mut is_asked = false;
    let report = |ctx: Ctx, args: Args<'_>| {
        is_asked = ctx.is_asked_for_keys();
        let keys = if is_asked { args::numkeys(args).unwrap_or(0) } else { 0 };
        (2..2 + keys).for_each(|position| ctx.report_key(position));
        Ok::<(), Infallible>(())
    };
    // SAFETY: as the caller promises.
    unsafe { run_command(ctx, argv, argc, report, |_, never| match never {}) };
    is_asked
}

/// Makes rows of the command table: name, handler, arity, flags and keys, sometimes a hint for clients, then arguments,
/// complexity and summary.
macro_rules! rows {
    ($kind:ident: $(
        $name:literal $handler:expr, $arity:literal $flags:ident $keys:ident $($tip:ident)? [$($argument:expr),*]
        $complexity:literal $summary:literal)*) => {
        &[$({
            use std::ffi::c_int;
            use $crate::command_error::Kind;
            use $crate::commands::table::command::{self, Argv, Command, Keys};
            use $crate::server::ffi::{self, RedisModuleCtx};

            unsafe extern "C" fn entry(ctx: *mut RedisModuleCtx, argv: Argv, argc: c_int) -> c_int {
                let handler = $handler;
                // SAFETY: the server calls this with the context and the arguments of a command.
                unsafe {
                    if let Keys::Numbered = Keys::$keys
                        && command::reports_keys(ctx, argv, argc)
                    {
                        return ffi::OK;
                    }
                    command::call(ctx, argv, argc, Kind::$kind, $arity, handler)
                }
            }
            Command {
                name: $name,
                entry,
                arity: $arity,
                flags: $flags,
                keys: Keys::$keys,
                summary: $summary,
                complexity: $complexity,
                arguments: &[$($argument),*],
                tips: [$($tip,)? c""][0],
            }
        }),*]
    };
}

pub(super) use rows;

/// The hint that a reply may change although nobody writes, since members of a window expire.
pub(super) const CHANGES_WITH_TIME: &CStr = c"nondeterministic_output";

/// The flags of write commands that need no memory. Without `deny-oom`, they run even when `maxmemory` is reached.
pub(super) const CHANGE: &CStr = c"write";
pub(super) const CHANGE_FAST: &CStr = c"write fast";
pub(super) const WRITE: &CStr = c"write deny-oom";
pub(super) const WRITE_FAST: &CStr = c"write deny-oom fast";
pub(super) const READ: &CStr = c"readonly";
pub(super) const READ_NUMBERED: &CStr = c"readonly getkeys-api";
pub(super) const READ_FAST: &CStr = c"readonly fast";
