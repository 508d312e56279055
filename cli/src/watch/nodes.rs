//! Nodes that are watched for a long time. Each is asked on its own connection, and connected to again after a loss.

use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::server::{Access, Address, Server};

/// Time without a reply after which a node counts as down, unless `--timeout` is given.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that fails within this time used a connection that had been lost before. A later failure means that the
/// node is slow.
const LOST_WITHIN: Duration = Duration::from_secs(1);

/// The nodes that are asked: one server, or all primaries of a cluster.
pub struct Nodes {
    /// Whether the primaries of a cluster are looked up before each question.
    is_cluster: bool,
    /// Whether the primaries were ever found. Until then `nodes` has the seed alone.
    is_found: bool,
    /// The node that the URL names. In a cluster it is asked for the primaries if no known node answers, since their
    /// addresses may have changed.
    seed: Node,
    nodes: Vec<Node>,
}

struct Node {
    address: Address,
    connection: Option<Server>,
}

/// The answer of one node.
pub struct Asked<T> {
    /// The name of the node for display: host and port.
    pub server: String,
    pub answer: Result<T, Failure>,
    pub took: Duration,
}

impl Nodes {
    /// Prepares the node that `url` names, without connecting to it.
    ///
    /// # Errors
    /// When the URL is invalid, or a file of `access` cannot be read.
    pub fn new(url: &str, access: &Access) -> Result<Self, Failure> {
        let address = Address::new(url, access)?.patient(PATIENCE);
        let node = || Node { address: address.clone(), connection: None };
        Ok(Nodes { is_cluster: access.cluster, is_found: false, seed: node(), nodes: vec![node()] })
    }

    /// Asks all nodes in parallel, each on its own connection. In a cluster the present primaries are looked up first.
    /// If they were never found, the only answer is the reason.
    pub fn ask<T: Send>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure> + Sync) -> Vec<Asked<T>> {
        let began = Instant::now();
        if self.is_cluster
            && let Err(failure) = self.find_primaries()
            && !self.is_found
        {
            return vec![Asked { server: self.seed.address.name(), answer: Err(failure), took: began.elapsed() }];
        }
        let question = &question;
        thread::scope(|scope| {
            let named = self.nodes.iter_mut().map(|node| (node.address.name(), node));
            let asked: Vec<_> = named.map(|(name, node)| (name, scope.spawn(move || node.ask(question)))).collect();
            // A panic becomes the answer of its node, since the other nodes have to be asked again later.
            let panicked = || Err(Failure::new("an internal error; please report it"));
            asked
                .into_iter()
                .map(|(server, asked)| match asked.join() {
                    Ok(asked) => asked,
                    Err(_) => Asked { server, answer: panicked(), took: Duration::ZERO },
                })
                .collect()
        })
    }

    /// Updates the list of primaries from the first node that answers. If no node answers, the list stays, and the
    /// error is that of the seed.
    fn find_primaries(&mut self) -> Result<(), Failure> {
        let known = self.nodes.iter_mut().filter(|_| self.is_found);
        let found = { known }.find_map(|node| node.with(|server| server.primaries()).ok());
        let (addresses, _) = found.map_or_else(|| self.seed.with(|server| server.primaries()), Ok)?;
        let mut old = std::mem::take(&mut self.nodes);
        for address in addresses {
            let known = old.iter().position(|node| node.address.name() == address.name());
            let connection = known.and_then(|at| old.swap_remove(at).connection);
            self.nodes.push(Node { address, connection });
        }
        self.is_found = true;
        Ok(())
    }
}

impl Node {
    fn ask<T>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure>) -> Asked<T> {
        let began = Instant::now();
        let answer = self.with(question);
        Asked { server: self.address.name(), answer, took: began.elapsed() }
    }

    /// Asks on the existing connection, or on a new one if the existing one was lost. A connection on which anything
    /// failed is closed, because replies may still arrive on it.
    fn with<T>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure>) -> Result<T, Failure> {
        if let Some(mut server) = self.connection.take() {
            let began = Instant::now();
            match question(&mut server) {
                Ok(answer) => {
                    self.connection = Some(server);
                    return Ok(answer);
                }
                // A quick failure means a lost connection, so the question is repeated. A slow node is not asked twice.
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
