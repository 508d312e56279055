//! Safe types around the server's raw API.
//!
//! Commands use the bindings of the crate `redis-module`, not its wrappers. The wrappers retain every argument and
//! build a tree of values for every reply, which costs more than hashing the items and probing the filter. All
//! functions here run while the server's lock is held, unless their comments say otherwise.

use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::api::api;

pub use raw::{
    REDISMODULE_NOTIFY_GENERIC as NOTIFY_GENERIC, REDISMODULE_NOTIFY_MODULE as NOTIFY_MODULE, RedisModuleCtx,
    RedisModuleString,
};

pub const OK: c_int = raw::REDISMODULE_OK as c_int;
pub const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Runs `body`. If it panics, logs the panic and returns `None`: a panic must not unwind into the server.
pub fn guard<T>(what: &str, body: impl FnOnce() -> T) -> Option<T> {
    let log = |_: &_| log_anywhere(WARNING, &format!("internal error in {what}; please report it"));
    catch_unwind(AssertUnwindSafe(body)).inspect_err(log).ok()
}

pub const NOTICE: &CStr = c"notice";
pub const WARNING: &CStr = c"warning";

/// Writes a line to the server's log without a context. The server adds the module's name only with a context, so this
/// function adds it.
pub fn log_anywhere(level: &CStr, message: &str) {
    // SAFETY: a null context is allowed.
    unsafe { log_to(null_mut(), level, &format!("rollcall: {message}")) };
}

/// Writes a line to the server's log.
///
/// # Safety
/// `ctx` is live, or null.
pub unsafe fn log_to(ctx: *mut RedisModuleCtx, level: &CStr, message: &str) {
    let message = c_text(message);
    // SAFETY: both strings end with NUL and outlive the call; the format takes exactly one of them. Without this
    // function, nothing can be logged.
    unsafe {
        if let Some(log) = raw::RedisModule_Log {
            log(ctx, level.as_ptr(), c"%s".as_ptr(), message.as_ptr());
        }
    }
}

/// Converts a text that ends with NUL, at compile time.
pub const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a NUL at the end, and nowhere else"),
    }
}

/// NUL and line ends become spaces, because they would end a reply or a log line early.
fn c_text(text: &str) -> CString {
    let clean: String = text.chars().map(|c| if matches!(c, '\0' | '\r' | '\n') { ' ' } else { c }).collect();
    CString::new(clean).unwrap_or_default()
}

/// The context of a running command, or of loading the module. It is live for `'a`, until the module returns to the
/// server. While the module loads, there is no client, and so no reply and no database in which keys could be opened.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    ptr: *mut RedisModuleCtx,
    /// The cached result of [`must_obey`](super::facts::must_obey).
    pub(super) obeyed: &'a OnceCell<bool>,
}

