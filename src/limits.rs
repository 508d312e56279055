//! Size limits as the server sets them: `max-key-bytes`, and what `maxmemory` leaves.

use std::alloc::Layout;
use std::cell::{Cell, OnceCell};

use redis_module::raw;

use crate::config;
use crate::server::facts::{maxmemory_left, must_obey};
use crate::server::ffi::Ctx;
use crate::server::metrics::{LIMIT_REFUSED, MEMORY_REFUSED};
use crate::server::{alloc, reclaim};
use rollcall_core::error::{Error, Limit};
use rollcall_core::size_limit::SizeLimit;

/// Upper bound of what `MEMORY USAGE` counts for a value and the core does not, bytes. It covers the server's object,
/// and the struct around the value, whose size malloc rounds up.
const AROUND_VALUE_BYTES: u64 = 256;

/// The limits of one command, checked only before an allocation. Answers of the server are cached, because a counter
/// checks its limits once an item. So a `ServerLimit` must not outlive its command.
pub struct ServerLimit<'a> {
    ctx: Option<Ctx<'a>>,
    exempt: OnceCell<bool>,
    /// Bytes that `maxmemory` leaves, less those allowed since; `None` when `maxmemory` is not set.
    left: OnceCell<Option<Cell<u64>>>,
}

impl<'a> ServerLimit<'a> {
    /// The limits of the running command. A command that a primary or the AOF has accepted before has none.
    pub fn new(ctx: Ctx<'a>) -> Self {
        ServerLimit { ctx: Some(ctx), exempt: OnceCell::new(), left: OnceCell::new() }
    }

    /// The limits of a RESTORE by a client; `None` while an RDB file or a full sync is loaded, and on replicas. `flags`
    /// are the server's.
    pub fn for_restore(flags: u32) -> Option<Self> {
        let exempt = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
        (flags & exempt == 0).then_some(ServerLimit { ctx: None, exempt: OnceCell::new(), left: OnceCell::new() })
    }

    fn is_exempt(&self) -> bool {
        *self.exempt.get_or_init(|| self.ctx.is_some_and(must_obey))
    }

    fn within_limits(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        let limit_bytes = config::max_key_bytes();
        if needed_bytes > limit_bytes {
            return Err(Error::TooLarge { needed_bytes, limit_bytes, limit: Limit::Value });
        }
        let Some(left) = self.left.get_or_init(|| maxmemory_left().map(Cell::new)) else { return Ok(()) };
        if more_bytes > left.get() {
            // Values that were deleted and are still being freed count as used memory.
            reclaim::wait();
            left.set(maxmemory_left().unwrap_or(u64::MAX));
        }
        match left.get().checked_sub(more_bytes) {
            Some(rest) => {
                left.set(rest);
                Ok(())
            }
            None => Err(Error::TooLarge { needed_bytes: more_bytes, limit_bytes: left.get(), limit: Limit::Memory }),
        }
    }
}

impl SizeLimit for ServerLimit<'_> {
    #[cold]
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        if self.is_exempt() {
            return Ok(());
        }
        let checked = self.within_limits(held_bytes.saturating_add(AROUND_VALUE_BYTES), more_bytes);
        match &checked {
            Err(Error::TooLarge { limit: Limit::Value, .. }) => LIMIT_REFUSED.count(),
            Err(_) => MEMORY_REFUSED.count(),
            Ok(()) => {}
        }
        checked
    }

    /// As `MEMORY USAGE` counts them.
    fn allocation_bytes(&self, layout: Layout) -> u64 {
        alloc::usable_layout_size(layout) as u64
    }
}
