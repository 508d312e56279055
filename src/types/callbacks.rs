//! The two data types as the server sees them: callbacks to save, load, rewrite, free, measure, copy, digest
//! and defragment a value. They are generic over the family, so that both behave alike by construction.
//!
//! A value in the keyspace is a `Box<Entry<T>>`, given to the server as a raw pointer and taken back in `free`.

use std::alloc::Layout;
use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering;

use redis_module::raw;

use crate::limits::ServerLimit;
use crate::server::ffi::{Ctx, Key, LogLevel, OK, OtherType, api, guard, log_anywhere};
use crate::server::metrics::CORRUPT_REFUSED;
use crate::server::{alloc, reclaim, resident};
use crate::types::family::Family;
use rollcall_core::bits;
use rollcall_core::error::Error;
use rollcall_core::persist::redisbloom::RdbSource;
use rollcall_core::persist::{self, Loading, RDB_PIECE_BYTES, Stored};
use rollcall_core::size_limit::{SizeLimit, Unlimited};

/// What the server allocates around a module's value and leaves to the module to count: its object and the pair of
/// type and pointer, 16 bytes each.
const SERVER_OBJECT_BYTES: usize = 32;

/// A value in the keyspace.
pub struct Entry<T: Family> {
    pub state: State<T>,
}

/// Complete, or still arriving by `LOADCHUNK`.
pub enum State<T: Stored> {
    Ready(T),
    Loading(T::Loading),
}

impl<T: Family> Entry<T> {
    fn new(state: State<T>) -> Box<Self> {
        T::registry().live.fetch_add(1, Ordering::Relaxed);
        Box::new(Entry { state })
    }

    pub fn ready(value: T) -> Box<Self> {
        Self::new(State::Ready(value))
    }

    pub fn loading(loading: T::Loading) -> Box<Self> {
        Self::new(State::Loading(loading))
    }

    fn visit_heap(&self, visit: &mut dyn FnMut(Layout)) {
        match &self.state {
            State::Ready(value) => value.heap_layouts(visit),
            State::Loading(loading) => loading.heap_layouts(visit),
        }
    }

    /// Bytes that the allocator set aside for this value and for what the server wraps it in.
    pub fn memory_bytes(&self) -> usize {
        let mut bytes = SERVER_OBJECT_BYTES + alloc::usable_layout_size(Layout::new::<Self>());
        self.visit_heap(&mut |layout| bytes += alloc::usable_layout_size(layout));
        bytes
    }

    /// Once all of the payload has arrived, makes the value of it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the payload is no value.
    pub fn settle(&mut self) -> Result<(), Error> {
        if let State::Loading(loading) = &mut self.state
            && loading.received_bytes() == loading.total_bytes()
        {
            self.state = State::Ready(loading.finish()?);
        }
        Ok(())
    }

    /// Makes a value of what has arrived, if RedisBloom would have had one by now.
    pub fn settle_with_zeros(&mut self) {
        if let State::Loading(loading) = &mut self.state
            && let Some(value) = loading.finish_with_zeros()
        {
            self.state = State::Ready(value);
        }
    }

    fn try_clone(&self) -> Result<Box<Self>, Error> {
        Ok(Self::new(match &self.state {
            State::Ready(value) => State::Ready(value.try_clone()?),
            State::Loading(loading) => State::Loading(loading.try_clone()?),
        }))
    }
}

