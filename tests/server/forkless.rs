//! Tests the support for Valkey 9.2's saves without a fork. The test module `neighbour.c` imitates such a server.
//!
//! `core/tests/library.rs` tests that values can be saved on another thread.

use crate::metadata::COMMANDS;
use crate::neighbour::hosted;
use rollcall_testkit::{assert_same, error_text, populate, show, snapshot};

const HANDLE_ATOMIC_SLOT_MIGRATION: i64 = 1 << 5;
const HANDLE_FORKLESS: i64 = 1 << 6;

/// Without the option, the module would block saves without a fork for the whole server. In Redis the same bit may mean
/// something else.
#[test]
fn the_option_is_set_where_the_server_knows_it() {
    let both = HANDLE_ATOMIC_SLOT_MIGRATION | HANDLE_FORKLESS;
    for (server, expected) in
        [("valkey knows 127", both), ("valkey knows 63", HANDLE_ATOMIC_SLOT_MIGRATION), ("valkey knows 31", 0)]
    {
        let server = hosted(server).start();
        assert_eq!(server.client().int("HOST.OPTIONS") & both, expected);
    }
    let redis = hosted("knows 127").start();
    if !redis.version().is_valkey {
        assert_eq!(redis.client().int("HOST.OPTIONS") & both, 0);
    }
}

/// A regression test: for a key that is being saved, the server passes null. The module treated the key as missing,
/// so it dropped items that it had reported as added.
#[test]
fn a_key_being_saved_is_not_missing() {
    let (_server, mut client) = hosted("").line("appendonly yes").start().with_client();
    for line in ["BF.MADD d a b", "BF.MADD s c", "BF.INSERT k WINDOW 40 MANUAL ITEMS a"] {
        client.cmd(line);
    }
    populate(&mut client);
    let (before, changes) = (snapshot(&mut client), client.info("rdb_changes_since_last_save"));
    client.expect("HOST.USE 1", "1");
    for key in ["k", "bf:chain", "lc:exact", "missing"] {
        for (_, writes, line, _) in COMMANDS {
            let line = line.replace(" k ", &format!(" {key} ")).replace(" k", &format!(" {key}"));
            let reply = client.cmd(&line);
            let is_rejected =
                error_text(&reply).is_some_and(|error| error.starts_with("TRYAGAIN the server is saving"));
            assert_eq!(is_rejected, writes, "{line}: {}", show(&reply));
        }
    }
    assert_eq!(client.info("rdb_changes_since_last_save"), changes);
    client.expect("HOST.USE 0", "0");
    assert_same(&snapshot(&mut client), &before);
}
