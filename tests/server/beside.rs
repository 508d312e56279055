//! Servers for each value of the option `commands`, with RedisBloom if BF.* are its commands, and data for these
//! servers.

use std::collections::BTreeMap;
use std::path::Path;

use redis::Value;

use rollcall_testkit::{Client, Setup, add_many, lines, show, text};

/// The values of the option `commands`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mode {
    All,
    Beside,
    Lc,
}

pub const MODES: [Mode; 3] = [Mode::All, Mode::Beside, Mode::Lc];

impl Mode {
    /// Adds the option to a setup, and RedisBloom if the module does not offer BF.*.
    pub fn of(self, setup: Setup, peer: &Path) -> Setup {
        let setup = setup.without_modules_before();
        match self {
            Mode::All => setup.args("commands all"),
            Mode::Beside => setup.args("commands beside").module_before(peer),
            Mode::Lc => setup.args("commands lc").module_before(peer),
        }
    }

    pub fn setup(self, peer: &Path) -> Setup {
        self.of(Setup::default(), peer)
    }

    /// The prefix of the commands that create filters in the layout `lines` by default; `None` if there are none.
    pub fn of_lines(self) -> Option<&'static str> {
        match self {
            Mode::All => Some("BF"),
            Mode::Beside => Some("RF"),
            Mode::Lc => None,
        }
    }
}

/// Creates filters in the layout `lines` by the commands with this prefix.
pub fn fill_lines(client: &mut Client, prefix: &str) {
    let line = |line: &str| line.replace('@', prefix);
    for make in lines(
        "@.RESERVE empty 0.01 100; @.RESERVE chain 0.01 10 EXPANSION 3; @.RESERVE full 0.0001 2 NONSCALING
         @.RESERVE seeded 0.01 100 SEED 18446744073709551615; @.RESERVE left 0.001 100; @.RESERVE right 0.001 100
         @.RESERVE cleared 0.01 10; @.RESERVE window 0.01 100 WINDOW 40 MANUAL SLICES 4 REFRESH
         @.RESERVE big 0.01 1000000",
    ) {
        client.expect(&line(make), "+OK");
    }
    for (key, count) in [("default", 60), ("full", 2), ("chain", 300), ("seeded", 40), ("left", 30), ("cleared", 25)] {
        add_many(client, &format!("{prefix}.MADD {key}"), "item:", 0..count);
    }
    add_many(client, &line("@.MADD right"), "other:", 0..30);
    for (slice, items) in [(3, 0..40), (4, 30..60)] {
        client.expect(&line(&format!("@.ADVANCE window {slice}")), "+OK");
        add_many(client, &line("@.MADD window"), "item:", items);
    }
    for change in ["@.MERGE merged left right", "@.CLEAR cleared", "@.ADMIT admitted LIMIT 2 ITEMS a b c"] {
        client.cmd(&line(change));
    }
    let Value::Array(dumped) = client.cmd(&line("@.SCANDUMP big 0")) else { panic!("an array") };
    let [Value::Int(iterator), Value::BulkString(header)] = &dumped[..] else { panic!("{dumped:?}") };
    let load = [line("@.LOADCHUNK").into_bytes(), b"half".to_vec(), iterator.to_string().into_bytes(), header.clone()];
    assert_eq!(client.call(&load), Value::Okay);
}

/// Creates counters.
pub fn fill_counters(client: &mut Client) {
    add_many(client, "LC.ADD exact", "item:", 0..100);
    add_many(client, "LC.ADD estimate", "item:", 0..30_000);
    client.expect("LC.INSERT counted WINDOW 40 MANUAL ITEMS a b", "2");
}

/// Creates classic filters by BF.*, of this module or of RedisBloom.
pub fn fill_classic(client: &mut Client, is_ours: bool) {
    let layout = if is_ours { " LAYOUT classic" } else { "" };
    client.expect(&format!("BF.RESERVE classic 0.01 100{layout}"), "+OK");
    client.expect(&format!("BF.RESERVE classics 0.01 10 EXPANSION 3{layout}"), "+OK");
    add_many(client, "BF.MADD classic", "item:", 0..90);
    add_many(client, "BF.MADD classics", "item:", 0..200);
}

/// The type and the content of every key. RedisBloom's digests differ from this module's, so RedisBloom's filters are
/// represented by their payloads.
pub fn values(client: &mut Client) -> BTreeMap<String, String> {
    let keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    let value = |key: String| {
        let kind = client.text(&format!("TYPE {key}"));
        let content = match kind.as_str() {
            "MBbloom--" => show(&client.cmd(&format!("DUMP {key}"))),
            _ => client.digest(&key),
        };
        (key, format!("{kind} {content}"))
    };
    keys.into_iter().map(value).collect()
}

/// Panics unless the values of two servers are equal.
#[track_caller]
pub fn assert_same_values(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>, what: &str) {
    let differ: Vec<_> = one.keys().chain(other.keys()).filter(|&key| one.get(key) != other.get(key)).collect();
    assert!(differ.is_empty(), "{what}: {differ:?} differ");
}
