//! Tests moving slots in one piece (Redis 8.4, Valkey 9) to a node that would reject the keys of its clients. The
//! source deletes its keys whatever the target does, so the target has to take them all.
//!
//! Without an exemption for imports, 8.10.2 reported the move as completed, and every key that the target's limits
//! reject was gone.

use redis::Value;

use rollcall_testkit::client::{Client, add_many, error_text, show, wait_until};
use rollcall_testkit::cluster::cluster;
use rollcall_testkit::server::Server;

/// Keys of every kind in one slot of the second node. `?` stands for the key.
const KEYS: [(&str, &[&str]); 15] = [
    ("plain", &["BF.INSERT ? CAPACITY 1000 ITEMS a b c"]),
    ("large", &["BF.RESERVE ? 0.01 2000000"]),
    ("grown", &["BF.INSERT ? CAPACITY 2 ITEMS a b c d e f g h i j k l"]),
    ("classic", &["BF.INSERT ? CAPACITY 20 LAYOUT classic ITEMS a b c"]),
    ("expiring", &["BF.INSERT ? EXAT 4102444800 ITEMS a b c"]),
    ("windowed", &["BF.INSERT ? WINDOW 1099511627776 REFRESH ITEMS a b c"]),
    ("manual", &["BF.INSERT ? CAPACITY 10 WINDOW 40 MANUAL SLICES 4 ITEMS a b c", "BF.ADVANCE ? 3", "BF.MADD ? c d"]),
    ("volatile", &["BF.INSERT ? WINDOW 1099511627776 VOLATILE ITEMS a b c"]),
    ("exact", &["LC.ADD ? a b c"]),
    ("many", &["LC.INSERT ? EXACT 65536 BYTES 1048576 ITEMS a b c"]),
    ("estimate", &["LC.INSERT ? EXACT 0 ITEMS a b c"]),
    ("lasting", &["LC.INSERT ? EXAT 4102444800 ITEMS a b c"]),
    ("visitors", &["LC.INSERT ? WINDOW 40 MANUAL SLICES 4 ITEMS a b c", "LC.ADVANCE ? 3", "LC.ADD ? c d"]),
    ("estimates", &["LC.INSERT ? EXACT 0 WINDOW 1099511627776 ITEMS a b c"]),
    ("limited", &["LC.INSERT ? EXACT 65536 WINDOW 1099511627776 VOLATILE ITEMS a b c"]),
];

/// Writes to these keys, of which `#` is the number. Each changes its key: known items are refreshed, others are new.
const WRITES: [&str; 12] = [
    "BF.MADD {x}plain # #b",
    "BF.ADD {x}large #",
    "BF.MADD {x}grown # #b #c",
    "BF.ADD {x}classic #",
    "BF.ADD {x}windowed #",
    "BF.ADVANCE {x}manual 1#",
    "BF.MADD {x}manual # #b #c",
    "LC.ADD {x}exact #",
    "LC.ADD {x}estimate # #b",
    "LC.ADVANCE {x}visitors 1#",
    "LC.ADD {x}visitors # #b",
    "LC.ADMIT {x}limited LIMIT 65536 EXACT 65536 WINDOW 1099511627776 VOLATILE ITEMS #",
];

fn fill(client: &mut Client) {
    for (key, commands) in KEYS {
        for command in commands {
            let reply = client.cmd(&command.replace('?', &format!("{{x}}{key}")));
            assert!(error_text(&reply).is_none(), "{command}: {}", show(&reply));
        }
    }
    add_many(client, "LC.ADD {x}many", "member:", 0..20_000);
    client.expect("SET {x}string text", "+OK");
}

/// Each key with its digest and the time at which it expires.
fn state(client: &mut Client) -> Vec<(String, String, i64)> {
    let keys = KEYS.iter().map(|(key, _)| format!("{{x}}{key}")).chain(["{x}string".to_owned()]);
    keys.map(|key| (key.clone(), client.digest(&key), client.int(&format!("PEXPIRETIME {key}")))).collect()
}

/// Whether the server moves slots in one piece; says so if not.
fn moves_slots(server: &Server) -> bool {
    let version = server.version();
    let moves = if version.is_valkey { version.major >= 9 } else { (version.major, version.minor) >= (8, 4) };
    if !moves {
        println!("skipped: {version:?} does not move slots atomically");
    }
    moves
}

/// Starts to move the slot of the keys, which `from` owns.
fn start_move(from: &Server, to: &Server) {
    let slot = from.client().int("CLUSTER KEYSLOT {x}");
    if from.version().is_valkey {
        let target = to.client().text("CLUSTER MYID");
        from.client().expect(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}"), "+OK");
    } else {
        let reply = to.client().cmd(&format!("CLUSTER MIGRATION IMPORT {slot} {slot}"));
        assert!(error_text(&reply).is_none(), "{}", show(&reply));
    }
}

/// Sets a smaller limit of keys at the target than some keys have, and fills its memory. A full Valkey ends the import
/// itself, and the source keeps its keys.
fn limit(to: &Server) {
    if !to.version().is_valkey {
        to.client().expect("CONFIG SET maxmemory-policy noeviction", "+OK");
        to.client().expect("CONFIG SET maxmemory 1mb", "+OK");
        to.client().expect("SET {b}another text", "-OOM *");
    }
    to.set_parameter("max-key-bytes", "1mb");
}

