//! The scenario with all faults at once. A primary and its replica are at full load while they save, reload,
//! defragment, lose their link and get new options.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::Value;

use crate::check::Tally;
use crate::line::Single;
use crate::run::{Run, setting};
use crate::writer::{Load, Writer, check_all};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{
    Client, OTHER_DEFAULTS, Pair, Server, Setup, deadline, error_text, figures, show, snapshot, text, wait_until,
};

const WRITERS: u64 = 4;
const LOAD: Load = Load { commands: 12, items: 200, share: 1, expires: false };
const CHECKPOINT: Duration = Duration::from_secs(8);
/// Bytes that a server may use in addition after all keys are deleted: for its own tables and buffers, and for the
/// allocator.
const SLACK: i64 = 1 << 20;

/// The largest size of the tables of shared parameters, in bytes. Values with equal parameters share one entry, and
/// entries remain after the values are gone. There are five tables (for counters, and for first and later sub-filters
/// of two layouts), each with 1,024 entries of up to 150 bytes.
const POOLS: i64 = 5 * 1024 * 150;

/// Options of the module, each with three values to set.
const OPTIONS: [(&str, [&str; 3]); 8] = [
    ("bf-error-rate", ["0.01", "0.001", "0.2"]),
    ("bf-initial-size", ["10", "100", "5000"]),
    ("bf-expansion-factor", ["1", "2", "4"]),
    ("bf-layout", ["lines", "classic", "lines"]),
    ("lc-error-rate", ["0.01", "0.05", "0.0025"]),
    ("lc-exact-limit", ["0", "10", "250"]),
    ("lc-exact-bytes", ["100", "16384", "1000000"]),
    ("max-key-bytes", ["0", "1mb", "64mb"]),
];

struct Storm<'a> {
    run: &'a Run,
    pair: Pair,
    random: Random,
    can_defragment: bool,
    /// How often each kind of fault or request happened.
    happened: BTreeMap<&'static str, u64>,
    volatile: u64,
}

