//! Tests under hostile conditions: cut links, full disks, killed child processes, denied memory. `make hostile` runs
//! all of them on all servers.

mod commands_without_memory;
mod persistence_full_disk;
mod persistence_killed;
mod replication_cut;
