//! Tests SCANDUMP and LOADCHUNK: complete and resumed transfers, and wrong chunks.

use redis::Value;

use crate::metadata::{COMMANDS, call_at};
use rollcall_testkit::{
    Client, Server, Setup, add_many, assert_same, error_text, go_on, populate_without_ttl, show, snapshot, words,
};

const BAD_DATA: &str = "ERR received bad data";

/// The bytes loaded and the bytes in total, from the error that a command on a partially loaded key returns.
#[track_caller]
fn progress(error: &str, family: &str) -> (u64, u64) {
    let what = if family == "BF" { "filter" } else { "counter" };
    let start = format!("ERR {what} is still loading: ");
    let rest = error.strip_prefix(&start).unwrap_or_else(|| panic!("{error:?} should start with {start:?}"));
    let rest = rest.strip_suffix(" bytes").unwrap_or_else(|| panic!("{error:?}"));
    let (done, total) = rest.split_once(" of ").unwrap_or_else(|| panic!("{error:?}"));
    (done.parse().expect("bytes loaded"), total.parse().expect("bytes in all"))
}

/// A dump with at least two chunks, from a server that has the key `src`.
fn several_chunks(client: &mut Client, family: &str) -> Vec<(String, Vec<u8>)> {
    match family {
        "BF" => {
            client.expect("BF.RESERVE src 0.01 4000000", "+OK");
            add_many(client, "BF.MADD src", "item:", 0..10_000);
        }
        _ => {
            // The members take more bytes than fit into the header, because the first is no number.
            client.expect("LC.RESERVE src EXACT 65536 BYTES 1048576", "+OK");
            client.expect("LC.ADD src first", "1");
            add_many(client, "LC.ADD src", "item:", 0..20_000);
        }
    }
    let chunks = client.chunks(family, "src");
    assert!(chunks.len() >= 2, "{family}: {} chunks", chunks.len());
    chunks
}

#[test]
fn every_kind_of_key_is_dumped_and_loaded() {
    let (_server, mut client) = Server::start().with_client();
    populate_without_ttl(&mut client);
    let target =
        Server::with_args("bf-error-rate 0.2 bf-initial-size 7 lc-error-rate 0.2 lc-exact-limit 3 hash-seed 5");
    let mut other = target.client();
    let before = snapshot(&mut client);
    for key in before.keys() {
        let family = if key.starts_with("bf:") { "BF" } else { "LC" };
        let chunks = client.chunks(family, key);
        other.load_all(family, key, &chunks);
    }
    assert_same(&snapshot(&mut other), &before);
    go_on(&mut client);
    go_on(&mut other);
    assert_same(&snapshot(&mut other), &snapshot(&mut client));
}

/// Calls of all commands that need a value at `key`, which is at each place of a key, next to keys that exist or not.
fn commands_on(key: &str, family: &str) -> Vec<String> {
    let mut calls = Vec::new();
    for (name, _, call, keys) in COMMANDS.iter().filter(|(_, _, call, _)| call.starts_with(family)) {
        // Of a counter without a window, spans are an error.
        if name.ends_with(".reserve") || name.ends_with(".loadchunk") || call.contains(" SINCE ") {
            continue;
        }
        for at in words(keys) {
            calls.extend(["other", "new"].map(|other| call_at(call, keys, at, key, other).join(" ")));
        }
    }
    calls
}

#[test]
fn keys_being_loaded_answer_nothing_but_how_far_they_are() {
    for family in ["BF", "LC"] {
        let source = Server::start();
        let chunks = several_chunks(&mut source.client(), family);
        let (mut server, mut client) = Server::start().with_client();
        client.cmd(if family == "BF" { "BF.INSERT other CAPACITY 20000000 ITEMS a" } else { "LC.ADD other a" });
        let commands = commands_on("k", family);
        let mut last = None;
        for (at, chunk) in chunks.iter().enumerate() {
            assert_eq!(client.load(family, "k", chunk), Value::Okay);
            if at + 1 == chunks.len() {
                break;
            }
            let before = (client.digest("k"), client.digest("other"));
            for command in &commands {
                let (done, total) = progress(&client.error(command), family);
                assert!(done < total, "{command}: {done} of {total}");
                let (before, all) = *last.get_or_insert((done, total));
                assert!(done >= before && total == all, "{command}: {done} of {total} after {before} of {all}");
                last = Some((done, total));
            }
            let reserve = if family == "BF" { "BF.RESERVE k 0.01 100" } else { "LC.RESERVE k" };
            client.expect(reserve, "-ERR *");
            assert_eq!((client.digest("k"), client.digest("other")), before);
            client.expect("EXISTS new", "0");
        }
        assert_eq!(client.digest("k"), source.client().digest("src"), "{family}");
        for command in &commands {
            let reply = client.cmd(command);
            assert!(error_text(&reply).is_none_or(|error| !error.contains("loading")), "{}", show(&reply));
        }
        server.assert_up();
    }
}

