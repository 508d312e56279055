//! One logical filter and one logical counter, partitioned over a cluster, as a start for programs of your own.
//! [`partition`] decides which part has which items, and the `redis` crate sends commands to the parts.
//!
//! A list of items is sent as one command per part. All commands are written before the first reply is read, so the
//! nodes work at the same time. If the slot of a part moves, its node redirects the command (`MOVED`, `ASK`). Then only
//! this command is sent again, by the crate's cluster client, which follows redirections. The other parts have already
//! answered. Repeating a whole list would be wrong, because a second `BF.MADD` replies 0 for items that the first one
//! added. The pipeline of the cluster client is not used: if one command is redirected, it drops the replies to all
//! others (version 1.8.1).

pub mod partition;

use std::collections::HashMap;

use partition::{Partitioned, Share, Split, unite};
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Cmd, Connection, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo, RedisResult, Value};

/// Errors: of the cluster, and replies that do not fit the command.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A node: host and port.
type Node = (String, u16);

/// The nodes of a cluster, and the node of each part.
struct Nodes {
    /// The first node. The other nodes are connected with the same user, password and settings.
    seed: ConnectionInfo,
    /// A client that follows redirections, for single commands.
    following: ClusterConnection,
    /// The slot of each part, which never changes.
    slots: Vec<u16>,
    /// The node of each part, as last known.
    owners: Vec<Node>,
    connections: HashMap<Node, Connection>,
}

impl Nodes {
    fn connect(url: &str, parts: &Partitioned) -> RedisResult<Self> {
        let client = redis::Client::open(url)?;
        let mut pipeline = redis::pipe();
        for key in parts.keys() {
            pipeline.cmd("CLUSTER").arg("KEYSLOT").arg(key);
        }
        let slots = pipeline.query(&mut client.get_connection()?)?;
        let following = ClusterClient::new([url])?.get_connection()?;
        let mut nodes = Nodes {
            seed: url.into_connection_info()?,
            following,
            slots,
            owners: Vec::new(),
            connections: HashMap::new(),
        };
        nodes.look_up_owners()?;
        Ok(nodes)
    }

    /// Asks the cluster for the node of each slot.
    fn look_up_owners(&mut self) -> RedisResult<()> {
        // First and last slot of a range, then its primary and its replicas: host, port and more.
        let ranges: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut self.following)?;
        let mut known: Vec<(u16, u16, Node)> = Vec::new();
        for range in ranges {
            if let [first, last, Value::Array(primary), ..] = &range[..]
                && let [host, port, ..] = &primary[..]
            {
                // A node that does not know its own address reports none. Its host is that of the first node.
                let host: Option<String> = redis::from_redis_value_ref(host)?;
                let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| host_of(self.seed.addr()));
                let node = (host, redis::from_redis_value_ref(port)?);
                known.push((redis::from_redis_value_ref(first)?, redis::from_redis_value_ref(last)?, node));
            }
        }
        // If a slot has no node, any node is asked, and its error says so.
        let anyone = known.first().map(|(_, _, node)| node.clone()).unwrap_or_default();
        let owner = |slot: &u16| {
            let range = known.iter().find(|(first, last, _)| (first..=last).contains(&slot));
            range.map_or_else(|| anyone.clone(), |(_, _, node)| node.clone())
        };
        self.owners = self.slots.iter().map(owner).collect();
        Ok(())
    }

    /// Sends commands, each with its part, and returns the replies in the same order.
    fn ask<T: FromRedisValue>(&mut self, commands: &[(u32, Cmd)]) -> RedisResult<Vec<T>> {
        let replies = self.send_and_receive(commands).inspect_err(|_| {
            // Unread replies may arrive on these connections, so they are closed.
            self.connections.clear();
        })?;
        let mut moved = false;
        let mut follow = |(reply, (_, command)): (Value, &(u32, Cmd))| match reply.extract_error() {
            Err(error) if error.is_cluster_error() => {
                moved = true;
                command.query(&mut self.following)
            }
            other => Ok(redis::from_redis_value(other?)?),
        };
        // All redirected commands are repeated before an error is reported, so that every command has been executed.
        let followed: Vec<RedisResult<T>> = replies.into_iter().zip(commands).map(&mut follow).collect();
        if moved {
            self.look_up_owners()?;
        }
        followed.into_iter().collect()
    }

    fn send_and_receive(&mut self, commands: &[(u32, Cmd)]) -> RedisResult<Vec<Value>> {
        let mut by_node: HashMap<&Node, Vec<usize>> = HashMap::new();
        for (index, (part, _)) in commands.iter().enumerate() {
            by_node.entry(&self.owners[*part as usize]).or_default().push(index);
        }
        for (node, indexes) in &by_node {
            if !self.connections.contains_key(*node) {
                self.connections.insert((*node).clone(), open(&self.seed, node)?);
            }
            let packed: Vec<u8> = indexes.iter().flat_map(|&index| commands[index].1.get_packed_command()).collect();
            if let Some(connection) = self.connections.get_mut(*node) {
                connection.send_packed_command(&packed)?;
            }
        }
        let mut replies = vec![Value::Nil; commands.len()];
        for (node, indexes) in by_node {
            let Some(connection) = self.connections.get_mut(node) else { continue };
            for index in indexes {
                replies[index] = connection.recv_response()?;
            }
        }
        Ok(replies)
    }
}

