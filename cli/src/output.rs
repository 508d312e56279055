//! Prints the answer of a command as text or as one JSON value.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::failure::Failure;

/// The form of answers on standard output. Progress and errors go to standard error.
#[derive(Debug)]
pub struct Output {
    json: bool,
    /// Whether an answer was printed.
    answered: AtomicBool,
}

/// The answer of a command that failed before it had any other.
#[derive(Serialize)]
struct Failed<'a> {
    error: &'a str,
    advice: Option<&'a str>,
    exit_code: u8,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json, answered: AtomicBool::new(false) }
    }

    /// Whether answers are JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `answer` as JSON, or as the text that the function `text` returns for it.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn answer<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let json = || serde_json::to_string(answer).map_err(|error| Failure::new(format!("no JSON: {error}")));
        let line = if self.json { json()? } else { text(answer) };
        self.answered.store(true, Ordering::Relaxed);
        self.plain(&(line + "\n"))
    }

    /// Prints a failure as JSON if answers are JSON and none was printed. Standard error has its text in any case.
    pub fn failure(&self, error: &str, advice: Option<&str>, exit_code: u8) {
        if self.json && !self.answered.load(Ordering::Relaxed) {
            let _ = self.answer(&Failed { error, advice, exit_code }, |_| String::new());
        }
    }

    /// Prints a text unchanged.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn plain(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }
}

/// The result of printing to standard output. If its reader closed the pipe, printing counts as a success.
///
/// # Errors
/// When printing failed for another reason.
pub fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a message to standard error. Used where a failure cannot be returned.
pub fn report(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
