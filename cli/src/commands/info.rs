//! `info`: what the values of a file are, after all its checksums were compared.

use std::path::PathBuf;

use clap::Args;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::live::Windowed;
use rollcall_core::window::{ClockSource, Window};
use serde_json::{Map, Value as Json, json};

use crate::failure::Failure;
use crate::file::{Entry, Reader, Value};
use crate::memory;
use crate::output::Output;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct Info {
    /// The file
    file: PathBuf,
}

/// Labels and values, in order.
type Fields = Vec<(&'static str, Json)>;

impl Info {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let mut reader = Reader::open(&self.file)?;
        let mut values = Vec::new();
        while let Some(entry) = reader.next_value()? {
            // One at a time in memory.
            let fields = match reader.load(&entry, &memory::available())? {
                Value::Filter(filter) => of_filter(&filter),
                Value::Counter(counter) => of_counter(&counter),
            };
            values.push((of_entry(&entry), fields));
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

fn of_entry(entry: &Entry) -> Fields {
    let key = entry.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned());
    vec![("Kind", json!(entry.kind.name())), ("Key", json!(key)), ("Expires at (ms)", json!(entry.expires_at))]
}

/// As `BF.INFO` labels them.
fn of_filter(filter: &BloomFilter) -> Fields {
    let (params, sliding) = (filter.params(), filter.sliding());
    let mut fields = vec![
        ("Capacity", json!(filter.capacity())),
        ("Size", json!(filter.size_bytes())),
        ("Number of filters", json!(filter.sub_filters().len())),
        ("Number of items inserted", json!(filter.num_items())),
        ("Expansion rate", json!((params.expansion > 0).then_some(params.expansion))),
        ("Error rate", json!(params.error_rate)),
        ("False positive rate", json!(filter.false_positive_rate())),
        ("Fill ratio", json!(filter.fill_ratio())),
        ("Layout", json!(filter.layout().name())),
        ("Seed", json!(params.seed)),
    ];
    if let Some(sliding) = sliding {
        fields.push(("Window", sliding.window().map_or(json!("last"), |window| json!(window.seconds()))));
        fields.push(("Slices", json!(sliding.slices())));
        fields.push(("Slice", json!(sliding.window().and(filter.newest_slice()))));
        fields.push(("Clock", json!(sliding.window().map(clock_source))));
        fields.push(("Volatile", json!(sliding.window().map(|window| u8::from(window.is_volatile())))));
        fields.push(("Refresh", json!(u8::from(sliding.refresh))));
    }
    fields
}

/// As `LC.INFO` labels them.
fn of_counter(counter: &Counter) -> Fields {
    let params = counter.params();
    let mut fields = vec![
        ("Capacity", json!(params.capacity)),
        ("Error rate", json!(params.error_rate)),
        ("Exact limit", json!(params.exact_limit)),
        ("Exact bytes", json!(params.exact_bytes)),
        ("Mode", json!(if counter.is_exact() { "exact" } else { "estimate" })),
        ("Representation", json!(counter.representation().name())),
        ("Size", json!(counter.size_bytes())),
        ("Count", json!(counter.count())),
        ("Standard error", json!(counter.standard_error())),
        ("Bits", json!(counter.num_bits())),
        ("Bits set", json!(counter.set_bits())),
        ("Seed", json!(params.seed)),
    ];
    if let Some(window) = counter.window() {
        fields.push(("Window", json!(window.seconds())));
        fields.push(("Slices", json!(window.slices())));
        fields.push(("Slice", json!(counter.newest_slice())));
        fields.push(("Clock", json!(clock_source(window))));
        fields.push(("Volatile", json!(u8::from(window.is_volatile()))));
    }
    fields
}

fn clock_source(window: &Window) -> &'static str {
    match window.clock_source() {
        ClockSource::System => "system",
        ClockSource::Manual => "manual",
    }
}
