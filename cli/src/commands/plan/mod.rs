//! `plan`: computes the memory and the errors of filters and counters, and the commands that create them. It asks no
//! server: the sizes are computed by the module's own code.

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

mod asked;
mod counter;
mod filter;

/// Arguments of `plan`.
#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Compute the memory and the false positive rate of filters
    Filter(filter::Filter),
    /// Compute the memory and the error of counters
    Counter(counter::Counting),
}

impl Plan {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Plan::Filter(filter) => filter.run(output),
            Plan::Counter(counter) => counter.run(output),
        }
    }
}
