//! Tests that windowed values are stored and loaded unchanged: reload, restart, AOF, payloads and chunks, also after
//! the window has passed.

use redis::Value;

use crate::effects::sent_as;
use crate::every_server::commands_windows::{FAMILIES, is_new, reserve, window};
use rollcall_testkit::client::{Client, add_many, error_text, show, sum, wait_until};
use rollcall_testkit::clock::Clock;
use rollcall_testkit::fixture::{assert_same, snapshot};
use rollcall_testkit::pair::OTHER_DEFAULTS;
use rollcall_testkit::server::{Server, Setup};

const START: u64 = 1_700_000_000;

/// Creates windowed values with the manual clock in every possible state. All keys begin with `bf:` or `lc:`.
fn populate(client: &mut Client) {
    for (key, options) in [
        ("bf:empty", "0.01 100 WINDOW 40 MANUAL"),
        ("bf:some", "0.01 1000 WINDOW 40 MANUAL SLICES 4"),
        ("bf:refresh", "0.01 1000 WINDOW 40 MANUAL REFRESH"),
        ("bf:chains", "0.01 10 WINDOW 40 MANUAL SLICES 3 EXPANSION 3"),
        ("bf:many", "0.001 10000 WINDOW 6400 MANUAL SLICES 64 SEED 18446744073709551615"),
        ("bf:one", "0.2 10000 WINDOW 1 MANUAL SLICES 1"),
        ("bf:dead", "0.01 100 WINDOW 40 MANUAL"),
        ("bf:cleared", "0.01 100 WINDOW 40 MANUAL"),
        ("bf:left", "0.001 5000 WINDOW 40 MANUAL"),
        ("bf:right", "0.001 5000 WINDOW 40 MANUAL"),
        ("lc:empty", "WINDOW 40 MANUAL"),
        ("lc:exact", "EXACT 65536 BYTES 100000 WINDOW 40 MANUAL SLICES 4"),
        ("lc:fine", "ERROR 0.0025 WINDOW 40 MANUAL SLICES 12"),
        ("lc:halves", "WINDOW 40 MANUAL SLICES 14 ERROR 0.02"),
        ("lc:bytes", "WINDOW 60 MANUAL SLICES 15 SEED 77 EXACT 0"),
        ("lc:most", "WINDOW 86400 MANUAL SLICES 254"),
        ("lc:one", "WINDOW 1 MANUAL SLICES 1 EXACT 5"),
        ("lc:dead", "WINDOW 40 MANUAL EXACT 5"),
        ("lc:cleared", "WINDOW 40 MANUAL"),
        ("lc:left", "WINDOW 40 MANUAL SLICES 4"),
        ("lc:right", "WINDOW 40 MANUAL SLICES 4"),
    ] {
        let family = key[..2].to_uppercase();
        client.expect(&format!("{family}.RESERVE {key} {options}"), "+OK");
    }
    let windows = [
        ("BF.MADD", "bf:some", 150),
        ("BF.MADD", "bf:refresh", 150),
        ("BF.MADD", "bf:chains", 60),
        ("BF.MADD", "bf:many", 90),
        ("BF.MADD", "bf:one", 90),
        ("BF.MADD", "bf:dead", 20),
        ("BF.MADD", "bf:cleared", 20),
        ("BF.MADD", "bf:left", 300),
        ("BF.MADD", "bf:right", 300),
        ("LC.ADD", "lc:exact", 400),
        ("LC.ADD", "lc:fine", 300),
        ("LC.ADD", "lc:halves", 3000),
        ("LC.ADD", "lc:bytes", 3000),
        ("LC.ADD", "lc:most", 200),
        ("LC.ADD", "lc:one", 100),
        ("LC.ADD", "lc:dead", 20),
        ("LC.ADD", "lc:cleared", 20),
        ("LC.ADD", "lc:left", 400),
        ("LC.ADD", "lc:right", 100),
    ];
    for (add, key, count) in windows {
        // In each slice two thirds of the items are new. One slice is left out.
        for slice in [0_u64, 1, 2, 4, 5] {
            client.expect(&format!("{}.ADVANCE {key} {slice}", &add[..2]), "+OK");
            add_many(client, &format!("{add} {key}"), "item:", count * slice * 2 / 3..count * slice * 2 / 3 + count);
        }
    }
    for line in [
        "BF.ADVANCE bf:dead 1000",
        "LC.ADVANCE lc:dead 1000",
        "BF.CLEAR bf:cleared",
        "LC.CLEAR lc:cleared",
        "BF.MERGE bf:merged bf:left bf:right",
        "LC.MERGE lc:merged lc:left lc:right",
        "BF.ADVANCE bf:left 1099511627776",
        "LC.ADVANCE lc:left 1099511627776",
    ] {
        client.expect(line, "+OK");
    }
    let binary: [&[u8]; 6] = [b"LC.ADD", b"lc:exact", b"", b"\0\xff", b"\r\n", &[200; 3000]];
    assert_eq!(client.call(&binary), Value::Int(4));
}

