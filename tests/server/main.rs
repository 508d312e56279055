//! The module on real servers, command by command, from the outside.
//!
//! Every test starts its own server (some start a replica beside it) on its own port, in its own
//! temporary directory; servers are killed when the test ends, however it ends.
//!
//! - `ROLLCALL_SERVER`: the server binary, `redis-server` from the PATH by default.
//! - `ROLLCALL_MODULE`: the module, `release/librollcall.so` of the target directory by default.
//! - `ROLLCALL_PEER`: a RedisBloom module, for the tests that load beside it (skipped without).
//! - `ROLLCALL_FAKETIME`: the library that gives a server a clock of its own, Debian's libfaketime by default.
//! - `ROLLCALL_LOGS`: a folder for the logs of servers whose test fails (not kept without).
//! - `ROLLCALL_OLD_SERVER`: a server older than 7.0, which must refuse the module (skipped without).
//! - `ROLLCALL_PATIENCE`: how many times as long as usual everything may take, for servers that something slows down.
//! - `ROLLCALL_THOROUGH`: if set, tests that try some of many cases try all (`make hostile`).
//!
//! The tests that every supported server has to pass are in the modules named `commands_*`, `config*`, `info_*`,
//! `persistence_*` and `replication_*`: `cargo test --test server -- commands_ config info_ persistence_ replication_`.
//! Add `types_defrag` for a server that can defragment: one that was not built with a system's malloc.

mod beside;
#[path = "../../examples/cluster/mod.rs"]
mod cluster;
mod effects;
mod fake_primary;
mod kinds;
mod neighbour;

mod commands_admission;
mod commands_beside;
mod commands_beside_names;
mod commands_bloom;
mod commands_counting;
mod commands_expiry;
mod commands_members;
mod commands_windows;
mod commands_windows_clock;
mod commands_windows_counters;
mod commands_windows_errors;
mod commands_windows_filters;
mod commands_windows_refusals;
mod commands_without_memory;
mod config;
mod config_drop_in;
mod errors;
mod events;
mod info_events;
mod info_totals;
mod limits;
mod metadata;
mod module_loading;
mod persistence_beside;
mod persistence_chunks;
mod persistence_corruption;
mod persistence_full_disk;
mod persistence_golden;
mod persistence_killed;
mod persistence_panics;
mod persistence_redisbloom;
mod persistence_restart;
mod persistence_valkey_bloom;
mod persistence_whole;
mod persistence_windows;
mod replication_beside;
mod replication_cut;
mod replication_effects;
mod replication_migration;
mod replication_obeyed;
mod replication_parts;
mod replication_redisbloom;
mod replication_slots;
mod replication_sync;
mod replication_way_back;
mod replication_windows;
mod replication_windows_model;
mod types_defrag;
mod types_generic;
mod types_memory;
mod types_payload;
