//! Tests LC.*: every command with every option, and the type, shape and order of its replies.

use redis::Value;

use rollcall_testkit::{Client, Server, add_many, field, lines, number, pairs, session, show, text};

const LABELS: &str =
    "Error rate; Exact limit; Exact bytes; Mode; Size; Count; Standard error; Window; Slices; Slice; Clock; Volatile";

#[track_caller]
fn info(client: &mut Client, key: &str, label: &str) -> Value {
    field(&client.cmd(&format!("LC.INFO {key}")), label)
}

/// The error rate and the EXACT limit of a counter, from LC.INFO.
#[track_caller]
fn parameters(client: &mut Client, key: &str) -> [f64; 2] {
    ["Error rate", "Exact limit"].map(|label| number(&info(client, key, label)))
}

#[track_caller]
fn members(client: &mut Client, key: &str) -> Vec<String> {
    let mut members: Vec<_> = client.list(&format!("LC.MEMBERS {key}")).iter().map(text).collect();
    members.sort();
    members
}

#[test]
fn reserve_makes_what_was_asked_for() {
    session(&[("LC.RESERVE k", "+OK", "+OK"), ("LC.RESERVE k", "-ERR *", "-ERR *"), ("LC.COUNT k", "0", "0")]);
    let (_server, mut client) = Server::start().with_client();
    for (arguments, expected) in [
        ("", [0.01, 250.0]),
        ("ERROR 0.02", [0.02, 250.0]),
        ("EXACT 0", [0.01, 0.0]),
        ("EXACT 65536 ERROR 0.25", [0.25, 65536.0]),
        ("exact 10 error 0.0025 bytes 1 seed 18446744073709551615", [0.0025, 10.0]),
    ] {
        client.cmd("DEL k");
        client.expect(&format!("LC.RESERVE k {arguments}"), "+OK");
        assert_eq!(parameters(&mut client, "k"), expected, "{arguments}");
    }
}

#[test]
fn add_answers_how_many_were_new() {
    session(&[
        ("LC.ADD k a", "1", "1"),
        ("LC.ADD k a", "0", "0"),
        ("LC.ADD k a b c b", "2", "2"),
        ("lc.add k d e", "2", "2"),
        ("LC.COUNT k", "5", "5"),
    ]);
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.ADD k a", "1");
    assert_eq!(parameters(&mut client, "k"), [0.01, 250.0], "the defaults");
}

#[test]
fn insert_creates_by_its_options_and_only_then() {
    session(&[
        ("LC.INSERT k ITEMS a b a", "2", "2"),
        ("LC.INSERT k ERROR 0.2 EXACT 0 ITEMS b c", "1", "1"),
        ("LC.INSERT k NOCREATE ITEMS c d", "1", "1"),
        ("LC.INSERT missing NOCREATE ITEMS c d", "-ERR *", "-ERR *"),
        ("EXISTS missing", "0", "0"),
        ("LC.INSERT all exact 5 seed 3 error 0.1 items items", "1", "1"),
    ]);
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.INSERT all EXACT 5 ERROR 0.1 ITEMS a", "1");
    assert_eq!(parameters(&mut client, "all"), [0.1, 5.0]);
    client.expect("LC.INSERT all ERROR 0.2 EXACT 0 ITEMS b", "1");
    assert_eq!(parameters(&mut client, "all"), [0.1, 5.0], "they apply only when it creates");
    client.expect("LC.INSERT one EXACT 9 ITEMS a", "1");
    assert_eq!(parameters(&mut client, "one"), [0.01, 9.0]);
}

#[test]
fn count_is_of_the_union() {
    session(&[
        ("LC.COUNT missing", "0", "0"),
        ("LC.ADD a 1 2 3", "3", "3"),
        ("LC.ADD b 3 4", "2", "2"),
        ("LC.COUNT a", "3", "3"),
        ("LC.COUNT a b", "4", "4"),
        ("LC.COUNT a b a missing", "4", "4"),
        ("LC.COUNT missing b", "2", "2"),
        ("EXISTS missing", "0", "0"),
    ]);
}