/// Makes further changes, which must have the same result for a value just loaded and for one that was never stored.
fn go_on(client: &mut Client) {
    let mut keys: Vec<_> = client.list("KEYS *[a-z]").iter().map(rollcall_testkit::client::text).collect();
    keys.sort();
    for key in keys {
        let (family, add) = if key.starts_with("bf:") { ("BF", "BF.MADD") } else { ("LC", "LC.ADD") };
        add_many(client, &format!("{add} {key}"), "more:", 0..300);
        add_many(client, &format!("{add} {key}"), "item:", 0..100);
        if let Value::Int(slice) = client.list(&format!("{family}.INFO {key} SLICE"))[0] {
            client.expect(&format!("{family}.ADVANCE {key} {}", slice + 2), "+OK");
            add_many(client, &format!("{add} {key}"), "still more:", 0..300);
        }
    }
}

#[test]
fn rdb_brings_everything_back() {
    let mut server = Server::start();
    let twin = Server::start();
    populate(&mut server.client());
    populate(&mut twin.client());
    let before = snapshot(&mut server.client());
    assert_same(&snapshot(&mut twin.client()), &before);
    server.client().expect("DEBUG RELOAD", "+OK");
    assert_same(&snapshot(&mut server.client()), &before);
    server.save();
    server.restart_with_args(OTHER_DEFAULTS);
    assert_same(&snapshot(&mut server.client()), &before);
    go_on(&mut server.client());
    go_on(&mut twin.client());
    assert_same(&snapshot(&mut server.client()), &snapshot(&mut twin.client()));
}

#[test]
fn the_aof_brings_everything_back() {
    for rewritten in ["", "yes", "no"] {
        let setup = Setup::default().line("appendonly yes");
        let setup = if rewritten.is_empty() { setup } else { setup.line(&format!("aof-use-rdb-preamble {rewritten}")) };
        let mut server = setup.start();
        let mut client = server.client();
        populate(&mut client);
        if !rewritten.is_empty() {
            server.rewrite_aof();
        }
        let before = snapshot(&mut client);
        server.restart_with_args(OTHER_DEFAULTS);
        assert_same(&snapshot(&mut server.client()), &before);
        go_on(&mut server.client());
        let before = snapshot(&mut server.client());
        server.restart_with_args("");
        assert_same(&snapshot(&mut server.client()), &before);
    }
}

#[test]
fn a_rewritten_aof_reports_windows_in_commands() {
    let server = Setup::default().line("appendonly yes").line("aof-use-rdb-preamble no").start();
    let mut client = server.client();
    for family in FAMILIES {
        client.expect(&reserve(family, family, "WINDOW 40 MANUAL"), "+OK");
        assert!(is_new(&mut client, family, family, "a"));
        client.expect(&format!("{family}.ADVANCE {family} 7"), "+OK");
    }
    server.rewrite_aof();
    let files = std::fs::read_dir(server.dir().join("appendonlydir")).expect("the AOF's directory");
    let base = files
        .map(|file| file.expect("a file").path())
        .find(|path| path.to_string_lossy().ends_with(".base.aof"))
        .expect("the rewritten AOF");
    let text = String::from_utf8_lossy(&std::fs::read(base).expect("the AOF")).into_owned();
    for family in FAMILIES {
        assert!(text.contains(&format!("{}.", sent_as(family))), "{text}");
    }
}

