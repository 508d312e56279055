//! Tests primaries and replicas with every value of the option `commands`, with RedisBloom if BF.* are its commands,
//! and the command names under which changes are replicated. Most tests need the RedisBloom module (`ROLLCALL_PEER`).

use std::path::Path;

use crate::beside::{MODES, Mode, assert_same_values, fill_classic, fill_counters, fill_lines, values};
use crate::effects::{appended, appending, sent};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{Client, Server, Setup, optional_file, wait_until, words};

/// Panics unless the replica has the same values as the primary.
#[track_caller]
fn assert_equal(primary: &Server, replica: &Server, what: &str) {
    replica.wait_synced(primary);
    assert_same_values(&values(&mut primary.client()), &values(&mut replica.client()), what);
}

/// Defaults of a replica that must not influence what it receives from a primary with this module. RedisBloom does not
/// replicate defaults, so with a RedisBloom primary both sides need the same defaults.
const OTHER_DEFAULTS: &str =
    "bf-error-rate 0.2 bf-initial-size 7 bf-expansion-factor 5 hash-seed 12345 max-key-bytes 1048576";

/// Starts a replica. If the server supports it, the replica ends when a replicated command fails.
fn replica_of(primary: &Server, mode: Mode, peer: &Path, defaults: &str) -> Server {
    let setup = mode.setup(peer).line("appendonly yes");
    let server = setup.more_args(defaults).start();
    if server.config("propagation-error-behavior").is_some() {
        server.client().expect("CONFIG SET propagation-error-behavior panic-on-replicas", "+OK");
    }
    server.replicate(primary);
    server
}

/// Fills a primary with every kind of value that its mode can create.
fn fill(client: &mut Client, mode: Mode) {
    fill_counters(client);
    fill_classic(client, mode == Mode::All);
    if let Some(prefix) = mode.of_lines() {
        fill_lines(client, prefix);
    }
}

/// Runs random commands that a primary of this mode accepts.
fn random_session(client: &mut Client, mode: Mode, seed: u64, mut after: impl FnMut(u64)) {
    let mut random = Random::new(seed);
    let families: &[&str] = match mode {
        Mode::All => &["BF", "RF", "CLASSIC", "LC"],
        Mode::Beside => &["RF", "CLASSIC", "LC"],
        Mode::Lc => &["CLASSIC", "LC"],
    };
    for round in 0..400 {
        let family = *random.of(families);
        let kind = if family == "BF" || family == "RF" { "lines" } else { family };
        let (target, other) = (format!("{kind}{}", random.below(5)), format!("{kind}{}", random.below(5)));
        let items: Vec<_> = (0..=random.below(20)).map(|_| format!("i{}", random.below(300))).collect();
        let items = items.join(" ");
        let layout = if mode == Mode::All { "LAYOUT classic" } else { "" };
        let line = match (family, random.below(16)) {
            (_, 0) => format!("DEL {target}"),
            (_, 1) => format!("RENAME {target} {other}"),
            // RedisBloom's filters do not support COPY.
            ("CLASSIC", 2) => format!("BF.ADD {target} one"),
            (_, 2) => format!("COPY {target} {other} REPLACE"),
            ("CLASSIC", 3) => format!("BF.RESERVE {target} 0.05 15 EXPANSION 3 {layout}"),
            ("CLASSIC", 4..8) => format!("BF.INSERT {target} CAPACITY 30 ERROR 0.1 {layout} ITEMS {items}"),
            // In this mode, commands with default options cannot create a filter in the layout `lines`.
            ("CLASSIC", _) => format!("BF.INSERT {target} NOCREATE ITEMS {items}"),
            ("LC", 3) => format!("LC.MERGE {target} {other}"),
            ("LC", _) => format!("LC.ADD {target} {items}"),
            (_, 3) => format!("{family}.MERGE {target} {other}"),
            (_, 4) => format!("{family}.CLEAR {target}"),
            (_, 5) => format!("{family}.RESERVE {target} 0.05 15 NONSCALING"),
            (_, 6) => format!("{family}.INSERT {target} CAPACITY 10 EXPANSION 3 EX 1000 ITEMS {items}"),
            (_, 7) => format!("{family}.INSERT {target} WINDOW 1099511627776 ITEMS {items}"),
            (_, 8) => format!("{family}.INSERT {target} WINDOW 40 MANUAL REFRESH CAPACITY 9 ITEMS {items}"),
            (_, 9) => format!("{family}.ADMIT {target} LIMIT 40 CAPACITY 20 ITEMS {items}"),
            (_, 10) => format!("{family}.INSERT {target} LAYOUT lines SEED 5 ITEMS {items}"),
            (_, 11) => format!("{family}.ADD {target} one{}", random.below(50)),
            _ => format!("{family}.MADD {target} {items}"),
        };
        client.send(&words(&line));
        client.receive();
        if round % 100 == 99 {
            after(round);
        }
    }
}

