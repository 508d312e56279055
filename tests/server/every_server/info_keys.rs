//! Tests the labels of `BF.INFO` and `LC.INFO`, and what newer servers report about keys.
//!
//! Also tests that reading facts about a key is no use of the key. Under `maxmemory` the server evicts keys by their
//! last use (LRU), their number of uses (LFU) or their last change (LRM).

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, lines, show};

/// Commands that read facts about the key `f` or `c`.
const FACTS: &str =
    "BF.INFO f; BF.INFO f SIZE; BF.DEBUG f; RF.INFO f; RF.INFO f FILL; RF.DEBUG f; LC.INFO c; LC.INFO c COUNT";
/// Commands that use these keys.
const USES: [&str; 4] = ["BF.EXISTS f a", "RF.CARD f", "LC.COUNT c", "LC.EXISTS c a"];
/// Commands that are rejected or change nothing: `f` is full, and `c` has only `a`.
const NO_CHANGES: &str =
    "BF.ADD f a; BF.ADD f b; BF.RESERVE f 0.01 1; BF.ADMIT f LIMIT 1 ITEMS b; BF.MERGE f f; BF.ADD c a; LC.ADD c a
     LC.RESERVE c; LC.ADMIT c LIMIT 1 ITEMS b; LC.LOADCHUNK c 1 a; LC.ADD f a";
/// Commands that change these keys.
const CHANGES: [&str; 2] = ["BF.CLEAR f", "LC.ADD c b"];

fn key_of(command: &str) -> &str {
    command.split(' ').nth(1).expect("a key")
}

/// Replaces a key by a copy that was used last a thousand seconds ago.
fn make_idle(client: &mut Client, key: &str) {
    let dump = client.dump(key);
    let restore: [&[u8]; 7] = [b"RESTORE", key.as_bytes(), b"0", &dump, b"REPLACE", b"IDLETIME", b"1000"];
    assert_eq!(client.call(&restore), Value::Okay);
}

#[test]
fn info_and_debug_do_not_raise_the_frequency() {
    let (_server, mut client) = Server::start().with_client();
    // With these options, every use counts, and the counter never decays.
    client.expect("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0", "+OK");
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
    for (commands, uses) in [(lines(FACTS), 0), (USES.to_vec(), 1)] {
        for command in commands {
            let frequency = format!("OBJECT FREQ {}", key_of(command));
            let before = client.int(&frequency);
            client.cmd(command);
            assert_eq!(client.int(&frequency), before + uses, "{command}");
        }
    }
}

/// Sends each command to an idle key, and checks whether the key counts as used afterwards.
fn check_idle(client: &mut Client, commands: &[&str], is_use: bool) {
    for command in commands {
        let key = key_of(command);
        make_idle(client, key);
        client.cmd(command);
        assert_eq!(client.int(&format!("OBJECT IDLETIME {key}")) < 1000, is_use, "{command}");
    }
}

#[test]
fn info_and_debug_do_not_reset_the_idle_time() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
    for (commands, is_use) in [(lines(FACTS), false), (USES.to_vec(), true)] {
        check_idle(&mut client, &commands, is_use);
    }
}

/// Servers count a command that opens a module's key for writing as a change, unless the module opts out.
#[test]
fn commands_that_change_nothing_keep_the_lrm_time() {
    let (server, mut client) = Server::start().with_client();
    if client.cmd("CONFIG SET maxmemory-policy allkeys-lrm") != Value::Okay {
        println!("skipped: {:?} does not evict by the last change", server.version());
        return;
    }
    client.expect("BF.RESERVE f 0.01 1 NONSCALING", "+OK");
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
    for (commands, is_change) in [(lines(NO_CHANGES), false), (CHANGES.to_vec(), true)] {
        check_idle(&mut client, &commands, is_change);
    }
}

/// A regression test: labels were simple strings, which some clients turn into `true`. Labels of filters still are,
/// as in RedisBloom.
#[test]
fn labels_of_counters_are_bulk_strings() {
    let (server, mut client) = Server::start().with_client();
    client.expect("LC.ADD c a", "1");
    client.expect("BF.ADD f a", "1");
    let labels = |reply: Value| -> Vec<Value> {
        match reply {
            Value::Array(items) => items.into_iter().step_by(2).collect(),
            Value::Map(pairs) => pairs.into_iter().map(|(label, _)| label).collect(),
            other => panic!("{}", show(&other)),
        }
    };
    for mut client in [server.client(), server.client3()] {
        let of_counter = labels(client.cmd("LC.INFO c"));
        assert!(of_counter.len() > 9, "{of_counter:?}");
        assert!(of_counter.iter().all(|label| matches!(label, Value::BulkString(_))), "{of_counter:?}");
        let of_filter = labels(client.cmd("BF.INFO f"));
        assert_eq!(of_filter.len(), 5);
        assert!(of_filter.iter().all(|label| matches!(label, Value::SimpleString(_))), "{of_filter:?}");
    }
    assert_eq!(labels(server.client3().cmd("LC.INFO c COUNT")), [Value::BulkString(b"Count".to_vec())]);
}

/// Redis 8.10 finds the keys that take the most time, and makes histograms of key sizes.
#[test]
fn hot_keys_include_those_of_modules_and_histograms_do_not() {
    let plain = Server::start();
    if plain.client().cmd("CONFIG GET key-memory-histograms") == Value::Array(vec![]) {
        println!("skipped: {:?} has no histograms of memory", plain.version());
        return;
    }
    let (_server, mut client) = Setup::default().line("key-memory-histograms yes").start().with_client();
    client.expect("HOTKEYS START METRICS 2 CPU NET", "+OK");
    client.expect("BF.ADD filter a", "1");
    client.expect("LC.ADD counter a", "1");
    client.expect("LC.MERGE merged counter", "+OK");
    client.expect("HOTKEYS STOP", "+OK");
    let hot = show(&client.cmd("HOTKEYS GET"));
    for key in ["filter", "counter", "merged"] {
        assert_eq!(hot.matches(key).count(), 2, "{hot}");
    }
    client.expect("SET text a", "+OK");
    let sizes = client.text("INFO keysizes");
    assert_eq!(sizes.matches("distrib_").count(), 1, "{sizes}");
    // INCREX, DIGEST, and the conditions of DELEX and SET, work only on strings (Redis 8.10).
    for command in ["INCREX filter", "DIGEST filter", "DELEX filter IFEQ a", "SET filter a IFEQ b"] {
        assert!(matches!(client.cmd(command), Value::ServerError(_)), "{command}");
    }
    client.expect("DELEX filter", "1");
}
