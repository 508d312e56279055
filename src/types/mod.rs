//! The data types of the module in the server.

pub mod callbacks;
pub mod entry;
pub mod family;
pub mod names;
pub mod totals;
