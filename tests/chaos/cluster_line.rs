//! Sends the commands of writers to a cluster whose slots move and whose primaries die.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::RwLock;
use std::time::{Duration, Instant};

use redis::Value;

use crate::key::{Command, Outcome, passes};
use crate::line::{Line, outcome, wait_one};
use rollcall_testkit::{Client, error_text, number};

/// The time limit of a reply.
const PATIENCE: Duration = Duration::from_secs(5);
const NO_ANSWER: Duration = Duration::from_secs(60);
const WAIT_MILLISECONDS: u64 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// The connections of one client to all nodes. A write counts as acknowledged if `WAIT 1` succeeded on the same
/// connection. Client libraries choose connections themselves, so none is used here.
pub struct ClusterLine<'a> {
    /// The ports of all nodes, which change when a node restarts.
    ports: &'a RwLock<Vec<u16>>,
    connections: HashMap<u16, Client>,
    /// The port of the node that serves each slot, as far as it is known.
    owners: BTreeMap<u16, u16>,
}

impl ClusterLine<'_> {
    pub fn new(ports: &RwLock<Vec<u16>>) -> ClusterLine<'_> {
        ClusterLine { ports, connections: HashMap::new(), owners: BTreeMap::new() }
    }

    fn connection(&mut self, port: u16) -> Option<&mut Client> {
        match self.connections.entry(port) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(vacant) => Some(vacant.insert(Client::connect(port, PATIENCE, PathBuf::new())?)),
        }
    }

    fn owner(&mut self, key: &str) -> Option<u16> {
        if self.owners.is_empty() {
            self.look_up_owners();
        }
        self.owners.get(&slot_of(key)).copied()
    }

    /// Asks any node for the nodes of all slots.
    fn look_up_owners(&mut self) {
        let ports = self.ports.read().expect("the ports").clone();
        for port in ports {
            let Some(reply) = self.connection(port).and_then(|client| client.try_call(&["CLUSTER", "SLOTS"])) else {
                self.connections.remove(&port);
                continue;
            };
            let Value::Array(ranges) = reply else { continue };
            for range in &ranges {
                let Value::Array(range) = range else { continue };
                let [first, last, Value::Array(primary), ..] = &range[..] else { continue };
                let port = number(&primary[1]) as u16;
                self.owners.extend((number(first) as u16..=number(last) as u16).map(|slot| (slot, port)));
            }
            return;
        }
    }

    /// Drops the connection to a node that does not answer, and asks other nodes for the slots.
    fn lose(&mut self, port: u16) {
        self.connections.remove(&port);
        std::thread::sleep(PAUSE);
        self.look_up_owners();
    }

    /// The slot and the port in a redirection, and whether the redirection is for one command only (ASK).
    fn redirection(reply: &Value) -> Option<(u16, u16, bool)> {
        let error = error_text(reply)?;
        let mut words = error.split(' ');
        let once = match words.next()? {
            "ASK" => true,
            "MOVED" => false,
            _ => return None,
        };
        let slot = words.next()?.parse().ok()?;
        let port = words.next()?.rsplit(':').next()?.parse().ok()?;
        Some((slot, port, once))
    }

    /// Sends commands to one node. Returns the replies received, and whether a replica has the writes.
    fn send(&mut self, port: u16, commands: &[Command]) -> Option<(Vec<Value>, bool)> {
        let sent: Vec<Command> = commands.iter().cloned().chain([wait_one(WAIT_MILLISECONDS)]).collect();
        let mut replies = self.connection(port)?.try_pipeline(&sent);
        let is_kept = replies.len() == sent.len() && matches!(replies.pop(), Some(Value::Int(1..)));
        if replies.len() < commands.len() {
            self.lose(port);
        }
        Some((replies, is_kept))
    }

    fn settle(&mut self, command: &Command, reply: Value, is_kept: bool) -> Outcome {
        match Self::redirection(&reply) {
            Some((_, port, true)) => {
                let asking: Command = vec![b"ASKING".to_vec()];
                match self.send(port, &[asking, command.clone()]) {
                    None => Outcome::Rejected,
                    Some((mut replies, is_kept)) if replies.len() == 2 => {
                        kept(outcome(replies.pop().expect("a reply")), is_kept)
                    }
                    Some(_) => Outcome::Unknown,
                }
            }
            Some((slot, port, false)) => {
                self.owners.insert(slot, port);
                Outcome::Rejected
            }
            None => kept(outcome(reply), is_kept),
        }
    }
}

fn kept(outcome: Outcome, is_kept: bool) -> Outcome {
    if is_kept || !matches!(outcome, Outcome::Done(_)) { outcome } else { Outcome::Unknown }
}

impl Line for ClusterLine<'_> {
    fn write(&mut self, commands: &[(String, Command)]) -> Vec<Outcome> {
        let mut by_port: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, (key, _)) in commands.iter().enumerate() {
            if let Some(port) = self.owner(key) {
                by_port.entry(port).or_default().push(at);
            }
        }
        let mut outcomes: Vec<Outcome> = commands.iter().map(|_| Outcome::Rejected).collect();
        for (port, indexes) in by_port {
            let of_port: Vec<Command> = indexes.iter().map(|at| commands[*at].1.clone()).collect();
            let Some((replies, is_kept)) = self.send(port, &of_port) else {
                self.lose(port);
                continue;
            };
            let mut replies = replies.into_iter();
            for at in indexes {
                outcomes[at] = match replies.next() {
                    Some(reply) => self.settle(&commands[at].1, reply, is_kept),
                    None => Outcome::Unknown,
                };
            }
        }
        if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Rejected)) {
            std::thread::sleep(PAUSE);
        }
        outcomes
    }

    fn read(&mut self, key: &str, command: &Command) -> Option<Value> {
        let start = Instant::now();
        let mut once = None;
        while start.elapsed() < NO_ANSWER {
            let Some(port) = once.or_else(|| self.owner(key)) else {
                self.look_up_owners();
                continue;
            };
            let asking = if once.take().is_some() { vec![vec![b"ASKING".to_vec()]] } else { Vec::new() };
            let sent: Vec<Command> = asking.into_iter().chain([command.clone()]).collect();
            let replies = self.connection(port).map(|client| client.try_pipeline(&sent));
            let Some(mut replies) = replies.filter(|replies| replies.len() == sent.len()) else {
                self.lose(port);
                continue;
            };
            let reply = replies.pop()?;
            match Self::redirection(&reply) {
                Some((_, port, true)) => once = Some(port),
                Some((slot, port, false)) => drop(self.owners.insert(slot, port)),
                None if error_text(&reply).is_some_and(|error| passes(&error)) => std::thread::sleep(PAUSE),
                None => return Some(reply),
            }
        }
        panic!("no node answered for {key} within {NO_ANSWER:?}");
    }

    fn is_up(&self) -> bool {
        true
    }
}

/// The slot of a key: CRC-16 (XMODEM) of its hash tag, or of all of it.
pub fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % 16_384
}
