//! What `make bench` and `make accuracy` print and draw.

pub mod markdown;
pub mod plot;
pub mod progress;
