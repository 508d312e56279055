//! Limits on the size of values: the option `max-key-bytes`, and the memory that is left under `maxmemory`.
//!
//! Before each command, the server evicts keys or rejects the command if its memory is above `maxmemory`. If this
//! module rejected everything that does not fit, memory would stay just below `maxmemory`, and the server would never
//! evict. So values may grow a little beyond `maxmemory`. All commands of a script or transaction share this slack,
//! because the used memory that each reads includes the growth by the commands before.
//!
//! Under an eviction policy, the server may run a command while it is still evicting, far above `maxmemory`. So a
//! script, a transaction or a single command may always add [`LEAST_EVICTING_SLACK`] to the used memory.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicU64, Ordering};

use redis_module::raw;

use crate::config;
use crate::server::facts::{self, is_valkey, must_obey, server_flags, used_memory_ratio};
use crate::server::ffi::Ctx;
use crate::server::metrics::{LIMIT_REJECTED, MEMORY_REJECTED};
use crate::server::{alloc, pages, reclaim};
use rollcall_core::error::{Error, Limit};
use rollcall_core::size_limit::SizeLimit;

/// The bytes by which values may grow beyond `maxmemory` under the policy `noeviction`.
const SLACK: u64 = 64 << 10;

/// Under an eviction policy, values may grow beyond `maxmemory` by this number of bytes, or by `maxmemory` divided by
/// [`EVICTING_SLACK_DIVISOR`] if that is more. The server evicts keys before its next command.
const LEAST_EVICTING_SLACK: u64 = 1 << 20;
const EVICTING_SLACK_DIVISOR: u64 = 16;

/// When the last script, transaction or single command began that asked how much memory is left under an eviction
/// policy. This is the server's clock, which stands still meanwhile, unless a script exceeds `busy-reply-threshold`.
static BEGUN_US: AtomicU64 = AtomicU64::new(0);
/// The used memory when that command first asked.
static USED_BYTES: AtomicU64 = AtomicU64::new(0);

/// The size limits of one command. It caches figures of the server, so it must not outlive the command.
pub struct ServerLimit<'a> {
    ctx: Option<Ctx<'a>>,
    bounds: OnceCell<Bounds>,
}

struct Bounds {
    /// The largest allowed size of a value in bytes.
    key_bytes: u64,
    /// The number of bytes that this command may still allocate under `maxmemory`; `None` if `maxmemory` is not set. It
    /// begins with a lower bound. Only a command that needs more reads the exact number from the server's INFO.
    left: Option<Cell<u64>>,
}

impl<'a> ServerLimit<'a> {
    /// The limits of the running command. A replicated command (from a primary or the AOF) has none.
    pub fn new(ctx: Ctx<'a>) -> Self {
        ServerLimit { ctx: Some(ctx), bounds: OnceCell::new() }
    }

    /// The limit of a stored value that the server loads: `max-key-bytes`. The server checks `maxmemory` before a
    /// RESTORE. `is_imported` says whether this node imports the key's slot.
    pub fn for_restore(is_imported: bool) -> Self {
        let has_none = must_store(is_imported);
        let key_bytes = if has_none { u64::MAX } else { config::max_key_bytes(used_memory_ratio() > 0.0) };
        ServerLimit { ctx: None, bounds: OnceCell::from(Bounds { key_bytes, left: None }) }
    }

    /// The limits of a COPY. On a Valkey in a cluster there are none. There, another node may send a COPY while a slot
    /// migrates to this node. That COPY must succeed, and cannot be told from a client's.
    pub fn for_copy(is_imported: bool) -> Self {
        let is_cluster = || server_flags() & raw::REDISMODULE_CTX_FLAGS_CLUSTER != 0;
        let has_none = must_store(is_imported) || is_valkey() && is_cluster();
        let none = has_none.then_some(Bounds { key_bytes: u64::MAX, left: None });
        ServerLimit { ctx: None, bounds: none.map_or_else(OnceCell::new, OnceCell::from) }
    }

    /// Called only if a limit may apply, because it takes as long as a look-up of a key.
    fn is_obeyed(&self) -> bool {
        self.ctx.is_some_and(must_obey)
    }

    /// Compares the new size of a value, as `BF.INFO key SIZE` and `LC.INFO key SIZE` report it, with `max-key-bytes`.
    /// Also compares `more_bytes`, rounded up as the allocator does for one block, with the memory left under
    /// `maxmemory`.
    fn within_limits(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        let bounds = self.bounds.get_or_init(|| {
            let ratio = used_memory_ratio();
            let has_maxmemory = ratio > 0.0;
            let left = has_maxmemory.then(|| Cell::new(if ratio < 1.0 { SLACK } else { 0 }));
            Bounds { key_bytes: config::max_key_bytes(has_maxmemory), left }
        });
        let limit_bytes = bounds.key_bytes;
        if needed_bytes > limit_bytes {
            return Err(Error::TooLarge { needed_bytes, limit_bytes, limit: Limit::Value });
        }
        let Some(left) = &bounds.left else { return Ok(()) };
        let rounded_bytes = usize::try_from(more_bytes).map_or(u64::MAX, |bytes| alloc::usable_size(bytes) as u64);
        if rounded_bytes > left.get() {
            if self.is_obeyed() {
                return Ok(());
            }
            left.set(maxmemory_left());
        }
        if rounded_bytes > left.get() {
            // Deleted values that are still being freed count as used memory, so this waits for them.
            reclaim::wait();
            left.set(maxmemory_left());
        }
        let too_large = Error::TooLarge { needed_bytes: rounded_bytes, limit_bytes: left.get(), limit: Limit::Memory };
        left.set(left.get().checked_sub(rounded_bytes).ok_or(too_large)?);
        Ok(())
    }
}

/// Whether a callback must store a value of any size: on a replica, while an RDB file or the AOF is loaded, and under a
/// key of a slot that this node imports, because the other node deletes its keys even if they are rejected here.
fn must_store(is_imported: bool) -> bool {
    let exempt = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;
    is_imported || server_flags() & exempt != 0
}

/// The number of bytes by which values may grow now. They may exceed `maxmemory` a little.
fn maxmemory_left() -> u64 {
    let Some(memory) = facts::memory() else { return u64::MAX };
    let most_bytes = if memory.evicts {
        let begun_us = facts::command_time_us();
        if BEGUN_US.swap(begun_us, Ordering::Relaxed) != begun_us {
            USED_BYTES.store(memory.used_bytes, Ordering::Relaxed);
        }
        let slack = LEAST_EVICTING_SLACK.max(memory.max_bytes / EVICTING_SLACK_DIVISOR);
        memory.max_bytes.saturating_add(slack).max(USED_BYTES.load(Ordering::Relaxed) + LEAST_EVICTING_SLACK)
    } else {
        memory.max_bytes.saturating_add(SLACK)
    };
    most_bytes.saturating_sub(memory.used_bytes)
}

impl SizeLimit for ServerLimit<'_> {
    #[cold]
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let checked = self.within_limits(held_bytes, more_bytes);
        match &checked {
            Err(_) if self.is_obeyed() => return Ok(()),
            Err(Error::TooLarge { limit: Limit::Value, .. }) => LIMIT_REJECTED.count(),
            Err(_) => MEMORY_REJECTED.count(),
            Ok(()) => {}
        }
        checked
    }

    #[cold]
    fn allows(&self, held_bytes: u64, more_bytes: u64) -> bool {
        self.within_limits(held_bytes, more_bytes).is_ok()
    }

    fn will_fill(&self, memory: &[u8]) {
        pages::make_resident(memory);
    }
}
