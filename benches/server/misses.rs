//! Cache misses of a process, counted by perf where it is installed and the processor lets it count.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long perf takes to attach.
const ATTACHED: Duration = Duration::from_millis(50);

/// A count under way.
pub struct Counter(Child);

impl Counter {
    /// Counts from now on; `None` where perf is missing.
    pub fn start(process: u32) -> Option<Counter> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", "cache-misses", "-p", &process.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        std::thread::sleep(ATTACHED);
        Some(Counter(child))
    }

    /// The misses since the start; `None` where they cannot be counted.
    pub fn stop(mut self) -> Option<f64> {
        // perf writes its figures when it is interrupted.
        let interrupted = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        if !interrupted.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let mut text = String::new();
        self.0.stderr.take()?.read_to_string(&mut text).ok()?;
        let _ = self.0.wait();
        let line = text.lines().find(|line| line.contains("cache-misses"))?;
        line.split(',').next()?.parse().ok()
    }
}
