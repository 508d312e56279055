//! `rollcall`: plans, builds, moves and checks the counters and filters of the module of the same name.
//!
//! [`commands`] has a file for each subcommand: its arguments, what it does, and what it prints. [`failure`], [`output`]
//! and [`progress`] are how every command ends, answers and shows that it is alive. [`file`] reads and writes values,
//! [`server`] speaks to servers, [`watch`] asks them how they are, [`http`] shows pages.

#![forbid(unsafe_code)]

mod commands;
mod failure;
mod file;
mod http;
mod items;
mod lines;
mod memory;
mod numbers;
mod output;
mod progress;
mod server;
mod table;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use commands::Command;
use output::Output;

/// Plan, build, move and check counters (LC.*) and Bloom filters (BF.*) of Rollcall.
#[derive(Debug, Parser)]
#[command(name = "rollcall", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    /// Answer with one JSON value instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Cli { json, command } = Cli::parse();
    match command.run(&Output::new(json), Cli::command()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
