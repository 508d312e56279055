//! Tests which state a restart restores, from the RDB file and from the AOF.

use std::fs;

use crate::effects::commands;
use rollcall_testkit::{OTHER_DEFAULTS, Server, Setup, add_many, assert_same, go_on, populate, snapshot};

#[test]
fn aof_replays_every_command() {
    let (mut server, mut client) = Setup::default().line("appendonly yes").start().with_client();
    populate(&mut client);
    // Keys that got their parameters from defaults, which are others after the restart.
    for line in ["BF.ADD bf:a x", "BF.INSERT bf:c ITEMS x", "LC.INSERT lc:c ITEMS x", "LC.MERGE lc:e lc:missing"] {
        client.cmd(line);
    }
    go_on(&mut client);
    let before = snapshot(&mut client);
    server.restart_with_args(OTHER_DEFAULTS);
    assert_same(&snapshot(&mut server.client()), &before);
}

#[test]
fn rewritten_aof_brings_everything_back() {
    for preamble in ["yes", "no"] {
        let setup = Setup::default().line("appendonly yes").line(&format!("aof-use-rdb-preamble {preamble}"));
        let (mut server, mut client) = setup.start().with_client();
        populate(&mut client);
        let before = snapshot(&mut client);
        server.rewrite_aof();
        server.restart_with_args(OTHER_DEFAULTS);
        let mut client = server.client();
        assert_same(&snapshot(&mut client), &before);
        // Commands appended after the rewrite are restored.
        for line in ["BF.INSERT bf:new ITEMS a b", "BF.CLEAR bf:default", "BF.MERGE bf:left bf:right"] {
            client.run(line);
        }
        add_many(&mut client, "LC.INSERT lc:new ITEMS", "x", 0..300);
        client.expect("LC.MERGE lc:merged lc:many", "+OK");
        client.expect("RENAME lc:exact lc:renamed", "+OK");
        let before = snapshot(&mut client);
        server.restart();
        assert_same(&snapshot(&mut server.client()), &before);
    }
}

#[test]
fn rewritten_aof_is_in_pieces() {
    let server = Setup::default().line("appendonly yes").line("aof-use-rdb-preamble no").start();
    // A filter of 36 MB.
    server.client().expect("BF.RESERVE bf:big 0.001 20000000 NONSCALING", "+OK");
    add_many(&mut server.client(), "BF.MADD bf:big", "item:", 0..20_000);
    server.client().cmd("LC.ADD lc:small a b c");
    server.rewrite_aof();
    let longest = |words: &Vec<Vec<u8>>| words.iter().map(Vec::len).max().expect("words");
    let name = |words: &Vec<Vec<u8>>| String::from_utf8_lossy(&words[0]).to_uppercase();
    let commands: Vec<_> =
        commands(&server.aof(".base.aof")).iter().map(|words| (name(words), longest(words))).collect();
    assert!(commands.iter().all(|(_, longest)| *longest <= 16 << 20), "{commands:?}");
    assert!(commands.iter().filter(|(_, longest)| *longest > 1 << 19).count() >= 3, "{commands:?}");
    let ours = |name: &str| name.starts_with("RF.") || name.starts_with("LC.");
    assert!(commands.iter().all(|(name, _)| ours(name) || name == "SELECT"), "{commands:?}");
}

/// A service manager that restarts only after failures does not restart the server if the module is missing, because
/// the exit status is 0. docs/operations.md says so.
#[test]
fn without_the_module_only_a_damaged_file_ends_the_server_with_an_error() {
    let server = Server::start();
    server.client().expect("LC.ADD lc:k ann", "1");
    server.save();
    let mut file = fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
    let end = |file: &[u8]| {
        // The shell does not `exec` the server, and exits with its status.
        let setup = Setup::default().without_module().file("dump.rdb", file).script("\"$@\"; exit $?");
        let log = setup.try_start().err().expect("no start");
        assert!(log.contains("no matching module type 'RCcounter'"), "{log}");
        log.lines().last().map(str::to_owned)
    };
    assert_eq!(end(&file).as_deref(), Some("(ended with exit status: 0)"));
    *file.last_mut().expect("the checksum") ^= 1;
    assert_eq!(end(&file).as_deref(), Some("(ended with exit status: 1)"));
}
