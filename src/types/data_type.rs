//! A data type: its name and handle in the server, and the number of its values.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use redis_module::raw;

/// A data type of the server.
pub struct DataType {
    /// Nine characters, stored with every value.
    pub name: &'static CStr,
    /// Encoding version of the values that are written.
    pub encoding: u32,
    handle: AtomicPtr<raw::RedisModuleType>,
    live: AtomicUsize,
}

impl DataType {
    pub const fn new(name: &'static CStr, encoding: u32) -> Self {
        DataType { name, encoding, handle: AtomicPtr::new(null_mut()), live: AtomicUsize::new(0) }
    }

    /// The server's handle; null unless the type is registered.
    #[inline]
    pub fn handle(&self) -> *mut raw::RedisModuleType {
        self.handle.load(Ordering::Relaxed)
    }

    pub fn set_handle(&self, handle: *mut raw::RedisModuleType) {
        self.handle.store(handle, Ordering::Relaxed);
    }

    /// Values that exist now, in all databases.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    pub fn count_one_more(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_one_less(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
