//! The columns of the table.

use std::cmp::Ordering;

use clap::ValueEnum;
use rollcall_core::health::Severity;

use crate::table::{bytes, count, seconds, table};
use crate::watch::Row;

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Column {
    Key,
    Kind,
    Mode,
    Items,
    Capacity,
    Fill,
    Rate,
    Asked,
    Filters,
    Bytes,
    Ttl,
    Wrong,
}

impl Column {
    pub const ALL: [Column; 12] = [
        Column::Key,
        Column::Kind,
        Column::Mode,
        Column::Items,
        Column::Capacity,
        Column::Fill,
        Column::Rate,
        Column::Asked,
        Column::Filters,
        Column::Bytes,
        Column::Ttl,
        Column::Wrong,
    ];

    /// The head of the column.
    pub fn head(self) -> &'static str {
        match self {
            Column::Key => "key",
            Column::Kind => "kind",
            Column::Mode => "mode",
            Column::Items => ">items",
            Column::Capacity => ">capacity",
            Column::Fill => ">fill",
            Column::Rate => ">rate now",
            Column::Asked => ">asked",
            Column::Filters => ">subs",
            Column::Bytes => ">bytes",
            Column::Ttl => ">ttl",
            Column::Wrong => "wrong",
        }
    }

    /// What stands in it.
    fn cell(self, row: &Row) -> String {
        let number = |value: Option<i64>| value.map(count).unwrap_or_default();
        let rate = |value: Option<f64>| match value.map(round) {
            Some(tiny) if tiny > 0.0 && tiny < 1e-4 => format!("{tiny:e}"),
            Some(rate) => format!("{rate}"),
            None => String::new(),
        };
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        match self {
            Column::Key => row.key.clone(),
            Column::Kind => row.kind.to_owned(),
            Column::Mode => row.mode.clone(),
            Column::Items => number(row.items),
            Column::Capacity => number(row.capacity),
            Column::Fill => row.fill.map(|fill| format!("{:.1} %", fill * 100.0)).unwrap_or_default(),
            Column::Rate => rate(row.rate),
            Column::Asked => rate(row.asked),
            Column::Filters => number(row.filters),
            Column::Bytes => row.bytes.map(|value| bytes(unsigned(value))).unwrap_or_default(),
            Column::Ttl => row.ttl.map(|ttl| seconds(unsigned(ttl) / 1000)).unwrap_or_default(),
            Column::Wrong => wrong(row),
        }
    }

    /// Which comes first.
    fn order(self, a: &Row, b: &Row) -> Ordering {
        let by = |value: fn(&Row) -> Option<f64>| {
            let (a, b) = (value(a).unwrap_or(-1.0), value(b).unwrap_or(-1.0));
            b.total_cmp(&a)
        };
        match self {
            Column::Key => Ordering::Equal,
            Column::Kind => a.kind.cmp(b.kind),
            Column::Mode => a.mode.cmp(&b.mode),
            Column::Items => b.items.cmp(&a.items),
            Column::Capacity => b.capacity.cmp(&a.capacity),
            Column::Fill => by(|row| row.fill),
            Column::Rate => by(|row| row.rate),
            Column::Asked => by(|row| row.asked),
            Column::Filters => b.filters.cmp(&a.filters),
            Column::Bytes => b.bytes.cmp(&a.bytes),
            Column::Ttl => b.ttl.cmp(&a.ttl),
            Column::Wrong => urgency(b).cmp(&urgency(a)),
        }
        .then_with(|| a.key.cmp(&b.key))
    }
}

/// What is wrong and what to do, in a line: the command where there is one.
fn wrong(row: &Row) -> String {
    let findings = row.findings.iter().map(|finding| {
        let todo = finding.command.as_ref().unwrap_or(&finding.advice);
        format!("{}: {todo}", finding.wrong)
    });
    row.refused.iter().cloned().chain(findings).collect::<Vec<_>>().join("; ")
}

/// How urgent the worst finding is, and how many there are.
fn urgency(row: &Row) -> (bool, Option<Severity>, usize) {
    let worst = row.findings.iter().map(|finding| finding.severity).max();
    (row.refused.is_some(), worst, row.findings.len())
}

/// A rate in three figures.
fn round(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

/// Sorts rows by a column.
pub fn sort(rows: &mut [Row], column: Column, reverse: bool) {
    rows.sort_by(|a, b| if reverse { column.order(b, a) } else { column.order(a, b) });
}

/// The table, a line a row after the heads.
pub fn printed(rows: &[Row]) -> String {
    let heads = Column::ALL.map(|column| column.head().to_owned()).to_vec();
    let cells = rows.iter().map(|row| Column::ALL.map(|column| column.cell(row)).to_vec());
    table(&[vec![heads], cells.collect()].concat())
}

/// One line about all rows.
pub fn summary(rows: &[Row]) -> String {
    let sum: i64 = rows.iter().filter_map(|row| row.bytes).sum();
    let wrong = rows.iter().filter(|row| row.is_wrong()).count();
    let number = count(i64::try_from(rows.len()).unwrap_or(i64::MAX));
    format!("{number} filters and counters, {}; {wrong} to look at", bytes(u64::try_from(sum).unwrap_or(0)))
}
