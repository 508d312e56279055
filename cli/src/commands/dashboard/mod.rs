//! `dashboard`: a web page of a server's filters and counters, for a team to leave open.
//!
//! One thread, [`watcher`], polls the server at each interval and keeps the results in [`seen`], from which [`routes`]
//! answers pages. So the load on the server does not depend on the number of open pages. Only reading commands are
//! sent.

mod history;
mod meaning;
mod page;
mod routes;
mod seen;
mod state;
mod watcher;

use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::http::serve;
use crate::output::{Output, report};
use crate::server::{Address, Url};
use crate::watch::Nodes;
use routes::{MAX_QUESTIONS, routes};
use seen::Seen;
use watcher::{Schedule, Watcher};

/// Arguments of `dashboard`.
#[derive(Debug, Args)]
pub struct Dashboard {
    /// The address and port to listen on. There is no login: whoever can connect can read everything
    #[arg(long, default_value = "127.0.0.1:9728", value_name = "ADDRESS:PORT")]
    bind: SocketAddr,
    /// Show only keys whose names match this pattern, in the syntax of KEYS: user:*
    #[arg(long)]
    pattern: Option<String>,
    /// The largest number of keys to show: the first in order of names. Further keys are shown only if they have
    /// findings
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_keys: u32,
    /// Seconds between two readings of the server, or ten times the duration of a reading if that is longer
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    #[command(flatten)]
    url: Url,
}

impl Dashboard {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        if output.is_json() {
            return Err(Failure::arguments(
                "dashboard has no --json: `rollcall --json top` answers with what it shows",
            ));
        }
        let nodes = Nodes::new(&self.url.url, &self.url.access)?;
        let schedule = Schedule {
            name: Address::new(&self.url.url, &self.url.access)?.name(),
            is_alone: !self.url.access.cluster,
            pattern: self.pattern,
            max_keys: self.max_keys as usize,
            interval: Duration::from_secs(self.interval),
        };
        let seen = Arc::new(Mutex::new(Seen::new(schedule.max_keys)));
        let (questions, asked) = sync_channel(MAX_QUESTIONS);
        let watcher = Watcher::new(nodes, schedule, seen.clone());
        // The thread ends with the process: it has no work that must be completed.
        thread::spawn(move || watcher.run(&asked));
        if !self.bind.ip().is_loopback() {
            report(format_args!(
                "rollcall: there is no login: whoever reaches {} reads the names of all keys",
                self.bind
            ));
        }
        serve("dashboard", self.bind, routes(seen, questions))
    }
}
