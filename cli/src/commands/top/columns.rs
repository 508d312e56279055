//! The columns of the table.

use std::cmp::Ordering;

use crate::health::Severity;
use clap::ValueEnum;

use crate::numbers;
use crate::table::{bytes, count, seconds, table};
use crate::watch::{Row, SERVER};

/// The prefix of a finding below its row.
const INDENT: &str = "  ! ";

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

    /// The heading of the column.
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

    /// The text of this column in a row.
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
            Column::Fill => row.fill.map(fill).unwrap_or_default(),
            Column::Rate => rate(row.rate),
            Column::Asked => rate(row.asked),
            Column::Filters => number(row.filters),
            Column::Bytes => row.bytes.map(|value| bytes(unsigned(value))).unwrap_or_default(),
            Column::Ttl => row.ttl_ms.map(|ttl| seconds(unsigned(ttl) / 1000)).unwrap_or_default(),
            Column::Wrong => wrong(row),
        }
    }

    /// The order of two rows by this column.
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
            Column::Ttl => b.ttl_ms.cmp(&a.ttl_ms),
            Column::Wrong => urgency(b).cmp(&urgency(a)),
        }
        .then_with(|| a.key.cmp(&b.key))
    }
}

/// The server's error and the findings of a row, in one line, each finding with its advice and command.
fn wrong(row: &Row) -> String {
    let findings = row.findings.iter().map(ToString::to_string);
    row.rejected.iter().cloned().chain(findings).collect::<Vec<_>>().join("; ")
}

/// The key to sort rows by urgency: whether the server answered with an error, the worst severity, the number of
/// findings.
fn urgency(row: &Row) -> (bool, Option<Severity>, usize) {
    let worst = row.findings.iter().map(|finding| finding.severity).max();
    (row.rejected.is_some(), worst, row.findings.len())
}

/// A fill in per cent, with a decimal if it is significant.
fn fill(share: f64) -> String {
    match share {
        10.0.. => numbers::percent(share),
        _ => format!("{:.1} %", share * 100.0),
    }
}

/// A rate rounded to three significant digits.
fn round(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

/// Sorts rows by a column. Rows of servers come first.
pub fn sort(rows: &mut [Row], column: Column, reverse: bool) {
    rows.sort_by(|a, b| if reverse { column.order(b, a) } else { column.order(a, b) });
    rows.sort_by_key(|row| row.kind != SERVER);
}

/// The table as text, with a line for the headings and a line for each row.
pub fn printed(rows: &[Row]) -> String {
    let heads = Column::ALL.map(|column| column.head().to_owned()).to_vec();
    let cells = rows.iter().map(|row| Column::ALL.map(|column| column.cell(row)).to_vec());
    table(&[vec![heads], cells.collect()].concat())
}

/// The headings, and the lines of each row, at most `width` characters wide. Findings follow below their row at full
/// length. If the columns do not fit, the rightmost ones are left out, except the one to sort by.
pub fn fitted(rows: &[Row], sorted_by: Column, width: usize) -> Vec<Vec<String>> {
    let mut columns: Vec<Column> = Column::ALL.into_iter().filter(|column| *column != Column::Wrong).collect();
    let lines = loop {
        let heads = columns.iter().map(|column| column.head().to_owned()).collect();
        let cells = rows.iter().map(|row| columns.iter().map(|column| column.cell(row)).collect());
        let lines = table(&[vec![heads], cells.collect()].concat());
        let is_wide = lines.lines().any(|line| line.chars().count() > width);
        // The key column stays, and is cut at its end.
        match columns.iter().rposition(|column| *column != sorted_by && *column != Column::Key) {
            Some(last) if is_wide => drop(columns.remove(last)),
            _ => break lines,
        }
    };
    let mut blocks: Vec<Vec<String>> = lines.lines().map(|line| vec![line.to_owned()]).collect();
    for (block, row) in blocks.iter_mut().skip(1).zip(rows) {
        let found = wrong(row);
        if !found.is_empty() {
            let lines = wrapped(&found, width.saturating_sub(INDENT.len()));
            block.extend(lines.iter().map(|line| format!("{INDENT}{line}")));
        }
    }
    blocks
}

/// Breaks a text at spaces into lines of at most `width` characters. Longer words are broken too.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + letters.len() > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for piece in letters.chunks(width) {
            if used + piece.len() > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.extend(piece);
            used += piece.len();
        }
    }
    lines.push(line);
    lines
}