impl Storm<'_> {
    fn primary(&self) -> Client {
        self.pair.primary.client()
    }

    /// Causes a random fault, or makes a random request.
    fn strike(&mut self) {
        let what = match self.random.below(15) {
            0 | 13 | 14 => self.partial_resync(),
            1 => self.full_resync(),
            2 => self.restart_replica(),
            3 => self.ask("BGSAVE"),
            4 => self.ask("BGREWRITEAOF"),
            5 => self.reload(),
            6 => self.defragment(),
            7 => self.ask("MEMORY PURGE"),
            8 | 9 => self.set_option(),
            10 => {
                let choice = *self.random.of(&["yes", "no"]);
                self.set("appendonly", choice)
            }
            11 => {
                let (diskless, load) =
                    (*self.random.of(&["yes", "no"]), *self.random.of(&["disabled", "on-empty-db", "swapdb"]));
                let mut replica = self.pair.replica.client();
                // The replica may be loading data from its primary, and then rejects the command.
                wait_until("the replica to take an option", || {
                    let reply = replica.cmd(&format!("CONFIG SET repl-diskless-load {load}"));
                    (show(&reply) == "+OK").then_some(())
                });
                self.set("repl-diskless-sync", diskless);
                self.full_resync()
            }
            _ => self.expire(),
        };
        *self.happened.entry(what).or_default() += 1;
    }

    /// Sends a command that may be rejected because a similar one is still running.
    fn ask(&mut self, line: &'static str) -> &'static str {
        let reply = self.primary().cmd(line);
        if let Some(error) = error_text(&reply)
            && !["progress", "active", "scheduled", "can't"].iter().any(|word| error.contains(word))
        {
            self.run.violation(line, "it may be asked for", &error);
        }
        line
    }

    fn set(&mut self, name: &'static str, value: &str) -> &'static str {
        self.primary().expect(&format!("CONFIG SET {name} {value}"), "+OK");
        name
    }

    /// Cuts off the replica while it receives the replication stream.
    fn partial_resync(&mut self) -> &'static str {
        let mut replica = self.pair.replica.client();
        wait_until("the replica's link", || (replica.info("master_link_status") == "up").then_some(()));
        self.primary().cmd("CLIENT KILL TYPE replica");
        "replica cut off"
    }

    fn full_resync(&mut self) -> &'static str {
        let mut client = self.primary();
        client.expect("DEBUG CHANGE-REPL-ID", "+OK");
        client.cmd("CLIENT KILL TYPE replica");
        "full resync"
    }

    fn restart_replica(&mut self) -> &'static str {
        let replica = &mut self.pair.replica;
        let what = if self.random.one_in(2) {
            replica.kill();
            replica.start_again();
            "replica killed"
        } else {
            replica.restart();
            "replica restarted"
        };
        let mut client = replica.client();
        if replica.config("propagation-error-behavior").is_some() {
            client.expect("CONFIG SET propagation-error-behavior panic-on-replicas", "+OK");
        }
        client.expect(&format!("REPLICAOF 127.0.0.1 {}", self.pair.primary.port()), "+OK");
        what
    }

    /// Reloads the data set with DEBUG RELOAD, from an RDB file of its own. A background save could replace the usual
    /// file before it is read. Waits for expired keys first, because the server does not replicate the expiry of keys
    /// that it finds expired while loading.
    fn reload(&mut self) -> &'static str {
        wait_expired(&mut self.primary());
        let lines = ["CONFIG SET dbfilename reload.rdb", "DEBUG RELOAD", "CONFIG SET dbfilename dump.rdb"];
        let commands: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        // In one pipeline, the server executes the commands without other commands in between.
        let replies = self.primary().pipeline(&commands);
        if replies != [Value::Okay, Value::Okay, Value::Okay] {
            let replies: Vec<String> = replies.iter().map(show).collect();
            self.run.violation("DEBUG RELOAD", "what is saved loads again", &replies.join(", "));
        }
        "DEBUG RELOAD"
    }

    fn defragment(&mut self) -> &'static str {
        if self.can_defragment {
            let choice = *self.random.of(&["yes", "yes", "no"]);
            self.set("activedefrag", choice);
        }
        "activedefrag"
    }

    fn set_option(&mut self) -> &'static str {
        let (name, values) = *self.random.of(&OPTIONS);
        let value = *self.random.of(&values);
        self.pair.primary.set_parameter(name, value);
        "options"
    }

    /// Adds keys that expire within two seconds.
    fn expire(&mut self) -> &'static str {
        let mut commands = Vec::new();
        for _ in 0..100 {
            self.volatile += 1;
            let milliseconds = 1 + self.random.below(2000);
            for family in ["BF", "LC"] {
                let line =
                    format!("{family}.INSERT volatile:{family}:{} PX {milliseconds} ITEMS a b c d e", self.volatile);
                commands.push(line.split(' ').map(str::to_owned).collect::<Vec<_>>());
            }
        }
        self.primary().pipeline(&commands);
        "200 keys that expire"
    }

    /// Stops all writers, and checks that the replica has the same data as the primary.
    fn compare(&mut self) {
        let (run, pair) = (self.run, &self.pair);
        let _none_in_flight = run.gate.write().expect("the gate");
        if run.is_over() {
            return;
        }
        let (mut here, mut there) = (pair.primary.client(), pair.replica.client());
        wait_expired(&mut here);
        wait_until("the replica's link", || (there.info("master_link_status") == "up").then_some(()));
        wait_expired(&mut there);
        pair.replica.wait_synced(&pair.primary);
        if here.text("DEBUG DIGEST") != there.text("DEBUG DIGEST") {
            let (primary, replica) = (snapshot(&mut here), snapshot(&mut there));
            let differs = |key: &&String| primary.get(*key) != replica.get(*key);
            let keys: Vec<&String> = primary.keys().chain(replica.keys()).filter(differs).collect();
            let key = keys.first().expect("a key that differs");
            let side = |side: &BTreeMap<String, String>| side.get(*key).cloned().unwrap_or_default();
            run.violation(
                key,
                &format!("on the primary: {}", side(&primary)),
                &format!("on the replica: {}", side(&replica)),
            );
        }
        let (on_primary, on_replica) = (settled_figures(&mut here), settled_figures(&mut there));
        // Sizes in bytes are not compared, because they may differ between allocations.
        for (name, value) in on_primary.iter().filter(|(name, _)| is_of_values(name) && !name.ends_with("_bytes")) {
            if on_replica[name] != *value {
                run.violation(
                    name,
                    &format!("{value} on the primary"),
                    &format!("{} on the replica", on_replica[name]),
                );
            }
        }
        run.say(&format!(
            "{} keys equal on both; {}; {:.1} MB",
            here.int("DBSIZE"),
            run.load(),
            here.info_number("used_memory") as f64 / 1e6
        ));
        *self.happened.entry("comparisons").or_default() += 1;
    }
}

