//! `nodes`: whether every node of a cluster can take the filters and counters of the others, before slots move.

use std::time::Duration;

use clap::Args;
use redis::Value;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::server::{Address, Server, Url, integer, items, pairs, text, texts};
use crate::table::{bytes, count, table};
use crate::watch::Info;

/// Arguments of `nodes`.
#[derive(Debug, Args)]
pub struct Nodes {
    #[command(flatten)]
    url: Url,
}

/// Time without a reply after which a node counts as down, unless `--timeout` is given.
const PATIENCE: Duration = Duration::from_secs(5);

/// `max-key-bytes` of a node where the option is 0: without `maxmemory`, and with it.
const AUTOMATIC_KEY_BYTES: [u64; 2] = [512 << 20, 4 << 30];

/// The role of nodes that follow a primary.
const REPLICA: &str = "replica";

/// The name of the problem that a node, or a value of it, is not known.
const UNKNOWN: &str = "unknown";

/// A node of the cluster, and what it reports. `None` if it does not answer, or does not report the value.
#[derive(Debug, Default, Serialize)]
struct Node {
    node: String,
    role: String,
    slots: u64,
    /// Kind and version of the server: `redis 8.2.3`.
    server: Option<String>,
    /// The version of the module.
    module: Option<String>,
    max_key_bytes: Option<u64>,
    /// 0 for no limit.
    maxmemory_bytes: Option<u64>,
    /// Whether the other nodes agree that the node is down.
    #[serde(skip)]
    has_failed: bool,
    problems: Vec<Problem>,
}

/// A reason why a node cannot take every key of the others.
#[derive(Debug, Serialize)]
struct Problem {
    problem: &'static str,
    wrong: String,
    advice: String,
}

impl Nodes {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let address = Address::new(&self.url.url, &self.url.access)?.patient(PATIENCE);
        let shards = Server::connect_one(&address)?.call_node(0, redis::cmd("CLUSTER").arg("SHARDS"))?;
        let mut nodes = members(&shards, &address)
            .ok_or_else(|| Failure::new(format!("{}: CLUSTER SHARDS answered what it never should", address.name())))?;
        for (address, node) in &mut nodes {
            node.ask(address);
        }
        let mut nodes: Vec<Node> = nodes.into_iter().map(|(_, node)| node).collect();
        compare(&mut nodes);
        output.answer(&nodes, |nodes| printed(nodes))?;
        let number = |is: fn(&Problem) -> bool| nodes.iter().filter(|node| node.problems.iter().any(is)).count();
        match (number(|problem| problem.problem != UNKNOWN), number(|problem| problem.problem == UNKNOWN)) {
            (0, 0) => Ok(()),
            (0, unknown) => Err(Failure::new(format!("{unknown} of {} nodes are unknown", nodes.len()))
                .advise("the lines above say what is missing: ask again before slots move")),
            (wrong, _) => Err(Failure::does_not_hold(format!("{wrong} of {} nodes cannot take all keys", nodes.len()))
                .advise("repair them before slots move")),
        }
    }
}

/// The nodes of a reply to `CLUSTER SHARDS`, replicas and nodes without slots included, in the order of their slots.
fn members(shards: &Value, asked: &Address) -> Option<Vec<(Address, Node)>> {
    let mut found = Vec::new();
    for shard in items(shards)? {
        let shard = pairs(shard);
        let field = |name: &str| shard.iter().find(|(label, _)| label == name).map(|(_, value)| value);
        let ranges: Vec<i64> = items(field("slots")?)?.iter().filter_map(integer).collect();
        let slots: i64 = ranges.chunks_exact(2).map(|range| range[1] - range[0] + 1).sum();
        for member in items(field("nodes")?)? {
            let member = pairs(member);
            let field = |name: &str| member.iter().find(|(label, _)| label == name).map(|(_, value)| value);
            let tls_port = field("tls-port").filter(|_| asked.is_tls());
            let port = u16::try_from(integer(tls_port.or_else(|| field("port"))?)?).ok()?;
            // An unknown host (`?` or an empty string) stands for the node that answers.
            let host = field("endpoint").and_then(text).filter(|host| host != "?").unwrap_or_default();
            let address = asked.node(&host, port);
            let is_primary = text(field("role")?)? == "master";
            let role = if is_primary { "primary" } else { REPLICA }.to_owned();
            let slots = if is_primary { u64::try_from(slots).ok()? } else { 0 };
            let has_failed = field("health").and_then(text).is_some_and(|health| health.starts_with("fail"));
            let first = ranges.first().copied().unwrap_or(i64::MAX);
            let node = Node { role, slots, has_failed, ..Node::default() };
            found.push((first, !is_primary, address.name(), address, node));
        }
    }
    found.sort_by(|one, other| (one.0, one.1, &one.2).cmp(&(other.0, other.1, &other.2)));
    Some(found.into_iter().map(|(_, _, name, address, node)| (address, Node { node: name, ..node })).collect())
}

