//! Tests the metadata of the commands: flags, categories, documentation, keys.

use std::collections::BTreeSet;

use redis::Value;

use crate::every_server::commands_sets::SETS;
use rollcall_testkit::{Server, error_text, field, lines, number, show, text, words};

/// A command, whether it writes, an example call, and the keys in that call.
pub const COMMANDS: [(&str, bool, &str, &str); 38] = [
    ("bf.reserve", true, "BF.RESERVE k 0.01 100 EXPANSION 3", "k"),
    ("bf.add", true, "BF.ADD k i", "k"),
    ("bf.madd", true, "BF.MADD k i j l", "k"),
    ("bf.insert", true, "BF.INSERT k CAPACITY 5 ITEMS i j", "k"),
    ("bf.admit", true, "BF.ADMIT k LIMIT 5 ALL CAPACITY 5 EX 100 ITEMS i j", "k"),
    ("bf.exists", false, "BF.EXISTS k i", "k"),
    ("bf.mexists", false, "BF.MEXISTS k i j", "k"),
    ("bf.card", false, "BF.CARD k", "k"),
    ("bf.info", false, "BF.INFO k CAPACITY", "k"),
    ("bf.advance", true, "BF.ADVANCE k 7", "k"),
    ("bf.merge", true, "BF.MERGE d s t u", "d s t u"),
    ("bf.clear", true, "BF.CLEAR k", "k"),
    ("bf.scandump", false, "BF.SCANDUMP k 0", "k"),
    ("bf.loadchunk", true, "BF.LOADCHUNK k 1 data", "k"),
    ("bf.debug", false, "BF.DEBUG k", "k"),
    ("lc.reserve", true, "LC.RESERVE k ERROR 0.1", "k"),
    ("lc.add", true, "LC.ADD k i j", "k"),
    ("lc.insert", true, "LC.INSERT k ITEMS i j", "k"),
    ("lc.admit", true, "LC.ADMIT k LIMIT 5 DRYRUN ITEMS i j", "k"),
    ("lc.rem", true, "LC.REM k i j", "k"),
    ("lc.count", false, "LC.COUNT k l m", "k l m"),
    ("lc.countsince", false, "LC.COUNTSINCE k 60", "k"),
    ("lc.history", false, "LC.HISTORY k", "k"),
    ("lc.advance", true, "LC.ADVANCE k CLOCK", "k"),
    ("lc.merge", true, "LC.MERGE d s t", "d s t"),
    ("lc.unioncard", false, "LC.UNIONCARD 2 k l", "k l"),
    ("lc.intercard", false, "LC.INTERCARD 3 k l m SINCE 60", "k l m"),
    ("lc.diffcard", false, "LC.DIFFCARD 3 k l m SINCE 60 - 5", "k l m"),
    ("lc.union", false, "LC.UNION 1 k", "k"),
    ("lc.inter", false, "LC.INTER 2 k l SINCE -", "k l"),
    ("lc.exists", false, "LC.EXISTS k i", "k"),
    ("lc.mexists", false, "LC.MEXISTS k i j", "k"),
    ("lc.diff", false, "LC.DIFF 3 k l m", "k l m"),
    ("lc.clear", true, "LC.CLEAR k", "k"),
    ("lc.members", false, "LC.MEMBERS k", "k"),
    ("lc.info", false, "LC.INFO k COUNT", "k"),
    ("lc.scandump", false, "LC.SCANDUMP k 0", "k"),
    ("lc.loadchunk", true, "LC.LOADCHUNK k 1 data", "k"),
];

/// The words of an example call with `key` at one place of its keys, and `other` at the others.
pub fn call_at<'a>(call: &'a str, keys: &str, at: &str, key: &'a str, other: &'a str) -> Vec<&'a str> {
    let place = |word| match word {
        word if word == at => key,
        word if words(keys).contains(&word) => other,
        word => word,
    };
    words(call).into_iter().map(place).collect()
}

/// The names in an array or set of strings, in lower case.
#[track_caller]
pub fn names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(items) | Value::Set(items) => items.iter().map(|item| text(item).to_lowercase()).collect(),
        other => panic!("expected names, got {}", show(other)),
    }
}

#[test]
fn the_version_is_that_of_the_package_everywhere() {
    let (_server, mut client) = Server::start().with_client();
    let parts = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    let expected = parts.iter().fold(0.0, |all, part| 100.0 * all + part.parse::<f64>().expect("a number"));
    let modules = client.list("MODULE LIST");
    let ours = modules.iter().find(|module| text(&field(module, "name")) == "rollcall").expect("our module");
    assert_eq!(number(&field(ours, "ver")), expected);
    let reported = client.text("INFO rollcall");
    let version = concat!("rollcall_version:", env!("CARGO_PKG_VERSION"));
    assert!(reported.lines().any(|line| line == version), "{reported}");
}

