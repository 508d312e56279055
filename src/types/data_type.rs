//! A data type that the module registers with the server: its name and its handle.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

/// A data type of values, which the module registers with the server.
pub struct DataType {
    /// The type's name of nine characters, which RDB files store with every value.
    pub name: &'static str,
    /// The version of the encoding in which values are written to RDB files.
    pub encoding: u32,
    handle: AtomicPtr<raw::RedisModuleType>,
}

impl DataType {
    pub const fn new(name: &'static str, encoding: u32) -> Self {
        DataType { name, encoding, handle: AtomicPtr::new(null_mut()) }
    }

    /// Returns the server's handle of the data type; null unless the type is registered.
    #[inline]
    pub fn handle(&self) -> *mut raw::RedisModuleType {
        self.handle.load(Ordering::Relaxed)
    }

    /// Sets the server's handle. The handle becomes null when the server has freed the data type.
    pub fn set_handle(&self, handle: *mut raw::RedisModuleType) {
        self.handle.store(handle, Ordering::Relaxed);
    }
}
