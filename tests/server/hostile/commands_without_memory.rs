//! Tests commands without enough memory, because of `maxmemory` or because the system gives none: they return an error
//! and change nothing.

use std::collections::BTreeSet;
use std::process::Command;

use redis::Value;

use rollcall_testkit::{
    Client, Server, Setup, add_many, error_text, lines, populate_for_no_change, shorten, show, text, with_items, words,
};

/// Commands that write, on new keys and on those of [`populate_for_no_change`]. `?` stands for BF or RF.
const WRITES: &str =
    "?.RESERVE new 0.01 100; ?.RESERVE new 0.0001 1000000 EXPANSION 4; ?.RESERVE new 0.01 100 WINDOW 40; ?.ADD new a
     ?.ADD f new; ?.ADD fw new; ?.MADD new a b; ?.MADD f new newer; ?.INSERT new ITEMS a
     ?.INSERT new CAPACITY 1000000 ITEMS a; ?.INSERT f ITEMS new; ?.INSERT fc ITEMS new; ?.ADMIT new LIMIT 5 ITEMS a
     ?.ADMIT f LIMIT 50 ITEMS new; ?.ADMIT fw LIMIT 50 ITEMS new; ?.MERGE new f g; ?.MERGE g f; ?.MERGEDUMP new data
     ?.LOADCHUNK new 1 data; LC.RESERVE new; LC.RESERVE new EXACT 0 WINDOW 40; LC.ADD new a; LC.ADD c new
     LC.ADD e new; LC.ADD cw new; LC.INSERT new ITEMS a; LC.INSERT new EXACT 0 ITEMS a; LC.INSERT c ITEMS new
     LC.INSERT e2 ITEMS new; LC.ADMIT new LIMIT 5 ITEMS a; LC.ADMIT c LIMIT 50 ITEMS new
     LC.ADMIT cw LIMIT 50 ITEMS new; LC.MERGE new c d; LC.MERGE d e; LC.MERGE new cw; LC.MERGEDUMP new data
     LC.LOADCHUNK new 1 data; COPY f new; COPY e new; COPY cw new";

/// Commands that write but only remove data, so they may run when memory is full.
const FORGETS: [&str; 6] = ["BF.ADVANCE", "RF.ADVANCE", "LC.ADVANCE", "BF.CLEAR", "RF.CLEAR", "LC.REM"];

