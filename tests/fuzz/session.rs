//! One run: a primary that gets random commands, its replica and its AOF.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use redis::Value;
use rollcall_fuzz::forged;

use crate::history::History;
use crate::pace::Pace;
use crate::sentence::{Speaker, Words};
use crate::values;
use rollcall_testkit::{Client, Pair, Setup, error_text, lines, show, text};

/// The name of the module in `COMMAND LIST`.
const MODULE: &str = "rollcall";

/// Number of commands between two comparisons of all values.
const ROUND: usize = 500;

/// Load-time arguments of the module. The limit for values also bounds the work of each command.
const ARGUMENTS: &str = "max-key-bytes 1mb hash-seed 7";

/// The largest number of chunks that are read of a dump.
const MOST_CHUNKS: usize = 40;

/// The largest fuzz input from which a damaged value is made, in bytes.
const MAX_INPUT: usize = 512;

/// Generic commands of the server. `K` stands for any key, and `N` for a number.
const FOR_ANY_KEY: &str =
    "COPY K K REPLACE; COPY K K; COPY K K REPLACE; RENAME K K; RENAMENX K K; DEL K; UNLINK K; EXPIRE K N; PEXPIRE K N
     EXPIREAT K N; PERSIST K; PERSIST K; TTL K; DUMP K; DUMP K; OBJECT ENCODING K; OBJECT IDLETIME K; MEMORY USAGE K
     MEMORY USAGE K SAMPLES N; TYPE K; TOUCH K K; EXISTS K K; GET K; DEBUG OBJECT K; DEBUG DIGEST-VALUE K K; SORT K
     SET K N; APPEND K N; RPUSH K a b; HSET K f N; SADD K a N; ZADD K 1 m; XADD K * f N; SCAN 0 COUNT N; RANDOMKEY
     INFO everything; INFO commandstats; GETDEL K";

/// Types of the server's own values. The order of their members in a payload may change when they are loaded.
const OTHER_TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

/// How often a command succeeded, and how often it was rejected.
#[derive(Default)]
struct Tally {
    served: usize,
    rejected: usize,
}

/// The servers, their clients, and a history of the commands.
pub struct Session {
    // The first field is dropped first, so the history is printed while the servers still run.
    history: History,
    speaker: Speaker,
    /// One client that speaks RESP2, and one that speaks RESP3.
    clients: [Client; 2],
    pace: Pace,
    pair: Pair,
    /// The lines of [`FOR_ANY_KEY`] that this server takes.
    generic: Vec<&'static str>,
    /// The kept inputs of the library's fuzz targets, from which payloads and chunks are made.
    inputs: BTreeMap<&'static str, Vec<Vec<u8>>>,
    tallies: BTreeMap<String, Tally>,
    /// Number of values whose payloads were compared so far.
    compared: usize,
    begun: Instant,
}

impl Session {
    /// Starts the servers.
    pub fn start(seed: u64) -> Session {
        // With these options, the AOF has every command unchanged until it is rewritten as commands.
        let persistence =
            ["appendonly yes", "appendfsync no", "aof-use-rdb-preamble no", "auto-aof-rewrite-percentage 0"];
        let primary = persistence.into_iter().fold(Setup::default().args(ARGUMENTS), Setup::line);
        let pair = Pair::of(primary, Setup::default());
        let mut clients = [pair.primary.client(), pair.primary.client3()];
        let speaker = Speaker::new(seed, &mut clients[0], MODULE);
        let pace = Pace::of(&mut clients[0]);
        let mut generic = lines(FOR_ANY_KEY);
        // With the C library's allocator, Redis 8.10.2 may crash on MEMORY USAGE (docs/operations.md, "Memory").
        let version = pair.primary.version();
        if !version.is_valkey && (version.major, version.minor) >= (8, 10) && clients[0].info("mem_allocator") == "libc"
        {
            generic.retain(|line| !line.starts_with("MEMORY USAGE"));
        }
        let inputs = ["rdb", "redisbloom", "payloads", "chunks"].map(|target| (target, kept_inputs(target)));
        Session {
            history: History::new(seed),
            speaker,
            clients,
            pace,
            pair,
            generic,
            inputs: inputs.into(),
            tallies: BTreeMap::new(),
            compared: 0,
            begun: Instant::now(),
        }
    }

    /// The number of commands sent so far.
    pub fn said(&self) -> usize {
        self.history.len()
    }

    /// The time of the slowest command.
    pub fn longest(&self) -> Duration {
        self.pace.longest()
    }

    /// Sends some hundred commands, then compares all values.
    pub fn round(&mut self) {
        let end = self.said() + ROUND;
        while self.said() < end {
            self.step();
        }
        self.look();
    }

