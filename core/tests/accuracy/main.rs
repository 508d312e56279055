//! Tests of accuracy: seeded runs with bounds from theory. They take seconds, so they are not unit tests.

mod bloom;
mod bloom_rare;
mod bloom_windowed;
mod counting;
mod counting_windowed;
mod intersections;
mod occupancy;
mod simulated;
mod sizes;
