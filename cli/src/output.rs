//! The answer of a command: text for people, or one JSON value.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Where answers are written, and in which form. Progress and errors go to standard error.
#[derive(Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Whether answers are JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `answer` as JSON, or as the text that `text` makes of it.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub fn answer<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let json = || serde_json::to_string(answer).map_err(|error| Failure::of(format!("no JSON: {error}")));
        let line = if self.json { json()? } else { text(answer) };
        self.plain(&(line + "\n"))
    }

    /// Prints a text unchanged.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub fn plain(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }
}

/// Turns the result of printing into a failure, if there was one. Whoever reads it, and closed it, has seen enough.
///
/// # Errors
/// When it could not be written for another reason.
pub fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::of(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a message to standard error, where a command has no other place to report it.
pub fn report(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
