//! The data types as the server sees them.

pub mod callbacks;
pub mod family;
