//! What several tests of the stored format need: values as lists of primitives, `DUMP` payloads, values and their ways.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod fields;
pub mod payload;
pub mod values;
