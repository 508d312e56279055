//! Tests which state a restart restores, from the RDB file and from the AOF.

use std::fs;

use rollcall_testkit::client::{Client, add_many, sum};
use rollcall_testkit::fixture::{assert_same, go_on, populate, snapshot};
use rollcall_testkit::server::{Server, Setup};

/// Defaults that differ from those with which the keys were created. None of them may influence a key after the
/// restart.
const OTHER_DEFAULTS: &str = "bf-error-rate 0.2 bf-initial-size 7 bf-expansion-factor 5 lc-error-rate 0.2 \
                              lc-error-rate 0.2 lc-exact-limit 3 lc-exact-bytes 30 hash-seed 12345 \
                              auto-create no max-key-bytes 1048576";

#[test]
fn rdb_brings_everything_back() {
    let mut server = Server::start();
    let mut client = server.client();
    populate(&mut client);
    let before = snapshot(&mut client);
    server.save();
    server.restart();
    assert_same(&snapshot(&mut server.client()), &before);
    server.restart_with_args(OTHER_DEFAULTS);
    assert_same(&snapshot(&mut server.client()), &before);
    server.client().expect("DEBUG RELOAD", "+OK");
    assert_same(&snapshot(&mut server.client()), &before);
}

#[test]
fn loaded_values_go_on_like_those_never_stored() {
    let mut server = Server::start();
    let twin = Server::start();
    populate(&mut server.client());
    populate(&mut twin.client());
    server.save();
    server.restart();
    go_on(&mut server.client());
    go_on(&mut twin.client());
    assert_same(&snapshot(&mut server.client()), &snapshot(&mut twin.client()));
}

#[test]
fn aof_replays_every_command() {
    let mut server = Setup::default().line("appendonly yes").start();
    let mut client = server.client();
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
        let mut server = setup.start();
        let mut client = server.client();
        populate(&mut client);
        let before = snapshot(&mut client);
        server.rewrite_aof();
        server.restart_with_args(OTHER_DEFAULTS);
        let mut client = server.client();
        assert_same(&snapshot(&mut client), &before);
        // Commands appended after the rewrite are restored.
        for line in ["BF.INSERT bf:new ITEMS a b", "BF.CLEAR bf:default", "BF.MERGE bf:left bf:right"] {
            assert!(rollcall_testkit::client::error_text(&client.cmd(line)).is_none(), "{line}");
        }
        add_many(&mut client, "LC.INSERT lc:new ITEMS", "x", 0..300);
        client.expect("LC.MERGE lc:merged lc:many", "+OK");
        client.expect("RENAME lc:exact lc:renamed", "+OK");
        let before = snapshot(&mut client);
        server.restart();
        assert_same(&snapshot(&mut server.client()), &before);
    }
}

/// Creates a filter of 36 MB with some items.
fn make_big_filter(client: &mut Client) {
    client.expect("BF.RESERVE bf:big 0.001 20000000 NONSCALING", "+OK");
    add_many(client, "BF.MADD bf:big", "item:", 0..20_000);
}

#[test]
fn big_filters_survive_both_ways() {
    for lines in [&["appendonly no"][..], &["appendonly yes", "aof-use-rdb-preamble no"]] {
        let mut server = lines.iter().fold(Setup::default(), |setup, line| setup.line(line)).start();
        let mut client = server.client();
        make_big_filter(&mut client);
        let before = snapshot(&mut client);
        match lines.len() {
            1 => server.save(),
            _ => server.rewrite_aof(),
        }
        server.restart();
        let mut client = server.client();
        assert_same(&snapshot(&mut client), &before);
        assert_eq!(sum(&add_many(&mut client, "BF.MEXISTS bf:big", "item:", 0..20_000)), 20_000);
    }
}

/// The commands in an AOF, each with its name and the length of its longest argument.
fn commands(aof: &[u8]) -> Vec<(String, usize)> {
    fn number(aof: &[u8], at: &mut usize, mark: u8) -> usize {
        assert_eq!(aof[*at], mark, "at byte {at}");
        let end = *at + aof[*at..].iter().position(|byte| *byte == b'\r').expect("an end of line");
        let digits = std::str::from_utf8(&aof[*at + 1..end]).expect("digits");
        *at = end + 2;
        digits.parse().expect("a number")
    }
    let (mut commands, mut at) = (Vec::new(), 0);
    while at < aof.len() {
        let (mut name, mut longest) = (String::new(), 0);
        for _ in 0..number(aof, &mut at, b'*') {
            let length = number(aof, &mut at, b'$');
            if name.is_empty() {
                name = String::from_utf8_lossy(&aof[at..at + length]).to_uppercase();
            }
            longest = longest.max(length);
            at += length + 2;
        }
        commands.push((name, longest));
    }
    commands
}

#[test]
fn rewritten_aof_is_in_pieces() {
    let server = Setup::default().line("appendonly yes").line("aof-use-rdb-preamble no").start();
    make_big_filter(&mut server.client());
    server.client().cmd("LC.ADD lc:small a b c");
    server.rewrite_aof();
    let files = fs::read_dir(server.dir().join("appendonlydir")).expect("the AOF's directory");
    let bases: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(".base.aof"))
        .collect();
    assert_eq!(bases.len(), 1, "{bases:?}");
    let commands = commands(&fs::read(&bases[0]).expect("the AOF"));
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
