//! Counts the cache misses of a process with perf, if perf is installed and the processor supports it.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// A running count. perf counts while a command of its own runs. Here that command copies its input to its output: the
/// first output shows that perf has begun, and the end of the input ends the command and perf.
pub struct Counter(Child);

impl Counter {
    /// Starts to count; `None` if perf is missing or does not begin.
    pub fn start(process: u32) -> Option<Counter> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", "cache-misses", "-p", &process.to_string(), "--", "cat"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut counter = Counter(command.spawn().ok()?);
        counter.0.stdin.as_mut()?.write_all(b".").ok()?;
        counter.0.stdout.as_mut()?.read_exact(&mut [0]).ok()?;
        Some(counter)
    }

    /// The number of misses since the start; `None` if they cannot be counted.
    pub fn stop(mut self) -> Option<f64> {
        drop(self.0.stdin.take());
        let mut text = String::new();
        self.0.stderr.take()?.read_to_string(&mut text).ok()?;
        let line = text.lines().find(|line| line.contains("cache-misses"))?;
        line.split(',').next()?.parse().ok()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
