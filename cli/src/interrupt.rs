//! Handles Ctrl-C, SIGTERM and SIGHUP: a long command ends between two steps, and removes its temporary data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// A flag that a signal sets to ask the command to end. A second Ctrl-C ends the process at once.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// The signal that was received; 0 for none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for signals from now on. Signals that the process was started to ignore, as `nohup` does, stay ignored.
    pub fn listen() -> Result<Self, Failure> {
        let (asked, by) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)) {
            flag::register_conditional_shutdown(signal, Failure::exit_code_of(signal).into(), asked.clone())
                .and_then(|_| flag::register_usize(signal, by.clone(), usize::try_from(signal).unwrap_or_default()))
                .and_then(|_| flag::register(signal, asked.clone()))
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        }
        Ok(Interrupt { signal: by })
    }

    /// Fails if a signal asked the command to end.
    pub fn check(&self) -> Result<(), Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::interrupted(i32::try_from(signal).unwrap_or(SIGINT))),
        }
    }
}

/// Whether this process ignores a signal, according to the system.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