    /// Restarts the primary from its AOF, checks that it has the same values, and returns a report of the run.
    pub fn finish(&mut self) -> String {
        let before = values(&mut self.clients[0]);
        self.pair.primary.restart();
        self.clients = [self.pair.primary.client(), self.pair.primary.client3()];
        assert_same(&values(&mut self.clients[0]), &before, "after a restart");
        let version = self.pair.primary.version();
        let mut report = format!(
            "{} commands in {:.0?} on {version:?}; {} values compared; the slowest:\n{}",
            self.said(),
            self.begun.elapsed(),
            self.compared,
            self.pace.report()
        );
        for command in &self.speaker.commands {
            let Tally { served, rejected } =
                self.tallies.get(&command.name).unwrap_or(&Tally { served: 0, rejected: 0 });
            let _ = write!(report, "{} {served}/{}, ", command.name, served + rejected);
            assert!(served + rejected > 0, "{} was never said", command.name);
            // Checks that every command with a number of keys or with payloads succeeded at least once. With wrong ones
            // only, its own code would never run.
            let is_picky = command.is_numbered() || command.name.ends_with(".mergedump");
            assert!(*served > 0 || !is_picky, "{} was never served", command.name);
        }
        let count = |of: fn(&Tally) -> usize| self.tallies.values().map(of).sum::<usize>();
        let (served, rejected) = (count(|tally| tally.served), count(|tally| tally.rejected));
        assert!(served.min(rejected) * 5 > self.said(), "{served} served and {rejected} rejected of {}", self.said());
        report
    }

    fn step(&mut self) {
        let random = &mut self.speaker.random;
        let client = usize::from(random.one_in(3));
        match random.below(100) {
            0..66 => drop({
                let words = self.speaker.command();
                self.say(client, words)
            }),
            66..76 => drop({
                let words = self.for_any_key();
                self.say(client, words)
            }),
            76..84 => self.restore(client),
            84..88 => self.load_forged_chunks(client),
            88..91 => self.transfer(client),
            91 => self.merge_payloads(client),
            92..95 => self.transaction(client),
            95..98 => self.script(client),
            98 => self.configure(client),
            _ => drop(self.say(client, vec![b"PING".to_vec()])),
        }
    }

    /// Sends a command and waits for its reply.
    fn say(&mut self, client: usize, words: Words) -> Value {
        self.history.push(&words);
        let start = self.pace.start();
        let reply = self.clients[client].call(&words);
        self.pace.end(start, &words);
        let error = error_text(&reply);
        if let Some(text) = &error {
            assert!(!text.contains("internal error") && !text.contains(['\r', '\n']), "{text}");
        }
        self.speaker.note(&words, error.as_deref());
        let tally = self.tallies.entry(String::from_utf8_lossy(&words[0]).to_lowercase()).or_default();
        *if error.is_some() { &mut tally.rejected } else { &mut tally.served } += 1;
        reply
    }

    fn for_any_key(&mut self) -> Words {
        let template = *self.speaker.random.of(&self.generic);
        let word = |word| match word {
            "K" => self.speaker.any_key(),
            "N" => values::integer(&mut self.speaker.random),
            other => other.as_bytes().to_vec(),
        };
        template.split(' ').map(word).collect()
    }

    /// A kept input of a fuzz target after random changes.
    fn input(&mut self, target: &str) -> Vec<u8> {
        let (inputs, random) = (&self.inputs[target], &mut self.speaker.random);
        let (input, other) = (random.below(inputs.len()), random.below(inputs.len()));
        random.changed(&inputs[input], &inputs[other], MAX_INPUT)
    }

    /// Restores a random payload with a correct checksum.
    fn restore(&mut self, client: usize) {
        let payload = if self.speaker.random.one_in(3) {
            forged::payload_of_redisbloom(&self.input("redisbloom"))
        } else {
            forged::payload(&self.input("rdb"))
        };
        let Some(mut payload) = payload else { return };
        let random = &mut self.speaker.random;
        if random.one_in(20) {
            payload = random.changed(&payload, &[], usize::MAX);
        }
        let time_to_live = if random.one_in(10) { values::integer(random) } else { b"0".to_vec() };
        let mut words = vec![b"RESTORE".to_vec(), self.speaker.any_key(), time_to_live, payload];
        if !self.speaker.random.one_in(10) {
            words.push(b"REPLACE".to_vec());
        }
        self.say(client, words);
    }

