//! Reads and writes the fields of a value through the server's RDB interface.

use std::ffi::c_char;
use std::ptr::NonNull;

use redis_module::raw;
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::rdb::{Sink, Source};

use crate::server::api::api;
use crate::server::ffi::{self, LogLevel, RedisModuleCtx};

/// A value that the server is saving to or loading from an RDB file or a `DUMP` payload.
pub struct Rdb(*mut raw::RedisModuleIO);

impl Rdb {
    /// Wraps the server's handle of a value that is being saved or loaded.
    ///
    /// # Safety
    /// `io` is the parameter of the running callback. The result does not outlive that callback.
    pub unsafe fn new(io: *mut raw::RedisModuleIO) -> Self {
        Rdb(io)
    }

    /// Returns the context of the save or load, which has no client. It is live as long as `io`.
    fn ctx(&self) -> *mut RedisModuleCtx {
        // SAFETY: `io` is live, see `new`.
        unsafe { api!(RedisModule_GetContextFromIO(self.0)) }
    }

    /// Returns the flags of the context, `REDISMODULE_CTX_FLAGS_*`.
    pub fn flags(&self) -> u32 {
        // SAFETY: the context is live.
        unsafe { api!(RedisModule_GetContextFlags(self.ctx())) as u32 }
    }

    /// Writes a line with the module's name to the server's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        // SAFETY: the context is live.
        unsafe { ffi::log_to(self.ctx(), level, message) };
    }

    /// Returns [`Error::Corrupt`] with the name `field` if the server failed to read that field.
    fn check(&self, field: &'static str) -> Result<(), Error> {
        // SAFETY: `io` is live.
        if unsafe { api!(RedisModule_IsIOError(self.0)) } == 0 { Ok(()) } else { Err(unreadable(field)) }
    }
}

/// Returns the error for a stored value that is truncated or unreadable at `field`. The error is possible because the
/// module sets the option `HANDLE_IO_ERRORS`; otherwise the server would exit.
fn unreadable(field: &'static str) -> Error {
    Error::corrupt(field, "more bytes", "the end or unreadable ones")
}

impl Sink for Rdb {
    fn unsigned(&mut self, value: u64) {
        // SAFETY: `io` is live.
        unsafe { api!(RedisModule_SaveUnsigned(self.0, value)) };
    }

    fn double(&mut self, value: f64) {
        // SAFETY: `io` is live.
        unsafe { api!(RedisModule_SaveDouble(self.0, value)) };
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: `io` is live; the server copies or writes the bytes before it returns.
        unsafe { api!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }
}

impl Source for Rdb {
    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        // SAFETY: `io` is live.
        let value = unsafe { api!(RedisModule_LoadUnsigned(self.0)) };
        self.check(field).map(|()| value)
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        // SAFETY: `io` is live.
        let value = unsafe { api!(RedisModule_LoadDouble(self.0)) };
        self.check(field).map(|()| value)
    }

    fn string(&mut self, field: &'static str, read: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut len = 0;
        // SAFETY: `io` is live.
        let start = unsafe { api!(RedisModule_LoadStringBuffer(self.0, &mut len)) };
        let string = NonNull::new(start).map(|start| RdbString { start, len });
        self.check(field)?;
        read(string.ok_or_else(|| unreadable(field))?.bytes())
    }
}

/// A string that was read from the RDB, in memory of the server.
struct RdbString {
    start: NonNull<c_char>,
    len: usize,
}

impl RdbString {
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
