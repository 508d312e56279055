//! Servers and clusters: connections, commands to the right node, scanning, and reading and writing whole values.
//!
//! [`Server`] is one server or all primaries of a cluster. It sends each command to the node of its key and follows
//! redirections. It has one connection to each node and uses only plain commands.

mod address;
mod error;
mod moving;
mod pause;
mod reply;
mod scan;
mod slots;
mod small;
mod temporary;
pub mod texts;
mod value;
mod writers;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use redis::{Cmd, Connection, RedisResult, Value};

pub use address::{Access, Address, Tls, Url};
pub use error::{Given, text_of as error_text};
pub use moving::{ATTEMPTS, Fingerprint, Summing, Transfer, expires_at, fingerprint, transfer};
pub use pause::Pause;
pub use reply::{bytes, integer, items, number, pairs, text};
pub use scan::{Class, Key, shown};
pub use slots::beside;
pub use small::{Arrived, SMALL_BYTES, Small, copy_small, read_small};
pub use temporary::{COPIED, LOADED, Named, arrive, check_rights, is_temporary, named, naming};
pub use value::{Chunk, Read, chunks, first_chunk};
pub use writers::Writes;

use crate::failure::Failure;
use crate::interrupt;

/// The most redirections that one call follows. More than two happen only while a cluster changes.
const MAX_REDIRECTIONS: u32 = 5;

/// Time that a server has to answer after a signal. Steps in progress can end within it.
const GRACE: Duration = Duration::from_secs(1);

/// A server, or the primaries of a cluster.
pub struct Server {
    address: Address,
    nodes: Vec<Node>,
    /// The index of the node that serves each slot; `None` without a cluster.
    slots: Option<Vec<u16>>,
}

struct Node {
    address: Address,
    /// Sends packed commands and their number to the thread that has the connection. `None` after a signal has ended
    /// the wait for replies.
    commands: Option<Sender<(Vec<u8>, usize)>>,
    replies: Receiver<RedisResult<Vec<Value>>>,
}

/// A reply, or the text of the error that the server answered with.
pub type Answer = Result<Value, String>;

impl Server {
    /// Connects to a server, or to all primaries of a cluster.
    pub fn connect(url: &str, access: &Access) -> Result<Self, Failure> {
        let mut server = Server::connect_one(&Address::new(url, access)?)?;
        if access.cluster {
            server.find_nodes()?;
        }
        Ok(server)
    }

    /// Connects to one server, which may be part of a cluster. Redirections are not followed.
    pub fn connect_one(address: &Address) -> Result<Self, Failure> {
        Ok(Server { nodes: vec![Node::connect(address.clone())?], address: address.clone(), slots: None })
    }

    /// The name of the server for display.
    pub fn name(&self) -> String {
        self.address.name()
    }

    /// The addresses of the cluster's primaries, and for each slot the index of its primary.
    pub fn primaries(&mut self) -> Result<(Vec<Address>, Vec<u16>), Failure> {
        let reply = self.call_node(0, redis::cmd("CLUSTER").arg("SLOTS"))?;
        let malformed =
            || Failure::new(format!("{}: CLUSTER SLOTS answered what it never should", self.address.name()));
        let mut slots = vec![u16::MAX; slots::SLOTS];
        let mut found: Vec<(String, u16)> = Vec::new();
        for range in reply::items(&reply).ok_or_else(malformed)? {
            let fields = reply::items(range).filter(|fields| fields.len() > 2).ok_or_else(malformed)?;
            let primary = reply::items(&fields[2]).filter(|fields| fields.len() > 1).ok_or_else(malformed)?;
            let (host, port) = (text(&primary[0]), integer(&primary[1]));
            let port = port.and_then(|port| u16::try_from(port).ok()).ok_or_else(malformed)?;
            // An unknown host (`?` or an empty string) stands for the node that answers.
            let host = host.filter(|host| host != "?").unwrap_or_default();
            let (first, last) = (integer(&fields[0]), integer(&fields[1]));
            let (Some(first), Some(last)) = (first, last) else { return Err(malformed()) };
            let at = found.iter().position(|node| *node == (host.clone(), port)).unwrap_or_else(|| {
                found.push((host, port));
                found.len() - 1
            });
            for slot in first..=last {
                let slot = usize::try_from(slot).ok().and_then(|slot| slots.get_mut(slot)).ok_or_else(malformed)?;
                *slot = at as u16;
            }
        }
        if found.is_empty() {
            return Err(Failure::new(format!("{}: the cluster has no slots yet", self.address.name())));
        }
        let addresses = found.iter().map(|(host, port)| self.address.node(host, *port)).collect();
        Ok((addresses, slots))
    }