#[test]
fn payloads_bring_everything_back() {
    let server = Server::start();
    let other = Server::with_args(OTHER_DEFAULTS);
    let (mut client, mut there) = (server.client(), other.client());
    populate(&mut client);
    let before = snapshot(&mut client);
    for key in before.keys() {
        let Value::BulkString(payload) = client.cmd(&format!("DUMP {key}")) else { panic!("a payload") };
        let words: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
        assert_eq!(there.call(&words), Value::Okay, "{key}");
    }
    assert_same(&snapshot(&mut there), &before);
    go_on(&mut client);
    go_on(&mut there);
    assert_same(&snapshot(&mut there), &snapshot(&mut client));
}

#[test]
fn chunks_bring_everything_back() {
    let server = Server::start();
    let other = Server::with_args("bf-error-rate 0.2 lc-exact-limit 3 hash-seed 12345");
    let (mut client, mut there) = (server.client(), other.client());
    populate(&mut client);
    client.expect("BF.RESERVE bf:large 0.001 2000000 WINDOW 40 MANUAL", "+OK");
    for slice in 0..3_u64 {
        client.expect(&format!("BF.ADVANCE bf:large {slice}"), "+OK");
        add_many(&mut client, "BF.MADD bf:large", "item:", 3000 * slice..3000 * slice + 3000);
    }
    let before = snapshot(&mut client);
    for key in before.keys() {
        let family = key[..2].to_uppercase();
        let (mut iterator, mut chunks) = (0, 0);
        loop {
            let Value::Array(reply) = client.cmd(&format!("{family}.SCANDUMP {key} {iterator}")) else {
                panic!("{key}")
            };
            let [Value::Int(next), Value::BulkString(chunk)] = &reply[..] else { panic!("{reply:?}") };
            if *next == 0 {
                break;
            }
            assert!(chunk.len() <= 1 << 20, "{key}: {}", chunk.len());
            let (command, at) = (format!("{family}.LOADCHUNK"), next.to_string());
            let load: [&[u8]; 4] = [command.as_bytes(), key.as_bytes(), at.as_bytes(), chunk];
            assert_eq!(there.call(&load), Value::Okay, "{key}");
            // A repeated chunk is rejected, and a partially loaded value answers no other command.
            assert!(error_text(&there.call(&load)).is_some(), "{key}");
            (iterator, chunks) = (*next, chunks + 1);
        }
        assert!(chunks > 1 || key != "bf:large");
    }
    assert_same(&snapshot(&mut there), &before);
    go_on(&mut client);
    go_on(&mut there);
    assert_same(&snapshot(&mut there), &snapshot(&mut client));
}

/// The error begins with the code word STALE, so that clients need not compare the text.
#[test]
fn a_dump_across_slices_is_stale() {
    let server = Server::start();
    let mut client = server.client();
    for (family, reserve) in [("BF", "BF.RESERVE k 0.01 100"), ("LC", "LC.RESERVE k")] {
        client.expect(&format!("{reserve} WINDOW 40 MANUAL"), "+OK");
        client.cmd(&format!("{family}.ADD k ann"));
        let begun = client.list(&format!("{family}.SCANDUMP k 0"));
        client.expect(&format!("{family}.ADVANCE k 1"), "+OK");
        let error = client.error(&format!("{family}.SCANDUMP k {}", show(&begun[0])));
        assert!(error.starts_with("STALE a slice has begun since the dump did: start again"), "{error}");
        let again = client.list(&format!("{family}.SCANDUMP k 0"));
        assert_eq!(client.list(&format!("{family}.SCANDUMP k {}", show(&again[0])))[0], Value::Int(0));
        client.cmd("DEL k");
    }
}

