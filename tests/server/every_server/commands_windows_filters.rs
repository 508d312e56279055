//! Tests windowed filters: which items are found, when they expire, and which are counted.

use redis::Value;

use rollcall_testkit::client::{Client, show, with_items};
use rollcall_testkit::server::Server;

#[track_caller]
fn advance(client: &mut Client, key: &str, slice: u64) {
    client.expect(&format!("BF.ADVANCE {key} {slice}"), "+OK");
}

#[track_caller]
fn exists(client: &mut Client, key: &str, item: &str) -> bool {
    client.int(&format!("BF.EXISTS {key} {item}")) == 1
}

#[test]
fn every_command_that_adds_refreshes() {
    let server = Server::start();
    let mut client = server.client();
    for line in ["BF.ADD k a", "BF.MADD k a", "BF.INSERT k ITEMS a", "BF.ADMIT k LIMIT 0 ITEMS a"] {
        client.cmd("DEL k");
        client.expect("BF.INSERT k WINDOW 40 MANUAL SLICES 4 REFRESH ITEMS a", "[1]");
        advance(&mut client, "k", 3);
        client.cmd(line);
        advance(&mut client, "k", 7);
        assert!(exists(&mut client, "k", "a"), "{line}");
        advance(&mut client, "k", 8);
        assert!(!exists(&mut client, "k", "a"), "{line}");
    }
    // Commands that only look up or reject do not renew items.
    for line in ["BF.EXISTS k a", "BF.ADMIT k LIMIT 1 ALL ITEMS a b", "BF.ADMIT k LIMIT 9 DRYRUN ITEMS a"] {
        client.cmd("DEL k");
        client.expect("BF.INSERT k WINDOW 40 MANUAL SLICES 4 REFRESH ITEMS a", "[1]");
        advance(&mut client, "k", 3);
        client.cmd(line);
        advance(&mut client, "k", 5);
        assert!(!exists(&mut client, "k", "a"), "{line}");
    }
}

#[test]
fn debug_reports_every_sub_filter() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("BF.RESERVE k 0.01 1000 WINDOW 40 MANUAL SLICES 4", "+OK");
    for slice in 0..3_u64 {
        advance(&mut client, "k", slice);
        client.call(&with_items("BF.MADD k", "x", 10 * slice..10 * slice + 10));
    }
    let lines = client.list("BF.DEBUG k");
    assert!(lines.len() >= 4, "{}", show(&Value::Array(lines.clone())));
    client.expect("BF.INFO k FILTERS", "[3]");
    let fpr = client.list("BF.INFO k FPR");
    assert_eq!(fpr.len(), 1);
}
