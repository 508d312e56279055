//! Fuzz targets of the core library. A target takes any bytes, uses them as a client or a file could, and panics if a
//! law is broken.
//!
//! - [`rdb`]: RDB values and `RESTORE` payloads in Rollcall's format, damaged, with corrected checksums
//! - [`redisbloom`]: the same in RedisBloom's format
//! - [`payloads`]: `DUMP` payloads of both formats, read without a server: damaged, compressed, forged
//! - [`chunks`]: `LOADCHUNK` with any chunks in any order, with saving and loading in between
//! - [`filters`] and [`counters`]: sequences of operations, compared with naive sets
//!
//! The laws:
//!
//! - A value that was accepted can be saved and loaded again in every format, and is then equal.
//! - It can be queried, measured, copied, moved, merged and cleared.
//! - A filter has no false negatives, and an exact count is exact.
//! - No value takes more memory than the size limit allowed.
//! - Rejected input changes nothing.
//!
//! Tests of the core and of the module use the parts of this crate: values as lists of fields, `DUMP` payloads with
//! correct checksums, values of every kind, and RedisBloom's values.

#![allow(missing_docs, reason = "names of fields and values are those of the stored format, which is documented there")]

mod family;
pub mod fields;
mod forge;
pub mod forged;
pub mod input;
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
pub use targets::payloads::payloads;
pub use targets::rdb::rdb;
pub use targets::redisbloom::redisbloom;

/// A function that takes any bytes, and panics if they break a law.
pub type Target = fn(&[u8]);

/// Every target with its name. The folder of its corpus and its libFuzzer program have the same name.
pub const TARGETS: [(&str, Target); 6] = [
    ("rdb", rdb),
    ("redisbloom", redisbloom),
    ("payloads", payloads),
    ("chunks", chunks),
    ("filters", filters),
    ("counters", counters),
];
