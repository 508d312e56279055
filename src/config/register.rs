//! Registers the module's options with the server.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::PoisonError;

use redis_module::raw;

use super::options::{ALL, CUCKOO, Commands, Setting, commands};
use crate::server::api::api;
use crate::server::facts;
use crate::server::ffi::{Arg, Ctx, ERR, OK, OwnedString, RedisModuleString, guard};

/// Registers every option. The server then sets each from redis.conf, or to its initial value. Fails if the server
/// rejects an option; the server has logged why.
///
/// Some options exist in Redis 8 too. On Redis 8 they get the name without a prefix, and the prefixed name as its
/// alias. They get only the prefixed name if RedisBloom is loaded, or may be loaded later (`commands beside` or
/// `commands lc`).
pub fn register(ctx: Ctx) -> Result<(), String> {
    let may_be_bare = facts::is_redis_8() && commands() == Commands::All;
    let register_bare = |option: &'static Setting| {
        let text = option.name.to_string_lossy();
        let aliased = CString::new(format!("{text}|rollcall.{text}")).unwrap_or_default();
        may_be_bare && register_one(ctx, option, &aliased, raw::REDISMODULE_CONFIG_UNPREFIXED)
    };
    let registered = ALL
        .iter()
        .all(|option| (option.is_unprefixed() && register_bare(option)) || register_one(ctx, option, option.name, 0));
    // If another module has registered an option of this name, the registration fails without harm.
    CUCKOO.iter().for_each(|option| _ = register_bare(option));
    // SAFETY: the context is live, during loading.
    let loaded = registered && OK == unsafe { api!(RedisModule_LoadConfigs(ctx.as_ptr())) };
    let why = "an option was rejected; see the lines above";
    if loaded { Ok(()) } else { Err(why.to_owned()) }
}

/// Registers an option under `name`, as text: for numbers and words, the server would have error texts of its own.
/// Returns false if another module has the name.
fn register_one(ctx: Ctx, option: &'static Setting, name: &CStr, flag: u32) -> bool {
    let fixed = if option.is_fixed { raw::REDISMODULE_CONFIG_IMMUTABLE } else { raw::REDISMODULE_CONFIG_DEFAULT };
    let flags: c_uint = fixed | flag;
    let data = (&raw const *option).cast_mut().cast::<c_void>();
    let initial = CString::new(option.print(option.bits())).unwrap_or_default();
    let (ctx, name, initial) = (ctx.as_ptr(), name.as_ptr(), initial.as_ptr());
    let (get, set) = (Some(get as _), Some(set as _));
    // SAFETY: the name ends with NUL; the option is static; the callbacks read `data` as a `Setting`. The server copies
    // the initial text.
    OK == unsafe { api!(RedisModule_RegisterStringConfig(ctx, name, initial, flags, get, set, None, data)) }
}

unsafe extern "C" fn get(_name: *const c_char, data: *mut c_void) -> *mut RedisModuleString {
    let shown = guard("a configuration getter", || {
        // SAFETY: the server passes the pointer that was registered, to a static `Setting`.
        let option = unsafe { &*data.cast::<Setting>() };
        // The previously shown string is freed, because the server has copied it.
        let mut shown = option.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(OwnedString::new(option.print(option.bits()))).as_ptr()
    });
    shown.unwrap_or(null_mut())
}

/// Sets an option. If the value is rejected, the reason is stored in `error` for the server.
unsafe extern "C" fn set(
    _name: *const c_char,
    value: *mut RedisModuleString,
    data: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the pointer that was registered, to a static `Setting`, a value that lives during the
    // call, and a pointer for an error text. It copies the text into a string, and frees this string later.
    let set = guard("a configuration setter", || unsafe {
        let option = &*data.cast::<Setting>();
        let Err(why) = option.set(Arg::new(value).bytes()) else { return OK };
        *error = api!(RedisModule_CreateString(null_mut(), why.as_ptr().cast(), why.len()));
        ERR
    });
    set.unwrap_or(ERR)
}
