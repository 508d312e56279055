//! Counts filters that no registered command can read, because of the option `commands`, for INFO and the log.

use std::ffi::c_void;

use redis_module::raw;

use crate::config::{self, Commands};
use crate::server::ffi::{Ctx, WARNING, guard, log_anywhere};
use crate::types::totals::{ValueKind, keys};

/// The number of filters that no registered command can read.
pub fn count() -> u64 {
    match config::commands() {
        Commands::All => 0,
        Commands::Beside => keys(&[ValueKind::PartialClassic]),
        Commands::Lc => {
            keys(&[ValueKind::Lines, ValueKind::WindowedFilter, ValueKind::PartialFilter, ValueKind::PartialClassic])
        }
    }
}

/// After a data set has been loaded, the module logs the number of filters that no registered command can read, unless
/// it is 0.
pub fn register(ctx: Ctx) {
    let loading = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_LOADING, dataver: 1 };
    raw::subscribe_to_server_event(ctx.as_ptr(), loading, Some(loaded));
}

unsafe extern "C" fn loaded(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    step: u64,
    _data: *mut c_void,
) {
    let report = || match (step == raw::REDISMODULE_SUBEVENT_LOADING_ENDED, count()) {
        (false, _) | (_, 0) => {}
        (true, unserved) => log_anywhere(WARNING, &line(unserved)),
    };
    guard("an event of loading", report);
}

/// The line for the log about `unserved` filters that no registered command can read.
fn line(unserved: u64) -> String {
    let (which, way) = match config::commands() {
        Commands::Beside => ("partially loaded classic ", "commands all"),
        Commands::All | Commands::Lc => ("", "commands beside (as RF.*) or commands all"),
    };
    let (filters, are, them) = if unserved == 1 { ("filter", "is", "it") } else { ("filters", "are", "them") };
    let mode = config::commands().word();
    format!(
        "{unserved} {which}{filters} {are} kept and saved, but not served with commands {mode}; load with {way} \
         to use {them}"
    )
}
