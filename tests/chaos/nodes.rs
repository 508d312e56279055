//! A cluster of three primaries and three replicas, whose slots can be moved and whose nodes can be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use rollcall_testkit::{
    Client, SLOTS, Server, Setup, add_replica, cluster_of, ended_moves, error_text, start_move, text, wait_until,
};

pub const PRIMARIES: usize = 3;
/// Milliseconds without an answer after which a node counts as failed.
const NODE_TIMEOUT: u64 = 2000;

pub struct Nodes {
    pub servers: Vec<Server>,
    /// The ports of the nodes. A restarted node has a new port.
    pub ports: Arc<RwLock<Vec<u16>>>,
    /// The index of the node that is not running.
    down: Option<usize>,
}

/// A node, as another node describes it in CLUSTER NODES.
struct Seen {
    id: String,
    is_myself: bool,
    /// The id of the primary, if the node is a replica.
    primary: Option<String>,
    slots: Vec<(u16, u16)>,
}

/// Sends a command until the node answers. A replica that is loading the data of its primary rejects all commands.
fn answer(client: &mut Client, line: &str) -> String {
    wait_until("a node to answer", || {
        let reply = client.cmd(line);
        error_text(&reply).is_none().then(|| text(&reply))
    })
}

fn seen_by(client: &mut Client) -> Vec<Seen> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let slots = words[8..].iter().filter(|slots| !slots.starts_with('['));
        let range = |slots: &&str| {
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            (first.parse().expect("a slot"), last.parse().expect("a slot"))
        };
        Seen {
            id: words[0].to_owned(),
            is_myself: words[2].contains("myself"),
            primary: words[2].contains("slave").then(|| words[3].to_owned()),
            slots: slots.map(range).collect(),
        }
    };
    answer(client, "CLUSTER NODES").lines().map(parse).collect()
}

fn myself(client: &mut Client) -> Seen {
    seen_by(client).into_iter().find(|node| node.is_myself).expect("a node knows itself")
}

