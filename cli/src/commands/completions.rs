//! `completions`: prints the script with which a shell completes the arguments of the tool.

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell for which to print completions
    shell: Shell,
}

impl Completions {
    pub fn run(self, output: &Output, mut tool: clap::Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut tool, "rollcall", &mut script);
        output.plain(&String::from_utf8_lossy(&script))
    }
}
