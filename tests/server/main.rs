//! The module on real servers, command by command, from the outside.
//!
//! Every test starts its own server, and some start a replica too. Each server has its own port and its own temporary
//! directory. Servers are killed when the test ends for any reason.
//!
//! The tests use the environment variables of `tests/kit`, and four more:
//!
//! - `ROLLCALL_PEER`: a RedisBloom module, for the tests that load it too (skipped if it is not set).
//! - `ROLLCALL_OLD_SERVER`: a server older than 7.0, which must reject the module (skipped if it is not set).
//! - `ROLLCALL_OTHER_SERVER` and `ROLLCALL_OTHER_MODULE`: a server and the module for another processor, for
//!   `processors` (skipped if they are not set). `make test-arm64` sets them.
//!
//! Every supported server has to pass `every_server`. Servers that can defragment memory also have to pass
//! `types_defrag`. They are not built with the system's malloc.

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
mod forkless;
mod hostile;
mod limits;
mod metadata;
mod module_loading;
mod processors;
mod types_defrag;
mod types_generic;
mod types_memory;
mod types_payload;
