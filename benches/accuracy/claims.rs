//! Claims of the documents, the measured figures, and the verdict whether each claim holds.

use std::sync::OnceLock;

use rollcall_core::counting::Estimated;

use crate::trials::{Measured, error_of_share, share};
use rollcall_bench_output::markdown;
use rollcall_bench_output::plot;

/// Number of standard errors by which a measured figure may exceed a claim in a full run. A full run has fixed seeds,
/// with which all claims hold.
const SIGMAS: f64 = 3.0;

/// The largest probability that a quick run rejects a true claim by chance.
const FALSE_ALARM: f64 = 0.01;

/// The least share of trials in which two standard errors cover the true number.
pub const LEAST_COVERED: f64 = 0.88;

static BOUND: OnceLock<f64> = OnceLock::new();

/// Sets the number of standard errors that a quick run allows, from the number of figures. By chance alone, hardly any
/// figure of a run exceeds it (Bonferroni's bound for normal errors), whichever seed the run has.
pub fn bound_for(figures: usize) {
    let each = FALSE_ALARM / figures.max(1) as f64;
    let (mut low, mut high) = (0.0, 40.0);
    while high - low > 1e-6 {
        let middle = (low + high) / 2.0;
        let beyond = libm::erfc(middle / std::f64::consts::SQRT_2) / 2.0;
        if beyond > each { low = middle } else { high = middle }
    }
    BOUND.get_or_init(|| high);
}

fn bound() -> f64 {
    BOUND.get().copied().unwrap_or(SIGMAS)
}

/// The claim of a document about a figure.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// The figure is at most this number.
    AtMost(f64),
    /// The figure is at least this number.
    AtLeast(f64),
    /// The figure differs from the first number by at most the second one.
    Near(f64, f64),
    /// The figure is 0 in every single trial.
    Never,
    /// There is no claim; the figure is shown for comparison.
    Nothing,
}

/// The notation of a figure.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// In per cent, with this number of decimals.
    Percent(usize),
    /// Without a unit, with this number of decimals.
    Plain(usize),
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            // No "-0.0".
            Unit::Percent(decimals) => format!("{:.decimals$} %", 100.0 * value + 0.0),
            Unit::Plain(decimals) => format!("{:.decimals$}", value + 0.0),
        }
    }
}

/// A whole number with commas.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    groups.join(",")
}

/// A number of members: in full up to 999,999, and larger powers of ten as such.
pub fn members(number: u64) -> String {
    let log = number.ilog10();
    if number >= 10_000_000 && number == 10u64.pow(log) { format!("10^{log}") } else { thousands(number) }
}

/// A measured figure, and the claim about it.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// The claim.
    pub claim: Claim,
    /// The measured figure.
    pub measured: Measured,
    /// The notation of the claim and the figure.
    pub unit: Unit,
}

impl Check {
    /// The check that two standard errors of the replies, each with the true number, cover it often enough.
    pub fn covered(replies: impl ExactSizeIterator<Item = (Estimated, u64)>) -> Check {
        let trials = replies.len();
        let is_covered =
            |(reply, truth): (Estimated, u64)| reply.count().abs_diff(truth) as f64 <= 2.0 * reply.standard_error;
        let measured = share(replies.map(is_covered)).or(error_of_share(trials, LEAST_COVERED));
        Check { claim: Claim::AtLeast(LEAST_COVERED), measured, unit: Unit::Percent(1) }
    }

    /// Number of standard errors by which the figure exceeds the claim; negative if the figure is below the claim.
    /// `None` without a claim.
    pub fn excess(&self) -> Option<f64> {
        let Measured { value, error } = self.measured;
        let beyond = match self.claim {
            Claim::AtMost(most) => value - most,
            Claim::AtLeast(least) => least - value,
            Claim::Near(near, within) => (value - near).abs() - within,
            Claim::Never => return Some(if value == 0.0 { 0.0 } else { f64::INFINITY }),
            Claim::Nothing => return None,
        };
        // A figure without a standard error either meets the claim or misses it.
        Some(if beyond == 0.0 {
            0.0
        } else if value.is_nan() {
            f64::INFINITY
        } else {
            beyond / error
        })
    }

