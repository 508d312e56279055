//! Tests that no acknowledged write is lost, while clients write and faults of all kinds happen. A checker compares
//! every reply with the acknowledged writes.
//!
//! `make chaos` runs the four scenarios, and `make chaos-short` runs them for a minute; other test runs skip them.
//! `make chaos ONLY=cluster SERVERS=redis-8.10.2 CHAOS_CLUSTER_SECONDS=180` moves slots by `CLUSTER MIGRATION` alone,
//! for three minutes.
//! `notices` tests the checker itself, takes seconds, and runs with all tests. A failure reports the seed, the time,
//! the key, the acknowledged writes, and the wrong reply. The seed determines the commands and the order of faults. The
//! exact timing differs between runs.
//!
//! - `ROLLCALL_CHAOS_KILLS`: how often a server is killed.
//! - `ROLLCALL_CHAOS_FAILOVERS`: how often a primary is killed and its replica takes over.
//! - `ROLLCALL_CHAOS_SECONDS`: how long the scenario with all faults runs.
//! - `ROLLCALL_CHAOS_CLUSTER_SECONDS`: how long the scenario with moving slots runs.
//! - `ROLLCALL_CHAOS_SEED`: the seed.
//! - `ROLLCALL_SERVER`, `ROLLCALL_MODULE`, `ROLLCALL_ARGS`, `ROLLCALL_LOGS`: as in the server tests.

mod check;
mod cluster;
mod cluster_line;
mod failover;
mod key;
mod kills;
mod line;
mod nodes;
mod notices;
mod run;
mod shapes;
mod storm;
mod writer;