    /// Loads damaged chunks with correct checksums, mostly all into one key.
    fn load_forged_chunks(&mut self, client: usize) {
        let (is_filter, chunks) = forged::chunks(&self.input("chunks"));
        let Some(command) = self.command("loadchunk", |family| (family != "lc") == is_filter) else { return };
        let key = self.speaker.any_key();
        self.say(client, vec![b"DEL".to_vec(), key.clone()]);
        for (iterator, chunk) in chunks {
            let key = if self.speaker.random.one_in(50) { self.speaker.any_key() } else { key.clone() };
            self.say(client, vec![command.clone().into_bytes(), key, iterator.to_string().into_bytes(), chunk]);
        }
    }

    /// Merges payloads: those of keys, and damaged ones.
    fn merge_payloads(&mut self, client: usize) {
        let Some(command) = self.command("mergedump", |_| true) else { return };
        let family = command.trim_end_matches(".mergedump").to_owned();
        let mut words = vec![command.into_bytes(), self.speaker.key(&family)];
        for _ in 0..=self.speaker.random.up_to(3) {
            let key = self.speaker.key(&family);
            let payload = match self.say(client, vec![b"DUMP".to_vec(), key]) {
                Value::BulkString(payload) if self.speaker.random.one_in(2) => payload,
                _ => forged::any_payload(&self.input("payloads")),
            };
            words.push(payload);
        }
        self.say(client, words);
    }

    /// A command with this verb: mostly one of a family for which `is_asked` is true.
    fn command(&mut self, verb: &str, is_asked: impl Fn(&str) -> bool) -> Option<String> {
        let takes_any = self.speaker.random.one_in(20);
        let takes = |command: &&crate::grammar::Command| {
            command.name.split_once('.').is_some_and(|(_, own)| own == verb)
                && (takes_any || is_asked(command.family()))
        };
        let commands: Vec<String> =
            self.speaker.commands.iter().filter(takes).map(|command| command.name.clone()).collect();
        (!commands.is_empty()).then(|| self.speaker.random.of(&commands).clone())
    }

    /// Copies the chunks of a value to another key. One chunk may be left out or sent twice.
    fn transfer(&mut self, client: usize) {
        let Some(loading) = self.command("loadchunk", |_| true) else { return };
        let family = loading.trim_end_matches(".loadchunk").to_owned();
        let (from, to) = (self.speaker.key(&family), self.speaker.any_key());
        self.say(client, vec![b"DEL".to_vec(), to.clone()]);
        let mut iterator = b"0".to_vec();
        for _ in 0..MOST_CHUNKS {
            let dumping = format!("{family}.scandump").into_bytes();
            let reply = self.say(client, vec![dumping, from.clone(), iterator]);
            let Value::Array(pair) = reply else { return };
            let [Value::Int(next), chunk @ (Value::BulkString(_) | Value::SimpleString(_))] = &pair[..] else { return };
            if *next == 0 {
                return;
            }
            iterator = next.to_string().into_bytes();
            let chunk = match chunk {
                Value::BulkString(bytes) => bytes.clone(),
                other => text(other).into_bytes(),
            };
            for _ in 0..*self.speaker.random.of(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]) {
                let words = vec![loading.clone().into_bytes(), to.clone(), iterator.clone(), chunk.clone()];
                self.say(client, words);
            }
        }
    }

    fn transaction(&mut self, client: usize) {
        self.say(client, vec![b"MULTI".to_vec()]);
        for _ in 0..self.speaker.random.below(6) {
            let words = self.speaker.command();
            self.say(client, words);
        }
        let end = if self.speaker.random.one_in(6) { "DISCARD" } else { "EXEC" };
        let reply = self.say(client, vec![end.into()]);
        if let Value::Array(replies) = &reply {
            let internal = replies.iter().filter_map(error_text).find(|text| text.contains("internal error"));
            assert_eq!(internal, None);
        }
    }

    fn script(&mut self, client: usize) {
        let call = *self.speaker.random.of(&["call", "pcall"]);
        let protocol = if self.speaker.random.one_in(2) { "redis.setresp(3) " } else { "" };
        let script = format!("{protocol}return redis.{call}(unpack(ARGV))");
        let words = self.speaker.command();
        self.say(client, [vec![b"EVAL".to_vec(), script.into_bytes(), b"0".to_vec()], words].concat());
    }

    /// Sets a random option of the module, which applies to new keys. The size limit stays unchanged.
    fn configure(&mut self, client: usize) {
        let reply = self.clients[0].cmd(&format!("CONFIG GET {MODULE}.*"));
        let options: Vec<String> = rollcall_testkit::pairs(&reply).into_iter().map(|(name, _)| name).collect();
        let options: Vec<&String> = options.iter().filter(|name| !name.ends_with("max-key-bytes")).collect();
        let random = &mut self.speaker.random;
        let name = random.of(&options).as_bytes().to_vec();
        let value = if random.one_in(2) { values::integer(random) } else { values::double(random) };
        self.say(client, vec![b"CONFIG".to_vec(), b"SET".to_vec(), name, value]);
    }

    /// Checks that every value is equal after loading the RDB file and the AOF, and that the replica has the same
    /// values.
    fn look(&mut self) {
        for client in &mut self.clients {
            let mark = format!("mark:{}", self.history.len());
            assert_eq!(text(&client.call(&["ECHO", &mark])), mark, "replies are out of step");
        }
        let client = &mut self.clients[0];
        // No key may expire while values are compared, so expiry is removed. SCAN first deletes keys that have
        // expired. A loading server would drop them without telling replicas.
        let reply = client.cmd("SCAN 0 COUNT 1000000");
        let Value::Array(parts) = reply else { panic!("SCAN gave {}", show(&reply)) };
        for key in strings(&parts[1]) {
            client.call(&[b"PERSIST".to_vec(), key]);
        }
        let before = values(client);
        self.compared += before.values().filter(|value| value.is_ours()).count();
        self.pair.replica.wait_synced(&self.pair.primary);
        assert_same(&values(&mut self.pair.replica.client()), &before, "on the replica");
        self.pair.assert_no_errors();
        let after = if self.speaker.random.one_in(2) {
            self.clients[0].expect("DEBUG RELOAD", "+OK");
            "after it was loaded from the RDB file"
        } else {
            let is_rewritten = self.speaker.random.one_in(2);
            if is_rewritten {
                self.pair.primary.rewrite_aof();
            }
            self.clients[0].expect("DEBUG LOADAOF", "+OK");
            if is_rewritten { "after it was loaded from a rewritten AOF" } else { "after it was loaded from the AOF" }
        };
        assert_same(&values(&mut self.clients[0]), &before, after);
        let log = self.pair.primary.log();
        assert!(!log.contains("internal error"), "{log}");
    }
}