impl<T: Family> Drop for Entry<T> {
    fn drop(&mut self) {
        T::registry().live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The one place where a pointer from the server becomes one of ours.
///
/// # Safety
/// `value` was given to the server as a value of `T`'s type and has not been freed; no reference to it that
/// would alias is live.
unsafe fn entry<'a, T: Family>(value: *const c_void) -> &'a mut Entry<T> {
    // SAFETY: every value of T's type was made by `Box::into_raw` of a `Box<Entry<T>>`.
    unsafe { &mut *value.cast::<Entry<T>>().cast_mut() }
}

/// The value of an open key, for as long as the key is open; `None` if the key is missing.
pub fn entry_of<'k, T: Family>(key: &'k mut Key<'_>) -> Result<Option<&'k mut Entry<T>>, OtherType> {
    let value = key.value(T::registry().module_type())?;
    // SAFETY: the type was compared just now; the key is borrowed mutably meanwhile. No command opens two keys under
    // one name to change the value of one.
    Ok(value.map(|value| unsafe { entry::<T>(value.as_ptr()) }))
}

/// As [`entry_of`], to read.
pub fn peek_entry<'k, T: Family>(key: &'k Key<'_>) -> Result<Option<&'k Entry<T>>, OtherType> {
    let value = key.value(T::registry().module_type())?;
    // SAFETY: as in `entry_of`, for reading.
    Ok(value.map(|value| unsafe { &*value.as_ptr().cast::<Entry<T>>() }))
}

/// Stores a value in a key open for writing.
pub fn set_entry<T: Family>(key: &Key<'_>, entry: Box<Entry<T>>) -> bool {
    let raw = Box::into_raw(entry);
    // SAFETY: the pointer is what the callbacks of T's type expect.
    let stored = unsafe { key.set_value(T::registry().module_type(), raw.cast()) };
    if !stored {
        // SAFETY: the server did not take it.
        drop(unsafe { Box::from_raw(raw) });
    }
    stored
}

/// Registers the type. False if the server refuses, because the name is taken.
pub fn register<T: Family>(ctx: Ctx) -> bool {
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(rdb_load::<T>),
        rdb_save: Some(rdb_save::<T>),
        aof_rewrite: Some(aof_rewrite::<T>),
        mem_usage: Some(mem_usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(free_effort::<T>),
        unlink: None,
        copy: Some(copy::<T>),
        defrag: Some(defrag::<T>),
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    };
    // SAFETY: the server copies the methods; each takes values of T as `Entry<T>`.
    let module_type =
        unsafe { api!(RedisModule_CreateDataType(ctx.as_ptr(), T::TYPE_NAME.as_ptr(), T::RDB_ENCODING, &mut methods)) };
    T::registry().set_module_type(module_type);
    !module_type.is_null()
}

// Callbacks. Each catches panics; none may be called with a null value.

unsafe extern "C" fn rdb_save<T: Family>(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of T.
    let entry = unsafe { entry::<T>(value) };
    let save = |header: &[u8], payload: persist::Payload<'_>, shape: u64| {
        let payload_bytes = payload.len();
        // SAFETY: `io` is live; the server copies or writes the bytes before it returns.
        unsafe {
            api!(RedisModule_SaveStringBuffer(io, header.as_ptr().cast::<c_char>(), header.len()));
            api!(RedisModule_SaveUnsigned(io, payload_bytes));
            api!(RedisModule_SaveUnsigned(io, persist::length_checksum(payload_bytes, shape)));
            for (position, piece) in payload.pieces(RDB_PIECE_BYTES) {
                api!(RedisModule_SaveStringBuffer(io, piece.as_ptr().cast::<c_char>(), piece.len()));
                api!(RedisModule_SaveUnsigned(io, persist::piece_checksum(&piece, position, shape)));
            }
        }
    };
    guard(
        "rdb_save",
        || match &entry.state {
            State::Ready(value) => save(&value.header(), value.payload(), value.shape()),
            State::Loading(loading) => save(loading.header(), loading.received(), loading.shape()),
        },
        || (),
    );
}

unsafe extern "C" fn rdb_load<T: Family>(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    // SAFETY: `io` is live; its context carries the server's state, and our name into the log.
    let ctx = unsafe { Ctx::new(api!(RedisModule_GetContextFromIO(io))) };
    let load = || -> Result<Box<Entry<T>>, Error> {
        match ServerLimit::for_restore(ctx) {
            Some(limit) => load_value::<T>(io, encoding, &limit),
            None => load_value::<T>(io, encoding, &Unlimited),
        }
    };
    guard(
        "rdb_load",
        || match load() {
            Ok(entry) => Box::into_raw(entry).cast(),
            Err(error) => {
                CORRUPT_REFUSED.count();
                ctx.log(LogLevel::Warning, &format!("refused a stored {}: {error}", T::NOUN.word()));
                null_mut()
            }
        },
        null_mut,
    )
}

fn load_value<T: Family>(
    io: *mut raw::RedisModuleIO,
    encoding: c_int,
    limit: &impl SizeLimit,
) -> Result<Box<Entry<T>>, Error> {
    if encoding != T::RDB_ENCODING {
        return Ok(Entry::ready(T::decode_foreign(&mut RdbReader(io), encoding, limit)?));
    }
    let mut loading = T::Loading::begin(RdbString::load(io, "header")?.bytes(), limit)?;
    let stored_bytes = load_unsigned(io, "payload length")?;
    let sum = load_unsigned(io, "payload length checksum")?;
    let expected = persist::length_checksum(stored_bytes, loading.shape());
    if sum != expected {
        return Err(Error::corrupt("payload length checksum", expected, sum));
    }
    if stored_bytes > loading.total_bytes() {
        return Err(Error::corrupt("payload length", format_args!("at most {}", loading.total_bytes()), stored_bytes));
    }
    while loading.received_bytes() < stored_bytes {
        let piece = RdbString::load(io, "payload")?;
        if piece.bytes().is_empty() || piece.bytes().len() as u64 > stored_bytes - loading.received_bytes() {
            return Err(Error::corrupt(
                "payload piece",
                format_args!("1 to {} bytes", stored_bytes - loading.received_bytes()),
                piece.bytes().len(),
            ));
        }
        let sum = load_unsigned(io, "payload checksum")?;
        persist::check_piece(&loading, piece.bytes(), sum)?;
        if bits::fills_every_page(piece.bytes()) {
            resident::make_resident(loading.next_memory(piece.bytes().len()));
        }
        loading.push(piece.bytes())?;
    }
    let mut entry = Entry::<T>::loading(loading);
    entry.settle()?;
    Ok(entry)
}

/// Whether reading failed; needs `HANDLE_IO_ERRORS`, without which the server ends instead.
fn check_io(io: *mut raw::RedisModuleIO, field: &'static str) -> Result<(), Error> {
    // SAFETY: `io` is live.
    if unsafe { api!(RedisModule_IsIOError(io)) } != 0 {
        return Err(Error::corrupt(field, "more bytes", "the end or unreadable ones"));
    }
    Ok(())
}

fn load_unsigned(io: *mut raw::RedisModuleIO, field: &'static str) -> Result<u64, Error> {
    // SAFETY: `io` is live.
    let value = unsafe { api!(RedisModule_LoadUnsigned(io)) };
    check_io(io, field)?;
    Ok(value)
}

/// The primitives of an RDB value that another module wrote.
pub struct RdbReader(*mut raw::RedisModuleIO);

impl RdbSource for RdbReader {
    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        load_unsigned(self.0, field)
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        // SAFETY: `io` is live: the reader does not outlive the callback.
        let value = unsafe { api!(RedisModule_LoadDouble(self.0)) };
        check_io(self.0, field)?;
        Ok(value)
    }