    /// Asks for the nodes and their slots, and connects to new nodes. If that fails, the known nodes stay.
    fn find_nodes(&mut self) -> Result<(), Failure> {
        let (addresses, slots) = self.primaries()?;
        let mut new = Vec::new();
        for address in &addresses {
            let is_known = self.nodes.iter().any(|node| node.address.name() == address.name());
            new.push(if is_known { None } else { Some(Node::connect(address.clone())?) });
        }
        let mut old: Vec<Node> = std::mem::take(&mut self.nodes);
        for (address, new) in addresses.iter().zip(new) {
            let known = old.iter().position(|node| node.address.name() == address.name());
            self.nodes.extend(new.or_else(|| known.map(|at| old.swap_remove(at))));
        }
        self.slots = Some(slots);
        Ok(())
    }

    /// Looks up the primaries of a cluster again.
    pub fn refresh(&mut self) -> Result<(), Failure> {
        if self.slots.is_some() { self.find_nodes() } else { Ok(()) }
    }

    /// The number of primaries; 1 without a cluster.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Whether this is one node of a cluster, and the keys of the others are left out. `false` if the user may not call
    /// `INFO`.
    pub fn is_part(&mut self) -> Result<bool, Failure> {
        if self.slots.is_some() {
            return Ok(false);
        }
        let info = self.ask_node(0, &[redis::cmd("INFO").arg("cluster").to_owned()])?.pop();
        let info = info.and_then(Result::ok).as_ref().and_then(text).unwrap_or_default();
        Ok(info.lines().any(|line| line.trim_end() == "cluster_enabled:1"))
    }

    /// Fails if the server is one node of a cluster, for commands that need all keys.
    pub fn check_whole(&mut self) -> Result<(), Failure> {
        match self.is_part()? {
            true => {
                Err(Failure::new(format!("{} is one node of a cluster, and has only some of its keys", self.name()))
                    .advise(format!("add {}, to work with all nodes", self.address.given().cluster)))
            }
            false => Ok(()),
        }
    }

    /// The name of a node for display.
    pub fn node_name(&self, node: usize) -> String {
        self.nodes[node].address.name()
    }

    /// The URL of a node, without user and password.
    pub fn node_url(&self, node: usize) -> String {
        self.nodes[node].address.url()
    }

    /// The index of the node that serves a key.
    pub fn node_of(&self, key: &[u8]) -> usize {
        let at = self.slots.as_ref().map_or(0, |slots| usize::from(slots[usize::from(slots::slot(key))]));
        // A command for a slot that nobody serves goes to the first node, whose error says so.
        if at < self.nodes.len() { at } else { 0 }
    }

    /// Sends a command about `key`, and returns its reply. An error from the server becomes a [`Failure`].
    pub fn call(&mut self, key: &[u8], command: &Cmd) -> Result<Value, Failure> {
        let answer = self.ask(key, command)?;
        let node = self.node_of(key);
        answer.map_err(|text| self.rejected_by(node, &name_of(command), &text))
    }

    /// Sends a command about `key`, and returns its reply or the server's error.
    pub fn ask(&mut self, key: &[u8], command: &Cmd) -> Result<Answer, Failure> {
        let node = self.node_of(key);
        let answer = self.ask_node(node, std::slice::from_ref(command))?.pop();
        self.follow(key, command, answer.unwrap_or(Ok(Value::Nil)))
    }

    /// Sends commands, each with its key, to their nodes in one batch per node; returns the answers in order.
    pub fn ask_all(&mut self, commands: &[(&[u8], Cmd)]) -> Result<Vec<Answer>, Failure> {
        let mut answers: Vec<Option<Answer>> = commands.iter().map(|_| None).collect();
        for node in 0..self.nodes.len() {
            let of_node: Vec<usize> = (0..commands.len()).filter(|&at| self.node_of(commands[at].0) == node).collect();
            let batch: Vec<Cmd> = of_node.iter().map(|&at| commands[at].1.clone()).collect();
            for (at, answer) in of_node.into_iter().zip(self.ask_node(node, &batch)?) {
                answers[at] = Some(answer);
            }
        }
        let mut followed = Vec::with_capacity(commands.len());
        for ((key, command), answer) in commands.iter().zip(answers) {
            followed.push(self.follow(key, command, answer.unwrap_or(Ok(Value::Nil)))?);
        }
        Ok(followed)
    }

