//! The callbacks by which the server saves, loads, rewrites, frees, measures, copies, digests and defragments a value.
//! Each catches panics, and requires a value that is not null.

use std::alloc::Layout;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::ptr::null_mut;

use redis_module::RedisBuffer;
use redis_module::raw::{self, RedisModuleIO};
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::unstable::persist::rdb::{Sink, Source, save_partial};
use rollcall_core::unstable::persist::{Partial, dump_partial, redisbloom};

use super::entry::{KeyEntry, entry, entry_mut};
use super::family::{self, DataType, Family, State};
use super::names::Verb;
use crate::limits::ServerLimit;
use crate::server::alloc::{self, Defragmenter};
use crate::server::api::api;
use crate::server::ffi::{self, Ctx, OK, RedisModuleString, WARNING, guard, log_anywhere};
use crate::server::metrics::{CORRUPT_REJECTED, MEMORY_REJECTED};
use crate::server::{reclaim, slot_import};

/// Registers a data type with the server. The error names the type if another module has registered this name.
pub fn register<T: Family>(
    ctx: Ctx,
    data_type: &'static DataType,
    rdb_load: raw::RedisModuleTypeLoadFunc,
) -> Result<(), String> {
    // SAFETY: all zeros is a valid value of this C structure, and means that there are no callbacks.
    let none: raw::RedisModuleTypeMethods = unsafe { std::mem::zeroed() };
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load,
        rdb_save: Some(rdb_save::<T>),
        aof_rewrite: Some(aof_rewrite::<T>),
        mem_usage: Some(mem_usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        free_effort: Some(free_effort::<T>),
        copy: Some(copy::<T>),
        defrag: Some(defrag::<T>),
        ..none
    };
    let name = CString::new(data_type.name).unwrap_or_default();
    // SAFETY: the server copies the name and the methods. It passes to each method a pointer to a `KeyEntry<T>`, as the
    // method expects.
    let handle = unsafe {
        let encoding = data_type.encoding as c_int;
        api!(RedisModule_CreateDataType(ctx.as_ptr(), name.as_ptr(), encoding, &mut methods))
    };
    data_type.set_handle(handle);
    if handle.is_null() { Err(format!("the data type {}", data_type.name)) } else { Ok(()) }
}

/// Makes the running save or AOF rewrite fail, after a panic: no file may contain the incomplete value.
///
/// The API has no function for this. So this function emits a command that the server does not know. The server checks
/// for the resulting write error after the callback, and keeps the previous files. `DUMP` and `MIGRATE` do not check:
/// they send a truncated value, which every `RESTORE` rejects.
///
/// # Safety
/// `io` is the parameter of the running callback.
unsafe fn fail(io: *mut RedisModuleIO) {
    // SAFETY: as the caller promises; the format takes no arguments. If this panics too, the process ends.
    unsafe { api!(RedisModule_EmitAOF(io, c"rollcall.panicked".as_ptr(), c"".as_ptr())) };
}

/// Saves a value. Valkey 9.2 may call this on another thread while commands read the value, which is safe because
/// values are `Sync`.
unsafe extern "C" fn rdb_save<T: Family>(io: *mut RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a live `io` and a value of the type.
    let (mut rdb, entry) = unsafe { (Rdb::new(io), entry::<T>(value)) };
    let save = || match &entry.state {
        State::Ready(value) => value.save(&mut rdb),
        State::Partial(partial) => save_partial(&**partial, &mut rdb),
    };
    // SAFETY: `io` is this callback's.
    guard("rdb_save", save).unwrap_or_else(|| unsafe { fail(io) });
}

/// Loads a value of the data type [`Family::OWN_TYPE`].
///
/// # Safety
/// Must be called by the server.
pub unsafe extern "C" fn rdb_load<T: Family>(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    // SAFETY: the server passes a live `io`.
    load(unsafe { Rdb::new(io) }, encoding, family::load::<T>)
}

