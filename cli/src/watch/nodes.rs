//! Servers that are watched for long: asked each on its own, and connected to again after they were lost.

use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::server::{Access, Address, Server};

/// How long a node may be silent until it counts as down, unless `--timeout` says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// How soon a connection that was lost meanwhile fails.
const LOST_WITHIN: Duration = Duration::from_secs(1);

/// A server, or the primaries of a cluster.
pub struct Nodes {
    /// Whether the primaries are looked for.
    is_cluster: bool,
    /// What the URL names. In a cluster it is asked when no node answers: all of them may have other addresses by now.
    seed: Node,
    nodes: Vec<Node>,
}

struct Node {
    address: Address,
    connection: Option<Server>,
}

/// What a node answered.
pub struct Asked<T> {
    /// What people call the node: host and port.
    pub server: String,
    pub answer: Result<T, Failure>,
    pub took: Duration,
}

impl Nodes {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The URL or a file of `access` cannot be read.
    pub fn new(url: &str, access: &Access) -> Result<Self, Failure> {
        let address = Address::new(url, access)?.patient(PATIENCE);
        let node = || Node { address: address.clone(), connection: None };
        Ok(Nodes { is_cluster: access.cluster, seed: node(), nodes: vec![node()] })
    }

    /// Asks all nodes at the same time, each on a connection of its own. In a cluster those that are primaries by now.
    pub fn ask<T: Send>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure> + Sync) -> Vec<Asked<T>> {
        if self.is_cluster {
            self.find_primaries();
        }
        let question = &question;
        thread::scope(|scope| {
            let named = self.nodes.iter_mut().map(|node| (node.address.name(), node));
            let asked: Vec<_> = named.map(|(name, node)| (name, scope.spawn(move || node.ask(question)))).collect();
            // The others are asked again and again, so a panic must not end it all.
            let panicked = || Err(Failure::of("an internal error; please report it"));
            asked
                .into_iter()
                .map(|(server, asked)| match asked.join() {
                    Ok(asked) => asked,
                    Err(_) => Asked { server, answer: panicked(), took: Duration::ZERO },
                })
                .collect()
        })
    }

    /// Asks the first node that answers which the primaries are. If none does, they stay what they were.
    fn find_primaries(&mut self) {
        let all = self.nodes.iter_mut().chain([&mut self.seed]);
        let found = { all }.find_map(|node| node.with(|server| server.primaries()).ok());
        let Some((addresses, _)) = found else { return };
        let mut old = std::mem::take(&mut self.nodes);
        for address in addresses {
            let known = old.iter().position(|node| node.address.name() == address.name());
            let connection = known.and_then(|at| old.swap_remove(at).connection);
            self.nodes.push(Node { address, connection });
        }
    }
}

impl Node {
    fn ask<T>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure>) -> Asked<T> {
        let began = Instant::now();
        let answer = self.with(question);
        Asked { server: self.address.name(), answer, took: began.elapsed() }
    }

    /// Asks on the connection there is, and if that was lost meanwhile on a new one. What anything failed on is given up:
    /// replies of it may still be on their way.
    fn with<T>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure>) -> Result<T, Failure> {
        if let Some(mut server) = self.connection.take() {
            let began = Instant::now();
            match question(&mut server) {
                Ok(answer) => {
                    self.connection = Some(server);
                    return Ok(answer);
                }
                // A lost connection is noticed at once. Who was waited for is not asked the same again.
                Err(failure) if began.elapsed() > LOST_WITHIN => return Err(failure),
                Err(_) => {}
            }
        }
        let mut server = Server::connect_one(&self.address)?;
        let answer = question(&mut server)?;
        self.connection = Some(server);
        Ok(answer)
    }
}
