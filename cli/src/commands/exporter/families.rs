//! Samples, gathered by metric and written as OpenMetrics has them: all of a metric together.
//!
//! The text is right for those too who know only the older format of Prometheus: it has no type that this does not know.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

/// What the names of all metrics begin with.
const PREFIX: &str = "rollcall";

/// What kind of figure a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What is now.
    Gauge,
    /// What has been since the server started. Its name ends with `_total`.
    Counter,
}

/// A metric. Its name lacks the prefix, the unit and the ending of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub unit: Option<Of>,
    pub kind: Kind,
    pub help: &'static str,
}

/// Units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Bytes,
    Seconds,
    /// A share, 0 to 1.
    Ratio,
}

impl Of {
    fn unit(self) -> Unit {
        match self {
            Of::Bytes => Unit::Bytes,
            Of::Seconds => Unit::Seconds,
            Of::Ratio => Unit::Other("ratio".to_owned()),
        }
    }
}

type Labels = Vec<(&'static str, String)>;

/// Samples of metrics, in the order of a table.
pub struct Families {
    all: Vec<(&'static Metric, Vec<(Labels, f64)>)>,
}

impl Families {
    /// None yet, of these metrics.
    pub fn new(table: impl IntoIterator<Item = &'static Metric>) -> Self {
        Families { all: table.into_iter().map(|metric| (metric, Vec::new())).collect() }
    }

    /// Adds a sample of a metric of the table.
    pub fn add<const N: usize>(&mut self, metric: &Metric, labels: [(&'static str, &str); N], value: f64) {
        let labels = labels.map(|(name, value)| (name, value.to_owned())).into();
        if let Some((_, samples)) = self.all.iter_mut().find(|(known, _)| known.name == metric.name) {
            samples.push((labels, value));
        }
    }

    /// The text.
    pub fn text(self) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Families").finish_non_exhaustive()
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (metric, samples) in self.all.iter().filter(|(_, samples)| !samples.is_empty()) {
            let kind = match metric.kind {
                Kind::Gauge => MetricType::Gauge,
                Kind::Counter => MetricType::Counter,
            };
            let unit = metric.unit.map(Of::unit);
            let mut family = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            for (labels, value) in samples {
                match metric.kind {
                    Kind::Gauge => family.encode_family(labels)?.encode_gauge(value)?,
                    Kind::Counter => family.encode_family(labels)?.encode_counter::<Labels, _, f64>(value, None)?,
                }
            }
        }
        Ok(())
    }
}
