//! Filters that this mode keeps and saves whole, but serves to nobody: how many, for INFO and for the log.

use std::ffi::c_void;

use redis_module::raw;

use crate::config::{self, Commands};
use crate::server::api::api;
use crate::server::ffi::{Ctx, LogLevel, guard, log_anywhere};
use crate::types::totals::{ValueKind, keys};

/// How many there are now.
pub fn count() -> u64 {
    match config::commands() {
        Commands::All => 0,
        Commands::Beside => keys([ValueKind::LoadingClassic]),
        Commands::Lc => {
            keys([ValueKind::Lines, ValueKind::WindowedFilter, ValueKind::LoadingFilter, ValueKind::LoadingClassic])
        }
    }
}

/// Has each data set that the server loads followed by a line in the log, if it has such filters.
pub fn register(ctx: Ctx) {
    let loading = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_LOADING, dataver: 1 };
    // SAFETY: the callback is of the type that the server calls.
    unsafe { api!(RedisModule_SubscribeToServerEvent(ctx.as_ptr(), loading, Some(loaded))) };
}

unsafe extern "C" fn loaded(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    step: u64,
    _data: *mut c_void,
) {
    let report = || match (step == raw::REDISMODULE_SUBEVENT_LOADING_ENDED, count()) {
        (false, _) | (_, 0) => {}
        (true, unserved) => log_anywhere(LogLevel::Warning, &line(unserved)),
    };
    guard("an event of loading", report, || ());
}

/// The line about so many filters.
fn line(unserved: u64) -> String {
    let (which, that, way) = match config::commands() {
        Commands::Beside => ("classic ", " that had not fully arrived", "commands all"),
        Commands::All | Commands::Lc => ("", "", "commands beside (as RF.*) or commands all"),
    };
    let (filters, are, them) = if unserved == 1 { ("filter", "is", "it") } else { ("filters", "are", "them") };
    let mode = config::commands().word();
    format!(
        "{unserved} {which}{filters}{that} {are} kept and saved, but not served with commands {mode}; load with {way} to \
         use {them}"
    )
}