    /// Whether the claim holds; `None` without a claim. In a full run a promised least share must be met, so that no
    /// figure in the document is below its promise.
    pub fn holds(&self) -> Option<bool> {
        let is_strict = BOUND.get().is_none() && matches!(self.claim, Claim::AtLeast(_));
        self.excess().map(|excess| excess <= if is_strict { 0.0 } else { bound() })
    }

    /// The claim, as text for a cell.
    pub fn claimed(&self) -> String {
        match self.claim {
            Claim::AtMost(most) => format!("≤ {}", self.unit.text(most)),
            Claim::AtLeast(least) => format!("≥ {}", self.unit.text(least)),
            Claim::Near(near, 0.0) => format!("= {}", self.unit.text(near)),
            Claim::Near(near, within) => format!("= {} ± {}", self.unit.text(near), self.unit.text(within)),
            Claim::Never => "never".to_owned(),
            Claim::Nothing => "-".to_owned(),
        }
    }

    fn error(&self) -> String {
        if self.measured.error == 0.0 { "-".to_owned() } else { self.unit.text(self.measured.error) }
    }

    /// The measured figure and its standard error, as text for a cell.
    pub fn brief(&self) -> String {
        let value = self.unit.text(self.measured.value);
        let text = match (self.unit, self.measured.error) {
            (_, 0.0) => value,
            (Unit::Percent(_), error) => format!("{} ± {}", value.trim_end_matches(" %"), self.unit.text(error)),
            (Unit::Plain(_), error) => format!("{value} ± {}", self.unit.text(error)),
        };
        if self.holds() == Some(false) { format!("**{text}**") } else { text }
    }
}

/// A cell of a table.
pub enum Cell {
    /// Plain text.
    Text(String),
    /// Three columns: the claim, the measured figure, and its standard error.
    Full(Check),
    /// One column: the measured figure and its standard error, in bold if the claim does not hold. The head of the
    /// column has the claim.
    Brief(Check),
}

impl Cell {
    /// A [`Cell::Full`] of one figure.
    pub fn full(claim: Claim, measured: Measured, unit: Unit) -> Cell {
        Cell::Full(Check { claim, measured, unit })
    }

