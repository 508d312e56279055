//! Output of `make bench` and `make accuracy`: tables, plots and progress.

pub mod markdown;
pub mod plot;
pub mod progress;
