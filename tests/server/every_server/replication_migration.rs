//! Tests the steps of docs/migrating.md: from a live RedisBloom primary to this module and back, while clients write.
//!
//! The primary is `redis-server` from the PATH with RedisBloom, whichever server the module is tested on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, RwLock};

use redis::Value;

use crate::every_server::replication_redisbloom::{
    SHAPES, assert_alike, bytes, chunks, items, load, peer, peer_server, populate, said, with,
};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{Client, EndOnDrop, Server, Setup, error_text, show, text, wait_until, words};

/// The servers of the service, and the flags that control the writers.
struct Service<'a> {
    /// The old server, then the new server.
    servers: [&'a Server; 2],
    /// The index of the server to which the clients write.
    current: AtomicUsize,
    /// Whether the new server is a replica of the old one, so that the writers can look there for their writes.
    follows: AtomicBool,
    is_over: AtomicBool,
    /// A lock that each writer holds for reading during a step. A thread that holds it for writing knows that no step
    /// is running.
    gate: RwLock<()>,
    /// Number of completed steps.
    steps: AtomicUsize,
}

impl Service<'_> {
    /// Waits until the writers have completed `more` further steps.
    fn wait_steps(&self, more: usize) {
        let goal = self.steps.load(SeqCst) + more;
        wait_until("the writers", || (self.steps.load(SeqCst) >= goal).then_some(()));
    }
}

/// What the server acknowledged to the writer of a key.
#[derive(Default)]
struct Acknowledged {
    items: Vec<String>,
    /// Number of acknowledged items that were new.
    new: i64,
}

/// A client that writes to keys of its own and remembers what was acknowledged.
struct Writer {
    name: String,
    /// The state of a small pseudo-random generator with a fixed seed.
    random: Random,
    made: usize,
    keys: BTreeMap<String, Acknowledged>,
    /// Number of commands that the old server rejected after the switch to the new one.
    rejected: usize,
}

const KEYS_A_WRITER: usize = 10;

/// Commands that create the key `?`: one without items, which may be empty, and one that adds items.
const CREATIONS: [(&str, &str); 4] = [
    ("", "BF.MADD ?"),
    ("", "BF.INSERT ? CAPACITY 10 ERROR 0.001 EXPANSION 3 ITEMS"),
    ("BF.RESERVE ? 0.02 20 NONSCALING", "BF.MADD ?"),
    ("BF.RESERVE ? 0.3 8 EXPANSION 1", "BF.MADD ?"),
];

