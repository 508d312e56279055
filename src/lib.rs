//! The Redis and Valkey module: the Bloom filters and counters of the core library as data types and commands.
//!
//! [`server`] wraps the server's API. [`types`] has the callbacks of the data types. [`config`], [`limits`] and
//! [`args`] define the options, the size limits and the arguments of commands. [`commands`] execute the commands, and
//! [`reply`] writes replies.

// No other crate uses this crate; its documentation is for its developers.
#![allow(rustdoc::private_intra_doc_links)]

mod args;
mod command_error;
mod commands;
mod config;
mod info;
mod limits;
mod number;
mod reply;
mod server;
mod types;

use std::ffi::c_int;
use std::hash::{BuildHasher, RandomState};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;

use config::Commands;
use server::api::{self, api};
use server::ffi::{self, Args, Ctx, ERR, NOTICE, OK, RedisModuleCtx, RedisModuleString, WARNING};
use server::{alloc, facts, reclaim, slot_import, threads, version};
use types::callbacks::{rdb_load, rdb_load_classic, register};
use types::family::{CLASSIC, COUNTERS, LINES};

/// The module option `OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION` of Valkey 9 and later, which the crate `redis-module`
/// lacks. It allows the server to migrate slots with values of this module, sent as the commands of an AOF rewrite.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// The module option `OPTIONS_HANDLE_FORKLESS` of Valkey 9.2 and later, which the crate `redis-module` lacks. With it,
/// the server may run `rdb_save` on another thread while clients read the value. Opening a key for writing may then
/// return null. The server saves without a fork only if all modules set the option.
const HANDLE_FORKLESS: u32 = 1 << 6;

/// True from the end of a successful [`load`] until the module is unloaded.
///
/// [`RedisModule_OnLoad`] rejects a second load. After a failed load or an unload, the library may stay mapped with its
/// static variables. The flag is then false, so loading is allowed.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// The entry point that the server calls when it loads the module.
///
/// # Safety
/// Must be called by the server, with a live context and the arguments of `loadmodule`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // The server looks the function up by this name.
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    // A second load is rejected before the pointers to the server's functions are written, because other threads may be
    // using them.
    if IS_LOADED.load(Ordering::Relaxed) {
        ffi::log_anywhere(WARNING, "the module is loaded already");
        return ERR;
    }
    // SAFETY: the context is live. This fills in the pointers to the server's functions, which no thread uses yet.
    unsafe {
        if raw::Export_RedisModule_Init(ctx, c"rollcall".as_ptr(), version::NUMBER, raw::REDISMODULE_APIVER_1 as c_int)
            == ERR
        {
            return ERR;
        }
        alloc::begin();
    }
    let log = |ctx: Ctx, why| ctx.log(WARNING, &format!("rollcall was not loaded: {why}"));
    // SAFETY: the server passes the arguments as it does to a command.
    unsafe { ffi::run_command(ctx, argv, argc, load, log) };
    if IS_LOADED.load(Ordering::Relaxed) { OK } else { ERR }
}

fn load(ctx: Ctx, args: Args<'_>) -> Result<(), String> {
    // The server has freed the data types of an earlier load that failed.
    [&COUNTERS, &LINES, &CLASSIC].iter().for_each(|data_type| data_type.set_handle(null_mut()));
    if let Some(name) = api::missing() {
        return Err(format!("this server lacks {name}; Redis 7.0 or Valkey 8 or later is needed"));
    }
    threads::become_main();
    // After a second load in the same process, the key of the first load stays.
    rollcall_core::set_table_key(RandomState::new().hash_one(()));
    facts::gather();
    alloc::set_size_classes(facts::server_uses_jemalloc());
    set_options(ctx);
    config::take_arguments(ctx, args)?;
    config::register(ctx)?;
    let commands = config::commands();
    let taken = |what: String| {
        format!(
            "another module already holds {what}; to leave BF.* to it, load with: commands beside (filters as RF.*) or \
             commands lc (no filters)"
        )
    };
    let other = |what: String| format!("another module already holds {what}");
    register::<Counter>(ctx, &COUNTERS, Some(rdb_load::<Counter>)).map_err(other)?;
    // This data type is always registered, so that a data set with filters in Rollcall's own layout (`lines`) loads.
    register::<BloomFilter>(ctx, &LINES, Some(rdb_load::<BloomFilter>)).map_err(other)?;
    if commands == Commands::All {
        let registered = register::<BloomFilter>(ctx, &CLASSIC, Some(rdb_load_classic));
        registered.map_err(|what| taken(format!("{what} of the BF commands")))?;
    }
    commands::register(ctx, commands)
        .map_err(|name| if name.starts_with("bf.") { taken(name) } else { other(name) })?;
    info::register(ctx);
    ctx.log(NOTICE, concat!("rollcall ", env!("CARGO_PKG_VERSION"), " is loaded"));
    // This is the last step, because Redis 7.0 would call the listeners even after a failed load.
    info::register_log(ctx);
    slot_import::register(ctx);
    IS_LOADED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Declares what the module handles itself: signals of changed keys, I/O errors while loading, commands during an
/// asynchronous load, atomic slot migration, and saves without a fork.
fn set_options(ctx: Ctx) {
    let mut options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    // SAFETY: the context is live, during loading; the arguments have the types that the functions take. Valkey's
    // options are set on Valkey only, because Redis could give their bits another meaning.
    unsafe {
        let known = raw::RedisModule_GetModuleOptionsAll.map_or(0, |all| all() as u32);
        if facts::is_valkey() {
            options |= (HANDLE_ATOMIC_SLOT_MIGRATION | HANDLE_FORKLESS) & known;
        }
        api!(RedisModule_SetModuleOptions(ctx.as_ptr(), options as c_int));
    }
}

/// Called before the server unloads the module. Fails once a thread of this module has started.
///
/// The server does not unload a module with data types, with one exception: Redis 8 unloads the module right after
/// loading it if `MODULE LOADEX` has a `CONFIG` that no option takes. No thread has started then. Redis 8 would fail an
/// assertion if this function returned an error.
///
/// # Safety
/// Must be called by the server.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // The server looks the function up by this name.
pub unsafe extern "C" fn RedisModule_OnUnload(_ctx: *mut RedisModuleCtx) -> c_int {
    if reclaim::has_started() {
        return ERR;
    }
    IS_LOADED.store(false, Ordering::Relaxed);
    OK
}
