//! The compiled half of the Python package `rollcall_redis`: filters and counters of the core as Python classes.
//!
//! # Threads
//! Every class is frozen and has a lock inside (`guarded.rs`). Long calls release Python's own lock, and other threads may
//! use the same object meanwhile: they wait for each other, and see each call done or not begun. No thread waits for an
//! object's lock while it holds Python's, nor the other way round, so that none waits for ever.
//!
//! # Memory of others
//! Bytes of `bytes` and `str` never change and are used where they are. What may change (`bytearray`, arrays) is copied,
//! row by row in blocks, while Python's lock is held (`rows.rs`, which has the only `unsafe`).

mod arguments;
mod chunks;
mod counter;
mod equality;
mod errors;
mod filter;
mod guarded;
mod items;
mod loaders;
mod rows;
mod sets;
mod stored;
mod transfer;

/// Filters and counters.
// `rows.rs` copies memory that must not change meanwhile, so Python keeps its lock.
#[pyo3::pymodule(gil_used = true)]
mod _rollcall {
    #[pymodule_export]
    use super::counter::Counter;
    #[pymodule_export]
    use super::filter::BloomFilter;
    #[pymodule_export]
    use super::loaders::{CounterLoader, FilterLoader};
    #[pymodule_export]
    use super::sets::{diff, diff_card, inter, inter_card, union, union_card};
}
