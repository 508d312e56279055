//! Fuzz targets of the core: functions that take any bytes, do with them what a client or a file could ask for, and panic
//! where a law is broken.
//!
//! - [`rdb`]: RDB values and `RESTORE` payloads of ours, changed, with their checksums made right
//! - [`redisbloom`]: those of RedisBloom
//! - [`chunks`]: `LOADCHUNK`, in any order, with any chunks, saved and loaded in between
//! - [`filters`] and [`counters`]: sequences of operations, compared with naive sets
//!
//! The laws: what was let in is saved and loaded again by every way and is equal; it answers, and is measured, copied,
//! moved, merged and cleared; there is no false negative, and exact counts are exact; nothing takes more memory than
//! was asked for; what is rejected changes nothing.
//!
//! Tests of the core and of the module use what it is made of: values as lists of fields, `DUMP` payloads with a right
//! checksum, values of every kind, and RedisBloom's.

#![allow(missing_docs, reason = "names of fields and values are those of the stored format, which is documented there")]

mod family;
pub mod fields;
mod forge;
pub mod forged;
mod input;
mod laws;
mod limit;
mod made;
mod operation;
pub mod payload;
pub mod random;
pub mod redisbloom_values;
mod targets;
pub mod values;

pub use operation::AFTER_OPERATION;
pub use targets::chunks::chunks;
pub use targets::counters::counters;
pub use targets::filters::filters;
pub use targets::rdb::rdb;
pub use targets::redisbloom::redisbloom;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// Every target with its name: that of its corpus, and of the program that fuzzes it.
pub const TARGETS: [(&str, Target); 5] =
    [("rdb", rdb), ("redisbloom", redisbloom), ("chunks", chunks), ("filters", filters), ("counters", counters)];