/// Tests replicas of every mode with a primary of `primary_mode`: full synchronisation, the replication stream, and a
/// restart from the replica's AOF.
fn follow(primary_mode: Mode) {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    for mode in MODES {
        let what = format!("{mode:?} after {primary_mode:?}");
        let (mut primary, mut client) = primary_mode.setup(&peer).start().with_client();
        fill(&mut client, primary_mode);
        let defaults = if primary_mode == Mode::All { OTHER_DEFAULTS } else { "" };
        let mut replica = replica_of(&primary, mode, &peer, defaults);
        assert_equal(&primary, &replica, &what);
        random_session(&mut client, primary_mode, 2024 + mode as u64, |round| {
            assert_equal(&primary, &replica, &format!("{what}, round {round}"));
        });
        // On an empty data set, all values come by the replication stream.
        client.expect("FLUSHALL", "+OK");
        fill(&mut client, primary_mode);
        assert_equal(&primary, &replica, &format!("{what}, by the stream"));
        replica.assert_up();
        primary.assert_up();
        let mut other = replica.client();
        assert_eq!(other.info("total_error_replies"), "0", "{what}: {}", other.text("INFO errorstats"));
        // The replica's own AOF has the same values.
        let before = values(&mut other);
        replica.wait_for_aof();
        replica.restart();
        assert_same_values(&before, &values(&mut replica.client()), &format!("{what}, restarted"));
    }
}

#[test]
fn every_mode_follows_a_primary_with_all_commands() {
    follow(Mode::All);
}

#[test]
fn every_mode_follows_a_primary_beside_another_module() {
    follow(Mode::Beside);
}

#[test]
fn every_mode_follows_a_primary_of_counters() {
    follow(Mode::Lc);
}

#[test]
fn filters_that_a_primary_only_keeps_reach_those_that_serve_them() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let source = Server::start();
    fill_lines(&mut source.client(), "BF");
    source.save();
    let file = std::fs::read(source.dir().join("dump.rdb")).expect("the RDB file");
    let primary = Mode::Lc.setup(&peer).file("dump.rdb", &file).start();
    for mode in MODES {
        let replica = replica_of(&primary, mode, &peer, OTHER_DEFAULTS);
        assert_equal(&primary, &replica, &format!("{mode:?}"));
        if mode == Mode::Lc {
            let log = replica.module_log();
            assert!(log.iter().any(|line| line.contains("kept and saved")), "{log:?}");
        }
    }
}

#[test]
fn a_promoted_replica_of_another_mode_goes_on() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let one = Mode::All.setup(&peer).start();
    fill_lines(&mut one.client(), "BF");
    let other = Mode::Beside.setup(&peer).start();
    other.replicate(&one);
    other.client().expect("REPLICAOF NO ONE", "+OK");
    one.replicate(&other);
    let mut client = other.client();
    client.expect("RF.MADD default x y z", "[1, 1, 1]");
    client.expect("RF.ADD new x", "1");
    client.expect("BF.ADD theirs x", "1");
    assert_equal(&other, &one, "promotion");
    assert!(one.log().contains("Successful partial resync"), "{}", one.log());
    one.client().expect("BF.MEXISTS default x y z nothing", "[1, 1, 1, 0]");
    one.client().expect("TYPE theirs", "+MBbloom--");
}

