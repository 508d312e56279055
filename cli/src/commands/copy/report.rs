//! The report of a copy, with the outcome of each key.

use serde::Serialize;

use crate::failure::Failure;
use crate::server::{Class, Fingerprint};
use crate::table::{bytes, table};

/// The largest number of keys for which the report lists every key. A larger report lists only the keys that did not go
/// as planned.
const MAX_ROWS: usize = 50;

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The key will be moved.
    Planned,
    /// The key was moved, and its value is equal.
    Moved,
    /// The target already had an equal value.
    Equal,
    /// The key was deleted or expired meanwhile.
    Gone,
    /// The key cannot be moved.
    Rejected,
    /// The loaded value differed from its source. The target keeps its old value.
    Differs,
    /// The target has the key, but the source's value changed afterwards.
    Behind,
    /// The source has the key at the end, and the target lacks it or has another value.
    Missing,
    /// The target has the key, but the source no longer has it at the end.
    Superfluous,
}

/// The outcome of one key.
#[derive(Debug, Serialize)]
pub struct Moved {
    pub key: String,
    pub kind: &'static str,
    pub bytes: u64,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(skip)]
    pub name: Vec<u8>,
    #[serde(skip)]
    pub class: Class,
    /// When the key expired at the source, in milliseconds since 1970; `None` if it did not.
    #[serde(skip)]
    pub expires_at: Option<u64>,
    /// The fingerprint of the moved value; `None` if the key was not moved.
    #[serde(skip)]
    pub fingerprint: Option<Fingerprint>,
}

/// The outcome of all keys.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub dry_run: bool,
    pub moves: Vec<Moved>,
}

impl Report {
    fn number(&self, outcome: Outcome) -> usize {
        self.moves.iter().filter(|row| row.outcome == outcome).count()
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let is_short = self.moves.len() <= MAX_ROWS;
        let plain = [Outcome::Planned, Outcome::Moved, Outcome::Equal];
        let shown: Vec<&Moved> = self.moves.iter().filter(|row| is_short || !plain.contains(&row.outcome)).collect();
        let mut rows = vec![["key", "kind", ">bytes", "outcome", "note"].map(str::to_owned).to_vec()];
        for row in &shown {
            let outcome = format!("{:?}", row.outcome).to_lowercase();
            rows.push(vec![row.key.clone(), row.kind.to_owned(), bytes(row.bytes), outcome, row.note.clone()]);
        }
        let outcomes = [
            (Outcome::Planned, "to move"),
            (Outcome::Moved, "moved"),
            (Outcome::Equal, "equal already"),
            (Outcome::Gone, "gone"),
            (Outcome::Rejected, "rejected"),
            (Outcome::Differs, "differ"),
            (Outcome::Behind, "changed meanwhile"),
            (Outcome::Missing, "missing"),
            (Outcome::Superfluous, "superfluous"),
        ];
        let counts: Vec<String> = outcomes
            .iter()
            .filter(|(outcome, _)| self.number(*outcome) > 0)
            .map(|(outcome, word)| format!("{} {word}", self.number(*outcome)))
            .collect();
        let sum: u64 = self.moves.iter().map(|row| row.bytes).sum();
        let summary = format!("{} keys, {}: {}", self.moves.len(), bytes(sum), counts.join(", "));
        if shown.is_empty() { summary } else { format!("{}\n{summary}", table(&rows)) }
    }

    /// Fails if a key was rejected, differs from its source, has changed since it was moved, or is missing or
    /// superfluous. While clients write, keys may come and go.
    pub fn verdict(&self, while_written: bool) -> Result<(), Failure> {
        let superfluous = if while_written { 0 } else { self.number(Outcome::Superfluous) };
        let missing = if while_written { 0 } else { self.number(Outcome::Missing) };
        let wrong = self.number(Outcome::Differs) + self.number(Outcome::Behind) + missing + superfluous;
        if wrong > 0 {
            let mut failure = Failure::does_not_hold(format!("{wrong} keys are not as their source is"));
            if wrong > missing + superfluous {
                failure = failure.advise("stop the writers and run the same again with --replace");
            } else if missing > 0 {
                failure = failure.advise("run the same again, with --replace if the target has another value there");
            }
            if superfluous > 0 {
                failure = failure.note("superfluous keys stay at the target until you delete them there");
            }
            return Err(failure);
        }
        let rejected = self.number(Outcome::Rejected);
        if rejected > 0 {
            let would = if self.dry_run { "cannot be moved" } else { "were not moved" };
            return Err(Failure::does_not_hold(format!("{rejected} of {} keys {would}", self.moves.len()))
                .advise("the table says of each why"));
        }
        Ok(())
    }
}
