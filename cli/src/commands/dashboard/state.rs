//! The result of the last poll as JSON, which pages request from `/api/state`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::failure::Failure;
use crate::watch::{Info, Row};

/// Everything that a page shows except charts. Times are milliseconds since 1970.
#[derive(Debug, Serialize)]
pub struct State<'a> {
    /// The version of the tool.
    pub version: &'static str,
    /// The name of the server for display.
    pub server: &'a str,
    pub pattern: Option<&'a str>,
    /// Seconds between two polls.
    pub interval: u64,
    pub started: u64,
    /// The time of the last poll that at least one node answered; `None` before the first one.
    pub looked: Option<u64>,
    pub took_ms: u64,
    /// Whether the server is one node of a cluster, and the keys of the other nodes are left out.
    pub is_part: bool,
    /// Whether no node could be read.
    pub is_unread: bool,
    /// Nodes that could not be read.
    pub troubles: Vec<&'a Trouble>,
    pub totals: Totals,
    pub nodes: Vec<Node<'a>>,
    pub rows: Vec<ShownRow<'a>>,
    /// The number of keys that are not shown.
    pub left_out: u64,
    /// The number of keys without a judgement yet.
    pub unjudged: u64,
}

/// A node that is down, or that answers with an error.
#[derive(Debug, Serialize)]
pub struct Trouble {
    pub server: String,
    pub is_down: bool,
    pub since: u64,
    pub text: String,
    pub advice: Option<String>,
}

impl Trouble {
    pub fn new(server: &str, since: u64, failure: &Failure) -> Self {
        Trouble {
            server: server.to_owned(),
            is_down: failure.is_down(),
            since,
            text: failure.text().to_owned(),
            advice: failure.advice().map(str::to_owned),
        }
    }
}

/// The figures that a node reports about itself.
#[derive(Debug, Serialize)]
pub struct Node<'a> {
    pub name: &'a str,
    #[serde(flatten)]
    pub info: &'a Info,
}

/// A row of the page's table of keys.
#[derive(Debug, Serialize)]
pub struct ShownRow<'a> {
    /// The id of the key in URLs.
    pub id: String,
    #[serde(flatten)]
    pub row: &'a Row,
    /// Whether the key is a windowed counter, whose slices are fetched on demand.
    pub has_slices: bool,
    /// The number of items over the last hour, as digits in base 36 from the least to the largest.
    pub trend: Option<String>,
    /// The growth in items, and the number of seconds that it took.
    pub growth: Option<f64>,
    pub growth_seconds: Option<u64>,
}

/// Figures of all keys together.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    /// Whether the figures cover whole servers. Otherwise they are sums over the polled keys.
    pub is_whole: bool,
    pub filters: u64,
    pub items: u64,
    pub capacity: u64,
    pub counters: u64,
    /// Number of members of the polled counters. Servers do not report the sum over all counters.
    pub members: u64,
    pub members_of: u64,
    pub bytes: u64,
    pub used_memory: Option<u64>,
    /// The sum of `maxmemory` in bytes; `None` if a node has no limit or reports none.
    pub maxmemory: Option<u64>,
    /// The shortest uptime of all nodes, in seconds.
    pub uptime_seconds: Option<u64>,
    /// The number of counters in each mode.
    pub modes: Vec<(&'static str, u64)>,
    /// Counts of events since the servers started.
    pub since: Vec<(&'static str, u64)>,
}

/// Fields of INFO that count events, each with its label for display.
const SINCE: [(&str, &str); 10] = [
    ("rollcall_filters_growths", "Filters grown by a sub-filter"),
    ("rollcall_counters_promotions", "Counters promoted"),
    ("rollcall_filters_items_rejected", "Items rejected by BF.ADMIT"),
    ("rollcall_counters_items_rejected", "Items rejected by LC.ADMIT"),
    ("rollcall_rejected_full", "Rejected: filter full"),
    ("rollcall_rejected_limit", "Rejected: key too large"),
    ("rollcall_rejected_memory", "Rejected: out of memory"),
    ("rollcall_rejected_corrupt", "Rejected: damaged data"),
    ("rollcall_filters_advances", "Windows of filters moved"),
    ("rollcall_counters_advances", "Windows of counters moved"),
];

/// Fields of INFO that count counters by mode, each with its label for display.
const MODES: [(&str, &str); 4] = [
    ("rollcall_counters_exact", "exact"),
    ("rollcall_counters_estimate", "estimate"),
    ("rollcall_counters_windowed", "windowed"),
    ("rollcall_counters_partially_loaded", "partially loaded"),
];

/// The sum of a field of INFO over all nodes; `None` unless every node reports the field.
fn sum(infos: &[&Info], name: &str) -> Option<u64> {
    infos.iter().try_fold(0_u64, |sum, info| Some(sum.saturating_add(info.field(name)?)))
}

/// The sum of `number` over `rows`; rows without the number are skipped.
fn added<'a>(rows: impl Iterator<Item = &'a &'a Row>, number: fn(&Row) -> Option<i64>) -> u64 {
    let numbers = rows.filter_map(|row| number(row)).filter_map(|number| u64::try_from(number).ok());
    numbers.fold(0, u64::saturating_add)
}