#[test]
fn copies_are_equal_and_independent() {
    let server = Server::start();
    let mut client = server.client();
    populate(&mut client);
    let before = snapshot(&mut client);
    for key in before.keys() {
        let digest = client.digest(key);
        let family = key[..2].to_uppercase();
        client.expect(&format!("COPY {key} {key} DB 3"), "1");
        client.expect(&format!("COPY {key} copy"), "1");
        client.expect("RENAME copy renamed", "+OK");
        assert_eq!(client.digest("renamed"), digest, "{key}");
        let add = if family == "BF" { "BF.MADD" } else { "LC.ADD" };
        add_many(&mut client, &format!("{add} renamed"), "more:", 0..600);
        client.cmd(&format!("{family}.ADVANCE renamed 18446744073709551614"));
        assert_eq!(client.digest(key), digest, "{key}");
        client.expect("UNLINK renamed", "1");
        client.expect(&format!("OBJECT ENCODING {key}"), "\"raw\"");
        client.expect(&format!("OBJECT REFCOUNT {key}"), "1");
        assert!(client.int(&format!("OBJECT IDLETIME {key}")) >= 0);
    }
    assert_same(&snapshot(&mut client), &before);
    client.expect("SELECT 3", "+OK");
    assert_same(&snapshot(&mut client), &before);
}

#[test]
fn memory_is_that_of_what_is_live() {
    for (make, add, family) in [
        ("BF.RESERVE k 0.001 400000 WINDOW 40 MANUAL SLICES 4", "BF.MADD k", "BF"),
        ("LC.RESERVE k EXACT 0 ERROR 0.0025 WINDOW 40 MANUAL SLICES 24", "LC.ADD k", "LC"),
        ("LC.RESERVE k EXACT 60000 BYTES 1048576 WINDOW 40 MANUAL SLICES 24", "LC.ADD k", "LC"),
    ] {
        // A new server, because values of earlier tests would be freed in the background at any time.
        let server = Server::start();
        let mut client = server.client();
        let fill = |client: &mut Client, key: &str| {
            client.expect(&make.replace(" k ", &format!(" {key} ")), "+OK");
            let empty = client.int(&format!("MEMORY USAGE {key}"));
            for slice in 0..4_u64 {
                client.expect(&format!("{family}.ADVANCE {key} {slice}"), "+OK");
                // The buffers of this connection are freed when it closes.
                let add = add.replace(" k", &format!(" {key}"));
                add_many(&mut server.client(), &add, "item:", 5_000 * slice..5_000 * (slice + 1));
            }
            empty
        };
        // The server keeps the memory of its first commands, so these run before the measurement.
        fill(&mut client, "first");
        let idle = client.info_number("used_memory");
        let empty = fill(&mut client, "k");
        let full = client.int("MEMORY USAGE k");
        assert!(full > empty + 40_000, "{make}: {empty}, {full}");
        // The reported size equals the memory that the server has used, except for the buffers of one connection.
        wait_until(&format!("{make} to take {full} bytes"), || {
            let used = client.info_number("used_memory") - idle;
            ((used - full).abs() < full / 5 + 30_000).then_some(())
        });
        client.expect(&format!("{family}.ADVANCE k 100"), "+OK");
        wait_until("memory to come back", || {
            (client.info_number("used_memory") - idle < empty + full / 5 + 30_000).then_some(())
        });
        if family == "BF" {
            assert!(client.int("MEMORY USAGE k") < empty + 1000, "{make}");
        }
    }
}