fn host_of(address: &ConnectionAddr) -> String {
    match address {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
        _ => "localhost".to_owned(),
    }
}

/// Connects to a node with the settings of the seed node.
fn open(seed: &ConnectionInfo, (host, port): &Node) -> RedisResult<Connection> {
    let addr = match seed.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: host.clone(),
            port: *port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host.clone(), *port),
    };
    redis::Client::open(seed.clone().set_addr(addr))?.get_connection()
}

/// The commands that send the shares of a list to their parts.
fn with_shares(split: &Split<'_>, command: &str) -> Vec<(u32, Cmd)> {
    let of_share = |share: &Share<'_>| {
        let mut built = redis::cmd(command);
        built.arg(&share.key).arg(&share.items);
        (share.part, built)
    };
    split.shares.iter().map(of_share).collect()
}

/// The same command for the key of each part, with the same arguments.
fn with_keys(parts: &Partitioned, command: &str, arguments: &[String]) -> Vec<(u32, Cmd)> {
    let of_key = |(part, key): (u32, Vec<u8>)| {
        let mut built = redis::cmd(command);
        built.arg(key).arg(arguments);
        (part, built)
    };
    (0..).zip(parts.keys()).map(of_key).collect()
}

/// One logical Bloom filter over all nodes.
pub struct ClusterFilter {
    parts: Partitioned,
    nodes: Nodes,
}

impl ClusterFilter {
    /// Connects to a filter. Its parts must exist, or be created by [`Self::reserve`]. The URL is that of any node.
    pub fn connect(url: &str, parts: Partitioned) -> RedisResult<Self> {
        Ok(ClusterFilter { nodes: Nodes::connect(url, &parts)?, parts })
    }

    /// Creates all parts, for `capacity` items in total.
    pub fn reserve(&mut self, error_rate: f64, capacity: u64) -> Result<(), Failure> {
        let arguments = [error_rate.to_string(), self.parts.capacity_of_part(capacity)?.to_string()];
        self.nodes.ask::<()>(&with_keys(&self.parts, "BF.RESERVE", &arguments))?;
        Ok(())
    }

    /// Adds items. Returns for each whether it is new.
    pub fn add(&mut self, items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, Failure> {
        self.answers("BF.MADD", items)
    }

    /// Looks up items. Returns for each whether it may have been added; false is certain.
    pub fn may_contain(&mut self, items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, Failure> {
        self.answers("BF.MEXISTS", items)
    }

    /// The number of items that were added.
    pub fn card(&mut self) -> Result<u64, Failure> {
        Ok(self.nodes.ask::<u64>(&with_keys(&self.parts, "BF.CARD", &[]))?.iter().sum())
    }

    fn answers(&mut self, command: &str, items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, Failure> {
        let split = self.parts.split(items);
        let replies = self.nodes.ask(&with_shares(&split, command))?;
        Ok(split.in_order(replies)?)
    }
}

/// One logical counter of distinct members over all nodes.
pub struct ClusterCounter {
    parts: Partitioned,
    nodes: Nodes,
}

impl ClusterCounter {
    /// Connects to a counter. Its parts must exist, or be created by [`Self::reserve`]. The URL is that of any node.
    pub fn connect(url: &str, parts: Partitioned) -> RedisResult<Self> {
        Ok(ClusterCounter { nodes: Nodes::connect(url, &parts)?, parts })
    }

    /// Creates all parts. `error_rate` is the standard error of a part. The standard error of the whole is smaller by
    /// the square root of the number of parts.
    pub fn reserve(&mut self, error_rate: f64) -> Result<(), Failure> {
        let arguments = ["ERROR".to_owned(), error_rate.to_string()];
        self.nodes.ask::<()>(&with_keys(&self.parts, "LC.RESERVE", &arguments))?;
        Ok(())
    }

    /// Adds members. Each distinct member counts once.
    pub fn add(&mut self, members: &[impl AsRef<[u8]>]) -> Result<(), Failure> {
        let split = self.parts.split(members);
        self.nodes.ask::<u64>(&with_shares(&split, "LC.ADD"))?;
        Ok(())
    }

    /// The number of distinct members, and its standard error in members.
    pub fn estimate(&mut self) -> Result<(u64, f64), Failure> {
        let of_key = |key: Vec<u8>| {
            let mut built = redis::cmd("LC.UNIONCARD");
            built.arg(1).arg(key);
            built
        };
        let commands: Vec<(u32, Cmd)> = (0..).zip(self.parts.keys().map(of_key)).collect();
        Ok(unite(self.nodes.ask::<(u64, f64)>(&commands)?))
    }
}