impl Ctx<'_> {
    pub fn as_ptr(self) -> *mut RedisModuleCtx {
        self.ptr
    }

    pub fn log(self, level: &CStr, message: &str) {
        // SAFETY: the context is live.
        unsafe { log_to(self.ptr, level, message) };
    }

    /// The flags of the context, `REDISMODULE_CTX_FLAGS_*`.
    pub fn flags(self) -> u32 {
        // SAFETY: the context is live.
        unsafe { api!(RedisModule_GetContextFlags(self.ptr)) as u32 }
    }

    pub fn is_resp3(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_RESP3 != 0
    }

    /// Opens a key.
    ///
    /// # Errors
    /// [`KeyError::InUse`], only for [`Mode::Write`].
    pub fn open<'k>(self, name: Arg<'k>, mode: Mode) -> Result<Key<'k>, KeyError> {
        let flags = match mode {
            Mode::Read => raw::REDISMODULE_READ,
            Mode::Inspect => raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOTOUCH,
            Mode::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        // SAFETY: the context and the name are live; the server knows the mode.
        let key = NonNull::new(unsafe { api!(RedisModule_OpenKey(self.ptr, name.ptr, flags as c_int)) });
        if key.is_none() && mode == Mode::Write { Err(KeyError::InUse) } else { Ok(Key { key, name }) }
    }

    /// Announces that a key has changed: to WATCH, to client-side caches and to subscribers of keyspace events.
    ///
    /// No key may be open during this call. Another module that receives the event may delete any key, and the server
    /// would still read the deleted value when it closes the key.
    pub fn changed(self, key: Closed<'_>, event: &CStr) {
        // SAFETY: context and name are live.
        unsafe { api!(RedisModule_SignalModifiedKey(self.ptr, key.0.ptr)) };
        self.notify(NOTIFY_MODULE, key, event);
    }

    /// Sends only a keyspace event of this class; WATCH and client-side caches do not learn of the change.
    pub fn notify(self, class: c_int, key: Closed<'_>, event: &CStr) {
        // SAFETY: context and name are live; the event name ends with NUL.
        unsafe { api!(RedisModule_NotifyKeyspaceEvent(self.ptr, class, event.as_ptr(), key.0.ptr)) };
    }

    /// The server's clock, in milliseconds since 1970.
    pub fn now_ms(self) -> i64 {
        // SAFETY: takes no arguments.
        unsafe { api!(RedisModule_Milliseconds()) }
    }

    /// The server's clock, in seconds since 1970; 0 before 1970.
    pub fn now_seconds(self) -> u64 {
        u64::try_from(self.now_ms()).unwrap_or(0) / 1000
    }

    /// Replicates the running command under the name `name`. `args` has all its arguments.
    ///
    /// The server replicates the array of arguments that it passed, so this function replaces the name in that array.
    /// `RM_Replicate` would copy all arguments even without a replica or an AOF. The API does not promise which array
    /// is replicated; tests compare replicas on every supported server.
    pub fn replicate_under(self, name: &Name, args: Args<'_>) {
        let came = args.0.first().map(|first| (first, first.replace(name.string())));
        raw::replicate_verbatim(self.ptr);
        if let Some((first, before)) = came {
            first.set(before);
        }
    }

    /// Replicates `command` with `arguments`, instead of the running command.
    pub fn replicate(self, command: &CStr, arguments: &[Arg<'_>]) {
        let strings: *const *mut RedisModuleString = arguments.as_ptr().cast();
        // SAFETY: `v` takes a pointer to live strings, which the server reads, and their number. An `Arg` is a pointer.
        unsafe { api!(RedisModule_Replicate(self.ptr, command.as_ptr(), c"v".as_ptr(), strings, arguments.len())) };
    }

    // Each of these methods writes a reply to the client that sent the command.

    pub fn reply_integer(self, value: i64) {
        raw::reply_with_long_long(self.ptr, value);
    }

    /// Replies with a boolean in RESP3, with 1 or 0 in RESP2.
    pub fn reply_bool(self, value: bool) {
        raw::reply_with_bool(self.ptr, value.into());
    }

    pub fn reply_bulk(self, bytes: &[u8]) {
        raw::reply_with_string_buffer(self.ptr, bytes.as_ptr().cast(), bytes.len());
    }

    pub fn reply_simple(self, text: &CStr) {
        raw::reply_with_simple_string(self.ptr, text.as_ptr());
    }

    /// Replies with a simple string.
    pub fn reply_line(self, text: &str) {
        self.reply_simple(&c_text(text));
    }

    /// Replies with a double in RESP3. In RESP2, the reply is the shortest text that parses to the same number.
    pub fn reply_double(self, value: f64) {
        if self.is_resp3() {
            raw::reply_with_double(self.ptr, value);
        } else {
            self.reply_bulk(format!("{value:?}").trim_end_matches(".0").as_bytes());
        }
    }

    pub fn reply_null(self) {
        raw::reply_with_null(self.ptr);
    }

    /// Whether the server only asks which arguments are keys. The command must then neither reply nor change anything.
    pub fn is_asked_for_keys(self) -> bool {
        // SAFETY: the context is that of the running command.
        unsafe { api!(RedisModule_IsKeysPositionRequest(self.ptr)) != 0 }
    }

    /// Reports that the argument at `position` is a key that the command reads. Allowed only if
    /// [`Self::is_asked_for_keys`] is true.
    pub fn report_key(self, position: usize) {
        let flags = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
        // SAFETY: as above.
        unsafe { api!(RedisModule_KeyAtPosWithFlags(self.ptr, position as c_int, flags as c_int)) };
    }

    pub fn reply_array(self, len: usize) {
        OWES_ELEMENTS.store(true, Ordering::Relaxed);
        raw::reply_with_array(self.ptr, len as c_long);
    }

    /// Begins a reply of `pairs` pairs: a map in RESP3, a flat array in RESP2.
    pub fn reply_map(self, pairs: usize) {
        OWES_ELEMENTS.store(true, Ordering::Relaxed);
        raw::reply_with_map(self.ptr, pairs as c_long);
    }

    pub fn reply_error(self, text: &str) {
        raw::reply_with_error(self.ptr, c_text(text).as_ptr());
    }

    pub fn reply_wrong_arity(self) {
        // SAFETY: the context is live.
        unsafe { api!(RedisModule_WrongArity(self.ptr)) };
    }
}

