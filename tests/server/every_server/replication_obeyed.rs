//! Tests commands that RedisBloom accepts and this module rejects from clients: unknown and repeated options,
//! abbreviated words, very large expansions, chunks in the wrong order. If they come from a RedisBloom primary or from
//! an AOF, they have already been acknowledged and must not be lost. Most tests need the RedisBloom module
//! (`ROLLCALL_PEER`).

use std::path::Path;

use redis::Value;

use crate::effects::appended;
use crate::every_server::replication_redisbloom::{chunks, items, load, peer, with};
use rollcall_testkit::{Client, Server, Setup, error_text, lines, pack, show, text, words};

/// Commands that RedisBloom accepts, each with a key of its own as second word. This module rejects them from clients,
/// apart from those that are marked.
const TAKEN: &str = "BF.RESERVE a0 0.01 10 NONSC; BF.RESERVE a1 0.01 10 foo; BF.RESERVE a2 0.01 10 foo bar baz
     BF.RESERVE a3 0.01 10 EXP 4; BF.RESERVE a4 0.01 10 EXPANSIONX 4; BF.RESERVE a5 0.01 10 expansion 4 foo
     BF.RESERVE a6 0.01 10 foo EXPANSION 4; BF.RESERVE a7 0.01 10 EXPANSION 3 EXPANSION
     BF.RESERVE a8 0.01 10 foo nonscaling bar; BF.RESERVE a9 0.01 10 NONSCALING NONSCALING
     BF.RESERVE b0 0.01 10 EXPANSION 32769; BF.RESERVE b1 0.01 10 EXPANSION 4294967295
     BF.RESERVE b2 0.01 10 EXPANSION 4294967298; BF.RESERVE b3 0.01 10 EXPANSION 9223372036854775807
     BF.RESERVE b4 0x.01 10; BF.RESERVE b5 0X1P-4 10; BF.RESERVE b6 +0x.8p-3 10 EXPANSION 4 foo
     BF.RESERVE b7 0.1 10 COUNT 7; BF.RESERVE b8 0.5 10 EXPANSION 40000
     BF.RESERVE b9 0.999999999999 1099511627777 NONSCALING foo
     # RedisBloom mistakes a key for an option if the key has an option's name.
     BF.RESERVE nonscaling 0.01 10 => taken; BF.RESERVE NonScaling 0.01 10 foo; BF.RESERVE c0 1e-320 10 => taken
     BF.RESERVE c1 .01 10 EXPANSION 32768 => taken; BF.INSERT d0 i x y z; BF.INSERT d1 IT x y
     BF.INSERT d2 cxyz 7 ixyz x; BF.INSERT d3 CAP 7 ITEMS x; BF.INSERT d4 er 0.1 ITEMS x; BF.INSERT d5 ERR 0.1 ITEMS x
     BF.INSERT d6 e 3 ITEMS x; BF.INSERT d7 exxx 3 ITEMS x; BF.INSERT d8 n ITEMS x; BF.INSERT d9 no ITEMS x
     BF.INSERT e0 nonx ITEMS x; BF.INSERT e1 nc ITEMS x; BF.INSERT e2 CAPACITY 7 CAPACITY 9 ITEMS x
     BF.INSERT e3 ERROR 0.1 ERROR 0.2 ITEMS x; BF.INSERT e4 EXPANSION 3 EXPANSION 4 ITEMS x
     BF.INSERT e5 CAPACITY 0 CAPACITY 9 ITEMS x; BF.INSERT e6 CAPACITY -1 c 9 ERROR 3 error .1 EXPANSION 0 e 3 ITEMS x
     BF.INSERT e7 NONSCALING NONSCALING ITEMS x; BF.INSERT e8 NONS e 40000 ITEMS x
     BF.INSERT e9 EXPANSION 32769 ITEMS x; BF.INSERT f0 EXPANSION 4294967298 ITEMS x
     BF.INSERT f1 EXPANSION 4294967295 NONSCALING ITEMS x; BF.INSERT f2 ERROR 0x.01 ITEMS x
     BF.INSERT f3 ERROR inf ERROR 0.1 ITEMS x; BF.INSERT f4 i ITEMS x; BF.INSERT f5 ITEMS CAPACITY 7 ITEMS x => taken
     BF.INSERT f6 c 7 ITEMS ITEMS ITEMS; BF.INSERT items c 7 ITEMS x; BF.INSERT ITEMS i c 7 ITEMS x
     BF.INSERT a1 noc ITEMS x y z; BF.INSERT a1 NxCREATE n ITEMS x; BF.INSERT a8 NOCREATE NOCREATE c 3 ITEMS x
     BF.INSERT f7 CAPACITY 100 EXPANSION 40000 c 10 ITEMS x y; BF.ADD f8 x => taken
     # RedisBloom reads these words as an expansion, or as unknown words.
     BF.INSERT g0 EX 4 ITEMS x => taken; BF.INSERT g1 EXAT 4 ITEMS x; BF.RESERVE g2 0.01 10 EX 4 => taken";

/// Filters that cannot grow, because their next sub-filter would take terabytes.
const TOO_LARGE_TO_GROW: [&str; 2] = ["b1", "b3"];

