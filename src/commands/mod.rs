//! The module's commands. Each parses its arguments, opens its keys, calls the core library, replicates its changes,
//! sends keyspace events, and replies.
//!
//! [`bloom`] and [`counting`] have what differs between filters and counters; the other files are shared.

mod advance;
mod argument;
mod bloom;
mod changes;
mod counting;
mod dump;
mod effects;
mod info;
mod keyspace;
mod look_up;
mod register;
mod sets;
mod table;
mod windows;

pub use register::register;
