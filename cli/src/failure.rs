//! How a command fails.

use std::fmt;

/// The reason of a failure, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    text: String,
    advice: Option<String>,
}

/// The kind of a failure, which determines the exit code. Exit code 0 means that everything was done.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The work was done, and a check failed or something was left out.
    DoesNotHold,
    /// The arguments are invalid whatever the server holds. Errors that clap finds have the same exit code.
    Arguments,
    /// The command could not do its work.
    Failed,
    /// The command could not do its work, because a server cannot be reached, or no longer answers.
    Down,
    /// There is nothing to work on: no key, value or item has the name or is in the place.
    Nothing,
    /// A signal ended the command.
    Interrupted(i32),
}

impl Failure {
    /// A failure that prevented the work.
    pub fn new(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Failed, text: text.into(), advice: None }
    }

    /// A failure because nothing answers at the address of a server, or its connection was lost.
    pub fn down(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Down, text: text.into(), advice: None }
    }

    /// A failure because there is nothing to work on.
    pub fn nothing(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Nothing, text: text.into(), advice: None }
    }

    /// A failure because of invalid arguments.
    pub fn arguments(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Arguments, text: text.into(), advice: None }
    }

    /// A failure of a command that a signal ended.
    pub fn interrupted(signal: i32) -> Self {
        Failure { kind: Kind::Interrupted(signal), text: "interrupted".to_owned(), advice: None }
    }

    /// A failure after the work was done: a check failed or something was left out.
    pub fn does_not_hold(text: impl Into<String>) -> Self {
        Failure { kind: Kind::DoesNotHold, text: text.into(), advice: None }
    }

    /// Adds what the user can do about the failure.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds what else the user should know, after the advice.
    pub fn note(self, note: impl Into<String>) -> Self {
        let note = note.into();
        let advice = match &self.advice {
            Some(advice) => format!("{advice}\n  {note}"),
            None => note,
        };
        self.advise(advice)
    }

    /// The message of the failure.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the user can do about the failure.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::DoesNotHold => 1,
            Kind::Arguments => 2,
            Kind::Failed | Kind::Down => 3,
            Kind::Nothing => 4,
            Kind::Interrupted(signal) => Failure::exit_code_of(signal),
        }
    }

    /// The exit code of a process that a signal ended, by the convention of shells: 128 plus the signal's number.
    pub fn exit_code_of(signal: i32) -> u8 {
        u8::try_from(signal).unwrap_or_default().saturating_add(128)
    }

    /// Whether nothing answers at the address of a server. A server that answers with an error is not down.
    pub fn is_down(&self) -> bool {
        matches!(self.kind, Kind::Down)
    }

    /// Whether a signal ended the work.
    pub fn is_interruption(&self) -> bool {
        matches!(self.kind, Kind::Interrupted(_))
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
