//! One run of a scenario: its seed, its clock, and its failure reports.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rollcall_testkit::EndOnDrop;

/// A whole number from an environment variable, or `default`.
pub fn setting(name: &str, default: u64) -> u64 {
    let Ok(value) = std::env::var(name) else { return default };
    value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}, expected a whole number"))
}

pub struct Run {
    name: &'static str,
    pub seed: u64,
    started: Instant,
    over: AtomicBool,
    /// A lock that each writer holds for reading while commands are in flight. A thread that holds it for writing knows
    /// that no command is in flight.
    pub gate: RwLock<()>,
    commands: AtomicU64,
    items: AtomicU64,
    strangers: AtomicU64,
}

impl Run {
    pub fn new(name: &'static str) -> Run {
        let run = Run {
            name,
            seed: setting("ROLLCALL_CHAOS_SEED", 16),
            started: Instant::now(),
            over: AtomicBool::new(false),
            gate: RwLock::new(()),
            commands: AtomicU64::new(0),
            items: AtomicU64::new(0),
            strangers: AtomicU64::new(0),
        };
        run.say(&format!("begins, seed {}", run.seed));
        run
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Prints a line about the progress of the run.
    pub fn say(&self, line: &str) {
        eprintln!("chaos: {} {:7.2} s: {line}", self.name, self.elapsed().as_secs_f64());
    }

    /// Ends the run and panics, because a promise was broken.
    pub fn violation(&self, key: &str, acknowledged: &str, came: &str) -> ! {
        self.end();
        panic!(
            "{}: a promise was broken\n  seed:         {}\n  moment:       {:.3} s after the start\n  key:          \
             {key}\n  acknowledged: {acknowledged}\n  came back:    {came}",
            self.name,
            self.seed,
            self.elapsed().as_secs_f64(),
        )
    }

    /// Whether the writers have to stop.
    pub fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    pub fn end(&self) {
        self.over.store(true, SeqCst);
    }

    /// Ends the run when the guard goes out of scope, also after a failure.
    pub fn end_on_drop(&self) -> EndOnDrop<'_> {
        EndOnDrop(&self.over)
    }

    pub fn acknowledged(&self, commands: u64, items: u64) {
        self.commands.fetch_add(commands, SeqCst);
        self.items.fetch_add(items, SeqCst);
    }

    /// The number of commands and items that were acknowledged so far, as text.
    pub fn load(&self) -> String {
        let (commands, items) = (self.commands.load(SeqCst), self.items.load(SeqCst));
        format!("{commands} commands with {items} items acknowledged")
    }

    /// Numbers of items that no writer adds. Each number is returned once.
    pub fn strangers(&self, count: u64) -> std::ops::Range<u64> {
        let first = self.strangers.fetch_add(count, SeqCst);
        first..first + count
    }
}
