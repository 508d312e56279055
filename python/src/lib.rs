//! The compiled half of the Python package `rollcall_redis`: filters and counters of the core as Python classes.
//!
//! # Threads
//! Every class is frozen and has its own lock (`guarded.rs`). Long calls release Python's lock, so other threads may
//! use the same object meanwhile. Calls on the same object wait for each other, so each call is atomic. No thread waits
//! for an object's lock while it holds Python's lock, nor the other way round, so deadlocks cannot occur.
//!
//! # Memory of others
//! The bytes of `bytes` and `str` never change, so they are used in place. Mutable memory (`bytearray`, arrays) is
//! copied in blocks of rows while Python's lock is held (`rows.rs`). Arrow's columns must not change, by its C data
//! interface, so they are used in place too (`arrow.rs`). These two files have the only `unsafe`.

mod admission;
mod arguments;
mod arrow;
mod chunks;
mod columns;
mod counter;
mod digits;
mod equality;
mod errors;
mod filter;
mod grouping;
mod guarded;
mod items;
mod loaders;
mod merging;
mod rows;
mod sets;
mod stored;
mod transfer;

/// Filters and counters.
// `rows.rs` copies memory that must not change during the copy, so the module requires Python's lock.
#[pyo3::pymodule(gil_used = true)]
mod _rollcall {
    use std::hash::{BuildHasher, RandomState};

    #[pymodule_export]
    use super::counter::Counter;
    #[pymodule_export]
    use super::filter::BloomFilter;
    #[pymodule_export]
    use super::loaders::{CounterLoader, FilterLoader};
    #[pymodule_export]
    use super::sets::{diff, diff_card, inter, inter_card, union, union_card};
    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "its name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        rollcall_core::set_table_key(RandomState::new().hash_one(()));
        Ok(())
    }
}