impl Node {
    /// Asks the node for versions and limits. What it does not answer becomes a problem.
    fn ask(&mut self, address: &Address) {
        let mut server = match Server::connect_one(address) {
            Ok(server) => server,
            Err(failure) => return self.has_failure(&failure),
        };
        match Info::new(&mut server) {
            Ok(info) => (self.server, self.module, self.maxmemory_bytes) = (info.server, info.version, info.maxmemory),
            Err(failure) => {
                self.has_failure(&failure);
                // Other errors would be the same for the next command.
                if !texts::is_forbidden(failure.text()) {
                    return;
                }
            }
        }
        match server.call_node(0, redis::cmd("CONFIG").arg("GET").arg("rollcall.max-key-bytes")) {
            Ok(reply) => self.max_key_bytes = self.limit(&reply),
            Err(failure) => self.has_failure(&failure),
        }
    }

    /// The limit of a key's bytes, from the reply to `CONFIG GET`. A server without the module answers with an empty
    /// list.
    fn limit(&self, reply: &Value) -> Option<u64> {
        match pairs(reply).first().and_then(|(_, value)| u64::try_from(integer(value)?).ok())? {
            0 => Some(AUTOMATIC_KEY_BYTES[usize::from(self.maxmemory_bytes? > 0)]),
            limit => Some(limit),
        }
    }

    fn has(&mut self, problem: &'static str, wrong: String, advice: impl Into<String>) {
        self.problems.push(Problem { problem, wrong, advice: advice.into() });
    }

    /// Adds the problem that the node is down, or answered with an error.
    fn has_failure(&mut self, failure: &Failure) {
        let wrong = failure.text().trim_start_matches(&self.node).trim_start().to_owned();
        match failure.is_down() {
            true => self.has("down", wrong, self.to_start()),
            false => self.has(UNKNOWN, wrong, failure.advice().unwrap_or("ask again")),
        }
    }

    /// What to do about a node that is down. Only a replica that the other nodes have given up may be removed: some
    /// servers report no slots for a primary that has failed.
    fn to_start(&self) -> &'static str {
        match (self.has_failed, &self.role[..]) {
            (false, _) => "start the node, or let this machine reach it: the other nodes have not given it up",
            (true, REPLICA) => "start the node, or remove it from the cluster: CLUSTER FORGET",
            (true, _) => "start the node, or let a replica take over its slots: CLUSTER FAILOVER TAKEOVER",
        }
    }
}

