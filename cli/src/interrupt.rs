//! Handles Ctrl-C, SIGTERM and SIGHUP: a long command ends between two steps, and removes its temporary data.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// The signal that was received; 0 for none. It stays 0 until [`Interrupt::listen`] is called.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Time between two checks for a signal while waiting.
pub const LOOK: Duration = Duration::from_millis(100);

/// A flag that a signal sets to ask the command to end. A second Ctrl-C ends the process at once.
#[derive(Debug, Clone)]
pub struct Interrupt(());

impl Interrupt {
    /// Listens for signals from now on. Signals that the process was started to ignore, as `nohup` does, stay ignored.
    pub fn listen() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)) {
            flag::register_conditional_shutdown(signal, Failure::exit_code_of(signal).into(), asked.clone())
                .and_then(|_| flag::register_usize(signal, SIGNAL.clone(), usize::try_from(signal).unwrap_or_default()))
                .and_then(|_| flag::register(signal, asked.clone()))
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        }
        Ok(Interrupt(()))
    }

    /// Fails if a signal asked the command to end.
    pub fn check(&self) -> Result<(), Failure> {
        check()
    }
}

/// [`Interrupt::check`] for callers that do not know whether the command listens for signals.
pub fn check() -> Result<(), Failure> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Failure::interrupted(i32::try_from(signal).unwrap_or(SIGINT))),
    }
}

/// Runs `work`, which may wait for a server or a pipe, on a thread of its own. If a signal arrives, `work` has `grace`
/// left to end. After that the thread is left behind with what `work` owns.
///
/// # Errors
/// When a signal ended the wait, or when no thread can be started.
pub fn wait<T: Send + 'static>(grace: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (done, outcome) = sync_channel(1);
    let worker = spawn(move || drop(done.send(work())))?;
    match receive(grace, &outcome)? {
        Some(outcome) => Ok(outcome),
        // Only a panic ends the thread without an outcome, and it continues here.
        None => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(Failure::new("a thread ended without an outcome")),
        },
    }
}

/// The next outcome of a thread; `None` if the thread has ended. If a signal arrives, the thread has `grace` left.
///
/// # Errors
/// When a signal ended the wait.
pub fn receive<T>(grace: Duration, outcomes: &Receiver<T>) -> Result<Option<T>, Failure> {
    let mut interrupted = None;
    loop {
        match outcomes.recv_timeout(LOOK) {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(failure) = check()
            && interrupted.get_or_insert_with(Instant::now).elapsed() >= grace
        {
            return Err(failure);
        }
    }
}

/// Starts a thread.
///
/// # Errors
/// When the system starts none.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    let started = thread::Builder::new().spawn(work);
    started.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
}

/// Whether this process ignores a signal, according to the system.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
