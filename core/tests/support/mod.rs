//! Shared by tests of the stored format: values as lists of primitives, `DUMP` payloads, and the ways to store a value.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod fields;
pub mod payload;
pub mod values;
