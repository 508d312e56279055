//! The slots that this node is importing from another node of its cluster.
//!
//! In an atomic slot migration (`CLUSTER MIGRATION`, Redis 8.4 and later), a key whose RESTORE fails is lost, because
//! the other node deletes its copy nevertheless. So of the keys in these slots only damaged ones may be rejected. No
//! client can write to these slots before the import has completed. The callbacks of RESTORE and COPY do not know
//! whether a key is imported, so this file listens to the server's event. Other commands of the other node arrive as
//! replicated commands, which have no limits.

use std::ffi::c_void;
use std::sync::Mutex;

use redis_module::raw;

use super::facts;
use super::ffi::{Ctx, RedisModuleCtx, RedisModuleString};

/// The first and the last slot of each range. A node runs one import at a time.
static IMPORTED: Mutex<Vec<(u16, u16)>> = Mutex::new(Vec::new());

/// Whether this node is importing the slot of `key`. Always false on Valkey and on Redis before 8.4.
///
/// # Safety
/// `key` is live, or null.
pub unsafe fn includes(key: *const RedisModuleString) -> bool {
    let Ok(imported) = IMPORTED.lock() else { return false };
    if imported.is_empty() || key.is_null() {
        return false;
    }
    // SAFETY: as the caller promises. Every server with the event has this function, and it only reads the key.
    let slot = unsafe { raw::RedisModule_ClusterKeySlot.map(|slot_of| slot_of(key.cast_mut()) as u16) };
    slot.is_some_and(|slot| imported.iter().any(|&(first, last)| (first..=last).contains(&slot)))
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
unsafe extern "C" fn migrated(_: *mut RedisModuleCtx, _: raw::RedisModuleEvent, step: u64, data: *mut c_void) {
    let slots = match step {
        // SAFETY: the data of this event are of this type. The array has the number of ranges that it says.
        raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_STARTED => unsafe {
            let slots = (*data.cast::<raw::RedisModuleClusterSlotMigrationInfo>()).slots;
            let ranges = (*slots).ranges.as_slice((*slots).num_ranges as usize);
            ranges.iter().map(|range| (range.start, range.end)).collect()
        },
        raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_FAILED
        | raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_COMPLETED => Vec::new(),
        _ => return,
    };
    if let Ok(mut imported) = IMPORTED.lock() {
        *imported = slots;
    }
}
