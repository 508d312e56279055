//! `top`: every filter and counter of a server, as a live table.

mod columns;
mod live;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use crate::server::{Server, Url};
use crate::watch::{Nodes, Scope, rows};
use columns::{Column, printed, sort, summary};
use live::View;

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Show only keys whose names match this pattern, in the syntax of KEYS: user:*
    #[arg(long)]
    pattern: Option<String>,
    /// The column to sort by: numbers in descending order, keys and kinds in alphabetical order
    #[arg(long, default_value = "bytes")]
    sort: Column,
    /// Reverse the order
    #[arg(long)]
    reverse: bool,
    /// The largest number of rows to show
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the table once and exit, as is done when the output is not a terminal
    #[arg(long)]
    once: bool,
    /// Seconds between two readings of the server
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    url: Url,
}

impl Top {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let pattern = self.pattern.as_deref();
        if !self.once && !output.is_json() && std::io::stdout().is_terminal() {
            let nodes = Nodes::new(&self.url.url, &self.url.access)?;
            let view = View::new(self.sort, self.reverse, self.limit);
            return live::show(nodes, pattern, Duration::from_secs(self.interval), view);
        }
        let mut server = Server::connect(&self.url.url, &self.url.access)?;
        let mut all = rows(&mut server, &Scope::matching(pattern))?.rows;
        sort(&mut all, self.sort, self.reverse);
        let summary = summary(&all);
        all.truncate(self.limit.map_or(usize::MAX, |limit| limit as usize));
        output.answer(&all, |rows| if rows.is_empty() { summary } else { format!("{}\n{summary}", printed(rows)) })?;
        match pattern {
            Some(pattern) if all.is_empty() => Err(Failure::of(format!("no filter or counter matches {pattern}"))),
            _ => Ok(()),
        }
    }
}