    /// A [`Cell::Brief`] of one figure.
    pub fn brief(claim: Claim, measured: Measured, unit: Unit) -> Cell {
        Cell::Brief(Check { claim, measured, unit })
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// A table of figures and claims. The last cell of each row is its verdict.
pub struct Table {
    /// The title above the table; empty for none.
    pub title: String,
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// Longer tables are shown folded.
const LONGEST_SHOWN: usize = 24;

impl Table {
    /// A table without rows. For a full check, `heads` has the head of the column with the measured figure.
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Table {
        Self::with_labels(title, heads, [])
    }

    /// A table without rows, which has a column for each of `labels` after those of `heads`.
    pub fn with_labels(title: impl Into<String>, heads: &[&str], labels: impl IntoIterator<Item = String>) -> Table {
        let heads = heads.iter().map(|&head| head.to_owned()).chain(labels).collect();
        Table { title: title.into(), heads, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.heads.len(), "{}", self.title);
        self.rows.push(row);
    }

    fn checks(row: &[Cell]) -> impl Iterator<Item = &Check> {
        row.iter().filter_map(|cell| match cell {
            Cell::Text(_) => None,
            Cell::Full(check) | Cell::Brief(check) => Some(check),
        })
    }

    /// Whether all claims of a row hold; `None` if the row has no claim.
    fn holds(row: &[Cell]) -> Option<bool> {
        Self::checks(row).filter_map(Check::holds).reduce(|all, holds| all && holds)
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let is_full = |column: usize| self.rows.iter().any(|row| matches!(row[column], Cell::Full(_)));
        let mut heads: Vec<&str> = Vec::new();
        for (column, head) in self.heads.iter().enumerate() {
            if is_full(column) {
                heads.extend(["claimed", head, "standard error"]);
            } else {
                heads.push(head);
            }
        }
        let has_claims = self.rows.iter().any(|row| Self::holds(row).is_some());
        heads.extend(has_claims.then_some("verdict"));
        let line = |row: &Vec<Cell>| {
            let mut line = Vec::new();
            for (column, cell) in row.iter().enumerate() {
                match cell {
                    Cell::Text(text) => line.push(text.clone()),
                    Cell::Full(check) => {
                        line.extend([check.claimed(), check.unit.text(check.measured.value), check.error()])
                    }
                    Cell::Brief(check) if is_full(column) => {
                        line.extend(["-".to_owned(), check.brief(), String::new()])
                    }
                    Cell::Brief(check) => line.push(check.brief()),
                }
            }
            line.extend(has_claims.then(|| verdict(Self::holds(row))));
            line
        };
        let table = markdown::table(&heads, &self.rows.iter().map(line).collect::<Vec<_>>());
        match (self.title.is_empty(), self.rows.len() > LONGEST_SHOWN) {
            (true, _) => table,
            (false, false) => format!("{}:\n\n{table}", self.title),
            (false, true) => format!("<details><summary>{}</summary>\n\n{table}\n</details>\n", self.title),
        }
    }
}

fn verdict(holds: Option<bool>) -> String {
    match holds {
        Some(true) => "holds",
        Some(false) => "**does not hold**",
        None => "",
    }
    .to_owned()
}

/// The results for a section of the document.
#[derive(Default)]
pub struct Findings {
    /// The tables of the section.
    pub tables: Vec<Table>,
    /// The plots of the section.
    pub plots: Vec<plot::File>,
}

/// Selects the figure that represents a section.
#[derive(Debug, Clone, Copy)]
pub enum Pick {
    /// The lowest figure that has a lower bound.
    Lowest,
    /// The highest figure that has an upper bound.
    Highest,
    /// The figure with this index in the first row that begins with these texts.
    Row(&'static [&'static str], usize),
}

/// A summary of the claims of a section.
pub struct Summary {
    /// Number of figures with a claim.
    pub claims: usize,
    /// Descriptions of the rows with a claim that does not hold.
    pub broken: Vec<String>,
    /// The largest excess of a figure whose claim holds, in standard errors.
    pub furthest: f64,
}

impl Findings {
    /// The figure that represents the section.
    pub fn pick(&self, pick: Pick) -> Option<&Check> {
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        let checks = || rows().flat_map(|row| Table::checks(row));
        let value = |one: &&Check, other: &&Check| one.measured.value.total_cmp(&other.measured.value);
        match pick {
            Pick::Lowest => checks().filter(|check| matches!(check.claim, Claim::AtLeast(_))).min_by(value),
            Pick::Highest => checks().filter(|check| matches!(check.claim, Claim::AtMost(_))).max_by(value),
            Pick::Row(texts, number) => {
                let begins = |row: &&Vec<Cell>| {
                    texts.iter().zip(*row).all(|(&text, cell)| matches!(cell, Cell::Text(cell) if cell == text))
                };
                Table::checks(rows().find(begins)?).nth(number)
            }
        }
    }

    /// Summarizes all claims of the section.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { claims: 0, broken: Vec::new(), furthest: f64::NEG_INFINITY };
        for table in &self.tables {
            for row in &table.rows {
                let claimed = || Table::checks(row).filter(|check| check.excess().is_some());
                summary.claims += claimed().count();
                let holding = claimed().filter(|check| check.holds() == Some(true));
                summary.furthest = holding.filter_map(Check::excess).fold(summary.furthest, f64::max);
                if Table::holds(row) == Some(false) {
                    let words = row.iter().filter_map(|cell| match cell {
                        Cell::Text(text) => Some(text.clone()),
                        Cell::Full(check) | Cell::Brief(check) if check.holds() == Some(false) => {
                            Some(format!("{} (claimed {})", check.brief(), check.claimed()))
                        }
                        _ => None,
                    });
                    let title = if table.title.is_empty() { String::new() } else { format!("{}: ", table.title) };
                    summary.broken.push(format!("{title}{}", words.collect::<Vec<_>>().join(", ")));
                }
            }
        }
        summary
    }
}
