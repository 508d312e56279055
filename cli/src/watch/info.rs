//! The state of a server and of the module, as INFO reports it.

use std::collections::BTreeMap;

use crate::health::{Finding, Problem, ServerFacts};
use serde::Serialize;

use super::rows::{REPLICA, Row, SERVER, as_findings};
use crate::failure::Failure;
use crate::server::{Server, text, texts};

/// Sections of INFO that are asked for. Their cost does not depend on the number of keys on the server.
const SECTIONS: [&str; 5] = ["server", "memory", "replication", "cluster", "rollcall"];

/// Prefix of the module's fields in INFO.
const PREFIX: &str = "rollcall_";

/// The report of a node about itself. A value that the node does not report is `None`, or missing from `fields`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Info {
    /// The version of this module on the node; `None` if the module is not loaded.
    pub version: Option<String>,
    /// The module's numbers by their names in INFO, such as `rollcall_filters`. Older versions of the module report
    /// fewer.
    pub fields: BTreeMap<String, u64>,
    /// Name and version of the server: `redis 7.0.15` or `valkey 9.1.2`.
    pub server: Option<String>,
    /// The role as INFO names it: `master` or `slave`.
    pub role: Option<String>,
    pub uptime_seconds: Option<u64>,
    pub used_memory: Option<u64>,
    /// `maxmemory` in bytes; 0 for no limit.
    pub maxmemory: Option<u64>,
    pub maxmemory_policy: Option<String>,
    /// Whether the node belongs to a cluster.
    pub is_in_cluster: bool,
    /// Findings about the node as a whole.
    #[serde(serialize_with = "as_findings")]
    pub findings: Vec<Finding>,
}

impl Info {
    /// Asks the first node of `server`.
    pub fn new(server: &mut Server) -> Result<Self, Failure> {
        Info::of(server, 0)
    }

    /// Asks a node of `server`.
    pub fn of(server: &mut Server, node: usize) -> Result<Self, Failure> {
        let reply = server.call_node(node, redis::cmd("INFO").arg(&SECTIONS))?;
        Ok(Info::parse(&text(&reply).unwrap_or_default(), &server.node_url(node)))
    }

    /// A number of the module by its name in INFO; `None` if the node does not report it.
    pub fn field(&self, name: &str) -> Option<u64> {
        self.fields.get(name).copied()
    }

    fn parse(reply: &str, url: &str) -> Self {
        let all: BTreeMap<&str, &str> = reply.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let word = |name: &str| all.get(name).map(|&value| value.to_owned());
        let number = |name: &str| all.get(name).and_then(|value| value.parse().ok());
        // Valkey also reports the Redis version that it is compatible with.
        let version = |kind: &str| Some(format!("{kind} {}", all.get(&*format!("{kind}_version"))?));
        let fields = all.iter().filter(|(name, _)| name.starts_with(PREFIX));
        let fields = fields.filter_map(|(&name, value)| Some((name.to_owned(), value.parse().ok()?)));
        let mut info = Info {
            version: word("rollcall_version"),
            fields: fields.collect(),
            server: version("valkey").or_else(|| version("redis")),
            role: word("role"),
            uptime_seconds: number("uptime_in_seconds"),
            used_memory: number("used_memory"),
            maxmemory: number("maxmemory"),
            maxmemory_policy: word("maxmemory_policy"),
            is_in_cluster: number("cluster_enabled") == Some(1),
            findings: Vec::new(),
        };
        info.findings = info.facts(url).findings();
        info
    }

    fn facts<'a>(&self, url: &'a str) -> ServerFacts<'a> {
        let field = |name: &str| self.field(name).unwrap_or(0);
        ServerFacts {
            url,
            used_bytes: self.used_memory.unwrap_or(0),
            max_bytes: self.maxmemory.filter(|_| self.role.as_deref() != Some(REPLICA)).unwrap_or(0),
            own_bytes: field("rollcall_allocated_bytes"),
            evicts_any: self.maxmemory_policy.as_ref().is_some_and(|policy| policy.starts_with("allkeys")),
            keys: field("rollcall_filters").saturating_add(field("rollcall_counters")),
            filters_not_served: field("rollcall_filters_not_served"),
            partially_loaded: field("rollcall_filters_partially_loaded")
                .saturating_add(field("rollcall_counters_partially_loaded")),
        }
    }
}