/// Adds the problems of nodes that have no module, another version or a smaller limit than other nodes.
fn compare(nodes: &mut [Node]) {
    let newest = |of: fn(&Node) -> &Option<String>| {
        let versions = nodes.iter().filter_map(|node| of(node).clone());
        versions.max_by_key(|version| numbers(version))
    };
    let (server, module) = (newest(|node| &node.server), newest(|node| &node.module));
    let key_bytes = nodes.iter().filter_map(|node| node.max_key_bytes).max();
    // No limit is larger than every limit.
    let limit = |node: &Node| node.maxmemory_bytes.map(|bytes| if bytes == 0 { u64::MAX } else { bytes });
    let memory = nodes.iter().filter_map(limit).max();
    for node in nodes {
        match (&node.module, &module) {
            // Without an answer to INFO, the module is not known.
            (None, _) if node.server.is_some() => node.has(
                "no-module",
                "the module is not loaded: CLUSTER MIGRATION to this node loses every filter and counter".to_owned(),
                "load the module: loadmodule /path/librollcall.so in redis.conf, then restart",
            ),
            (Some(own), Some(newest)) if own != newest => {
                let wrong = format!("the module is {own}, and {newest} on another node");
                node.has("module-version", wrong, "install the newest version of the module on every node");
            }
            _ => {}
        }
        if let (Some(own), Some(newest)) = (&node.server, &server)
            && own != newest
        {
            let wrong = format!("the server is {own}, and {newest} on another node");
            node.has("server-version", wrong, "install the newest version of the server on every node");
        }
        if let (Some(own), Some(largest)) = (node.max_key_bytes, key_bytes)
            && own < largest
        {
            let wrong = format!("max-key-bytes is {own}, and {largest} on another node");
            node.has("max-key-bytes", wrong, "CONFIG SET rollcall.max-key-bytes to the same value on every node");
        }
        if let (Some(own), Some(largest)) = (limit(node), memory)
            && own < largest
        {
            let largest = if largest == u64::MAX { "no limit".to_owned() } else { largest.to_string() };
            let wrong = format!("maxmemory is {own}, and {largest} on another node");
            node.has("maxmemory", wrong, "CONFIG SET maxmemory to the same value on every node");
        }
    }
}

/// The numbers in a version, to compare versions by: 8, 10 and 2 of `redis 8.10.2`.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

fn printed(nodes: &[Node]) -> String {
    let heads = ["node", "role", ">slots", "server", "module", ">max-key-bytes", ">maxmemory"];
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(nodes.iter().map(|node| {
        vec![
            node.node.clone(),
            node.role.clone(),
            count(i64::try_from(node.slots).unwrap_or(i64::MAX)),
            known(&node.server),
            known(&node.module),
            known(&node.max_key_bytes.map(bytes)),
            known(&node.maxmemory_bytes.map(|limit| if limit == 0 { "none".to_owned() } else { bytes(limit) })),
        ]
    }));
    let mut lines = vec![table(&rows)];
    for node in nodes {
        lines.extend(
            node.problems
                .iter()
                .map(|problem| format!("{}: {}: {}\n  {}", node.node, problem.problem, problem.wrong, problem.advice)),
        );
    }
    if lines.len() == 1 {
        lines.push("every node can take the filters and counters of the others".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replica_that_has_failed_may_be_removed() {
        let advice = |role: &str, has_failed| {
            Node { role: role.to_owned(), has_failed, ..Node::default() }.to_start().contains("FORGET")
        };
        assert!(advice(REPLICA, true));
        assert!(!advice(REPLICA, false) && !advice("primary", true) && !advice("primary", false));
    }

    #[test]
    fn nodes_are_compared_with_the_newest_and_the_largest() {
        let node = |server: &str, module: Option<&str>, key_bytes, memory| Node {
            server: Some(server.to_owned()),
            module: module.map(str::to_owned),
            max_key_bytes: key_bytes,
            maxmemory_bytes: Some(memory),
            ..Node::default()
        };
        let mut nodes = [
            node("redis 8.10.2", Some("0.10.0"), Some(2), 0),
            node("redis 8.2.3", Some("0.9.1"), Some(1), 7),
            node("redis 8.10.2", None, None, 0),
            Node::default(),
            Node { max_key_bytes: Some(1), ..Node::default() },
        ];
        compare(&mut nodes);
        let names = |node: &Node| node.problems.iter().map(|problem| problem.problem).collect::<Vec<_>>();
        let found: Vec<_> = nodes.iter().map(names).collect();
        let all = ["module-version", "server-version", "max-key-bytes", "maxmemory"];
        assert_eq!(found, [&[][..], &all, &["no-module"], &[], &["max-key-bytes"]]);
        assert_eq!(nodes[1].problems[1].wrong, "the server is redis 8.2.3, and redis 8.10.2 on another node");
        assert_eq!(nodes[1].problems[3].wrong, "maxmemory is 7, and no limit on another node");
    }
}
