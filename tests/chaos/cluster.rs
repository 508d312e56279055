//! Moves slots between three primaries while clients write, and kills primaries meanwhile.
//!
//! The guarantees of the servers decide which primary may be killed. While a slot moves by `MIGRATE`, only its source
//! and its target know about the move, and their replicas do not. If one of these two dies, the keys of the slot have
//! to be collected by hand. So the test kills the third primary. If slots move in one piece (Valkey 9), the source may
//! die too. The target may not die before its replica has the keys, because no client waited for that.

use std::sync::Arc;
use std::time::Duration;

use crate::check::Tally;
use crate::cluster_line::ClusterLine;
use crate::nodes::Nodes;
use crate::run::{Run, setting};
use crate::writer::{Load, Writer, check_all};
use rollcall_fuzz::random::Random;
use rollcall_testkit::client::show;

const WRITERS: u64 = 4;
const LOAD: Load = Load { commands: 8, items: 100, share: 4, expires: false };
/// One of this number of moves kills a primary.
const KILLED_ONE_IN: u64 = 8;
/// Number of slots that move at the same time.
const AT_ONCE: usize = 6;

struct Moves {
    random: Random,
    slots: u64,
    keys: u64,
    failed: u64,
    kills: u64,
}

impl Moves {
    /// Picks slots with keys, and the three primaries: source, target, and the third one.
    fn choose(&mut self, nodes: &Nodes, count: usize) -> Option<(Vec<u16>, [usize; 3])> {
        let mut primaries = nodes.primaries();
        assert_eq!(primaries.len(), 3, "three primaries");
        let from = primaries.remove(self.random.below(3));
        let to = primaries.remove(self.random.below(2));
        let mut used: Vec<u16> = nodes.used_slots(from).into_iter().collect();
        let mut slots = Vec::new();
        while slots.len() < count && !used.is_empty() {
            slots.push(used.swap_remove(self.random.below(used.len())));
        }
        (!slots.is_empty()).then(|| (slots, [from, to, primaries[0]]))
    }

    /// Moves slots key by key.
    fn by_keys(&mut self, nodes: &mut Nodes, kills: bool) {
        let Some((slots, [from, to, third])) = self.choose(nodes, AT_ONCE) else { return };
        let mut dies_after = kills.then(|| self.random.below(AT_ONCE));
        let moved = nodes.migrate(&slots, from, to, |nodes, moved| {
            if dies_after.is_some_and(|keys| moved >= keys) {
                nodes.kill(third);
                dies_after = None;
            }
        });
        self.slots += slots.len() as u64;
        self.keys += moved as u64;
        if kills {
            if dies_after.is_some() {
                nodes.kill(third);
            }
            self.kills += 1;
            nodes.fail_over();
        } else {
            nodes.wait_healthy();
        }
    }

    /// Moves slots in one piece.
    fn in_one_piece(&mut self, nodes: &mut Nodes, kills: bool) {
        let Some((slots, [from, to, third])) = self.choose(nodes, 1) else { return };
        let slot = slots[0];
        let owned = nodes.range_of(from, slot).expect("the slot's range");
        let slots = (slot.saturating_sub(self.random.below(300)).max(owned.0), (slot + 200).min(owned.1));
        nodes.begin_migration(slots, from, to);
        if kills {
            std::thread::sleep(Duration::from_millis(self.random.below(60)));
            nodes.kill(*self.random.of(&[from, third]));
            self.kills += 1;
            nodes.fail_over();
        }
        let states = nodes.wait_migrated();
        nodes.wait_healthy();
        let moved = nodes.range_of(to, slot).is_some();
        self.slots += if moved { u64::from(slots.1 - slots.0) + 1 } else { 0 };
        self.keys += nodes.used_slots(to).range(slots.0..=slots.1).count() as u64;
        self.failed += u64::from(!moved);
        assert!(moved || kills, "the slots did not move: {states:?}");
    }
}

/// Checks that a command with keys of several slots is rejected.
fn assert_slots_are_kept_apart(nodes: &Nodes) {
    let primary = nodes.primaries()[0];
    let mut client = nodes.servers[primary].client();
    for line in
        ["LC.COUNT {one}a {two}b", "LC.MERGE {one}a {two}b", "BF.MERGE {one}a {two}b", "LC.DIFFCARD 2 {one}a {two}b"]
    {
        let reply = show(&client.cmd(line));
        assert!(reply.starts_with("-CROSSSLOT "), "{line} gave {reply}");
    }
}

#[test]
#[ignore = "make chaos"]
fn a_cluster_on_the_move_loses_nothing() {
    let seconds = setting("ROLLCALL_CHAOS_CLUSTER_SECONDS", 15);
    let (run, tally) = (Run::new("cluster"), Tally::default());
    let mut nodes = Nodes::start();
    let version = nodes.servers[0].version();
    let moves_in_one_piece = version.is_valkey && version.major >= 9;
    run.say(&format!("three primaries and three replicas of {version:?} are up"));
    let random = Random::new(run.seed);
    let mut moves = Moves { random, slots: 0, keys: 0, failed: 0, kills: 0 };
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(&run, number, LOAD)).collect();
    let ports = Arc::clone(&nodes.ports);
    std::thread::scope(|scope| {
        let guard = run.end_on_drop();
        for writer in &mut writers {
            let (run, tally, ports) = (&run, &tally, &ports);
            scope.spawn(move || writer.work(&mut ClusterLine::new(ports), run, tally));
        }
        let mut step = 0;
        while run.elapsed() < Duration::from_secs(seconds) && !run.is_over() {
            let kills = step % KILLED_ONE_IN == KILLED_ONE_IN / 2;
            if moves_in_one_piece {
                moves.in_one_piece(&mut nodes, kills);
            } else {
                moves.by_keys(&mut nodes, kills);
            }
            assert_slots_are_kept_apart(&nodes);
            if kills {
                run.say(&format!("{} slots with {} keys moved, {} kills", moves.slots, moves.keys, moves.kills));
            }
            step += 1;
        }
        drop(guard);
    });
    nodes.wait_healthy();
    let mut line = ClusterLine::new(&ports);
    for writer in &mut writers {
        writer.settle(&mut line, &run);
    }
    let items = check_all(&mut line, &run, &writers, Some(&tally));
    tally.judge(&run);
    nodes.wait_healthy();
    let mut kept = 0;
    for primary in nodes.primaries() {
        let replica = nodes.replica_of(primary).expect("a replica");
        let digest = |at: usize| nodes.servers[at].client().text("DEBUG DIGEST");
        assert_eq!(digest(primary), digest(replica), "the replica has what its primary has");
        kept += nodes.servers[primary].client().int("DBSIZE");
    }
    let mut names: Vec<(&str, bool)> = writers
        .iter()
        .flat_map(|writer| &writer.keys)
        .filter(|key| key.exists)
        .map(|key| (key.name.as_str(), key.shadow.is_some()))
        .collect();
    names.sort();
    names.dedup();
    let expected: i64 = names.iter().map(|(_, has_shadow)| 1 + i64::from(*has_shadow)).sum();
    assert_eq!(kept, expected, "each key is in one place");
    run.say(&format!(
        "{} slots with {} keys moved, {} moves cut off, {} primaries killed; {}; {items} looked for at the end",
        moves.slots,
        moves.keys,
        moves.failed,
        moves.kills,
        run.load()
    ));
    assert!(moves.slots > 0 && moves.kills > 0, "too short: nothing moved, or nobody was killed");
    nodes.servers.iter_mut().for_each(rollcall_testkit::server::Server::assert_up);
}