impl Nodes {
    pub fn start() -> Nodes {
        let setup = Setup::default()
            .line(&format!("cluster-node-timeout {NODE_TIMEOUT}"))
            .line("cluster-require-full-coverage no")
            .line("cluster-replica-validity-factor 0")
            .line("cluster-allow-replica-migration no")
            .line("repl-ping-replica-period 1")
            .line("repl-diskless-load swapdb");
        let mut servers = cluster_of(PRIMARIES, &setup);
        for primary in 0..PRIMARIES {
            servers.push(add_replica(&servers, primary, &setup));
        }
        let ports = Arc::new(RwLock::new(servers.iter().map(Server::port).collect()));
        let nodes = Nodes { servers, ports, down: None };
        nodes.wait_healthy();
        nodes
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.servers.len()).filter(|at| Some(*at) != self.down)
    }

    /// The indexes of the running primaries that have slots.
    pub fn primaries(&self) -> Vec<usize> {
        self.running().filter(|at| !myself(&mut self.servers[*at].client()).slots.is_empty()).collect()
    }

    /// The index of the running replica of a primary.
    pub fn replica_of(&self, primary: usize) -> Option<usize> {
        let id = answer(&mut self.servers[primary].client(), "CLUSTER MYID");
        self.running().find(|at| myself(&mut self.servers[*at].client()).primary.as_ref() == Some(&id))
    }

    /// Waits until all nodes agree on the nodes and their slots.
    fn wait_agreed(&self) {
        wait_until("the nodes to agree", || {
            let view = |at: usize| -> BTreeMap<String, _> {
                let seen = seen_by(&mut self.servers[at].client());
                seen.into_iter().map(|node| (node.id, node.slots)).collect()
            };
            let views: Vec<_> = self.running().map(view).collect();
            let covered = views[0].values().flatten().map(|(first, last)| usize::from(last - first) + 1).sum::<usize>();
            let is_one = views.iter().all(|view| view.len() == 2 * PRIMARIES && *view == views[0]);
            (is_one && covered == SLOTS).then_some(())
        });
    }

    /// Waits until all nodes run and agree, and each primary has a replica with all its data.
    pub fn wait_healthy(&self) {
        assert!(self.down.is_none(), "a node is down");
        self.wait_agreed();
        wait_until("three primaries, each with a replica", || {
            let primaries = self.primaries();
            let is_complete = primaries.len() == PRIMARIES
                && primaries.iter().all(|at| {
                    self.replica_of(*at).is_some_and(|replica| {
                        self.servers[replica].client().info("master_link_status") == "up"
                            && self.servers[*at].client().info("connected_slaves") == "1"
                    })
                })
                && (0..self.servers.len())
                    .all(|at| answer(&mut self.servers[at].client(), "CLUSTER INFO").contains("cluster_state:ok"));
            is_complete.then_some(())
        });
        for primary in self.primaries() {
            self.wait_copied(primary);
        }
    }

    /// Waits until the replica of a primary has all writes up to now.
    pub fn wait_copied(&self, primary: usize) {
        let replica = wait_until("a replica", || self.replica_of(primary));
        self.servers[replica].wait_synced(&self.servers[primary]);
    }

    pub fn kill(&mut self, at: usize) {
        self.servers[at].kill();
        self.down = Some(at);
    }

    /// Waits until the replica of the killed primary has taken over, then starts the killed node again.
    pub fn fail_over(&mut self) {
        let killed = self.down.expect("a node that was killed");
        wait_until("the failover", || (self.primaries().len() == PRIMARIES).then_some(()));
        wait_until("the cluster", || {
            let is_ok = |at: usize| answer(&mut self.servers[at].client(), "CLUSTER INFO").contains("cluster_state:ok");
            self.running().all(is_ok).then_some(())
        });
        self.servers[killed].start_again();
        self.ports.write().expect("the ports")[killed] = self.servers[killed].port();
        self.down = None;
        self.wait_healthy();
    }

    /// The slots of a node that have keys.
    pub fn used_slots(&self, at: usize) -> BTreeSet<u16> {
        let keys = self.servers[at].client().list("KEYS *");
        keys.iter().map(|key| crate::cluster_line::slot_of(&text(key))).collect()
    }

    /// The range of consecutive slots of a node that contains `slot`.
    pub fn range_of(&self, at: usize, slot: u16) -> Option<(u16, u16)> {
        let slots = myself(&mut self.servers[at].client()).slots;
        slots.into_iter().find(|(first, last)| (*first..=*last).contains(&slot))
    }

    /// Moves the keys of slots one by one. Before each key, `between` is called with the number of keys moved so far.
    pub fn migrate(
        &mut self,
        slots: &[u16],
        from: usize,
        to: usize,
        mut between: impl FnMut(&mut Nodes, usize),
    ) -> usize {
        let id = |nodes: &Nodes, at: usize| answer(&mut nodes.servers[at].client(), "CLUSTER MYID");
        let (from_id, to_id) = (id(self, from), id(self, to));
        let mut client = self.servers[from].client();
        for slot in slots {
            self.servers[to].client().expect(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"), "+OK");
            client.expect(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"), "+OK");
        }
        let mut moved = 0;
        for slot in slots {
            loop {
                let keys = client.list(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
                if keys.is_empty() {
                    break;
                }
                for key in &keys {
                    between(self, moved);
                    let line = format!("MIGRATE 127.0.0.1 {} {} 0 10000 REPLACE", self.servers[to].port(), text(key));
                    let reply = client.cmd(&line);
                    // NOKEY means that a client has deleted the key meanwhile. An error of the target is temporary,
                    // so the key is sent again.
                    match error_text(&reply) {
                        None => moved += 1,
                        Some(error) if error.starts_with("IOERR") => {}
                        Some(error) => panic!("{line}: {error}"),
                    }
                }
            }
        }
        let mut reported = vec![to, from];
        reported.extend(self.primaries().into_iter().filter(|at| ![to, from].contains(at)));
        for slot in slots {
            for at in &reported {
                self.servers[*at].client().expect(&format!("CLUSTER SETSLOT {slot} NODE {to_id}"), "+OK");
            }
        }
        // The moved keys exist only on this node. A replica must have them before the node may be killed.
        for at in [to, from] {
            self.wait_copied(at);
        }
        moved
    }

    /// Begins to move slots in one piece.
    pub fn begin_migration(&self, slots: (u16, u16), from: usize, to: usize) {
        start_move(&self.servers[from], &self.servers[to], slots);
    }

    /// Waits until no node moves slots in one piece.
    pub fn wait_migrated(&self) {
        for at in self.running() {
            wait_until("the migration to end", || ended_moves(&self.servers[at]));
        }
    }

    /// Sets how long the child of a node that sends slots takes for each key, in microseconds.
    pub fn set_delay(&self, at: usize, microseconds: u64) {
        let line = format!("CONFIG SET rdb-key-save-delay {microseconds}");
        self.servers[at].client().expect(&line, "+OK");
    }

    /// Cancels the import of a node, if there is one.
    pub fn cancel_import(&self, at: usize) -> bool {
        self.servers[at].client().int("CLUSTER MIGRATION CANCEL ALL") > 0
    }

    /// Makes the replica of a primary take over while both nodes run.
    pub fn exchange(&self, primary: usize) {
        let replica = self.replica_of(primary).expect("a replica");
        let mut client = self.servers[replica].client();
        let mut asked: Option<Instant> = None;
        wait_until("the replica to take over", || {
            // The servers give up a takeover after five seconds. An earlier request would restart it.
            if asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(6)) {
                client.cmd("CLUSTER FAILOVER");
                asked = Some(Instant::now());
            }
            (client.info("role") == "master").then_some(())
        });
        self.wait_healthy();
    }
}
