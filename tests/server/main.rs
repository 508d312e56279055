//! The module on real servers, command by command, from the outside.
//!
//! Every test starts its own server (some start a replica beside it) on its own port, in its own
//! temporary directory; servers are killed when the test ends, however it ends.
//!
//! The environment is that of `tests/kit`, and:
//!
//! - `ROLLCALL_PEER`: a RedisBloom module, for the tests that load beside it (skipped without).
//! - `ROLLCALL_OLD_SERVER`: a server older than 7.0, which must reject the module (skipped without).
//!
//! Every supported server has to pass `every_server`. Add `types_defrag` for a server that can defragment: one that was
//! not built with a system's malloc.

mod beside;
#[path = "../../examples/cluster/mod.rs"]
mod cluster;
mod effects;
mod fake_primary;
mod kinds;
mod neighbour;

mod errors;
mod events;
mod every_server;
mod hostile;
mod limits;
mod metadata;
mod module_loading;
mod types_defrag;
mod types_generic;
mod types_memory;
mod types_payload;
