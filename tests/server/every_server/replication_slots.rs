//! Tests keys that move one by one with MIGRATE, and commands with keys of several slots.

use crate::every_server::commands_sets::SETS;
use rollcall_testkit::client::{Client, error_text, show};
use rollcall_testkit::cluster::cluster;
use rollcall_testkit::fixture::{assert_same, snapshot};
use rollcall_testkit::server::Server;

/// Keys in one slot, which the second node owns, each with a command that creates it.
const KEYS: [(&str, &str); 6] = [
    ("BF.MADD", "{x}filter"),
    ("BF.MADD", "{x}chain"),
    ("LC.ADD", "{x}exact"),
    ("LC.ADD", "{x}estimate"),
    ("BF.MADD", "{x}window"),
    ("LC.ADD", "{x}visitors"),
];

fn fill(client: &mut Client) {
    client.expect("BF.RESERVE {x}chain 0.01 10 EXPANSION 3", "+OK");
    client.expect("LC.RESERVE {x}estimate EXACT 0", "+OK");
    client.expect("BF.RESERVE {x}window 0.01 1000 WINDOW 1099511627776 REFRESH", "+OK");
    client.expect("LC.RESERVE {x}visitors EXACT 150 WINDOW 1000 MANUAL SLICES 20", "+OK");
    client.expect("LC.ADVANCE {x}visitors 77", "+OK");
    for (add, key) in KEYS {
        let items: Vec<String> = (0..200).map(|item| format!("item:{item}")).collect();
        client.cmd(&format!("{add} {key} {}", items.join(" ")));
    }
}

#[test]
fn keys_migrate_one_by_one() {
    let (from, to) = (Server::start(), Server::with_args("bf-initial-size 7 lc-exact-limit 3 hash-seed 5"));
    fill(&mut from.client());
    let before = snapshot(&mut from.client());
    for (_, key) in KEYS {
        from.client().expect(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", to.port()), "+OK");
    }
    from.client().expect("DBSIZE", "0");
    assert_same(&snapshot(&mut to.client()), &before);
}

#[test]
fn multi_key_commands_keep_to_one_slot() {
    let node = &cluster(2)[1];
    let mut client = node.client();
    fill(&mut client);
    client.expect("LC.MERGE {x}all {x}exact {x}estimate", "+OK");
    client.expect("LC.MERGE {x}all elsewhere", "-CROSSSLOT *");
    client.expect("LC.COUNT {x}all elsewhere", "-CROSSSLOT *");
    client.expect("BF.MERGE {x}filter elsewhere", "-CROSSSLOT *");
    for command in SETS {
        for (one, two) in [("", ""), (" SINCE -", " SINCE - 60")] {
            client.expect(&format!("{command} 2 {{x}}exact elsewhere{one}"), "-CROSSSLOT *");
            client.expect(&format!("{command} 3 {{x}}exact {{x}}missing elsewhere{one}"), "-CROSSSLOT *");
            // Time spans do not count as keys.
            let reply = client.cmd(&format!("{command} 2 {{x}}exact {{x}}missing{two}"));
            assert!(error_text(&reply).is_none(), "{command}{two}: {}", show(&reply));
        }
    }
}
