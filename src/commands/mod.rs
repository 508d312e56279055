//! The commands. Each command parses its arguments, opens its keys, calls the core, replicates its changes, sends
//! events, and replies.
//!
//! [`bloom`] and [`counting`] have the commands of the two families. Code that both families share is generic over the
//! family: [`changes`], [`advance`], [`keyspace`], [`effects`] and [`dump`].

mod advance;
mod bloom;
mod changes;
mod counting;
mod creation;
mod dump;
mod effects;
mod expiry;
mod info;
mod keyspace;
mod obeyed;
mod register;
mod sets;
mod table;
mod valkey_bloom;
mod windows;

pub use register::register;
