//! `completions` and `man`: files that packages install with the tool.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(self, output: &Output, mut tool: clap::Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut tool, "rollcall", &mut script);
        output.plain(&String::from_utf8_lossy(&script))
    }
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// An existing folder
    folder: PathBuf,
}

impl Man {
    pub fn run(self, tool: clap::Command) -> Result<(), Failure> {
        clap_mangen::generate_to(tool, &self.folder)
            .map_err(|error| Failure::of(format!("cannot write man pages to {}: {error}", self.folder.display())))
    }
}
