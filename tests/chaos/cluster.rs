//! Moves slots between three primaries while clients write, and kills primaries meanwhile.
//!
//! The guarantees of the servers decide which primary may be killed. While a slot moves by `MIGRATE`, only its source
//! and its target know about the move, and their replicas do not. If one of these two dies, the keys of the slot have
//! to be collected by hand. So the test kills the third primary. If slots move in one piece (Redis 8.4, Valkey 9), the
//! source may die too. The target may not die between taking the slots over and copying them to its replica, because no
//! client waited for that.
//!
//! On Redis, the source can be slowed down, so moves last long enough for more faults: the target dies while it
//! receives the keys, the move is cancelled, the replica of the source or of the target takes over.

use std::sync::Arc;
use std::time::Duration;

use crate::check::Tally;
use crate::cluster_line::ClusterLine;
use crate::key::Key;
use crate::line::Line;
use crate::nodes::Nodes;
use crate::run::{Run, setting};
use crate::shapes::VOLATILE;
use crate::writer::{Load, Writer, finish};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{figures, show, wait_until};

const WRITERS: u64 = 4;
const LOAD: Load = Load { commands: 8, items: 100, share: 4, expires: true };
/// One of this number of moves kills a primary.
const KILLED_ONE_IN: u64 = 8;
/// A source that should not die is slowed down: it waits this number of microseconds for each key, so that another
/// fault can happen before the target takes over.
const SLOW: u64 = 200_000;
/// Number of slots that move at the same time.
const AT_ONCE: usize = 6;

struct Moves {
    random: Random,
    slots: u64,
    keys: u64,
    failed: u64,
    kills: u64,
    cancelled: u64,
    exchanged: u64,
}

/// What happens while slots move in one piece.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Kill,
    Cancel,
    /// A replica takes over while both nodes run.
    Exchange,
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
    fn in_one_piece(&mut self, nodes: &mut Nodes, fault: Fault) {
        let Some((slots, [from, to, third])) = self.choose(nodes, 1) else { return };
        let slot = slots[0];
        let owned = nodes.range_of(from, slot).expect("the slot's range");
        let can_be_slow = !nodes.servers[from].version().is_valkey;
        let is_slow = can_be_slow && fault != Fault::None;
        // A slow move needs many keys, so that it is still running when the fault happens.
        let (before, after) = if is_slow { (2500, 2500) } else { (self.random.below(300), 200) };
        let slots = (slot.saturating_sub(before).max(owned.0), (slot + after).min(owned.1));
        if is_slow {
            nodes.set_delay(from, SLOW);
        }
        nodes.begin_migration(slots, from, to);
        std::thread::sleep(Duration::from_millis(self.random.below(if is_slow { 300 } else { 60 })));
        match fault {
            Fault::None => {}
            Fault::Kill => {
                let mortal: &[usize] = if is_slow { &[from, to, third] } else { &[from, third] };
                nodes.kill(*self.random.of(mortal));
                self.kills += 1;
                nodes.fail_over();
            }
            Fault::Cancel => self.cancelled += u64::from(nodes.cancel_import(to)),
            Fault::Exchange => {
                nodes.exchange(*self.random.of(&[from, to]));
                self.exchanged += 1;
            }
        }
        if is_slow {
            nodes.set_delay(from, 0);
        }
        nodes.wait_migrated();
        nodes.wait_healthy();
        let owner = nodes.primaries().into_iter().find(|at| nodes.range_of(*at, slot).is_some()).expect("an owner");
        // Source and target may have exchanged roles with their replicas.
        let moved = owner != from && nodes.replica_of(owner) != Some(from);
        self.slots += if moved { u64::from(slots.1 - slots.0) + 1 } else { 0 };
        self.keys += if moved { nodes.used_slots(owner).range(slots.0..=slots.1).count() as u64 } else { 0 };
        self.failed += u64::from(!moved);
        assert!(moved || fault != Fault::None, "the slots did not move");
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
    run.say(&format!("three primaries and three replicas of {version:?} are up"));
    let random = Random::new(run.seed);
    let mut moves = Moves { random, slots: 0, keys: 0, failed: 0, kills: 0, cancelled: 0, exchanged: 0 };
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
            if version.moves_slots() {
                let fault = match step % KILLED_ONE_IN {
                    _ if kills => Fault::Kill,
                    2 if !version.is_valkey => Fault::Cancel,
                    6 if !version.is_valkey => Fault::Exchange,
                    _ => Fault::None,
                };
                moves.in_one_piece(&mut nodes, fault);
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
    let items = finish(&mut line, &run, &mut writers, &tally);
    // These keys may expire on a primary before its replica deletes them.
    let is_volatile = |key: &&Key| key.shape.name == VOLATILE.name;
    for key in writers.iter().flat_map(|writer| &writer.keys).filter(is_volatile) {
        line.write(&[(key.name.clone(), vec![b"DEL".to_vec(), key.name.clone().into_bytes()])]);
    }
    nodes.wait_healthy();
    let mut kept = 0;
    for primary in nodes.primaries() {
        let replica = nodes.replica_of(primary).expect("a replica");
        let digest = |at: usize| nodes.servers[at].client().text("DEBUG DIGEST");
        assert_eq!(digest(primary), digest(replica), "the replica has what its primary has");
        let keys = nodes.servers[primary].client().int("DBSIZE");
        for at in [primary, replica] {
            let mut client = nodes.servers[at].client();
            wait_until("what has left to be freed", || {
                let figures = figures(&mut client);
                (figures["filters"] + figures["counters"] == keys).then_some(())
            });
        }
        kept += keys;
    }
    let mut names: Vec<(&str, bool)> = writers
        .iter()
        .flat_map(|writer| &writer.keys)
        .filter(|key| key.exists && !is_volatile(key))
        .map(|key| (key.name.as_str(), key.shadow.is_some()))
        .collect();
    names.sort();
    names.dedup();
    let expected: i64 = names.iter().map(|(_, has_shadow)| 1 + i64::from(*has_shadow)).sum();
    assert_eq!(kept, expected, "each key is in one place");
    run.say(&format!(
        "{} slots with {} keys moved, {} moves cut off, {} primaries killed, {} moves cancelled, {} replicas took \
         over; {}; {items} looked for at the end",
        moves.slots,
        moves.keys,
        moves.failed,
        moves.kills,
        moves.cancelled,
        moves.exchanged,
        run.load()
    ));
    assert!(moves.slots > 0 && moves.kills > 0, "too short: nothing moved, or nobody was killed");
    nodes.servers.iter_mut().for_each(rollcall_testkit::Server::assert_up);
}
