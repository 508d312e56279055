//! Groups samples by metric, and writes them in the two text formats that Prometheus reads. Each metric begins with its
//! help and its type, followed by its samples.

use std::fmt::Write;

/// The prefix of all metric names.
const PREFIX: &str = "rollcall_";

/// The suffix of the names of a counter's samples.
const TOTAL: &str = "_total";

/// A text format for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The Prometheus text format, version 0.0.4. All scrapers read it, and node_exporter reads text files in this
    /// format.
    Plain,
    /// OpenMetrics 1.0. This format has units and an end mark. A counter's name is the name of its samples without
    /// `_total`.
    OpenMetrics,
}

impl Form {
    pub const ALL: [Form; 2] = [Form::Plain, Form::OpenMetrics];

    /// The content type of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format that the `Accept` headers of a request ask for. OpenMetrics is used if a header names it and no plain
    /// format has a higher quality value.
    pub fn accepted<'a>(accepts: impl IntoIterator<Item = &'a str>) -> Form {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accepts.into_iter().flat_map(|accept| accept.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut version) = (1.0_f64, None);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = Some(value.trim()),
                    _ => {}
                }
            }
            let liked = match media.as_str() {
                "application/openmetrics-text" if matches!(version, None | Some("1.0.0")) => &mut open,
                "text/plain" | "text/*" | "*/*" => &mut plain,
                _ => continue,
            };
            *liked = quality.max(*liked);
        }
        if open > 0.0 && open >= plain { Form::OpenMetrics } else { Form::Plain }
    }
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A count since the server started. The name of its samples ends with `_total`.
    Counter,
}

/// A metric. Its `name` lacks the prefix, the unit and the suffix `_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub unit: Option<Of>,
    pub kind: Kind,
    pub help: &'static str,
}

impl Metric {
    /// The name of the metric in OpenMetrics.
    fn family(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{}", unit.name())).unwrap_or_default();
        format!("{PREFIX}{}{unit}", self.name)
    }

    /// The name of the metric's samples.
    pub fn sample(&self) -> String {
        match self.kind {
            Kind::Gauge => self.family(),
            Kind::Counter => self.family() + TOTAL,
        }
    }
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Bytes,
    Seconds,
    /// A share, 0 to 1.
    Ratio,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Of::Bytes => "bytes",
            Of::Seconds => "seconds",
            Of::Ratio => "ratio",
        }
    }
}

/// The labels as they are written between braces, and the value.
type Sample = (String, f64);

/// The samples of all metrics. Metrics are in the order of a table.
#[derive(Debug)]
pub struct Families {
    all: Vec<(&'static Metric, Vec<Sample>)>,
}

impl Families {
    /// The metrics of a table, without samples.
    pub fn new(table: impl IntoIterator<Item = &'static Metric>) -> Self {
        Families { all: table.into_iter().map(|metric| (metric, Vec::new())).collect() }
    }

    /// Adds a sample of a metric of the table.
    pub fn add<const N: usize>(&mut self, metric: &Metric, labels: [(&'static str, &str); N], value: f64) {
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).join(",");
        if let Some((_, samples)) = self.all.iter_mut().find(|(known, _)| known.name == metric.name) {
            samples.push((labels, value));
        }
    }

    /// Writes all metrics in the format `form`. Help texts need no escaping: none has a quote, a backslash or a second
    /// line.
    pub fn text(&self, form: Form) -> String {
        let mut text = String::new();
        for (metric, samples) in self.all.iter().filter(|(_, samples)| !samples.is_empty()) {
            let sample = metric.sample();
            let family = if form == Form::OpenMetrics { metric.family() } else { sample.clone() };
            let kind = match metric.kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
            };
            // Writing into memory does not fail.
            let _ = writeln!(text, "# HELP {family} {}\n# TYPE {family} {kind}", metric.help);
            if let (Form::OpenMetrics, Some(unit)) = (form, metric.unit) {
                let _ = writeln!(text, "# UNIT {family} {}", unit.name());
            }
            for (labels, value) in samples {
                let _ = match value.is_infinite() {
                    true => writeln!(text, "{sample}{{{labels}}} {}Inf", if *value > 0.0 { '+' } else { '-' }),
                    false => writeln!(text, "{sample}{{{labels}}} {value:?}"),
                };
            }
        }
        if form == Form::OpenMetrics {
            text += "# EOF\n";
        }
        text
    }
}

/// Escapes the value of a label for use between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}
