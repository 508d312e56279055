//! Tests a panic while a value is saved: the server must not leave a file that lacks part of the value.

use std::fs;
use std::path::PathBuf;

use crate::neighbour::hosted;
use rollcall_testkit::{Client, Server, error_text, show, wait_until};

/// Starts a server with a counter and with filters of each data type, and connects a client.
fn server_with_values(line: &str) -> (Server, Client) {
    let (server, mut client) = hosted("").line(line).start().with_client();
    client.expect("LC.ADD counter a b c", "3");
    client.expect("BF.MADD lines a b", "[1, 1]");
    client.expect("BF.RESERVE classic 0.01 100 LAYOUT classic", "+OK");
    (server, client)
}

/// Every data file of the server with its content.
fn files(server: &Server) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = [server.dir().to_owned(), server.dir().join("appendonlydir")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "rdb" || kind == "aof"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

#[test]
fn a_panic_while_saving_fails_the_save_and_keeps_the_file() {
    let (mut server, mut client) = server_with_values("appendonly no");
    server.save();
    let before = files(&server);
    assert_eq!(before.len(), 1);
    client.expect("LC.ADD counter d", "1");
    // Saving a value of any data type calls one of these functions, so each of them panics.
    for function in ["RedisModule_SaveUnsigned", "RedisModule_SaveStringBuffer"] {
        client.expect(&format!("HOST.BREAK {function}"), "1");
        let saved = client.cmd("SAVE");
        assert!(error_text(&saved).is_some(), "{function}: SAVE gave {}", show(&saved));
        client.expect("BGSAVE", "+Background saving started");
        wait_until("the background save to end", || (client.info_number("rdb_bgsave_in_progress") == 0).then_some(()));
        assert_eq!(client.info("rdb_last_bgsave_status"), "err", "{function}");
        client.expect("CONFIG SET stop-writes-on-bgsave-error no", "+OK");
        client.int("HOST.MEND");
        assert!(files(&server) == before, "{function}: the file has changed");
    }
    assert!(server.log().contains("internal error in rdb_save"), "{}", server.log());
    server.save();
    server.restart();
    server.client().expect("LC.COUNT counter", "4");
    server.client().expect("BF.CARD lines", "2");
}

#[test]
fn a_dump_that_a_panic_cut_off_is_not_restored() {
    let (mut server, mut client) = server_with_values("appendonly no");
    for key in ["counter", "lines", "classic"] {
        client.expect("HOST.BREAK RedisModule_SaveStringBuffer", "1");
        let dump = client.dump(key);
        client.int("HOST.MEND");
        let restored = client.restore("restored", &dump);
        assert!(error_text(&restored).is_some(), "{key}: {}", show(&restored));
        client.expect("EXISTS restored", "0");
    }
    server.assert_up();
}

#[test]
fn a_panic_while_the_aof_is_rewritten_keeps_the_aof() {
    let (mut server, mut client) = server_with_values("appendonly yes");
    client.expect("CONFIG SET aof-use-rdb-preamble no", "+OK");
    wait_until("the first rewrite to end", || (client.info_number("aof_rewrite_in_progress") == 0).then_some(()));
    client.expect("HOST.BREAK RedisModule_EmitAOF", "1");
    client.text("BGREWRITEAOF");
    wait_until("the rewrite to fail", || (client.info("aof_last_bgrewrite_status") == "err").then_some(()));
    client.int("HOST.MEND");
    assert!(server.log().contains("internal error in aof_rewrite"), "{}", server.log());
    server.restart();
    server.client().expect("LC.COUNT counter", "3");
    server.client().expect("BF.CARD lines", "2");
}