/// A summary of all rows in one line.
pub fn summary(rows: &[Row]) -> String {
    let sum: i64 = rows.iter().filter_map(|row| row.bytes).sum();
    let wrong = rows.iter().filter(|row| row.is_wrong()).count();
    let keys = rows.iter().filter(|row| row.kind != SERVER).count();
    let number = count(i64::try_from(keys).unwrap_or(i64::MAX));
    format!("{number} filters and counters, {}; {wrong} to look at", bytes(u64::try_from(sum).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression test: a finding used to be cut at the edge of a window of 80 columns.
    #[test]
    fn a_narrow_window_shows_whole_findings_and_whole_columns() {
        let row = Row {
            key: "user:1:seen".to_owned(),
            kind: "filter",
            items: Some(1_234_567),
            capacity: Some(1_000_000),
            bytes: Some(98_765_432),
            ttl_ms: Some(987_654_321),
            rejected: Some("it holds more than it is for, and a command_of_many_letters_in_a_word helps ".repeat(5)),
            ..Row::default()
        };
        let reported = wrong(&row);
        let wide = fitted(std::slice::from_ref(&row), Column::Bytes, 400).concat();
        for width in [20, 40, 80, 100, 200] {
            for column in [Column::Items, Column::Ttl, Column::Wrong] {
                let blocks = fitted(std::slice::from_ref(&row), column, width);
                assert_eq!(blocks.len(), 2);
                let lines = blocks.concat();
                assert!(lines.iter().all(|line| line.chars().count() <= width.max(30)), "{width}: {lines:#?}");
                let below = lines[2..].iter().map(|line| line.trim_start_matches(INDENT)).collect::<Vec<_>>().join(" ");
                let letters = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(letters(&below), letters(&reported), "{width}");
                for head in lines[0].split("  ").map(str::trim).filter(|head| !head.is_empty()) {
                    assert!(wide[0].contains(head), "{width}: {head}");
                }
                if column != Column::Wrong {
                    assert!(lines[0].contains(column.head().trim_start_matches('>')), "{width}: {lines:#?}");
                }
            }
        }
    }

    #[test]
    fn servers_come_first_and_are_no_keys() {
        let row = |key: &str, kind, bytes| Row { key: key.to_owned(), kind, bytes, ..Row::default() };
        let mut rows = [row("a", "filter", Some(1)), row("host:6379", SERVER, None), row("b", "counter", Some(2))];
        for (column, reverse, order) in
            [(Column::Bytes, false, "b a"), (Column::Bytes, true, "a b"), (Column::Key, false, "a b")]
        {
            sort(&mut rows, column, reverse);
            assert_eq!(rows.each_ref().map(|row| &*row.key).join(" "), format!("host:6379 {order}"));
        }
        assert_eq!(summary(&rows), "2 filters and counters, 3 B; 0 to look at");
    }

    #[test]
    fn texts_are_broken_where_a_space_is() {
        let lines = |text: &str, width| wrapped(text, width).join("|");
        assert_eq!(lines("a filter is full", 8), "a filter|is full");
        assert_eq!(lines("a filter is full", 80), "a filter is full");
        assert_eq!(lines("abcdefgh ij", 3), "abc|def|gh|ij");
        assert_eq!(lines("ab cdefgh", 4), "ab|cdef|gh");
        assert_eq!(lines("", 4), "");
    }
}
