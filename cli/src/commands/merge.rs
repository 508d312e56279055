//! `merge`: unites the values of files into one file.

use std::path::PathBuf;

use clap::Args;
use rollcall_core::error::Error;
use rollcall_core::window::Time;
use serde::Serialize;

use crate::failure::Failure;
use crate::file::{Entry, Reader, Value, Writer};
use crate::interrupt::Interrupt;
use crate::memory;
use crate::output::Output;
use crate::table::{bytes, count};

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// The file to write
    out: PathBuf,
    /// Files of the values to unite: filters with the same parameters, or counters with the same seed
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// The key to which `rollcall load` loads the value
    #[arg(long)]
    key: Option<String>,
}

/// The result of a merge.
#[derive(Debug, Serialize)]
struct Merged {
    kind: &'static str,
    file: String,
    values: u64,
    /// Number of items in the union; an estimate for filters.
    items: u64,
    size_bytes: u64,
}

impl Merge {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        let mut writer = Writer::create(&self.out, self.force)?;
        let limit = memory::available();
        let (mut union, mut values) = (None, 0);
        // Values are loaded one at a time: memory holds the union and one further value.
        for path in &self.files {
            let mut reader = Reader::open(path)?;
            while let Some(entry) = reader.next_value()? {
                interrupt.check()?;
                let value = reader.load(&entry, &limit)?;
                values += 1;
                union = Some(match union {
                    None => value,
                    Some(union) => united(union, &value).map_err(|(why, advice)| {
                        let failure = format!("{} cannot be united with those before: {why}", path.display());
                        advice.into_iter().fold(Failure::new(failure), Failure::advise)
                    })?,
                });
            }
        }
        let Some(union) = union else {
            return Err(Failure::nothing("the files have no values"));
        };
        let (items, size_bytes) = match &union {
            Value::Filter(filter) => (filter.num_items(), filter.size_bytes()),
            Value::Counter(counter) => (counter.count(), counter.size_bytes()),
        };
        let entry = Entry { key: self.key.map(String::into_bytes), ..Entry::new(union.kind()) };
        writer.store(&entry, &union)?;
        interrupt.check()?;
        writer.finish()?;
        let merged =
            Merged { kind: entry.kind.name(), file: self.out.display().to_string(), values, items, size_bytes };
        output.answer(&merged, |merged| {
            let (values, items, size) = (merged.values, count(merged.items as i64), bytes(merged.size_bytes));
            format!("{}: the union of {values} {}s, some {items} items in {size}", merged.file, merged.kind)
        })
    }
}

/// Returns the union of both values. If they cannot be united, the error is the reason, and an advice if there is one.
fn united(mut union: Value, other: &Value) -> Result<Value, (String, Option<&'static str>)> {
    let limit = memory::available();
    let text = |error: Error| {
        let advice = match &error {
            Error::RateExceeded { .. } => Some("build each filter with --capacity for the items of all"),
            Error::Incompatible { .. } => Some(
                "filters must be made with equal capacity, error, expansion, seed and layout; \
                 counters with equal seeds",
            ),
            _ => None,
        };
        (error.to_string(), advice)
    };
    match (&mut union, other) {
        (Value::Filter(ours), Value::Filter(theirs)) => {
            ours.live(Time::Reached).merge(&[theirs], &limit).map_err(text)?
        }
        (Value::Counter(ours), Value::Counter(theirs)) => {
            ours.live(Time::Reached).merge(&[theirs], &limit).map_err(text)?
        }
        (ours, theirs) => {
            let why = format!("it has a {}, and those before are {}s", theirs.kind().name(), ours.kind().name());
            return Err((why, Some("merge filters and counters into files of their own")));
        }
    };
    Ok(union)
}