#[test]
fn counters_need_no_capacity() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.ADD c a", "1");
    let digest = client.digest("c");
    let commands = lines(
        "LC.RESERVE k 1000; LC.RESERVE k 1e6 ERROR 0.02; LC.RESERVE k -5 WINDOW 40; LC.RESERVE k CAPACITY 1000
         lc.reserve k error 0.02 capacity 1000 window 40; LC.RESERVE k CAPACITY; LC.RESERVE c 1000
         LC.INSERT k 1000 ITEMS a; LC.INSERT k CAPACITY 1000 ITEMS a; lc.insert k exact 9 capacity 1000 items a
         LC.INSERT k WINDOW 40 CAPACITY 1000 ITEMS a; LC.INSERT c CAPACITY 1000 ITEMS b
         LC.ADMIT k 1000 LIMIT 3 ITEMS a; LC.ADMIT k LIMIT 3 CAPACITY 1000 ITEMS a
         lc.admit c limit 3 dryrun capacity 1000 items b; LC.INFO c CAPACITY; lc.info c capacity",
    );
    for command in commands {
        client.expect(
            command,
            "-ERR a counter needs no CAPACITY: its error, such as ERROR 0.01, holds for any number of members",
        );
    }
    client.expect("DBSIZE", "1");
    assert_eq!(client.digest("c"), digest);
    // After another option, a number is reported as an unknown option.
    client.expect("LC.RESERVE k SEED 1 1000", "-ERR unknown option '1000': expected ERROR, EXACT, *");
    client.expect("LC.INSERT c ITEMS CAPACITY 1000", "2");
}

#[test]
fn members_are_listed_while_exact() {
    let server = Server::start();
    for mut client in [server.client(), server.client3()] {
        client.expect("FLUSHALL", "+OK");
        client.expect("LC.MEMBERS missing", "[]");
        client.expect("EXISTS missing", "0");
        client.expect("LC.RESERVE empty", "+OK");
        client.expect("LC.MEMBERS empty", "[]");
        client.cmd("LC.INSERT k EXACT 4 ITEMS b d a c b");
        assert_eq!(members(&mut client, "k"), ["a", "b", "c", "d"]);
        assert!(client.list("LC.MEMBERS k").iter().all(|member| matches!(member, Value::BulkString(_))));
        client.cmd("LC.ADD k e");
        let why = "-ERR counter holds an estimate: members are kept only up to its EXACT limit of 4 members and \
                   16384 bytes";
        client.expect("LC.MEMBERS k", why);
    }
}

#[test]
fn merge_gives_the_union() {
    session(&[
        ("LC.ADD a 1 2 3", "3", "3"),
        ("LC.ADD b 3 4", "2", "2"),
        ("LC.MERGE new a b", "+OK", "+OK"),
        ("LC.COUNT new", "4", "4"),
        ("LC.COUNT a", "3", "3"),
        ("LC.MERGE a b", "+OK", "+OK"),
        ("LC.COUNT a", "4", "4"),
        ("LC.MERGE a missing", "+OK", "+OK"),
        ("LC.MERGE a a", "+OK", "+OK"),
        ("LC.COUNT a", "4", "4"),
        ("LC.MERGE late missing b", "+OK", "+OK"),
        ("LC.COUNT late", "2", "2"),
        ("EXISTS missing", "0", "0"),
    ]);
    let (_server, mut client) = Server::start().with_client();
    client.cmd("LC.INSERT a ERROR 0.02 EXACT 9 ITEMS 1 2 3");
    client.cmd("LC.INSERT b ERROR 0.02 EXACT 4 ITEMS 4 5");
    client.expect("LC.MERGE new a b", "+OK");
    assert_eq!(parameters(&mut client, "new"), [0.02, 9.0], "made like the first source");
    assert_eq!(members(&mut client, "new"), ["1", "2", "3", "4", "5"]);
    client.expect("LC.MERGE b a", "+OK");
    assert_eq!(text(&info(&mut client, "b", "Mode")), "estimate", "five members, an EXACT limit of four");
    // An existing destination never takes a smaller ERROR. A new one has that of the estimates, and EXACT of the first.
    for key in ["exact", "destination"] {
        client.cmd(&format!("LC.INSERT {key} ERROR 0.04 EXACT 9 ITEMS x1"));
    }
    client.cmd("LC.INSERT estimate ERROR 0.005 EXACT 0 ITEMS x2 x3");
    client.expect("LC.MERGE made exact estimate", "+OK");
    client.expect("LC.MERGE destination exact estimate", "+OK");
    assert_eq!(parameters(&mut client, "made"), [0.005, 9.0]);
    assert_eq!(parameters(&mut client, "destination"), [0.04, 9.0]);
}

