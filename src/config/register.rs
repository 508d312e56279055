//! Registers the module's options with the server.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::PoisonError;

use redis_module::raw;

use super::options::{ALL, CUCKOO, Commands, Setting, SettingKind, commands_at_first};
use crate::server::api::api;
use crate::server::facts;
use crate::server::ffi::{Arg, Ctx, ERR, OK, OwnedString, RedisModuleString, WARNING, guard};

/// Registers every option. The server then sets each from redis.conf, or to its initial value. If the server rejects an
/// option, this function logs the reason and returns false.
///
/// Some options exist in Redis 8 too. On Redis 8 they get the name without a prefix, and the prefixed name as its
/// alias. They get only the prefixed name if RedisBloom is loaded, or may be loaded later (`commands beside` or
/// `commands lc`).
pub fn register(ctx: Ctx) -> bool {
    let may_be_bare = facts::is_redis_8() && commands_at_first() == Commands::All;
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
    if !loaded {
        ctx.log(WARNING, "an option in redis.conf or MODULE LOADEX was rejected; see the lines above");
    }
    loaded
}

/// Registers an option under `name`. Returns false if another module has the name.
fn register_one(ctx: Ctx, option: &'static Setting, name: &CStr, flag: u32) -> bool {
    let fixed = if option.is_fixed { raw::REDISMODULE_CONFIG_IMMUTABLE } else { raw::REDISMODULE_CONFIG_DEFAULT };
    let flags: c_uint = fixed | flag;
    let data = (&raw const *option).cast_mut().cast::<c_void>();
    let (ctx, name, initial) = (ctx.as_ptr(), name.as_ptr(), option.initial());
    let numeric = |flags, min, max| {
        let (initial, get, set) = (initial.cast_signed(), Some(get_number as _), Some(set_number as _));
        // SAFETY: the name ends with NUL; the option is static; the callbacks read `data` as a `Setting`.
        unsafe { api!(RedisModule_RegisterNumericConfig(ctx, name, initial, flags, min, max, get, set, None, data)) }
    };
    let registered = match option.kind {
        SettingKind::Whole { min, max } => numeric(flags, min, max),
        SettingKind::Bytes { min, max } => numeric(flags | raw::REDISMODULE_CONFIG_MEMORY, min, max),
        SettingKind::BytesOrZero { min: _, max } => numeric(flags | raw::REDISMODULE_CONFIG_MEMORY, 0, max),
        SettingKind::Choice { words } => {
            let mut texts: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
            let numbers: Vec<c_int> = (0..words.len() as c_int).collect();
            let (texts, numbers, count) = (texts.as_mut_ptr(), numbers.as_ptr(), numbers.len() as c_int);
            let (initial, get, set) = (initial as c_int, Some(get_choice as _), Some(set_choice as _));
            // SAFETY: the name ends with NUL; the option is static; the callbacks read `data` as a `Setting`. The
            // server copies words and numbers.
            unsafe {
                api!(RedisModule_RegisterEnumConfig(
                    ctx, name, initial, flags, texts, numbers, count, get, set, None, data
                ))
            }
        }
        SettingKind::Seed | SettingKind::Rate { .. } | SettingKind::FilterRate | SettingKind::FilterWhole { .. } => {
            let text = CString::new(option.print(initial)).unwrap_or_default();
            let (initial, get, set) = (text.as_ptr(), Some(get_text as _), Some(set_text as _));
            // SAFETY: the name ends with NUL; the option is static; the callbacks read `data` as a `Setting`. The
            // server copies the default.
            unsafe { api!(RedisModule_RegisterStringConfig(ctx, name, initial, flags, get, set, None, data)) }
        }
    };
    registered == OK
}

/// The option for which the server called a callback.
///
/// # Safety
/// `data` is the pointer with which the option was registered.
unsafe fn setting(data: *mut c_void) -> &'static Setting {
    // SAFETY: the option was registered with a pointer to a static `Setting`.
    unsafe { &*data.cast::<Setting>() }
}

/// Sets an option to the value that `read` returns. If `read` fails, its error text is stored in `place` for the
/// server.
///
/// # Safety
/// `data` is the pointer with which the option was registered, and `place` is the pointer that the server passed to the
/// callback.
unsafe fn set(
    data: *mut c_void,
    place: *mut *mut RedisModuleString,
    read: impl FnOnce(&Setting) -> Result<u64, String>,
) -> c_int {
    guard(
        "a configuration setter",
        // SAFETY: the caller promises that the pointers are valid. The server copies the error text into a string, and
        // frees this string later.
        || unsafe {
            let option = setting(data);
            match read(option) {
                Ok(bits) => {
                    option.set(bits);
                    return OK;
                }
                Err(_) if place.is_null() => {}
                Err(why) => *place = api!(RedisModule_CreateString(null_mut(), why.as_ptr().cast(), why.len())),
            }
            ERR
        },
        || ERR,
    )
}

unsafe extern "C" fn get_number(_name: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: the server passes the pointer that was registered.
    unsafe { setting(data) }.bits().cast_signed()
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    // For [`SettingKind::BytesOrZero`], the server checks only that the number is 0 or more. `parse` also rejects
    // numbers between 0 and the minimum.
    // SAFETY: the server passes the pointer that was registered, and a pointer for an error text.
    unsafe { set(data, error, |option| option.parse(value.to_string().as_bytes())) }
}

unsafe extern "C" fn get_choice(_name: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the server passes the pointer that was registered.
    unsafe { setting(data) }.bits() as c_int
}

unsafe extern "C" fn set_choice(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    let bits = u64::from(value.unsigned_abs());
    // SAFETY: the server passes the pointer that was registered, and a pointer for an error text.
    unsafe { set(data, error, |option| (option.check)(bits).map(|()| bits)) }
}

unsafe extern "C" fn get_text(_name: *const c_char, data: *mut c_void) -> *mut RedisModuleString {
    guard(
        "a configuration getter",
        || {
            // SAFETY: the server passes the pointer that was registered.
            let option = unsafe { setting(data) };
            // The previously shown string is freed, because the server has copied it.
            let mut shown = option.shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.insert(OwnedString::new(option.print(option.bits()))).as_ptr()
        },
        null_mut,
    )
}

unsafe extern "C" fn set_text(
    _name: *const c_char,
    value: *mut RedisModuleString,
    data: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the pointer that was registered, and a pointer for an error text; the value lives
    // during the call.
    unsafe { set(data, error, |option| option.parse(Arg::new(value).bytes())) }
}
