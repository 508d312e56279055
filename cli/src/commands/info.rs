//! `info`: describes the values of a file, after verifying all checksums.

use std::path::PathBuf;

use clap::Args;
use rollcall_core::unstable::info::{CounterAt, Field, InfoField, OF_COUNTERS, OF_FILTERS};
use rollcall_core::window::Time;
use serde_json::{Map, Value as Json, json};

use crate::failure::Failure;
use crate::file::{Reader, Value};
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
            let mut fields = vec![
                ("Kind", json!(entry.kind.name())),
                ("Key", json!(entry.key.as_deref().map(String::from_utf8_lossy))),
                ("Expires at (ms)", json!(entry.expires_at)),
            ];
            fields.extend(match reader.load(&entry, &memory::available())? {
                Value::Filter(filter) => {
                    reported(&OF_FILTERS, |of| of(&filter.at(Time::Reached)), filter.params().seed)
                }
                Value::Counter(counter) => {
                    let at = CounterAt::new(&counter, Time::Reached);
                    reported(&OF_COUNTERS, |of| of(&at), counter.params().seed)
                }
            });
            values.push(fields);
        }
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        let as_map = |fields: &Fields| -> Map<String, Json> {
            fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        let json = json!({
            "file": self.file.display().to_string(),
            "bytes": bytes,
            "checksums": "verified",
            "values": values.iter().map(as_map).collect::<Vec<_>>(),
        });
        output.answer(&json, |_| {
            let mut lines = vec![format!("{}: {bytes} bytes, checksums verified", self.file.display())];
            for fields in &values {
                let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                lines.push(String::new());
                lines.extend(fields.iter().map(|(name, value)| match value {
                    Json::String(text) => format!("{name:width$}  {text}"),
                    Json::Null => format!("{name:width$}  -"),
                    other => format!("{name:width$}  {other}"),
                }));
            }
            lines.join("\n")
        })
    }
}

/// The fields of `BF.INFO` or `LC.INFO` that have a value, and the seed, which servers do not report.
fn reported<F: Copy>(table: &[InfoField<F>], value_of: impl Fn(F) -> Field, seed: u64) -> Fields {
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