#[test]
fn acl_categories_hold_the_commands_of_their_family() {
    let (server, mut client) = Server::start().with_client();
    if !server.version().has_acl_categories() {
        // Older servers do not support categories of modules, and return an error.
        assert!(error_text(&client.cmd("ACL CAT counting")).is_some());
        return;
    }
    let mut user = server.client_as("some", "~* -@all +@counting");
    user.expect("LC.ADD c a", "1");
    user.expect("BF.ADD f a", "-NOPERM *");
    let lists = server.version().lists_acl_categories();
    for (category, prefix, twin) in [("bloom", "bf.", "rf."), ("counting", "lc.", "lc.")] {
        let found = names(&client.cmd(&format!("ACL CAT {category}")));
        for (name, ..) in COMMANDS.iter().filter(|(name, ..)| name.starts_with(prefix)) {
            assert_eq!(found.contains(*name), lists, "{name} and @{category}");
        }
        assert!(found.iter().all(|name| name.starts_with(prefix) || name.starts_with(twin)), "{found:?}");
    }
    // Each command is also in the server's category for its flags, `read` or `write`.
    for (category, writing) in [("read", false), ("write", true)] {
        let found = names(&client.cmd(&format!("ACL CAT {category}")));
        for (name, writes, ..) in COMMANDS {
            assert_eq!(found.contains(name), writes == writing, "{name} and @{category}");
        }
    }
}

#[test]
fn users_can_be_limited_to_reading() {
    let (server, mut admin) = Server::start().with_client();
    admin.expect("BF.ADD r:f a", "1");
    admin.expect("LC.ADD r:c a", "1");
    // A user whose commands are limited. On servers without categories of modules, each command is named.
    let reads = COMMANDS.iter().filter(|(_, writes, ..)| !writes);
    let commands: Vec<_> = match server.version().has_acl_categories() {
        true => vec!["+@read".to_owned()],
        false => reads.map(|(name, ..)| format!("+{name}")).collect(),
    };
    let mut reader = server.client_as("reader", &format!("~* -@all {}", commands.join(" ")));
    // A user whose keys are limited: keys with `r:` may be read, and keys with `w:` may be read and written.
    let mut keeper = server.client_as("keeper", "+@all %R~r:* %RW~w:*");
    for command in ["BF.EXISTS r:f a", "LC.COUNT r:c", "BF.INFO r:f", "LC.MEMBERS r:c", "LC.COUNTSINCE r:x 1"] {
        for client in [&mut reader, &mut keeper] {
            client.run(command);
        }
    }
    for (command, span) in SETS.iter().flat_map(|command| [(command, ""), (command, " SINCE -")]) {
        for client in [&mut reader, &mut keeper] {
            client.run(&format!("{command} 2 r:c r:x{span}"));
        }
        keeper.expect(&format!("{command} 2 r:c x:c{span}"), "-NOPERM *");
        keeper.expect(&format!("{command} 3 x:c r:c r:x{span}"), "-NOPERM *");
    }
    for command in lines(
        "BF.ADD r:f b; LC.ADD r:c b; BF.MERGE r:f w:f; LC.MERGE r:c w:c; BF.CLEAR r:f; LC.CLEAR r:c; LC.REM r:c a",
    ) {
        for client in [&mut reader, &mut keeper] {
            client.expect(command, "-NOPERM *");
        }
    }
    keeper.expect_each(
        "BF.MERGE w:f r:f => +OK; LC.MERGE w:c r:c => +OK; BF.ADD w:f b => 1; LC.ADD w:c b => 1; LC.COUNT r:c w:c => 2
         LC.COUNT r:c x:c => -NOPERM *; LC.UNIONCARD 1 r:c => [1, \"0\"]; LC.MERGE w:c r:c x:c => -NOPERM *",
    );
}

#[test]
fn getkeys_finds_every_key_and_nothing_else() {
    let (_server, mut client) = Server::start().with_client();
    for (name, _, call, keys) in COMMANDS {
        let call: Vec<_> = ["COMMAND", "GETKEYS"].into_iter().chain(words(call)).collect();
        match client.call(&call) {
            Value::Array(found) => assert_eq!(found.iter().map(text).collect::<Vec<_>>(), words(keys), "{name}"),
            other => panic!("{name}: {}", show(&other)),
        }
    }
}

#[test]
fn a_read_only_replica_takes_reads_and_rejects_writes() {
    let primary = Server::start();
    primary.client().expect("BF.ADD k i", "1");
    primary.client().expect("LC.ADD c i", "1");
    let replica = Server::start();
    replica.replicate(&primary);
    let mut client = replica.client();
    for (name, writes, call, _) in COMMANDS {
        let reply = client.cmd(call);
        let error = error_text(&reply).unwrap_or_default();
        assert_eq!(error.starts_with("READONLY"), writes, "{name}: {}", show(&reply));
    }
    client.expect("BF.EXISTS k i", "1");
    client.expect("LC.COUNT c", "1");
}
