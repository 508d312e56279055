//! `rollcall`: plans, builds, moves and checks the counters and filters of the module of the same name.
//!
//! [`commands`] has a module for each subcommand: its arguments, its work and its output. All commands use [`failure`]
//! for errors, [`interrupt`] for signals, [`output`] for answers and [`progress`] for progress bars. [`file`] reads and
//! writes values, [`server`] speaks to servers, [`watch`] monitors them, and [`http`] serves pages.

#![forbid(unsafe_code)]

mod commands;
mod failure;
mod file;
mod health;
mod http;
mod interrupt;
mod items;
mod lines;
mod memory;
mod numbers;
mod output;
mod progress;
mod server;
mod table;
mod watch;

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use commands::Command;
use failure::Failure;
use output::Output;

/// Plan, build, move and check counters (LC.*) and Bloom filters (BF.*) of Rollcall.
#[derive(Debug, Parser)]
#[command(name = "rollcall", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = commands::exit_codes())]
struct Cli {
    /// Print the result as one JSON value instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// Time after a signal in which a command ends between two steps and removes its temporary data.
const END_TIME: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            output::report(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    rollcall_core::set_table_key(RandomState::new().hash_one(()));
    let asks_json = std::env::args_os().any(|argument| argument == "--json");
    let Cli { json, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are no errors, but fail if they cannot be printed.
        Err(said) if !said.use_stderr() => return output::written(said.print()).map(|()| ExitCode::SUCCESS),
        Err(wrong) => {
            let _ = wrong.print();
            let code = u8::try_from(wrong.exit_code()).unwrap_or(2);
            let text = wrong.to_string();
            let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
            Output::new(asks_json).failure(what.trim_start_matches("error: "), None, code);
            return Ok(ExitCode::from(code));
        }
    };
    // The command runs on a thread of its own. A signal would turn a wait for a server's reply into an error.
    let output = Arc::new(Output::new(json));
    let of_worker = output.clone();
    let outcome = interrupt::wait(END_TIME, move || command.run(&of_worker, Cli::command())).flatten();
    if let Err(failure) = &outcome {
        output.failure(failure.text(), failure.advice(), failure.exit_code());
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_man_pages_have_right_arguments() {
        for (_, example) in commands::EXAMPLES {
            let parts = example.split('\'').enumerate();
            let words = parts.flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            assert!(Cli::try_parse_from(words).is_ok(), "{example}");
        }
    }
}