/// One argument of a command, in the server's memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Arg<'a> {
    ptr: *mut RedisModuleString,
    _args: PhantomData<&'a [u8]>,
}

impl<'a> Arg<'a> {
    /// Wraps a string of the server.
    ///
    /// # Safety
    /// `ptr` is a string of the server that stays alive and unchanged for `'a`.
    pub unsafe fn new(ptr: *mut RedisModuleString) -> Self {
        Arg { ptr, _args: PhantomData }
    }

    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string is live for 'a, and the server does not move it during this time (see `new`).
        unsafe {
            let start = api!(RedisModule_StringPtrLen(self.ptr, &mut len));
            std::slice::from_raw_parts(start.cast(), len)
        }
    }
}

/// The arguments of the running command, beginning with its name. They are cells, because [`Ctx::replicate_under`]
/// replaces the name temporarily.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [Cell<*mut RedisModuleString>]);

impl<'a> Args<'a> {
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// The caller must have checked the number of arguments.
    #[inline]
    pub fn get(self, index: usize) -> Arg<'a> {
        Arg { ptr: self.0[index].get(), _args: PhantomData }
    }

    /// The arguments from `index` to the end; none if `index` is past the end.
    pub fn from(self, index: usize) -> Args<'a> {
        Args(&self.0[index.min(self.0.len())..])
    }

    /// The first `len` arguments, or all if there are fewer.
    pub fn first(self, len: usize) -> Args<'a> {
        Args(&self.0[..len.min(self.0.len())])
    }

    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Arg<'a>> + Clone {
        self.0.iter().map(|arg| Arg { ptr: arg.get(), _args: PhantomData })
    }

    #[inline]
    pub fn bytes(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.iter().map(Arg::bytes)
    }
}

/// A string of the server that this module created, and frees.
pub struct OwnedString(*mut RedisModuleString);

// SAFETY: the server counts references to a string without synchronisation. So every thread that uses a string holds
// the server's lock, as all commands do.
unsafe impl Send for OwnedString {}

// SAFETY: as above.
unsafe impl Sync for OwnedString {}

impl OwnedString {
    /// Copies `text` to a string of the server.
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        // SAFETY: the server copies the text. No context is passed, so the server does not free the string; `Drop`
        // frees it.
        OwnedString(unsafe { api!(RedisModule_CreateString(null_mut(), text.as_ptr().cast(), text.len())) })
    }

    /// The server's string, which is freed when `self` is dropped.
    pub fn as_ptr(&self) -> *mut RedisModuleString {
        self.0
    }

    pub fn as_arg(&self) -> Arg<'_> {
        Arg { ptr: self.0, _args: PhantomData }
    }
}

impl Drop for OwnedString {
    fn drop(&mut self) {
        // SAFETY: the string was created without a context, and it is freed once.
        unsafe { api!(RedisModule_FreeString(null_mut(), self.0)) };
    }
}

/// A name under which a command is replicated. Its string is created at the first use, and never freed.
pub struct Name {
    text: &'static CStr,
    string: OnceLock<OwnedString>,
}

impl Name {
    pub const fn new(text: &'static CStr) -> Self {
        Name { text, string: OnceLock::new() }
    }

    pub fn text(&self) -> &'static CStr {
        self.text
    }

    #[inline]
    fn string(&self) -> *mut RedisModuleString {
        self.string.get_or_init(|| OwnedString::new(self.text.to_bytes())).as_ptr()
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Read,
    /// For reading facts about the value. This does not count as a use of the key (LRU, LFU).
    Inspect,
    /// For reading and writing, in commands with the flag `write`.
    Write,
}

/// Why a command cannot use a key.
#[derive(Debug)]
pub enum KeyError {
    /// The key holds a value of another type than the command expects.
    OtherType,
    /// Another thread of the server is saving the key (Valkey 9.2). This is rare, because the server delays commands
    /// that name such a key.
    InUse,
}

/// An open key. Dropping it closes the key. No event may be sent while a key is open: see [`Ctx::changed`].
pub struct Key<'a> {
    /// The server's handle; `None` if the key was opened for reading and is missing.
    key: Option<NonNull<raw::RedisModuleKey>>,
    name: Arg<'a>,
}

/// The name of a closed key. Events require this type, because they may be sent only after the key is closed.
#[derive(Clone, Copy)]
pub struct Closed<'a>(Arg<'a>);

impl<'a> Closed<'a> {
    pub fn name(self) -> Arg<'a> {
        self.0
    }
}