/// Waits until all keys with a time to live are gone. Their number includes expired keys that the server has not
/// deleted yet.
fn wait_expired(client: &mut Client) {
    wait_until("what expires to be gone", || {
        let keyspace = client.info("db0");
        (keyspace.is_empty() || keyspace.contains(",expires=0,")).then_some(())
    });
}

/// Whether a figure depends on the values alone. Other figures count events.
fn is_of_values(name: &str) -> bool {
    let is_event = ["_growths", "_promotions", "_advances", "_rejected"].iter().any(|event| name.ends_with(event));
    (name.starts_with("filters") || name.starts_with("counters")) && !is_event
}

/// The module's figures, read when no value waits to be freed in the background.
fn settled_figures(client: &mut Client) -> BTreeMap<String, i64> {
    wait_until("what was deleted to be freed", || {
        let reported = figures(client);
        (reported["frees_waiting"] == 0).then_some(reported)
    })
}

/// The memory that a server uses. Before it is read, all other clients are gone, and the replication backlog has its
/// full size.
fn used_memory(server: &Server) -> i64 {
    let mut client = server.client();
    let filler = vec![vec!["SET".to_owned(), "filler".to_owned(), "x".repeat(100_000)]; 60];
    client.pipeline(&filler);
    client.expect("DEL filler", "1");
    drop(client);
    wait_until("other clients to be gone", || {
        let mut client = server.client();
        (client.info_number("connected_clients") == 1).then(|| client.info_number("used_memory"))
    })
}

/// The module's figures once all sums over values are 0. The server may still be freeing small values in the
/// background.
fn figures_without_keys(run: &Run, client: &mut Client) -> BTreeMap<String, i64> {
    let start = Instant::now();
    loop {
        let left = settled_figures(client);
        let Some((name, value)) = left.iter().find(|(name, value)| is_of_values(name) && **value != 0) else {
            return left;
        };
        if start.elapsed() > deadline() {
            run.violation(name, "0 without keys", &value.to_string());
        }
    }
}

fn assert_memory_is_flat(run: &Run, server: &Server, before: i64, begun: &BTreeMap<String, i64>) {
    let mut client = server.client();
    wait_expired(&mut client);
    let keys: Vec<String> = client.list("KEYS *").iter().map(text).collect();
    for (at, piece) in keys.chunks(20).enumerate() {
        let command = if at % 2 == 0 { "DEL" } else { "UNLINK" };
        client.call(&[vec![command.to_owned()], piece.to_vec()].concat());
    }
    client.expect("DBSIZE", "0");
    let left = figures_without_keys(run, &mut client);
    let (allocated, at_start) = (left["allocated_bytes"], begun["allocated_bytes"]);
    if allocated > at_start + POOLS {
        run.violation("allocated_bytes", &format!("{at_start} before the run"), &allocated.to_string());
    }
    drop(client);
    // The server releases buffers and tables gradually.
    let start = Instant::now();
    let mut after = used_memory(server);
    while after > before + SLACK && start.elapsed() < deadline() {
        after = after.min(used_memory(server));
    }
    run.say(&format!(
        "used_memory {before} before and {after} after {} keys were deleted, the module's own {at_start} and \
         {allocated}",
        keys.len()
    ));
    if after > before + SLACK {
        run.violation("used_memory", &format!("{before} before the run"), &after.to_string());
    }
}

