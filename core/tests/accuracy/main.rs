//! Tests of accuracy: seeded runs with bounds from theory. They take seconds, so they are not unit tests.
//!
//! `make accuracy` measures every claim of the documents. Here is what it does not measure.

mod bloom_windowed;
mod sizes;