impl Totals {
    /// The totals of whole servers, from INFO. If a pattern limits the keys, the totals are sums over `rows` instead.
    pub fn new(infos: &[&Info], rows: &[&Row], has_pattern: bool) -> Self {
        let is_counter = |row: &&&Row| row.kind == COUNTER;
        let all = |name: &str| (!has_pattern && !infos.is_empty()).then(|| sum(infos, name)).flatten();
        let filters = rows.iter().filter(|row| !is_counter(row));
        let counters = rows.iter().filter(is_counter);
        let num_counters = counters.clone().count() as u64;
        let known = |of: fn(&Info) -> Option<u64>| {
            infos.iter().try_fold(0_u64, |sum, info| Some(sum.saturating_add(of(info)?))).filter(|_| !infos.is_empty())
        };
        let limits: Option<Vec<u64>> =
            infos.iter().map(|info| info.maxmemory.filter(|&limit| limit > 0)).collect::<Option<_>>();
        let named = |fields: &[(&'static str, &'static str)], all: &dyn Fn(&str) -> Option<u64>| {
            fields.iter().filter_map(|(field, text)| Some((*text, all(field)?))).collect::<Vec<_>>()
        };
        let mut modes = named(&MODES, &all);
        if modes.is_empty() {
            modes = modes_of(rows);
        }
        Totals {
            is_whole: all("rollcall_filters").is_some(),
            filters: all("rollcall_filters").unwrap_or(filters.clone().count() as u64),
            items: all("rollcall_filters_items").unwrap_or_else(|| added(filters.clone(), |row| row.items)),
            capacity: all("rollcall_filters_capacity").unwrap_or_else(|| added(filters.clone(), |row| row.capacity)),
            counters: all("rollcall_counters").unwrap_or(num_counters),
            members: added(counters, |row| row.items),
            members_of: num_counters,
            bytes: all("rollcall_allocated_bytes").unwrap_or_else(|| added(rows.iter(), |row| row.bytes)),
            used_memory: known(|info| info.used_memory),
            maxmemory: limits
                .filter(|limits| !limits.is_empty())
                .map(|limits| limits.iter().fold(0, |sum: u64, limit| sum.saturating_add(*limit))),
            uptime_seconds: infos.iter().filter_map(|info| info.uptime_seconds).min(),
            modes,
            since: named(&SINCE, &|name| sum(infos, name).filter(|_| !infos.is_empty())),
        }
    }
}

/// The value of `Row::kind` for a counter.
pub const COUNTER: &str = "counter";

/// The number of rows with counters in each mode.
fn modes_of(rows: &[&Row]) -> Vec<(&'static str, u64)> {
    let mut modes: BTreeMap<usize, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == COUNTER) {
        let mode = row.mode.split(',').next().unwrap_or_default();
        let at = if row.window.is_some() { 3 } else { MODES.iter().position(|(_, name)| *name == mode).unwrap_or(4) };
        *modes.entry(at).or_default() += 1;
    }
    modes.into_iter().map(|(at, number)| (MODES[at].1, number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(fields: &[(&str, u64)]) -> Info {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Info { fields, used_memory: Some(100), maxmemory: Some(400), uptime_seconds: Some(9), ..Info::default() }
    }

    fn row(kind: &'static str, mode: &str, items: i64) -> Row {
        Row {
            kind,
            mode: mode.into(),
            items: Some(items),
            capacity: Some(items * 2),
            bytes: Some(10),
            ..Row::default()
        }
    }

    #[test]
    fn sums_are_those_of_info_where_all_nodes_have_it() {
        let rows = [
            row("filter", "grows", 5),
            row("classic", "fixed", 7),
            row("counter", "exact", 3),
            row("counter", "estimate", 4),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let fields = [
            ("rollcall_filters", 70),
            ("rollcall_filters_items", 700),
            ("rollcall_rejected_full", 1),
            ("rollcall_counters_estimate", 2),
        ];
        let (one, other, old) = (info(&fields), info(&fields), info(&[]));
        let whole = Totals::new(&[&one, &other], &rows, false);
        assert!(whole.is_whole);
        assert_eq!((whole.filters, whole.items, whole.capacity, whole.members), (140, 1400, 24, 7));
        assert_eq!((whole.counters, whole.bytes, whole.used_memory, whole.maxmemory), (2, 40, Some(200), Some(800)));
        assert_eq!(whole.since, [("Rejected: filter full", 2)]);
        assert_eq!(whole.modes, [("estimate", 4)]);
        let some = Totals::new(&[&one, &old], &rows, false);
        assert!(!some.is_whole && some.since.is_empty());
        assert_eq!((some.filters, some.items), (2, 12));
        assert_eq!(some.modes, [("exact", 1), ("estimate", 1)]);
        let matching = Totals::new(&[&one], &rows, true);
        assert_eq!((matching.is_whole, matching.filters, matching.since.len()), (false, 2, 1));
        let unlimited = Info { maxmemory: Some(0), ..info(&[]) };
        assert_eq!(Totals::new(&[&one, &unlimited], &rows, false).maxmemory, None);
        assert_eq!(Totals::new(&[], &[], false).used_memory, None);
    }
}
