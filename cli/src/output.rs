//! What a command answers with: text for people, or one JSON value.

use std::io::{self, Write};

use serde::Serialize;

/// Where answers go, and in which form. Progress and errors go to standard error.
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

    /// Prints `answer` as JSON, or what `text` makes of it.
    pub fn answer<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) {
        let line = if self.json { serde_json::to_string(answer).unwrap_or_default() } else { text(answer) };
        // Whoever reads it may have seen enough.
        let _ = writeln!(io::stdout().lock(), "{line}");
    }

    /// Prints a text as it is.
    pub fn plain(&self, text: &str) {
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }
}