/// The strings in an array.
fn strings(reply: &Value) -> Vec<Vec<u8>> {
    let string = |element: &Value| match element {
        Value::BulkString(bytes) => bytes.clone(),
        other => panic!("no string: {}", show(other)),
    };
    let Value::Array(elements) = reply else { panic!("no array: {}", show(reply)) };
    elements.iter().map(string).collect()
}

/// Everything that the server reports about a value.
#[derive(PartialEq)]
struct Said {
    kind: String,
    digest: Value,
    time_to_live: Value,
    payload: Value,
}

impl Said {
    /// Whether the value has a type of this module.
    fn is_ours(&self) -> bool {
        !OTHER_TYPES.contains(&self.kind.as_str())
    }
}

/// The values of all keys.
fn values(client: &mut Client) -> BTreeMap<Vec<u8>, Said> {
    let keys = strings(&client.cmd("KEYS *"));
    let said = |key: Vec<u8>| {
        let mut ask = |words: &str| {
            let words: Words = words.split(' ').map(|word| word.as_bytes().to_vec()).chain([key.clone()]).collect();
            client.call(&words)
        };
        let kind = text(&ask("TYPE"));
        let (digest, time_to_live, payload) = (ask("DEBUG DIGEST-VALUE"), ask("PTTL"), ask("DUMP"));
        (key, Said { kind, digest, time_to_live, payload })
    };
    keys.into_iter().map(said).collect()
}

/// Panics unless both servers have the same values for all keys.
#[track_caller]
fn assert_same(found: &BTreeMap<Vec<u8>, Said>, expected: &BTreeMap<Vec<u8>, Said>, when: &str) {
    for (key, expected) in expected {
        let (shown, kind) = (key.escape_ascii(), &expected.kind);
        let found = found.get(key).unwrap_or_else(|| panic!("the {kind} {shown} is lost {when}"));
        assert_eq!(found.kind, *kind, "the type of {shown} {when}");
        assert_eq!(show(&found.digest), show(&expected.digest), "the digest of the {kind} {shown} {when}");
        assert_eq!(found.time_to_live, expected.time_to_live, "the time to live of the {kind} {shown} {when}");
        let is_same = found.payload == expected.payload || !expected.is_ours();
        let payloads = || [&found.payload, &expected.payload].map(show);
        assert!(is_same, "the payload of the {kind} {shown} {when}: {:?}", payloads());
    }
    let new: Vec<_> = found.keys().filter(|key| !expected.contains_key(*key)).collect();
    assert!(new.is_empty(), "keys that were not there {when}: {new:?}");
}

/// The kept inputs of a fuzz target.
fn kept_inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("an input")).collect()
}
