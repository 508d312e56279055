//! Whether this node is importing slots of its cluster.
//!
//! In an atomic slot migration (`CLUSTER MIGRATION`, Redis 8.4 and later), a key whose RESTORE fails is lost, because
//! the other node deletes its copy nevertheless. So during an import only damaged keys may be rejected. The callback of
//! RESTORE does not know whether the key is imported, so this file listens to the server's event. Later commands of the
//! other node arrive as replicated commands, which have no limits.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::facts;
use super::ffi::Ctx;

/// A node runs one import at a time.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// Whether this node is importing slots. Always false on Valkey and on Redis before 8.4.
pub fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// Subscribes to the server's events of slot migrations. Redis before 8.4 rejects the subscription. Valkey is skipped,
/// because it uses the id of this event for another event.
pub fn register(ctx: Ctx) {
    if !facts::is_valkey() {
        let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION, dataver: 1 };
        raw::subscribe_to_server_event(ctx.as_ptr(), event, Some(migrated));
    }
}

/// The server calls this for events of slot migrations. Every import that has started completes or fails, for example
/// if it is cancelled or a replica takes over.
unsafe extern "C" fn migrated(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    step: u64,
    _data: *mut c_void,
) {
    match step {
        raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_STARTED => IS_RUNNING.store(true, Ordering::Relaxed),
        raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_FAILED
        | raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_COMPLETED => {
            IS_RUNNING.store(false, Ordering::Relaxed);
        }
        _ => {}
    }
}
