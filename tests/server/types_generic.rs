//! Tests generic commands of the server, such as COPY and EXPIRE, on the keys of this module.

use redis::Value;

use crate::neighbour::hosted;
use rollcall_testkit::{
    Client, Server, Setup, add_many, assert_same, error_text, lines, populate, show, snapshot, wait_until,
};

fn run(client: &mut Client, text: &str) {
    lines(text).into_iter().for_each(|line| client.run(line));
}

#[test]
fn types_have_their_names() {
    let (_server, mut client) = Server::start().with_client();
    run(&mut client, "BF.ADD bf a; BF.RESERVE back 0.01 10 LAYOUT classic; LC.ADD lc a; SET string x");
    for (key, kind) in [("bf", "RCfilter-"), ("back", "MBbloom--"), ("lc", "RCcounter")] {
        client.expect(&format!("TYPE {key}"), &format!("+{kind}"));
        let reply = client.list(&format!("SCAN 0 TYPE {kind} COUNT 100"));
        assert_eq!(show(&reply[1]), format!("[\"{key}\"]"));
    }
}

#[test]
fn keys_can_be_renamed_copied_and_moved() {
    let (_server, mut client) = Server::start().with_client();
    populate(&mut client);
    let before = snapshot(&mut client);
    for key in before.keys() {
        let digest = client.digest(key);
        client.expect(&format!("COPY {key} copy:{key}"), "1");
        client.expect(&format!("COPY {key} {key} DB 3"), "1");
        client.expect(&format!("COPY {key} copy:{key}"), "0");
        client.expect(&format!("COPY {key} copy:{key} REPLACE"), "1");
        client.expect(&format!("RENAME copy:{key} renamed"), "+OK");
        client.expect(&format!("RENAMENX renamed {key}"), "0");
        assert_eq!(client.digest("renamed"), digest, "{key}");
        // A change of the copy does not change the original.
        let add = if key.starts_with("bf:") { "BF.MADD" } else { "LC.ADD" };
        add_many(&mut client, &format!("{add} renamed"), "more:", 0..600);
        client.cmd(&format!("{}.ADVANCE renamed 18446744073709551614", key[..2].to_uppercase()));
        assert_eq!(client.digest(key), digest, "{key}");
        client.expect("DEL renamed", "1");
    }
    assert_same(&snapshot(&mut client), &before);
    client.expect("SELECT 3", "+OK");
    assert_same(&snapshot(&mut client), &before);
    client.expect("MOVE lc:exact 4", "1");
    client.expect("SELECT 4", "+OK");
    client.expect("LC.COUNT lc:exact", "10");
}

#[test]
fn memory_comes_back_when_keys_go() {
    for gone in ["DEL k l", "UNLINK k l", "FLUSHALL ASYNC", "FLUSHALL SYNC", "SET k x", "PEXPIRE k 1", "RENAME s k"] {
        let (mut server, mut client) = Server::start().with_client();
        run(&mut client, "SET s x");
        let before = client.info_number("used_memory");
        // The filter takes 25 MB. The counter must stay if a command names only the filter.
        client.expect("BF.RESERVE k 0.01 20000000", "+OK");
        client.expect("LC.RESERVE l EXACT 0", "+OK");
        add_many(&mut client, "LC.ADD l", "x", 0..1000);
        assert!(client.info_number("used_memory") > before + 20_000_000);
        client.run(gone);
        wait_until(gone, || {
            client.cmd("EXISTS k");
            (client.info_number("used_memory") < before + 2_000_000).then_some(())
        });
        server.assert_up();
    }
}

/// A small filter is freed without reading it. A filter that has grown must not be freed in this way.
#[test]
fn a_filter_that_was_small_is_freed_by_what_it_has_become() {
    // By default Valkey frees values in the background after DEL, so this is switched off.
    let (_server, mut client) = Setup::default().line("lazyfree-lazy-user-del no").start().with_client();
    let grow = |client: &mut Client| {
        run(client, "BF.RESERVE small 0.01 10; BF.RESERVE grown 0.01 10");
        add_many(client, "BF.MADD grown", "x", 0..300_000);
    };
    let before = client.info_number("used_memory");
    for (gone, in_background) in [("DEL small grown", 0), ("UNLINK small grown", 1)] {
        grow(&mut client);
        assert!(client.info_number("used_memory") > before + 400_000);
        client.expect(gone, "2");
        wait_until(gone, || {
            (client.info_number("used_memory") < before + 200_000
                && client.info_number("lazyfreed_objects") == in_background)
                .then_some(())
        });
    }
}

