//! Clusters of primaries, and slots that move between them.

use std::collections::BTreeSet;

use crate::client::{error_text, field, show, text, wait_until};
use crate::server::{Server, Setup};

/// Number of hash slots in a cluster.
pub const SLOTS: usize = 16_384;

/// Primaries that share the slots evenly and agree on it. All nodes have `setup`.
#[track_caller]
pub fn cluster_of(primaries: usize, setup: &Setup) -> Vec<Server> {
    let nodes: Vec<Server> = (0..primaries).map(|_| setup.clone().line("cluster-enabled yes").start()).collect();
    for (at, node) in nodes.iter().enumerate() {
        let (first, end) = (SLOTS * at / primaries, SLOTS * (at + 1) / primaries);
        node.client().expect(&format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1), "+OK");
        // Nodes get different epochs at the start. Otherwise they would resolve conflicts of epochs at any later
        // moment.
        node.client().expect(&format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1), "+OK");
    }
    for node in &nodes[1..] {
        nodes[0].client().expect(&format!("CLUSTER MEET 127.0.0.1 {}", node.port()), "+OK");
    }
    let known = format!("cluster_known_nodes:{primaries}");
    for node in &nodes {
        let mut client = node.client();
        wait_until("the cluster to form", || {
            let info = client.text("CLUSTER INFO");
            (info.contains("cluster_state:ok") && info.lines().any(|line| line.trim() == known)).then_some(())
        });
    }
    wait_agreed(&nodes);
    nodes
}

/// A cluster like that of [`cluster_of`], with the default setup.
#[track_caller]
pub fn cluster(primaries: usize) -> Vec<Server> {
    cluster_of(primaries, &Setup::default())
}

/// Starts to move slots in one piece from `from`, which owns them: by `CLUSTER MIGRATION` of Redis 8.4, or by `CLUSTER
/// MIGRATESLOTS` of Valkey 9.
#[track_caller]
pub fn start_move(from: &Server, to: &Server, (first, last): (u16, u16)) {
    if from.version().is_valkey {
        let target = to.client().text("CLUSTER MYID");
        from.client().expect(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {target}"), "+OK");
    } else {
        let reply = to.client().cmd(&format!("CLUSTER MIGRATION IMPORT {first} {last}"));
        assert!(error_text(&reply).is_none(), "{first} to {last}: {}", show(&reply));
    }
}

/// The states of the moves of slots in one piece that this node knows of; `None` while one is under way. Redis repeats
/// a failed import until the node of the slots lets it succeed.
pub fn ended_moves(node: &Server) -> Option<Vec<String>> {
    let is_valkey = node.version().is_valkey;
    let question = if is_valkey { "CLUSTER GETSLOTMIGRATIONS" } else { "CLUSTER MIGRATION STATUS ALL" };
    let moves = node.client().list(question);
    let state_of = |job| {
        let [way, state] = ["operation", "state"].map(|label| text(&field(job, label)).to_lowercase());
        let has_ended = match state.as_str() {
            "completed" | "success" | "canceled" | "cancelled" => true,
            "failed" => is_valkey || way != "import",
            _ => false,
        };
        has_ended.then_some(state)
    };
    moves.iter().map(state_of).collect()
}

/// Starts a node that is a replica of `nodes[primary]`, and waits until all of `nodes` know it.
#[track_caller]
pub fn add_replica(nodes: &[Server], primary: usize, setup: &Setup) -> Server {
    let known = |node: &Server| node.client().text("CLUSTER NODES").lines().count();
    let before = known(&nodes[primary]);
    let replica = setup.clone().line("cluster-enabled yes").start();
    nodes[primary].client().expect(&format!("CLUSTER MEET 127.0.0.1 {}", replica.port()), "+OK");
    wait_until("all nodes to know each other", || {
        nodes.iter().chain([&replica]).all(|node| known(node) == before + 1).then_some(())
    });
    let (mut client, id) = (replica.client(), nodes[primary].client().text("CLUSTER MYID"));
    client.expect(&format!("CLUSTER REPLICATE {id}"), "+OK");
    wait_until("the replica's link", || (client.info("master_link_status") == "up").then_some(()));
    let is_known = |node: &Server| node.client().text("CLUSTER NODES").contains(&format!("slave {id}"));
    wait_until("all nodes to know the replica", || nodes.iter().all(is_known).then_some(()));
    replica
}

/// A slot in migration from a node to the next one.
pub struct Moving {
    slot: i64,
    from: usize,
    to: usize,
}

impl Moving {
    /// Begins to move a slot that has keys to the next node. From now on the nodes redirect with ASK for keys that have
    /// left.
    #[track_caller]
    pub fn begin(nodes: &[Server], slot: i64) -> Moving {
        let holds = |node: &Server| node.client().int(&format!("CLUSTER COUNTKEYSINSLOT {slot}")) > 0;
        let from = nodes.iter().position(holds).expect("a node has keys of the slot");
        let to = (from + 1) % nodes.len();
        let id = |at: usize| nodes[at].client().text("CLUSTER MYID");
        nodes[to].client().expect(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)), "+OK");
        nodes[from].client().expect(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)), "+OK");
        Moving { slot, from, to }
    }

    /// Moves the keys of the slot. Returns how many there were.
    #[track_caller]
    pub fn migrate(&self, nodes: &[Server]) -> usize {
        let mut client = nodes[self.from].client();
        let target = nodes[self.to].port();
        let mut moved = 0;
        loop {
            let keys = client.list(&format!("CLUSTER GETKEYSINSLOT {} 100", self.slot));
            if keys.is_empty() {
                return moved;
            }
            for key in &keys {
                let line = format!("MIGRATE 127.0.0.1 {target} {} 0 60000", text(key));
                let reply = client.cmd(&line);
                assert!(error_text(&reply).is_none(), "{line} gave {}", show(&reply));
                // NOKEY means that the key expired or was deleted meanwhile.
                moved += usize::from(text(&reply) == "OK");
            }
        }
    }

    /// Makes the target the owner of the slot. From now on the other nodes redirect with MOVED. All nodes must know the
    /// target's epoch before another slot moves; otherwise an old message about the former owner could undo the change.
    #[track_caller]
    pub fn end(&self, nodes: &[Server]) {
        let id = nodes[self.to].client().text("CLUSTER MYID");
        let others = (0..nodes.len()).filter(|at| ![self.to, self.from].contains(at));
        for at in [self.to, self.from].into_iter().chain(others) {
            nodes[at].client().expect(&format!("CLUSTER SETSLOT {} NODE {id}", self.slot), "+OK");
        }
        wait_agreed(nodes);
    }
}

/// Waits until all nodes agree on the owners of the slots and their epochs.
#[track_caller]
fn wait_agreed(nodes: &[Server]) {
    wait_until("the nodes to agree", || {
        let views: Vec<_> = nodes.iter().map(view).collect();
        views.iter().all(|view| *view == views[0]).then_some(())
    });
}

/// The owners of slots and their epochs, as far as this node knows.
fn view(node: &Server) -> BTreeSet<String> {
    let nodes = node.client().text("CLUSTER NODES");
    let known = nodes.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let slots = words[8..].iter().filter(|slots| !slots.starts_with('['));
        format!("{} {} {:?}", words[0], words[6], slots.collect::<Vec<_>>())
    });
    known.collect()
}
