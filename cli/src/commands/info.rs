//! `info`: describes the values of a file, after verifying all checksums.

use std::path::PathBuf;

use clap::Args;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::unstable::info::{CounterAt, Field, FilterAt, InfoField, OF_COUNTERS, OF_FILTERS};
use rollcall_core::window::Time;
use serde_json::{Map, Value as Json, json};

use crate::failure::Failure;
use crate::file::{Entry, Reader, Value};
use crate::memory;
use crate::output::Output;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct Info {
    /// The file with filters and counters
    file: PathBuf,
}

/// Labels and values, in the order in which they are printed.
type Fields = Vec<(&'static str, Json)>;

impl Info {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let mut reader = Reader::open(&self.file)?;
        let mut values = Vec::new();
        while let Some(entry) = reader.next_value()? {
            // Values are loaded one at a time to save memory.
            let fields = match reader.load(&entry, &memory::available())? {
                Value::Filter(filter) => fields_of_filter(&filter),
                Value::Counter(counter) => fields_of_counter(&counter)?,
            };
            values.push((fields_of_entry(&entry), fields));
        }
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        let as_map = |fields: &Fields| {
            fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Vec<_>>()
        };
        let json = json!({
            "file": self.file.display().to_string(),
            "bytes": bytes,
            "checksums": "verified",
            "values": values.iter().map(|(entry, fields)| as_map(entry).into_iter().chain(as_map(fields)).collect()).collect::<Vec<Map<_, _>>>(),
        });
        output.answer(&json, |_| {
            let mut lines = vec![format!("{}: {bytes} bytes, checksums verified", self.file.display())];
            for (entry, fields) in &values {
                let all: Vec<_> = entry.iter().chain(fields).collect();
                let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                lines.push(String::new());
                lines.extend(all.iter().map(|(name, value)| match value {
                    Json::String(text) => format!("{name:width$}  {text}"),
                    Json::Null => format!("{name:width$}  -"),
                    other => format!("{name:width$}  {other}"),
                }));
            }
            lines.join("\n")
        })
    }
}

fn fields_of_entry(entry: &Entry) -> Fields {
    let key = entry.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned());
    vec![("Kind", json!(entry.kind.name())), ("Key", json!(key)), ("Expires at (ms)", json!(entry.expires_at))]
}

/// The fields that `BF.INFO` reports.
fn fields_of_filter(filter: &BloomFilter) -> Fields {
    let at = FilterAt::new(filter, Time::Reached);
    fields(&OF_FILTERS, |of| of(&at), filter.params().seed)
}

/// The fields that `LC.INFO` reports.
fn fields_of_counter(counter: &Counter) -> Result<Fields, Failure> {
    let at = CounterAt::new(counter, Time::Reached).map_err(|error| Failure::new(error.to_string()))?;
    Ok(fields(&OF_COUNTERS, |of| of(&at), counter.params().seed))
}

/// The fields of `table` that have a value, and the seed, which servers do not report.
fn fields<F: Copy>(table: &[InfoField<F>], value_of: impl Fn(F) -> Field, seed: u64) -> Fields {
    let values = table.iter().filter_map(|field| {
        let value = match value_of(field.of) {
            Field::Integer(value) => json!(value),
            Field::Double(value) => json!(value),
            Field::Text(value) => json!(value),
            Field::Null => return None,
        };
        Some((field.label, value))
    });
    values.chain([("Seed", json!(seed))]).collect()
}
