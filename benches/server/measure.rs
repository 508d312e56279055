//! Measures the server's time per call in rounds, and compares medians with goals.

use std::time::Instant;

use crate::resp::{Batch, Reply};
use crate::servers::Server;
use rollcall_bench_output::markdown;
use rollcall_bench_output::progress::Progress;

/// The servers, the settings, and the results of all measurements.
pub struct Bench {
    /// The server with Rollcall and the benchmark module of benches/floor.
    pub ours: Server,
    /// The server with RedisBloom.
    pub peer: Server,
    /// Whether to run fewer rounds on smaller data, which shows that everything works, and rough figures.
    pub quick: bool,
    /// The rows of the table of goals.
    pub rows: Vec<Row>,
    /// Tables and sentences that follow the table of goals, in Markdown.
    pub extras: Vec<String>,
    progress: Progress,
}

impl Bench {
    /// A bench without results. `sections` are the names of the sections, each with its approximate duration in
    /// seconds.
    pub fn new(ours: Server, peer: Server, quick: bool, sections: &[(&'static str, u64)]) -> Bench {
        Bench { ours, peer, quick, rows: Vec::new(), extras: Vec::new(), progress: Progress::new("bench", sections) }
    }

    /// The number of rounds for each contender.
    pub fn rounds(&self) -> usize {
        self.pick(5, 15)
    }

    /// Returns `quick` in a quick run, and `full` otherwise.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Shows which section runs.
    pub fn section(&mut self, index: usize) {
        self.progress.section(index);
    }

    /// Shows that `done` of `all` steps of the section are done.
    pub fn step(&mut self, done: usize, all: usize) {
        self.progress.part(done as f64 / all as f64);
    }

    /// Adds a table after the table of goals.
    pub fn extra(&mut self, title: &str, heads: &[&str], lines: &[Vec<String>]) {
        let table = markdown::table(heads, lines);
        self.extras.push(format!("### {title}\n\n{table}"));
    }

    /// Clears the progress bar.
    pub fn finish(&mut self) {
        self.progress.finish();
    }
}

/// The goal of a row.
#[derive(Clone, Copy)]
pub enum Goal {
    /// The other contender's figure is at least this multiple of Rollcall's.
    TimesFaster(f64),
    /// Rollcall's figure is at most this multiple of the other contender's.
    Within(f64),
    /// Rollcall's figure is at most this number.
    AtMost(f64),
    /// There is no goal; the figure is shown for comparison.
    Shown,
}

/// The goal against RedisBloom: Rollcall is never slower and never larger.
pub const NEVER_BEHIND: Goal = Goal::TimesFaster(1.0);

/// The goal against a lower bound, or against another way to do the same work.
pub const NEAR: Goal = Goal::Within(1.1);

/// A row of the table.
pub struct Row {
    /// The work that was measured.
    pub work: String,
    /// The goal that the figures have to meet.
    pub goal: Goal,
    /// Rollcall's figure.
    pub ours: f64,
    /// The other contender's name and figure.
    pub other: Option<(&'static str, f64)>,
    /// The unit of Rollcall's and the other contender's figure.
    pub unit: &'static str,
}

impl Row {
    /// The ratio that the goal limits, with two decimals: what is shown is what is compared.
    pub fn ratio(&self) -> Option<f64> {
        let (_, other) = self.other?;
        let ratio = match self.goal {
            Goal::TimesFaster(_) => other / self.ours,
            _ => self.ours / other,
        };
        Some((ratio * 100.0).round() / 100.0)
    }

    /// Whether the goal is met; `None` without a goal.
    pub fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::TimesFaster(least) => self.ratio().map(|ratio| ratio >= least),
            Goal::Within(most) => self.ratio().map(|ratio| ratio <= most),
            Goal::AtMost(most) => Some(self.ours <= most),
            Goal::Shown => None,
        }
    }
}

/// Figures of one contender, one per round.
#[derive(Default, Clone)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a round's figure.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The median of the figures.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            len if len % 2 == 1 => sorted[len / 2],
            len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
        }
    }

    /// The largest figure.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }
}

/// Runs the batches and returns the server's time per call of `command`, in microseconds.
///
/// The caches still have the other server's data at first, so `warm` runs before without being measured. The server
/// counts whole microseconds, but a call may start at any fraction of one, so the mean over many calls is right.
pub fn server_time(server: &mut Server, command: &str, warm: &[Batch], batches: &[Batch]) -> f64 {
    server.client.run(warm);
    server.call("CONFIG RESETSTAT");
    server.client.run(batches);
    time_of(&server.call("INFO commandstats"), command)
}

/// Server time per call of `command`, in microseconds, from `INFO commandstats`.
pub fn time_of(stats: &Reply, command: &str) -> f64 {
    let stats = stats.text();
    // INFO has a command's name as its module registered it.
    let name = |line: &str| line.strip_prefix("cmdstat_")?.split_once(':').map(|(name, _)| name.to_uppercase());
    let line = stats.lines().find(|line| name(line).as_deref() == Some(command));
    let line = line.unwrap_or_else(|| panic!("the server did not run {command}"));
    let field = |name: &str| -> f64 {
        let value = line.split([',', ':']).find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
    };
    assert_eq!(field("failed_calls"), 0.0, "{command} failed");
    field("usec") / field("calls")
}

/// Runs the batches and returns the number of requests per second, as a client sees it.
pub fn throughput(server: &mut Server, batches: &[Batch]) -> f64 {
    let requests: usize = batches.iter().map(Batch::requests).sum();
    let start = Instant::now();
    server.client.run(batches);
    requests as f64 / start.elapsed().as_secs_f64()
}

pub const HEADS: [&str; 6] = ["work", "goal", "ours", "compared with", "ratio", "met"];

/// A number with its significant digits only.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => {
            let digits = format!("{value:.0}");
            let groups: Vec<_> =
                digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
            groups.join(",")
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The cells of a row, under [`HEADS`].
pub fn cells(row: &Row) -> [String; 6] {
    let goal = match (row.goal, row.other) {
        (Goal::TimesFaster(least), Some((name, _))) => format!("{name} / ours ≥ {least}"),
        (Goal::Within(most), Some((name, _))) => format!("ours / {name} ≤ {most}"),
        (Goal::AtMost(most), _) => format!("≤ {} {}", short(most), row.unit),
        _ => "-".to_owned(),
    };
    let met = match row.met() {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    [
        row.work.clone(),
        goal,
        format!("{} {}", short(row.ours), row.unit),
        row.other.map_or_else(String::new, |(name, value)| format!("{name}: {}", short(value))),
        row.ratio().map_or_else(String::new, short),
        met.to_owned(),
    ]
}
