//! Reads and writes the fields of a value through the server's RDB interface.

use std::ffi::CStr;

use redis_module::{RedisBuffer, raw};
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::rdb::{Sink, Source};

use crate::server::api::api;
use crate::server::ffi;

/// A value that is being saved to or loaded from an RDB file or a `DUMP` payload.
pub struct Rdb(*mut raw::RedisModuleIO);

impl Rdb {
    /// Wraps the server's handle.
    ///
    /// # Safety
    /// `io` is the parameter of the running callback. The result does not outlive that callback.
    pub unsafe fn new(io: *mut raw::RedisModuleIO) -> Self {
        Rdb(io)
    }

    /// The name of the key; null if the value is loaded without a key. It lives as long as `io`.
    pub fn key(&self) -> *const raw::RedisModuleString {
        // SAFETY: `io` is live, see `new`.
        unsafe { api!(RedisModule_GetKeyNameFromIO(self.0)) }
    }

    /// Writes a line with the module's name to the server's log.
    pub fn log(&self, level: &CStr, message: &str) {
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
