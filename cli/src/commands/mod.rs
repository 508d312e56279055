//! The subcommands.

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

mod shell;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the completions of a shell
    Completions(shell::Completions),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(shell::Man),
}

impl Command {
    /// Does it. `tool` is the description of all arguments.
    pub fn run(self, _output: &Output, tool: clap::Command) -> Result<(), Failure> {
        match self {
            Command::Completions(completions) => {
                completions.run(tool);
                Ok(())
            }
            Command::Man(man) => man.run(tool),
        }
    }
}