impl<'a> Key<'a> {
    /// Closes the key and returns its name.
    pub fn close(self) -> Closed<'a> {
        Closed(self.name)
    }

    pub fn is_missing(&self) -> bool {
        match self.key {
            None => true,
            // SAFETY: the key is open.
            Some(key) => unsafe { api!(RedisModule_KeyType(key.as_ptr())) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int },
        }
    }

    /// The value of the key, if `is_ours` accepts its type; `None` if the key is missing.
    ///
    /// # Errors
    /// [`KeyError::OtherType`] if the key holds a value of another type.
    #[inline]
    pub fn value(
        &self,
        is_ours: impl FnOnce(*mut raw::RedisModuleType) -> bool,
    ) -> Result<Option<NonNull<c_void>>, KeyError> {
        let Some(key) = self.key else { return Ok(None) };
        // SAFETY: the key is open. `ModuleTypeGetType` returns null for a value that does not belong to a module.
        unsafe {
            let module_type = api!(RedisModule_ModuleTypeGetType(key.as_ptr()));
            if !module_type.is_null() && is_ours(module_type) {
                return Ok(NonNull::new(api!(RedisModule_ModuleTypeGetValue(key.as_ptr()))));
            }
        }
        if self.is_missing() { Ok(None) } else { Err(KeyError::OtherType) }
    }

    /// The time at which the key expires, in milliseconds since 1970.
    pub fn expiry(&self) -> Option<i64> {
        let key = self.key?;
        // SAFETY: the key is open.
        let expiry = unsafe { api!(RedisModule_GetAbsExpire(key.as_ptr())) };
        (expiry != i64::from(raw::REDISMODULE_NO_EXPIRE)).then_some(expiry)
    }

    /// Sets the time at which the key expires, in milliseconds since 1970. `None` changes nothing.
    pub fn set_expiry(&mut self, expiry: Option<i64>) {
        if let (Some(key), Some(expiry)) = (self.key, expiry) {
            // SAFETY: the key is open for writing and holds a value.
            unsafe { api!(RedisModule_SetAbsExpire(key.as_ptr(), expiry)) };
        }
    }

    /// Stores a value in the key, and frees the previous value. Returns false if the key is not open for writing.
    ///
    /// # Safety
    /// `value` has the Rust type that the callbacks of `module_type` expect. The server owns `value` afterwards.
    pub unsafe fn set_value(&mut self, module_type: *mut raw::RedisModuleType, value: *mut c_void) -> bool {
        let Some(key) = self.key else { return false };
        // SAFETY: the key is open; the caller promises the value's type.
        unsafe { api!(RedisModule_ModuleTypeSetValue(key.as_ptr(), module_type, value)) == OK }
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            raw::close_key(key.as_ptr());
        }
    }
}

/// Whether the running command has begun a reply with several elements, so that elements may still be missing.
static OWES_ELEMENTS: AtomicBool = AtomicBool::new(false);

/// Replies with an error to a command that has panicked. If elements of a reply are missing, the client would take
/// later replies for them, so its connection is closed.
fn reply_panicked(ctx: Ctx) {
    ctx.reply_error("ERR internal error, see the server's log");
    if OWES_ELEMENTS.load(Ordering::Relaxed) && ctx.flags() & raw::REDISMODULE_CTX_FLAGS_REPLICATED == 0 {
        // SAFETY: the context is live. If the command runs in a script, there is no connection to close, and the call
        // does nothing.
        unsafe {
            let client = api!(RedisModule_GetClientId(ctx.ptr));
            api!(RedisModule_DeauthenticateAndCloseClient(ctx.ptr, client));
        }
    }
}

/// Runs a command by calling `handler`. If it fails, `reply_error` replies with the error.
///
/// # Safety
/// The server passed `ctx`, `argv` and `argc` to a command.
pub unsafe fn run_command<E>(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
    handler: impl for<'a> FnOnce(Ctx<'a>, Args<'a>) -> Result<(), E>,
    reply_error: impl FnOnce(Ctx<'_>, E),
) -> c_int {
    let obeyed = OnceCell::new();
    let ctx = Ctx { ptr: ctx, obeyed: &obeyed };
    OWES_ELEMENTS.store(false, Ordering::Relaxed);
    let ran = guard("a command", || {
        let len = if argc > 0 { argc as usize } else { 0 };
        // SAFETY: the server passes `argc` live strings, and keeps them until the command returns. No other code writes
        // the array during the command. `loadmodule` without arguments passes null.
        let args = Args(if len > 0 { unsafe { std::slice::from_raw_parts(argv.cast(), len) } } else { &[] });
        if let Err(error) = handler(ctx, args) {
            reply_error(ctx, error);
        }
    });
    ran.unwrap_or_else(|| reply_panicked(ctx));
    OK
}