/// Commands on filters of both layouts, each with the commands that replicate it.
const SENT: [(&str, &[&str]); 25] = [
    ("BF.RESERVE l 0.01 100 SEED 7", &["RF.RESERVE l 0.01 100 EXPANSION 2 SEED 7 LAYOUT lines"]),
    ("RF.RESERVE c 0.01 100 LAYOUT classic", &["BF.RESERVE c 0.01 100 EXPANSION 2"]),
    ("BF.ADD l a", &["RF.ADD l a"]),
    ("bf.add l b", &["RF.ADD l b"]),
    ("RF.ADD l c", &["RF.ADD l c"]),
    ("rf.add l d", &["RF.ADD l d"]),
    ("BF.ADD l d", &[]),
    ("BF.ADD c a", &["BF.ADD c a"]),
    ("RF.ADD c b", &["BF.ADD c b"]),
    ("BF.MADD l e f", &["RF.MADD l e f"]),
    ("RF.MADD c e f", &["BF.MADD c e f"]),
    ("BF.INSERT l NOCREATE ITEMS g", &["RF.INSERT l NOCREATE ITEMS g"]),
    ("BF.INSERT l LAYOUT classic SEED 3 ITEMS h", &["RF.MADD l h"]),
    ("RF.INSERT c NOCREATE ITEMS g", &["BF.INSERT c NOCREATE ITEMS g"]),
    ("BF.INSERT c LAYOUT lines ITEMS h", &["BF.MADD c h"]),
    ("BF.ADMIT l LIMIT 99 ITEMS a i", &["RF.MADD l i"]),
    ("RF.ADMIT c LIMIT 99 ITEMS a i", &["BF.MADD c i"]),
    (
        "BF.RESERVE w 0.01 100 SEED 7 WINDOW 40 MANUAL",
        &["RF.RESERVE w 0.01 100 EXPANSION 2 SEED 7 LAYOUT lines WINDOW 40 MANUAL SLICES 4 SLICE 0"],
    ),
    ("BF.ADVANCE w 3", &["RF.ADVANCE w 3"]),
    ("BF.MERGE l2 l", &["RF.MERGE l2 l"]),
    ("RF.MERGE c2 c", &["BF.MERGE c2 c"]),
    ("BF.CLEAR l", &["RF.CLEAR l"]),
    ("RF.CLEAR c", &["BF.CLEAR c"]),
    ("lc.add n b c", &["LC.ADD n b c"]),
    ("LC.CLEAR n", &["LC.CLEAR n"]),
];

#[test]
fn effects_are_named_after_the_layout_whatever_the_client_said() {
    let (server, mut client) = appending(Setup::default()).with_client();
    client.expect("LC.ADD n a", "1");
    for (line, expected) in SENT {
        assert_eq!(sent(&mut client, &server, line), expected, "{line}");
    }
    // The names are the same in transactions and scripts.
    for line in ["MULTI", "BF.ADD l x", "RF.ADD c x", "EXEC"] {
        client.cmd(line);
    }
    let before = appended(&server).len();
    client.call(&["EVAL", "redis.call('BF.ADD', 'l', 'y') return redis.call('rf.add', 'c', 'y')", "2", "l", "c"]);
    let all = String::from_utf8_lossy(&appended(&server)).into_owned();
    for words in ["RF.ADD\r\n$1\r\nl\r\n$1\r\nx", "BF.ADD\r\n$1\r\nc\r\n$1\r\nx"] {
        assert!(all[..before].contains(words), "{words:?}");
        let words = words.replace("\nx", "\ny");
        assert!(all[before..].contains(&words), "{words:?}");
    }
}

/// From the first change on, the module knows who receives its commands. No change is lost, or replicated under a name
/// that a server with RedisBloom would treat as RedisBloom's.
#[test]
fn every_way_of_listening_is_distinguished_from_its_first_change_on() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    // The AOF is turned on while clients write.
    let (mut server, mut client) = Server::start().with_client();
    client.expect("BF.RESERVE f 0.01 100000", "+OK");
    // Every addition gets an item of its own.
    let mut item = 0;
    let mut add = |client: &mut Client| {
        client.expect(&format!("BF.ADD f item:{item}"), "1");
        item += 1;
    };
    add(&mut client);
    client.expect("CONFIG SET appendonly yes", "+OK");
    for _ in 0..200 {
        add(&mut client);
    }
    server.wait_for_aof();
    add(&mut client);
    let before = values(&mut client);
    server.restart_as(|setup| Mode::Lc.of(setup, &peer).line("appendonly yes"));
    assert_same_values(&before, &values(&mut server.client()), "AOF by CONFIG SET");

    // Replicas connect while clients write, with and without a file, and one reconnects.
    for diskless in ["no", "yes"] {
        let (primary, mut client) =
            Setup::default().line(&format!("repl-diskless-sync {diskless}")).start().with_client();
        client.expect("BF.RESERVE f 0.01 100000", "+OK");
        add(&mut client);
        let replica = Mode::Lc.setup(&peer).start();
        let follow = format!("REPLICAOF 127.0.0.1 {}", primary.port());
        for round in 0..2 {
            replica.client().expect(&follow, "+OK");
            let mut other = replica.client();
            wait_until("the replica's link", || {
                add(&mut client);
                (other.info("master_link_status") == "up").then_some(())
            });
            (0..100).for_each(|_| add(&mut client));
            assert_equal(&primary, &replica, &format!("diskless {diskless}, round {round}"));
            // The replica was disconnected, and gets the missing changes from the backlog.
            other.expect("CLIENT KILL TYPE master", "1");
            (0..100).for_each(|_| add(&mut client));
            wait_until("the replica's link", || (other.info("master_link_status") == "up").then_some(()));
            assert_equal(&primary, &replica, &format!("diskless {diskless}, back in round {round}"));
            replica.client().expect("REPLICAOF NO ONE", "+OK");
            (0..10).for_each(|_| add(&mut client));
        }
    }
}
