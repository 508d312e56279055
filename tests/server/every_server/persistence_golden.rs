//! Loads files that were written when the stored format was fixed: an RDB file, an AOF of appended commands, and a
//! rewritten AOF without an RDB part. Every later version must load them, on every server.
//!
//! The files are in `golden/`, with the digest of each value; `make golden` writes them again. Golden files of single
//! values are in the core library.

use std::fs;
use std::path::{Path, PathBuf};

use crate::effects::{appended, appending};
use crate::kinds::{KINDS, make};
use rollcall_testkit::{Client, Server, Setup, lines, text};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/golden").join(name)
}

/// A line for each key: its name, its type and its digest.
fn digests(client: &mut Client) -> String {
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.sort();
    let line = |key: &String| format!("{key} {} {}\n", client.text(&format!("TYPE {key}")), client.digest(key));
    keys.iter().map(line).collect()
}

/// Creates a value of every kind, and results of commands such as merges.
pub fn populate(client: &mut Client) {
    for (number, (_, lines)) in KINDS.iter().enumerate() {
        make(client, &format!("k{number:02}"), lines);
    }
    let more = lines(
        "BF.MERGE merged k01 k01; BF.MADD ? a b; BF.CLEAR ?; BF.ADMIT ? LIMIT 3 SEED 7 ITEMS a b c d
         LC.ADMIT admitted LIMIT 3 SEED 7 ITEMS a b c d; LC.MERGE united k08 k09; LC.ADVANCE k11 4
         RF.INSERT named CAPACITY 30 ERROR 0.2 EXPANSION 3 SEED 18446744073709551615 ITEMS a b",
    );
    make(client, "changed", &more);
}

/// Writes the golden files if `make golden` asks for it.
#[test]
fn files_are_written_when_asked_for() {
    if std::env::var_os("ROLLCALL_WRITE_GOLDEN").is_none_or(|value| value != "1") {
        return;
    }
    let (server, mut client) = appending(Setup::default().line("aof-use-rdb-preamble no")).with_client();
    populate(&mut client);
    fs::create_dir_all(golden("")).expect("a folder");
    fs::write(golden("digests.txt"), digests(&mut client)).expect("the digests");
    fs::write(golden("appended.aof"), appended(&server)).expect("the AOF");
    server.save();
    fs::copy(server.dir().join("dump.rdb"), golden("dump.rdb")).expect("the RDB file");
    server.rewrite_aof();
    fs::write(golden("rewritten.aof"), server.aof(".base.aof")).expect("the AOF");
}

#[test]
fn golden_files_are_loaded() {
    let digests_of_old = fs::read_to_string(golden("digests.txt")).expect("the digests");
    assert_eq!(digests_of_old.lines().count(), KINDS.len() + 5);
    for (name, as_name, appendonly) in [
        ("dump.rdb", "dump.rdb", "no"),
        // Without a list of files, an AOF is a single file in the server's folder.
        ("appended.aof", "appendonly.aof", "yes"),
        ("rewritten.aof", "appendonly.aof", "yes"),
    ] {
        let bytes = fs::read(golden(name)).expect("a golden file");
        let server = Setup::default().file(as_name, &bytes).line(&format!("appendonly {appendonly}")).start();
        assert_eq!(digests(&mut server.client()), digests_of_old, "{name}");
    }
}

/// New values must be equal to the values in the golden files.
#[test]
fn new_values_equal_the_golden_values() {
    let server = Server::start();
    populate(&mut server.client());
    let digests_of_old = fs::read_to_string(golden("digests.txt")).expect("the digests");
    assert_eq!(digests(&mut server.client()), digests_of_old);
}