fn key_of(line: &str) -> &str {
    words(line)[1]
}

/// Starts a RedisBloom server with an AOF. It is always `redis-server` from the PATH, because the server parses the
/// numbers, and Valkey does not accept hexadecimal ones.
fn primary(peer: &Path) -> Server {
    let setup = Setup::default().without_module().module_before(peer).binary(Path::new("redis-server"));
    setup.line("appendonly yes").line("appendfsync always").start()
}

fn ours() -> Setup {
    Setup::default().args("bf-layout classic").line("appendonly yes")
}

/// Starts a server with this module from this AOF.
fn loaded(args: &str, aof: &[u8]) -> Server {
    Setup::default().args(args).line("appendonly yes").file("appendonly.aof", aof).start()
}

fn aof_of(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| pack(&words(line))).collect()
}

/// Everything about a filter that must be equal: the replies to INFO and to look-ups, and its bits.
fn state(client: &mut Client, key: &str) -> (Vec<Value>, Vec<(String, Vec<u8>)>) {
    let asked = items("item", 200);
    let said = vec![
        client.call(&["BF.DEBUG", key]),
        client.call(&["BF.INFO", key]),
        client.call(&with(&["BF.MEXISTS", key, "x", "y", "z", "ITEMS"], &asked)),
    ];
    (said, chunks(client, key))
}

#[track_caller]
fn assert_equal(ours: &Server, theirs: &Server, keys: &[&str], how: &str) {
    let (mut one, mut other) = (ours.client(), theirs.client());
    let sizes = (one.int("DBSIZE"), other.int("DBSIZE"));
    assert_eq!(sizes.0, sizes.1, "{how}");
    for key in keys {
        let (here, there) = (state(&mut one, key), state(&mut other, key));
        let debug = (show(&here.0[0]), show(&there.0[0]));
        assert!(here == there, "{key}, {how}: {debug:?}");
    }
}

#[track_caller]
fn assert_no_error(line: &str, reply: &Value) {
    let elements = if let Value::Array(elements) = reply { elements } else { std::slice::from_ref(reply) };
    assert!(elements.iter().all(|element| error_text(element).is_none()), "{line}: {}", show(reply));
}

#[test]
fn commands_of_a_redisbloom_primary_are_obeyed() {
    let Some(peer) = peer() else { return };
    let (theirs, mut replica, strict) = (primary(&peer), ours().start(), ours().start());
    replica.replicate(&theirs);
    let mut here = replica.client();
    // From now on, received commands are appended to the replica's AOF.
    replica.wait_for_aof();
    let (mut client, mut ours) = (theirs.client(), strict.client());
    for line in lines(TAKEN) {
        let (line, is_taken) = line.strip_suffix(" => taken").map_or((line, false), |line| (line, true));
        assert_no_error(line, &client.cmd(line));
        let error = error_text(&ours.cmd(line));
        assert_eq!(error.is_none(), is_taken, "{line}: {error:?}");
    }
    let mut keys: Vec<_> = lines(TAKEN).into_iter().map(key_of).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut full = 0;
    for key in keys.iter().filter(|key| !TOO_LARGE_TO_GROW.contains(key)) {
        let reply = client.call(&with(&["BF.MADD", key], &items("item", 30)));
        let Value::Array(elements) = reply else { panic!("{key}: {}", show(&reply)) };
        full += elements.iter().filter(|element| error_text(element).is_some()).count();
    }
    replica.wait_synced(&theirs);
    // Commands that failed on the primary but were sent anyway do nothing here. They must not fail, because a replica
    // may be set to end at an error.
    let stats = here.text("INFO errorstats");
    assert!(full > 0 && !stats.contains("errorstat_ERR"), "{full} filters are full: {stats}");
    assert_equal(&replica, &theirs, &keys, "replicated");
    here.expect("REPLICAOF NO ONE", "+OK");
    replica.restart();
    assert_equal(&replica, &theirs, &keys, "restarted");
    assert_equal(&loaded("bf-layout classic", &appended(&theirs)), &theirs, &keys, "loaded");
}