/// Panics unless a client may restore nothing above `max-key-bytes` on `to`. `payload` is above it.
fn assert_limited(to: &Server, payload: &[u8]) {
    to.client().expect("CONFIG SET maxmemory 0", "+OK");
    let reply = to.client().call(&[b"RESTORE", b"{b}copy".as_slice(), b"0", payload]);
    assert!(error_text(&reply).is_some_and(|error| error.contains("Bad data format")), "{}", show(&reply));
}

fn dump(server: &Server, key: &str) -> Vec<u8> {
    let Value::BulkString(payload) = server.client().cmd(&format!("DUMP {key}")) else { panic!("no payload") };
    payload
}

#[test]
fn a_full_node_with_smaller_limits_imports_every_key() {
    let nodes = cluster(2);
    let (to, from) = (&nodes[0], &nodes[1]);
    if !moves_slots(from) {
        return;
    }
    fill(&mut from.client());
    let (before, payload) = (state(&mut from.client()), dump(from, "{x}large"));
    limit(to);
    start_move(from, to);
    wait_until("the slot to change hands", || (from.client().int("DBSIZE") == 0).then_some(()));
    assert_eq!(state(&mut to.client()), before);
    // The exemption ends with the import.
    assert_limited(to, &payload);
}

/// What the source acknowledges while the slot moves follows the snapshot as commands. A full target runs them, and not
/// by its own limits and clock.
#[test]
fn writes_during_a_move_arrive_at_a_full_node() {
    let nodes = cluster(2);
    let (to, from) = (&nodes[0], &nodes[1]);
    if !moves_slots(from) {
        return;
    }
    let other = Server::start();
    fill(&mut from.client());
    fill(&mut other.client());
    limit(to);
    let mut client = from.client();
    // The child that sends the snapshot takes a tenth of a second for each key.
    client.expect("CONFIG SET rdb-key-save-delay 100000", "+OK");
    start_move(from, to);
    if !from.version().is_valkey {
        wait_until("the snapshot to begin", || (client.info_number("rdb_bgsave_in_progress") == 1).then_some(()));
    }
    let mut rounds = 0;
    let acknowledged = (0..100_000).find_map(|round| {
        let commands = WRITES.map(|write| write.replace('#', &format!("{}", 1000 + round)));
        for (at, command) in commands.iter().enumerate() {
            let reply = client.cmd(command);
            if let Some(error) = error_text(&reply) {
                assert!(error.starts_with("MOVED"), "{command}: {error}");
                return Some(at);
            }
            other.client().cmd(command);
        }
        rounds = round + 1;
        None
    });
    assert!(acknowledged.is_some() && rounds > 0, "{acknowledged:?} after {rounds} rounds");
    wait_until("the slot to change hands", || (client.int("DBSIZE") == 0).then_some(()));
    // Expiries of volatile keys and slices of the system's clock are those of the source.
    let digests = |server: &Server| state(&mut server.client()).into_iter().map(|(key, digest, _)| (key, digest));
    assert_eq!(digests(to).collect::<Vec<_>>(), digests(&other).collect::<Vec<_>>());
    println!("{rounds} rounds of writes");
}

#[test]
fn limits_hold_again_after_a_cancelled_import() {
    let nodes = cluster(2);
    let (to, from) = (&nodes[0], &nodes[1]);
    if !moves_slots(from) {
        return;
    }
    if from.version().is_valkey {
        println!("skipped: Valkey imports by commands, not by RESTORE");
        return;
    }
    fill(&mut from.client());
    let (before, payload) = (state(&mut from.client()), dump(from, "{x}large"));
    limit(to);
    from.client().expect("CONFIG SET rdb-key-save-delay 10000000", "+OK");
    start_move(from, to);
    wait_until("the snapshot", || (from.client().info_number("rdb_bgsave_in_progress") == 1).then_some(()));
    to.client().expect("CLUSTER MIGRATION CANCEL ALL", "1");
    assert_limited(to, &payload);
    assert_eq!(state(&mut from.client()), before);
}

/// A full Valkey ends the import itself. The page about clusters says so.
#[test]
fn a_full_valkey_imports_nothing_and_the_source_keeps_its_keys() {
    let nodes = cluster(2);
    let (to, from) = (&nodes[0], &nodes[1]);
    if !moves_slots(from) || !from.version().is_valkey {
        println!("skipped: {:?} imports beyond its limits", from.version());
        return;
    }
    fill(&mut from.client());
    let before = state(&mut from.client());
    to.client().expect("CONFIG SET maxmemory-policy noeviction", "+OK");
    to.client().expect("CONFIG SET maxmemory 1mb", "+OK");
    start_move(from, to);
    let mut client = from.client();
    wait_until("the move to fail", || show(&client.cmd("CLUSTER GETSLOTMIGRATIONS")).contains("failed").then_some(()));
    assert_eq!(state(&mut client), before);
}