impl Writer {
    fn new(number: u64) -> Writer {
        Writer { name: format!("w{number}"), random: Random::new(number), made: 0, keys: BTreeMap::new(), rejected: 0 }
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}{}:{}", self.name, self.made)
    }

    /// Items to add. The last of several was added before.
    fn some_items(&mut self, key: &str, count: u64) -> Vec<String> {
        let known = self.keys.get(key).and_then(|written| written.items.first()).filter(|_| count > 1).cloned();
        (0..count).map(|_| self.fresh("item:")).chain(known).collect()
    }

    /// Sends a command to the current server and returns the reply. If that server has been replaced, sends the command
    /// to the new server.
    fn call(&mut self, service: &Service, client: &mut Client, words: &[&str]) -> Value {
        loop {
            let reply = client.call(words);
            if !error_text(&reply).is_some_and(|error| error.starts_with("NOREPLICAS")) {
                return reply;
            }
            self.rejected += 1;
            wait_until("the new server", || (service.current.load(SeqCst) == 1).then_some(()));
            *client = service.servers[1].client();
        }
    }

    /// Adds `count` items by a command, in which `?` stands for the key, and records the accepted items.
    fn add(&mut self, service: &Service, client: &mut Client, line: &str, key: &str, count: u64) {
        let (line, some) = (line.replace('?', key), self.some_items(key, count));
        let elements = match self.call(service, client, &with(&words(&line), &some)) {
            Value::Array(elements) => elements,
            single => vec![single],
        };
        let written = self.keys.entry(key.to_owned()).or_default();
        for (item, element) in some.iter().zip(&elements) {
            match element {
                Value::Int(is_new) => {
                    written.new += is_new;
                    written.items.push(item.clone());
                }
                full => assert_eq!(show(full), "-ERR non scaling filter is full", "{line}"),
            }
        }
    }

    fn any_key(&mut self) -> Option<String> {
        let at = self.random.below(KEYS_A_WRITER);
        let count = self.keys.len().max(1);
        self.keys.keys().nth(at % count).cloned()
    }

    /// One step: a random write.
    fn step(&mut self, service: &Service, client: &mut Client) {
        let key = self.any_key();
        match (self.random.below(12), key) {
            (0..=5, Some(key)) => {
                let count = 1 + self.random.below(40);
                self.add(service, client, "BF.MADD ?", &key, count);
            }
            (6..=7, Some(key)) => self.add(service, client, "BF.ADD ?", &key, 1),
            (8, Some(key)) => {
                assert_eq!(self.call(service, client, &["DEL", &key]), Value::Int(1), "{key}");
                self.keys.remove(&key);
            }
            (9, _) => {
                // The key expires in a moment, by the primary's clock.
                let key = self.fresh("volatile:");
                let some = self.some_items(&key, 5);
                self.call(service, client, &with(&["BF.MADD", &key], &some));
                let ttl = (1 + self.random.below(100)).to_string();
                self.call(service, client, &["PEXPIRE", &key, &ttl]);
            }
            (10, Some(key)) if self.keys.len() >= KEYS_A_WRITER => {
                self.add(service, client, "BF.INSERT ? NOCREATE ITEMS", &key, 3);
            }
            (11, Some(_)) if self.keys.len() >= KEYS_A_WRITER => {}
            (kind, _) => {
                let key = self.fresh("key:");
                let (create, add) = CREATIONS[kind % 4];
                if !create.is_empty() {
                    let create = create.replace('?', &key);
                    assert_eq!(self.call(service, client, &words(&create)), Value::Okay, "{create}");
                }
                self.add(service, client, add, &key, 15);
            }
        }
    }

    /// Checks that a server has every acknowledged item of a key.
    #[track_caller]
    fn check(&self, client: &mut Client, key: &str) {
        let items = &self.keys[key].items;
        let reply = client.call(&with(&["BF.MEXISTS", key], items));
        assert!(reply == Value::Array(vec![Value::Int(1); items.len()]), "{key} lost items");
    }

    fn run(&mut self, service: &Service) {
        let mut client = service.servers[0].client();
        let mut follower = service.servers[1].client();
        let mut steps = 0;
        while !service.is_over.load(SeqCst) {
            let _in_flight = service.gate.read().expect("the gate");
            self.step(service, &mut client);
            steps += 1;
            if steps % 50 == 0 && service.follows.load(SeqCst) {
                let Some(key) = self.any_key() else { continue };
                assert_eq!(client.int("WAIT 1 20000"), 1, "the follower keeps up");
                self.check(&mut follower, &key);
            }
            service.steps.fetch_add(1, SeqCst);
        }
    }
}

/// The keys that do not expire.
fn lasting(client: &mut Client) -> Vec<String> {
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.retain(|key| !key.starts_with("volatile:"));
    keys.sort();
    keys
}

/// Compares every key without expiry on two servers with the same data: parameters, every sub-filter, and replies about
/// added and absent items.
#[track_caller]
fn assert_equal(one: &mut Client, other: &mut Client) {
    let keys = lasting(one);
    assert_eq!(keys, lasting(other));
    let absent = items("absent", 100);
    for key in keys.iter().filter(|key| *key != "big") {
        let say = |client: &mut Client| {
            [
                client.cmd(&format!("BF.DEBUG {key}")),
                client.cmd(&format!("BF.INFO {key}")),
                client.call(&with(&["BF.MEXISTS", key], &absent)),
            ]
        };
        let (reported, expected) = (say(one), say(other));
        assert!(reported == expected, "{key}: {} instead of {}", show(&reported[0]), show(&expected[0]));
    }
}

