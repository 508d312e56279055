//! The primitives of RDB values, as the server reads and writes them.

use std::ffi::c_char;
use std::ptr::NonNull;

use redis_module::raw;

use crate::server::api::api;
use crate::server::ffi::{self, LogLevel, RedisModuleCtx};

/// The error of a value that ends too early or cannot be read. Without the module's option `HANDLE_IO_ERRORS` the
/// server would end instead.
#[derive(Debug)]
pub struct Unreadable;

/// A value being saved or loaded.
pub struct Rdb(*mut raw::RedisModuleIO);

impl Rdb {
    /// # Safety
    /// `io` is what the server passed to the running callback. The result does not outlive that callback.
    pub unsafe fn new(io: *mut raw::RedisModuleIO) -> Self {
        Rdb(io)
    }

    /// The context of the value. It is live as long as `io` is, and has no client.
    fn ctx(&self) -> *mut RedisModuleCtx {
        // SAFETY: `io` is live, see `new`.
        unsafe { api!(RedisModule_GetContextFromIO(self.0)) }
    }

    /// The flags of the context, `REDISMODULE_CTX_FLAGS_*`.
    pub fn flags(&self) -> u32 {
        // SAFETY: the context is live.
        unsafe { api!(RedisModule_GetContextFlags(self.ctx())) as u32 }
    }

    /// Writes a line with the module's name to the server's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        // SAFETY: the context is live.
        unsafe { ffi::log_to(self.ctx(), level, message) };
    }

    pub fn save_unsigned(&mut self, value: u64) {
        // SAFETY: `io` is live.
        unsafe { api!(RedisModule_SaveUnsigned(self.0, value)) };
    }

    pub fn save_double(&mut self, value: f64) {
        // SAFETY: `io` is live.
        unsafe { api!(RedisModule_SaveDouble(self.0, value)) };
    }

    pub fn save_string(&mut self, bytes: &[u8]) {
        // SAFETY: `io` is live; the server copies or writes the bytes before it returns.
        unsafe { api!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }

    pub fn load_unsigned(&mut self) -> Result<u64, Unreadable> {
        // SAFETY: `io` is live.
        let value = unsafe { api!(RedisModule_LoadUnsigned(self.0)) };
        self.check().map(|()| value)
    }

    pub fn load_double(&mut self) -> Result<f64, Unreadable> {
        // SAFETY: `io` is live.
        let value = unsafe { api!(RedisModule_LoadDouble(self.0)) };
        self.check().map(|()| value)
    }

    pub fn load_string(&mut self) -> Result<RdbString, Unreadable> {
        let mut len = 0;
        // SAFETY: `io` is live.
        let start = unsafe { api!(RedisModule_LoadStringBuffer(self.0, &mut len)) };
        let string = NonNull::new(start).map(|start| RdbString { start, len });
        self.check()?;
        string.ok_or(Unreadable)
    }

    fn check(&self) -> Result<(), Unreadable> {
        // SAFETY: `io` is live.
        if unsafe { api!(RedisModule_IsIOError(self.0)) } == 0 { Ok(()) } else { Err(Unreadable) }
    }
}

/// A loaded string, in the server's memory.
pub struct RdbString {
    start: NonNull<c_char>,
    len: usize,
}

impl RdbString {
    pub fn bytes(&self) -> &[u8] {
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