    /// Follows redirections and returns the answer.
    fn follow(&mut self, key: &[u8], command: &Cmd, mut answer: Answer) -> Result<Answer, Failure> {
        for _ in 0..MAX_REDIRECTIONS {
            let Err(text) = &answer else { break };
            if self.slots.is_none() {
                break;
            }
            let mut words = text.split(' ');
            match (words.next(), words.nth(1)) {
                (Some("MOVED"), _) => {
                    self.find_nodes()?;
                    answer = self.ask_node(self.node_of(key), std::slice::from_ref(command))?.pop().unwrap_or(answer);
                }
                (Some("ASK"), Some(place)) => {
                    let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
                    let Ok(port) = port.parse() else { break };
                    let mut node = Node::connect(self.address.node(host, port))?;
                    let asking = [redis::cmd("ASKING"), command.clone()];
                    answer = node.ask(&asking)?.pop().unwrap_or(answer);
                }
                _ => break,
            }
        }
        Ok(answer)
    }

    /// Sends a command to a node, and returns its reply. An error from the server becomes a [`Failure`].
    pub fn call_node(&mut self, node: usize, command: &Cmd) -> Result<Value, Failure> {
        let answer = self.ask_node(node, std::slice::from_ref(command))?.pop().unwrap_or(Ok(Value::Nil));
        answer.map_err(|text| self.rejected_by(node, &name_of(command), &text))
    }

    /// Sends commands to a node in one batch, and returns the answers in order.
    pub fn ask_node(&mut self, node: usize, commands: &[Cmd]) -> Result<Vec<Answer>, Failure> {
        self.nodes[node].ask(commands)
    }

    /// The failure for an error that the server answered to `command` about `key`.
    pub fn rejected(&self, key: &[u8], command: &str, text: &str) -> Failure {
        self.rejected_by(self.node_of(key), command, text)
    }

    /// The failure for an error that a node answered to `command`.
    fn rejected_by(&self, node: usize, command: &str, text: &str) -> Failure {
        error::rejected(&self.node_name(node), self.address.given(), command, text)
    }
}

impl Node {
    fn connect(address: Address) -> Result<Self, Failure> {
        let connecting = address.clone();
        let mut connection = interrupt::wait(GRACE, move || connecting.connect())??;
        let (commands, asked) = channel::<(Vec<u8>, usize)>();
        let (replied, replies) = channel();
        interrupt::spawn(move || {
            for (packed, len) in asked {
                // Sending fails only if the node is gone, and then `asked` ends too.
                let _ = replied.send(exchange(&mut connection, &packed, len));
            }
        })?;
        Ok(Node { address, commands: Some(commands), replies })
    }

    /// Sends commands to this node in one batch, and reads the replies.
    fn ask(&mut self, commands: &[Cmd]) -> Result<Vec<Answer>, Failure> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let lost = |problem: &redis::RedisError| {
            error::broken(&self.address.name(), &name_of(first), self.address.timeout(), problem)
        };
        let mut packed = Vec::new();
        for command in commands {
            packed.extend_from_slice(&command.get_packed_command());
        }
        let asked = self.commands.take().filter(|asked| asked.send((packed, commands.len())).is_ok());
        let replies = if asked.is_some() { interrupt::receive(GRACE, &self.replies)? } else { None };
        let Some(replies) = replies else {
            interrupt::check()?;
            return Err(Failure::new(format!("{} was lost", self.address.name())));
        };
        self.commands = asked;
        let answer = |reply: Value| match error::text_of(&reply) {
            Some(text) => Err(text),
            None => Ok(reply),
        };
        Ok(replies.map_err(|problem| lost(&problem))?.into_iter().map(answer).collect())
    }
}

/// Sends `packed` commands, and reads `len` replies.
fn exchange(connection: &mut Connection, packed: &[u8], len: usize) -> RedisResult<Vec<Value>> {
    connection.send_packed_command(packed)?;
    (0..len).map(|_| connection.recv_response()).collect()
}

/// The first word of a command.
fn name_of(command: &Cmd) -> String {
    match command.args_iter().next() {
        Some(redis::Arg::Simple(word)) => String::from_utf8_lossy(word).into_owned(),
        _ => String::new(),
    }
}
