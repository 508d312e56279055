//! A hostile world: links cut, disks full, children killed, memory denied. `make hostile` runs all of it on all
//! servers.

mod commands_without_memory;
mod persistence_full_disk;
mod persistence_killed;
mod replication_cut;
