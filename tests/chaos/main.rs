//! Everything goes wrong while clients write, and a checker that knows what was acknowledged looks for it.
//!
//! Run by `make chaos`, and for two minutes by `make chaos-short`: the four scenarios are marked to be left out
//! otherwise. `notices`, which tests the checker itself, takes seconds and runs with all tests. A failure reports the
//! seed, the moment, the key, what was acknowledged and what came back. The seed fixes what is sent and what is done
//! when; how these meet differs from run to run.
//!
//! - `ROLLCALL_CHAOS_KILLS`: how often a server is killed.
//! - `ROLLCALL_CHAOS_FAILOVERS`: how often a primary is killed and its replica takes its place.
//! - `ROLLCALL_CHAOS_SECONDS`: how long everything happens at once.
//! - `ROLLCALL_CHAOS_CLUSTER_SECONDS`: how long slots move.
//! - `ROLLCALL_CHAOS_SEED`: the seed.
//! - `ROLLCALL_SERVER`, `ROLLCALL_MODULE`, `ROLLCALL_LOGS`: as for the server tests.

mod check;
mod cluster;
mod cluster_line;
mod failover;
mod key;
mod kills;
mod line;
mod nodes;
mod notices;
mod random;
mod run;
mod shapes;
mod storm;
mod wire;
mod writer;
