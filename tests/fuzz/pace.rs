//! Measures the processor time that a server takes for a command, which does not depend on the load of the machine.

use std::fs;
use std::time::{Duration, Instant};

use rollcall_testkit::{Client, typed};

/// Number of slowest commands that are kept.
const KEPT: usize = 5;

/// Number of bytes that are shown of each argument.
const SHOWN: usize = 60;

/// Measures the processor time of a server's main thread.
pub struct Pace {
    file: String,
    slowest: Vec<Slow>,
}

/// The time that a slow command took.
struct Slow {
    waited: Duration,
    worked: Duration,
    /// The time that is allowed for the bytes of the arguments: a byte may be an item.
    allowed: Duration,
    line: String,
}

impl Slow {
    /// The time that the command itself took: the thread's processor time, which leaves out waiting for a processor. It
    /// cannot exceed the elapsed time.
    fn took(&self) -> Duration {
        self.worked.min(self.waited)
    }

    /// The time beyond what is allowed for the arguments.
    fn beyond(&self) -> Duration {
        self.took().saturating_sub(self.allowed)
    }
}

/// The time before a command: the wall clock, and the processor time of the server's thread.
pub struct Start(Instant, Duration);

impl Pace {
    /// Prepares to measure the server that this client is connected to.
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

    /// Must be called before a command is sent.
    pub fn start(&self) -> Start {
        Start(Instant::now(), self.worked())
    }

    /// Must be called after the reply, with the words of the command.
    pub fn end(&mut self, Start(begun, worked): Start, words: &[Vec<u8>]) {
        let waited = begun.elapsed();
        let allowed = Duration::from_nanos(250) * words.iter().map(Vec::len).sum::<usize>() as u32;
        let beyond = waited.saturating_sub(allowed);
        if self.slowest.len() == KEPT && self.slowest.last().is_some_and(|last| beyond <= last.beyond()) {
            return;
        }
        let worked = self.worked().saturating_sub(worked);
        self.slowest.push(Slow { waited, worked, allowed, line: typed(words, SHOWN).chars().take(400).collect() });
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.beyond()));
        self.slowest.truncate(KEPT);
    }

    /// The longest time of a command, without 0.25 µs for each byte of its arguments.
    pub fn longest(&self) -> Duration {
        self.slowest.first().map_or(Duration::ZERO, Slow::beyond)
    }

    /// A text with the slowest commands, one per line.
    pub fn report(&self) -> String {
        let line = |slow: &Slow| format!("  {:.1?} of work, {:.1?} waited: {}\n", slow.worked, slow.waited, slow.line);
        self.slowest.iter().map(line).collect()
    }
}
