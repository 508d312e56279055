//! The subcommands.

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

mod build;
mod check;
mod compare;
mod completions;
mod copy;
mod dashboard;
mod dump;
mod exporter;
mod import;
mod info;
mod install;
mod load;
mod man;
mod merge;
mod nodes;
mod plan;
mod top;

#[cfg(test)]
pub use man::EXAMPLES;
pub use man::exit_codes;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compute the memory and the error of filters and counters, and the commands that create them
    #[command(subcommand)]
    Plan(plan::Plan),
    /// Build a filter or counter from items, on all cores, into a file
    #[command(subcommand)]
    Build(build::Build),
    /// Unite the filters or the counters of several files into one
    Merge(merge::Merge),
    /// Check whether the filter or counter in a file agrees with a list of items
    Check(check::Check),
    /// Show the parameters and the size of each filter and counter in a file, and verify its checksums
    Info(info::Info),
    /// Show the filters and counters of a server as a table that updates itself
    Top(top::Top),
    /// Check that every node of a cluster can take the filters and counters of the others, before slots move
    Nodes(nodes::Nodes),
    /// Serve figures and findings of servers to Prometheus over HTTP
    Exporter(exporter::Exporter),
    /// Serve a web page that shows a server's filters and counters
    Dashboard(dashboard::Dashboard),
    /// Copy filters and counters from one server to another, and compare each copy with its source
    Copy(copy::Copy),
    /// Compare counters and filters with the sets of the same members on a server
    Compare(compare::Compare),
    /// Read a filter or counter from a server into a file
    Dump(dump::Dump),
    /// Load the filters and counters of a file into a server
    Load(load::Load),
    /// Add the lines of a file as items to a filter or counter on a server
    Import(import::Import),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(man::Man),
    /// Copy a file into a folder, in images that have no `cp`
    #[command(hide = true)]
    Install(install::Install),
}

impl Command {
    /// Runs the subcommand. `tool` is the description of all arguments.
    pub fn run(self, output: &Output, tool: clap::Command) -> Result<(), Failure> {
        match self {
            Command::Plan(plan) => plan.run(output),
            Command::Build(build) => build.run(output),
            Command::Merge(merge) => merge.run(output),
            Command::Check(check) => check.run(output),
            Command::Info(info) => info.run(output),
            Command::Compare(compare) => compare.run(output),
            Command::Top(top) => top.run(output),
            Command::Nodes(nodes) => nodes.run(output),
            Command::Exporter(exporter) => exporter.run(output),
            Command::Dashboard(dashboard) => dashboard.run(output),
            Command::Copy(copy) => copy.run(output),
            Command::Dump(dump) => dump.run(output),
            Command::Load(load) => load.run(output),
            Command::Import(import) => import.run(output),
            Command::Completions(completions) => completions.run(output, tool),
            Command::Man(man) => man.run(tool),
            Command::Install(install) => install.run(output),
        }
    }
}
