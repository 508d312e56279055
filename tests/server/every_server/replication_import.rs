//! Tests moving slots in one piece (Redis 8.4, Valkey 9) to a node whose limits would reject the keys of clients. The
//! source deletes its keys whatever the target does, so the target has to accept all of them.
//!
//! A regression test: imports were not exempt from the limits. Redis 8.10.2 reported the move as completed, and every
//! key above a limit was lost.

use rollcall_testkit::{
    Client, Server, Setup, add_many, add_replica, cluster, cluster_of, ended_moves, error_text, figures, lines, show,
    wait_until,
};

/// Keys of every kind in one slot of the second node. `?` stands for the key.
const KEYS: [(&str, &[&str]); 16] = [
    ("plain", &["BF.INSERT ? CAPACITY 1000 ITEMS a b c"]),
    ("large", &["BF.RESERVE ? 0.01 2000000"]),
    ("copied", &["BF.ADD ? a"]),
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

/// Writes to these keys; `#` stands for a number. Each write changes its key: it renews known items or adds new ones.
const WRITES: &str =
    "BF.MADD {x}plain # #b; BF.ADD {x}large #; COPY {x}large {x}copied REPLACE; BF.MADD {x}grown # #b #c
     BF.ADD {x}classic #; BF.ADD {x}windowed #; BF.ADVANCE {x}manual 1#; BF.MADD {x}manual # #b #c; LC.ADD {x}exact #
     LC.ADD {x}estimate # #b; LC.ADVANCE {x}visitors 1#; LC.ADD {x}visitors # #b
     LC.ADMIT {x}limited LIMIT 65536 EXACT 65536 WINDOW 1099511627776 VOLATILE ITEMS #";

fn fill(client: &mut Client) {
    for (key, commands) in KEYS {
        for command in commands {
            client.run(&command.replace('?', &format!("{{x}}{key}")));
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

/// Two primaries, the target and the source of a move; `None` if the server does not move slots in one piece.
fn pair() -> Option<[Server; 2]> {
    let version = Server::start().version();
    if !version.moves_slots() {
        println!("skipped: {version:?} does not move slots in one piece");
        return None;
    }
    cluster(2).try_into().ok()
}

/// Starts to move the slot of the keys, which `from` owns.
fn start_move(from: &Server, to: &Server) {
    let slot = from.client().int("CLUSTER KEYSLOT {x}") as u16;
    rollcall_testkit::start_move(from, to, (slot, slot));
}

/// Waits until some keys have arrived. The server does not show them before the move has ended.
fn wait_keys(to: &Server) {
    let mut client = to.client();
    wait_until("keys to arrive", || (figures(&mut client)["filters"] > 2).then_some(()));
}

/// Waits until the module has no values and no memory to free. Returns the number of bytes that it still uses.
fn bytes_without_values(server: &Server) -> i64 {
    let mut client = server.client();
    wait_until("all values to be freed", || {
        let figures = figures(&mut client);
        let is_value = |name: &str| ["filters", "counters", "frees_waiting", "filters_capacity"].contains(&name);
        let left: i64 = figures.iter().filter(|(name, _)| is_value(name)).map(|(_, value)| value).sum();
        (left == 0).then(|| figures["allocated_bytes"])
    })
}

/// Sets the target's size limit below the size of some keys, and fills its memory. A full Valkey cancels the import
/// itself, and the source keeps its keys. The target has a large key of its own, in another slot.
fn limit(to: &Server) {
    to.client().expect("BF.RESERVE {b}large 0.01 2000000", "+OK");
    if !to.version().is_valkey {
        to.client().expect("CONFIG SET maxmemory-policy noeviction", "+OK");
        to.client().expect("CONFIG SET maxmemory 1mb", "+OK");
        to.client().expect("SET {b}another text", "-OOM *");
    }
    to.set_parameter("max-key-bytes", "1mb");
}

/// Panics unless `to` rejects `payload`, which exceeds `max-key-bytes`, from a client, and a COPY of a key as large. A
/// COPY in a Valkey cluster has no limits.
fn assert_limited(to: &Server, payload: &[u8]) {
    to.client().expect("CONFIG SET maxmemory 0", "+OK");
    if !to.version().is_valkey {
        let error = to.client().error("COPY {b}large {b}copy");
        assert_eq!(error.to_lowercase(), "err module key failed to copy");
    }
    let reply = to.client().restore("{b}copy", payload);
    assert!(error_text(&reply).is_some_and(|error| error.contains("Bad data format")), "{}", show(&reply));
}

fn dump(server: &Server, key: &str) -> Vec<u8> {
    server.client().dump(key)
}

#[test]
fn a_full_node_with_smaller_limits_imports_every_key() {
    let Some([to, from]) = &pair() else { return };
    fill(&mut from.client());
    let (before, payload) = (state(&mut from.client()), dump(from, "{x}large"));
    limit(to);
    start_move(from, to);
    wait_until("the slot to change hands", || (from.client().int("DBSIZE") == 0).then_some(()));
    assert_eq!(state(&mut to.client()), before);
    // After the import, the limits apply again.
    assert_limited(to, &payload);
}

/// Writes that the source accepts during the move are sent as commands after the snapshot. A full target executes
/// them, without applying its own limits and clock.
#[test]
fn writes_during_a_move_arrive_at_a_full_node() {
    let Some([to, from]) = &pair() else { return };
    let other = Server::start();
    fill(&mut from.client());
    fill(&mut other.client());
    limit(to);
    let mut client = from.client();
    // The child process that sends the snapshot waits a tenth of a second for each key.
    client.expect("CONFIG SET rdb-key-save-delay 100000", "+OK");
    start_move(from, to);
    if !from.version().is_valkey {
        wait_until("the snapshot to begin", || (client.info_number("rdb_bgsave_in_progress") == 1).then_some(()));
    }
    let mut rounds = 0;
    let acknowledged = (0..100_000).find_map(|round| {
        let commands = lines(WRITES).into_iter().map(|write| write.replace('#', &format!("{}", 1000 + round)));
        for (at, command) in commands.enumerate() {
            let reply = client.cmd(&command);
            if let Some(error) = error_text(&reply) {
                assert!(error.starts_with("MOVED"), "{command}: {error}");
                return Some(at);
            }
            other.client().cmd(&command);
        }
        rounds = round + 1;
        None
    });
    assert!(acknowledged.is_some() && rounds > 0, "{acknowledged:?} after {rounds} rounds");
    wait_until("the slot to change hands", || (client.int("DBSIZE") == 0).then_some(()));
    // Volatile keys and windows with the system clock have the expiry times and slices of the source.
    let digests = |server: &Server| state(&mut server.client()).into_iter().map(|(key, digest, _)| (key, digest));
    assert_eq!(digests(to).collect::<Vec<_>>(), digests(&other).collect::<Vec<_>>());
    println!("{rounds} rounds of writes");
}

/// Limits apply to clients while a node imports slots, and afterwards. During an import, no key had a limit.
#[test]
fn limits_hold_for_clients_during_an_import_and_after_a_cancelled_one() {
    let Some([to, from]) = &pair() else { return };
    if from.version().is_valkey {
        println!("skipped: Valkey imports by commands, not by RESTORE");
        return;
    }
    fill(&mut from.client());
    let (before, payload) = (state(&mut from.client()), dump(from, "{x}large"));
    limit(to);
    from.client().expect("CONFIG SET rdb-key-save-delay 1000000", "+OK");
    start_move(from, to);
    wait_keys(to);
    assert_limited(to, &payload);
    to.client().expect("CLUSTER MIGRATION CANCEL ALL", "1");
    assert_limited(to, &payload);
    assert_eq!(state(&mut from.client()), before);
    to.client().expect("DEL {b}large", "1");
    bytes_without_values(to);
}

/// The largest size in bytes of the tables of shared parameters, which remain after the values are gone: five tables
/// of 1,024 entries.
const POOLS: i64 = 5 * 1024 * 150;

/// The source deletes its keys in the background, slot by slot.
#[test]
fn slots_that_have_left_take_no_memory() {
    let Some([to, from]) = &pair() else { return };
    let (before, used) = (bytes_without_values(from), from.client().info_number("used_memory"));
    fill(&mut from.client());
    from.client().expect("BF.RESERVE {x}huge 0.01 16000000", "+OK");
    assert!(from.client().info_number("used_memory") > used + (15 << 20));
    start_move(from, to);
    wait_until("the slot to change hands", || (from.client().int("DBSIZE") == 0).then_some(()));
    let after = bytes_without_values(from);
    assert!(after <= before + POOLS, "{after} bytes, {before} before");
    wait_until("the server to have its memory back", || {
        (from.client().info_number("used_memory") < used + (4 << 20)).then_some(())
    });
    assert_eq!(figures(&mut to.client())["filters"], 10);
}

/// While keys arrive, the target dies, and its replica takes over. The move is cancelled, and the source keeps its
/// keys.
///
/// Then the source dies during another move. Its replica continues with every write that WAIT 1 acknowledged.
#[test]
fn a_move_outlives_its_source_and_is_undone_without_its_target() {
    let version = Server::start().version();
    if version.is_valkey || !version.moves_slots() {
        println!("skipped: {version:?} does not repeat a failed move");
        return;
    }
    let setup = Setup::default().line("cluster-node-timeout 2000").line("cluster-replica-validity-factor 0");
    let mut nodes = cluster_of(3, &setup);
    let [from_replica, to_replica] = [2, 0].map(|primary| add_replica(&nodes, primary, &setup));
    // The second primary is only needed for majorities in elections.
    let (mut from, mut to) = (nodes.remove(2), nodes.remove(0));
    let mut client = from.client();
    fill(&mut client);
    client.expect("WAIT 1 20000", "1");
    let before = state(&mut client);
    // The child process that sends the keys waits a fifth of a second for each key.
    client.expect("CONFIG SET rdb-key-save-delay 200000", "+OK");
    start_move(&from, &to);
    wait_keys(&to);
    assert_eq!(ended_moves(&to), None);
    kill(&mut to, &to_replica, &from);
    bytes_without_values(&to_replica);
    assert_eq!(state(&mut client), before);
    wait_until("the source to give up", || ended_moves(&from));

    client.expect("BF.ADD {x}plain last", "1");
    client.expect("WAIT 1 20000", "1");
    let before = state(&mut client);
    start_move(&from, &to_replica);
    wait_keys(&to_replica);
    kill(&mut from, &from_replica, &to_replica);
    assert_eq!(wait_until("the move to end", || ended_moves(&to_replica)), ["completed"]);
    assert_eq!(state(&mut to_replica.client()), before);
    bytes_without_values(&from_replica);
}

/// Kills a primary, and waits until its replica has taken over and another node knows that.
fn kill(primary: &mut Server, replica: &Server, other: &Server) {
    primary.kill();
    wait_until("the replica to take over", || (replica.client().info("role") == "master").then_some(()));
    for node in [replica, other] {
        let mut client = node.client();
        wait_until("the cluster", || client.text("CLUSTER INFO").contains("cluster_state:ok").then_some(()));
    }
}