/// Loads a complete classic (RedisBloom-compatible) filter, which is stored as RedisBloom stores it.
///
/// # Safety
/// Must be called by the server.
pub unsafe extern "C" fn rdb_load_classic(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    // SAFETY: the server passes a live `io`.
    load(unsafe { Rdb::new(io) }, encoding, |rdb, encoding, limit| {
        redisbloom::load_rdb(rdb, encoding, limit).map(State::Ready)
    })
}

fn load<T: Family>(
    mut rdb: Rdb,
    encoding: c_int,
    load: fn(&mut Rdb, u32, &ServerLimit<'static>) -> Result<State<T>, Error>,
) -> *mut c_void {
    // SAFETY: `rdb` is live, see `Rdb::new`, and its key's name lives as long. It is null for a value without a key.
    let limit = ServerLimit::for_restore(unsafe { slot_import::includes(api!(RedisModule_GetKeyNameFromIO(rdb.0))) });
    let encoding = u32::try_from(encoding).unwrap_or(u32::MAX);
    let loaded = guard("rdb_load", || match load(&mut rdb, encoding, &limit) {
        Ok(state) => KeyEntry::new(state).into_raw(),
        Err(error) => {
            match error {
                Error::Corrupt { .. } => CORRUPT_REJECTED.count(),
                Error::OutOfMemory { .. } => MEMORY_REJECTED.count(),
                // The type `ServerLimit` counts what a size limit rejects.
                _ => {}
            }
            rdb.log(WARNING, &format!("rejected a stored {}: {error}", T::KIND));
            null_mut()
        }
    });
    loaded.unwrap_or(null_mut())
}

unsafe extern "C" fn aof_rewrite<T: Family>(io: *mut RedisModuleIO, key: *mut RedisModuleString, value: *mut c_void) {
    // SAFETY: the server passes a value of T.
    let entry = unsafe { entry::<T>(value) };
    let command = entry.state.prefix().name(Verb::LoadChunk).text();
    let emit = |next: u64, chunk: &[u8]| {
        // SAFETY: `io` and `key` are live; the format takes a string, a number, and bytes with their length.
        unsafe {
            api!(RedisModule_EmitAOF(
                io,
                command.as_ptr(),
                c"slb".as_ptr(),
                key,
                next as std::ffi::c_longlong,
                chunk.as_ptr().cast::<c_char>(),
                chunk.len()
            ))
        }
    };
    let rewritten = guard("aof_rewrite", || match &entry.state {
        State::Ready(value) => persist::dump(value).for_each(|(next, chunk)| emit(next, &chunk)),
        State::Partial(partial) => dump_partial(&**partial).for_each(|(next, chunk)| emit(next, &chunk)),
    });
    // SAFETY: `io` is this callback's.
    rewritten.unwrap_or_else(|| unsafe { fail(io) });
}

unsafe extern "C" fn mem_usage<T: Family>(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of T; it is only read.
    let entry = unsafe { entry::<T>(value) };
    guard("mem_usage", || entry.memory_bytes()).unwrap_or(0)
}

unsafe extern "C" fn digest<T: Family>(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of T.
    let entry = unsafe { entry::<T>(value) };
    let mut add = |bytes: &[u8]| {
        // SAFETY: the digest is live, and the server reads the bytes before the call returns.
        unsafe { api!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    };
    guard("digest", || {
        match &entry.state {
            State::Ready(value) => value.digest(&mut add),
            State::Partial(partial) => partial.digest(&mut add),
        }
        // SAFETY: the digest is live.
        unsafe { api!(RedisModule_DigestEndSequence(digest)) };
    });
}

unsafe extern "C" fn free<T: Family>(value: *mut c_void) {
    // SAFETY: the server frees a value of T once and does not use it afterwards.
    let entry = unsafe { KeyEntry::<T>::from_raw(value) };
    guard("free", || reclaim::dispose(entry, |entry| entry.num_bytes()));
}

/// The effort of freeing a value: one point per page of 4 KiB. Above 64 points, the server frees the value in the
/// background after UNLINK, FLUSHALL ASYNC and lazy expiry.
unsafe extern "C" fn free_effort<T: Family>(_key: *mut RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: the server passes a value of T; it is only read.
    let entry = unsafe { entry::<T>(value) };
    guard("free_effort", || entry.num_bytes() / 4096 + 1).unwrap_or(1)
}

unsafe extern "C" fn copy<T: Family>(
    _from: *mut RedisModuleString,
    to: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a live key, and a value of T, which is only read.
    let (is_imported, entry) = unsafe { (slot_import::includes(to), entry::<T>(value)) };
    let copied = guard("copy", || match entry.try_clone(&ServerLimit::for_copy(is_imported)) {
        Ok(copy) => copy.into_raw(),
        Err(error) => {
            log_anywhere(WARNING, &format!("could not copy a {}: {error}", T::KIND));
            null_mut()
        }
    });
    copied.unwrap_or(null_mut())
}

/// Moves a value's entry, then its large buffers one by one. Returns 0 when all are done. If the server asks to stop
/// earlier, returns 1 after it has stored the number of the next buffer, where a later call continues.
unsafe extern "C" fn defrag<T: Family>(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    let moved = guard("defrag", || {
        // SAFETY: the server passes the place where it keeps a value of T, and nobody else uses the value during this
        // call.
        unsafe {
            let mut cursor: c_ulong = 0;
            if api!(RedisModule_DefragCursorGet(ctx, &mut cursor)) != OK || cursor == 0 {
                cursor = 0;
                *value = alloc::defrag(ctx, (*value).cast(), Layout::new::<KeyEntry<T>>()).cast();
            }
            let State::Ready(inner) = &mut entry_mut::<T>(*value).state else { return 0 };
            // The cursor may come from an earlier value of the key. This does no harm: `relocate` returns false after
            // the last buffer, and not all buffers need to be moved.
            let mover = Defragmenter::new(ctx);
            while inner.relocate(cursor as usize, &mover) {
                cursor += 1;
                if api!(RedisModule_DefragShouldStop(ctx)) != 0 {
                    api!(RedisModule_DefragCursorSet(ctx, cursor));
                    return 1;
                }
            }
            0
        }
    });
    moved.unwrap_or(0)
}

/// A value that is being saved to or loaded from an RDB file or a `DUMP` payload.
struct Rdb(*mut RedisModuleIO);

impl Rdb {
    /// Wraps the server's handle.
    ///
    /// # Safety
    /// `io` is the parameter of the running callback. The result does not outlive that callback.
    unsafe fn new(io: *mut RedisModuleIO) -> Self {
        Rdb(io)
    }

    /// Writes a line with the module's name to the server's log.
    fn log(&self, level: &CStr, message: &str) {
        // SAFETY: `io` is live, see `new`, and so is its context.
        unsafe { ffi::log_to(api!(RedisModule_GetContextFromIO(self.0)), level, message) };
    }
}

/// The error for a stored value that is truncated or unreadable at `field`. Without the module's option
/// `HANDLE_IO_ERRORS`, the server would exit instead.
fn unreadable(field: &'static str) -> Error {
    Error::corrupt(field, "more bytes", "the end or unreadable ones")
}

impl Sink for Rdb {
    fn unsigned(&mut self, value: u64) {
        raw::save_unsigned(self.0, value);
    }

    fn double(&mut self, value: f64) {
        raw::save_double(self.0, value);
    }

    fn string(&mut self, bytes: &[u8]) {
        raw::save_slice(self.0, bytes);
    }
}

impl Source for Rdb {
    type Bytes = RedisBuffer;

    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        raw::load_unsigned(self.0).map_err(|_| unreadable(field))
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        raw::load_double(self.0).map_err(|_| unreadable(field))
    }

    fn string(&mut self, field: &'static str) -> Result<RedisBuffer, Error> {
        raw::load_string_buffer(self.0).map_err(|_| unreadable(field))
    }
}
