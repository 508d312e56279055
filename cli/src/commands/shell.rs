//! `completions` and `man`: what packages install beside the tool.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<(), Failure> {
        clap_complete::generate(self.shell, &mut Cli::command(), "rollcall", &mut io::stdout());
        Ok(())
    }
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// An existing folder
    folder: PathBuf,
}

impl Man {
    pub fn run(self) -> Result<(), Failure> {
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .map_err(|error| Failure::of(format!("cannot write man pages to {}: {error}", self.folder.display())))
    }
}
