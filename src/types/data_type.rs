//! A data type: its name and its handle in the server.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

/// A data type of the server.
pub struct DataType {
    /// Nine characters, stored with every value.
    pub name: &'static str,
    /// The encoding version of written values.
    pub encoding: u32,
    handle: AtomicPtr<raw::RedisModuleType>,
}

impl DataType {
    pub const fn new(name: &'static str, encoding: u32) -> Self {
        DataType { name, encoding, handle: AtomicPtr::new(null_mut()) }
    }

    /// The server's handle; null unless the type is registered.
    #[inline]
    pub fn handle(&self) -> *mut raw::RedisModuleType {
        self.handle.load(Ordering::Relaxed)
    }

    /// Sets the handle; null after the server has freed the type.
    pub fn set_handle(&self, handle: *mut raw::RedisModuleType) {
        self.handle.store(handle, Ordering::Relaxed);
    }
}
