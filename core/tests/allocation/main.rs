//! Runs each operation with its first allocation failing, then with its second, and so on. The operation must return an
//! error and change nothing; the process must not end. `every.rs` has allocations of any size, the other files large
//! ones.

mod common;
mod counters;
mod every;
mod failing;
mod filters;