fn writes() -> Vec<String> {
    lines(WRITES)
        .iter()
        .flat_map(|line| ["BF", "RF"].map(|prefix| line.replace('?', prefix)))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The writing commands of the module, each with whether the server rejects it when memory is full.
fn writing_commands(client: &mut Client) -> Vec<(String, bool)> {
    let names = client.list("COMMAND LIST FILTERBY MODULE rollcall");
    let mut writing = Vec::new();
    for name in names.iter().map(text) {
        let Value::Array(infos) = client.cmd(&format!("COMMAND INFO {name}")) else { panic!("COMMAND INFO {name}") };
        let Value::Array(info) = &infos[0] else { panic!("COMMAND INFO {name}") };
        let Value::Array(flags) = &info[2] else { panic!("the flags of {name}") };
        let flags: Vec<String> = flags.iter().map(text).collect();
        if flags.iter().any(|flag| flag == "write") {
            writing.push((name.to_uppercase(), flags.iter().any(|flag| flag == "denyoom")));
        }
    }
    writing
}

/// Every command that may take memory is in `WRITES`, so that new commands cannot be left out of these tests.
#[test]
fn every_command_that_may_take_memory_is_rejected_without() {
    let (mut server, mut client) = Setup::default().line("maxmemory-policy noeviction").start().with_client();
    let writes = writes();
    for (name, rejected) in writing_commands(&mut client) {
        let forgets = FORGETS.contains(&name.as_str()) || name == "LC.CLEAR";
        assert_eq!(rejected, !forgets, "{name}");
        assert!(
            forgets || writes.iter().any(|line| line.starts_with(&format!("{name} "))),
            "{name} is not in the list"
        );
    }
    populate_for_no_change(&mut client);
    let before = client.text("DEBUG DIGEST");
    client.expect("CONFIG SET maxmemory 1", "+OK");
    for line in &writes {
        client.expect(line, "-OOM command not allowed*");
    }
    assert_eq!(client.text("DEBUG DIGEST"), before);
    // Commands that need no memory succeed, and so do commands that free some.
    client.expect_each(
        "BF.EXISTS f a => 1; LC.COUNT c => 2; BF.ADVANCE fw 3 => *; BF.CLEAR f => +OK; LC.CLEAR e => +OK
         LC.REM c a => 1; DEL g => 1",
    );
    server.assert_up();
}

/// The server lets scripts with the flag `allow-oom` write when memory is full. The module's own limits then reject the
/// commands.
#[test]
fn scripts_that_may_write_without_memory_are_rejected_whole_commands() {
    let (mut server, mut client) = Setup::default().line("maxmemory-policy noeviction").start().with_client();
    populate_for_no_change(&mut client);
    let made_before = client.int("DBSIZE");
    client.expect("CONFIG SET maxmemory 1", "+OK");
    let mut rejected = 0;
    for line in writes().iter().filter(|line| !line.starts_with("COPY")) {
        let before = client.text("DEBUG DIGEST");
        let script = "#!lua flags=allow-oom\nreturn redis.call(unpack(ARGV))";
        let reply = client.call(&[&["EVAL", script, "0"], &words(line)[..]].concat());
        let Some(error) = error_text(&reply) else {
            // An item may need no memory, because its bits are in memory that the value already has. An empty counter
            // has no bits.
            let makes = words(line)[1] == "new";
            assert!(!makes || line.starts_with("LC.RESERVE"), "{line} gave {}", show(&reply));
            client.cmd("DEL new");
            continue;
        };
        assert!(error.contains("maxmemory leaves") || line.ends_with(" data"), "{line}: {error}");
        assert_eq!(client.text("DEBUG DIGEST"), before, "{line}");
        rejected += 1;
    }
    assert!(rejected > 26, "{rejected} were rejected");
    assert_eq!(client.int("DBSIZE"), made_before);
    server.assert_up();
}

/// The address space limit of a server in KiB: several times the size that it needs to start.
const SPACE_KIB: u64 = 1_200_000;

/// Additional address space in KiB for the server itself, and for the thread that frees large values.
///
/// DUMP needs blocks of a mebibyte, and the server ends if it gets none. Together with the space that [`fill_space`]
/// leaves, this is less than 30 MB, which one slice of `k:window` needs and must not get.
const SPARE_KIB: u64 = 14 << 10;

/// Fills the address space with filters `ballast:*` until no large block fits, then gives the server some more.
fn fill_space(server: &Server) {
    let mut client = server.client();
    let mut taken = 0;
    // Allocators reserve separate areas for large blocks, so blocks of several sizes fill the space. The smallest is
    // 8.4 MB.
    for capacity in [40_000_000, 28_000_000, 20_000_000, 14_000_000, 10_000_000, 6_600_000] {
        while client.cmd(&format!("BF.RESERVE ballast:{taken} 0.01 {capacity} NONSCALING")) == Value::Okay {
            taken += 1;
            assert!(taken < 1000, "the limit does not hold");
        }
    }
    assert!(taken > 5, "only {taken} filters of ballast fit");
    limit_space(server, &((SPACE_KIB + SPARE_KIB) << 10).to_string());
}

/// Sets the address space limit of a running server in bytes.
fn limit_space(server: &Server, bytes: &str) {
    let space = format!("--as={bytes}:");
    let status = Command::new("prlimit").args(["--pid", &server.pid().to_string(), &space]).status();
    assert!(status.is_ok_and(|status| status.success()), "prlimit {space}");
}

/// The number of keys, and the INFO of the keys `k:*`.
fn state(client: &mut Client) -> Vec<String> {
    let keys = client.list("KEYS k:*");
    let info = |key: &Value| {
        let key = text(key);
        let command = if client.text(&format!("TYPE {key}")) == "RCcounter" { "LC.INFO" } else { "BF.INFO" };
        format!("{key} {}", show(&client.cmd(&format!("{command} {key}"))))
    };
    let mut state: Vec<String> = keys.iter().map(info).collect();
    state.sort();
    state.push(client.int("DBSIZE").to_string());
    state
}

fn digests(client: &mut Client) -> Vec<String> {
    let mut keys: Vec<_> = client.list("KEYS k:*").iter().map(text).collect();
    keys.sort();
    keys.iter().map(|key| client.digest(key)).collect()
}

/// Runs a command that must fail for lack of memory and change nothing.
#[track_caller]
fn fails<A: AsRef<[u8]>>(client: &mut Client, command: &[A]) {
    let what = shorten(command);
    let before = state(client);
    let reply = client.call(command);
    let error = match &reply {
        Value::Array(items) => items.last().and_then(error_text),
        other => error_text(other),
    };
    let Some(error) = error else { panic!("{what} gave {}", show(&reply)) };
    // These are errors of the server's own commands RESTORE and COPY.
    let is_of_server = ["Bad data format", "failed to copy"].iter().any(|text| error.contains(text));
    assert!(error.ends_with("more than the allocator has left") || is_of_server, "{what}: {error}");
    assert_eq!(state(client), before, "{what}: {error}");
}

/// Loads the chunks of a dump up to the chunk that fails.
fn load_fails(client: &mut Client, from: &str) {
    let mut iterator = "0".to_owned();
    loop {
        let reply = client.list(&format!("BF.SCANDUMP {from} {iterator}"));
        let [Value::Int(next), Value::BulkString(chunk)] = &reply[..] else { panic!("{reply:?}") };
        assert!(*next != 0, "all of {from} was loaded");
        iterator = next.to_string();
        let load: [&[u8]; 4] = [b"BF.LOADCHUNK", b"loaded", iterator.as_bytes(), chunk];
        let before = state(client);
        let reply = client.call(&load);
        if let Some(error) = error_text(&reply) {
            assert!(error.ends_with("more than the allocator has left"), "{error}");
            assert_eq!(state(client), before);
            client.cmd("DEL loaded");
            return;
        }
    }
}

/// If the system gives no more memory, the server must not end, and no command may be half done.
#[test]
fn exhausted_system_memory_is_an_error() {
    let setup = Setup::default().args("max-key-bytes 1099511627776").line("activedefrag no");
    let mut server = setup.script(&format!(r#"ulimit -S -v {SPACE_KIB}; exec "$@""#)).start();
    let mut client = server.client();
    for line in [
        "BF.RESERVE k:lines 0.01 1000 EXPANSION 32768",
        "BF.RESERVE k:classic 0.01 1000 EXPANSION 32768 LAYOUT classic",
        "BF.RESERVE k:window 0.01 40000000 WINDOW 40 MANUAL SLICES 2",
    ] {
        client.expect(line, "+OK");
    }
    for key in ["k:lines", "k:classic"] {
        let mut next = 0;
        while client.int(&format!("BF.CARD {key}")) < 1000 {
            add_many(&mut client, &format!("BF.MADD {key}"), "in:", next..next + 1);
            next += 1;
        }
    }
    client.expect("BF.ADD k:window in", "1");
    client.expect("BF.ADVANCE k:window 1", "*");
    fill_space(&server);
    let before = digests(&mut client);

    for line in lines(
        "BF.RESERVE new 0.01 40000000; BF.RESERVE new 0.01 40000000 LAYOUT classic NONSCALING
         BF.INSERT new CAPACITY 40000000 ITEMS a; BF.INSERT new CAPACITY 40000000 WINDOW 40 SLICES 2 ITEMS a b
         BF.ADMIT new LIMIT 9 CAPACITY 40000000 ITEMS a; BF.ADMIT k:lines LIMIT 9000 ITEMS out:1 out:2 out:3
         BF.ADMIT k:window LIMIT 9 ITEMS a; BF.ADD k:window a; BF.INSERT k:window ITEMS a b; BF.MERGE new ballast:0
         BF.MERGE new k:window; COPY ballast:0 new; COPY k:window new",
    ) {
        fails(&mut client, &words(line));
    }
    for key in ["k:lines", "k:classic"] {
        // Some of these items are false positives, so not all of them are new.
        fails(&mut client, &with_items(&format!("BF.MADD {key}"), "out:", 0..20));
        fails(&mut client, &with_items(&format!("BF.INSERT {key} ITEMS"), "out:", 0..20));
    }
    let payload = client.dump("ballast:0");
    fails(&mut client, &[b"RESTORE", &b"new"[..], b"0", &payload]);
    load_fails(&mut client, "ballast:0");
    load_fails(&mut client, "k:window");
    assert_eq!(digests(&mut client), before);

    // Commands that need little memory succeed. Commands that need much succeed after memory is freed.
    client.expect("BF.ADD small a", "1");
    client.expect("LC.ADD few a b c", "3");
    for key in client.list("KEYS ballast:*").iter().map(text) {
        client.expect(&format!("DEL {key}"), "1");
    }
    limit_space(&server, "unlimited");
    let added: i64 = (0..20).map(|number| client.int(&format!("BF.ADD k:lines out:{number}"))).sum();
    assert!(added > 10, "{added}");
    client.expect("BF.ADD k:window a", "1");
    server.assert_up();
}
