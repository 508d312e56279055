//! How long a server takes for a command, however busy the machine is.

use std::fs;
use std::time::{Duration, Instant};

use crate::history::line;
use rollcall_testkit::client::Client;

/// The slowest commands that are kept.
const KEPT: usize = 5;

/// Bytes of an argument that are shown.
const SHOWN: usize = 60;

/// The time that a server's main thread has run.
pub struct Pace {
    file: String,
    slowest: Vec<Slow>,
}

/// How long a command took.
struct Slow {
    waited: Duration,
    worked: Duration,
    line: String,
}

impl Slow {
    /// What the command itself took: the thread cannot have worked for longer than was waited, and other programs may have
    /// had the core meanwhile.
    fn took(&self) -> Duration {
        self.worked.min(self.waited)
    }
}

/// The moment before a command.
pub struct Start(Instant, Duration);

impl Pace {
    /// Of the server that this client speaks to.
    pub fn of(client: &mut Client) -> Pace {
        let process = client.info_number("process_id");
        let pace = Pace { file: format!("/proc/{process}/task/{process}/schedstat"), slowest: Vec::new() };
        assert!(pace.worked() > Duration::ZERO, "no time of work in {}", pace.file);
        pace
    }

    fn worked(&self) -> Duration {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
    }

    /// Call it before a command.
    pub fn start(&self) -> Start {
        Start(Instant::now(), self.worked())
    }

    /// Call it with the command after its reply.
    pub fn end(&mut self, Start(begun, worked): Start, words: &[Vec<u8>]) {
        let waited = begun.elapsed();
        if self.slowest.len() == KEPT && self.slowest.last().is_some_and(|last| waited <= last.took()) {
            return;
        }
        let worked = self.worked().saturating_sub(worked);
        self.slowest.push(Slow { waited, worked, line: line(words, SHOWN).chars().take(400).collect() });
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.took()));
        self.slowest.truncate(KEPT);
    }

    /// What the slowest command took.
    pub fn longest(&self) -> Duration {
        self.slowest.first().map_or(Duration::ZERO, Slow::took)
    }

    /// The slowest commands, one a line.
    pub fn report(&self) -> String {
        let line = |slow: &Slow| format!("  {:.1?} of work, {:.1?} waited: {}\n", slow.worked, slow.waited, slow.line);
        self.slowest.iter().map(line).collect()
    }
}