    fn string(&mut self, field: &'static str, read: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        read(RdbString::load(self.0, field)?.bytes())
    }
}

/// A string read from an RDB stream, in the server's memory.
struct RdbString {
    start: NonNull<c_char>,
    len: usize,
}

impl RdbString {
    fn load(io: *mut raw::RedisModuleIO, field: &'static str) -> Result<Self, Error> {
        let mut len = 0;
        // SAFETY: `io` is live.
        let start = unsafe { api!(RedisModule_LoadStringBuffer(io, &mut len)) };
        let string = NonNull::new(start).map(|start| RdbString { start, len });
        check_io(io, field)?;
        string.ok_or_else(|| Error::corrupt(field, "a string", "none"))
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the server gave `len` bytes, ours until freed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl Drop for RdbString {
    fn drop(&mut self) {
        // SAFETY: given by the server for us to free, once.
        unsafe { api!(RedisModule_Free(self.start.as_ptr().cast())) };
    }
}

unsafe extern "C" fn aof_rewrite<T: Family>(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: the server passes a value of T.
    let entry = unsafe { entry::<T>(value) };
    let emit = |next: u64, chunk: &[u8]| {
        // SAFETY: `io` and `key` are live; the format takes a string, a number, and bytes with their length.
        unsafe {
            api!(RedisModule_EmitAOF(
                io,
                T::LOADCHUNK.as_ptr(),
                c"slb".as_ptr(),
                key,
                next as std::ffi::c_longlong,
                chunk.as_ptr().cast::<c_char>(),
                chunk.len()
            ))
        }
    };
    guard(
        "aof_rewrite",
        || match &entry.state {
            State::Ready(value) => persist::dump(value).for_each(|(next, chunk)| emit(next, &chunk)),
            State::Loading(loading) => persist::dump_loading(loading).for_each(|(next, chunk)| emit(next, &chunk)),
        },
        || (),
    );
}

unsafe extern "C" fn mem_usage<T: Family>(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of T; it is only read.
    let entry = unsafe { entry::<T>(value) };
    guard("mem_usage", || entry.memory_bytes(), || 0)
}

unsafe extern "C" fn digest<T: Family>(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of T.
    let entry = unsafe { entry::<T>(value) };
    let mut add = |bytes: &[u8]| {
        // SAFETY: the digest is live; the bytes are read before it returns.
        unsafe { api!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    };
    guard(
        "digest",
        || {
            match &entry.state {
                State::Ready(value) => value.digest(&mut add),
                State::Loading(loading) => {
                    add(loading.header());
                    loading.received().pieces(RDB_PIECE_BYTES).for_each(|(_, piece)| add(&piece));
                }
            }
            // SAFETY: the digest is live.
            unsafe { api!(RedisModule_DigestEndSequence(digest)) };
        },
        || (),
    );
}

unsafe extern "C" fn free<T: Family>(value: *mut c_void) {
    // SAFETY: made by `Box::into_raw`; the server frees a value once and does not use it afterwards.
    let entry = unsafe { Box::from_raw(value.cast::<Entry<T>>()) };
    guard(
        "free",
        || {
            let bytes = entry.memory_bytes();
            reclaim::dispose(entry, bytes)
        },
        || (),
    );
}

/// The server frees values of an effort above 64 in the background (UNLINK, FLUSHALL ASYNC, lazy expiry): one
/// point for each 4 KiB page, which is what giving memory back costs.
unsafe extern "C" fn free_effort<T: Family>(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: the server passes a value of T; it is only read.
    let entry = unsafe { entry::<T>(value) };
    guard("free_effort", || entry.memory_bytes() / 4096 + 1, || 1)
}

unsafe extern "C" fn copy<T: Family>(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of T; it is only read.
    let entry = unsafe { entry::<T>(value) };
    guard(
        "copy",
        || match entry.try_clone() {
            Ok(copy) => Box::into_raw(copy).cast(),
            Err(error) => {
                log_anywhere(LogLevel::Warning, &format!("could not copy a {}: {error}", T::NOUN.word()));
                null_mut()
            }
        },
        null_mut,
    )
}

/// Moves one value's buffers, within one call of the server's defragmenter.
pub struct Mover {
    ctx: *mut raw::RedisModuleDefragCtx,
}

impl Mover {
    /// Moves a buffer to where the allocator would rather have it.
    pub fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        let layout = Layout::for_value(&*buffer);
        let len = buffer.len();
        let start = Box::into_raw(buffer).cast::<E>();
        // SAFETY: the block is ours and unreferenced; the server copies its bytes, which moves a value in Rust
        // too, and the new block has the layout that the box will free it with.
        unsafe {
            let moved = alloc::defrag(self.ctx, start.cast(), layout).cast::<E>();
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(moved, len))
        }
    }
}

/// Moves the entry, then its large buffers one by one; stops when the server says so and goes on there later.
/// Returns 0 when done, 1 when there is more.
unsafe extern "C" fn defrag<T: Family>(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guard(
        "defrag",
        || {
            // SAFETY: the server passes the place where it keeps a value of T; nobody else uses it meanwhile.
            unsafe {
                let mut cursor: c_ulong = 0;
                if api!(RedisModule_DefragCursorGet(ctx, &mut cursor)) != OK || cursor == 0 {
                    cursor = 0;
                    *value = alloc::defrag(ctx, (*value).cast(), Layout::new::<Entry<T>>()).cast();
                }
                let State::Ready(inner) = &mut entry::<T>(*value).state else { return 0 };
                let mover = Mover { ctx };
                while inner.relocate(cursor as usize, &mover) {
                    cursor += 1;
                    if api!(RedisModule_DefragShouldStop(ctx)) != 0 {
                        api!(RedisModule_DefragCursorSet(ctx, cursor));
                        return 1;
                    }
                }
                0
            }
        },
        || 0,
    )
}