/// Moves filters back to RedisBloom by payload and in chunks, and checks that they behave there as they do here.
fn assert_rollback(ours: &Server, peer: &Path) {
    // RedisBloom's server has the same version, because that decides the version of `DUMP` payloads.
    let mut again = peer_server(peer);
    let (mut here, mut back) = (ours.client(), again.client());
    let keys = lasting(&mut here);
    for key in &keys {
        let payload = here.dump(key);
        assert_eq!(back.restore(key, &payload), Value::Okay, "{key}");
        back.expect(&format!("DEL {key}"), "1");
        let dump = chunks(&mut here, key);
        load(&mut back, key, &dump);
        assert!(bytes(&chunks(&mut back, key)) == bytes(&dump), "{key}");
    }
    again.assert_up();
    assert_equal(&mut here, &mut back);
    let more = items("after", 60);
    for key in &keys {
        let words = with(&["BF.MADD", key], &more);
        assert!(here.call(&words) == back.call(&words), "{key}");
        assert!(said(&mut here, key) == said(&mut back, key), "{key}");
        // A dump by RedisBloom can be loaded into this module again.
        let payload = back.dump(key);
        let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), b"0", &payload, b"REPLACE"];
        assert_eq!(here.call(&words), Value::Okay, "{key}");
    }
    assert_equal(&mut here, &mut back);
}

#[test]
fn clients_write_while_the_server_is_changed_and_nothing_is_lost() {
    let Some(peer) = peer() else { return };
    let theirs = Setup::default().binary(Path::new("redis-server")).without_module().module_before(&peer).start();
    let ours = Server::with_args("bf-layout classic");
    let (mut old, mut new) = (theirs.client(), ours.client());
    populate(&mut old);
    let service = Service {
        servers: [&theirs, &ours],
        current: AtomicUsize::new(0),
        follows: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        gate: RwLock::new(()),
        steps: AtomicUsize::new(0),
    };
    let writers: Vec<_> = (0..3).map(|number| Mutex::new(Writer::new(number))).collect();
    std::thread::scope(|scope| {
        for writer in &writers {
            scope.spawn(|| writer.lock().expect("the writer").run(&service));
        }
        // If an assertion fails, this guard stops the writers. Otherwise the scope would wait for them without end.
        let guard = EndOnDrop(&service.is_over);
        service.wait_steps(500);

        // Full synchronisation, with writes while it runs.
        let before = service.steps.load(SeqCst);
        new.expect(&format!("REPLICAOF 127.0.0.1 {}", theirs.port()), "+OK");
        wait_until("the link", || (new.info("master_link_status") == "up").then_some(()));
        assert!(service.steps.load(SeqCst) > before, "nothing was written during the synchronisation");
        service.follows.store(true, SeqCst);

        // Replication stream: while no write is in flight, both servers reply the same.
        for _ in 0..8 {
            service.wait_steps(400);
            let _none_in_flight = service.gate.write().expect("the gate");
            ours.wait_synced(&theirs);
            assert_equal(&mut new, &mut old);
        }
        service.follows.store(false, SeqCst);
        // From here on, writers do not wait for the new server.
        drop(service.gate.write().expect("the gate"));

        // Promotion: the old server rejects writes unless the new server has received all of them.
        old.expect("CONFIG SET min-replicas-to-write 1", "+OK");
        old.expect("CLIENT PAUSE 20000 WRITE", "+OK");
        ours.wait_synced(&theirs);
        new.expect("REPLICAOF NO ONE", "+OK");
        wait_until("the promotion", || (new.info("role") == "master").then_some(()));
        wait_until("the old server to be alone", || (old.info("connected_slaves") == "0").then_some(()));
        assert_equal(&mut new, &mut old);
        service.current.store(1, SeqCst);
        old.expect("CLIENT UNPAUSE", "+OK");

        // Clients continue with the new server.
        service.wait_steps(1500);
        drop(guard);
    });
    for writer in &writers {
        let writer = writer.lock().expect("the writer");
        assert!(writer.rejected == 1 && !writer.keys.is_empty(), "{} changed servers once", writer.name);
        for (key, written) in &writer.keys {
            writer.check(&mut new, key);
            assert_eq!(new.int(&format!("BF.CARD {key}")), written.new, "{key}");
        }
    }
    wait_until("what expires to be gone", || new.list("KEYS volatile:*").is_empty().then_some(()));
    for (key, _) in SHAPES {
        assert!(said(&mut new, key) == said(&mut old, key), "{key}, which nobody wrote to");
    }
    assert_alike(&mut new, &mut old);
    assert_rollback(&ours, &peer);
}
