//! What distinguishes the two families to the server glue: names, and where their memory is. All else is generic.

use std::alloc::Layout;
use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use redis_module::raw;

use crate::refusal::Noun;
use crate::types::callbacks::{Mover, RdbReader};
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::persist::{Stored, redisbloom};
use rollcall_core::size_limit::SizeLimit;

/// What the glue needs of a family of values beyond storing them.
pub trait Family: Stored {
    /// How error texts call a value.
    const NOUN: Noun;
    /// The type's name: nine characters, stored in every RDB file.
    const TYPE_NAME: &'static CStr;
    /// Encoding version of the RDB value.
    const RDB_ENCODING: c_int;
    /// The command that loads a chunk, for rewritten AOFs.
    const LOADCHUNK: &'static CStr;

    /// What is kept once a family for the whole process.
    fn registry() -> &'static Registry;

    /// Visits the size of every allocation held.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));

    /// A copy, or an error when there is no memory for it.
    fn try_clone(&self) -> Result<Self, Error>;

    /// Visits bytes that are equal in two values exactly when the values are.
    fn digest(&self, visit: &mut dyn FnMut(&[u8]));

    /// Reads an RDB value of another encoding version than ours.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where there is none that we know, or naming what is wrong.
    fn decode_foreign(_source: &mut RdbReader, encoding: c_int, _limit: &impl SizeLimit) -> Result<Self, Error> {
        Err(Error::corrupt("encoding version", Self::RDB_ENCODING, encoding))
    }

    /// Gives large buffer number `index` to `mover`; false when there is none.
    fn relocate(&mut self, index: usize, mover: &Mover) -> bool;
}

/// The server's handle of a data type, and how many of its values exist.
pub struct Registry {
    module_type: AtomicPtr<raw::RedisModuleType>,
    pub(super) live: AtomicUsize,
}

impl Registry {
    pub const fn new() -> Self {
        Registry { module_type: AtomicPtr::new(null_mut()), live: AtomicUsize::new(0) }
    }

    pub fn module_type(&self) -> *mut raw::RedisModuleType {
        self.module_type.load(Ordering::Relaxed)
    }

    pub fn set_module_type(&self, module_type: *mut raw::RedisModuleType) {
        self.module_type.store(module_type, Ordering::Relaxed);
    }

    /// Values that exist now, in all databases.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}

impl Family for BloomFilter {
    const NOUN: Noun = Noun::Filter;
    /// RedisBloom's name, so that its data can come along; the encoding version tells the two apart.
    const TYPE_NAME: &'static CStr = c"MBbloom--";
    /// RedisBloom's own versions are 0 to 4.
    const RDB_ENCODING: c_int = 100;
    const LOADCHUNK: &'static CStr = c"BF.LOADCHUNK";

    fn registry() -> &'static Registry {
        static REGISTRY: Registry = Registry::new();
        &REGISTRY
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.heap_layouts(visit);
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }

    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        // Parameters, geometry and items are the header; the bits are the rest.
        visit(&self.header());
        self.bitmaps().for_each(visit);
    }

    fn decode_foreign(source: &mut RdbReader, encoding: c_int, limit: &impl SizeLimit) -> Result<Self, Error> {
        let version = u32::try_from(encoding).unwrap_or(u32::MAX);
        redisbloom::decode_rdb(source, version, limit).map(BloomFilter::Classic)
    }

    fn relocate(&mut self, index: usize, mover: &Mover) -> bool {
        self.relocate(index, |lines| mover.relocate(lines))
    }
}

impl Family for Counter {
    const NOUN: Noun = Noun::Counter;
    const TYPE_NAME: &'static CStr = c"RCcounter";
    const RDB_ENCODING: c_int = 1;
    const LOADCHUNK: &'static CStr = c"LC.LOADCHUNK";

    fn registry() -> &'static Registry {
        static REGISTRY: Registry = Registry::new();
        &REGISTRY
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        self.heap_layouts(visit);
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }

    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.header());
        match self.members() {
            // A set has no order, so neither has its digest.
            Ok(members) => {
                let mut members: Vec<&[u8]> = members.collect();
                members.sort_unstable();
                for member in members {
                    visit(&(member.len() as u64).to_le_bytes());
                    visit(member);
                }
            }
            Err(_) => self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece)),
        }
    }

    fn relocate(&mut self, index: usize, mover: &Mover) -> bool {
        if index == 0 {
            self.relocate_dense(|words| mover.relocate(words));
        }
        index == 0
    }
}
