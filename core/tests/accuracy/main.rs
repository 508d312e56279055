//! Accuracy, measured: seeded runs, with bounds from theory. They take seconds, so they are not unit tests.

mod bloom;
mod bloom_rare;
mod counting;
#[path = "../support/occupancy.rs"]
mod occupancy;
mod simulated;
mod windowed;
