//! The subcommands.

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

mod build;
mod check;
mod info;
mod merge;
mod plan;
mod shell;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sizes, errors and commands for filters and counters, before there are any
    #[command(subcommand)]
    Plan(plan::Plan),
    /// Build a filter or counter from items, on all cores, into a file
    #[command(subcommand)]
    Build(build::Build),
    /// Unite the filters or counters of files
    Merge(merge::Merge),
    /// Check the filter or counter of a file against items
    Check(check::Check),
    /// What the filters and counters of a file are; compares all checksums
    Info(info::Info),
    /// Print the completions of a shell
    Completions(shell::Completions),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(shell::Man),
}

impl Command {
    /// Does it. `tool` is the description of all arguments.
    pub fn run(self, output: &Output, tool: clap::Command) -> Result<(), Failure> {
        match self {
            Command::Plan(plan) => plan.run(output),
            Command::Build(build) => build.run(output),
            Command::Merge(merge) => merge.run(output),
            Command::Check(check) => check.run(output),
            Command::Info(info) => info.run(output),
            Command::Completions(completions) => {
                completions.run(tool);
                Ok(())
            }
            Command::Man(man) => man.run(tool),
        }
    }
}