/// The row with the findings about a node, and the reason if no keys of it, or of other nodes, can be listed. `None`
/// without either, and if the user may not call `INFO`. If the connection was lost, the next question fails too.
/// Partially loaded keys have rows of their own. `is_alone` says that no other nodes are asked.
pub fn server_row(server: &mut Server, node: usize, is_alone: bool) -> Option<Row> {
    let Info { version, is_in_cluster, mut findings, .. } = Info::of(server, node).ok()?;
    findings.retain(|finding| finding.problem != Problem::PartiallyLoaded);
    let rejected = if is_alone && is_in_cluster {
        Some("is one node of a cluster, whose other keys are not listed; add --cluster")
    } else if version.is_none() && has_no_filters(server, node) {
        Some("has no module for filters and counters; load it: loadmodule /path/librollcall.so in redis.conf")
    } else {
        None
    };
    let (name, rejected) = (server.node_name(node), rejected.map(str::to_owned));
    let row = Row { key: name.clone(), server: name, kind: SERVER, rejected, findings, ..Row::default() };
    (row.rejected.is_some() || !row.findings.is_empty()).then_some(row)
}

/// Whether no module offers `BF.*`. The question needs no other permission than those of keys.
fn has_no_filters(server: &mut Server, node: usize) -> bool {
    let answer = server.ask_node(node, &[redis::cmd("BF.INFO")]).ok().and_then(|mut answers| answers.pop());
    matches!(answer, Some(Err(text)) if texts::is_unknown_command(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_of_info_are_none() {
        let reply = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nuptime_in_seconds:7\r\n\r\n# Memory\r\n\
                     used_memory:990\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n\
                     # Replication\r\nrole:slave\r\n# rollcall\r\n\
                     rollcall_version:0.1.0\r\nrollcall_filters:3\r\nrollcall_filters_not_served:1\r\n\
                     rollcall_allocated_bytes:99\r\nrollcall_counters_partially_loaded:2\r\n";
        let info = Info::parse(reply, "redis://host");
        assert_eq!(info.server.as_deref(), Some("valkey 9.1.2"));
        assert_eq!((info.version.as_deref(), info.role.as_deref()), (Some("0.1.0"), Some("slave")));
        assert_eq!((info.field("rollcall_filters"), info.field("rollcall_counters")), (Some(3), None));
        assert_eq!(info.fields.len(), 4);
        let codes: Vec<_> = info.findings.iter().map(|found| found.problem.name()).collect();
        // A regression test: replicas, which ignore maxmemory by default, had findings about it.
        assert_eq!(codes, ["partially-loaded", "not-served"]);
        let codes = |policy: &str| {
            let reply = reply.replace("role:slave", "role:master").replace("allkeys-lru", policy);
            let codes = Info::parse(&reply, "redis://host").findings;
            codes.iter().map(|found| format!("{} {}", found.problem.name(), found.wrong)).collect::<Vec<_>>().join("\n")
        };
        // A regression test: memory that is full because the server evicts was critical.
        assert!(codes("allkeys-lru").contains("may-evict ") && !codes("allkeys-lru").contains("of maxmemory"));
        for policy in ["noeviction", "volatile-ttl"] {
            assert!(codes(policy).contains("10 % of that for"), "{}", codes(policy));
        }
        let without = Info::parse("redis_version:7.0.15\r\nused_memory:990\r\nmaxmemory:0\r\n", "redis://host");
        assert_eq!((without.version, without.server.as_deref()), (None, Some("redis 7.0.15")));
        assert!(without.fields.is_empty() && without.findings.is_empty());
        // A regression test: a server with counters alone had no finding, although it may evict them.
        let counters =
            "maxmemory:1000\r\nmaxmemory_policy:allkeys-lfu\r\nrollcall_filters:0\r\nrollcall_counters:1\r\n";
        assert_eq!(Info::parse(counters, "redis://host").findings[0].problem, Problem::MayEvict);
    }
}
