//! `top`: every filter and counter of a server, as a live table.

mod columns;
mod live;

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::health::Severity;
use crate::output::Output;
use crate::server::{Server, Url};
use crate::watch::{Nodes, Row, Scope, rows, server_row};
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
    /// The largest number of keys to show
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the table once and exit, as is done when the output is not a terminal
    #[arg(long)]
    once: bool,
    /// Print the table once, and exit with 1 if a finding has this severity or a higher one
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Seconds between two readings of the server
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    url: Url,
}

/// The severities that `--fail-on` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Warning,
    Critical,
}

impl Top {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let pattern = self.pattern.as_deref();
        if !self.once && self.fail_on.is_none() && !output.is_json() && std::io::stdout().is_terminal() {
            let nodes = Nodes::new(&self.url.url, &self.url.access)?;
            let is_alone = !self.url.access.cluster;
            let view = View::new(self.sort, self.reverse, self.limit);
            return live::show(nodes, is_alone, pattern, Duration::from_secs(self.interval), view);
        }
        let mut server = Server::connect(&self.url.url, &self.url.access)?;
        let mut all = rows(&mut server, &Scope::matching(pattern))?.rows;
        let keys = all.len();
        for node in 0..server.num_nodes() {
            all.extend(server_row(&mut server, node, !self.url.access.cluster));
        }
        sort(&mut all, self.sort, self.reverse);
        let summary = summary(&all);
        let failing = self.fail_on.map_or(0, |fail_on| all.iter().filter(|row| fail_on.is_reached(row)).count());
        let found = all.len();
        all.truncate(self.limit.map_or(found, |limit| found - keys + limit as usize));
        output.answer(&all, |rows| if rows.is_empty() { summary } else { format!("{}\n{summary}", printed(rows)) })?;
        match pattern {
            Some(pattern) if keys == 0 => Err(Failure::nothing(format!("no filter or counter matches {pattern}"))),
            _ if failing > 0 => Err(Failure::does_not_hold(format!("{failing} of {found} rows need a look"))
                .advise("the table says what is wrong with each, and what to do")),
            _ => Ok(()),
        }
    }
}

impl FailOn {
    /// Whether a row has a finding of this severity or a higher one. An error of the server counts as critical.
    fn is_reached(self, row: &Row) -> bool {
        let severity = match self {
            FailOn::Warning => Severity::Warning,
            FailOn::Critical => Severity::Critical,
        };
        row.rejected.is_some() || row.urgency() >= Some(severity)
    }
}
