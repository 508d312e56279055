//! Size limits as the server sets them: `max-key-bytes`, and what `maxmemory` leaves.

use std::alloc::Layout;
use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use redis_module::raw;

use crate::server::ffi::{Ctx, RedisModuleCtx, api};
use crate::server::{alloc, reclaim};
use crate::{config, info};
use rollcall_core::error::Error;
use rollcall_core::size_limit::SizeLimit;

/// Name of the option that bounds a value, as error texts give it.
pub const MAX_KEY_BYTES: &str = "max-key-bytes";

/// What error texts call the room under `maxmemory`.
pub const MAXMEMORY: &str = "maxmemory leaves";

/// What `MEMORY USAGE` counts of a value that the core does not know of, at most, bytes: the server's object, and that
/// the struct is kept in a larger one whose size malloc rounds up.
const AROUND_VALUE_BYTES: u64 = 256;

/// `RedisModule_MustObeyClient`, where the server has it: tells commands of a primary, of the AOF and of a slot
/// migration from those of clients.
static MUST_OBEY: OnceLock<Option<MustObey>> = OnceLock::new();

type MustObeyClient = unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int;

#[derive(Clone, Copy)]
struct MustObey(MustObeyClient);

/// Keeps the function that [`probe`](crate::server::ffi::probe) found at loading.
///
/// # Safety
/// `function` is the server's `MustObeyClient`, if anything.
pub unsafe fn set_must_obey(function: Option<NonNull<c_void>>) {
    MUST_OBEY.get_or_init(|| {
        let function = function?.as_ptr();
        // SAFETY: as promised, the function takes a context and returns an int.
        Some(MustObey(unsafe { std::mem::transmute::<*mut c_void, MustObeyClient>(function) }))
    });
}

/// Whether the running command was acknowledged elsewhere already and must not fail here.
pub fn must_obey(ctx: Ctx) -> bool {
    if ctx.flags() & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) != 0 {
        return true;
    }
    match MUST_OBEY.get() {
        // SAFETY: the function is the server's, the context live.
        Some(Some(must_obey)) => unsafe { (must_obey.0)(ctx.as_ptr()) != 0 },
        _ => false,
    }
}

/// The limits of one command, asked only when something is about to be allocated. What it asks of the server it
/// keeps, for a counter asks once an item: so it must not outlive the command.
pub struct ServerLimit {
    ctx: Option<Ctx>,
    exempt: OnceCell<bool>,
    /// What `maxmemory` leaves, less what was allowed since; none when it is not set.
    left: OnceCell<Option<Cell<u64>>>,
}

impl ServerLimit {
    /// The limits of the running command: none for what a primary or the AOF has accepted before.
    pub fn new(ctx: Ctx) -> Self {
        ServerLimit { ctx: Some(ctx), exempt: OnceCell::new(), left: OnceCell::new() }
    }

    /// The limits of a RESTORE by a client; `None` while an RDB file or a full sync is loaded, and on replicas.
    pub fn for_restore(ctx: Ctx) -> Option<Self> {
        let exempt = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
        (ctx.flags() & exempt == 0).then_some(ServerLimit { ctx: None, exempt: OnceCell::new(), left: OnceCell::new() })
    }

    fn is_exempt(&self) -> bool {
        *self.exempt.get_or_init(|| self.ctx.is_some_and(must_obey))
    }

    fn within_limits(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        let limit_bytes = config::max_key_bytes();
        if needed_bytes > limit_bytes {
            return Err(Error::TooLarge { needed_bytes, limit_bytes, limit: MAX_KEY_BYTES });
        }
        let Some(left) = self.left.get_or_init(|| maxmemory_left().map(Cell::new)) else { return Ok(()) };
        if more_bytes > left.get() {
            // Perhaps only because what was deleted is still being freed.
            reclaim::wait();
            left.set(maxmemory_left().unwrap_or(u64::MAX));
        }
        match left.get().checked_sub(more_bytes) {
            Some(rest) => {
                left.set(rest);
                Ok(())
            }
            None => Err(Error::TooLarge { needed_bytes: more_bytes, limit_bytes: left.get(), limit: MAXMEMORY }),
        }
    }
}

impl SizeLimit for ServerLimit {
    #[cold]
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        if self.is_exempt() {
            return Ok(());
        }
        let checked = self.within_limits(held_bytes.saturating_add(AROUND_VALUE_BYTES), more_bytes);
        if checked.is_err() {
            info::SIZE_REFUSED.count();
        }
        checked
    }

    /// As `MEMORY USAGE` counts them.
    fn allocation_bytes(&self, layout: Layout) -> u64 {
        alloc::usable_layout_size(layout) as u64
    }
}

/// Memory in use as a share of `maxmemory`; 0 when that is not set.
fn used_ratio() -> f64 {
    // SAFETY: takes no arguments.
    f64::from(unsafe { api!(RedisModule_GetUsedMemoryRatio()) })
}

/// Whether the server holds as much as `maxmemory` allows, and so evicts keys or refuses commands.
pub fn is_memory_full() -> bool {
    used_ratio() >= 1.0
}

/// Bytes that may still be used under `maxmemory`; `None` when it is not set.
fn maxmemory_left() -> Option<u64> {
    let used_ratio = used_ratio();
    if used_ratio <= 0.0 {
        return None;
    }
    let maxmemory = maxmemory()?;
    Some((maxmemory as f64 * (1.0 - used_ratio).max(0.0)) as u64)
}

/// The server's `maxmemory`, bytes. Asked of INFO, which every server has; only reached when it is set and a
/// value is made or grows.
fn maxmemory() -> Option<u64> {
    let value = memory_info(|info| {
        let mut error = 0;
        // SAFETY: the data is live; the name ends with NUL.
        let value = unsafe { api!(RedisModule_ServerInfoGetFieldUnsigned(info, c"maxmemory".as_ptr(), &mut error)) };
        if error == 0 { value } else { 0 }
    });
    (value > 0).then_some(value)
}

/// Whether the server was built with jemalloc.
pub fn server_uses_jemalloc() -> bool {
    memory_info(|info| {
        // SAFETY: the data is live, and so is the text that belongs to it; the name ends with NUL.
        unsafe {
            let name = api!(RedisModule_ServerInfoGetFieldC(info, c"mem_allocator".as_ptr()));
            !name.is_null() && CStr::from_ptr(name).to_bytes().starts_with(b"jemalloc")
        }
    })
}

/// Reads the server's INFO on memory.
fn memory_info<T>(read: impl FnOnce(*mut raw::RedisModuleServerInfoData) -> T) -> T {
    // SAFETY: a null context is allowed; the data is freed here, once.
    unsafe {
        let info = api!(RedisModule_GetServerInfo(std::ptr::null_mut(), c"memory".as_ptr()));
        let value = read(info);
        api!(RedisModule_FreeServerInfo(std::ptr::null_mut(), info));
        value
    }
}
