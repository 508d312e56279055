//! Tests the labels of `BF.INFO` and `LC.INFO`, and that reading facts about a key is no use of the key: under
//! `maxmemory` the server evicts keys by their last use (LRU) or by the number of uses (LFU).

use redis::Value;

use rollcall_testkit::client::show;
use rollcall_testkit::server::Server;

/// Commands that read facts about the key `f` or `c`.
const FACTS: [&str; 8] = [
    "BF.INFO f",
    "BF.INFO f SIZE",
    "BF.DEBUG f",
    "RF.INFO f",
    "RF.INFO f FILL",
    "RF.DEBUG f",
    "LC.INFO c",
    "LC.INFO c COUNT",
];
/// Commands that use these keys.
const USES: [&str; 4] = ["BF.EXISTS f a", "RF.CARD f", "LC.COUNT c", "LC.EXISTS c a"];

fn key_of(command: &str) -> &str {
    command.split(' ').nth(1).expect("a key")
}

#[test]
fn facts_do_not_make_a_key_look_used_often() {
    let server = Server::start();
    let mut client = server.client();
    // Each use counts, and none is forgotten.
    client.expect("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0", "+OK");
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
    for (commands, uses) in [(&FACTS[..], 0), (&USES[..], 1)] {
        for command in commands {
            let frequency = format!("OBJECT FREQ {}", key_of(command));
            let before = client.int(&frequency);
            client.cmd(command);
            assert_eq!(client.int(&frequency), before + uses, "{command}");
        }
    }
}

#[test]
fn facts_do_not_make_a_key_look_used_lately() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
    for (commands, is_use) in [(&FACTS[..], false), (&USES[..], true)] {
        for command in commands {
            let key = key_of(command);
            let Value::BulkString(dump) = client.cmd(&format!("DUMP {key}")) else { panic!("no dump of {key}") };
            let restore: [&[u8]; 7] = [b"RESTORE", key.as_bytes(), b"0", &dump, b"REPLACE", b"IDLETIME", b"1000"];
            assert_eq!(client.call(&restore), Value::Okay);
            client.cmd(command);
            assert_eq!(client.int(&format!("OBJECT IDLETIME {key}")) < 1000, is_use, "{command}");
        }
    }
}

/// Labels were simple strings, which some clients turn into `true`. Those of filters are, as in RedisBloom.
#[test]
fn labels_of_counters_are_bulk_strings() {
    let server = Server::start();
    let mut client = server.client();
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
