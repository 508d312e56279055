//! Measures the bytes of a small key, in memory and in an RDB file.

use std::time::{Duration, Instant};

use super::keys::{Kind, make};
use crate::measure::{Bench, Goal, Row};
use crate::servers::Server;

/// Capacities of filters, each with the number of keys and the memory goal for one key. A quick run has a tenth of the keys.
const FILTERS: [(u64, u64, Option<f64>); 4] =
    [(10, 20_000, Some(230.0)), (100, 20_000, Some(350.0)), (1_000, 3_000, Some(1725.0)), (10_000, 300, None)];

/// Numbers of members, each with the number of keys and the memory goal for one key. A quick run has a tenth of the keys.
/// 16,000 keys nearly fill the server's table of 16,384, which adds 13 bytes a key to 10,000 keys.
const MEMBERS: [(u64, u64, Option<f64>); 7] = [
    (0, 16_000, Some(140.0)),
    (1, 10_000, Some(190.0)),
    (10, 10_000, Some(380.0)),
    (100, 2_000, Some(1900.0)),
    (250, 2_000, Some(4500.0)),
    (1_000, 1_000, None),
    (10_000, 100, None),
];

/// Titles of the tables, by which [`crate::report`] finds them.
pub const FILTER_TABLE: &str = "Bytes of a small filter";
pub const COUNTER_TABLE: &str = "Bytes of a small counter";

/// Bytes per key.
struct Bytes {
    memory: f64,
    file: f64,
}

/// Creates `count` keys in the server, and measures their bytes. The server is empty before and after.
fn measure(server: &mut Server, count: u64, kind: Kind) -> Bytes {
    let (memory, file) = (settled(server), saved(server));
    let mut client = server.connect();
    make(&mut client, count, |_| kind);
    // The server's buffers of this connection are memory too.
    drop(client);
    let bytes =
        Bytes { memory: (settled(server) - memory) / count as f64, file: (saved(server) - file) / count as f64 };
    assert_eq!(server.call("DBSIZE").number(), count as f64, "not all keys were made");
    server.call("FLUSHALL SYNC");
    bytes
}

/// The memory in use, read when no other connection is open and the server's table of keys has its final size.
fn settled(server: &mut Server) -> f64 {
    let end = Instant::now() + Duration::from_secs(10);
    while server.info("connected_clients") > 1.0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    server.info("used_memory")
}

/// Bytes of the file that SAVE writes.
fn saved(server: &mut Server) -> f64 {
    server.call("SAVE");
    std::fs::metadata(server.rdb()).expect("SAVE writes a file").len() as f64
}

/// Compares filters with RedisBloom's, and counters with sets and HyperLogLogs.
pub fn run(bench: &mut Bench, ours: &mut Server, peer: &mut Server) {
    for server in [&mut *ours, &mut *peer] {
        // The server moves the dictionary for one millisecond per tick, so it gets 200 ticks a second.
        server.call("CONFIG SET hz 200");
    }
    filters(bench, ours, peer);
    counters(bench, ours, peer);
    for server in [ours, peer] {
        server.call("CONFIG SET hz 10");
    }
}

fn filters(bench: &mut Bench, ours: &mut Server, peer: &mut Server) {
    let mut lines = Vec::new();
    for (capacity, count, goal) in FILTERS {
        let count = count / bench.pick(10, 1);
        let fills = [("empty", 0), ("half full", capacity / 2), ("full", capacity)];
        let mut line = vec![capacity.to_string()];
        for (name, items) in fills {
            let kind = Kind::Filter { capacity, items };
            let (our, their) = (measure(ours, count, kind), measure(peer, count, kind));
            if name == "empty" {
                bench.rows.push(Row {
                    work: format!("used_memory of a filter of {capacity} at p = 0.01"),
                    goal: goal.map_or(Goal::Shown, Goal::AtMost),
                    ours: our.memory,
                    other: Some(("RedisBloom", their.memory)),
                    unit: "bytes",
                });
                line.extend([our.memory, their.memory].map(|bytes| format!("{bytes:.0}")));
            }
            bench.rows.push(Row {
                work: format!("RDB bytes of a filter of {capacity} at p = 0.01, {name}"),
                goal: Goal::Within(1.0),
                ours: our.file,
                other: Some(("RedisBloom", their.file)),
                unit: "bytes",
            });
            line.push(format!("{:.0}", our.file));
            line.push(format!("{:.0}", their.file));
        }
        lines.push(line);
    }
    let heads = [
        "capacity",
        "memory",
        "RedisBloom",
        "RDB, empty",
        "RedisBloom",
        "RDB, half full",
        "RedisBloom",
        "RDB, full",
        "RedisBloom",
    ];
    bench.extra(&format!("{FILTER_TABLE} at p = 0.01, its name of 9 bytes included"), &heads, &lines);
}

fn counters(bench: &mut Bench, ours: &mut Server, peer: &mut Server) {
    let mut lines = Vec::new();
    for (members, count, goal) in MEMBERS {
        let count = count / bench.pick(10, 1);
        let our = measure(ours, count, Kind::Counter(members));
        // An empty set is none.
        let set = (members > 0).then(|| measure(peer, count, Kind::Set(members)));
        let log = measure(peer, count, Kind::Log(members));
        bench.rows.push(Row {
            work: format!("used_memory of a counter with {members} members of 12 bytes"),
            goal: goal.map_or(Goal::Shown, Goal::AtMost),
            ours: our.memory,
            other: set.as_ref().map(|set| ("set", set.memory)),
            unit: "bytes",
        });
        bench.rows.push(Row {
            work: format!("RDB bytes of a counter with {members} members of 12 bytes"),
            // With the 10 bytes that the server adds to a module's value, any takes 1.4 times a set of one member.
            goal: if members > 1 { Goal::Within(1.3) } else { Goal::Shown },
            ours: our.file,
            other: set.as_ref().map(|set| ("set", set.file)),
            unit: "bytes",
        });
        let shown = |bytes: Option<f64>| bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}"));
        let [set_memory, set_file] = [set.as_ref().map(|set| set.memory), set.as_ref().map(|set| set.file)];
        let figures = [Some(our.memory), set_memory, Some(log.memory), Some(our.file), set_file, Some(log.file)];
        lines.push([vec![members.to_string()], figures.map(shown).to_vec()].concat());
    }
    let heads = ["members", "counter", "set", "HyperLogLog", "RDB: counter", "set", "HyperLogLog"];
    bench.extra(&format!("{COUNTER_TABLE} with members of 12 bytes, its name of 9 bytes included"), &heads, &lines);
}
