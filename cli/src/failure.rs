//! How a command ends when it does not end well.

use std::fmt;

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    text: String,
    advice: Option<String>,
}

/// Exit codes besides 0. Wrong arguments end with 2, as clap has it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// What was checked does not hold.
    DoesNotHold = 1,
    /// The command could not do its work.
    Failed = 3,
}

impl Failure {
    /// The work could not be done.
    pub fn of(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Failed, text: text.into(), advice: None }
    }

    /// The work was done, and what was checked does not hold.
    pub fn does_not_hold(text: impl Into<String>) -> Self {
        Failure { kind: Kind::DoesNotHold, text: text.into(), advice: None }
    }

    /// With what the user can do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// With what else the user should know, after the advice.
    pub fn note(self, note: impl Into<String>) -> Self {
        let note = note.into();
        let advice = match &self.advice {
            Some(advice) => format!("{advice}\n  {note}"),
            None => note,
        };
        self.advise(advice)
    }

    /// What went wrong.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        self.kind as u8
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rollcall: {}", self.text)?;
        match &self.advice {
            Some(advice) => write!(f, "\n  {advice}"),
            None => Ok(()),
        }
    }
}
