//! Allocations that fail: each operation is run with its first allocation failing, then its second, and so on. It has to
//! say so and leave all as it was; the process must not end. Large allocations here, and those of any size in every.rs.

mod common;
mod counters;
mod every;
mod failing;
mod filters;