#[test]
fn info_describes_the_counter() {
    let server = Server::start();
    for mut client in [server.client(), server.client3()] {
        client.expect("FLUSHALL", "+OK");
        client.expect("LC.INFO missing", "-ERR *");
        client.cmd("LC.INSERT k ERROR 0.02 EXACT 10 ITEMS a b c");
        let reply = client.cmd("LC.INFO k");
        let labels: Vec<_> = pairs(&reply).into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, lines(LABELS));
        assert_eq!(parameters(&mut client, "k"), [0.02, 10.0]);
        assert_eq!(text(&field(&reply, "Mode")), "exact");
        assert_eq!(field(&reply, "Count"), Value::Int(3));
        assert_eq!(number(&field(&reply, "Standard error")), 0.0);
        add_many(&mut client, "LC.ADD k", "x", 0..900);
        let reply = client.cmd("LC.INFO k");
        assert_eq!(text(&field(&reply, "Mode")), "estimate");
        assert_eq!(field(&reply, "Count"), Value::Int(client.int("LC.COUNT k")));
        let error = number(&field(&reply, "Standard error"));
        assert!(error > 0.0 && error <= 0.02, "relative, as asked for: {error}");
    }
    assert!(matches!(server.client().cmd("LC.INFO k"), Value::Array(_)));
    assert!(matches!(server.client3().cmd("LC.INFO k"), Value::Map(_)));
}

#[test]
fn keys_and_items_are_binary_safe() {
    let (_server, mut client) = Server::start().with_client();
    let key: &[u8] = b"\0k\xff\r\n";
    let items: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\xff\xfe\r\n", &[7; 5000]];
    for item in items {
        assert_eq!(show(&client.call(&[b"LC.ADD", key, item])), "1", "{}", item.escape_ascii());
        assert_eq!(show(&client.call(&[b"LC.ADD", key, item])), "0");
    }
    assert_eq!(show(&client.call(&[b"LC.COUNT", key])), "5");
    let Value::Array(mut listed) = client.call(&[b"LC.MEMBERS", key]) else { panic!("an array") };
    listed.sort_by_key(show);
    let mut expected: Vec<_> = items.iter().map(|item| Value::BulkString(item.to_vec())).collect();
    expected.sort_by_key(show);
    assert_eq!(listed, expected);
}

#[test]
fn from_a_thousand_members_on_a_counter_takes_no_more_than_a_hyperloglog() {
    let (_server, mut client) = Server::start().with_client();
    let mut before = 0;
    for len in [300, 500, 1000, 1150, 1200, 1500, 1600, 1700, 2000, 3000, 10_000, 30_000, 100_000] {
        for command in ["LC.ADD lc", "PFADD hl"] {
            add_many(&mut client, command, "x", before..len);
        }
        before = len;
        let [ours, theirs] = ["lc", "hl"].map(|key| client.int(&format!("MEMORY USAGE {key}")));
        let most = if len < 1000 { 300 + 9 * len as i64 / 4 } else { theirs };
        assert!(ours <= most, "{len} members: {ours} bytes, HyperLogLog {theirs}");
    }
}
