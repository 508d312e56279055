//! Detects writes to a server by its counts of executed commands.
//!
//! `INFO commandstats` counts every executed command, including commands from scripts and from a primary. It does not
//! count commands that the server rejects or pauses. Keys that expire leave no trace in it.

use std::collections::{BTreeMap, BTreeSet};

use super::Server;
use super::reply::text;
use crate::failure::Failure;

/// Commands of filters and counters that change nothing.
const READERS: [&str; 19] = [
    "bf.exists",
    "bf.mexists",
    "bf.card",
    "bf.info",
    "bf.scandump",
    "bf.debug",
    "lc.count",
    "lc.exists",
    "lc.mexists",
    "lc.members",
    "lc.unioncard",
    "lc.intercard",
    "lc.diffcard",
    "lc.union",
    "lc.inter",
    "lc.diff",
    "lc.countsince",
    "lc.history",
    "lc.info",
];

/// Server commands that may replace a filter or counter by another one. Keys that come and go are found by SCAN.
const GENERIC: [&str; 7] = ["copy", "move", "rename", "renamenx", "restore", "restore-asking", "swapdb"];

/// The number of calls of each writing command so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes {
    /// The names of the primaries whose counts are added up.
    pub nodes: BTreeSet<String>,
    /// Calls of commands that write filters and counters.
    pub own: BTreeMap<String, u64>,
    /// Calls of commands that may replace any key.
    pub generic: BTreeMap<String, u64>,
}

impl Writes {
    /// Reads the counts of all primaries and adds them up.
    pub fn new(server: &mut Server) -> Result<Self, Failure> {
        let mut writes = Writes { nodes: BTreeSet::new(), own: BTreeMap::new(), generic: BTreeMap::new() };
        for node in 0..server.num_nodes() {
            writes.nodes.insert(server.node_name(node));
            let info = text(&server.call_node(node, redis::cmd("INFO").arg("commandstats"))?).unwrap_or_default();
            for (name, calls) in info.lines().filter_map(counted) {
                // `RF.*` are other names of the commands `BF.*`, so both are counted together.
                let usual = name.strip_prefix("rf.").map_or(name.to_owned(), |verb| format!("bf.{verb}"));
                let is_own = usual.starts_with("bf.") || usual.starts_with("lc.");
                let of_kind = if is_own && !READERS.contains(&&usual[..]) && usual != "lc.scandump" {
                    &mut writes.own
                } else if GENERIC.contains(&name) {
                    &mut writes.generic
                } else {
                    continue;
                };
                *of_kind.entry(name.to_owned()).or_default() += calls;
            }
        }
        Ok(writes)
    }

    /// The commands that were called since `earlier`, as text; empty if none was.
    pub fn since(&self, earlier: &Writes) -> String {
        let moved = self.own.iter().filter(|(name, calls)| earlier.own.get(*name) != Some(calls));
        let names: Vec<String> = moved
            .map(|(name, calls)| match calls.checked_sub(earlier.own.get(name).copied().unwrap_or(0)) {
                Some(more) => format!("{} {more}x", name.to_uppercase()),
                None => name.to_uppercase(),
            })
            .collect();
        match names.is_empty() && self.own.len() < earlier.own.len() {
            true => "its counts were reset".to_owned(),
            false => names.join(", "),
        }
    }
}

/// The name and the number of calls of a command, from a line of `INFO commandstats`.
fn counted(line: &str) -> Option<(&str, u64)> {
    let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let calls = fields.split(',').find_map(|field| field.strip_prefix("calls="))?;
    Some((name, calls.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_section_are_read() {
        let line = "cmdstat_bf.madd:calls=12,usec=3,usec_per_call=0.25,rejected_calls=7,failed_calls=0";
        assert_eq!(counted(line), Some(("bf.madd", 12)));
        assert_eq!(counted("cmdstat_config|set:calls=1,usec=3"), Some(("config|set", 1)));
        assert_eq!(counted("# Commandstats"), None);
    }

    #[test]
    fn new_writes_are_listed_by_command() {
        let writes = |calls: &[(&str, u64)]| Writes {
            nodes: BTreeSet::new(),
            own: calls.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect(),
            generic: BTreeMap::new(),
        };
        let before = writes(&[("bf.add", 3)]);
        assert_eq!(before.since(&before), "");
        assert_eq!(writes(&[("bf.add", 5), ("lc.add", 1)]).since(&before), "BF.ADD 2x, LC.ADD 1x");
        assert_eq!(writes(&[("bf.add", 1)]).since(&before), "BF.ADD");
        assert_eq!(writes(&[]).since(&before), "its counts were reset");
    }
}