#[test]
fn values_are_loaded_after_the_window_has_passed() {
    for family in FAMILIES {
        for lines in [&[][..], &["appendonly yes"], &["appendonly yes", "aof-use-rdb-preamble no"]] {
            for passed in [10, 40, 50, 365 * 86_400] {
                let clock = Clock::at(START);
                let mut server = lines.iter().fold(clock.setup(), |setup, line| setup.line(line)).start();
                let mut client = server.client();
                client.expect(&reserve(family, "k", "WINDOW 40 SLICES 4"), "+OK");
                add_many(
                    &mut client,
                    &format!("{family}.{} k", if family == "BF" { "MADD" } else { "ADD" }),
                    "x",
                    0..60,
                );
                clock.pass(10);
                assert!(is_new(&mut client, family, "k", "late"));
                let (before, count) = (client.digest("k"), if family == "BF" { "BF.CARD k" } else { "LC.COUNT k" });
                match lines.len() {
                    0 => server.save(),
                    // Some values are replayed from single commands.
                    _ if passed != 40 => server.rewrite_aof(),
                    _ => {}
                }
                clock.pass(passed);
                server.restart();
                let mut client = server.client();
                // Loading does not use the clock, so the digest is unchanged. Reading does use it.
                assert_eq!(client.digest("k"), before, "{family} {passed}");
                client.expect(count, ["0", "1", "61"][usize::from(passed <= 40) + usize::from(passed < 40)]);
                assert_eq!(window(&mut client, family, "k"), format!("40 4 {} system", clock.now() / 10));
                clock.set(START + 10);
                client.expect(count, "61");
                // After a restart with an earlier clock, the value is unchanged.
                server.restart();
                let mut client = server.client();
                client.expect(count, "61");
                clock.pass(passed);
                assert!(is_new(&mut client, family, "k", "new"));
                client.expect(count, ["1", "2", "62"][usize::from(passed <= 40) + usize::from(passed < 40)]);
            }
        }
    }
}

#[test]
fn defragmented_windows_stay_the_same() {
    let mut server = Server::start();
    let mut client = server.client();
    let reply = client.cmd("CONFIG SET activedefrag yes");
    if let Some(error) = error_text(&reply) {
        // Servers built with the system's allocator cannot defragment; the error says so.
        assert!(error.to_lowercase().contains("defragmentation"), "{error}");
        println!("left out: this server cannot defragment");
        return;
    }
    client.expect("CONFIG SET activedefrag no", "+OK");
    populate(&mut client);
    // Deleted windows leave gaps of many sizes between the remaining ones.
    let mut commands = Vec::new();
    for i in 0..20_000 {
        let word = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (items, slices) = (["a", "b b2 b3", "c c2 c3 c4 c5 c6 c7"][i % 3], 1 + i % 20);
        commands.push(word(format!(
            "BF.INSERT bf:{i} CAPACITY {} WINDOW 40 MANUAL SLICES {slices} ITEMS {items}",
            10 + i % 300
        )));
        let exact = [0, 5, 250][i / 3 % 3];
        commands.push(word(format!("LC.INSERT lc:{i} EXACT {exact} WINDOW 40 MANUAL SLICES {slices} ITEMS {items}")));
    }
    for reply in client.pipeline(&commands) {
        assert!(error_text(&reply).is_none(), "{}", show(&reply));
    }
    let deleted: Vec<_> = (0..20_000)
        .filter(|i| i % 8 != 0)
        .flat_map(|i| [format!("bf:{i}"), format!("lc:{i}")])
        .map(|key| vec!["DEL".to_owned(), key])
        .collect();
    client.pipeline(&deleted);
    let before = snapshot(&mut client);
    for line in [
        "active-defrag-ignore-bytes 1",
        "active-defrag-threshold-lower 1",
        "active-defrag-cycle-min 60",
        "active-defrag-cycle-max 75",
        "active-defrag-max-scan-fields 10",
        "activedefrag yes",
    ] {
        client.expect(&format!("CONFIG SET {line}"), "+OK");
    }
    // Values are moved while commands read and write them.
    wait_until("values to be moved", || {
        client.cmd("BF.MEXISTS bf:many item:1 item:2");
        client.cmd("LC.ADD lc:fine item:1000");
        (client.info_number("active_defrag_hits") > 3000).then_some(())
    });
    client.expect("CONFIG SET activedefrag no", "+OK");
    assert_same(&snapshot(&mut client), &before);
    go_on(&mut client);
    assert!(sum(&add_many(&mut client, "BF.MEXISTS bf:many", "still more:", 0..300)) == 300);
    client.expect("FLUSHALL", "+OK");
    server.assert_up();
}