#[test]
fn chunks_in_any_order_arrive() {
    let Some(peer) = peer() else { return };
    let (theirs, replica) = (primary(&peer), ours().start());
    replica.replicate(&theirs);
    let mut client = theirs.client();
    for (key, prefix) in [("source", "item"), ("other", "else")] {
        client.expect(&format!("BF.RESERVE {key} 0.01 60 EXPANSION 2"), "+OK");
        client.call(&with(&["BF.MADD", key], &items(prefix, 100)));
    }
    let pieces = |dump: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
        let mut position = 0;
        let mut pieces = vec![dump[0].clone()];
        for chunk in dump[1..].iter().flat_map(|(_, bytes)| bytes.chunks(48)) {
            position += chunk.len();
            pieces.push(((position + 1).to_string(), chunk.to_vec()));
        }
        pieces
    };
    let (source, other) = (pieces(&chunks(&mut client, "source")), pieces(&chunks(&mut client, "other")));
    let last = source.len() - 1;
    assert!(last > 4, "{last} pieces");
    // The last chunk is repeated, also after an item whose bits it overwrites.
    load(&mut client, "again", &source);
    load(&mut client, "again", &source[last..]);
    client.expect("BF.ADD again x", "1");
    load(&mut client, "again", &source[last..]);
    load(&mut client, "backwards", &source[..1]);
    (1..=last).rev().for_each(|at| load(&mut client, "backwards", &source[at..=at]));
    load(&mut client, "with holes", &source[..3]);
    load(&mut client, "with holes", &source[last..]);
    load(&mut client, "mixed", &source);
    load(&mut client, "mixed", &other[2..=3]);
    let nothing = [("2".to_owned(), Vec::new())];
    for (key, line) in [("added", "BF.ADD"), ("added2", "BF.MADD"), ("added3", "BF.INSERT")] {
        load(&mut client, key, &source[..3]);
        load(&mut client, key, &nothing);
        let words = if line == "BF.INSERT" { vec![line, key, "i", "x", "y"] } else { vec![line, key, "x"] };
        assert_no_error(line, &client.call(&words));
        load(&mut client, key, &source[3..]);
        load(&mut client, key, &nothing);
    }
    load(&mut client, "empty", &source[..1]);
    load(&mut client, "empty", &nothing);
    load(&mut client, "empty", &source[1..]);
    replica.wait_synced(&theirs);
    assert_eq!(replica.client().info("total_error_replies"), "0");
    let keys = ["source", "other", "again", "backwards", "with holes", "mixed", "added", "added2", "added3", "empty"];
    assert_equal(&replica, &theirs, &keys, "replicated");
    assert_equal(&loaded("bf-layout classic", &appended(&theirs)), &theirs, &keys, "loaded");
    // Clients of this module may load chunks only in order.
    let strict = Server::start();
    let (mut ours, mut here) = (strict.client(), replica.client());
    for key in keys {
        load(&mut ours, key, &chunks(&mut here, key));
        let [one, other] = [&mut ours, &mut here].map(|client| client.call(&["BF.INFO", key, "FILL"]));
        assert_eq!(one, other, "{key}: bits that are counted as set");
    }
    for (at, bytes) in [&source[last], &source[2], &nothing[0]] {
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", b"again", at.as_bytes(), bytes];
        assert_eq!(show(&ours.call(&words)), "-ERR received bad data");
    }
}

#[test]
fn obeyed_creations_without_a_layout_are_classic() {
    let aof = aof_of(&[
        "BF.RESERVE wide 0.01 10 EXPANSION 32769",
        "BF.RESERVE within 0.01 10 EXPANSION 32768 foo",
        "BF.RESERVE wrapped 0.01 10 EXPANSION 4294967296",
        "BF.INSERT many c 1099511627777 er 0.999999999999 n i x",
        "BF.MADD wrapped 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
        "BF.ADD within x",
    ]);
    let mut server = loaded("", &aof);
    for round in ["loaded", "loaded again"] {
        let mut client = server.client();
        let mut info =
            |key: &str, field: &str| show(&client.list(&format!("BF.INFO {key} {field}"))[0]).replace('"', "");
        assert_eq!([info("wide", "LAYOUT"), info("wide", "EXPANSION")], ["classic", "32769"], "{round}");
        assert_eq!([info("within", "LAYOUT"), info("within", "EXPANSION")], ["classic", "32768"], "{round}");
        assert_eq!([info("many", "LAYOUT"), info("many", "CAPACITY")], ["classic", "1099511627777"], "{round}");
        assert_eq!([info("wrapped", "EXPANSION"), info("wrapped", "FILTERS")], ["2", "2"], "{round}");
        let known: Vec<_> = (1..=15).map(|item: u32| item.to_string()).collect();
        let answers = client.call(&with(&["BF.MEXISTS", "wrapped"], &known));
        assert_eq!(answers, Value::Array(vec![Value::Int(1); 15]), "{round}");
        assert_eq!(text(&client.list("BF.DEBUG within")[0]).split(' ').next(), Some("size:1"), "{round}");
        // Clients may not send commands that are accepted only from a primary.
        for line in ["BF.RESERVE new 0.01 10 EXPANSION 32769", "BF.INSERT new c 10 i x", "BF.RESERVE new 0.01 10 foo"] {
            assert!(client.error(line).starts_with("ERR "), "{line}");
        }
        client.expect("EXISTS new", "0");
        server.restart();
    }
}

#[test]
fn obeyed_creations_beyond_memory_leave_the_server_up() {
    let aof = aof_of(&[
        "BF.RESERVE before 0.01 10",
        "BF.RESERVE huge 0.01 1125899906842624",
        "BF.RESERVE largest 0.01 9223372036854775807",
        "BF.INSERT huge c 1125899906842624 i x",
        "BF.RESERVE after 0.01 10 foo",
    ]);
    for args in ["", "bf-layout classic"] {
        let mut server = loaded(args, &aof);
        server.assert_up();
        let mut client = server.client();
        client.expect("EXISTS before after", "2");
        client.expect("DBSIZE", "2");
    }
}