#[test]
fn keys_being_loaded_take_the_generic_commands() {
    for family in ["BF", "LC"] {
        let (_server, mut client) = Server::start().with_client();
        let chunks = several_chunks(&mut client, family);
        assert_eq!(client.load(family, "k", &chunks[0]), Value::Okay);
        let kind = client.text("TYPE src");
        assert_eq!(client.text("TYPE k"), kind);
        client.expect("EXPIRE k 1000", "1");
        client.expect("PERSIST k", "1");
        assert!(client.int("MEMORY USAGE k") > 0);
        let digest = client.digest("k");
        let payload = client.dump("k");
        assert_eq!(client.restore("restored", &payload), Value::Okay);
        client.expect_each("COPY k copy => 1; RENAME k renamed => +OK; SWAPDB 0 1 => +OK; SWAPDB 0 1 => +OK");
        for key in ["restored", "copy", "renamed"] {
            assert_eq!(client.digest(key), digest, "{key}");
            let probe = if family == "BF" { "BF.CARD" } else { "LC.COUNT" };
            progress(&client.error(&format!("{probe} {key}")), family);
            client.expect(&format!("PEXPIREAT {key} 4102444800000"), "1");
            client.load_all(family, key, &chunks[1..]);
            client.expect(&format!("PEXPIRETIME {key}"), "4102444800000");
            client.expect(&format!("PERSIST {key}"), "1");
            assert_eq!(client.digest(key), client.digest("src"), "{key}");
        }
        assert_eq!(client.load(family, "k", &chunks[0]), Value::Okay);
        client.expect("DEL k", "1");
        client.expect("EXISTS k", "0");
        assert_eq!(client.load(family, "k", &chunks[0]), Value::Okay);
        client.expect("UNLINK k", "1");
        client.load_all(family, "k", &chunks);
        assert_eq!(client.digest("k"), client.digest("src"));
    }
}

#[test]
fn partially_loaded_keys_survive_a_restart_and_go_on() {
    let source = Server::start();
    for family in ["BF", "LC"] {
        let mut client = source.client();
        client.expect("FLUSHALL", "+OK");
        let chunks = several_chunks(&mut client, family);
        let probe = if family == "BF" { "BF.CARD k" } else { "LC.COUNT k" };
        for how in ["rdb", "aof", "rewritten aof", "rewritten aof with preamble"] {
            let preamble = if how.ends_with("preamble") { "yes" } else { "no" };
            let append = if how == "rdb" { "no" } else { "yes" };
            let setup = Setup::default()
                .line(&format!("appendonly {append}"))
                .line(&format!("aof-use-rdb-preamble {preamble}"));
            let mut server = setup.start();
            for (at, chunk) in chunks.iter().enumerate() {
                let mut client = server.client();
                assert_eq!(client.load(family, "k", chunk), Value::Okay, "{family} {how} at {at}");
                let before = (client.digest("k"), show(&client.cmd(probe)));
                match how {
                    "rdb" => server.save(),
                    "aof" => {}
                    _ => server.rewrite_aof(),
                }
                server.restart();
                let mut client = server.client();
                assert_eq!((client.digest("k"), show(&client.cmd(probe))), before, "{family} {how} at {at}");
            }
            assert_eq!(server.client().digest("k"), source.client().digest("src"), "{family} {how}");
        }
    }
}

#[test]
fn complete_keys_take_no_chunks() {
    for (family, make) in [("BF", "BF.MADD src a b c"), ("LC", "LC.ADD src a b c")] {
        let (_server, mut client) = Server::start().with_client();
        client.cmd(make);
        let chunks = client.chunks(family, "src");
        client.expect("COPY src same", "1");
        client.cmd(&make.replace("src a b c", "other x y z"));
        for key in ["src", "same", "other"] {
            let digest = client.digest(key);
            for chunk in &chunks {
                assert_eq!(error_text(&client.load(family, key, chunk)).as_deref(), Some(BAD_DATA), "{key}");
            }
            assert_eq!(client.digest(key), digest);
        }
    }
}

#[test]
fn rejected_chunks_are_logged_in_a_line() {
    let (server, mut client) = Server::start().with_client();
    client.cmd("BF.MADD src a b c");
    client.cmd("LC.ADD src2 a b c");
    for (family, key) in [("BF", "src"), ("LC", "src2")] {
        let (iterator, mut chunk) = client.chunks(family, key).swap_remove(0);
        let before = server.module_log().len();
        let middle = chunk.len() / 2;
        chunk[middle] ^= 4;
        assert!(error_text(&client.load(family, "k", &(iterator, chunk))).is_some());
        let log = server.module_log();
        assert_eq!(log.len(), before + 1, "{family}: {log:?}");
    }
}

#[test]
fn chunks_wrap_no_more_than_a_limit_allows() {
    let source = Server::start();
    let chunks = several_chunks(&mut source.client(), "BF");
    let (mut server, mut client) = Server::with_args("max-key-bytes 1048576").with_client();
    let error = error_text(&client.load("BF", "k", &chunks[0])).expect("an error");
    assert!(error.contains("max-key-bytes"), "{error}");
    client.expect("EXISTS k", "0");
    server.assert_up();
}
