//! `nodes`: whether every node of a cluster can take the filters and counters of the others, before slots move.

use std::time::Duration;

use clap::Args;
use redis::Value;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::server::{Address, Server, Url, integer, items, pairs, text};
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
    problems: Vec<Problem>,
}

/// A reason why a node cannot take every key of the others.
#[derive(Debug, Serialize)]
struct Problem {
    problem: &'static str,
    wrong: String,
    advice: &'static str,
}

impl Nodes {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let address = Address::new(&self.url.url, &self.url.access)?.patient(PATIENCE);
        let shards = Server::connect_one(&address)?.call_node(0, redis::cmd("CLUSTER").arg("SHARDS"))?;
        let mut nodes = members(&shards, &address)
            .ok_or_else(|| Failure::new(format!("{}: CLUSTER SHARDS answered what it never should", address.name())))?;
        for (address, node) in &mut nodes {
            if let Err(failure) = node.ask(address) {
                let advice = "start the node, or remove it from the cluster: CLUSTER FORGET";
                node.has("down", format!("cannot be asked: {}", failure.text()), advice);
            }
        }
        let mut nodes: Vec<Node> = nodes.into_iter().map(|(_, node)| node).collect();
        compare(&mut nodes);
        output.answer(&nodes, |nodes| printed(nodes))?;
        match nodes.iter().filter(|node| !node.problems.is_empty()).count() {
            0 => Ok(()),
            wrong => Err(Failure::does_not_hold(format!("{wrong} of {} nodes cannot take all keys", nodes.len()))
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
            let role = if is_primary { "primary" } else { "replica" }.to_owned();
            let slots = if is_primary { u64::try_from(slots).ok()? } else { 0 };
            let first = ranges.first().copied().unwrap_or(i64::MAX);
            found.push((first, !is_primary, address.name(), address, Node { role, slots, ..Node::default() }));
        }
    }
    found.sort_by(|one, other| (one.0, one.1, &one.2).cmp(&(other.0, other.1, &other.2)));
    Some(found.into_iter().map(|(_, _, name, address, node)| (address, Node { node: name, ..node })).collect())
}

impl Node {
    /// Asks the node for versions and limits.
    fn ask(&mut self, address: &Address) -> Result<(), Failure> {
        let mut server = Server::connect_one(address)?;
        let info = Info::new(&mut server)?;
        (self.server, self.module, self.maxmemory_bytes) = (info.server, info.version, info.maxmemory);
        // A server without the module answers with an empty list.
        let reply = server.call_node(0, redis::cmd("CONFIG").arg("GET").arg("rollcall.max-key-bytes"))?;
        let limit = pairs(&reply).first().and_then(|(_, value)| u64::try_from(integer(value)?).ok());
        let automatic = AUTOMATIC_KEY_BYTES[usize::from(self.maxmemory_bytes.unwrap_or(0) > 0)];
        self.max_key_bytes = limit.map(|limit| if limit == 0 { automatic } else { limit });
        Ok(())
    }

    fn has(&mut self, problem: &'static str, wrong: String, advice: &'static str) {
        self.problems.push(Problem { problem, wrong, advice });
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
    for node in nodes.iter_mut().filter(|node| node.server.is_some()) {
        match (&node.module, &module) {
            (None, _) => node.has(
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
        ];
        compare(&mut nodes);
        let names = |node: &Node| node.problems.iter().map(|problem| problem.problem).collect::<Vec<_>>();
        let found: Vec<_> = nodes.iter().map(names).collect();
        let all = ["module-version", "server-version", "max-key-bytes", "maxmemory"];
        assert_eq!(found, [&[][..], &all, &["no-module"], &[]]);
        assert_eq!(nodes[1].problems[1].wrong, "the server is redis 8.2.3, and redis 8.10.2 on another node");
        assert_eq!(nodes[1].problems[3].wrong, "maxmemory is 7, and no limit on another node");
    }
}