#[test]
#[ignore = "make chaos"]
fn a_storm_of_all_events_loses_nothing() {
    let seconds = setting("ROLLCALL_CHAOS_SECONDS", 20);
    let run = Run::new("storm");
    let tally = Tally::default();
    let shared = |setup: Setup| {
        setup
            .line("repl-backlog-size 4mb")
            .line("enable-protected-configs yes")
            .line("client-output-buffer-limit replica 0 0 0")
            .line("active-defrag-ignore-bytes 1")
            .line("active-defrag-threshold-lower 1")
            .line("active-defrag-cycle-min 10")
            .line("active-defrag-cycle-max 30")
    };
    let pair = Pair::of(shared(Setup::default()), shared(Setup::default()).args(OTHER_DEFAULTS));
    let can_defragment = error_text(&pair.primary.client().cmd("CONFIG SET activedefrag yes")).is_none();
    let (before, begun) = (used_memory(&pair.primary), figures(&mut pair.primary.client()));
    if !can_defragment {
        run.say("this server cannot defragment");
    }
    let random = Random::new(run.seed);
    let mut storm = Storm { run: &run, pair, random, can_defragment, happened: BTreeMap::new(), volatile: 0 };
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::new(&run, number, LOAD)).collect();
    std::thread::scope(|scope| {
        let guard = run.end_on_drop();
        for writer in &mut writers {
            let mut line = Single::new(&storm.pair.primary);
            let (run, tally) = (&run, &tally);
            scope.spawn(move || writer.work(&mut line, run, tally));
        }
        let mut compared = run.elapsed();
        while run.elapsed() < Duration::from_secs(seconds) && !run.is_over() {
            storm.strike();
            std::thread::sleep(Duration::from_millis(10 + storm.random.below(250)));
            if run.elapsed() - compared >= CHECKPOINT {
                storm.compare();
                compared = run.elapsed();
            }
        }
        drop(guard);
    });
    let happened: Vec<String> = storm.happened.iter().map(|(what, count)| format!("{what} {count}")).collect();
    run.say(&happened.join(", "));
    storm.pair.primary.set_parameter("max-key-bytes", "0");
    storm.set("appendonly", "no");
    let mut line = Single::new(&storm.pair.primary);
    for writer in &mut writers {
        writer.settle(&mut line, &run);
    }
    let mut client = storm.primary();
    let done: Vec<String> = ["sync_full", "sync_partial_ok", "active_defrag_hits", "total_forks"]
        .map(|field| format!("{field} {}", client.info(field)))
        .into();
    run.say(&done.join(", "));
    check_all(&mut line, &run, &writers, Some(&tally));
    // Unlike before, no lock is needed: nobody writes any more, so no command is in flight.
    let unfinished = writers.iter().flat_map(|writer| &writer.keys).filter(|key| key.pending.is_some()).count();
    assert_eq!(unfinished, 0, "what was on its way is acknowledged");
    check_on_replica(&mut storm, &run, &writers);
    tally.judge(&run);
    storm.pair.primary.assert_up();
    storm.pair.replica.assert_up();
    for server in [&storm.pair.primary, &storm.pair.replica] {
        assert!(!server.log().contains("CRITICAL"), "{}", server.log());
    }
    drop((line, client));
    assert_memory_is_flat(&run, &storm.pair.primary, before, &begun);
    storm.pair.replica.wait_synced(&storm.pair.primary);
    figures_without_keys(&run, &mut storm.pair.replica.client());
}

/// Checks that the replica answers as the primary does.
fn check_on_replica(storm: &mut Storm<'_>, run: &Run, writers: &[Writer]) {
    wait_until("the replica's link", || (storm.pair.replica.client().info("master_link_status") == "up").then_some(()));
    let mut line = Single::new(&storm.pair.replica);
    storm.pair.replica.wait_synced(&storm.pair.primary);
    let items = check_all(&mut line, run, writers, None);
    run.say(&format!("{items} items looked for on the replica"));
}
