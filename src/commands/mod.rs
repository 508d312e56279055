//! The commands. Each one parses, opens its keys, calls the core, replicates what it changed, notifies, replies.
//!
//! [`bloom`] and [`counting`] are added; what both do in the same way stands in [`changes`], [`advance`], [`keyspace`],
//! [`effects`] and [`dump`], generic over the family.

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