#[test]
fn watched_keys_notice_changes_and_only_those() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    run(&mut other, "BF.MADD f a b; LC.ADD c a b; BF.RESERVE full 0.00001 1 NONSCALING; BF.ADD full a");
    run(&mut other, "BF.MADD g a; LC.ADD d a");
    add_many(&mut other, "LC.ADD big", "x", 0..2000);
    let cases = [
        ("f", "BF.ADD f a", false),
        ("f", "BF.MADD f a b", false),
        ("f", "BF.INSERT f ITEMS b", false),
        ("f", "BF.EXISTS f a", false),
        ("f", "BF.MERGE f g", false),
        ("f", "BF.MERGE f missing", false),
        ("f", "BF.SCANDUMP f 0", false),
        ("f", "BF.RESERVE f 0.01 100", false),
        ("full", "BF.ADD full b", false),
        ("full", "BF.MADD full a b", false),
        ("c", "LC.ADD c a b", false),
        ("c", "LC.INSERT c ITEMS b", false),
        ("c", "LC.COUNT c", false),
        ("c", "LC.MERGE c d", false),
        ("c", "LC.MERGE d c", false),
        ("big", "LC.ADD big x1 x2 x3", false),
        ("c", "LC.REM c x", false),
        ("missing", "BF.INSERT missing NOCREATE ITEMS a", false),
        ("missing", "BF.RESERVE missing 7 7", false),
        ("f", "BF.ADD f new", true),
        ("f", "BF.MADD f a newer", true),
        ("f", "BF.CLEAR f", true),
        ("c", "LC.ADD c new", true),
        ("c", "LC.REM c new x", true),
        ("c", "LC.MERGE c big", true),
        ("missing", "BF.ADD missing a", true),
        ("absent", "LC.RESERVE absent", true),
    ];
    for (key, command, changes) in cases {
        client.run(&format!("WATCH {key}"));
        other.cmd(command);
        run(&mut client, "MULTI; PING");
        let expected = if changes { "nil" } else { "[+PONG]" };
        assert_eq!(show(&client.cmd("EXEC")), expected, "{command} under WATCH {key}");
    }
}

#[test]
fn scripts_can_call_every_kind_of_command() {
    let (_server, mut client) = Server::start().with_client();
    let mut eval = |script: &str, keys: &[&str]| {
        let count = keys.len().to_string();
        let command: Vec<_> = ["EVAL", script, &count].into_iter().chain(keys.iter().copied()).collect();
        show(&client.call(&command))
    };
    assert_eq!(eval("return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'a')", &["f"]), "[1, 1, 0]");
    assert_eq!(
        eval("return {redis.call('BF.ADD', KEYS[1], 'a'), redis.call('BF.EXISTS', KEYS[1], 'b')}", &["f"]),
        "[0, 1]"
    );
    assert_eq!(eval("return redis.call('LC.ADD', KEYS[1], 'a', 'b') + redis.call('LC.COUNT', KEYS[1])", &["c"]), "4");
    assert_eq!(eval("return #redis.call('LC.MEMBERS', KEYS[1])", &["c"]), "2");
    assert_eq!(eval("return #redis.call('BF.INFO', KEYS[1])", &["f"]), "10");
    assert!(eval("return redis.call('BF.ADD', KEYS[1], 'a')", &["c"]).starts_with("-WRONGTYPE "));
    assert_eq!(eval("return redis.pcall('BF.ADD', KEYS[1], 'a').err ~= nil", &["c"]), "1");
    let reply = client.call(&["EVAL_RO", "return redis.call('BF.ADD', KEYS[1], 'z')", "1", "f"]);
    assert!(error_text(&reply).is_some(), "a read-only script does not write: {}", show(&reply));
    let reply = client.call(&["EVAL_RO", "return redis.call('LC.COUNT', KEYS[1])", "1", "c"]);
    assert_eq!(reply, Value::Int(2));
    client.expect("BF.EXISTS f z", "0");
}

#[test]
fn no_key_is_open_when_events_are_sent() {
    let (_server, mut client) = hosted("").start().with_client();
    // The server calls the module for events even if no client subscribes to them.
    populate(&mut client);
    run(
        &mut client,
        "RF.ADD made a; BF.RESERVE timed 0.01 100 EX 1000; BF.INSERT fw WINDOW 40 MANUAL EX 1000 ITEMS a b
         BF.ADVANCE fw 3; BF.ADVANCE fw CLOCK; BF.ADMIT fa LIMIT 2 ITEMS a b c
         BF.ADMIT fa LIMIT 3 EX 1000 ITEMS a b c; BF.MERGE none missing; BF.MERGE fa made timed; BF.CLEAR fa
         LC.RESERVE ctimed EX 1000; LC.INSERT cw WINDOW 40 MANUAL EX 1000 ITEMS a b; LC.ADVANCE cw 3
         LC.ADVANCE cw CLOCK; LC.ADMIT ca LIMIT 2 ITEMS a b c; LC.ADMIT ca LIMIT 3 ITEMS a b c; LC.MERGE cnone missing
         LC.MERGE ca ctimed lc:exact; LC.CLEAR ca",
    );
    for (family, key) in [("BF", "bf:chain"), ("LC", "lc:many")] {
        let chunks = client.chunks(family, key);
        client.load_all(family, "loaded", &chunks);
        client.expect("DEL loaded", "1");
    }
    assert!(client.int("HOST.SENT") > 100);
    client.expect("HOST.OPEN", "0");
}

#[test]
fn values_are_the_same_where_malloc_aligns_to_8_bytes_alone() {
    let states = ["", "odd"].map(|options| {
        let (_server, mut client) = hosted(options).start().with_client();
        populate(&mut client);
        // A counter with a table of members, which the processor reads 16 bytes at a time.
        client.expect("LC.RESERVE lc:members EXACT 5000 BYTES 100000", "+OK");
        add_many(&mut client, "LC.ADD lc:members", "member:", 0..5000);
        add_many(&mut client, "LC.ADD lc:members", "member:", 0..5000);
        client.expect("LC.INFO lc:members MODE", "[\"exact\"]");
        client.expect("COPY lc:members lc:copied", "1");
        client.expect("LC.DIFFCARD 2 lc:members lc:copied", "[0, \"0\"]");
        let before = snapshot(&mut client);
        client.expect("DEBUG RELOAD", "+OK");
        assert_same(&snapshot(&mut client), &before);
        // SYNC, because Valkey frees in the background by default.
        client.expect("FLUSHALL SYNC", "+OK");
        assert_eq!(client.info("rollcall_filters"), "0");
        before
    });
    assert_same(&states[1], &states[0]);
}
